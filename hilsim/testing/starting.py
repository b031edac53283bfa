"""Daemons for tests, forked from one warm process (``starter``): the first start of a run costs what importing costs, the others a fraction of a second."""

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
"""A process that forks must have no threads beside; and scenes are no work for several."""
_STARTER = "import gc, sys; gc.disable(); from hilsim.testing.starter import main; main(int(sys.argv[1]))"
"""Importing makes no garbage: to look for some took a tenth of it. What the process makes stays; a daemon collects its own once its packets flow."""
_POLL_S = 0.01
_END_S = 15.0


class WarmStarter:
    """The process that daemons are forked from."""

    def __init__(self) -> None:
        """Start it; it imports while the caller goes on."""
        environment = {name: value for name, value in os.environ.items() if name not in OF_THE_SERVICE_MANAGER}
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", _STARTER, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_ONE_THREAD | environment,
            process_group=0,  # Ctrl-C on our terminal is for us, and we end it
        )
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._codes: dict[int, int] = {}
        self._begun: dict[int, int] = {}
        self._requests = 0
        self._heard = b""

    @property
    def has_ended(self) -> bool:
        """Whether it is of no use any more."""
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
        """Exit code of a daemon; None while it runs. Looks for news so long."""
        until_s = time.monotonic() + timeout_s
        while True:
            with self._lock:
                has_news = self._listen(min(timeout_s, _POLL_S)) if pid not in self._codes else True
                if pid in self._codes:
                    return self._codes[pid]
            if not has_news:
                return -signal.SIGKILL  # a daemon ends with the process that it was forked from
            if time.monotonic() >= until_s:
                return None

    def send_signal(self, pid: int, number: int) -> None:
        """Signal a daemon; nothing where it has ended."""
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
            pass  # its end is noticed where an answer is waited for

    def _listen(self, timeout_s: float | None) -> bool:
        """Take what it has answered, waiting so long for something; False when it has ended."""
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
    """A daemon that was forked."""

    def __init__(self, starter: WarmStarter, pid: int) -> None:
        self.pid = pid
        self._starter = starter
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self._code is None:
            self._code = self._starter.code(self.pid, 0.0)
        return self._code

    def send_signal(self, number: int) -> None:
        """Signal it; nothing where it has ended."""
        if self.poll() is None:
            self._starter.send_signal(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended.

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
"""Of the process that we were forked from, or ended: kept, for they are not ours to wait for."""


def warm_starter() -> WarmStarter:
    """This process's own; started now where there is none."""
    with _lock:
        if _shared and (_shared[0].owner != os.getpid() or _shared[0].has_ended):  # we are a fork ourselves, or it was killed
            _left.append(_shared.pop())
        if not _shared:
            _shared.append(WarmStarter())
        return _shared[0]


@atexit.register
def close_warm_starter() -> None:
    """End it, and every daemon that was forked from it."""
    with _lock:
        if _shared and _shared[0].owner == os.getpid():
            _shared.pop().close()
