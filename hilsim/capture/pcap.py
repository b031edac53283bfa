"""Capture files as UDP datagrams, and datagrams' frames as a nanosecond PCAP file."""

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import dpkt
import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.frames import CaptureNotes, Frame, read_frames
from hilsim.capture.link import LINK_ETHERNET, Skipped, find_datagram
from hilsim.errors import CaptureError

_FLUSH_SIZE = 1 << 18
_RECORD_HEADER_SIZE = 16
_ROWS_AT_ONCE = 1024


def open_capture(path: Path) -> IO[bytes]:
    """Open a capture's bytes; the one place that would learn about compressed files.

    Raises:
        CaptureError: the file cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise CaptureError(f"{path}: cannot be opened: {error.strerror}") from error


class CaptureFile:
    """The UDP datagrams of a capture file, in file order, read anew by each iteration and never held in memory.

    Attributes:
        path: The file.
        notes: What was passed over or doubted in the latest iteration.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = CaptureNotes()

    def __iter__(self) -> Iterator[CapturedDatagram]:
        """Yield datagrams.

        Raises:
            CaptureError: the file cannot be opened, is no capture, or has a link layer that is not known.
        """
        self.notes = notes = CaptureNotes()
        with open_capture(self.path) as file:
            for frame in read_frames(file, str(self.path), notes):
                datagram = _datagram(frame, notes)
                if datagram is not None:
                    yield datagram


def _datagram(frame: Frame, notes: CaptureNotes) -> CapturedDatagram | None:
    parts = find_datagram(frame.link_type, frame.data)
    if isinstance(parts, Skipped):
        notes.counts[f"passed over: {parts}"] += 1
        return None
    if parts.doubt is not None:
        notes.counts[parts.doubt] += 1
    return CapturedDatagram(
        host_stamp_ns=frame.host_stamp_ns,
        source=parts.source,
        source_port=parts.source_port,
        destination=parts.destination,
        destination_port=parts.destination_port,
        payload=frame.data[parts.start : parts.stop],
        link=frame.data[: parts.start],
        is_ethernet=frame.link_type == LINK_ETHERNET,
        frame=frame.number,
    )


class PcapWriter:
    """A classic PCAP file with nanosecond stamps; use it as a context manager.

    Frames are gathered and written in pieces of 256 KiB. When the disk is full, the file is cut back to its last whole record, so that what
    was kept can be read.
    """

    def __init__(self, path: Path, *, link_type: int = LINK_ETHERNET) -> None:
        """Create or overwrite ``path``.

        Raises:
            CaptureError: the file cannot be created.
        """
        self.path = path
        self._pending = io.BytesIO()
        self._kept_bytes = 0
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise CaptureError(f"{path}: cannot be created: {error.strerror}") from error
        self._writer = dpkt.pcap.Writer(self._pending, snaplen=262144, linktype=link_type, nano=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def write(self, host_stamp_ns: int, frame: bytes) -> None:
        """Append one frame.

        Args:
            host_stamp_ns: Nanoseconds since 1970-01-01 UTC.
            frame: The frame's bytes from the link layer on.

        Raises:
            CaptureError: the disk is full or fails.
        """
        self._writer.writepkt_time(frame, Decimal(host_stamp_ns).scaleb(-9))
        self._flush_when_large()

    def write_many(self, host_stamp_ns: npt.NDArray[np.int64], frames: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int32]) -> None:
        """Append many frames at once.

        Args:
            host_stamp_ns: ``int64[n]``, nanoseconds since 1970-01-01 UTC.
            frames: ``uint8[n, capacity]``.
            sizes: ``int32[n]``, bytes used of each row.

        Raises:
            CaptureError: the disk is full or fails.
        """
        for start in range(0, len(sizes), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            self._pending.write(_records(host_stamp_ns[rows], frames[rows], sizes[rows]))
            self._flush_when_large()

    def _flush_when_large(self) -> None:
        if self._pending.tell() >= _FLUSH_SIZE:
            self.flush()

    def flush(self) -> None:
        """Hand everything written so far to the operating system.

        Raises:
            CaptureError: the disk is full or fails.
        """
        rest = memoryview(self._pending.getvalue())
        size = len(rest)
        self._pending.seek(0)
        self._pending.truncate()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self._kept_bytes)
                self._file.seek(self._kept_bytes)
            raise CaptureError(f"{self.path}: cannot be written: {error.strerror}; {self._kept_bytes} bytes were kept") from error
        self._kept_bytes += size

    def close(self) -> None:
        """Flush and close; closing again does nothing.

        Raises:
            CaptureError: the disk is full or fails.
        """
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            self._file.close()


def _records(host_stamp_ns: npt.NDArray[np.int64], frames: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int32]) -> bytes:
    """PCAP records of a few frames: headers and frames side by side in one array, then the unused ends left out."""
    count, capacity = frames.shape
    table = np.empty((count, _RECORD_HEADER_SIZE + capacity), dtype=np.uint8)
    header = np.empty((count, 4), dtype="=u4")  # in the byte order dpkt chose for the file: the machine's
    header[:, 0] = host_stamp_ns // 1_000_000_000
    header[:, 1] = host_stamp_ns % 1_000_000_000
    header[:, 2] = sizes
    header[:, 3] = sizes
    table[:, :_RECORD_HEADER_SIZE] = header.view(np.uint8)
    table[:, _RECORD_HEADER_SIZE:] = frames
    used = np.arange(table.shape[1]) < (_RECORD_HEADER_SIZE + sizes)[:, None]
    return table[used].tobytes()
