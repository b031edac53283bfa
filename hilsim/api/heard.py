"""Output of a started daemon: its log, and its messages for people."""

import json
from collections.abc import Iterator
from pathlib import Path

_PROGRESS = ("kernels.compiling", "daemon.still_preparing")
_LAST_LINES = 12


class Heard:
    """The part of a log file that is written from now on.

    Attributes:
        path: The file; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        """What is in the file by now is another's."""
        self.path = path
        self._begin = self._told = path.stat().st_size if path.exists() else 0

    def text(self) -> str:
        """All of it."""
        return self._from(self._begin).decode(errors="replace")

    def progress(self) -> Iterator[str]:
        """What a slow start waits for, if not reported yet."""
        whole = self._from(self._told).rpartition(b"\n")
        self._told += len(whole[0]) + len(whole[1])
        for line in whole[0].splitlines():
            event = _event(line)
            if event.get("event") in _PROGRESS:
                yield " ".join(str(event[key]) for key in ("event", "step", "advice") if key in event)

    def last_words(self) -> str:
        """The messages to a person, else the end of the log."""
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
