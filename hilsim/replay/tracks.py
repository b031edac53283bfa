"""Packets of one kind of one recorded flow, and what can be read and changed in them."""

from dataclasses import dataclass

from hilsim.capture.datagram import CapturedDatagram
from hilsim.emulator.retime import Retiming
from hilsim.protocols.cepton.info import read_info_packet
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind
from hilsim.replay.timeline import NO_STAMP, POINTS

_RETIMINGS = {
    PacketKind.VELODYNE_DATA: Retiming.VELODYNE_DATA,
    PacketKind.VELODYNE_POSITION: Retiming.VELODYNE_POSITION,
    PacketKind.CEPTON_STDV: Retiming.CEPTON_STDV,
}
_STAMP_PLACES = {PacketKind.VELODYNE_DATA: (1200, 1204), PacketKind.VELODYNE_POSITION: (198, 202), PacketKind.CEPTON_STDV: (8, 16)}

_LATEST_NS = 1 << 62
"""The year 2116."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """Packets of one kind of one recorded flow.

    Attributes:
        recorded: The flow.
        kind: What its packets are.
        first: Its first datagram.
    """

    recorded: FlowKey
    kind: PacketKind
    first: CapturedDatagram

    @property
    def is_points(self) -> bool:
        """Whether its packets are made of measurements and stamped."""
        return self.kind in POINTS

    @property
    def retiming(self) -> Retiming:
        """What can be rewritten in its packets; of sensor information only in the layout that was measured."""
        if self.kind is PacketKind.CEPTON_INFZ and read_info_packet(self.first.payload) is not None:
            return Retiming.CEPTON_INFO
        return _RETIMINGS.get(self.kind, Retiming.NOTHING)


def read_stamp_ns(payload: bytes, kind: PacketKind) -> int:
    """What a packet's own stamp shows; ``NO_STAMP`` for kinds whose stamps are not understood, and for a stamp that names no time."""
    place = _STAMP_PLACES.get(kind)
    stamp_ns = NO_STAMP if place is None else 1000 * int.from_bytes(payload[place[0] : place[1]], "little")
    return stamp_ns if stamp_ns < _LATEST_NS else NO_STAMP
