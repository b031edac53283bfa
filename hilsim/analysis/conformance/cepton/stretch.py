"""Point packets as arrays: what the topics look at."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.analysis.conformance.findings import Place
from hilsim.protocols.cepton.stdv import POINT_DTYPE, POINT_SIZE, PointFlag

SECOND, NO_RETURN = int(PointFlag.SECOND_RETURN), int(PointFlag.NO_RETURN)


class PointPacket(NamedTuple):
    """One packet with a sound header.

    Attributes:
        number: Which it is among the sensor's point packets, from 0.
        frame: Number of its frame in the capture, from 1.
        host_stamp_ns: When it was captured.
        version: Of its header.
        header_size: Where its points start.
        stamp_us: The header's stamp.
        sequence: Sequence number, or -1 in version 1.
        payload: All its bytes.
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
    """The end of what came before a stretch: ``POINT_DTYPE[1]`` and its time."""

    point: npt.NDArray[Any]
    time_us: int


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Point packets of one sensor in the order of their sequence numbers, P packets of N points in all.

    Attributes:
        packets: They themselves.
        points: ``POINT_DTYPE[N]``.
        packet: ``int64[N]``, which packet a point is of.
        place_in_packet: ``int64[N]``, which point of it.
        time_us: ``int64[N]``, when it was fired.
        start: ``int64[P]``, where a packet's points start.
        follows: ``bool[P]``, it comes directly after the packet before (or after ``before``).
        before: What the first packet directly follows, where it does.
    """

    packets: list[PointPacket]
    points: npt.NDArray[Any]
    packet: npt.NDArray[np.int64]
    place_in_packet: npt.NDArray[np.int64]
    time_us: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    follows: npt.NDArray[np.bool_]
    before: Before | None

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """``uint8[N]``."""
        flags: npt.NDArray[np.uint8] = self.points["flags"]
        return flags

    @property
    def is_return(self) -> npt.NDArray[np.bool_]:
        """``bool[N]``: something came back."""
        return np.asarray((self.flags & NO_RETURN) == 0)

    @property
    def is_second(self) -> npt.NDArray[np.bool_]:
        """``bool[N]``: the second of two returns."""
        return np.asarray((self.flags & SECOND) != 0)

    @property
    def has_previous(self) -> npt.NDArray[np.bool_]:
        """``bool[N]``: the point fired before it is known."""
        known = np.ones(self.points.size, dtype=np.bool_)
        known[self.start] = self.follows
        if self.before is None and known.size:
            known[0] = False
        return known

    def previous(self, values: npt.NDArray[Any], before: Any) -> npt.NDArray[Any]:
        """``[N]``, of each point the value of the one fired before it; ``before`` for the first."""
        return np.concatenate([np.asarray([before], dtype=values.dtype), values[:-1]])

    def previous_points(self) -> npt.NDArray[Any]:
        """``POINT_DTYPE[N]``, the point fired before each; of no meaning where ``has_previous`` is False."""
        first = self.points[:1] if self.before is None else self.before.point
        return np.concatenate([first, self.points[:-1]])

    def place(self, point: int, byte: int = 0) -> Place:
        """Where byte ``byte`` of a point is."""
        packet = self.packets[int(self.packet[point])]
        return Place(packet.number, packet.frame, packet.header_size + POINT_SIZE * int(self.place_in_packet[point]) + byte)

    def end(self) -> Before:
        """What the next stretch may directly follow; there must be a point."""
        return Before(self.points[-1:].copy(), int(self.time_us[-1]))


def form_stretch(packets: list[PointPacket], follows: list[bool], before: Before | None) -> Stretch:
    """A stretch of packets that all have points."""
    parts = [np.frombuffer(packet.payload, POINT_DTYPE, offset=packet.header_size) for packet in packets]
    counts = np.array([part.size for part in parts], dtype=np.int64)
    start = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
    points = np.concatenate(parts)
    packet = np.repeat(np.arange(counts.size), counts)
    steps = np.cumsum(points["step_us"], dtype=np.int64)
    ahead = steps[start] - points["step_us"][start]  # of all steps before a packet
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
