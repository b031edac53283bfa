"""Metadata of a sensor read from JSON: the seven groups, or the flat form that older clients wrote.

In the flat form the keys of all groups lie at the top, but those of ``lidar_data_format``, which is named ``data_format``; a file of a client of before
firmware 2.0 has not even that. All faults are reported at once. What must be there is what ouster-sdk 1.0.1 refuses a file without; what else is missing
gets the default that is stated here.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from hilsim.errors import PacketError
from hilsim.families.ouster.protocol.firmware import Firmware, find_firmware, pixel_shifts
from hilsim.families.ouster.protocol.geometry import Beams, Transform, offset_transform
from hilsim.families.ouster.protocol.imu import LEGACY_IMU
from hilsim.families.ouster.protocol.metadata import FACT_SETTINGS, GROUPS, LIDAR_MODES, SensorMetadata, mode_numbers
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, PROFILES, HeaderKind

_FLAT_SETTINGS = ("udp_port_imu", "udp_port_lidar", "udp_dest", "udp_ip", "timestamp_mode", "azimuth_window", "signal_multiplier")
_ORIGINS_MM = {"OS-0": 27.67, "OS-1": 15.806, "OS-2": 13.762}
_OTHER_ORIGIN_MM = 12.163
"""Distance of the beams' origin from the axis where a file has none, by product line (defaults of ouster-sdk)."""
_IMU_MM, _LIDAR_MM = (6.253, -11.775, 7.645), (0.0, 0.0, 36.18)
"""Offsets of Rev 6, where a file has none."""
_LARGEST = 1e9
"""Bound of all numbers, which NaN and infinity do not keep."""
_SHORT = 60

# Stand in for what is wrong, so that the rules on everything else are judged too.
_SOME_BEAMS = Beams(
    elevation_deg=(0.0,), azimuth_deg=(0.0,), beam_to_lidar=offset_transform(0.0, 0.0, 0.0), lidar_to_sensor=offset_transform(0.0, 0.0, 0.0)
)
_SOME_MODE = "4096x5"
_OLD_IMAGE = "v1.13.0"
"""Image of a file without one: clients of that time wrote only the beams, or a part of the configuration."""
_SOME_IMAGE, _SOME_FIRMWARE = "v2.5.0", Firmware(2, 5)

Check = Callable[[Any], bool]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _list_of(check: Check, count: int | None = None) -> Check:
    def holds(value: Any) -> bool:
        return isinstance(value, list) and (count is None or len(value) == count) and all(map(check, value))

    return holds


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


class UnknownProfileError(PacketError):
    """Metadata of a lidar profile that is not described here."""


