"""Mapping of a sender's clock to rig time: the fastest message of the last two seconds counts as sent when it arrived.

The difference of arrival and stamp is the offset of the clocks plus the time on the way, which is never below its least value: the least difference of a
window is followed, by at most 50 ppm, so that jitter does not move the mapping. Clocks of two machines drift apart by less than that.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import kernel

SETTLING_NS = 500_000_000
"""Time from the first message during which the mapping follows the fastest message at once, and no pose is followed."""
JUMP_NS = 1_000_000_000
"""Lateness of a message above which the sender's clock has been set."""
FASTER_NS = 20_000_000
"""Time by which a message is faster than the fastest so far above which the mapping is wrong: it began with messages that had waited."""
SLOWER_NS = 20_000_000
"""Time by which messages come later than expected above which the sender's clock has been set back, or has paused, if all of ``SLOW_NS`` do."""
SLOW_NS = 2_000_000_000
_BUCKETS = 8
_BUCKET_NS = 250_000_000
_SLEW_DIVISOR = 20_000  # 50 ppm
_LONGEST_STEP_NS = 100_000_000
"""Time for which one message may adjust the mapping: the first one after a silence says little."""


class ClockWord(IntEnum):
    """Columns of the mapping's words; those of the buckets follow."""

    HAS_BEGUN = 0
    BEGUN_NS = 1
    OFFSET_NS = 2
    ADJUSTED_NS = 3
    BUCKET = 4
    LEAST = 5
    LAST = LEAST + _BUCKETS - 1
    SLOW_FROM_NS = LAST + 1
    """Rig time since which every message has come too late, 0 without."""


_HAS_BEGUN, _BEGUN, _OFFSET, _ADJUSTED, _BUCKET, _LEAST = (
    int(word) for word in (ClockWord.HAS_BEGUN, ClockWord.BEGUN_NS, ClockWord.OFFSET_NS, ClockWord.ADJUSTED_NS, ClockWord.BUCKET, ClockWord.LEAST)
)
_SLOW_FROM = int(ClockWord.SLOW_FROM_NS)


def build_clock() -> npt.NDArray[np.int64]:
    """Words of a mapping that has not begun."""
    return shared_words(ClockWord)


@kernel
def restart_clock(words: npt.NDArray[np.int64]) -> None:
    """Forget the mapping; the next message begins another one."""
    words[_HAS_BEGUN] = 0


@kernel
def is_settled(words: npt.NDArray[np.int64], arrival_ns: int) -> bool:
    """Whether the mapping is exact enough for poses to be followed."""
    return bool(words[_HAS_BEGUN] != 0 and arrival_ns - words[_BEGUN] >= SETTLING_NS)


@kernel
def has_jumped(words: npt.NDArray[np.int64], stamp_ns: int, arrival_ns: int) -> bool:
    """Whether a stamp is so far from the mapping that another one must begin: the clock was set, or the first messages had waited."""
    late_ns = arrival_ns - stamp_ns - words[_OFFSET]
    return bool(words[_HAS_BEGUN] != 0 and (late_ns > JUMP_NS or (late_ns < -FASTER_NS and is_settled(words, arrival_ns)) or late_ns < -JUMP_NS))


@kernel
def has_slowed(words: npt.NDArray[np.int64], stamp_ns: int, arrival_ns: int) -> bool:
    """Whether this message and all of two seconds came so late that the sender's clock must have been set back, or must have paused."""
    if words[_HAS_BEGUN] == 0 or arrival_ns - stamp_ns - words[_OFFSET] <= SLOWER_NS:
        words[_SLOW_FROM] = 0
        return False
    if words[_SLOW_FROM] == 0:
        words[_SLOW_FROM] = arrival_ns
    return bool(arrival_ns - words[_SLOW_FROM] > SLOW_NS)


@kernel
def note_arrival(words: npt.NDArray[np.int64], stamp_ns: int, arrival_ns: int) -> int:
    """Rig time of a stamp.

    Args:
        words: Words of the mapping.
        stamp_ns: Time on the sender's clock.
        arrival_ns: Rig time of the message's arrival, not before that of the message before.
    """
    difference = arrival_ns - stamp_ns
    bucket = arrival_ns // _BUCKET_NS
    if words[_HAS_BEGUN] == 0:
        words[_HAS_BEGUN] = 1
        words[_BEGUN] = arrival_ns
        words[_OFFSET] = difference
        words[_ADJUSTED] = arrival_ns
        words[_BUCKET] = bucket
        for row in range(_BUCKETS):
            words[_LEAST + row] = difference
    passed = bucket - words[_BUCKET]
    if passed > 0:
        passed = min(passed, _BUCKETS)
        for step in range(passed):
            words[_LEAST + (bucket - step) % _BUCKETS] = difference
        words[_BUCKET] = bucket
    row = _LEAST + bucket % _BUCKETS
    words[row] = min(words[row], difference)
    least = words[_LEAST]
    for other in range(1, _BUCKETS):
        least = min(least, words[_LEAST + other])
    away = least - words[_OFFSET]
    if arrival_ns - words[_BEGUN] >= SETTLING_NS:
        most = min(arrival_ns - words[_ADJUSTED], _LONGEST_STEP_NS) // _SLEW_DIVISOR
        away = min(max(away, -most), most)
        if most > 0:
            words[_ADJUSTED] = arrival_ns
    else:
        words[_ADJUSTED] = arrival_ns
    words[_OFFSET] += away
    time_ns: int = stamp_ns + words[_OFFSET]
    return time_ns
