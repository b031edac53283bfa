"""Communication of the program with its parent process: events on stdout as lines of JSON, commands on stdin."""

import json
import os
from collections.abc import Mapping

from hilsim_flight_controller.report import Report, row_of

_CHUNK = 4096


class Follower:
    """Parent process of the program. When its stdin ends, so does the program."""

    def __init__(self, words_fd: int = 0, lines_fd: int = 1) -> None:
        self.words_fd, self.lines_fd = words_fd, lines_fd
        self.waiting = b""
        self.name: str | None = None
        self.events = self.faults = 0
        os.set_blocking(words_fd, False)

    def tell(self, name: str, report: Report) -> None:
        """Send new events and faults, after the name of the line's other end."""
        if self.name is None:
            self.name = name
            self.say({"port": name})
        while self.events < len(report.events):
            self.say({"event": report.events[self.events]})
            self.events += 1
        while self.faults < len(report.faults):
            self.say({"fault": row_of(report.faults[self.faults])})
            self.faults += 1

    def heard(self) -> list[list[str]]:
        """Commands received since the last call, as words; ``stop`` at the end of stdin."""
        try:
            data = os.read(self.words_fd, _CHUNK)
        except BlockingIOError:
            return []
        *lines, self.waiting = (self.waiting + data).split(b"\n")
        found = [line.decode().split() for line in lines]
        return found if data else [*found, ["stop"]]

    def say(self, row: Mapping[str, object]) -> None:
        """Write one line; a missing reader is no error."""
        data = json.dumps(row).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self.lines_fd, data) :]
        except BrokenPipeError:
            return
