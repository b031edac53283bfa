"""Cepton-style lidars as data: lasers that a mirror sweeps over an image."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require
from hilsim.sensor.specs import LidarSpec

LONGEST_STEP_NS = 254_000
"""Between two points of a packet that stores their steps in one byte of microseconds, with room for rounding and for a fast clock."""
LONGEST_SEQUENCE_NS = 1_000_000
"""The platform's pose is interpolated within a firing sequence: to 6 um at 50 m/s^2 over this time."""
MODEL_NAME_MAX = 27
"""ASCII characters of a sensor information packet's name."""


@dataclass(frozen=True, kw_only=True)
class SegmentSpec:
    """One laser of a mirror lidar: which part of the image it sweeps.

    Attributes:
        image_x: Middle of its sweep, ``x / y`` of a point (right of the sensor over ahead of it).
        image_z: The same upwards, ``z / y``.
        phase_x_deg: How far it is ahead of the mirror's own phase.
        phase_z_deg: The same of the other axis.
        scale_x: Width of its sweep, in widths of the mirror's.
        scale_z: The same of the other axis.
    """

    image_x: float
    image_z: float
    phase_x_deg: float = 0.0
    phase_z_deg: float = 0.0
    scale_x: float = 1.0
    scale_z: float = 1.0

    def __post_init__(self) -> None:
        require(
            *(
                (abs(value) <= 20.0, f"{name} must be -20 to 20, got {value}")
                for name, value in (("image_x", self.image_x), ("image_z", self.image_z))
            ),
            *(
                (abs(value) <= 360.0, f"{name} must be -360 to 360, got {value}")
                for name, value in (("phase_x_deg", self.phase_x_deg), ("phase_z_deg", self.phase_z_deg))
            ),
            *(
                (0.0 < abs(value) <= 10.0, f"{name} must be -10 to 10 and not 0, got {value}")
                for name, value in (("scale_x", self.scale_x), ("scale_z", self.scale_z))
            ),
        )


@dataclass(frozen=True, kw_only=True)
class MirrorSpec:
    """How the image is swept: on each axis ``amplitude * (sin p + third_ratio * sin(3 p + third_phase))`` about a laser's middle, ``p = 2 pi hz t + phase``.

    Two directions of different frequencies make a Lissajous figure of each laser (US patent 11,835,656). A third harmonic of -1/9 makes a sine nearly a triangle.

    Attributes:
        x_hz: Sweeps a second across, there and back, to 0.001.
        x_amplitude: Half of a sweep, in image coordinates.
        x_third_ratio: Third harmonic.
        x_third_phase_deg: Its phase.
        x_phase_deg: Phase at device time 0.
        z_hz: Sweeps a second up and down, to 0.001.
        z_amplitude: Half of a sweep, in image coordinates.
        z_third_ratio: Third harmonic.
        z_third_phase_deg: Its phase.
        z_phase_deg: Phase at device time 0.
        passes_per_scan: A scan is so many sweeps across, one way; at its end the frame parity changes.
    """

    x_hz: float
    x_amplitude: float
    x_third_ratio: float = 0.0
    x_third_phase_deg: float = 0.0
    x_phase_deg: float = 0.0
    z_hz: float
    z_amplitude: float
    z_third_ratio: float = 0.0
    z_third_phase_deg: float = 0.0
    z_phase_deg: float = 0.0
    passes_per_scan: int = 1

    def __post_init__(self) -> None:
        require(
            *(rule for axis in ("x", "z") for rule in self._axis_rules(axis)),
            (1 <= self.passes_per_scan <= 100, f"passes_per_scan must be 1 to 100, got {self.passes_per_scan}"),
        )

    def _axis_rules(self, axis: str) -> Iterator[tuple[bool, str]]:
        hz, amplitude, ratio = (getattr(self, f"{axis}_{name}") for name in ("hz", "amplitude", "third_ratio"))
        yield 0.01 <= hz <= 5000.0, f"{axis}_hz must be 0.01 to 5000, got {hz}"
        yield 0.0 < amplitude <= 10.0, f"{axis}_amplitude must be above 0 and at most 10, got {amplitude}"
        yield abs(ratio) <= 0.5, f"{axis}_third_ratio must be -0.5 to 0.5, got {ratio}"
        for name in ("third_phase_deg", "phase_deg"):
            phase_deg = getattr(self, f"{axis}_{name}")
            yield abs(phase_deg) <= 360.0, f"{axis}_{name} must be -360 to 360, got {phase_deg}"


