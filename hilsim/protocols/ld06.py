"""The LDROBOT LD06's packet: 47 bytes with 12 points, 230400 8N1, sent unasked.

======  ====  ===============================================================================================================
offset  size  field
======  ====  ===============================================================================================================
0       1     header 54
1       1     2C: 12 points in the lower 5 bits, 1 in the reserved upper 3
2       2     speed of the head, deg/s
4       2     azimuth of the first point, 0.01 deg, clockwise, 0 to 35999
6+3k    3     point k: distance in mm (uint16, 0 = nothing), confidence (uint8)
42      2     azimuth of the last point
44      2     time stamp, ms, beginning again at 30000
46      1     CRC-8 of bytes 0 to 45: polynomial 4D, not reflected, initially 0
======  ====  ===============================================================================================================

Little-endian. Sources: InnoMaker's page of the LD06 (layout, 4500 points a second, 5 to 13 turns a second, 0.02 to 12 m), LDROBOT's development manual (example packet, byte 1 in it);
ArduPilot ``AP_Proximity_LD06.cpp``: confidences below 20 do not count, and byte 1 may hold 2C in all but a few of its versions (one compared the whole byte with 12).
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel

LD06_PACKET_SIZE = 47
LD06_HEADER = 0x54
LD06_POINTS = 12
LD06_VERSION_AND_POINTS = 1 << 5 | LD06_POINTS
LD06_STAMP_MS = 30_000

POINT_DTYPE = np.dtype([("distance", "<u2"), ("confidence", "u1")])
LD06_PACKET_DTYPE = np.dtype(
    [
        ("header", "u1"),
        ("version_and_points", "u1"),
        ("speed", "<u2"),
        ("first_azimuth", "<u2"),
        ("points", POINT_DTYPE, (LD06_POINTS,)),
        ("last_azimuth", "<u2"),
        ("stamp", "<u2"),
        ("crc", "u1"),
    ]
)
if LD06_PACKET_DTYPE.itemsize != LD06_PACKET_SIZE:
    raise AssertionError(f"an LD06 packet must be {LD06_PACKET_SIZE} bytes, got {LD06_PACKET_DTYPE.itemsize}")

_POLYNOMIAL = 0x4D


@kernel
def crc8(payload: npt.NDArray[np.uint8]) -> int:
    """CRC-8 of the LD06 over ``uint8[n]``."""
    crc = 0
    for byte in payload:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ _POLYNOMIAL) & 0xFF if crc & 0x80 else crc << 1
    return crc


def encode_ld06(
    speed_dps: int,
    azimuth_cdeg: npt.NDArray[np.int64],
    distance_mm: npt.NDArray[np.int64],
    confidence: npt.NDArray[np.int64],
    stamp_ms: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint8]:
    """Packets of 12 points each.

    Args:
        speed_dps: Speed of the head.
        azimuth_cdeg: ``int64[n, 12]``; the first and the last of each row are sent.
        distance_mm: ``int64[n, 12]``, 0 for nothing.
        confidence: ``int64[n, 12]``, 0 to 255.
        stamp_ms: ``int64[n]``, 0 to 29999.

    Returns:
        ``uint8[n, 47]``.
    """
    packets = np.zeros(stamp_ms.size, LD06_PACKET_DTYPE)
    packets["header"] = LD06_HEADER
    packets["version_and_points"] = LD06_VERSION_AND_POINTS
    packets["speed"] = speed_dps
    packets["first_azimuth"] = azimuth_cdeg[:, 0]
    packets["points"]["distance"] = distance_mm
    packets["points"]["confidence"] = confidence
    packets["last_azimuth"] = azimuth_cdeg[:, -1]
    packets["stamp"] = stamp_ms
    payload = packets.view(np.uint8).reshape(-1, LD06_PACKET_SIZE)
    for row in payload:
        row[46] = crc8(row[:46])
    return payload
