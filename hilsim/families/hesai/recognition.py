"""Recognition of Hesai packets: start, version, and numbers of lasers and blocks that fit the length."""

from hilsim.errors import PacketError
from hilsim.families.hesai.protocol import pandar
from hilsim.families.hesai.protocol.points import packet_fault
from hilsim.protocols.ethernet import PLAIN_STYLE
from hilsim.protocols.recognise import KindFacts, PacketKind

HESAI_STYLE = PLAIN_STYLE
"""Headers of a real unit's frames are not known: public recordings have payloads alone."""


class HesaiKind(PacketKind):
    """Kinds of Hesai packets."""

    POINTS = KindFacts("Hesai points", "hesai", "points", has_points=True, is_decoded=True, style=HESAI_STYLE)
    PANDAR = KindFacts("points of a Pandar40P, Pandar64 or QT64", "hesai", "points", has_points=True, style=HESAI_STYLE)


def recognise(payload: bytes) -> HesaiKind | None:
    """The kind of a payload."""
    if not packet_fault(payload):
        return HesaiKind.POINTS
    if len(payload) not in pandar.BY_SIZE:
        return None
    try:
        pandar.read_packet(payload)
    except PacketError:
        return None
    return HesaiKind.PANDAR
