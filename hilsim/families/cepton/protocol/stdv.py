"""Cepton's STDV point packet (Vista-X and Nova generation): UDP payload on port 8808, little-endian.

======  ====  ===========================================================================================
offset  size  field
======  ====  ===========================================================================================
0       4     ASCII ``STDV``
4       1     header version, 1 or 2
5       1     header size, 20 (version 1) or 24 (version 2): where the points start
6       2     flags, 0
8       8     reference timestamp, microseconds: the time of the previous packet's last point
16      1     point version
17      1     point size, 10 (or 12)
18      2     number of points
20      4     sequence number, +1 a packet (version 2 only)
======  ====  ===========================================================================================

A point of 10 bytes (the 12-byte point's two further ones are not public):

======  ====  ===========================================================================================
offset  size  field
======  ====  ===========================================================================================
0       2     x, signed, 5 mm, right
2       2     y, unsigned, 5 mm, forward
4       2     z, signed, 5 mm, up
6       1     reflectivity: 0 to 127 percent, 128 to 255 exponential to 5000 percent
7       1     microseconds since the point before; 0 for a second return
8       1     channel: the laser that fired
9       1     flags, ``PointFlag``
======  ====  ===========================================================================================

At most 143 points fit behind a version 1 header (1450 bytes), 144 behind a version 2 header (1464 bytes). The time of a point is the header's time
stamp and all steps up to its own.

Sources: "Cepton Sensor Communication Specifications" 0.9.5, https://developer.cepton.com/doc/data_format; header field 20 and the flag bits:
public headers ``cepton_sdk2.h`` and ``cepton_sdk3.h``; all of it confirmed on the vendor's SDKs as black boxes.
"""

from dataclasses import dataclass
from enum import IntFlag
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel, signed
from hilsim.errors import PacketError

STDV_PORT = 8808
STDV_SIGNATURE = b"STDV"
STAMP_OFFSET = 8
SEQUENCE_OFFSET = 20
POINT_FLAGS_OFFSET = 9
POINTS_MAX = 144
POINT_UNIT_M = 0.005
"""One count of x, y and z."""
COUNT_MAX = 32_767
"""Largest count of x and z; y may be twice as large plus one."""

POINT_DTYPE = np.dtype(
    [("x", "<i2"), ("y", "<u2"), ("z", "<i2"), ("reflectivity", "u1"), ("step_us", "u1"), ("channel", "u1"), ("flags", "u1")],
)
POINT_SIZE = 10
if POINT_DTYPE.itemsize != POINT_SIZE:
    raise AssertionError(f"a point must be {POINT_SIZE} bytes, got {POINT_DTYPE.itemsize}")


class PointFlag(IntFlag):
    """Bits of a point's flags (public headers ``cepton_sdk2.h``, ``cepton_sdk3.h``)."""

    SATURATED = 0x01
    BLOOMING = 0x02
    FRAME_PARITY = 0x04
    """Changes with each frame."""
    FRAME_BOUNDARY = 0x08
    SECOND_RETURN = 0x10
    NO_RETURN = 0x20
    NOISE = 0x40
    BLOCKED = 0x80


FRAME_PARITY = int(PointFlag.FRAME_PARITY)


_SMALLEST_HEADER, _SMALLEST_POINT = constant(20), constant(POINT_SIZE)
_HEADER = Struct("<4sBBHqBBH")
_SEQUENCE = Struct("<I")


@dataclass(frozen=True, kw_only=True)
class StdvHeader:
    """Fields of the header.

    Attributes:
        version: 1 or 2.
        size: Size of the header, which is the offset of the points.
        stamp_us: Reference timestamp.
        point_size: Bytes a point.
        points: Number of points.
        sequence: Sequence number; None in version 1.
    """

    version: int
    size: int
    stamp_us: int
    point_size: int
    points: int
    sequence: int | None


def read_stdv_header(payload: bytes) -> StdvHeader | None:
    """The header, or None where the payload is no whole STDV packet."""
    if len(payload) < _HEADER.size or not payload.startswith(STDV_SIGNATURE):
        return None
    _, version, size, _, stamp_us, _, point_size, points = _HEADER.unpack_from(payload)
    if size < 20 or point_size < 10 or size + points * point_size > len(payload):
        return None
    has_sequence = version >= 2 and size >= SEQUENCE_OFFSET + _SEQUENCE.size
    sequence = _SEQUENCE.unpack_from(payload, SEQUENCE_OFFSET)[0] if has_sequence else None
    return StdvHeader(version=version, size=size, stamp_us=stamp_us, point_size=point_size, points=points, sequence=sequence)


def frame_parities(payload: bytes, header: StdvHeader) -> bytes:
    """The frame parity of each point: 0 or ``FRAME_PARITY``."""
    flags = payload[header.size + POINT_FLAGS_OFFSET : header.size + header.points * header.point_size : header.point_size]
    return bytes(flag & FRAME_PARITY for flag in flags)


def header_size(version: int) -> int:
    """Size of the header, which is the offset of the points.

    Raises:
        ValueError: there is no such version.
    """
    if version not in (1, 2):
        raise ValueError(f"header_version must be 1 or 2, got {version}")
    return 20 if version == 1 else 24


def points_max(version: int) -> int:
    """Points that fit into a packet behind a header of this version."""
    return POINTS_MAX - 1 if version == 1 else POINTS_MAX


def packet_size(version: int, points: int) -> int:
    """Bytes of a packet."""
    return header_size(version) + points * POINT_SIZE


