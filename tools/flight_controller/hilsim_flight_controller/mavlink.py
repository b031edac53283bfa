"""Typed access to pymavlink: the only module that imports it. Its classes are made at run time, so a message is ``Any``; the fields that rules read of sensors are a protocol."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from pymavlink.dialects.v20 import common
from pymavlink.generator.mavcrc import x25crc

__all__ = ["Gps", "Message", "Sensor", "common", "crc_extra_of", "crc_of", "knows"]

Message: TypeAlias = Any
"""A message of pymavlink's dialect ``common``; its fields have MAVLink's names and units."""


class Sensor(Protocol):
    """HIL_SENSOR, in MAVLink's units: us, m/s^2, rad/s, gauss, hPa, m, degrees Celsius; axes are FRD."""

    time_usec: int
    xacc: float
    yacc: float
    zacc: float
    xgyro: float
    ygyro: float
    zgyro: float
    xmag: float
    ymag: float
    zmag: float
    abs_pressure: float
    diff_pressure: float
    pressure_alt: float
    temperature: float
    fields_updated: int
    id: int


class Gps(Protocol):
    """HIL_GPS, in MAVLink's units: us, degrees * 1e7, mm, cm, cm/s, centidegrees."""

    time_usec: int
    fix_type: int
    lat: int
    lon: int
    alt: int
    eph: int
    epv: int
    vel: int
    vn: int
    ve: int
    vd: int
    cog: int
    satellites_visible: int


def knows(identity: int) -> bool:
    """Whether the dialect has a message of this id."""
    return identity in common.mavlink_map


def crc_extra_of(identity: int) -> int:
    """CRC_EXTRA: the byte that a message's checksum includes last; it identifies the message's definition."""
    return int(common.mavlink_map[identity].crc_extra)


def crc_of(data: bytes | Sequence[int], extra: int) -> int:
    """MAVLink's checksum (CRC-16/MCRF4XX) of a frame without its marker, and of its message's ``extra`` byte."""
    crc = x25crc(data)
    crc.accumulate(bytes([extra]))
    return int(crc.crc)
