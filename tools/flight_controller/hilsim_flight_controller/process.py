"""The scripted flight controller for tests: a child process, which neither the GIL nor garbage collection of the tests can delay."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

from hilsim.errors import HilsimError, LinkError, require
from hilsim_flight_controller.flight_report import Event, Fault, FlightReport, read_report
from hilsim_flight_controller.heard import Heard
from hilsim_flight_controller.link_names import is_link, option_of

Script = Literal["idle", "hop", "hover", "tour"]
_START_S, _END_S = 60.0, 15.0
_SHOWN = 8
_LINE_FAULT = 2
"""Exit status of a program that cannot open its line."""


class FlightError(HilsimError):
    """An expected event did not occur; the message contains the controller's last events and the faults it found."""


class FlightController:
    """A flight controller that flies a vehicle over MAVLink by the sensors of the simulator at its link, and checks the simulator against PX4's rules.

    A context manager: its child process starts and ends with the block, however the block ends.
    Events and faults can be read at any time; times are seconds on the controller's clock, 0 at its start.

    ::

        with FlightController(link="pty", script="hover") as controller:
            bridge = start_my_bridge(controller.port)
            report = controller.wait_done()
        assert not report.faults, str(report)

    Args:
        link: ``pty`` (a pty of its own), ``pty:PATH`` (with a link to it at a path), ``serial:DEVICE``, ``tcp`` or ``tcp:HOST:PORT`` (it connects there, as PX4's
            simulator link does, repeatedly until a process listens; by default a free port of the loopback interface), ``udp`` or
            ``udp:HOST:PORT`` (it listens there).
        script: Script: ``hop`` (climb to 2 m, land), ``hover`` (climb to 5 m, ten seconds there, land), ``tour`` (enough motion to check every unit),
            ``idle`` (no actions: a ground station commands).
        lockstep: Whether its clock is HIL_SENSOR.time_usec, and it answers each; over TCP only.
        linux: Whether it is PX4 built for Linux, on a serial line: it sends at once, and a reboot leaves the cable connected.
        hil: Whether its HEARTBEAT has the HIL flag.
        armed: Whether it is armed from the start.
        newer: Whether actuators are as after PX4 1.12.
        parameters: Additional parameters; a ``float`` is one of PX4's floats, an ``int`` one of its integers.
        ground_systems: System ids of ground stations, whose frames must arrive unchanged.
        boot_s: Time from power-up to its first check of the port.
        limit_s: Time limit in seconds from its start.

    Raises:
        ValueError: an argument violates a rule.
    """

    def __init__(
        self,
        *,
        link: str = "pty",
        script: Script = "hover",
        lockstep: bool = False,
        linux: bool = False,
        hil: bool = True,
        armed: bool = False,
        newer: bool = False,
        parameters: Mapping[str, float] | None = None,
        ground_systems: Sequence[int] = (255,),
        boot_s: float = 0.0,
        limit_s: float = 600.0,
    ) -> None:
        require(
            (
                is_link(link),
                f"link must be pty, pty:PATH, serial:DEVICE, tcp, tcp:HOST:PORT, udp or udp:HOST:PORT, got {link!r}",
            ),
            (script in get_args(Script), f"script must be one of {', '.join(get_args(Script))}, got {script!r}"),
            (link.startswith("tcp") or not lockstep, f"lockstep must go with a tcp link, got {link!r}"),
            (limit_s > 0.0, f"limit_s must be above 0, got {limit_s:g}"),
        )
        self.script = script
        self._link = link
        self._arguments = ["--script", script, "--for", str(limit_s), "--heartbeat-after", str(boot_s)]
        flags = (("--lockstep", lockstep), ("--linux", linux), ("--no-hil", not hil), ("--armed", armed), ("--newer", newer))
        self._arguments += [flag for flag, is_set in flags if is_set]
        for name, value in (parameters or {}).items():
            self._arguments += ["--parameter", f"{name}={value}"]
        for system in ground_systems:
            self._arguments += ["--ground-system", str(system)]
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = Heard()
        self._last: FlightReport | None = None
        self._asked = 0

    def __enter__(self) -> Self:
        """Start the process, and wait until it has opened its line.

        Raises:
            LinkError: the line cannot be opened.
        """
        self._heard, self._last, self._asked = Heard(), None, 0
        self._directory = tempfile.TemporaryDirectory(prefix="hilsim-flight-controller-")
        try:
            self._start(Path(self._directory.name))
            self._await(lambda: self._heard.port is not None, "open its line", _START_S)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the process; its report remains."""
        self._end()

    @property
    def port(self) -> str:
        """Address for the simulator: the path of a pty or a device to open, ``HOST:PORT`` to listen at (tcp), or to send to (udp)."""
        return self._heard.port or ""

    @property
    def events(self) -> tuple[Event, ...]:
        """Events so far."""
        return tuple(self._heard.events)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Faults of the simulator found so far, the first 20 of each rule."""
        return tuple(self._heard.faults)

    def wait_for(self, text: str, timeout_s: float = 60.0) -> Event:
        """Wait for an event, such as ``airborne`` or ``touchdown``; returns the first.

        Raises:
            FlightError: it did not occur in this time, or the controller has ended without it.
        """
        self._await(lambda: any(event.text == text for event in self.events), f"report {text!r}", timeout_s)
        return next(event for event in self.events if event.text == text)

    def wait_armed(self, timeout_s: float = 60.0) -> Event:
        """Wait until it has armed: it has an attitude and a position, and rejects none of the simulator's sensors.

        Raises:
            FlightError: it did not arm in this time, or the controller has ended without arming.
        """
        return self.wait_for("armed", timeout_s)

    def wait_done(self, timeout_s: float = 120.0) -> FlightReport:
        """Wait until its script is done and it has ended; the longest takes a minute. Returns its report.

        Raises:
            FlightError: it was not done in this time, or the controller has ended early.
            ValueError: the script is ``idle``, which has no end.
        """
        require((self.script != "idle", "script must have an end to be waited for, got 'idle'"))
        self.wait_for("done", timeout_s)
        self._await(lambda: self._heard.is_closed, "end", _END_S)
        return self.report()

    def reboot(self, out_s: float = 1.0) -> None:
        """Power-cycle the controller: all state is lost; its cable is disconnected for ``out_s`` (on Linux it does not run for that time, and on a serial device the cable stays connected)."""
        self._say(f"reboot {out_s}")

    def pull_cable(self, out_s: float = 1.0) -> None:
        """Disconnect its cable for ``out_s``: a pty's device is removed meanwhile, a connection closed."""
        self._say(f"cable-out {out_s}")

    def babble(self) -> None:
        """Make it send noise that contains starts of frames."""
        self._say("garbage 0")

    def report(self) -> FlightReport:
        """Report so far; the complete one once it has ended.

        Raises:
            FlightError: there is no report: it was never started, or its process has failed.
        """
        if self._last is not None:
            return self._last
        if self._directory is None:
            message = "a flight controller must have been started to have a report"
            raise FlightError(message)
        if not self._heard.is_closed:
            self._asked += 1
            self._say(f"report {self._asked}")
            self._await(lambda: self._heard.reported >= self._asked or self._heard.is_closed, "report", _END_S)
        return read_report(Path(self._directory.name) / "report.json")

    def _start(self, directory: Path) -> None:
        command = [sys.executable, "-P", "-m", "hilsim_flight_controller", "--follow", "--report", str(directory / "report.json")]
        command += [*option_of(self._link, directory), *self._arguments]
        with (directory / "stderr").open("wb") as stderr:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)  # noqa: S603 - our own program
        self._heard.follow(self._process)

    def _say(self, line: str) -> None:
        """Send a line to the child; ignored if it has ended."""
        if self._process is not None and self._process.stdin is not None and not self._process.stdin.closed:
            with suppress(BrokenPipeError):
                self._process.stdin.write(f"{line}\n".encode())
                self._process.stdin.flush()

    def _await(self, holds: Callable[[], bool], what: str, timeout_s: float) -> None:
        self._heard.wait(holds, timeout_s)
        if holds():
            return
        self._raise_if_failed()
        got = "its end" if self._heard.is_over else f"no such event in {timeout_s:g} s"
        raise FlightError("\n".join([f"the flight controller at {self.port} must {what}, got {got}; its last events:", *self._shown()]))

    def _shown(self) -> list[str]:
        """Latest events and first fault of each rule."""
        firsts = {fault.rule: fault for fault in reversed(self.faults)}
        return [f"  {event.time_s:.3f} s: {event.text}" for event in self.events[-_SHOWN:]] + [f"  {rule}: {fault}" for rule, fault in firsts.items()]

    def _raise_if_failed(self) -> None:
        """Raise the reason that the child ended without a report."""
        if not self._heard.is_over or self._heard.is_closed or self._process is None or self._directory is None:
            return
        status = self._process.wait(_END_S)
        output = (Path(self._directory.name) / "stderr").read_text(encoding="utf-8", errors="replace").strip()
        if status == _LINE_FAULT and output.startswith("error: "):
            raise LinkError(output.removeprefix("error: "))
        message = f"the flight controller's process must end with a report, got exit status {status}: {output}"
        raise FlightError(message)

    def _end(self) -> None:
        """Stop it, wait for its report, and remove its files."""
        process, directory = self._process, self._directory
        if process is not None and process.stdin is not None:
            self._say("stop")
            with suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._heard.join()
        if directory is not None:
            if self._heard.is_closed:
                self._last = read_report(Path(directory.name) / "report.json")
            directory.cleanup()
        self._process = self._directory = None
