"""A controller on a line, in real time: reads, executes due events, writes, and reports at its end."""

import argparse
import json
import select
import time

from hilsim_flight_controller.controller import Px4
from hilsim_flight_controller.follower import Follower
from hilsim_flight_controller.options import line_of, schedule_of, spec_of
from hilsim_flight_controller.report import Report

_WAKE_MS = 1
_LATE_US = 8_000
"""Two periods of 250 Hz: after a longer delay, arrival times of the received data are unknown."""
_RETRY_US = 20_000


class Program:
    """Runs until its script is done, its time is up, it is stopped, or a TCP simulator closes; ``follower`` receives all events meanwhile."""

    def __init__(self, options: argparse.Namespace, follower: Follower | None = None) -> None:
        self.options, self.follower = options, follower
        self.line = line_of(options)
        self.begun_ns = time.monotonic_ns()
        self.controller = Px4(spec_of(options, time.time_ns() // 1000))
        self.schedule = schedule_of(options)
        self.out = self.away = False
        self.retry_us = 0
        self.stopped = False
        self.held_up = self.longest_us = 0

    def now_us(self) -> int:
        """The controller's clock."""
        return (time.monotonic_ns() - self.begun_ns) // 1000

    def stop(self, *_signal: object) -> None:
        """Request an early end."""
        self.stopped = True

    def run(self) -> tuple[bool, Report]:
        """Run to the end; the report is written. Returns whether all is well: the script is done and no rule was violated.

        Raises:
            LinkError: the line cannot be opened.
        """
        last_us = self.now_us()
        try:
            while not (self.stopped or self.controller.done or self.line.ended or last_us >= self.options.most_s * 1e6):
                now_us = self.now_us()
                late = now_us - last_us > _LATE_US
                self.held_up += late
                self.longest_us = max(self.longest_us, now_us - last_us)
                last_us = now_us
                self._happen(now_us)
                self._turn(now_us, late=late)
                if self.follower is not None:
                    self._follow(self.follower, now_us)
                self._wait()
        finally:
            self.line.close()
        report = self._close()
        return self._is_done() and not report.broken, report

    def _wait(self) -> None:
        if self.line.fd is None:
            time.sleep(_WAKE_MS * 1e-3)
            return
        poller = select.poll()
        poller.register(self.line.fd, select.POLLIN)
        events = poller.poll(_WAKE_MS)
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in events):
            time.sleep(_WAKE_MS * 1e-3)

    def _happen(self, now_us: int) -> None:
        for what in self.schedule.take(now_us):
            match what:
                case "end":
                    self.away = True
                case "reboot":
                    self.away = False
                    self.controller.reboot(now_us)
                case "garbage":
                    self.controller.babble(now_us)
                case "out":
                    self.out = True
                    self.line.close()
                    self.controller.unplug(now_us)
                case "in":
                    self.out = False

    def _turn(self, now_us: int, *, late: bool) -> None:
        if self.line.fd is None and not self.out and now_us >= self.retry_us:
            self.retry_us = now_us + _RETRY_US
            if self.line.open() and self.controller.unplugged:
                self.controller.plug(now_us)
        if self.away:
            return  # bytes wait in the port for the controller that is started next
        if self.line.fd is not None:
            self.controller.receive(now_us, self.line.read(), held_up=late)
        elif not self.controller.spec.serial:
            return
        self.line.write(self.controller.advance(now_us))

    def _follow(self, follower: Follower, now_us: int) -> None:
        follower.tell(self.line.name, self.controller.report)
        for word, *values in follower.heard():
            match word:
                case "report":
                    self.controller.judge.measure()
                    self._write()
                    follower.say({"reported": int(values[0])})
                case "stop":
                    self.stop()
                case _:
                    self.schedule.add(word, now_us, round(float(values[0]) * 1e6))

    def _is_done(self) -> bool:
        return self.controller.done or self.options.script == "idle"

    def _close(self) -> Report:
        """Compare expected frames, and write the final report."""
        options, controller = self.options, self.controller
        if options.expect is not None and options.expect.exists():
            controller.judge.forwarded.expect([bytes.fromhex(row) for row in options.expect.read_text().split()])
        report = controller.close()
        self._write()
        if self.follower is not None:
            self.follower.tell(self.line.name, report)
            self.follower.say({"closed": True})
        return report

    def _write(self) -> None:
        """Write the current report; its file is complete at any time."""
        controller = self.controller
        controller.report.figures |= {"held_up": self.held_up, "longest_turn_us": self.longest_us, "lost_bytes": self.line.lost_bytes}
        sent, came = ([raw.hex() for raw in frames] for frames in (controller.sent, controller.judge.forwarded.came))
        more = {"script": self.options.script, "done": self._is_done(), "sent": sent, "from_ground": came}
        path = self.options.report
        draft = path.with_name(f"{path.name}.part")
        draft.write_text(json.dumps(controller.report.as_dict() | more, indent=1), encoding="utf-8")
        draft.replace(path)
