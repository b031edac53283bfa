"""Point packets as arrays, the input of all topics."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.families.cepton.protocol.stdv import POINT_DTYPE, POINT_SIZE, PointFlag
from hilsim.read.analysis.conformance.findings import Place

SECOND, NO_RETURN = int(PointFlag.SECOND_RETURN), int(PointFlag.NO_RETURN)


class PointPacket(NamedTuple):
    """One packet with a valid header.

    Attributes:
        number: Number among the sensor's point packets, from 0.
        frame: Number of the frame in the capture, from 1.
        host_stamp_ns: Capture time.
        version: Version of the header.
        header_size: Offset of the points.
        stamp_us: Stamp of the header.
        sequence: Sequence number, or -1 in version 1.
        payload: Payload of the datagram.
    """

    number: int
    frame: int
    host_stamp_ns: int
    version: int
    header_size: int
    stamp_us: int
    sequence: int
    payload: bytes


class Before(NamedTuple):
    """Last point before a stretch, ``POINT_DTYPE[1]``, and its time."""

    point: npt.NDArray[Any]
    time_us: int


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Point packets of one sensor in the order of their sequence numbers: P packets with N points."""

    packets: Annotated[list[PointPacket], "Packets of the stretch."]
    points: Annotated[npt.NDArray[Any], "``POINT_DTYPE[N]``, points of the packets."]
    packet: Annotated[npt.NDArray[np.int64], "``int64[N]``, index of each point's packet."]
    place_in_packet: Annotated[npt.NDArray[np.int64], "``int64[N]``, index of each point in its packet."]
    time_us: Annotated[npt.NDArray[np.int64], "``int64[N]``, firing time of each point."]
    start: Annotated[npt.NDArray[np.int64], "``int64[P]``, index of each packet's first point."]
    follows: Annotated[npt.NDArray[np.bool_], "``bool[P]``, whether a packet directly follows the former one (or ``before``)."]
    before: Annotated[Before | None, "Point that the first packet directly follows, or None."]

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """``uint8[N]``."""
        flags: npt.NDArray[np.uint8] = self.points["flags"]
        return flags

    @property
    def is_return(self) -> npt.NDArray[np.bool_]:
        """Whether each point is a return, ``bool[N]``."""
        return np.asarray((self.flags & NO_RETURN) == 0)

    @property
    def is_second(self) -> npt.NDArray[np.bool_]:
        """Whether each point is the second of two returns, ``bool[N]``."""
        return np.asarray((self.flags & SECOND) != 0)

    @property
    def has_previous(self) -> npt.NDArray[np.bool_]:
        """Whether the point fired before each point is known, ``bool[N]``."""
        known = np.ones(self.points.size, dtype=np.bool_)
        known[self.start] = self.follows
        if self.before is None and known.size:
            known[0] = False
        return known

    def previous(self, values: npt.NDArray[Any], before: Any) -> npt.NDArray[Any]:
        """Value of the point fired before each point, ``[N]``; ``before`` for the first."""
        return np.concatenate([np.asarray([before], dtype=values.dtype), values[:-1]])

    def previous_points(self) -> npt.NDArray[Any]:
        """Point fired before each point, ``POINT_DTYPE[N]``; valid only where ``has_previous``."""
        first = self.points[:1] if self.before is None else self.before.point
        return np.concatenate([first, self.points[:-1]])

    def place(self, point: int, byte: int = 0) -> Place:
        """Place of byte ``byte`` of a point."""
        packet = self.packets[int(self.packet[point])]
        return Place(packet.number, packet.frame, packet.header_size + POINT_SIZE * int(self.place_in_packet[point]) + byte)

    def end(self) -> Before:
        """Last point, which the next stretch may directly follow; the stretch must have a point."""
        return Before(self.points[-1:].copy(), int(self.time_us[-1]))


def form_stretch(packets: list[PointPacket], follows: list[bool], before: Before | None) -> Stretch:
    """Make a stretch of packets that all have points."""
    parts = [np.frombuffer(packet.payload, POINT_DTYPE, offset=packet.header_size) for packet in packets]
    counts = np.array([part.size for part in parts], dtype=np.int64)
    start = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
    points = np.concatenate(parts)
    packet = np.repeat(np.arange(counts.size), counts)
    steps = np.cumsum(points["step_us"], dtype=np.int64)
    ahead = steps[start] - points["step_us"][start]  # sum of all steps before a packet
    stamps = np.array([each.stamp_us for each in packets], dtype=np.int64)
    return Stretch(
        packets=packets,
        points=points,
        packet=packet,
        place_in_packet=np.arange(points.size) - start[packet],
        time_us=stamps[packet] + steps - ahead[packet],
        start=start,
        follows=np.array(follows, dtype=np.bool_),
        before=before,
    )
