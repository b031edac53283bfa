"""Reading of capture files as UDP datagrams, and writing of frames as a PCAP file."""

import io
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from hilsim.capture.copies import CopyWatch
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.fragments import Reassembly
from hilsim.capture.frames import Frame, read_frames
from hilsim.capture.link import LINK_COOKED, LINK_COOKED_2, LINK_ETHERNET, Fragment, Parts, Skipped, cooked_interface, find_datagram
from hilsim.capture.notes import CaptureNotes
from hilsim.capture.seek import START, SeekIndex, SeekPoint
from hilsim.capture.source import CaptureBytes
from hilsim.errors import CaptureError
from hilsim.units import NS_PER_S

Stamps = Literal["ns", "us"]

_PIECE_SIZE = 1 << 18  # fits a processor's cache
_FLUSH_SIZE = 1 << 18
RECORD_HEADER_SIZE = 16
_SNAP_LENGTH = 262_144
_ROWS_AT_ONCE = 1024


class CaptureFile:
    """The UDP datagrams of a capture file in file order; each iteration reads the file anew, and only a part of it is in memory.

    Plain, gzip and zstd files are supported; fragmented datagrams are reassembled. A compressed file is decompressed from its start to the seek point at
    which reading starts, and again each time that the index must be extended.

    Attributes:
        path: Path of the file.
        notes: Notes of the latest iteration.
    """

    def __init__(self, path: Path, *, point_spacing_bytes: int = 4 << 20) -> None:
        """Prepare to read the file; it is not opened yet.

        Args:
            path: Path of the file.
            point_spacing_bytes: Initial number of decompressed bytes between two seek points; doubled when there are more than 65,536 points.
        """
        self.path = path
        self.notes = CaptureNotes()
        self._index = SeekIndex(point_spacing_bytes)
        self._piece_size = min(_PIECE_SIZE, point_spacing_bytes)
        self._source: CaptureBytes | None = None

    def __iter__(self) -> Iterator[CapturedDatagram]:
        return self.datagrams()

    @property
    def size_bytes(self) -> int:
        """Size of the file on disk.

        Raises:
            CaptureError: the size cannot be read.
        """
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise CaptureError(f"{self.path}: cannot be opened: {error.strerror}") from error

    @property
    def read_bytes(self) -> int:
        """Number of bytes of the file on disk that the latest iteration has read; it reads up to 256 KiB ahead."""
        return self._source.file_position if self._source else 0

    def datagrams(self, start: SeekPoint | None = None) -> Iterator[CapturedDatagram]:
        """Yield datagrams; from a seek point on, exactly those that a reading from the start yields from that frame on, with the same numbers.

        A datagram with fragments on both sides of the point is not yielded.

        Raises:
            CaptureError: the file cannot be opened, is no capture, or has an unknown link layer.
        """
        self.notes = notes = CaptureNotes()
        with CaptureBytes(self.path) as source:
            self._source = source
            frames = read_frames(source, notes, self._index, start=start or START, piece_size=self._piece_size)
            yield from _datagrams(frames, notes)

    def seek_point_before(self, host_stamp_ns: int) -> SeekPoint:
        """Last seek point whose frame, and all frames before it, are not later than a time; the first point if there is none.

        Where the index does not reach that far yet, it is extended by skipping over records.

        Raises:
            CaptureError: as in ``datagrams``.
        """
        last = self._index.last()
        if not self._index.is_complete and (last is START or last.latest_ns <= host_stamp_ns):
            with CaptureBytes(self.path) as source:
                frames = read_frames(source, CaptureNotes(), self._index, start=last, piece_size=self._piece_size)
                deque(takewhile(lambda frame: frame.host_stamp_ns <= host_stamp_ns, frames), maxlen=0)
        return self._index.before(host_stamp_ns)


def _datagrams(frames: Iterator[Frame], notes: CaptureNotes) -> Iterator[CapturedDatagram]:
    """Yield the datagrams of frames, and fill in the notes."""
    reassembly = Reassembly(notes)
    copies = CopyWatch(notes)
    for frame in frames:
        number, stamp_ns, link_type, interface, data, wire_size = frame
        parts = find_datagram(link_type, data, is_cut=wire_size > len(data))
        if not isinstance(parts, Parts):
            if not isinstance(parts, Fragment):
                _count_skipped(parts, len(data), notes)
                continue
            found = _put_together(frame, parts, reassembly)
            if found is None:
                continue
            data, parts = found
        (source, source_port, destination, destination_port), start, stop, doubt = parts
        if doubt is not None:
            notes.counts[doubt] += 1
        if link_type == LINK_COOKED_2:
            interface = cooked_interface(data)
        is_ethernet = link_type == LINK_ETHERNET
        datagram = CapturedDatagram(
            stamp_ns, source, source_port, destination, destination_port, data[start:stop], data[:start], is_ethernet, number, interface
        )
        if interface or notes.interfaces > 1 or link_type == LINK_COOKED:
            copies.look(datagram, knows_interface=link_type != LINK_COOKED)
        yield datagram
    reassembly.finish()


