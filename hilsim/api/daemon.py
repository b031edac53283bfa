"""``hilsim run`` in a child process as a context manager, from its first packets to the end of the block."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from hilsim.api.child import Child, RunRequest, spawn
from hilsim.api.control import Control
from hilsim.api.metrics import Metrics, scrape
from hilsim.config.places import rig_path
from hilsim.config.toml_file import rig_table
from hilsim.config.toml_text import setting_text, toml_text
from hilsim.errors import HilsimError, TransmitError

_START_S = 900.0
"""Longest start. Compiling kernels takes a minute, on a busy machine several; a daemon that cannot start ends by itself."""
_POLL_S = 0.005
_TERMINATE_S = 10.0
_DYING_S = 0.5
_LONGEST_SOCKET_PATH = 100
_PROGRESS = ("kernels.compiling", "daemon.still_preparing")
_LAST_LINES = 12


class WrittenRig(Protocol):
    """A rig with its file and table, such as ``load_rig`` returns."""

    @property
    def path(self) -> Path:
        """Path of the rig's file, or a substitute for it."""

    @property
    def directory(self) -> Path:
        """Directory to which the rig's paths are relative."""

    @property
    def table(self) -> Mapping[str, Any]:
        """Contents of the file."""


RigLike: TypeAlias = WrittenRig | str | os.PathLike[str] | Mapping[str, Any]
"""A rig: a result of ``load_rig``, the path of a file, the name of a shipped rig (``"demo"``), or a mapping of tables with the same keys as the file."""


class DaemonError(HilsimError):
    """Error of a daemon that did not start, or has ended; the message is its output."""


@dataclass(frozen=True, kw_only=True)
class RunningSensor:
    """A sensor of a running daemon.

    Attributes:
        name: Name in the rig.
        model: Model, such as ``VLP-16``.
        source: Source IPv4 address of the packets.
        destination: Destination IPv4 address of the packets.
        ports: Destination UDP port of each flow: ``data``, and ``position`` if the model has it.
    """

    name: str
    model: str
    source: str
    destination: str
    ports: Mapping[str, int]


