"""Specification of Livox lidars: lines that fire at once along an endless pattern of two rotations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.errors import within
from hilsim.sensor.specs import LidarSpec

PatternName = Literal["mid360", "hap"]


@dataclass(frozen=True, kw_only=True)
class LivoxSpec(LidarSpec):
    """Specification of a Livox.

    Attributes:
        family: Packet format, always ``livox``.
        dev_type: Number of the model in answers to its host: 9 Mid-360, 10 HAP, 35 Mid-360s (``livox_lidar_def.h``).
        serial_prefix: First characters of serial numbers that are made.
        pattern: Scan pattern, of those in ``patterns``.
        lines: Beams.
        shots_per_sequence: Times that each of them fires in a firing sequence.
        interval: Time from a packet's first point to its last one as packets say it, 0.1 us.
        imu_position_mm: Place of the inertial sensors in the frame of the points (x forward, y left, z up).
    """

    family: Literal["livox"]
    dev_type: Literal[9, 10, 35]
    serial_prefix: str
    pattern: PatternName
    lines: int
    shots_per_sequence: int
    interval: int
    imu_position_mm: tuple[float, float, float]

    @property
    def laser_count(self) -> int:
        """Firings of a firing sequence: shots of all lines, one line after another."""
        return self.lines * self.shots_per_sequence

    @property
    def range_code_max(self) -> int:
        """Largest distance that packets can represent, in millimetres: 16 bits of 10 mm each in packets of type 2."""
        return 327_670

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from within(self, lines=(1, 8), shots_per_sequence=(1, 96))
        yield 96 % max(self.laser_count, 1) == 0, f"lines times shots_per_sequence must divide the 96 points of a packet, got {self.laser_count}"
        at_once = self.lasers_per_firing
        yield at_once in {1, self.lines}, f"lasers_per_firing must be 1 or lines, got {at_once}"
        yield self.range_unit_mm == 1.0, f"range_unit_mm must be 1, got {self.range_unit_mm}"
        least_ns = self.firing_ns * self.laser_count // max(at_once, 1)
        yield (
            0 <= self.sequence_ns - least_ns < self.laser_count,
            f"sequence_ns must be the {least_ns} ns of its firings, or up to 1 ns more for each of them, got {self.sequence_ns}",
        )
        yield from super().rules()