class _Reader:
    """Values by group and key, and the faults that were found."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.faults: list[str] = []
        present = [group for group in GROUPS if group in document]
        self.is_flat = not present
        if present:
            self.faults += [f"{group} must be there, as {present[0]} is" for group in GROUPS if group not in document]
        groups = (*present, *(name for name in ("imu_data_format", "data_format") if name in document))
        self.faults += [f"{name} must be an object, got {_shown(document[name])}" for name in groups if not _is_object(document[name])]

    def group(self, name: str) -> tuple[Mapping[str, Any], str]:
        """A group, and what precedes the names of its keys; an empty one where it is missing or no object."""
        place = "data_format" if name == "lidar_data_format" and self.is_flat else name
        if self.is_flat and place != "data_format":
            return self.document, ""
        found = self.document.get(place, {})
        return (found if _is_object(found) else {}), f"{place}."

    def take(self, group: str, key: str, check: Check, rule: str, default: Any = None) -> Any:
        """A value; a fault where it is wrong, or where it is missing and there is no default."""
        values, before = self.group(group)
        value = values.get(key, default)
        if value is None:
            self.faults.append(f"{before}{key} must be {rule}, got nothing")
            value = default
        elif not check(value):
            self.faults.append(f"{before}{key} must be {rule}, got {_shown(value)}")
            value = default
        return value

    def text(self, group: str, key: str, default: str | None = "") -> Any:
        """A text."""
        return self.take(group, key, _is_text, "a text", default)

    def matrix(self, group: str, key: str, default: Transform) -> Transform:
        """A transform of 16 numbers."""
        return tuple(map(float, self.take(group, key, _list_of(_is_number, 16), "16 numbers", list(default))))

    def mapping(self, name: str) -> dict[str, Any]:
        """A group as it is, empty if it is missing or no object."""
        found = self.document.get(name, {})
        return dict(found) if _is_object(found) else {}


def _parsed(text: str | bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PacketError(f"Ouster metadata must be JSON, got {text[:_SHORT]!r}: {error}") from error
    if not isinstance(document, dict):
        raise PacketError(f"Ouster metadata must be an object, got {_shown(document)}")
    return document


def _angles(reader: _Reader, key: str, channels: int | None) -> list[float]:
    rule = "a list of numbers" if channels is None else f"{channels} numbers"
    return list(reader.take("beam_intrinsics", key, _list_of(_is_number, channels), rule) or ())


def _beams(reader: _Reader, prod_line: str) -> Beams:
    """Beams and their transforms."""
    channels = reader.group("lidar_data_format")[0].get("pixels_per_column")
    if channels is not None:
        channels = reader.take("lidar_data_format", "pixels_per_column", lambda value: _is_integer(value) and value > 0, "a number above 0")
    elevation = _angles(reader, "beam_altitude_angles", channels)
    azimuth = _angles(reader, "beam_azimuth_angles", channels or len(elevation) or None)
    origin = reader.take(
        "beam_intrinsics",
        "lidar_origin_to_beam_origin_mm",
        lambda value: _is_number(value) and value >= 0,
        "a number of at least 0",
        _ORIGINS_MM.get(prod_line[:4], _OTHER_ORIGIN_MM),
    )
    beam_to_lidar = reader.matrix("beam_intrinsics", "beam_to_lidar_transform", offset_transform(float(origin), 0.0, 0.0))
    lidar_to_sensor = reader.matrix("lidar_intrinsics", "lidar_to_sensor_transform", offset_transform(*_LIDAR_MM, is_reversed=True))
    if not elevation or len(azimuth) != len(elevation):
        return _SOME_BEAMS
    return Beams(
        elevation_deg=tuple(map(float, elevation)),
        azimuth_deg=tuple(map(float, azimuth)),
        beam_to_lidar=beam_to_lidar,
        lidar_to_sensor=lidar_to_sensor,
    )


def _lidar_mode(reader: _Reader) -> str:
    """Lidar mode by its name, or by the columns alone."""
    columns = reader.group("lidar_data_format")[0].get("columns_per_frame")
    named = reader.group("config_params")[0].get("lidar_mode")
    by_columns = next((mode for mode in LIDAR_MODES if mode_numbers(mode)[0] == columns), None) if _is_integer(columns) else None
    mode = reader.take("config_params", "lidar_mode", lambda value: value in LIDAR_MODES, f"one of {', '.join(LIDAR_MODES)}", named or by_columns)
    if mode not in LIDAR_MODES:
        return _SOME_MODE
    if columns is not None and columns != mode_numbers(mode)[0]:
        before = reader.group("lidar_data_format")[1]
        reader.faults.append(f"{before}columns_per_frame must be {mode_numbers(mode)[0]} as in lidar_mode, got {_shown(columns)}")
    return str(mode)


def _firmware(reader: _Reader) -> tuple[str, Firmware]:
    """Name of the image, and its version; that of ``build_rev`` if the file has no image."""
    image = reader.text("sensor_info", "image_rev") or reader.text("sensor_info", "build_rev") or _OLD_IMAGE
    try:
        return str(image), find_firmware(str(image))
    except ValueError as error:
        reader.faults.append(f"{reader.group('sensor_info')[1]}{error}")
        return _SOME_IMAGE, _SOME_FIRMWARE


def _settings(reader: _Reader) -> dict[str, Any]:
    keys, _ = reader.group("config_params")
    names = [key for key in keys if (key in _FLAT_SETTINGS if reader.is_flat else key not in FACT_SETTINGS)]
    return {name: keys[name] for name in names}


def _header(reader: _Reader, lidar_profile: str) -> HeaderKind | None:
    """Packet header, if the file names another than the profile's; what LEGACY has is written as STANDARD."""
    profile = PROFILES.get(lidar_profile)
    own = "FUSA" if profile is not None and profile.header is HeaderKind.FUSA else "STANDARD"
    named = reader.take("lidar_data_format", "header_type", lambda value: value in ("STANDARD", "FUSA"), "STANDARD or FUSA", own)
    return None if named == own else HeaderKind[named]