@dataclass(frozen=True, kw_only=True)
class CeptonSpec(LidarSpec):
    """A lidar whose lasers are swept over an image by a mirror, with STDV packets.

    Attributes:
        family: Whose packets.
        model_code: Of the sensor information packet (public header ``cepton_sdk3.h``).
        segments: Lasers in firing order.
        mirror: How they are swept.
    """

    family: Literal["cepton"]
    model_code: int
    segments: tuple[SegmentSpec, ...]
    mirror: MirrorSpec

    @property
    def laser_count(self) -> int:
        """Firings of a firing sequence."""
        return len(self.segments)

    @property
    def has_linear_reflectivity(self) -> bool:
        """Of its points."""
        return True

    @property
    def range_code_max(self) -> int:
        """Largest distance, in counts of ``range_unit_mm``, that the model's packets can represent: 16 bits of 5 mm straight ahead."""
        return int(65_535 * 5.0 / self.range_unit_mm) if self.range_unit_mm > 0.0 else 0

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield (
            self.model.isascii() and self.model.isprintable() and 1 <= len(self.model) <= MODEL_NAME_MAX,
            f'model must be 1 to {MODEL_NAME_MAX} ASCII characters (an information packet holds no more), got "{self.model}"',
        )
        yield 0 <= self.model_code <= 65_535, f"model_code must be 0 to 65535, got {self.model_code}"
        yield 1 <= len(self.segments) <= 72, f"segments must be 1 to 72, got {len(self.segments)}"
        yield 1 <= self.lasers_per_firing <= 72, f"lasers_per_firing must be 1 to 72, got {self.lasers_per_firing}"
        yield from super().rules()
        yield (
            self.sequence_ns - self.last_firing_ns <= LONGEST_STEP_NS,
            f"sequence_ns must leave at most {LONGEST_STEP_NS} ns between firings (a point stores its step in one byte of us), got {self.sequence_ns}",
        )
        yield self.sequence_ns <= LONGEST_SEQUENCE_NS, f"sequence_ns must be at most {LONGEST_SEQUENCE_NS}, got {self.sequence_ns}"
        yield self.firing_ns <= LONGEST_STEP_NS, f"firing_ns must be at most {LONGEST_STEP_NS}, got {self.firing_ns}"

    @property
    def last_firing_ns(self) -> int:
        """Device time of a sequence's last firing since its first."""
        return (max(self.laser_count, 1) - 1) // max(self.lasers_per_firing, 1) * self.firing_ns

    @property
    def scan_s(self) -> float:
        """How long a scan takes."""
        return self.mirror.passes_per_scan / (2.0 * self.mirror.x_hz)


@dataclass(frozen=True, kw_only=True)
class CeptonSetting:
    """What a Cepton-style sensor reports of itself, and how.

    Attributes:
        header_version: Of point packets: 2 (144 points), or 1 (143 points, read by the vendor's SDK 2 and not by SDK 3).
        info_packets: Send sensor information twice a second: SDK 2 then knows the sensor, and SDK 3 makes frames. Its layout was measured on the SDKs, the vendor has not
            published it.
        serial: Serial number in it.
        firmware: Firmware version in it, major to build.
        part_number: Part number in it.
    """

    header_version: Literal[1, 2] = 2
    info_packets: bool = False
    serial: int = 1
    firmware: tuple[int, int, int, int] = (1, 0, 0, 0)
    part_number: int = 0

    def __post_init__(self) -> None:
        require(
            (0 <= self.serial < 2**32, f"serial must be 0 to 4294967295, got {self.serial}"),
            (0 <= self.part_number < 2**32, f"part_number must be 0 to 4294967295, got {self.part_number}"),
            (all(0 <= part <= 255 for part in self.firmware), f"firmware must be four numbers of 0 to 255, got {self.firmware}"),
        )