@inlined_kernel
def write_stdv_header(version: int, stamp_us: int, points: int, sequence: int, payload: npt.NDArray[np.uint8]) -> int:
    """Write a header; returns where the points start.

    Args:
        version: 1 or 2.
        stamp_us: Time of the previous packet's last point.
        points: Number of points that follow.
        sequence: Number of the packet, of which the low 32 bits are sent (version 2).
        payload: ``uint8[>= 24]``, written.
    """
    size = 20 if version == 1 else 24
    payload[:size] = 0
    payload[0], payload[1], payload[2], payload[3] = 0x53, 0x54, 0x44, 0x56
    payload[4] = version
    payload[5] = size
    for byte in range(8):
        payload[8 + byte] = (stamp_us >> (8 * byte)) & 0xFF
    payload[17] = 10
    payload[18] = points & 0xFF
    payload[19] = points >> 8
    if version > 1:
        for byte in range(4):
            payload[20 + byte] = (sequence >> (8 * byte)) & 0xFF
    return size


@kernel
def write_stdv_point(
    x: int, y: int, z: int, reflectivity: int, step_us: int, channel: int, flags: int, payload: npt.NDArray[np.uint8], at: int
) -> None:
    """Write a point to ``payload[at : at + 10]``; every field must fit (x and z 16 bits with sign, y 16, the others 8)."""
    payload[at] = x & 0xFF
    payload[at + 1] = (x >> 8) & 0xFF
    payload[at + 2] = y & 0xFF
    payload[at + 3] = (y >> 8) & 0xFF
    payload[at + 4] = z & 0xFF
    payload[at + 5] = (z >> 8) & 0xFF
    payload[at + 6] = reflectivity
    payload[at + 7] = step_us
    payload[at + 8] = channel
    payload[at + 9] = flags


@kernel
def _u16(data: npt.NDArray[np.uint8], at: int) -> int:
    value: int = signed(data[at]) | signed(data[at + 1]) << 8
    return value


@kernel
def _i16(data: npt.NDArray[np.uint8], at: int) -> int:
    value = _u16(data, at)
    return value - 0x10000 if value >= 0x8000 else value


@kernel
def points_of(data: npt.NDArray[np.uint8], at: int, size: int) -> tuple[int, int, int]:
    """Offset, size and number of the points of a packet at ``data[at : at + size]``; no points for an incomplete packet."""
    if size < _SMALLEST_HEADER:
        return at, _SMALLEST_POINT, 0
    header, point_size, points = signed(data[at + 5]), signed(data[at + 17]), _u16(data, at + 18)
    if header < _SMALLEST_HEADER or point_size < _SMALLEST_POINT or header + points * point_size > size:
        return at, _SMALLEST_POINT, 0
    return at + header, point_size, points


@kernel
def point_at(data: npt.NDArray[np.uint8], at: int) -> tuple[int, int, int, int, int, int, int]:
    """The fields of the point at ``data[at : at + 10]``, as ``POINT_DTYPE`` orders them."""
    return (
        _i16(data, at),
        _u16(data, at + 2),
        _i16(data, at + 4),
        signed(data[at + 6]),
        signed(data[at + 7]),
        signed(data[at + 8]),
        signed(data[at + 9]),
    )


@kernel
def stamp_us_at(data: npt.NDArray[np.uint8], at: int) -> int:
    """The reference timestamp of the packet that begins at ``at``."""
    stamp_us = 0
    for byte in range(8):
        stamp_us |= signed(data[at + 8 + byte]) << (8 * byte)
    return stamp_us


def encode_stdv_packet(points: npt.NDArray[Any], *, stamp_us: int, sequence: int = 0, version: int = 2) -> bytes:
    """A packet of points.

    Args:
        points: Records of ``POINT_DTYPE``.
        stamp_us: Time of the previous packet's last point.
        sequence: Number of the packet.
        version: 1 or 2.

    Raises:
        PacketError: they do not fit into a packet.
    """
    if points.size > points_max(version):
        raise PacketError(f"an STDV packet of version {version} must have at most {points_max(version)} points, got {points.size}")
    header = np.zeros(header_size(version), np.uint8)
    write_stdv_header(version, stamp_us, points.size, sequence, header)
    return header.tobytes() + np.ascontiguousarray(points, dtype=POINT_DTYPE).tobytes()


def decode_stdv_points(payload: bytes) -> npt.NDArray[Any]:
    """The points of a packet, records of ``POINT_DTYPE``.

    Raises:
        PacketError: the payload is no whole STDV packet of 10-byte points; the message names the fault.
    """
    if not payload.startswith(STDV_SIGNATURE):
        raise PacketError(f"an STDV packet must begin with STDV, got {payload[:4].hex(' ')}")
    if len(payload) < _HEADER.size:
        raise PacketError(f"an STDV packet must have a header of {_HEADER.size} bytes, got {len(payload)} bytes")
    header = read_stdv_header(payload)
    if header is None:
        _, _, size, _, _, _, point_size, points = _HEADER.unpack_from(payload)
        raise PacketError(
            f"an STDV packet of {points} points of {point_size} bytes behind {size} bytes of header must be whole, got {len(payload)} bytes"
        )
    if header.point_size != POINT_SIZE:
        raise PacketError(f"an STDV point must be {POINT_SIZE} bytes, got {header.point_size}")
    return np.frombuffer(payload, POINT_DTYPE, count=header.points, offset=header.size)


def point_times_us(points: npt.NDArray[Any], stamp_us: int) -> npt.NDArray[np.int64]:
    """``int64[n]``, the time of each point of a packet with ``stamp_us`` in its header."""
    return stamp_us + np.cumsum(points["step_us"], dtype=np.int64)
