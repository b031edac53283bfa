"""Prevention of swapping of the process's memory, where permitted."""

import ctypes
import os
import resource
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path


class _LockFlag(IntFlag):
    """mlockall(2), Linux."""

    CURRENT = 1
    FUTURE = 2
    ONFAULT = 4
    """Lock pages on first use; without it the compiler's reserved maps more than double resident memory."""


_CAP_IPC_LOCK = 14


@dataclass(frozen=True, kw_only=True)
class MemoryLock:
    """Whether memory is locked, and the reason if not."""

    locked: bool
    reason: str


def lock_memory() -> MemoryLock:
    """Lock all current and future pages of the process.

    It is attempted only without a limit: under a limit, ``MCL_FUTURE`` would make some later allocation fail instead.
    """
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY and not _has_capability(_CAP_IPC_LOCK):
        return MemoryLock(locked=False, reason=f"the limit of locked memory is {soft} bytes: grant CAP_IPC_LOCK or LimitMEMLOCK=infinity")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(int(_LockFlag.CURRENT | _LockFlag.FUTURE | _LockFlag.ONFAULT)) != 0:
        return MemoryLock(locked=False, reason=f"mlockall: {os.strerror(ctypes.get_errno())}")
    return MemoryLock(locked=True, reason="")


def unlock_memory() -> None:
    """Undo ``lock_memory``."""
    ctypes.CDLL(None).munlockall()


def _has_capability(number: int) -> bool:
    """Whether this thread has an effective capability (proc(5))."""
    try:
        status = Path("/proc/thread-self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> number & 1)
