"""Captures of Cepton's older generation as captures of STDV packets, made by a child process with the vendor's library."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hilsim.background import stdt_library
from hilsim.background.survey import FoundSensor, Kind
from hilsim.errors import CaptureError


class ReadableCapture(NamedTuple):
    """A capture whose packets are decoded here.

    Attributes:
        path: The file.
        notes: What there was to say about the file that it was made from.
    """

    path: Path
    notes: tuple[str, ...]


@contextmanager
def readable(path: Path, sensor: FoundSensor) -> Iterator[ReadableCapture]:
    """The capture itself, or, where a sensor's packets are STDT, a temporary one of its points as STDV packets with their times as stamps.

    The temporary file is about as large as the sensor's share of the capture.

    Raises:
        CaptureError: the vendor's library is not installed, or cannot decode the capture.
    """
    if sensor.kind is not Kind.STDT:
        yield ReadableCapture(path, ())
        return
    if stdt_library.library_path() is None:
        raise CaptureError(
            f"{path}: STDT packets must be decoded by the vendor's library, which is not installed, got {sensor}: pip install cepton-sdk2==2.1.4 (Linux, x86-64)"
        )
    with tempfile.TemporaryDirectory(prefix="hilsim-stdt-") as directory:
        out = Path(directory) / "points.pcap"
        command = [sys.executable, "-m", stdt_library.__name__, str(path), str(out), sensor.address]
        child = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - ourselves
        if child.returncode != 0:
            said = child.stderr.strip().splitlines() or [f"it ended with {child.returncode}"]
            raise CaptureError(
                said[-1] if child.returncode == stdt_library.FAULT else f"{path}: the vendor's library must decode it, got: {said[-1]}"
            )
        notes = out.with_suffix(".notes").read_text(encoding="utf-8").splitlines()
        yield ReadableCapture(out, tuple(notes))
