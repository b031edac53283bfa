"""Daemons for tests, forked from one warm process (``starter``): the first start of a run costs the imports, the others a fraction of a second."""

import atexit
import os
import threading

from hilsim.api.child import OF_THE_SERVICE_MANAGER, Child, RunRequest
from hilsim.testing.forks import ForkServer

__tracebackhide__ = True  # pytest leaves these frames out of a test's traceback

_lock = threading.Lock()
_shared: list[ForkServer] = []
_left: list[ForkServer] = []
"""Servers of the parent process, or ended ones: kept, because this process must not wait for them."""


def launch(request: RunRequest) -> Child:
    """Fork a daemon.

    Raises:
        TransmitError: the warm process has ended; its output is on standard error.
    """
    paths = {name: str(getattr(request, name)) for name in ("rig", "directory", "ready_file")}
    request.log.touch(mode=0o600)
    with request.log.open("ab") as log:
        return warm_starter().start(["hilsim", "run"], {**paths, "to": request.to, "settings": request.settings}, log, log)


def warm_starter() -> ForkServer:
    """The fork server of this process, started now if there is none."""
    with _lock:
        if _shared and (not _shared[0].is_ours or _shared[0].has_ended):  # this process is a fork itself, or the server was killed
            _left.append(_shared.pop())
        if not _shared:
            environment = {name: value for name, value in os.environ.items() if name not in OF_THE_SERVICE_MANAGER}
            _shared.append(ForkServer("hilsim.testing.starter", environment))
        return _shared[0]


@atexit.register
def close_warm_starter() -> None:
    """End the fork server, and every daemon forked from it."""
    with _lock:
        if _shared and _shared[0].is_ours:
            _shared.pop().close()
