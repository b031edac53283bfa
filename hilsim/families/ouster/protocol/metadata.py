"""Metadata that a sensor gives of itself in JSON: seven groups, as ``GET /api/v1/sensor/metadata`` gives them and files beside captures have them.

Keys by firmware, as seen in files of 2.5, 3.1 and 3.2: ``return_order``, ``min_range_threshold_cm``, ``accel_fsr`` and ``gyro_fsr`` since 3.1; ``fps``,
``header_type`` and the settings of frames and multicast since 3.2. A key has the type that the sensor gives it: clients compare whole settings.

Source: ouster-sdk 1.0.1 (ouster_core/src/metadata.cpp, sensor_config.cpp), which accepts these documents, and public files of units.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hilsim.errors import require
from hilsim.families.ouster.protocol.firmware import CALIBRATED, NEWEST, Firmware, Footer, find_firmware, footer_of
from hilsim.families.ouster.protocol.geometry import Beams, Transform
from hilsim.families.ouster.protocol.imu import ACCEL_GYRO_NMEA, LEGACY_IMU
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, EARLY_LEGACY, PROFILES, HeaderKind, Profile

GROUPS = (
    "sensor_info",
    "beam_intrinsics",
    "imu_intrinsics",
    "lidar_intrinsics",
    "config_params",
    "lidar_data_format",
    "calibration_status",
)
LIDAR_MODES = ("512x10", "512x20", "1024x10", "1024x20", "2048x10", "4096x5")
"""Columns a turn and turns a second; the last one of some OS1 and OS2."""
_MAX_COLUMNS = 4096
SIGNAL_MULTIPLIERS = (0.25, 0.5, 1, 2, 3)
FACT_SETTINGS = ("lidar_mode", "udp_profile_lidar", "udp_profile_imu", "columns_per_packet", "header_type")
"""Keys of ``config_params`` that follow from a ``SensorMetadata``."""
_DIGITS = re.compile(r"[0-9]{1,13}")
_V3_1, _V3_2 = Firmware(3, 1), Firmware(3, 2)

_SETTINGS = {
    "multipurpose_io_mode": "OFF",
    "nmea_baud_rate": "BAUD_9600",
    "nmea_ignore_valid_char": 0,
    "nmea_in_polarity": "ACTIVE_HIGH",
    "nmea_leap_seconds": 0,
    "operating_mode": "NORMAL",
    "phase_lock_enable": False,
    "phase_lock_offset": 0,
    "signal_multiplier": 1,
    "sync_pulse_in_polarity": "ACTIVE_HIGH",
    "sync_pulse_out_angle": 360,
    "sync_pulse_out_frequency": 1,
    "sync_pulse_out_polarity": "ACTIVE_HIGH",
    "sync_pulse_out_pulse_width": 10,
    "timestamp_mode": "TIME_FROM_INTERNAL_OSC",
    "udp_port_imu": 7503,
    "udp_port_lidar": 7502,
}
_SETTINGS_3_1 = {"accel_fsr": "NORMAL", "gyro_fsr": "NORMAL", "min_range_threshold_cm": 50, "return_order": "STRONGEST_TO_WEAKEST"}
_SETTINGS_3_2 = {
    "bloom_reduction_optimization": "BALANCED",
    "imu_packets_per_frame": 8,
    "lidar_frame_azimuth_offset": 0,
    "udp_dest_zm": "",
    "udp_multicast_ttl": 1,
    "udp_multicast_ttl_zm": 1,
    "udp_port_zm": 7504,
}


def default_settings(firmware: Firmware, udp_dest: str) -> dict[str, Any]:
    """Settings of a sensor as it comes, but those of ``FACT_SETTINGS``.

    Args:
        firmware: Version, by which there are more or fewer.
        udp_dest: Address that packets go to; an empty one switches the streams off, and clients then know no profile.
    """
    newer = (_SETTINGS_3_1 if firmware >= _V3_1 else {}) | (_SETTINGS_3_2 if firmware >= _V3_2 else {})
    return _SETTINGS | {"azimuth_window": [0, 360000], "udp_dest": udp_dest} | newer


def mode_numbers(lidar_mode: str) -> tuple[int, int]:
    """Columns a turn and turns a second of one of ``LIDAR_MODES``."""
    columns, _, rate = lidar_mode.partition("x")
    return int(columns), int(rate)


@dataclass(frozen=True, kw_only=True)
class SensorMetadata:
    """Facts of one sensor, and its settings.

    Attributes:
        prod_line: Product line and beams, as ``OS-1-128``.
        serial: ``prod_sn``, up to 13 digits that fit into 40 bits.
        image_rev: Name of the firmware's image, with its version.
        initialization_id: Number of the initialisation, 24 bits, that packets repeat.
        beams: Beams and their transforms.
        imu_to_sensor: ``imu_to_sensor_transform``.
        lidar_mode: One of ``LIDAR_MODES``.
        lidar_profile: A name of ``PROFILES``.
        pixel_shift_by_row: Columns by which each row of a picture is rotated, as ``firmware.pixel_shifts`` gives them.
        settings: ``config_params`` but for ``FACT_SETTINGS``.
        header: Packet header, if it is not the profile's.
        imu_profile: ``udp_profile_imu``.
        column_window: First and last measurement id that is sent, which may wrap; None: the whole turn, which the document has as 0 to the last.
        prod_pn: Part number.
        build_rev: Version as the build names it.
        build_date: Time of the build.
        status: State of the sensor.
        reflectivity: ``calibration_status.reflectivity``.
        imu_data_format: Group of that name; None: there is none.
        user_data: Text that the user left on the sensor; None: the document has none.
    """

    prod_line: str
    serial: str
    image_rev: str
    initialization_id: int
    beams: Beams
    imu_to_sensor: Transform
    lidar_mode: str
    lidar_profile: str
    pixel_shift_by_row: tuple[int, ...]
    settings: Mapping[str, Any]
    header: HeaderKind | None = None
    imu_profile: str = LEGACY_IMU
    column_window: tuple[int, int] | None = None
    prod_pn: str = ""
    build_rev: str = ""
    build_date: str = ""
    status: str = "RUNNING"
    reflectivity: Mapping[str, Any] = field(default_factory=lambda: {"valid": True, "timestamp": "2024-01-01T00:00:00"})
    imu_data_format: Mapping[str, Any] | None = None
    user_data: str | None = None

    def __post_init__(self) -> None:
        require(*_identity_rules(self), *_format_rules(self))

    @property
    def firmware(self) -> Firmware:
        """Version of the firmware."""
        return find_firmware(self.image_rev)

    @property
    def profile(self) -> Profile:
        """Lidar profile, with the sensor's packet header."""
        profile = PROFILES[self.lidar_profile]
        if profile.header is HeaderKind.NONE and self.firmware < CALIBRATED:
            return EARLY_LEGACY
        return profile if self.header is None else profile.with_header(self.header)

    @property
    def footer(self) -> Footer:
        """Footer of its packets."""
        return footer_of(self.firmware, self.profile.header)

    @property
    def columns_per_frame(self) -> int:
        """Columns a turn."""
        return mode_numbers(self.lidar_mode)[0]

    @property
    def rate_hz(self) -> int:
        """Turns a second."""
        return mode_numbers(self.lidar_mode)[1]

    @property
    def window(self) -> tuple[int, int]:
        """First and last measurement id that is sent."""
        return (0, self.columns_per_frame - 1) if self.column_window is None else self.column_window


