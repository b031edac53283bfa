"""Settings and identity of an Ouster, as its control interface has them."""

from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require
from hilsim.families.ouster.interface.settings import column_window, window_rule
from hilsim.families.ouster.protocol.firmware import NEWEST, Firmware, find_firmware, footer_of
from hilsim.families.ouster.protocol.imu import LEGACY_IMU
from hilsim.families.ouster.protocol.lidar import LidarLayout, lidar_layout
from hilsim.families.ouster.protocol.metadata import LIDAR_MODES, SIGNAL_MULTIPLIERS, mode_numbers
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, PROFILES, Profile
from hilsim.units import NS_PER_S

TimestampMode = Literal["TIME_FROM_INTERNAL_OSC", "TIME_FROM_SYNC_PULSE_IN", "TIME_FROM_PTP_1588"]
ReturnOrder = Literal["STRONGEST_TO_WEAKEST", "NEAREST_TO_FARTHEST", "FARTHEST_TO_NEAREST"]
TURN_MDEG = 360_000
COLUMN_PPB = -2560
"""Gain of device time over the sensor's true columns: a column of 97,656.25 ns takes 97,656 ns of device time, and likewise in all modes, exactly."""
_MAX_ID = 1 << 24


@dataclass(frozen=True, kw_only=True)
class OusterSetting:
    """Settings and identity of an Ouster, as its control interface has them.

    Attributes:
        lidar_mode: Columns a turn and turns a second, as ``1024x10``.
        udp_profile_lidar: Lidar profile: what its packets contain.
        udp_profile_imu: IMU profile.
        azimuth_window_mdeg: First and last angle of the lidar frame that is sent, counter-clockwise, in thousandths of a degree; 0 and 360000: the whole turn.
        signal_multiplier: Factor of the laser's power: 0.25, 0.5, 1, 2 (with a window of at most 180 degrees) or 3 (120 degrees).
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
            window_rule("azimuth_window_mdeg", self.azimuth_window_mdeg, self.signal_multiplier),
            (self.min_range_threshold_cm in {0, 30, 50}, f"min_range_threshold_cm must be 0, 30 or 50, got {self.min_range_threshold_cm}"),
            _firmware_rule(self.firmware),
            (self.serial is None or 0 < self.serial < 10**12, f"serial must be 1 to 999999999999, got {self.serial}"),
            (
                self.initialization_id is None or 0 < self.initialization_id < _MAX_ID,
                f"initialization_id must be 1 to {_MAX_ID - 1}, got {self.initialization_id}",
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


def _firmware_rule(text: str) -> tuple[bool, str]:
    message = f'firmware must be a version of 2.2.0 to 3.2.x, got "{text[:40]}"'
    try:
        version = find_firmware(f"v{text}")
    except ValueError:
        return False, message
    return Firmware(2, 2) <= version < NEWEST, message


SETTING = OusterSetting
CHANGES_LIVE = True
