"""Replays of a Hesai: its date and microseconds, packets that are numbered on, and where its recordings can be cut."""

from functools import cache

from hilsim.emulator.replaying import Count, CutPlace, ReplayingPart
from hilsim.emulator.retime import Retiming
from hilsim.families.hesai.protocol.points import BY_SIZE
from hilsim.families.hesai.recognition import HesaiKind
from hilsim.units import NS_PER_S


@cache
def _retiming(size: int) -> Retiming:
    """Date and microseconds of a packet of a size."""
    model, dtype = BY_SIZE[size]
    tail_at = size - dtype["tail"].itemsize
    return Retiming(
        stamp_at=tail_at + model.tail.us,
        stamps=1,
        width=4,
        unit_ns=1000,
        wrap_ns=NS_PER_S,
        calendar_at=tail_at + model.tail.utc,
        calendar_years=model.years_from,
        unset_s=model.unset_utc_s,
    )


def _cut_place(payload: bytes) -> tuple[CutPlace]:
    model, _ = BY_SIZE[len(payload)]
    at = len(model.header) + 2 * model.marks_blocks
    return (CutPlace(int.from_bytes(payload[at : at + 2], "little"), 0),)


def _count(payload: bytes) -> Count | None:
    return Count(int.from_bytes(payload[-4:], "little")) if "sequence" in (BY_SIZE[len(payload)][1]["tail"].names or ()) else None


PART = ReplayingPart(
    retimings={HesaiKind.POINTS: lambda payload: _retiming(len(payload))},
    cut_places=lambda: _cut_place,
    leap=lambda leap_cdeg: f"{leap_cdeg / 100:.2f} degrees",
    count=_count,
    counted=lambda payload, number: payload[:-4] + (number % (1 << 32)).to_bytes(4, "little"),
)
