"""Specification of Ouster lidars: an array of beams that all fire at once when the head reaches a column."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from hilsim.errors import require, within
from hilsim.families.ouster.protocol.geometry import Beams, offset_transform
from hilsim.sensor.specs import LidarSpec
from hilsim.sensor.unit.spread import UnitSpread


@dataclass(frozen=True, kw_only=True)
class BeamArraySpec:
    """Beams of a model as polynomials of x, which goes from 1 at the top beam to -1 at the lowest one.

    Attributes:
        elevation_deg: Coefficients of x^0, x^1 … of the elevation.
        azimuth_deg: For each of the rows 0, 1, 2 and 3, which repeat: coefficients of x^0, x^2, x^4 … of the beam azimuth angle, positive clockwise.
        origin_mm: Distance of the beams' origins from the axis of the head.
        height_mm: Height of the head's axis system (lidar frame) above the sensor's base.
        imu_position_mm: Place of the inertial sensors in the sensor frame.
    """

    elevation_deg: tuple[float, ...]
    azimuth_deg: tuple[tuple[float, ...], ...]
    origin_mm: float
    height_mm: float
    imu_position_mm: tuple[float, float, float]

    def __post_init__(self) -> None:
        require(
            (1 <= len(self.elevation_deg) <= 10, f"elevation_deg must be 1 to 10 coefficients, got {len(self.elevation_deg)}"),
            (len(self.azimuth_deg) == 4, f"azimuth_deg must be coefficients for 4 rows, got {len(self.azimuth_deg)}"),
            *within(self, origin_mm=(0, 100), height_mm=(0, 500)),
        )


@dataclass(frozen=True, kw_only=True)
class PhotonSpec:
    """Counts of photons that pixels report.

    Attributes:
        signal: Signal photons of a white diffuse target, times the square of its range in metres, far away.
        signal_near_m: Range within which the signal grows no more, because nearer targets are out of focus.
        signal_floor: Mean signal of a pixel without a return.
        near_ir_floor: Near-infrared count in darkness.
        near_ir_sky: Count beyond that of the sky, and of a white diffuse surface that sees half of it.
        near_ir_sun: Count beyond that of a white diffuse surface that the sun shines on vertically.
        near_ir_noise: Standard deviation of near infrared relative to the square root of the count: six units have 0.98 to 1.26 on their most even surfaces.
    """

    signal: float = 50_000.0
    signal_near_m: float = 10.0
    signal_floor: float = 6.0
    near_ir_floor: float = 300.0
    near_ir_sky: float = 500.0
    near_ir_sun: float = 1500.0
    near_ir_noise: float = 1.1

    def __post_init__(self) -> None:
        most = {"signal": 1e9, "signal_near_m": 1000.0, "signal_floor": 1e4, "near_ir_noise": 100.0}
        names = ("signal", "signal_near_m", "signal_floor", "near_ir_floor", "near_ir_sky", "near_ir_sun", "near_ir_noise")
        limits = ((name, most.get(name, 65_535.0)) for name in names)
        require(*((0.0 <= getattr(self, name) <= limit, f"{name} must be 0 to {limit:g}, got {getattr(self, name)}") for name, limit in limits))


@dataclass(frozen=True, kw_only=True)
class OusterSpec(LidarSpec):
    """Specification of an Ouster.

    Attributes:
        family: Packet format, always ``ouster``.
        prod_line: Product line and beams in its metadata, as ``OS-1-128``.
        beams: Beams: every one, every second or every fourth of 128, from the top one on.
        array: All 128 beams.
        stamp_jitter_us: Standard deviation of the columns' times about even ones: the encoder triggers them.
        photons: Counts of photons.
        units: Differences between units of the model; the other keys describe an ideal one.
    """

    family: Literal["ouster"]
    prod_line: str
    beams: int
    array: BeamArraySpec
    stamp_jitter_us: float = 0.0
    photons: PhotonSpec = field(default_factory=PhotonSpec)
    units: UnitSpread = field(default_factory=UnitSpread)

    @property
    def laser_count(self) -> int:
        """Number of beams."""
        return self.beams

    @property
    def range_code_max(self) -> int:
        """Largest distance that packets can represent; profiles of 15 bits send none above 262,136 mm."""
        return (1 << 19) - 1

    @property
    def firing_delays_ns(self) -> tuple[int, ...]:
        """All beams fire at once."""
        return (0,) * self.beams

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield self.beams in (32, 64, 128), f"beams must be 32, 64 or 128, got {self.beams}"
        yield from super().rules()
        yield self.range_unit_mm == 1.0, f"range_unit_mm must be 1, got {self.range_unit_mm}"
        yield self.lasers_per_firing == 1, f"lasers_per_firing must not be given: all beams of an Ouster fire at once, got {self.lasers_per_firing}"
        yield from within(self, stamp_jitter_us=(0, 100))
        is_line = self.prod_line[:5] in {"OS-0-", "OS-1-", "OS-2-"} and len(self.prod_line) <= 32
        yield is_line, f'prod_line must begin with "OS-0-", "OS-1-" or "OS-2-", got "{self.prod_line[:40]}"'

    @property
    def elevation_deg(self) -> tuple[float, ...]:
        """``beam_altitude_angles``."""
        return tuple(sum(c * x**power for power, c in enumerate(self.array.elevation_deg)) for x in self._places())

    @property
    def azimuth_deg(self) -> tuple[float, ...]:
        """``beam_azimuth_angles``."""
        groups, step = self.array.azimuth_deg, 128 // self.beams
        rows = (groups[row * step % 4] for row in range(self.beams))
        return tuple(sum(c * x ** (2 * power) for power, c in enumerate(row)) for row, x in zip(rows, self._places(), strict=True))

    @property
    def geometry(self) -> Beams:
        """Beams and their transforms, as metadata give them."""
        return Beams(
            elevation_deg=self.elevation_deg,
            azimuth_deg=self.azimuth_deg,
            beam_to_lidar=offset_transform(self.array.origin_mm, 0.0, 0.0),
            lidar_to_sensor=offset_transform(0.0, 0.0, self.array.height_mm, is_reversed=True),
        )

    def _places(self) -> list[float]:
        return [1.0 - 2.0 * (row * (128 // self.beams)) / 127.0 for row in range(self.beams)]
