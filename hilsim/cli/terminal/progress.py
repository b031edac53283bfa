"""Progress bars for reading captures, on standard error if it is a terminal and reading takes long."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile

_LARGE_SIZE = 20_000_000
_DATAGRAMS_A_STEP = 4096


@contextmanager
def progress_bar(size_bytes: int, label: str) -> Iterator[Callable[[int], object] | None]:
    """Give a function that advances the bar by a number of bytes; None if no bar is shown."""
    if size_bytes < _LARGE_SIZE or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=size_bytes, label=label, file=sys.stderr) as bar:
        yield bar.update


@contextmanager
def watched(file: CaptureFile) -> Iterator[Iterable[CapturedDatagram]]:
    """Give a file's datagrams, with a progress bar while they are read.

    Raises:
        CaptureError: the file's size cannot be read.
    """
    with progress_bar(file.size_bytes, f"reading {file.path.name}") as advance:
        yield file if advance is None else _passed_on(file, advance)


def _passed_on(file: CaptureFile, advance: Callable[[int], object]) -> Iterator[CapturedDatagram]:
    """Pass datagrams on and advance a progress bar by the bytes read."""
    done = 0
    for number, datagram in enumerate(file):
        if number % _DATAGRAMS_A_STEP == 0:
            advance(file.read_bytes - done)
            done = file.read_bytes
        yield datagram
    advance(file.read_bytes - done)
