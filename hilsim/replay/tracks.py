"""Packets of one kind of one recorded flow: read their stamps, and find what can be rewritten."""

from dataclasses import dataclass

from hilsim.capture.datagram import CapturedDatagram
from hilsim.emulator.retime import Retiming
from hilsim.families.cepton.protocol.info import read_info_packet
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.families.ouster.protocol.retiming import stamp_place
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind
from hilsim.replay.timeline import NO_STAMP, POINTS

_RETIMINGS = {
    VelodyneKind.DATA: Retiming.VELODYNE_DATA,
    VelodyneKind.POSITION: Retiming.VELODYNE_POSITION,
    CeptonKind.STDV: Retiming.CEPTON_STDV,
    OusterKind.LIDAR: Retiming.OUSTER_LIDAR,
    OusterKind.IMU: Retiming.OUSTER_IMU,
}
_OUSTER = frozenset((OusterKind.LIDAR, OusterKind.IMU))
_STAMP_PLACES = {VelodyneKind.DATA: (1200, 1204), VelodyneKind.POSITION: (198, 202), CeptonKind.STDV: (8, 16)}

_LATEST_NS = 1 << 62
"""Latest valid stamp, in the year 2116."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """Packets of one kind of one recorded flow.

    Attributes:
        recorded: Recorded flow.
        kind: Kind of its packets.
        first: First datagram.
    """

    recorded: FlowKey
    kind: PacketKind
    first: CapturedDatagram

    @property
    def is_points(self) -> bool:
        """Whether the packets contain measurements and a stamp."""
        return self.kind in POINTS

    @property
    def takes_objects(self) -> bool:
        """Whether objects can be put into the packets' points."""
        return self.is_points and self.kind is not OusterKind.LIDAR

    @property
    def retiming(self) -> Retiming:
        """Fields that can be rewritten in the packets; in sensor information only in the measured layout."""
        if self.kind is CeptonKind.INFZ and read_info_packet(self.first.payload) is not None:
            return Retiming.CEPTON_INFO
        return _RETIMINGS.get(self.kind, Retiming.NOTHING)


def read_stamp_ns(payload: bytes, kind: PacketKind) -> int:
    """Read a packet's own stamp; ``NO_STAMP`` for kinds whose stamps are not understood, and for a stamp without a valid time."""
    if kind in _OUSTER:
        at = stamp_place(payload)
        stamp_ns = int.from_bytes(payload[at : at + 8], "little")
    else:
        place = _STAMP_PLACES.get(kind)
        stamp_ns = NO_STAMP if place is None else 1000 * int.from_bytes(payload[place[0] : place[1]], "little")
    return stamp_ns if stamp_ns < _LATEST_NS else NO_STAMP
