"""What a family gives for replays: module ``replaying`` of its folder, with a ``PART``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hilsim.emulator.retime import NOTHING, Retiming
from hilsim.protocols.recognise import PacketKind
from hilsim.registry import family_part


class CutPlace(NamedTuple):
    """A place at which a recording may be cut.

    Attributes:
        phase: Phase of the sensor's cycle, in -18000 .. 36000 of 36000 for a turn.
        group: Group within which places fit each other.
    """

    phase: int
    group: int


class Count(NamedTuple):
    """A packet's place in a count of the sensor, which goes on at a seam.

    Attributes:
        number: Number of the packet, or of the frame that it is of.
        within: Place within the frame; 0 of a packet with a number of its own.
        serial: Serial number of the sensor; None: packets have none, and each flow counts its own.
    """

    number: int
    within: int = 0
    serial: int | None = None


def _points_of_a_frame(leap: int) -> str:
    return f"{leap} points of a frame"


@dataclass(frozen=True, kw_only=True)
class ReplayingPart:
    """Replays of one family; by default nothing is understood.

    Attributes:
        retimings: Functions by the kinds that are understood: the fields of a packet that name a time.
        cut_places: Function that begins with a sensor, and gives a function of each of its next packets of points: places in it where the recording may be cut.
        leap: Text of a difference of phases.
        cycle_ns: Function of the measured time between packets of points that gives the model's; None: packets have no cycle that stamps must keep.
        at_once: Kind of packets that leave at once, by which the delay of the others is measured.
        count: Function of a packet: its place in the sensor's count.
        counted: Function of a packet and a number: the packet with that number, modulo what its field holds.
    """

    retimings: Mapping[PacketKind, Callable[[bytes], Retiming]] = field(default_factory=dict)
    cut_places: Callable[[], Callable[[bytes], Iterable[CutPlace]]] = lambda: lambda _payload: ()
    leap: Callable[[int], str] = _points_of_a_frame
    cycle_ns: Callable[[float], float] | None = None
    at_once: PacketKind | None = None
    count: Callable[[bytes], Count | None] = lambda _payload: None
    counted: Callable[[bytes, int], bytes] = lambda payload, _number: payload


_NOTHING = ReplayingPart()


def replaying_part(kind: PacketKind) -> ReplayingPart:
    """Part of the family whose sensors send packets of a kind."""
    module = family_part(kind.facts.family, "replaying")
    part: ReplayingPart = _NOTHING if module is None else module.PART
    return part


def retiming_of(kind: PacketKind, payload: bytes) -> Retiming:
    """Fields of a packet that name a time, as far as they are understood."""
    retiming = replaying_part(kind).retimings.get(kind)
    return NOTHING if retiming is None else retiming(payload)


def has_points(kind: PacketKind) -> bool:
    """Whether packets contain measurements and a stamp, which are understood."""
    return kind.facts.is_decoded and kind in replaying_part(kind).retimings
