"""Recognition of packets by the bytes of their UDP payload; ports and addresses are configurable and prove nothing."""

from enum import StrEnum
from typing import Any

from hilsim.families.cepton.protocol.stdv import read_stdv_header
from hilsim.families.ouster.protocol.recognition import is_imu_packet, is_lidar_packet
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE
from hilsim.units import HOUR_US

_BLOCK_FLAGS = frozenset((b"\xff\xee", b"\xff\xdd", b"\xff\xcc", b"\xff\xbb"))
"""Flags of a first block: HDL-64E's lower bank has FF DD, VLS-128's banks have all four."""


def is_first_hdl_64e(upper: Any, lower: Any) -> Any:
    """Whether blocks of the upper and the lower bank are those of a packet of an HDL-64E of the first generation, which has a text in place of a stamp."""
    return (upper == 9) & (lower == 3)


class PacketKind(StrEnum):
    """Kind of a payload; the value is its name in messages."""

    VELODYNE_DATA = "Velodyne data"
    VELODYNE_HDL_64E = "data of a Velodyne HDL-64E of the first generation"
    VELODYNE_POSITION = "Velodyne position"
    CEPTON_STDV = "Cepton STDV points"
    CEPTON_STDT = "Cepton STDT points"
    CEPTON_INFO = "Cepton INFO"
    CEPTON_INFZ = "Cepton INFZ"
    OUSTER_LIDAR = "Ouster lidar"
    OUSTER_IMU = "Ouster IMU"
    OTHER = "not recognised"


_CEPTON = {b"STDT": PacketKind.CEPTON_STDT, b"INFO": PacketKind.CEPTON_INFO, b"INFZ": PacketKind.CEPTON_INFZ}


def recognise(payload: bytes) -> PacketKind:
    """The kind of a payload.

    Velodyne data packets have 1206 bytes beginning with a block flag, position packets 512 bytes with nothing behind the sentence and a stamp below
    the hour; Cepton packets begin with their name. Ouster packets are recognised by size, type and what must count or be possible in them
    (``ouster.recognition``).
    """
    if len(payload) == DATA_PACKET_SIZE and payload[:2] in _BLOCK_FLAGS:
        banks = payload[1:1200:100]
        return PacketKind.VELODYNE_HDL_64E if is_first_hdl_64e(banks.count(0xEE), banks.count(0xDD)) else PacketKind.VELODYNE_DATA
    if len(payload) == POSITION_PACKET_SIZE and not any(payload[334:]) and int.from_bytes(payload[198:202], "little") < HOUR_US:
        return PacketKind.VELODYNE_POSITION
    if read_stdv_header(payload) is not None:
        return PacketKind.CEPTON_STDV
    if payload[:4] in _CEPTON:
        return _CEPTON[payload[:4]]
    if is_lidar_packet(payload):
        return PacketKind.OUSTER_LIDAR
    return PacketKind.OUSTER_IMU if is_imu_packet(payload) else PacketKind.OTHER
