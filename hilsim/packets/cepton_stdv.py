"""The header of Cepton's STDV point packet (Vista-X and Nova generation): UDP payload on port 8808, little-endian.

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

A point's last byte but for the version-1 point's two extra ones is its flags: bit 2 is the frame parity, which changes with each frame.

Sources: "Cepton Sensor Communication Specifications" 0.9.5, https://developer.cepton.com/doc/data_format; header field 20 and the flag bits:
public headers ``cepton_sdk2.h`` and ``cepton_sdk3.h``; all of it confirmed on the vendor's SDKs as black boxes.
"""

from dataclasses import dataclass
from struct import Struct

STDV_PORT = 8808
STDV_SIGNATURE = b"STDV"
STAMP_OFFSET = 8
SEQUENCE_OFFSET = 20
POINT_FLAGS_OFFSET = 9
FRAME_PARITY = 0x04
_HEADER = Struct("<4sBBHqBBH")
_SEQUENCE = Struct("<I")


@dataclass(frozen=True, kw_only=True)
class StdvHeader:
    """What the header says.

    Attributes:
        version: 1 or 2.
        size: Where the points start.
        stamp_us: Reference timestamp.
        point_size: Bytes a point.
        points: How many.
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
