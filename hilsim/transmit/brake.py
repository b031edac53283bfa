"""The brake of real-time loops: a loop that wakes repeatedly without time passing leaves real-time scheduling.

A loop of the packet path sleeps until an instant and relies on the sleep. Where the sleep fails (a library that fakes the clock, a sandbox that
forbids the call) the loop would spin, and under SCHED_FIFO it would block its core. The loop then continues as an ordinary thread, and that is reported.

This brake does not cover a thread that works without ever sleeping: see ``daemon.real_time_limit``.
"""

import os
from collections.abc import Callable
from enum import IntEnum

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import kernel
from hilsim.transmit.libc import monotonic_ns, sleep_until

BRAKE_WAKES = 1000
"""Consecutive wakes without time passing: about a millisecond of spinning."""

_POLICY = os.SCHED_OTHER | os.SCHED_RESET_ON_FORK


class Brake(IntEnum):
    """Columns of a brake, ``int64[8]``, written by its thread."""

    EARLY_WAKES = 0
    """Number of consecutive wakes that came too early."""
    APPLIED = 1
    """1 once the thread has left real-time scheduling."""
    ERRNO = 2
    """Error of the sleep, 0 where it only returned too early."""
    ZERO = 7
    """Always 0: a ``struct sched_param`` with no priority."""


def allocate_brake() -> npt.NDArray[np.int64]:
    """Allocate a brake that is not applied."""
    return shared_words(Brake)


def is_applied(brake: npt.NDArray[np.int64]) -> bool:
    """Whether the thread has left real-time scheduling."""
    return bool(brake[Brake.APPLIED])


def brake_reason(brake: npt.NDArray[np.int64]) -> str:
    """Reason of the brake for messages; empty while it is not applied."""
    if not is_applied(brake):
        return ""
    number = int(brake[Brake.ERRNO])
    return f"sleeping fails ({os.strerror(number)})" if number else "sleeping returns before its time"


def _set_scheduler_in_python(_thread: int, policy: int, _parameters: int) -> int:
    os.sched_setscheduler(0, policy, os.sched_param(0))
    return 0


_set_scheduler: Callable[[int, int, int], int] = (
    _set_scheduler_in_python
    if numba.config.DISABLE_JIT
    else types.ExternalFunction("sched_setscheduler", types.int32(types.int32, types.int32, types.uintp))
)


@kernel
def doze_until(wake_ns: int, brake: npt.NDArray[np.int64]) -> None:
    """Sleep until CLOCK_MONOTONIC reads ``wake_ns``; after ``BRAKE_WAKES`` consecutive failures, leave real-time scheduling permanently."""
    result = sleep_until(wake_ns)
    if result == 0 and monotonic_ns() >= wake_ns:
        brake[Brake.EARLY_WAKES] = 0
        return
    brake[Brake.EARLY_WAKES] += 1
    if brake[Brake.EARLY_WAKES] == BRAKE_WAKES and brake[Brake.APPLIED] == 0:
        brake[Brake.ERRNO] = result
        brake[Brake.APPLIED] = 1
        _set_scheduler(0, _POLICY, brake.ctypes.data + 8 * Brake.ZERO)
