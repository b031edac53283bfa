"""Recognition of Hesai packets, by length, header, marks and return mode, and of GPS packets."""

from hilsim.families.hesai.protocol.gps import GPS_PORT, is_gps
from hilsim.families.hesai.protocol.points import DATA_PORT, packet_fault
from hilsim.protocols.ethernet import PLAIN_STYLE
from hilsim.protocols.recognise import KindFacts, PacketKind

HESAI_STYLE = PLAIN_STYLE
"""Headers of a real unit's frames are not known: public recordings have payloads alone."""


class HesaiKind(PacketKind):
    """Kinds of Hesai packets."""

    POINTS = KindFacts("Hesai points", "hesai", "points", has_points=True, is_decoded=True, style=HESAI_STYLE)
    GPS = KindFacts("Hesai GPS", "hesai", "gps", port_step=GPS_PORT - DATA_PORT, style=HESAI_STYLE)


def recognise(payload: bytes) -> HesaiKind | None:
    """The kind of a payload."""
    if is_gps(payload):
        return HesaiKind.GPS
    return None if packet_fault(payload) else HesaiKind.POINTS
