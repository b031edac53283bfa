"""Options of the program: its line, the controller it emulates, and scripted events."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilsim_flight_controller.controller import Px4Spec
from hilsim_flight_controller.flying.scripts import SCRIPTS
from hilsim_flight_controller.lines import Board, Line, Port, Tcp, Udp
from hilsim_flight_controller.telemetry import PARAMETERS

PROGRAM = "python -m hilsim_flight_controller"


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="A scripted flight controller that judges its simulator.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--pty", metavar="LINK", help="make a pty; LINK is a link to the end that the simulator opens")
    where.add_argument("--port", metavar="DEVICE", help="open a serial device; its speed is unchanged")
    where.add_argument("--tcp", metavar="HOST:PORT", type=_address, help="connect as PX4's simulator link does")
    where.add_argument("--udp", metavar="[HOST:]PORT", type=_address, help="listen for datagrams; without HOST on the loopback interface")
    parser.add_argument("--linux", action="store_true", help="PX4 built for Linux: a reboot leaves the cable in, and it is away for --out-for")
    parser.add_argument("--lockstep", action="store_true", help="its clock is HIL_SENSOR.time_usec (TCP)")
    parser.add_argument("--no-hil", action="store_true", help="HEARTBEAT without the HIL flag")
    parser.add_argument("--armed", action="store_true", help="armed from the beginning")
    parser.add_argument("--autopilot", metavar="N", type=int, default=12, help="HEARTBEAT.autopilot (12: PX4)")
    named: dict[str, Any] = {"metavar": "NAME=VALUE", "action": "append", "default": []}
    parser.add_argument("--parameter", type=_setting, help="a parameter it has; with a point: a float", **named)
    parser.add_argument("--newer", action="store_true", help="actuators as after PX4 1.12")
    parser.add_argument("--heartbeat-after", metavar="S", type=float, default=0.0, help="seconds from power to when it looks at its port")
    at: dict[str, Any] = {"metavar": "S", "type": float, "action": "append", "default": []}
    parser.add_argument("--reboot-at", help="restart without state; the cable is out for --out-for, except with --port or --linux", **at)
    parser.add_argument("--cable-out-at", help="the cable is out for --out-for", **at)
    parser.add_argument("--out-for", metavar="S", type=float, default=1.0)
    parser.add_argument("--garbage-at", help="send noise", **at)
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="idle")
    parser.add_argument("--for", metavar="S", dest="most_s", type=float, default=120.0, help="time limit")
    parser.add_argument("--ground-system", metavar="ID", type=int, action="append", help="system id of a ground station (255)")
    parser.add_argument("--expect", metavar="FILE", type=Path, help="frames of ground stations as lines of hex, read at the end")
    parser.add_argument("--report", metavar="FILE", type=Path, required=True)
    parser.add_argument(
        "--follow", action="store_true", help="report events on stdout as lines of JSON, take commands on stdin, end when stdin closes"
    )
    return parser.parse_args(argv)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host or "127.0.0.1", int(port)


def _setting(text: str) -> tuple[str, float]:
    name, value = text.split("=")
    return name, float(value) if "." in value else int(value)


def line_of(options: argparse.Namespace) -> Line:
    """Line of the options, closed."""
    if options.pty is not None:
        return Board(options.pty)
    if options.port is not None:
        return Port(options.port)
    return Udp(*options.udp) if options.udp is not None else Tcp(*options.tcp)


def spec_of(options: argparse.Namespace, utc_us: int) -> Px4Spec:
    """Controller of the options, started at a Unix time (us)."""
    return Px4Spec(
        serial=options.tcp is None,
        linux=options.linux,
        lockstep=options.lockstep,
        hil=not options.no_hil,
        armed=options.armed,
        autopilot=options.autopilot,
        parameters=PARAMETERS | dict(options.parameter),
        boot_us=round(options.heartbeat_after * 1e6),
        script=options.script,
        newer=options.newer,
        ground_systems=frozenset(options.ground_system or [255]),
        utc_at_zero_us=None if options.lockstep else utc_us,
    )


@dataclass
class Schedule:
    """Scheduled events of a controller; a board reboots before its cable is disconnected.

    Attributes:
        keeps_cable: Whether a reboot leaves the cable connected.
        stays_away: Whether a reboot takes a while, in which the port is not read.
        due: Pairs of time (us) and event, in order.
    """

    keeps_cable: bool
    stays_away: bool
    due: list[tuple[int, str]] = field(default_factory=list)

    def add(self, what: str, at_us: int, out_us: int) -> None:
        """Add ``reboot``, ``cable-out`` or ``garbage`` at a time; with a duration of ``out_us``."""
        if what == "reboot" and self.stays_away:
            new = [(at_us, "end"), (at_us + out_us, "reboot")]
        elif what == "garbage" or (what == "reboot" and self.keeps_cable):
            new = [(at_us, what)]
        else:
            new = [*([(at_us, "reboot")] if what == "reboot" else []), (at_us, "out"), (at_us + out_us, "in")]
        self.due = sorted([*self.due, *new], key=lambda pair: pair[0])

    def take(self, now_us: int) -> list[str]:
        """Events due until now."""
        happened = [what for at_us, what in self.due if at_us <= now_us]
        del self.due[: len(happened)]
        return happened


def schedule_of(options: argparse.Namespace) -> Schedule:
    """Schedule of the options."""
    schedule = Schedule(keeps_cable=options.port is not None, stays_away=options.linux)
    for what, times in (("garbage", options.garbage_at), ("reboot", options.reboot_at), ("cable-out", options.cable_out_at)):
        for at_s in times:
            schedule.add(what, round(at_s * 1e6), round(options.out_for * 1e6))
    return schedule
