"""Processes forked from one that has imported what they need: ``ForkServer`` and ``Fork`` for the caller, ``serve`` for the process that forks.

Importing is most of the cost of a start. A fork has its own descriptors, signals and exit code. The server ends its forks and itself when its parent ends for any reason.

A request is a message of a SOCK_SEQPACKET socket: a JSON object, with the descriptors of standard output, standard error and a pipe. The server writes news of the
fork to the pipe, as lines of JSON: ``{"pid": 812}`` immediately, and ``{"code": 0, "used_s": 0.3}`` (processor time) at its end.
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from hilsim.errors import TransmitError

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""A process that forks must have no other threads; and building scenes does not need several."""
_PROGRAM = "import gc, sys; gc.disable(); from {} import main; main(*map(int, sys.argv[1:]))"
"""Garbage collection is off during imports, which make no garbage: it would take a tenth of the time."""
_MESSAGE_BYTES = 1 << 17
_IDLE_MS = 300
_GRACE_S = 10.0
_POLL_S = 0.02
_END_S = 20.0

__tracebackhide__ = True  # pytest leaves these frames out of a test's traceback


class ForkServer:
    """The process that forks.

    Attributes:
        used_s: Processor time of the forks whose end was seen.
    """

    def __init__(self, module: str, environment: Mapping[str, str], cwd: Path | None = None) -> None:
        """Start the process; it imports while the caller continues.

        Args:
            module: Module whose function ``main(descriptor, parent)`` calls ``serve``.
            environment: Variables of the process and its forks.
            cwd: Folder of the process.
        """
        self.used_s = 0.0
        self._owner = os.getpid()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-c", _PROGRAM.format(module), str(theirs.fileno()), str(self._owner)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=ONE_THREAD | dict(environment),
                cwd=cwd,
                process_group=0,  # Ctrl-C in the terminal is for the test run, which ends this process
            )

    @property
    def is_ours(self) -> bool:
        """Whether this process, not its parent, started the server."""
        return self._owner == os.getpid()

    @property
    def has_ended(self) -> bool:
        """Whether the server has ended."""
        return self._process.poll() is not None

    def start(self, arguments: Sequence[str], request: Mapping[str, Any], stdout: IO[Any], stderr: IO[Any]) -> "Fork":
        """Fork.

        Args:
            arguments: Command that the fork stands for.
            request: Request, values of JSON.
            stdout: Standard output of the fork.
            stderr: Standard error of the fork.

        Raises:
            TransmitError: the server has ended; its output is on standard error.
        """
        news, theirs = os.pipe()
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [stdout.fileno(), stderr.fileno(), theirs])
        except ConnectionError:
            pass  # noticed below
        finally:
            os.close(theirs)
        fork = Fork(self, arguments, news)
        if fork.pid == 0:
            raise TransmitError(f"the process that starts daemons for tests must run, got exit code {self._process.wait()}")
        return fork

    def close(self) -> None:
        """End every fork, and the server itself."""
        self._socket.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Fork:
    """A fork, with the methods of ``subprocess.Popen``.

    Attributes:
        args: Command that the fork stands for.
        pid: Process id; 0 if it could not be started.
        returncode: Exit code; None until its end was seen.
        news: Descriptor that is readable when the fork has ended.
    """

    def __init__(self, server: ForkServer, args: Sequence[str], news: int) -> None:
        self.args, self.news = args, news
        self.returncode: int | None = None
        self._server, self._heard, self._lock = server, b"", threading.Lock()
        self.pid = int((self._listen(None) or {}).get("pid", 0))

    def __del__(self) -> None:
        os.close(self.news)

    def poll(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self._result(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; returns its exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        code = self._result(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; no effect if it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _result(self, timeout_s: float | None) -> int | None:
        with self._lock:
            if self.returncode is None and (end := self._listen(timeout_s)) is not None:
                self.returncode = end["code"]
                self._server.used_s += end["used_s"]
            return self.returncode

    def _listen(self, timeout_s: float | None) -> dict[str, Any] | None:
        """The next line of news; None if there is none in time."""
        while b"\n" not in self._heard:
            waiting = select.poll()
            waiting.register(self.news, select.POLLIN)
            if not waiting.poll(None if timeout_s is None else timeout_s * 1000):
                return None
            chunk = os.read(self.news, 4096)
            if not chunk:
                return {"code": -signal.SIGKILL, "used_s": 0.0}  # the server was killed, and its forks end with it
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        news: dict[str, Any] = json.loads(line)
        return news


Work = Callable[[], int]
"""What a fork does; returns its exit code."""


def serve(descriptor: int, parent: int, prepare: Callable[[dict[str, Any]], Work], rest: Callable[[], bool] = lambda: False) -> None:
    """Fork for each request until the parent has ended or has closed its socket; then end the forks.

    Args:
        descriptor: Descriptor of the socket.
        parent: Process id of the parent.
        prepare: Function that is called with a request, before the fork.
        rest: Function that is called after 300 ms without a request; returns whether to call it again.
    """
    server = _Server(descriptor, parent, prepare)
    try:
        server.serve(rest)
    finally:
        server.close()


class _Server:
    """Reads requests, forks, and reports ended forks."""

    def __init__(self, descriptor: int, parent: int, prepare: Callable[[dict[str, Any]], Work]) -> None:
        self._requests = socket.socket(fileno=descriptor)
        self._parent = -1
        self._prepare = prepare
        self._news: dict[int, int] = {}  # pipe of each running fork
        self._woken, self._wake = os.pipe()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        with suppress(OSError, AttributeError):  # otherwise the end of the socket reveals it
            self._parent = os.pidfd_open(parent)
            self._poll.register(self._parent, select.POLLIN)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def serve(self, rest: Callable[[], bool]) -> None:
        has_rest = True
        while True:
            ready = dict(self._poll.poll(_IDLE_MS if has_rest else None))
            if self._parent in ready:
                return
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if self._requests.fileno() in ready:
                message, descriptors, _, _ = socket.recv_fds(self._requests, _MESSAGE_BYTES, 3)
                if not message:
                    return
                self._fork(json.loads(message), *descriptors)
                has_rest = True
            if not ready:
                has_rest = rest()

    def close(self) -> None:
        """End every fork."""
        until_s = time.monotonic() + _GRACE_S
        for pid in self._news:
            os.kill(pid, signal.SIGTERM)
        while self._news and time.monotonic() < until_s:
            time.sleep(_POLL_S)
            self._reap()
        for pid in self._news:
            os.kill(pid, signal.SIGKILL)

    def _fork(self, request: dict[str, Any], stdout: int, stderr: int, news: int) -> None:
        work = self._prepare(request)
        gc.freeze()  # otherwise the first collection of a fork would copy every page
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            unneeded = {self._requests.fileno(), self._woken, self._wake, news, *self._news.values()}
            _become(work, stdout, stderr, unneeded | ({self._parent} - {-1}))
        os.close(stdout)
        os.close(stderr)
        self._news[pid] = news
        _tell(news, {"pid": pid})

    def _reap(self) -> None:
        for pid in tuple(self._news):
            ended, status, used = os.wait4(pid, os.WNOHANG)
            if ended:
                news = self._news.pop(pid)
                _tell(news, {"code": os.waitstatus_to_exitcode(status), "used_s": used.ru_utime + used.ru_stime})
                os.close(news)


def _tell(news: int, what: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # it is awaited no more
        os.write(news, json.dumps(what).encode() + b"\n")


def _become(work: Work, stdout: int, stderr: int, unneeded: set[int]) -> None:
    """Do the work, and never return."""
    code = 1
    try:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for descriptor in {stdout, stderr, *unneeded}:
            os.close(descriptor)
        code = work()
    except BaseException:  # noqa: BLE001 - the top of this process: the error must be reported
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