class Daemon:
    """``hilsim run`` as a child process: packets flow when the block begins, and the process has ended when the block is left.

    It also ends when this process ends in any way. Metrics are served at a free port and commands received at a private socket, unless the rig sets them.
    """

    def __init__(
        self,
        rig: RigLike,
        *,
        to: str | None = None,
        settings: Mapping[str, object] | None = None,
        log: str | os.PathLike[str] | None = None,
    ) -> None:
        """Prepare a daemon for a rig, without starting it.

        Args:
            rig: Result of ``load_rig``, path, name of a shipped rig, or mapping of tables, whose paths are relative to the working directory.
            to: Destination ``HOST`` or ``HOST:PORT`` of all packets, instead of the rig's.
            settings: Keys of the rig and their new values, as for ``hilsim run --set``: ``{"sensor.roof.sub_rays": 1}``.
            log: File to which the daemon's log is appended; None: the log is stored for messages while the block runs.
        """
        self._rig = rig
        self._to = to or ""
        self._settings = dict(settings or {})
        self._log = None if log is None else Path(log)
        self._heard = Heard(Path(os.devnull))
        self._stack = ExitStack()
        self._child: Child | None = None
        self._ready: dict[str, Any] = {}
        self._control: Control | None = None

    def __enter__(self) -> Self:
        """Start the daemon, and wait until packets flow.

        Raises:
            ConfigError: ``rig`` has none of these forms.
            DaemonError: the daemon ended instead; the message is its output.
        """
        with ExitStack() as stack:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hilsim-")))
            log = self._log or place / "log"
            request, self._control = self._request(place, log)
            self._heard = Heard(log)
            self._child = self._launch(request)
            stack.callback(_end, self._child)
            self._ready = self._await_ready(self._child, request.ready_file)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def pid(self) -> int:
        """Process id of the daemon."""
        return self._running.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process, negative for a signal; None while it runs."""
        return self._running.poll()

    @property
    def sensors(self) -> tuple[RunningSensor, ...]:
        """The rig's sensors, with the destinations of their packets."""
        return tuple(RunningSensor(**sensor) for sensor in self._ready["sensors"])

    @property
    def control(self) -> Control | None:
        """Client for commands to the daemon; None if the path of its private directory is too long for a socket."""
        return self._control

    def metrics(self) -> Metrics:
        """Read the present values of the metrics.

        Raises:
            DaemonError: the daemon has ended.
            TransmitError: the daemon serves no metrics.
        """
        child = self._running
        try:
            return Metrics(scrape(self._ready["metrics"]))
        except TransmitError:
            with suppress(subprocess.TimeoutExpired):  # a process closes its sockets shortly before it ends
                child.wait(_DYING_S)
                raise self._ended(child) from None
            raise

    @property
    def log(self) -> str:
        """Log of the daemon so far, one JSON object a line."""
        return self._heard.text()

    def _launch(self, request: RunRequest) -> Child:
        """Start the process."""
        return spawn(request)

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise RuntimeError("a daemon must be entered before it is used: with hilsim.Daemon(rig) as daemon")
        return self._child

    def _request(self, place: Path, log: Path) -> tuple[RunRequest, Control | None]:
        """Make the arguments of the process, and the client of its control socket."""
        path, directory, table = self._rig_file(place)
        settings = dict(self._settings)
        if "port" not in _table(table, "metrics") and "metrics.port" not in settings:
            settings["metrics.port"] = 0
        spec = _table(table, "control") | {key.removeprefix("control."): value for key, value in settings.items() if key.startswith("control.")}
        address = directory / str(spec["socket"]) if spec.get("socket") else f"udp:{spec['listen']}" if spec.get("listen") else None
        if address is None and len(os.fsencode(place / "control")) <= _LONGEST_SOCKET_PATH:
            address = place / "control"
            settings["control.socket"] = str(address)
        lines = tuple(setting_text(key, value) for key, value in settings.items())
        request = RunRequest(rig=path, directory=directory, to=self._to, settings=lines, ready_file=place / "ready.json", log=log)
        return request, None if address is None else Control(address)

    def _rig_file(self, place: Path) -> tuple[Path, Path, Mapping[str, Any]]:
        """The rig's file, the directory to which its paths are relative, and its table."""
        if isinstance(self._rig, str | os.PathLike):
            path = rig_path(os.fspath(self._rig)).absolute()
            return path, path.parent, rig_table(path)
        if isinstance(self._rig, Mapping):
            path, directory, table = place / "rig", Path.cwd(), self._rig
        else:
            path, directory, table = place / f"{self._rig.path.stem}.toml", self._rig.directory.absolute(), self._rig.table
        path.write_text(toml_text(table), encoding="utf-8")
        return path, directory, table

    def _await_ready(self, child: Child, ready_file: Path) -> dict[str, Any]:
        """Wait for the ready file; returns its contents.

        Raises:
            DaemonError: the daemon ended, or did not start in time.
        """
        until_s = time.monotonic() + _START_S
        while time.monotonic() < until_s:
            code = child.poll()  # before the check for the file, which may appear and disappear in between
            try:
                ready: dict[str, Any] = json.loads(ready_file.read_text(encoding="utf-8"))
            except FileNotFoundError:
                pass
            else:
                return ready
            if code is not None:
                raise self._ended(child)
            for line in self._heard.progress():
                sys.stderr.write(f"hilsim: {line}\n")
            time.sleep(_POLL_S)
        raise DaemonError(f"a daemon must send its first packets within {_START_S:.0f} s, got none; its output:\n{self._heard.last_words()}")

    def _ended(self, child: Child) -> DaemonError:
        code = child.poll()
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        return DaemonError(f"the daemon must run, got {how}; its output:\n{self._heard.last_words()}")


def _table(rig: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = rig.get(name, {})
    return dict(found) if isinstance(found, Mapping) else {}


def _end(child: Child) -> None:
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(_TERMINATE_S)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.wait()


class Heard:
    """Part of a log file that is written from now on.

    Attributes:
        path: Path of the file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        """Begin after the present contents of the file."""
        self.path = path
        self._begin = self._told = path.stat().st_size if path.exists() else 0

    def text(self) -> str:
        """Read the whole part."""
        return self._from(self._begin).decode(errors="replace")

    def progress(self) -> Iterator[str]:
        """Yield the steps of a slow start that have not been reported yet."""
        whole = self._from(self._told).rpartition(b"\n")
        self._told += len(whole[0]) + len(whole[1])
        for line in whole[0].splitlines():
            event = _event(line)
            if event.get("event") in _PROGRESS:
                yield " ".join(str(event[key]) for key in ("event", "step", "advice") if key in event)

    def last_words(self) -> str:
        """Messages for the operator, or else the end of the log."""
        lines = self.text().splitlines()
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return "\n".join(errors or lines[-_LAST_LINES:])

    def _from(self, at: int) -> bytes:
        if not self.path.is_file():
            return b""
        with self.path.open("rb") as reading:
            reading.seek(at)
            return reading.read()


def _event(line: bytes) -> dict[str, object]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
