"""Settings of a sensor (``config_params``): one table of keys, their values, the firmware that has them, and the rules between them.

A request is judged whole: every fault is named, and nothing is taken if there is one. Values keep the type that they were sent with, because clients compare
whole settings. Values are judged as they are staged, and how they go together as they become active.

Sources: ouster-sdk 1.0.1 (ouster_core/src/sensor_config.cpp); Ouster's firmware user manual, "POST /api/v1/sensor/config"; for windows two public captures of
an OS0-128 with firmware 2.3 (tests/pcaps/windowed_frame1 and 2 of that repository).
"""

import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hilsim.errors import require
from hilsim.families.ouster.protocol.firmware import Firmware
from hilsim.families.ouster.protocol.imu import ACCEL_GYRO_NMEA, LEGACY_IMU
from hilsim.families.ouster.protocol.metadata import LIDAR_MODES, SIGNAL_MULTIPLIERS, default_settings
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, PROFILES

AUTO = "@auto"
"""Value of a destination for which the sensor takes the address of the client."""
NORMAL, STANDBY = "NORMAL", "STANDBY"
DESTINATION_KEYS = ("udp_dest", "udp_port_lidar", "udp_port_imu", "udp_multicast_ttl")
"""Settings that act on the next packet if a request has neither ``staging`` nor ``reinit``."""
PHASE_LOCK_MODES = ("TIME_FROM_PTP_1588", "TIME_FROM_SYNC_PULSE_IN")
TIMESTAMP_MODES = ("TIME_FROM_INTERNAL_OSC", "TIME_FROM_SYNC_PULSE_IN", "TIME_FROM_PTP_1588")
FULL_WINDOW_MDEG = 360_000
_WIDEST_WINDOW_MDEG: Mapping[float, int] = {2: 180_000, 3: 120_000}
"""Widest ``azimuth_window`` by ``signal_multiplier``, where it is less than a turn. Source: Ouster's firmware user manual, sensor features, signal multiplier
(https://ouster.com/sensor-docs/fw-user-manual/docs/sensor-features/signal-multiplier)."""
_SHOWN = 80
_OLDEST, _V2_2, _V3_1, _V3_2 = Firmware(0, 0), Firmware(2, 2), Firmware(3, 1), Firmware(3, 2)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A key.

    Attributes:
        rule: Rule for its value, for messages.
        accepts: Whether a value of JSON is one.
        since: First firmware that has it.
    """

    rule: str
    accepts: Callable[[Any], bool]
    since: Firmware = _OLDEST


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _one_of(*words: str, since: Firmware = _OLDEST) -> Setting:
    return Setting(rule=" or ".join(words) if len(words) == 2 else f"one of {', '.join(words)}", accepts=lambda value: value in words, since=since)


def _integer(least: int, most: int, since: Firmware = _OLDEST) -> Setting:
    return Setting(rule=f"an integer of {least} to {most}", accepts=lambda value: _is_integer(value) and least <= value <= most, since=since)


def _number_of(*numbers: float, since: Firmware = _OLDEST) -> Setting:
    return Setting(
        rule=f"one of {', '.join(map(str, numbers))}",
        accepts=lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value in numbers,
        since=since,
    )


def _is_destination(value: Any) -> bool:
    try:
        return isinstance(value, str) and (value in {"", AUTO} or not ipaddress.IPv4Address(value).is_unspecified)
    except ValueError:
        return False


def _is_window(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(_is_integer(bound) and 0 <= bound <= FULL_WINDOW_MDEG for bound in value)
        and value[0] != value[1]
    )


def _destination(since: Firmware = _OLDEST) -> Setting:
    return Setting(rule=f'an IPv4 address, "{AUTO}", or "" to send nothing', accepts=_is_destination, since=since)


_POLARITY = _one_of("ACTIVE_HIGH", "ACTIVE_LOW")
_PORT = _integer(0, 65_535)
SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "accel_fsr": _one_of("NORMAL", "EXTENDED", since=_V3_1),
        "azimuth_window": Setting(rule=f"two different integers of 0 to {FULL_WINDOW_MDEG}", accepts=_is_window),
        "bloom_reduction_optimization": _one_of("BALANCED", "MINIMIZE_FALSE_POSITIVES", since=_V3_2),
        "columns_per_packet": _integer(COLUMNS_PER_PACKET, COLUMNS_PER_PACKET),  # read only
        "gyro_fsr": _one_of("NORMAL", "EXTENDED", since=_V3_1),
        "header_type": _one_of("STANDARD", "FUSA", since=_V3_2),
        "imu_packets_per_frame": _integer(1, 64, since=_V3_2),
        "lidar_frame_azimuth_offset": _integer(0, FULL_WINDOW_MDEG - 1, since=_V3_2),
        "lidar_mode": _one_of(*LIDAR_MODES),
        "min_range_threshold_cm": _number_of(0, 30, 50, since=_V3_1),
        "multipurpose_io_mode": _one_of(
            "OFF",
            "INPUT_NMEA_UART",
            "OUTPUT_FROM_INTERNAL_OSC",
            "OUTPUT_FROM_SYNC_PULSE_IN",
            "OUTPUT_FROM_PTP_1588",
            "OUTPUT_FROM_ENCODER_ANGLE",
        ),
        "nmea_baud_rate": _one_of("BAUD_9600", "BAUD_115200"),
        "nmea_ignore_valid_char": _integer(0, 1),
        "nmea_in_polarity": _POLARITY,
        "nmea_leap_seconds": _integer(0, 999),
        "operating_mode": _one_of(NORMAL, STANDBY),
        "phase_lock_enable": Setting(rule="true or false", accepts=lambda value: isinstance(value, bool)),
        "phase_lock_offset": _integer(0, FULL_WINDOW_MDEG),
        "return_order": _one_of("STRONGEST_TO_WEAKEST", "NEAREST_TO_FARTHEST", "FARTHEST_TO_NEAREST", since=_V3_1),
        "signal_multiplier": _number_of(*SIGNAL_MULTIPLIERS),
        "sync_pulse_in_polarity": _POLARITY,
        "sync_pulse_out_angle": _integer(0, 360),
        "sync_pulse_out_frequency": _integer(1, 1000),
        "sync_pulse_out_polarity": _POLARITY,
        "sync_pulse_out_pulse_width": _integer(1, 1000),
        "timestamp_mode": _one_of(*TIMESTAMP_MODES),
        "udp_dest": _destination(),
        "udp_dest_zm": _destination(since=_V3_2),
        "udp_multicast_ttl": _integer(1, 255, since=_V3_2),
        "udp_multicast_ttl_zm": _integer(1, 255, since=_V3_2),
        "udp_port_imu": _PORT,
        "udp_port_lidar": _PORT,
        "udp_port_zm": _integer(0, 65_535, since=_V3_2),
        "udp_profile_imu": _one_of(LEGACY_IMU, ACCEL_GYRO_NMEA),
        "udp_profile_lidar": _one_of(*PROFILES),
    }
)
"""Every key of ``config_params``."""

_PROFILES_SINCE = {"FUSA_RNG15_RFL8_NIR8_DUAL": _V3_1, ACCEL_GYRO_NMEA: _V3_2} | {
    name: _V2_2 for name in PROFILES if name not in {"LEGACY", "FUSA_RNG15_RFL8_NIR8_DUAL"}
}


def keys_of(firmware: Firmware) -> tuple[str, ...]:
    """Keys that a firmware has."""
    return tuple(key for key, setting in SETTINGS.items() if firmware >= setting.since)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def staged_settings(given: Any, settings: Mapping[str, Any], firmware: Firmware, peer: str) -> dict[str, Any]:
    """Settings with those of a request in place of the former.

    Args:
        given: Object of JSON.
        settings: Settings before.
        firmware: Version of the sensor.
        peer: Address of the client, which replaces ``@auto``.

    Raises:
        ValueError: the request is no object, or a key or value is wrong; all faults, joined by "; ".
    """
    if not isinstance(given, dict):
        raise ValueError(f"settings must be an object of JSON, got {_shown(given)}")  # noqa: TRY004 - what a client has sent
    require(*_value_rules(given, firmware))
    return {**settings, **{key: peer if value == AUTO else value for key, value in given.items()}}


def _value_rules(given: Mapping[str, Any], firmware: Firmware) -> Iterator[tuple[bool, str]]:
    for key, value in given.items():
        setting = SETTINGS.get(key)
        if setting is None or firmware < setting.since:
            yield False, f"{key[:_SHOWN]} must be a key that firmware {firmware} has, got an unknown one"
        else:
            yield setting.accepts(value), f"{key} must be {setting.rule}, got {_shown(value)}"
            since = _PROFILES_SINCE.get(value, _OLDEST) if isinstance(value, str) else _OLDEST
            yield firmware >= since, f"{key} must be one that firmware {firmware} has, got {value}, which begins with {since}"


def require_compatible(settings: Mapping[str, Any], prod_line: str) -> None:
    """Judge how settings go together.

    Args:
        settings: Whole settings.
        prod_line: Product line of the sensor, as ``OS-1-128``.

    Raises:
        ValueError: they cannot become active; all faults, joined by "; ".
    """
    lidar, imu, header = settings["udp_profile_lidar"], settings["udp_profile_imu"], settings.get("header_type", "STANDARD")
    require(
        (
            not settings["phase_lock_enable"] or settings["timestamp_mode"] in PHASE_LOCK_MODES,
            f"timestamp_mode must be {' or '.join(PHASE_LOCK_MODES)} beside phase_lock_enable, got {settings['timestamp_mode']}",
        ),
        (lidar != "LEGACY" or imu == LEGACY_IMU, f"udp_profile_imu must be {LEGACY_IMU} beside the lidar profile LEGACY, got {imu}"),
        (lidar != "LEGACY" or header == "STANDARD", f"header_type must be STANDARD beside the lidar profile LEGACY, got {header}"),
        (
            settings["lidar_mode"] != "4096x5" or not prod_line.startswith("OS-0"),
            f"lidar_mode must not be 4096x5 for {prod_line}: some OS1 and OS2 have it",
        ),
        window_rule("azimuth_window", settings["azimuth_window"], settings["signal_multiplier"]),
    )


def window_rule(name: str, window_mdeg: Sequence[int], multiplier: float) -> tuple[bool, str]:
    """Rule that an azimuth window called ``name`` is no wider than its ``signal_multiplier`` permits."""
    span_mdeg = (window_mdeg[1] - window_mdeg[0]) % FULL_WINDOW_MDEG or FULL_WINDOW_MDEG
    widest_mdeg = _WIDEST_WINDOW_MDEG.get(multiplier, FULL_WINDOW_MDEG)
    fault = f"{name} must be at most {widest_mdeg} wide beside signal_multiplier {multiplier:g}, got {list(window_mdeg)}, which is {span_mdeg} wide"
    return span_mdeg <= widest_mdeg, fault


def factory_settings(firmware: Firmware) -> dict[str, Any]:
    """Settings of a sensor as it comes: it sends to no address."""
    lidar = "RNG19_RFL8_SIG16_NIR16" if firmware >= Firmware(2, 4) else "LEGACY"
    facts = {"columns_per_packet": COLUMNS_PER_PACKET, "lidar_mode": "1024x10", "udp_profile_imu": LEGACY_IMU, "udp_profile_lidar": lidar}
    return default_settings(firmware, "") | facts | ({"header_type": "STANDARD"} if firmware >= _V3_2 else {})


def column_window(azimuth_window_mdeg: tuple[int, int], columns_per_frame: int) -> tuple[int, int]:
    """First and last measurement id of an ``azimuth_window``, which may wrap.

    A column is inside if its angle, of 0 to below 360 degrees, is: both bounds belong to the window. Column 0 is at 0 degrees, and angles fall from there on. So
    two captures have it: 180000 to 360000 is columns 1 to 256 of 512, and 300000 to 100000 is 370 to 85.
    """
    first_mdeg, last_mdeg = azimuth_window_mdeg
    if (first_mdeg, last_mdeg) == (0, FULL_WINDOW_MDEG):
        return 0, columns_per_frame - 1
    first = max(-(-columns_per_frame * (FULL_WINDOW_MDEG - last_mdeg) // FULL_WINDOW_MDEG), 1)
    last = columns_per_frame * (FULL_WINDOW_MDEG - first_mdeg) // FULL_WINDOW_MDEG
    return first % columns_per_frame, last % columns_per_frame
