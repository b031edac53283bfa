"""Specification of Cepton-style lidars: lasers whose beams a mirror sweeps over an image."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.errors import within
from hilsim.sensor.mirror import MirrorSpec, SegmentSpec
from hilsim.sensor.specs import LidarSpec

LONGEST_STEP_NS = 254_000
"""Longest time between two points of a packet. A point stores the step as one byte of microseconds; the limit leaves room for rounding and a fast clock."""
LONGEST_SEQUENCE_NS = 1_000_000
"""Longest firing sequence. The platform's pose is interpolated within a sequence; over this time the error at 50 m/s^2 is 6 um."""
MODEL_NAME_MAX = 27
"""Longest name in a sensor information packet, in ASCII characters."""


@dataclass(frozen=True, kw_only=True)
class CeptonSpec(LidarSpec):
    """Specification of a lidar with STDV packets whose mirror sweeps the beams over an image.

    Attributes:
        family: Packet format, always ``cepton``.
        model_code: Model number in the sensor information packet (public header ``cepton_sdk3.h``).
        segments: Lasers in firing order.
        mirror: Motion of the mirror.
    """

    family: Literal["cepton"]
    model_code: int
    segments: tuple[SegmentSpec, ...]
    mirror: MirrorSpec

    @property
    def laser_count(self) -> int:
        """Number of firings in a firing sequence."""
        return len(self.segments)

    @property
    def has_linear_reflectivity(self) -> bool:
        """Always true: a point's reflectivity is linear up to 1.27 and exponential above."""
        return True

    @property
    def range_code_max(self) -> int:
        """Largest distance, in counts of ``range_unit_mm``, that the model's packets can represent: 16 bits of 5 mm straight ahead."""
        return int(65_535 * 5.0 / self.range_unit_mm) if self.range_unit_mm > 0.0 else 0

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield (
            self.model.isascii() and self.model.isprintable() and 1 <= len(self.model) <= MODEL_NAME_MAX,
            f'model must be 1 to {MODEL_NAME_MAX} ASCII characters (an information packet holds no more), got "{self.model}"',
        )
        yield from within(self, model_code=(0, 65_535))
        yield 1 <= len(self.segments) <= 72, f"segments must be 1 to 72, got {len(self.segments)}"
        yield from within(self, lasers_per_firing=(1, 72))
        yield from super().rules()
        yield (
            self.sequence_ns - self.last_firing_ns <= LONGEST_STEP_NS,
            f"sequence_ns must leave at most {LONGEST_STEP_NS} ns between firings (a point stores its step in one byte of us), got {self.sequence_ns}",
        )
        yield self.sequence_ns <= LONGEST_SEQUENCE_NS, f"sequence_ns must be at most {LONGEST_SEQUENCE_NS}, got {self.sequence_ns}"
        yield self.firing_ns <= LONGEST_STEP_NS, f"firing_ns must be at most {LONGEST_STEP_NS}, got {self.firing_ns}"

    @property
    def last_firing_ns(self) -> int:
        """Device time from a sequence's first firing to its last."""
        return (max(self.laser_count, 1) - 1) // max(self.lasers_per_firing, 1) * self.firing_ns

    @property
    def scan_s(self) -> float:
        """Duration of a scan in seconds."""
        return self.mirror.passes_per_scan / (2.0 * self.mirror.x_hz)
