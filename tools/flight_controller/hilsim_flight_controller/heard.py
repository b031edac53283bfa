"""Output of a controller's process so far, read in a thread."""

import json
import subprocess
import threading
from collections.abc import Callable
from typing import IO

from hilsim_flight_controller.flight_report import Event, Fault, read_fault


class Heard:
    """Lines of a child's stdout (see ``follower``). ``is_over``: no more will follow; ``is_closed``: the last line marks the report as complete."""

    def __init__(self) -> None:
        self.port: str | None = None
        self.events: list[Event] = []
        self.faults: list[Fault] = []
        self.reported = 0
        self.is_closed = self.is_over = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        """Read a process's stdout until it ends."""
        if process.stdout is not None:
            self._thread = threading.Thread(target=self._read, args=(process.stdout,), name="flight-controller", daemon=True)
            self._thread.start()

    def wait(self, holds: Callable[[], bool], timeout_s: float) -> None:
        """Wait until a condition holds, the output has ended, or the timeout expires."""
        with self._changed:
            self._changed.wait_for(lambda: holds() or self.is_over, timeout_s)

    def join(self) -> None:
        """Wait until the last line of a terminated process has been read."""
        if self._thread is not None:
            self._thread.join()

    def _read(self, stdout: IO[bytes]) -> None:
        with stdout:
            for line in stdout:
                with self._changed:
                    self._take(line)
                    self._changed.notify_all()
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        match json.loads(line):
            case {"port": port}:
                self.port = port
            case {"event": [time_s, text]}:
                self.events.append(Event(time_s, text))
            case {"fault": row}:
                self.faults.append(read_fault(row))
            case {"reported": number}:
                self.reported = number
            case {"closed": _}:
                self.is_closed = True
