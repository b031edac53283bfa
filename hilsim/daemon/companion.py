"""A daemon that ends when another process has ended, however that one ended: for a child that must not outlive who started it.

``prctl(PR_SET_PDEATHSIG)`` ends a child with the thread that made it, which may end long before its process, and knows only the parent. A pidfd (pidfd_open(2), Linux 5.3)
becomes readable when the whole process has ended. Where there is none, its number is looked for each half second.
"""

import os
import select
import signal
import threading
import time

from hilsim.errors import ConfigError

_LOOK_S = 0.5
_GRACE_S = 10.0
"""A stop takes a fraction of a second; kernels that are being loaded hold it up for some."""


def end_with_process(pid: int) -> None:
    """Send this process SIGTERM when another has ended, and SIGKILL if that did not do; a thread that only sleeps waits for it.

    Raises:
        ConfigError: there is no such process.
    """
    try:
        descriptor: int | None = os.pidfd_open(pid)
    except ProcessLookupError:
        raise ConfigError(f"--end-with must be the number of a process that runs, got {pid}") from None
    except (OSError, AttributeError):
        descriptor = None  # an old kernel, a sandbox, or a C library without it
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