def _identity_rules(sensor: SensorMetadata) -> list[tuple[bool, str]]:
    serial = sensor.serial
    is_number = _DIGITS.fullmatch(serial) is not None and int(serial) < 1 << 40
    try:
        firmware = find_firmware(sensor.image_rev)
        fault = "" if firmware < NEWEST else f"image_rev must be of a firmware before {NEWEST}, got {firmware}"
    except ValueError as error:
        fault = str(error)
    return [
        (is_number, f"prod_sn must be digits of a number below 2^40, got {serial!r}"),
        (0 <= sensor.initialization_id < 1 << 24, f"initialization_id must be 0 to 16777215, got {sensor.initialization_id}"),
        (not fault, fault),
    ]


def _format_rules(sensor: SensorMetadata) -> list[tuple[bool, str]]:
    beams, shifts = sensor.beams.channels, len(sensor.pixel_shift_by_row)
    is_mode = sensor.lidar_mode in LIDAR_MODES
    columns = sensor.columns_per_frame if is_mode else _MAX_COLUMNS
    window = sensor.column_window or (0, 0)
    multiplier = sensor.settings.get("signal_multiplier", 1)
    return [
        (is_mode, f"lidar_mode must be one of {', '.join(LIDAR_MODES)}, got {sensor.lidar_mode}"),
        (all(0 <= column < columns for column in window), f"column_window must be within 0 to {columns - 1}, got {list(window)}"),
        (sensor.lidar_profile in PROFILES, f"udp_profile_lidar must be one of {', '.join(PROFILES)}, got {sensor.lidar_profile}"),
        (sensor.imu_profile in {LEGACY_IMU, ACCEL_GYRO_NMEA}, f"udp_profile_imu must be {LEGACY_IMU} or {ACCEL_GYRO_NMEA}, got {sensor.imu_profile}"),
        (
            sensor.lidar_profile != "LEGACY" or (sensor.header is None and sensor.imu_profile == LEGACY_IMU),
            f"udp_profile_imu and header_type must be LEGACY and STANDARD beside the lidar profile LEGACY, got {sensor.imu_profile}, {sensor.header and sensor.header.name}",
        ),
        (sensor.header is not HeaderKind.NONE, "header must be STANDARD or FUSA, got NONE"),
        (shifts == beams, f"pixel_shift_by_row must have {beams} numbers, got {shifts}"),
        (len(sensor.imu_to_sensor) == 16, f"imu_to_sensor_transform must have 16 numbers, got {len(sensor.imu_to_sensor)}"),
        (multiplier in SIGNAL_MULTIPLIERS, f"signal_multiplier must be 0.25, 0.5, 1, 2 or 3, got {multiplier}"),
    ]


