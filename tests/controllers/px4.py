"""The scripted controller as a program: ``python -m tests.controllers.px4 --pty LINK | --port DEVICE | --tcp HOST:PORT | --udp PORT --report FILE.json``.

It ends when its script is done, after ``--for`` seconds, at SIGTERM or SIGINT, or when a TCP simulator closes; the report is written in each case.
Its exit status is 0 if no rule was broken and the script is done, else 1.
"""

import argparse
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.controllers.controller import Px4, Px4Spec
from tests.controllers.lines import Board, Port, Tcp, Udp
from tests.controllers.scripts import SCRIPTS
from tests.controllers.telemetry import PARAMETERS

_WAKE_MS = 1
_LATE_US = 8_000
"""Two periods of 250 Hz: what comes in one piece after that says nothing of when it was sent."""
_RETRY_US = 20_000
_NICE = -15
"""A flight controller has a processor of its own; where it may, this one goes before whatever else the host does."""


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.controllers.px4", description="A scripted flight controller that judges its simulator.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--pty", metavar="LINK", help="make a pty; LINK leads to the end that the simulator opens")
    where.add_argument("--port", metavar="DEVICE", help="open a serial device; its speed is left as it is")
    where.add_argument("--tcp", metavar="HOST:PORT", help="connect as PX4's simulator link does")
    where.add_argument("--udp", metavar="PORT", type=int, help="listen for datagrams on the loopback interface")
    parser.add_argument("--linux", action="store_true", help="PX4 built for Linux: a reboot leaves the cable in, and it is away for --out-for")
    parser.add_argument("--lockstep", action="store_true", help="its clock is HIL_SENSOR.time_usec (TCP)")
    parser.add_argument("--no-hil", action="store_true", help="HEARTBEAT without the HIL flag")
    parser.add_argument("--armed", action="store_true", help="armed from the beginning")
    parser.add_argument("--autopilot", metavar="N", type=int, default=12, help="HEARTBEAT.autopilot (12: PX4)")
    parser.add_argument(
        "--parameter", metavar="NAME=VALUE", type=setting, action="append", default=[], help="a parameter it has; with a point: a float"
    )
    parser.add_argument("--newer", action="store_true", help="actuators as after PX4 1.12")
    parser.add_argument("--heartbeat-after", metavar="S", type=float, default=0.0, help="seconds from power to when it looks at its port")
    parser.add_argument(
        "--reboot-at",
        metavar="S",
        type=float,
        action="append",
        default=[],
        help="lose all; the cable is out for --out-for, save on a --port or with --linux",
    )
    parser.add_argument("--cable-out-at", metavar="S", type=float, action="append", default=[], help="the cable is out for --out-for")
    parser.add_argument("--out-for", metavar="S", type=float, default=1.0)
    parser.add_argument("--garbage-at", metavar="S", type=float, action="append", default=[], help="send noise")
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="idle")
    parser.add_argument("--for", metavar="S", dest="most_s", type=float, default=120.0, help="at most so long")
    parser.add_argument("--ground-system", metavar="ID", type=int, action="append", help="system id of a ground station (255)")
    parser.add_argument("--expect", metavar="FILE", type=Path, help="frames of ground stations as lines of hex, read at the end")
    parser.add_argument("--report", metavar="FILE", type=Path, required=True)
    return parser.parse_args(argv)


def setting(text):
    """Name and value of a parameter."""
    name, value = text.split("=")
    return name, float(value) if "." in value else int(value)


def line_of(options):
    if options.pty:
        return Board(options.pty)
    if options.port:
        return Port(options.port)
    if options.udp:
        return Udp(options.udp)
    host, port = options.tcp.rsplit(":", 1)
    return Tcp(host, int(port))


