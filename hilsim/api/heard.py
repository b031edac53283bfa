"""Output of a started daemon: its log, and its messages for the operator."""

import json
from collections.abc import Iterator
from pathlib import Path

_PROGRESS = ("kernels.compiling", "daemon.still_preparing")
_LAST_LINES = 12


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
