"""End the daemon when another process has ended in any way: for a child that must not outlive the process that started it.

``prctl(PR_SET_PDEATHSIG)`` ends a child with the thread that made it, which may end long before its process, and knows only the parent. A pidfd
(pidfd_open(2), Linux 5.3)
becomes readable when the whole process has ended. Without pidfd, the process number is checked every half second.
"""

import os
import select
import signal
import threading
import time

from hilsim.errors import ConfigError

_LOOK_S = 0.5
_GRACE_S = 10.0
"""Time allowed for a stop, which takes a fraction of a second, or some seconds while kernels are loaded."""


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
