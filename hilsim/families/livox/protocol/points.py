"""Livox's point packets, and the header that IMU packets have too: UDP payload, little-endian.

======  ====  ==============================================================================================================
offset  size  field
======  ====  ==============================================================================================================
0       1     version, 0
1       2     bytes of the payload
3       2     time from the first point to the last one, 0.1 us: 4750 of a Mid-360
5       2     points: 96; measurements of an IMU packet: 1
7       2     number of the packet, +1 a packet
9       1     number of the frame; 0 of scanners that repeat nothing
10      1     data type: 0 IMU, 1 to 3 as below
11      1     source of the time: 0 none (since power-up), 1 PTP, 2 GPS
12      12    reserved, 0
24      4     CRC-32 of what follows
28      8     time of the first point, ns
36            points, or a measurement (``imu``)
======  ====  ==============================================================================================================

A point of type 1 (14 bytes), 2 (8 bytes) and 3 (10 bytes):

======  ======  ======  ====================================================================================================
type 1  type 2  type 3  field
======  ======  ======  ====================================================================================================
0       0               x, signed: 4 bytes in mm; 2 bytes in cm; forward
4       2               y likewise, left
8       4               z likewise, up
                0       distance, 4 bytes, mm
                4       angle from straight up, 2 bytes, 0.01 degrees, 0 to 18000
                6       azimuth, counter-clockwise from ahead, 2 bytes, 0.01 degrees, 0 to 36000
12      6       8       reflectivity: 0 to 150 percent of a diffuse surface, 151 to 255 retro-reflectors
13      7       9       tag: confidence, 0 high to 2 low, in bits 0-1 (between near objects), 2-3 (rain, fog, dust), 4-5 (other)
======  ======  ======  ====================================================================================================

A shot without return is a point with x, y and z, or distance and angles, of 0: packets always have 96 points, shot one line after another, line ``i % lines``.

Sources: Livox-SDK2, include/livox_lidar_def.h; livox_wiki_en, livox_eth_protocol_mid360.md, revision 1.4.11; 4750, 96 and the frame's number: output of real
units in public issues (mandeye_controller#53, livox_ros_driver2#240, #260). What reserved bytes hold, and when packets are counted anew, is not known.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32 as crc32_of

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel
from hilsim.compilation.words import store_half
from hilsim.errors import PacketError
from hilsim.protocols.crc32 import crc32

HEADER_SIZE, CRC_AT, STAMP_AT = 36, 24, 28
LENGTH_AT, INTERVAL_AT, COUNT_AT, NUMBER_AT, FRAME_AT, TYPE_AT, TIME_TYPE_AT = 1, 3, 5, 7, 9, 10, 11
POINTS = 96
"""Points of a packet."""
IMU_DATA, CARTESIAN_MM, CARTESIAN_CM, SPHERICAL = 0, 1, 2, 3
"""Data types."""
NO_TIME, PTP_TIME, GPS_TIME = 0, 1, 2
"""Sources of time."""
OBJECT_SHIFT, WEATHER_SHIFT, OTHER_SHIFT = 0, 2, 4
"""Bits of a tag: confidence that a point is none between near objects, of rain, fog or dust, or wrong for another reason."""
HIGH, MEDIUM, LOW = 0, 1, 2
"""Confidence."""
POINT_DTYPES = {
    CARTESIAN_MM: np.dtype([("x", "<i4"), ("y", "<i4"), ("z", "<i4"), ("reflectivity", "u1"), ("tag", "u1")]),
    CARTESIAN_CM: np.dtype([("x", "<i2"), ("y", "<i2"), ("z", "<i2"), ("reflectivity", "u1"), ("tag", "u1")]),
    SPHERICAL: np.dtype([("distance", "<u4"), ("zenith", "<u2"), ("azimuth", "<u2"), ("reflectivity", "u1"), ("tag", "u1")]),
}
UNIT_MM = {CARTESIAN_MM: 1, CARTESIAN_CM: 10, SPHERICAL: 1}
"""Millimetres of a count of x, y and z, or of the distance."""
DATA_SIZES = {IMU_DATA: 24, **{data_type: dtype.itemsize for data_type, dtype in POINT_DTYPES.items()}}
"""Bytes of a point, or of a measurement."""
_HEADER = Struct("<BHHHHBBB12sIQ")
if (_HEADER.size, *DATA_SIZES.values()) != (HEADER_SIZE, 24, 14, 8, 10):
    raise AssertionError(f"header, measurement and points must be 36, 24, 14, 8 and 10 bytes, got {_HEADER.size} and {DATA_SIZES}")
_HEADER_SIZE, _CRC_AT, _STAMP_AT, _MM, _CM = (constant(value) for value in (HEADER_SIZE, CRC_AT, STAMP_AT, CARTESIAN_MM, CARTESIAN_CM))


@dataclass(frozen=True)
class DataHeader:
    """Header of a point or IMU packet, field by field."""

    version: int
    length: int
    interval: int
    count: int
    number: int
    frame: int
    data_type: int
    time_type: int
    reserved: bytes
    crc: int
    stamp_ns: int


class PacketHead(NamedTuple):
    """What a kernel writes into a header; the low 16 bits of the number are sent."""

    interval: int
    points: int
    number: int
    data_type: int
    time_type: int
    stamp_ns: int


def packet_size(data_type: int, count: int = POINTS) -> int:
    """Bytes of a packet.

    Raises:
        KeyError: there is no such data type.
    """
    return HEADER_SIZE + count * DATA_SIZES[data_type]


@inlined_kernel
def write_header(head: PacketHead, size: int, payload: npt.NDArray[np.uint8], at: int) -> None:
    """Write the header of a packet of ``size`` bytes to ``payload[at : at + 36]``, all but the CRC."""
    store_half(payload, at, (size << 8) + ((head.interval & 0xFF) << 24))
    store_half(payload, at + 4, (head.interval >> 8) + (head.points << 8) + ((head.number & 0xFF) << 24))
    store_half(payload, at + 8, (head.number >> 8 & 0xFF) + (head.data_type << 16) + (head.time_type << 24))
    for place in range(12, 28, 4):
        store_half(payload, at + place, 0 * size)
    store_half(payload, at + 28, head.stamp_ns)
    store_half(payload, at + 32, head.stamp_ns >> 32)


@inlined_kernel
def seal(size: int, payload: npt.NDArray[np.uint8], at: int) -> None:
    """Write the CRC of a packet whose other bytes are written to ``payload[at : at + size]``."""
    store_half(payload, at + _CRC_AT, crc32(payload, at + _STAMP_AT, at + size))


@kernel
def write_point(data_type: int, a: int, b: int, c: int, reflectivity: int, tag: int, payload: npt.NDArray[np.uint8], at: int) -> int:
    """Write a point to ``payload[at:]``; returns the byte after it.

    Args:
        data_type: 1 to 3.
        a: x in counts of the type; of type 3 the distance.
        b: y; of type 3 the angle from straight up.
        c: z; of type 3 the azimuth.
        reflectivity: Reflectivity.
        tag: Tag.
        payload: ``uint8[n]``, written.
        at: Its first byte.
    """
    if data_type == _CM:
        store_half(payload, at, (a & 0xFFFF) + (b << 16))
        payload[at + 4] = c & 0xFF
        payload[at + 5] = (c >> 8) & 0xFF
        at += 6
    else:
        store_half(payload, at, a)
        if data_type == _MM:
            store_half(payload, at + 4, b)
            store_half(payload, at + 8, c)
            at += 12
        else:
            store_half(payload, at + 4, (b & 0xFFFF) + (c << 16))
            at += 8
    payload[at] = reflectivity
    payload[at + 1] = tag
    return at + 2


def header_fault(payload: bytes) -> str:
    """What keeps a payload from being a whole point or IMU packet, with field, byte and value; empty: nothing. CRCs are not looked at."""
    if len(payload) < HEADER_SIZE:
        return f"must have a header of {HEADER_SIZE} bytes, got {len(payload)} bytes"
    version, length, _, count, _, _, data_type, time_type, *_ = _HEADER.unpack_from(payload)
    faults = (
        (version != 0, f"version (byte 0) must be 0, got {version}"),
        (length != len(payload), f"length (byte {LENGTH_AT}) must be that of the payload, {len(payload)}, got {length}"),
        (data_type not in DATA_SIZES, f"data type (byte {TYPE_AT}) must be 0 to 3, got {data_type}"),
        (time_type > GPS_TIME, f"time type (byte {TIME_TYPE_AT}) must be 0 to 2, got {time_type}"),
        (count == 0, f"number of points (byte {COUNT_AT}) must be at least 1, got 0"),
    )
    fault = next((text for holds, text in faults if holds), "")
    if not fault and packet_size(data_type, count) != length:
        return f"length (byte {LENGTH_AT}) of {count} of data type {data_type} must be {packet_size(data_type, count)}, got {length}"
    return fault


def read_header(payload: bytes) -> DataHeader:
    """The header of a point or IMU packet.

    Raises:
        PacketError: the payload is no whole packet; the text names field and byte.
    """
    if fault := header_fault(payload):
        raise PacketError(f"Livox packet: {fault}")
    return DataHeader(*_HEADER.unpack_from(payload))


def read_points(payload: bytes) -> tuple[DataHeader, npt.NDArray[Any]]:
    """The header of a point packet, and its points, records of ``POINT_DTYPES[header.data_type]``.

    Raises:
        PacketError: the payload is no whole point packet; the text names field and byte.
    """
    header = read_header(payload)
    if header.data_type == IMU_DATA:
        raise PacketError(f"Livox packet: data type (byte {TYPE_AT}) must be 1 to 3 of points, got {IMU_DATA}")
    return header, np.frombuffer(payload, POINT_DTYPES[header.data_type], count=header.count, offset=HEADER_SIZE)


def stamp_of(payload: bytes) -> int:
    """Stamp of a whole packet, ns."""
    return int.from_bytes(payload[STAMP_AT : STAMP_AT + 8], "little")


def has_valid_crc(payload: bytes) -> bool:
    """Whether the CRC of a whole packet is that of its bytes."""
    return int.from_bytes(payload[CRC_AT:STAMP_AT], "little") == crc32_of(payload[STAMP_AT:])
