"""Livox's IMU packets: the header of point packets (``points``) with data type 0, one measurement, 60 bytes, 200 a second, little-endian.

======  ====  ==============================================================================
offset  size  field
======  ====  ==============================================================================
36      12    rates of rotation about x, y, z, float32, radians a second
48      12    specific force along x, y, z, float32, g; at rest and level 0, 0, 1
======  ====  ==============================================================================

Axes are those of the points: x forward, y left, z up. Source: Livox-SDK2, include/livox_lidar_def.h; 200 a second, one measurement and 60 bytes: output of real
units in livox_ros_driver2#260.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed
from hilsim.compilation.words import store_half
from hilsim.errors import PacketError
from hilsim.families.livox.protocol.points import HEADER_SIZE, IMU_DATA, TYPE_AT, DataHeader, PacketHead, packet_size, read_header, seal, write_header

IMU_PACKET_SIZE = packet_size(IMU_DATA, 1)
_SIZE, _HEADER = constant(IMU_PACKET_SIZE), constant(HEADER_SIZE)


@kernel
def write_imu_packet(head: PacketHead, rates: tuple[float, float, float], force: tuple[float, float, float], payload: npt.NDArray[np.uint8]) -> None:
    """Write an IMU packet.

    Args:
        head: Its header; interval 0, count 1, data type 0.
        rates: Rates of rotation about x, y and z, radians a second.
        force: Specific force along x, y and z, g.
        payload: ``uint8[>= 60]``, written.
    """
    write_header(head, _SIZE, payload, 0)
    measured = rates + force
    for field in range(6):
        store_half(payload, _HEADER + 4 * field, signed(np.float32(measured[field]).view(np.int32)))
    seal(_SIZE, payload, 0)


def read_imu(payload: bytes) -> tuple[DataHeader, npt.NDArray[np.float32]]:
    """The header of an IMU packet, and ``float32[n, 6]``: rates in rad/s and specific force in g.

    Raises:
        PacketError: the payload is no whole IMU packet; the text names field and byte.
    """
    header = read_header(payload)
    if header.data_type != IMU_DATA:
        raise PacketError(f"Livox packet: data type (byte {TYPE_AT}) must be {IMU_DATA} of an IMU packet, got {header.data_type}")
    return header, np.frombuffer(payload, "<f4", count=6 * header.count, offset=HEADER_SIZE).reshape(-1, 6)
