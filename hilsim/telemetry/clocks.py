"""Difference of the host's two clocks."""

import time

_TRIES = 5
_CLOSE_NS = 20_000


def utc_ahead_ns() -> int:
    """UTC minus CLOCK_MONOTONIC, in nanoseconds; a step of UTC alone changes it.

    UTC is read between two reads of the monotonic clock: of five attempts the one with the smallest interval is used, so that a delayed thread does not look like a clock step.
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