def happenings(options):
    """Pairs of time (us) and what happens, in order; a controller that reboots does so before its cable is out."""
    found = [(at_s, "garbage") for at_s in options.garbage_at]
    if options.linux:
        found += [pair for at_s in options.reboot_at for pair in ((at_s, "end"), (at_s + options.out_for, "reboot"))]
    else:
        found += [(at_s, "reboot") for at_s in options.reboot_at]
    outs = [*options.cable_out_at, *([] if options.port or options.linux else options.reboot_at)]
    found += [(at_s, "out") for at_s in outs] + [(at_s + options.out_for, "in") for at_s in outs]
    return sorted(((round(at_s * 1e6), what) for at_s, what in found), key=lambda pair: pair[0])


class Program:
    """A controller at a line, in real time."""

    def __init__(self, options):
        self.line = line_of(options)
        self.options = options
        self.begun_ns = time.monotonic_ns()
        utc_us = time.time_ns() // 1000
        systems = frozenset(options.ground_system or [255])
        self.controller = Px4(
            Px4Spec(
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
                ground_systems=systems,
                utc_at_zero_us=None if options.lockstep else utc_us,
            )
        )
        self.due = happenings(options)
        self.out = self.away = False
        self.retry_us = 0
        self.stopped = False
        self.held_up = self.longest_us = 0

    def now_us(self):
        return (time.monotonic_ns() - self.begun_ns) // 1000

    def stop(self, *_signal):
        self.stopped = True

    def run(self):
        """Until it ends; the report is written."""
        last_us = self.now_us()
        while not (self.stopped or self.controller.done or self.line.ended or last_us >= self.options.most_s * 1e6):
            self._wait()
            now_us = self.now_us()
            late = now_us - last_us > _LATE_US
            self.held_up += late
            self.longest_us = max(self.longest_us, now_us - last_us)
            last_us = now_us
            self._happen(now_us)
            self._turn(now_us, late)
        self.line.close()
        return self._report()

    def _wait(self):
        if self.line.fd is None:
            time.sleep(_WAKE_MS * 1e-3)
            return
        poller = select.poll()
        poller.register(self.line.fd, select.POLLIN)
        events = poller.poll(_WAKE_MS)
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in events):
            time.sleep(_WAKE_MS * 1e-3)

    def _happen(self, now_us):
        while self.due and now_us >= self.due[0][0]:
            what = self.due.pop(0)[1]
            if what == "end":
                self.away = True
            elif what == "reboot":
                self.away = False
                self.controller.reboot(now_us)
            elif what == "garbage":
                self.controller.babble(now_us)
            elif what == "out":
                self.out = True
                self.line.close()
                self.controller.unplug(now_us)
            else:
                self.out = False

    def _turn(self, now_us, late):
        data = b""
        if self.line.fd is None and not self.out and now_us >= self.retry_us:
            self.retry_us = now_us + _RETRY_US
            if self.line.open() and self.controller.unplugged:
                self.controller.plug(now_us)
        if self.away:
            return  # what comes waits in the port for the one that is started next
        if self.line.fd is not None:
            data = self.line.read()
            self.controller.receive(now_us, data, held_up=late)
        elif self.controller.spec.serial is False:
            return
        answer = self.controller.advance(now_us)
        if self.line.fd is not None:
            self.line.write(answer)

    def _report(self):
        options, controller = self.options, self.controller
        if options.expect is not None and options.expect.exists():
            controller.judge.forwarded.expect([bytes.fromhex(row) for row in options.expect.read_text().split()])
        report = controller.close()
        report.figures |= {"held_up": self.held_up, "longest_turn_us": self.longest_us, "lost_bytes": self.line.lost_bytes}
        done = controller.done or options.script == "idle"
        sent, came = ([raw.hex() for raw in frames] for frames in (controller.sent, controller.judge.forwarded.came))
        report.write(options.report, script=options.script, done=done, sent=sent, from_ground=came)
        return done and not report.broken, report


def _be_a_computer_of_its_own():
    """A real controller shares no processor with what else a test's machine does: where it may, it runs before all but hilsim's own real-time threads."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def main():
    _be_a_computer_of_its_own()
    program = Program(arguments())
    signal.signal(signal.SIGTERM, program.stop)
    signal.signal(signal.SIGINT, program.stop)
    fine, report = program.run()
    for violation in report.violations:
        sys.stderr.write(f"{violation.rule}: {violation}\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
