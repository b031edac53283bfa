"""Specification of Ouster lidars: an array of beams that all fire at once when the head reaches a column, and the settings of their control interface."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from hilsim.errors import require
from hilsim.protocols.ouster.firmware import NEWEST, Firmware, find_firmware, footer_of, pixel_shifts
from hilsim.protocols.ouster.geometry import MM_PER_M, Beams, offset_transform
from hilsim.protocols.ouster.imu import LEGACY_IMU
from hilsim.protocols.ouster.interface.settings import column_window
from hilsim.protocols.ouster.lidar import LidarLayout, lidar_layout
from hilsim.protocols.ouster.metadata import LIDAR_MODES, SIGNAL_MULTIPLIERS, mode_numbers
from hilsim.protocols.ouster.profiles import COLUMNS_PER_PACKET, PROFILES, Profile
from hilsim.sensor.specs import LidarSpec
from hilsim.sensor.unit.spread import UnitSpread
from hilsim.units import NS_PER_S

TimestampMode = Literal["TIME_FROM_INTERNAL_OSC", "TIME_FROM_SYNC_PULSE_IN", "TIME_FROM_PTP_1588"]
ReturnOrder = Literal["STRONGEST_TO_WEAKEST", "NEAREST_TO_FARTHEST", "FARTHEST_TO_NEAREST"]
TURN_MDEG = 360_000
COLUMN_PPB = -2560
"""Gain of device time over the sensor's true columns: a column of 97,656.25 ns takes 97,656 ns of device time, and likewise in all modes, exactly."""
_MOST_ID, _MOST_SERIAL = 1 << 24, 1 << 40


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
            (0.0 <= self.origin_mm <= 100.0, f"origin_mm must be 0 to 100, got {self.origin_mm}"),
            (0.0 <= self.height_mm <= 500.0, f"height_mm must be 0 to 500, got {self.height_mm}"),
        )


@dataclass(frozen=True, kw_only=True)
class PhotonSpec:
    """Counts of photons that pixels report.

    Attributes:
        signal: Signal photons of a white diffuse target, times the square of its range in metres, far away.
        signal_near_m: Range at which half of the far target's signal is left, because near targets are out of focus.
        signal_floor: Mean signal of a pixel without a return.
        near_ir_floor: Near-infrared count in darkness.
        near_ir_sky: Count beyond that of the sky, and of a white diffuse surface that sees half of it.
        near_ir_sun: Count beyond that of a white diffuse surface that the sun shines on vertically.
        near_ir_noise: Standard deviation of near infrared relative to the square root of the count.
    """

    signal: float = 50_000.0
    signal_near_m: float = 10.0
    signal_floor: float = 6.0
    near_ir_floor: float = 300.0
    near_ir_sky: float = 500.0
    near_ir_sun: float = 1500.0
    near_ir_noise: float = 1.5

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
        yield 0.0 <= self.stamp_jitter_us <= 100.0, f"stamp_jitter_us must be 0 to 100, got {self.stamp_jitter_us}"
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


