"""Division of a capture file into parts that are read in parallel: plain classic PCAP files only, whose records contain their length."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.link import LINK_ETHERNET
from hilsim.compilation.jit import constant, kernel, signed
from hilsim.errors import CaptureError

FILE_HEADER_SIZE = 24
RECORD_HEADER_SIZE = 16
FRACTIONS_NS = {b"\xd4\xc3\xb2\xa1": 1000, b"\x4d\x3c\xb2\xa1": 1}
"""Nanoseconds per unit of a stamp's fraction, by the first bytes of a little-endian file."""
LARGEST_FRAME = 1 << 18
_WINDOW_SIZE = 4 << 20
_UNKNOWN = constant(-1)
_RECORD, _LARGEST = constant(RECORD_HEADER_SIZE), constant(LARGEST_FRAME)


class FilePart(NamedTuple):
    """Whole records of a plain capture file.

    Attributes:
        start: Offset of the first record in the file.
        stop: Offset of the end of the last record.
        fraction_ns: Nanoseconds per unit of a stamp's fraction.
    """

    start: int
    stop: int
    fraction_ns: int


def cut(path: Path, count: int) -> tuple[FilePart, ...]:
    """Divide a file evenly into parts at record boundaries; the boundaries for a count are a subset of those for its multiples.

    Args:
        path: Path of the file.
        count: Number of parts; some are empty in a small file.

    Returns:
        Parts, in order; none if the file is not a plain classic PCAP of Ethernet frames up to its last byte.

    Raises:
        CaptureError: the file cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(FILE_HEADER_SIZE)
            fraction_ns = FRACTIONS_NS.get(head[:4])
            if len(head) < FILE_HEADER_SIZE or fraction_ns is None or int.from_bytes(head[20:22], "little") != LINK_ETHERNET:
                return ()
            size = os.fstat(file.fileno()).st_size
            targets = np.array([max(size * number // count, FILE_HEADER_SIZE) for number in range(count)], dtype=np.int64)
            starts = np.full(count, _UNKNOWN, dtype=np.int64)
            window = bytearray(_WINDOW_SIZE)
            at = FILE_HEADER_SIZE
            while at < size:
                file.seek(at)
                held = file.readinto(window)
                passed = _pass_records(np.frombuffer(window, dtype=np.uint8, count=held), at, targets, starts)
                if passed == 0:
                    return ()
                at += passed
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from error
    starts[starts == _UNKNOWN] = size
    stops = [*starts[1:].tolist(), size]
    return tuple(FilePart(start, stop, fraction_ns) for start, stop in zip(starts.tolist(), stops, strict=True))


@kernel
def _pass_records(data: npt.NDArray[np.uint8], offset: int, targets: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> int:
    """Find the first record at or after each target byte, in data that start at byte ``offset`` of the file. Returns the number of bytes of whole records, or 0 for a broken record."""
    at = part = 0
    while part < starts.size and starts[part] != _UNKNOWN:
        part += 1
    while data.size - at >= _RECORD:
        kept = signed(data[at + 8]) | signed(data[at + 9]) << 8 | signed(data[at + 10]) << 16 | signed(data[at + 11]) << 24
        if kept > _LARGEST:
            return 0
        if at + _RECORD + kept > data.size:
            break
        while part < starts.size and targets[part] <= offset + at:
            starts[part] = offset + at
            part += 1
        at += _RECORD + kept
    return at