def _user_data(reader: _Reader) -> str | None:
    data = reader.document.get("user_data")
    if data is not None and not _is_text(data):
        reader.faults.append(f"user_data must be a text, got {_shown(data)}")
    return data if _is_text(data) else None


def _taken(reader: _Reader) -> dict[str, Any]:
    """Arguments of ``SensorMetadata``, with some values for those that are wrong."""
    prod_line = reader.text("sensor_info", "prod_line")
    image_rev, firmware = _firmware(reader)
    lidar_mode, beams = _lidar_mode(reader), _beams(reader, str(prod_line or ""))
    lidar_profile = reader.text("lidar_data_format", "udp_profile_lidar", "LEGACY")
    reader.take("lidar_data_format", "columns_per_packet", lambda value: value == COLUMNS_PER_PACKET, str(COLUMNS_PER_PACKET), COLUMNS_PER_PACKET)
    columns = mode_numbers(lidar_mode)[0]
    window = reader.take("lidar_data_format", "column_window", _list_of(_is_integer, 2), "two integers", [0, columns - 1])
    shifts = pixel_shifts(beams.azimuth_deg, columns, firmware, str(prod_line))
    if beams is not _SOME_BEAMS:
        shifts = reader.take("lidar_data_format", "pixel_shift_by_row", _list_of(_is_integer, len(shifts)), f"{len(shifts)} integers", list(shifts))
    reflectivity = reader.mapping("calibration_status").get("reflectivity", {})
    return {
        "prod_line": prod_line,
        "serial": reader.text("sensor_info", "prod_sn", "0"),
        "image_rev": image_rev,
        "initialization_id": reader.take("sensor_info", "initialization_id", _is_integer, "an integer", 0),
        "beams": beams,
        "imu_to_sensor": reader.matrix("imu_intrinsics", "imu_to_sensor_transform", offset_transform(*_IMU_MM)),
        "lidar_mode": lidar_mode,
        "lidar_profile": lidar_profile,
        "pixel_shift_by_row": tuple(shifts),
        "settings": _settings(reader),
        "header": _header(reader, str(lidar_profile)),
        "imu_profile": reader.text("lidar_data_format", "udp_profile_imu", LEGACY_IMU),
        "column_window": None if window == [0, columns - 1] else tuple(window),
        "prod_pn": reader.text("sensor_info", "prod_pn"),
        "build_rev": reader.text("sensor_info", "build_rev"),
        "build_date": reader.text("sensor_info", "build_date"),
        "status": reader.text("sensor_info", "status"),
        "reflectivity": reflectivity if _is_object(reflectivity) else {},
        "imu_data_format": reader.mapping("imu_data_format") if "imu_data_format" in reader.document else None,
        "user_data": _user_data(reader),
    }


def read_metadata(text: str | bytes) -> SensorMetadata:
    """Read a sensor's metadata.

    Args:
        text: JSON, or its bytes in UTF-8.

    Raises:
        PacketError: it is no metadata that packets can be read by; the text names every fault with its key.
    """
    reader = _Reader(_parsed(text))
    taken = _taken(reader)
    try:
        sensor = SensorMetadata(**taken)
    except ValueError as error:
        kind = PacketError if taken["lidar_profile"] in PROFILES else UnknownProfileError
        raise kind(f"Ouster metadata: {'; '.join([*reader.faults, str(error)])}") from error
    if reader.faults:
        raise PacketError(f"Ouster metadata: {'; '.join(reader.faults)}")
    return sensor
