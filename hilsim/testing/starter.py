"""A process that has imported the daemon and loaded its kernels, and forks a daemon when a test requests a sensor.

Importing and loading are most of the cost of a daemon's start; a fork of this process has them already. There is one such process per test run (a worker of pytest-xdist is a run),
started with the first sensor or a little earlier. When its parent ends for any reason, it ends its daemons, removes their files, and ends itself.
``starting`` is its counterpart in the parent.

It reads requests from standard input and writes answers to standard output, one JSON object per line:

==============================================  ==================================================
request                                         answer
==============================================  ==================================================
``{"number": 7, "rig": …, "directory": …, …}``  ``{"number": 7, "pid": 812}`` of the daemon, immediately
``{"signal": 15, "pid": 812}``                  none; no effect if it has ended
                                                ``{"ended": 812, "code": 0}``, when a daemon has ended
==============================================  ==================================================
"""

import asyncio
import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilsim.api.child import RunRequest
from hilsim.assembly.rig_sources import MadeRig, RigFile, RigSource
from hilsim.compilation.cache import cache_directory
from hilsim.config.changes import Changes
from hilsim.config.rig import Rig, rig_of_table
from hilsim.daemon.precompile import is_compiled, kernel_needs
from hilsim.daemon.ready_file import ReadyFile
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.service import Console, serve
from hilsim.errors import HilsimError
from hilsim.processes import end_with_process
from hilsim.telemetry.logs import configure_logging
from hilsim.testing.sensor_rig import sensor_rig

if TYPE_CHECKING:
    from collections.abc import Callable

_IDLE_MS = 300
_GRACE_S = 10.0
_POLL_S = 0.02


class Starter:
    """Reads requests, forks, and reports ended daemons."""

    def __init__(self, parent: int) -> None:
        """Serve the process with this id."""
        self._running: dict[int, RunRequest] = {}
        self._asked: set[tuple[str, ...]] = set()
        self._rehearsed: set[tuple[str, ...]] = set()
        self._unrehearsed: list[Callable[[], Rig]] = [_usual_rig]  # made while there is no request
        self._heard = b""
        self._woken, self._wake = os.pipe()
        self._poll = select.poll()
        self._poll.register(0, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        with suppress(OSError, AttributeError):  # otherwise the end of standard input reveals it
            self._poll.register(os.pidfd_open(parent), select.POLLIN)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve until the parent has ended, or closes standard input."""
        while True:
            ready = dict(self._poll.poll(_IDLE_MS if self._unrehearsed else None))
            if ready.keys() - {0, self._woken}:
                return
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if 0 in ready:
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, self._heard = (self._heard + chunk).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
            if not ready and all(request.ready_file.exists() for request in self._running.values()):
                self._rehearse(self._unrehearsed.pop()())

    def close(self) -> None:
        """End every daemon, and remove files that their parent, which has ended too, cannot remove."""
        left = dict(self._running)
        until_s = time.monotonic() + _GRACE_S
        for pid in self._running:
            os.kill(pid, signal.SIGTERM)
        while self._running and time.monotonic() < until_s:
            time.sleep(_POLL_S)
            self._reap()
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
        for request in left.values():
            shutil.rmtree(request.ready_file.parent, ignore_errors=True)

    def _obey(self, asked: dict[str, Any]) -> None:
        if "signal" in asked:
            if asked["pid"] in self._running:
                os.kill(asked["pid"], asked["signal"])
            return
        paths = {name: Path(asked[name]) for name in ("rig", "directory", "ready_file", "log")}
        request = RunRequest(to=asked["to"], settings=tuple(asked["settings"]), **paths)
        server, source = os.getpid(), self._made_ready(request)
        gc.freeze()  # otherwise the first collection of a daemon would copy every page
        pid = os.fork()
        if pid == 0:
            _become(request, source, server)
        self._running[pid] = request
        _tell({"number": asked["number"], "pid": pid})

    def _reap(self) -> None:
        for pid in tuple(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._running[pid]
                _tell({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _made_ready(self, request: RunRequest) -> RigSource:
        """Rig of a daemon; from the second one of its kind on, its kernels are loaded before the fork, because more may follow."""
        source = RigFile(path=request.rig, directory=request.directory, changes=Changes(to=request.to, settings=request.settings))
        try:
            rig = source.load()
        except HilsimError:
            return source  # the daemon reports the error
        needs = kernel_needs(rig)
        if needs in self._asked and needs not in self._rehearsed:
            self._rehearse(rig)
        elif needs not in self._rehearsed:
            self._unrehearsed.append(lambda: rig)
        self._asked.add(needs)
        return MadeRig(rig=rig)

    def _rehearse(self, rig: Rig) -> None:
        """Load the kernels for such a rig, so that forks have them; none is compiled here."""
        # Imports of a daemon that serves metrics; not before the first daemon, which is being waited for.
        importlib.import_module("hilsim.telemetry.server")
        needs = kernel_needs(rig)
        if needs not in self._rehearsed and cache_directory() is not None and is_compiled(rig):
            self._rehearsed.add(needs)
            with suppress(HilsimError):
                RunningRig(rig=rig).rehearse()


def _usual_rig() -> Rig:
    """Rig that most tests request. No file is written: a rehearsal opens none."""
    usual = sensor_rig("vlp16", "room", name="usual", keys={}, tables={"record": {"file": str(Path(tempfile.gettempdir(), "usual.pcap"))}})
    return rig_of_table(usual.table, usual.path)


def _become(request: RunRequest, source: RigSource, server: int) -> None:
    """Become the daemon, and never return."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(request.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for kept, descriptor in enumerate((nothing, log, log)):
            os.dup2(descriptor, kept)
        code = _run(request, source, server)
    except BaseException:  # noqa: BLE001 - the top of this process: the error must be reported
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run(request: RunRequest, source: RigSource, server: int) -> int:
    """Run as ``hilsim run`` does; returns its exit code."""
    end_with_process(server)
    configure_logging()
    try:
        with ReadyFile(path=request.ready_file).kept() as ready:
            return asyncio.run(serve(source, ready.console(Console()))).exit_code
    except HilsimError as error:
        sys.stderr.write("".join(f"error: {line}\n" for line in str(error).split("\n")))
        return 1


def _tell(answer: dict[str, Any]) -> None:
    with suppress(OSError):  # the parent has ended
        os.write(1, json.dumps(answer).encode() + b"\n")


def main(parent: int) -> None:
    """Main function of the process."""
    starter = Starter(parent)
    try:
        starter.serve()
    finally:
        starter.close()
    os._exit(0)
