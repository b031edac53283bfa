"""Processes that outlive the tests that started them: a run that leaves one behind has failed, and the process is ended."""

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path

_MARK = "HILSIM_TEST_RUN"
_GRACE_S = 5.0
_OURS_UNTIL_THE_END = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


def mark():
    """Mark this process and every one that comes of it."""
    os.environ[_MARK] = uuid.uuid4().hex


def end_as_by_ctrl_c():
    """Let SIGTERM end this process as Ctrl-C does: fixtures then end what they started.

    A shell starts what it runs in the background without Ctrl-C, and so would be every process of the tests that are to be ended by it.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def leftovers():
    """Process numbers and commands of what still runs and came of this process, wherever it has been reparented to."""
    deadline_s = time.monotonic() + _GRACE_S
    while (found := _marked()) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return found


def end(found):
    """Kill them."""
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _marked():
    wanted = f"{_MARK}={os.environ[_MARK]}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            environment = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if wanted in environment and not any(each in command for each in _OURS_UNTIL_THE_END):
                found[int(folder.name)] = command
    return found
