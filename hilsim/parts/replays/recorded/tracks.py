"""Packets of one kind of one recorded flow, in which the same fields name a time."""

from dataclasses import dataclass

from hilsim.capture.datagram import CapturedDatagram
from hilsim.emulator.replaying import has_points
from hilsim.emulator.retime import Retiming
from hilsim.parts.replays.recorded.timeline import NO_STAMP
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind
from hilsim.registry import family_part

_LATEST_NS = 1 << 62
"""Latest valid stamp, in the year 2116."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """Packets of one kind of one recorded flow.

    Attributes:
        recorded: Recorded flow.
        kind: Kind of its packets.
        retiming: Fields that name a time.
        first: First datagram.
    """

    recorded: FlowKey
    kind: PacketKind
    retiming: Retiming
    first: CapturedDatagram

    @property
    def is_points(self) -> bool:
        """Whether the packets contain measurements and a stamp."""
        return has_points(self.kind)

    @property
    def takes_objects(self) -> bool:
        """Whether objects can be put into the packets' points."""
        return self.is_points and family_part(self.kind.facts.family, "insertion") is not None

    def read_stamp_ns(self, payload: bytes) -> int:
        """Read a packet's own stamp; ``NO_STAMP`` for packets whose stamps are not understood, and for a stamp without a valid time."""
        stamp_ns = self.retiming.read_ns(payload)
        return NO_STAMP if stamp_ns is None or stamp_ns >= _LATEST_NS else stamp_ns
