"""Limit on the CPU time of a real-time thread without sleeping, and handling of a thread that exceeds it.

``RLIMIT_RTTIME`` counts a thread's CPU time under SCHED_FIFO since it last slept: any sleep resets it; yielding or a sleep until the
past does not (measured, Linux 6.18). Beyond the soft limit the kernel sends SIGXCPU to the process, which kills it unless handled, and raises the
limit by a second. The hard limit, which kills unconditionally, is unchanged: the threads are made ordinary ones instead. Threads of the packet path
block all signals (``scheduling.enter``), so that this signal wakes the main thread.
"""

import contextlib
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

LONGEST_STRETCH_S = 0.5
"""Limit in seconds; filling a ring or catching up takes a tenth of this."""


@contextlib.contextmanager
def real_time_limited(exceeded: Callable[[], None]) -> Iterator[None]:
    """Limit real-time threads while the block runs.

    Args:
        exceeded: Called in the main thread, between two bytecodes, when a thread has worked for ``LONGEST_STRETCH_S`` without sleeping, and
            for each further second; it must not wait.

    Raises:
        ValueError: this is not the main thread.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    wanted = round(LONGEST_STRETCH_S * 1e6)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)

    def handle(_number: int, _frame: FrameType | None) -> None:
        exceeded()
        resource.setrlimit(resource.RLIMIT_RTTIME, (limit, hard))

    former = signal.signal(signal.SIGXCPU, handle)  # before setting the limit: unhandled, the signal kills the process
    resource.setrlimit(resource.RLIMIT_RTTIME, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))
        signal.signal(signal.SIGXCPU, former)


def leave_real_time() -> tuple[str, ...]:
    """Change all real-time threads of this process known to Python to ordinary scheduling; returns their names."""
    left = []
    for thread in threading.enumerate():
        if thread.native_id is not None and _is_real_time(thread.native_id):
            os.sched_setscheduler(thread.native_id, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
            left.append(thread.name)
    return tuple(left)


def _is_real_time(thread_id: int) -> bool:
    try:
        return os.sched_getscheduler(thread_id) & ~os.SCHED_RESET_ON_FORK in (os.SCHED_FIFO, os.SCHED_RR)
    except ProcessLookupError:  # the thread has ended meanwhile
        return False