def _put_together(frame: Frame, fragment: Fragment, reassembly: Reassembly) -> tuple[bytes, Parts] | None:
    """Frame and parts of the datagram that a fragment completes, or None."""
    whole = reassembly.add(frame, fragment)
    if whole is None:
        return None
    parts = find_datagram(frame.link_type, whole)
    return (whole, parts) if isinstance(parts, Parts) else None


def _count_skipped(why: Skipped, kept_size: int, notes: CaptureNotes) -> None:
    if why is Skipped.CUT:
        notes.count_cut(kept_size)
    else:
        notes.counts[f"passed over: {why}"] += 1


class PcapWriter:
    """A classic PCAP file for writing, by default with nanosecond stamps; a context manager.

    Frames are buffered and written in pieces of 256 KiB. When the disk is full, the file is truncated to its last whole record, so that
    it stays readable.
    """

    def __init__(self, path: Path, *, link_type: int = LINK_ETHERNET, stamps: Stamps = "ns") -> None:
        """Create or overwrite ``path``.

        Args:
            path: Path of the file.
            link_type: Link type of its frames.
            stamps: Unit of the stamps: nanoseconds, or truncated microseconds (the only unit that the vendor's Cepton SDKs read).

        Raises:
            CaptureError: the file cannot be created.
        """
        self.path = path
        self._pending = io.BytesIO()
        self._kept_bytes = 0
        self._step_ns = 1 if stamps == "ns" else 1000
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise CaptureError(f"{path}: cannot be created: {error.strerror}") from error
        import dpkt  # noqa: PLC0415 - it imports forty protocols, which would take 0.05 s of every start

        self._writer = dpkt.pcap.Writer(self._pending, snaplen=_SNAP_LENGTH, linktype=link_type, nano=stamps == "ns")

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
        self._writer.writepkt_time(frame, Decimal(host_stamp_ns // self._step_ns * self._step_ns).scaleb(-9))
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
            self._pending.write(pcap_records(host_stamp_ns[rows], frames[rows], sizes[rows], self._step_ns))
            self._flush_when_large()

    def _flush_when_large(self) -> None:
        if self._pending.tell() >= _FLUSH_SIZE:
            self.flush()

    def flush(self) -> None:
        """Write all buffered records to the operating system.

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
        """Flush and close; a second call has no effect.

        Raises:
            CaptureError: the disk is full or fails.
        """
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            self._file.close()


def pcap_file_header() -> bytes:
    """Make the header of a PCAP file of Ethernet frames with nanosecond stamps, as ``PcapWriter`` writes it."""
    import dpkt  # noqa: PLC0415 - as above

    header = io.BytesIO()
    dpkt.pcap.Writer(header, snaplen=_SNAP_LENGTH, linktype=LINK_ETHERNET, nano=True)
    return header.getvalue()


def pcap_records(host_stamp_ns: npt.NDArray[np.int64], frames: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int32], step_ns: int = 1) -> bytes:
    """Make the PCAP records of frames, without the unused ends of their rows.

    Args:
        host_stamp_ns: ``int64[n]``, nanoseconds since 1970-01-01 UTC.
        frames: ``uint8[n, capacity]``.
        sizes: ``int32[n]``, bytes used of each row.
        step_ns: Unit of the stamps: 1 for nanoseconds, 1000 for microseconds.
    """
    count, capacity = frames.shape
    header = np.empty((count, 4), dtype="=u4")  # in the byte order that dpkt chose for the file: the machine's
    header[:, 0] = host_stamp_ns // NS_PER_S
    header[:, 1] = host_stamp_ns % NS_PER_S // step_ns
    header[:, 2] = sizes
    header[:, 3] = sizes
    head, data = memoryview(header.tobytes()), np.ascontiguousarray(frames).reshape(-1).data
    starts = [(row * RECORD_HEADER_SIZE, row * capacity, size) for row, size in enumerate(sizes.tolist())]
    return b"".join(part for at, begin, size in starts for part in (head[at : at + RECORD_HEADER_SIZE], data[begin : begin + size]))
