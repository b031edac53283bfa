"""Replays of a Livox: its stamps and checksums, and packets that are numbered on; a pattern that never repeats can be cut anywhere."""

from functools import cache

from hilsim.emulator.replaying import Count, CutPlace, ReplayingPart
from hilsim.emulator.retime import Retiming
from hilsim.families.livox.protocol.points import CRC_AT, NUMBER_AT, STAMP_AT
from hilsim.families.livox.recognition import LivoxKind

_ANYWHERE = (CutPlace(0, 0),)


@cache
def _retiming(size: int) -> Retiming:
    """Stamp and CRC of a packet of a size."""
    return Retiming(stamp_at=STAMP_AT, stamps=1, crc32_at=CRC_AT, crc32_end=size)


PART = ReplayingPart(
    retimings={kind: lambda payload: _retiming(len(payload)) for kind in (LivoxKind.POINTS, LivoxKind.IMU)},
    cut_places=lambda: lambda _payload: _ANYWHERE,
    at_once=LivoxKind.IMU,
    count=lambda payload: Count(int.from_bytes(payload[NUMBER_AT : NUMBER_AT + 2], "little")),
    counted=lambda payload, number: payload[:NUMBER_AT] + (number % (1 << 16)).to_bytes(2, "little") + payload[NUMBER_AT + 2 :],
)