@dataclass(frozen=True, kw_only=True)
class OusterSetting:
    """Settings and identity of an Ouster, as its control interface has them.

    Attributes:
        lidar_mode: Columns a turn and turns a second, as ``1024x10``.
        udp_profile_lidar: Lidar profile: what its packets contain.
        udp_profile_imu: IMU profile.
        azimuth_window_mdeg: First and last angle of the lidar frame that is sent, counter-clockwise, in thousandths of a degree; 0 and 360000: the whole turn.
        signal_multiplier: Factor of the laser's power: 0.25, 0.5, 1, 2 or 3.
        timestamp_mode: Source of the packets' time.
        return_order: Order of the two returns of a dual profile.
        min_range_threshold_cm: Smallest range that is reported: 0, 30 or 50.
        operating_mode: ``STANDBY``: it sends nothing.
        firmware: Version of its firmware, 2.2.0 to 3.2.x.
        serial: Serial number; None: one made of the sensor's number.
        initialization_id: Number of its initialisation, 1 to 16777215; None: one made of the sensor's number.
        first_frame: Number of its first turn.
    """

    lidar_mode: str = "1024x10"
    udp_profile_lidar: str = "RNG19_RFL8_SIG16_NIR16"
    udp_profile_imu: str = LEGACY_IMU
    azimuth_window_mdeg: tuple[int, int] = (0, TURN_MDEG)
    signal_multiplier: float = 1
    timestamp_mode: TimestampMode = "TIME_FROM_INTERNAL_OSC"
    return_order: ReturnOrder = "STRONGEST_TO_WEAKEST"
    min_range_threshold_cm: int = 50
    operating_mode: Literal["NORMAL", "STANDBY"] = "NORMAL"
    firmware: str = "3.1.0"
    serial: int | None = None
    initialization_id: int | None = None
    first_frame: int = 0

    def __post_init__(self) -> None:
        first, last = self.azimuth_window_mdeg
        require(
            (self.lidar_mode in LIDAR_MODES, f'lidar_mode must be one of {", ".join(LIDAR_MODES)}, got "{self.lidar_mode[:40]}"'),
            (
                self.udp_profile_lidar in PROFILES,
                f'udp_profile_lidar must be one of {", ".join(PROFILES)}, got "{self.udp_profile_lidar[:60]}"',
            ),
            (
                self.udp_profile_imu == LEGACY_IMU,
                f'udp_profile_imu must be "{LEGACY_IMU}", the one that is emulated, got "{self.udp_profile_imu[:60]}"',
            ),
            (
                0 <= first < TURN_MDEG and 0 < last <= TURN_MDEG and first != last,
                f"azimuth_window_mdeg must be two different angles of 0 to {TURN_MDEG}, got {list(self.azimuth_window_mdeg)}",
            ),
            (self.signal_multiplier in SIGNAL_MULTIPLIERS, f"signal_multiplier must be 0.25, 0.5, 1, 2 or 3, got {self.signal_multiplier}"),
            (self.min_range_threshold_cm in {0, 30, 50}, f"min_range_threshold_cm must be 0, 30 or 50, got {self.min_range_threshold_cm}"),
            _firmware_rule(self.firmware),
            (self.serial is None or 0 < self.serial < 10**12, f"serial must be 1 to 999999999999, got {self.serial}"),
            (
                self.initialization_id is None or 0 < self.initialization_id < _MOST_ID,
                f"initialization_id must be 1 to {_MOST_ID - 1}, got {self.initialization_id}",
            ),
            (0 <= self.first_frame < 1 << 32, f"first_frame must be 0 to {(1 << 32) - 1}, got {self.first_frame}"),
        )

    @property
    def columns_per_frame(self) -> int:
        """Columns of a turn."""
        return mode_numbers(self.lidar_mode)[0]

    @property
    def rate_hz(self) -> int:
        """Turns a second."""
        return mode_numbers(self.lidar_mode)[1]

    @property
    def column_ns(self) -> int:
        """Device time from column to column."""
        return NS_PER_S // (self.columns_per_frame * self.rate_hz)

    @property
    def profile(self) -> Profile:
        """Lidar profile."""
        return PROFILES[self.udp_profile_lidar]

    @property
    def version(self) -> Firmware:
        """Version of the firmware."""
        return find_firmware(f"v{self.firmware}")

    @property
    def has_whole_turn(self) -> bool:
        """Whether no column is left out."""
        first, last = self.azimuth_window_mdeg
        return last - first == TURN_MDEG

    @property
    def column_window(self) -> tuple[int, int]:
        """``lidar_data_format.column_window``: first and last column that is valid, which may wrap: columns count clockwise, and angles do not."""
        return column_window(self.azimuth_window_mdeg, self.columns_per_frame)

    @property
    def sent_packets(self) -> tuple[int, ...]:
        """Numbers, within a turn, of the packets that are sent: those with a column inside the window."""
        first, last = (column // COLUMNS_PER_PACKET for column in self.column_window)
        numbers = range(self.columns_per_frame // COLUMNS_PER_PACKET)
        is_wrapped = self.column_window[0] > self.column_window[1]
        return tuple(number for number in numbers if ((number >= first or number <= last) if is_wrapped else first <= number <= last))

    def layout(self, beams: int) -> LidarLayout:
        """Layout of its lidar packets.

        Args:
            beams: Beams of the sensor.

        Raises:
            ValueError: a packet does not fit into a datagram.
        """
        return lidar_layout(self.profile, beams, footer_of(self.version, self.profile.header))

    def pixel_shifts(self, spec: OusterSpec) -> tuple[int, ...]:
        """``pixel_shift_by_row``."""
        return pixel_shifts(spec.azimuth_deg, self.columns_per_frame, self.version, spec.prod_line)


def _firmware_rule(text: str) -> tuple[bool, str]:
    message = f'firmware must be a version of 2.2.0 to 3.2.x, got "{text[:40]}"'
    try:
        version = find_firmware(f"v{text}")
    except ValueError:
        return False, message
    return Firmware(2, 2) <= version < NEWEST, message


def range_offset_m(spec: OusterSpec) -> float:
    """Part of each reported range before the beam's origin."""
    return math.fabs(spec.array.origin_mm) / MM_PER_M
