"""Recognition of a Velodyne's packets: 1206 bytes of data beginning with a block flag; 512 bytes of position."""

from typing import Any

from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, DATA_PORT
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE, POSITION_PORT
from hilsim.protocols.ethernet import LinkStyle
from hilsim.protocols.recognise import KindFacts, PacketKind
from hilsim.units import HOUR_US

VELODYNE_DATA_STYLE = LinkStyle(ttl=255, dont_fragment=True, counting_identification=False, udp_checksum=False)
VELODYNE_POSITION_STYLE = LinkStyle(ttl=64, dont_fragment=False, counting_identification=True, udp_checksum=True)
BLOCK_FLAGS = frozenset((b"\xff\xee", b"\xff\xdd", b"\xff\xcc", b"\xff\xbb"))
"""Flags of a first block: HDL-64E's lower bank has FF DD, VLS-128's banks have all four."""


class VelodyneKind(PacketKind):
    """Kinds of a Velodyne's packets."""

    DATA = KindFacts("Velodyne data", "velodyne", "data", has_points=True, is_decoded=True, style=VELODYNE_DATA_STYLE)
    HDL_64E = KindFacts("data of a Velodyne HDL-64E of the first generation", "velodyne", "data", has_points=True)
    POSITION = KindFacts("Velodyne position", "velodyne", "position", port_step=POSITION_PORT - DATA_PORT, style=VELODYNE_POSITION_STYLE)


def is_first_hdl_64e(upper: Any, lower: Any) -> Any:
    """Whether blocks of the upper and the lower bank are those of a packet of an HDL-64E of the first generation, which has a text in place of a stamp."""
    return (upper == 9) & (lower == 3)


def recognise(payload: bytes) -> VelodyneKind | None:
    """The kind of a payload; position packets have nothing behind the sentence, and a stamp below the hour."""
    if len(payload) == DATA_PACKET_SIZE and payload[:2] in BLOCK_FLAGS:
        banks = payload[1:1200:100]
        return VelodyneKind.HDL_64E if is_first_hdl_64e(banks.count(0xEE), banks.count(0xDD)) else VelodyneKind.DATA
    is_position = len(payload) == POSITION_PACKET_SIZE and not any(payload[334:]) and int.from_bytes(payload[198:202], "little") < HOUR_US
    return VelodyneKind.POSITION if is_position else None
