"""The host's two clocks, read as one."""

import time

_TRIES = 5
_CLOSE_NS = 20_000


def utc_ahead_ns() -> int:
    """UTC minus CLOCK_MONOTONIC, in nanoseconds; a step of UTC alone changes it.

    Read between two looks at the monotonic clock: of five tries the one whose looks are nearest, so that a thread that is held up in between does not look like a step.
    """
    best_ns, ahead_ns = None, 0
    for _ in range(_TRIES):
        before_ns = time.monotonic_ns()
        utc_ns = time.time_ns()
        after_ns = time.monotonic_ns()
        if best_ns is None or after_ns - before_ns < best_ns:
            best_ns, ahead_ns = after_ns - before_ns, utc_ns - (before_ns + after_ns) // 2
        if best_ns < _CLOSE_NS:
            break
    return ahead_ns
