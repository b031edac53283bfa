"""Processes that end with another process, however that ends.

``prctl(PR_SET_PDEATHSIG)`` ends a child with the thread that made it, and knows only the parent: it is for children of a pool and of a compiler.
A pidfd (pidfd_open(2), Linux 5.3) becomes readable when any whole process has ended; without it, the process number is checked every half second.
"""

import ctypes
import multiprocessing
import os
import select
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor

from hilsim.errors import ConfigError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LOOK_S = 0.5
_GRACE_S = 10.0
"""Time allowed for a stop, which takes a fraction of a second, or some seconds while kernels are loaded."""


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends in any way, and end at once if that has happened."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the line above
        os._exit(1)


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Pool of new processes, which are independent of this one's threads and end with it."""
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent, initargs=(os.getpid(),))


def end_with_process(pid: int) -> None:
    """Start a thread that sends this process SIGTERM when another process has ended, and SIGKILL if SIGTERM had no effect.

    Raises:
        ConfigError: no such process exists.
    """
    try:
        descriptor: int | None = os.pidfd_open(pid)
    except ProcessLookupError:
        raise ConfigError(f"--end-with must be the number of a running process, got {pid}") from None
    except (OSError, AttributeError):
        descriptor = None  # an old kernel, a sandbox, or a C library without pidfd
    threading.Thread(target=_end, args=(pid, descriptor), name="end-with", daemon=True).start()


def _end(pid: int, descriptor: int | None) -> None:
    if descriptor is None:
        while _is_there(pid):
            time.sleep(_LOOK_S)
    else:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        waiting.poll()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
