"""Replays of a Hesai: its date and microseconds, packets that are numbered on, and where its recordings can be cut."""

from functools import cache

from hilsim.emulator.replaying import Count, CutPlace, ReplayingPart
from hilsim.emulator.retime import Retiming
from hilsim.families.hesai.protocol.points import HEADER_SIZE, MICROSECONDS_AT, SEQUENCE_AT, TAIL_SIZE, UTC_AT
from hilsim.families.hesai.recognition import HesaiKind
from hilsim.units import NS_PER_S

_NUMBER = slice(SEQUENCE_AT - TAIL_SIZE, None)


@cache
def _retiming(size: int) -> Retiming:
    """Date and microseconds of a packet of a size."""
    tail_at = size - TAIL_SIZE
    return Retiming(stamp_at=tail_at + MICROSECONDS_AT, stamps=1, width=4, unit_ns=1000, wrap_ns=NS_PER_S, calendar_at=tail_at + UTC_AT)


PART = ReplayingPart(
    retimings={HesaiKind.POINTS: lambda payload: _retiming(len(payload))},
    cut_places=lambda: lambda payload: (CutPlace(int.from_bytes(payload[HEADER_SIZE : HEADER_SIZE + 2], "little"), 0),),
    leap=lambda leap_cdeg: f"{leap_cdeg / 100:.2f} degrees",
    count=lambda payload: Count(int.from_bytes(payload[_NUMBER], "little")),
    counted=lambda payload, number: payload[: _NUMBER.start] + (number % (1 << 32)).to_bytes(4, "little"),
)
