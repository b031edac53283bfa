"""Daemons for tests, forked from one warm process (``starter``): the first start of a run costs the imports, the others a fraction of a second."""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from hilsim.api.child import OF_THE_SERVICE_MANAGER, Child, RunRequest
from hilsim.errors import TransmitError

_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""A process that forks must have no other threads; and building scenes does not need several."""
_STARTER = "import gc, sys; gc.disable(); from hilsim.testing.starter import main; main(int(sys.argv[1]))"
"""Garbage collection is off during imports, which make no garbage: it would take a tenth of the time. A daemon collects its own garbage once its packets flow."""
_POLL_S = 0.01
_END_S = 15.0

__tracebackhide__ = True  # pytest leaves these frames out of a test's traceback


class WarmStarter:
    """The process from which daemons are forked."""

    def __init__(self) -> None:
        """Start the process; it imports while the caller continues."""
        environment = {name: value for name, value in os.environ.items() if name not in OF_THE_SERVICE_MANAGER}
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", _STARTER, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_ONE_THREAD | environment,
            process_group=0,  # Ctrl-C in the terminal is for the test run, which ends this process
        )
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._codes: dict[int, int] = {}
        self._begun: dict[int, int] = {}
        self._requests = 0
        self._heard = b""

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def launch(self, request: RunRequest) -> Child:
        """Fork a daemon.

        Raises:
            TransmitError: the process has ended; its output is on standard error.
        """
        request.log.touch(mode=0o600)
        paths = {name: str(getattr(request, name)) for name in ("rig", "directory", "ready_file", "log")}
        with self._lock:
            self._requests += 1
            number = self._requests
            self._ask({"number": number, **paths, "to": request.to, "settings": request.settings})
            while number not in self._begun:
                if not self._listen(None):
                    raise TransmitError(f"the process that starts daemons for tests must run, got exit code {self._process.wait()}")
            return _Forked(self, self._begun.pop(number))

    def code(self, pid: int, timeout_s: float) -> int | None:
        """Exit code of a daemon; None while it runs. Blocks until the process exits or the timeout expires."""
        until_s = time.monotonic() + timeout_s
        while True:
            with self._lock:
                has_news = self._listen(min(timeout_s, _POLL_S)) if pid not in self._codes else True
                if pid in self._codes:
                    return self._codes[pid]
            if not has_news:
                return -signal.SIGKILL  # a daemon ends with its parent
            if time.monotonic() >= until_s:
                return None

    def send_signal(self, pid: int, number: int) -> None:
        """Send a signal to a daemon; no effect if it has ended."""
        with self._lock:
            self._ask({"signal": int(number), "pid": pid})

    def close(self) -> None:
        """End every daemon, and the process itself."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, asked: dict[str, Any]) -> None:
        if self._process.stdin is None:
            raise AssertionError("the process was started with a pipe")
        try:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its end is noticed while waiting for an answer

    def _listen(self, timeout_s: float | None) -> bool:
        """Read its answers, waiting up to ``timeout_s`` for one; False when it has ended."""
        if self._process.stdout is None:
            raise AssertionError("the process was started with a pipe")
        waiting = select.poll()
        waiting.register(self._process.stdout, select.POLLIN)
        if not waiting.poll(None if timeout_s is None else timeout_s * 1000):
            return True
        chunk = os.read(self._process.stdout.fileno(), 1 << 16)
        *lines, self._heard = (self._heard + chunk).split(b"\n")
        for answer in map(json.loads, lines):
            if "ended" in answer:
                self._codes[answer["ended"]] = answer["code"]
            else:
                self._begun[answer["number"]] = answer["pid"]
        return bool(chunk)


class _Forked:
    """A forked daemon."""

    def __init__(self, starter: WarmStarter, pid: int) -> None:
        self.pid = pid
        self._starter = starter
        self._code: int | None = None

    def poll(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        if self._code is None:
            self._code = self._starter.code(self.pid, 0.0)
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal to the daemon; no effect if it has ended."""
        if self.poll() is None:
            self._starter.send_signal(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the daemon; returns its exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        until_s = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if until_s is not None and time.monotonic() >= until_s:
                raise subprocess.TimeoutExpired("hilsim run", timeout or 0.0)
            self._code = self._starter.code(self.pid, _POLL_S)
        return self._code if self._code is not None else 0


_lock = threading.Lock()
_shared: list[WarmStarter] = []
_left: list[WarmStarter] = []
"""Starters of the parent process, or ended ones: kept, because this process must not wait for them."""


def warm_starter() -> WarmStarter:
    """The starter of this process, started now if there is none."""
    with _lock:
        if _shared and (_shared[0].owner != os.getpid() or _shared[0].has_ended):  # this process is a fork itself, or the starter was killed
            _left.append(_shared.pop())
        if not _shared:
            _shared.append(WarmStarter())
        return _shared[0]


@atexit.register
def close_warm_starter() -> None:
    """End the starter, and every daemon forked from it."""
    with _lock:
        if _shared and _shared[0].owner == os.getpid():
            _shared.pop().close()