def metadata_document(sensor: SensorMetadata) -> dict[str, Any]:
    """The document for JSON: seven groups, and ``imu_data_format`` and ``user_data`` where there are any."""
    is_3_2 = sensor.firmware >= _V3_2
    profiles = {"udp_profile_imu": sensor.imu_profile, "udp_profile_lidar": sensor.lidar_profile}
    header = {"header_type": "FUSA" if sensor.profile.header is HeaderKind.FUSA else "STANDARD"} if is_3_2 else {}
    document: dict[str, Any] = {
        "sensor_info": {
            "build_date": sensor.build_date,
            "build_rev": sensor.build_rev,
            "image_rev": sensor.image_rev,
            "initialization_id": sensor.initialization_id,
            "prod_line": sensor.prod_line,
            "prod_pn": sensor.prod_pn,
            "prod_sn": sensor.serial,
            "status": sensor.status,
        },
        "beam_intrinsics": {
            "beam_altitude_angles": list(sensor.beams.elevation_deg),
            "beam_azimuth_angles": list(sensor.beams.azimuth_deg),
            "beam_to_lidar_transform": list(sensor.beams.beam_to_lidar),
            "lidar_origin_to_beam_origin_mm": sensor.beams.origin_mm,
        },
        "imu_intrinsics": {"imu_to_sensor_transform": list(sensor.imu_to_sensor)},
        "lidar_intrinsics": {"lidar_to_sensor_transform": list(sensor.beams.lidar_to_sensor)},
        "config_params": {**sensor.settings, **profiles, "columns_per_packet": COLUMNS_PER_PACKET, "lidar_mode": sensor.lidar_mode, **header},
        "lidar_data_format": {
            "column_window": list(sensor.window),
            "columns_per_frame": sensor.columns_per_frame,
            "columns_per_packet": COLUMNS_PER_PACKET,
            "pixel_shift_by_row": list(sensor.pixel_shift_by_row),
            "pixels_per_column": sensor.beams.channels,
            **profiles,
            **header,
            **({"fps": sensor.rate_hz} if is_3_2 else {}),
        },
        "calibration_status": {"reflectivity": dict(sensor.reflectivity)},
    }
    if sensor.imu_data_format is not None:
        document["imu_data_format"] = dict(sensor.imu_data_format)
    if sensor.user_data is not None:
        document["user_data"] = sensor.user_data
    return document
