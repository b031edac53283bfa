"""Conversion of captures of Cepton's older generation to captures of STDV packets, by a child process with the vendor's library."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hilsim.capture.batches import sender_of
from hilsim.errors import CaptureError
from hilsim.families.cepton.background import stdt_library
from hilsim.read.background.part import Advance, FoundSensor, ReadableCapture


@contextmanager
def converted(path: Path, sensor: FoundSensor, advance: Advance) -> Iterator[ReadableCapture]:
    """Yield a temporary capture of the points of a sensor's STDT packets as STDV packets, with their times as stamps.

    The temporary file is about as large as the sensor's share of the capture. During the conversion, ``advance`` is called with the number of bytes of the capture
    decoded since the last call.

    Raises:
        CaptureError: the vendor's library is not installed, or cannot decode the capture.
    """
    if stdt_library.library_path() is None:
        raise CaptureError(
            f"{path}: STDT packets must be decoded by the vendor's library, which is not installed, got {sensor}: pip install cepton-sdk2==2.1.4 (Linux, x86-64)"
        )
    with tempfile.TemporaryDirectory(prefix="hilsim-stdt-") as directory:
        out = Path(directory) / "points.pcap"
        command = [sys.executable, "-m", stdt_library.__name__, str(path), str(out), ":".join(map(str, sender_of(sensor.sender)))]
        status, output = _run(command, Path(directory) / "notes.txt", advance)
        if status != 0:
            last = (output.strip().splitlines() or [f"it ended with {status}"])[-1]
            raise CaptureError(last if status == stdt_library.FAULT else f"{path}: the vendor's library must decode it, got: {last}")
        notes = out.with_suffix(".notes").read_text(encoding="utf-8").splitlines()
        yield ReadableCapture(out, tuple(notes))


def _run(command: list[str], errors: Path, advance: Advance) -> tuple[int, str]:
    """Run the child and report its progress, separate from other output of the library. Returns the exit status and the text of standard error."""
    done = 0
    with (
        errors.open("w+", encoding="utf-8", errors="replace") as file,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file, text=True, errors="replace") as child,  # noqa: S603 - our own program
    ):
        for line in child.stdout or ():
            word, _, number = line.strip().rpartition(" ")
            if word == stdt_library.PROGRESS and number.isdecimal():
                advance(int(number) - done)
                done = int(number)
        status = child.wait()
    return status, errors.read_text(encoding="utf-8", errors="replace")
