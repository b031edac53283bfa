"""Packets of a Lantern begin with ``LNTN``, and have one size."""

from hilsim.plugins import KindFacts, PacketKind
from hilsim_plugin_example.lantern.protocol import MARK, PACKET


class LanternKind(PacketKind):
    """The one kind of its packets."""

    COLUMNS = KindFacts("Lantern columns", "lantern", "data", has_points=True, is_decoded=True)


def recognise(payload: bytes) -> LanternKind | None:
    """The kind of a payload."""
    return LanternKind.COLUMNS if len(payload) == PACKET.itemsize and payload.startswith(MARK) else None
