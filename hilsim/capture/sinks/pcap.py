"""PCAP files as sinks: one file, or a rotation."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hilsim.capture.metadata import NONE, metadata_beside, write_beside
from hilsim.capture.pcap import PcapWriter, Stamps
from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.capture.sinks.network_stack import NetworkStacks
from hilsim.errors import CaptureError, require

_FILE_HEADER_SIZE, _RECORD_HEADER_SIZE = 24, 16


@dataclass(frozen=True, kw_only=True)
class RecordSpec:
    """Recording of sent packets in PCAP files.

    Attributes:
        file: Path of the file, relative to the rig; empty: no recording. Without rotation an existing file is replaced, as ``tcpdump -w`` does; with it,
            ``drive.pcap`` means ``drive-0001.pcap``, ``drive-0002.pcap`` …: the numbers go on after those that are there, and nothing is replaced.
        rotate_mb: A new file before one would grow above so many megabytes (10^6 bytes); 0: never.
        rotate_s: A new file after so many seconds; 0: never.
        keep: Number of files of a rotation to keep, including those of earlier runs; the oldest are deleted. 0: all.
        stamps: Unit of the files' stamps: ``ns``, ``us``, or ``auto``: microseconds if a rig has only Cepton-style sensors, because the vendor's SDKs read
            nothing else, nanoseconds in all others.
    """

    file: str = ""
    rotate_mb: float = 0.0
    rotate_s: float = 0.0
    keep: int = 0
    stamps: Literal["auto", "ns", "us"] = "auto"

    def __post_init__(self) -> None:
        require(
            (not self.file.endswith("/"), f'file must name a file, got "{self.file}"'),
            (self.rotate_mb == 0.0 or 0.01 <= self.rotate_mb <= 1e6, f"rotate_mb must be 0 (never) or 0.01 to 1000000, got {self.rotate_mb}"),
            (self.rotate_s == 0.0 or 0.1 <= self.rotate_s <= 1e6, f"rotate_s must be 0 (never) or 0.1 to 1000000, got {self.rotate_s}"),
            (0 <= self.keep <= 1_000_000, f"keep must be 0 (all) to 1000000, got {self.keep}"),
            (self.keep == 0 or self.rotates, f"keep must be 0 where neither rotate_mb nor rotate_s is given, got {self.keep}"),
        )

    @property
    def rotates(self) -> bool:
        """Whether there is more than one file."""
        return self.rotate_mb > 0.0 or self.rotate_s > 0.0


class PcapFileSink:
    """One capture file, gathered and written in large pieces: for what is made as fast as the machine goes.

    Attributes:
        written: Datagrams in the file when it is closed.
    """

    def __init__(self, path: Path, *, stamps: Stamps) -> None:
        """Into ``path``, which is replaced by ``open``; ``stamps`` count nanoseconds or microseconds."""
        self.written = 0
        self._path = path
        self._stamps = stamps
        self._stacks = NetworkStacks()
        self._writer: PcapWriter | None = None

    @property
    def target(self) -> str:
        """The file."""
        return str(self._path)

    def check(self) -> None:
        """Nothing that ``open`` does not find at once."""

    def open(self, flows: Sequence[SinkFlow]) -> None:
        """Create the file.

        Raises:
            CaptureError: it cannot be created.
        """
        del flows
        self._writer = PcapWriter(self._path, stamps=self._stamps)

    def write(self, batch: SentBatch) -> None:
        """Append frames.

        Raises:
            CaptureError: the disk is full or fails.
        """
        if self._writer is None:
            raise AssertionError("a sink is opened before it is written to")
        sent = self._stacks.send(batch)
        self._writer.write_many(sent.stamp_ns, sent.frames, sent.size)
        self.written += batch.size.size

    def close(self) -> None:
        """Write what is gathered, and close the file.

        Raises:
            CaptureError: the disk fails.
        """
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


class PcapSeriesSink:
    """One capture file, or one after the other, by a rig's ``[record]``.

    Attributes:
        path: The file being written.
        written: Datagrams stored in files.
    """

    def __init__(self, spec: RecordSpec, directory: Path, metadata: Mapping[str, Sequence[Any]] = NONE) -> None:
        """Files by ``spec``, relative to ``directory``, each with the ``metadata`` of sensors, by family, beside it; nothing is made before ``open``."""
        self._metadata = metadata
        self.path = self._named = directory / spec.file
        self.written = 0
        self._spec = spec
        self._stacks = NetworkStacks()
        self._writer: PcapWriter | None = None
        self._bytes = 0
        self._first_ns: int | None = None
        self._until_ns = 0

    def check(self) -> None:
        """Check that files can be created.

        Raises:
            CaptureError: the directory is missing or cannot be written to, or the name is a directory's.
        """
        directory = self._named.parent
        if not directory.is_dir():
            raise CaptureError(f"{self._named}: the directory of a recording must exist, and {directory} does not")
        if self._named.is_dir():
            raise CaptureError(f"{self._named}: a recording must be a file, and this is a directory")
        target = self._named if self._named.exists() and not self._spec.rotates else directory
        if not os.access(target, os.W_OK):
            raise CaptureError(f"{self._named}: {target} must be writable for a recording")

    @property
    def target(self) -> str:
        """The file being written."""
        return str(self.path)

    def open(self, flows: Sequence[SinkFlow]) -> None:
        """Begin the first file.

        Raises:
            CaptureError: it cannot be created.
        """
        del flows  # a capture's frames contain their addresses
        self.path = self._following() if self._spec.rotates else self._named
        self._begin()

    def write(self, batch: SentBatch) -> None:
        """Append frames, beginning new files where they are due; stamps must not fall.

        Raises:
            CaptureError: the disk is full or fails; ``written`` counts the stored ones, the file ends with a whole record.
        """
        sent, at = self._stacks.send(batch), 0
        end = np.concatenate(([0], np.cumsum(sent.size + np.int64(_RECORD_HEADER_SIZE))))[sent.first]
        while at < batch.size.size:
            ends = end[at + 1 :] - end[at]
            count = self._fitting(batch.stamp_ns[at:], ends)
            if count == 0:
                self._rotate()
                continue
            rows = slice(sent.first[at], sent.first[at + count])
            self._append(sent.stamp_ns[rows], sent.frames[rows], sent.size[rows], ends[:count])
            at += count

    def close(self) -> None:
        """End the last file; closing again does nothing.

        Raises:
            CaptureError: the disk fails.
        """
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _fitting(self, stamp_ns: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> int:
        """Number of datagrams that fit into this file; at least one for an empty file."""
        count = int(stamp_ns.size)
        is_empty = self._bytes == _FILE_HEADER_SIZE
        if self._spec.rotate_s:
            if is_empty:
                self._until_ns = self._boundary_ns(int(stamp_ns[0]))
            count = int(np.searchsorted(stamp_ns, self._until_ns))
        if self._spec.rotate_mb:
            room = int(self._spec.rotate_mb * 1e6) - self._bytes
            count = min(count, max(int(np.searchsorted(ends, room, side="right")), int(is_empty)))
        return count

    def _boundary_ns(self, stamp_ns: int) -> int:
        """When the file that begins with this stamp ends: boundaries are whole multiples after the first frame of all, so that they do not drift."""
        if self._first_ns is None:
            self._first_ns = stamp_ns
        period_ns = round(self._spec.rotate_s * 1e9)
        return self._first_ns + ((stamp_ns - self._first_ns) // period_ns + 1) * period_ns

    def _append(
        self, stamp_ns: npt.NDArray[np.int64], frames: npt.NDArray[np.uint8], size: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]
    ) -> None:
        if self._writer is None:
            raise AssertionError("a series is opened before it is written to")
        try:
            self._writer.write_many(stamp_ns, frames, size)
            self._writer.flush()
        except CaptureError:
            with suppress(OSError):
                self.written += int(np.searchsorted(ends, self.path.stat().st_size - self._bytes, side="right"))
            raise
        self._bytes += int(ends[-1])
        self.written += ends.size

    def _rotate(self) -> None:
        self.close()
        self.path = self._following()
        self._begin()
        if self._spec.keep:
            for _, path in self._existing()[: -self._spec.keep]:
                beside = metadata_beside(path, self._metadata)
                try:
                    for file in (path, *beside):
                        file.unlink()
                except OSError as error:
                    raise CaptureError(f"{path}: cannot be deleted: {error.strerror}") from error

    def _begin(self) -> None:
        writer = PcapWriter(self.path, stamps="us" if self._spec.stamps == "us" else "ns")
        try:
            writer.flush()  # the file's header: what exists is a capture, however little follows
        except CaptureError:
            writer.close()
            if self.path.is_file():
                self.path.unlink()
            raise
        write_beside(self.path, self._metadata)
        self._writer = writer
        self._bytes = _FILE_HEADER_SIZE

    def _existing(self) -> list[tuple[int, Path]]:
        """The rotation's files with their numbers, the oldest first."""
        pattern = re.compile(re.escape(self._named.stem) + r"-(\d{4,})" + re.escape(self._named.suffix))
        found = [(pattern.fullmatch(path.name), path) for path in self._named.parent.iterdir()]
        return sorted((int(match[1]), path) for match, path in found if match)

    def _following(self) -> Path:
        numbers = [number for number, _ in self._existing()]
        return self._named.with_name(f"{self._named.stem}-{max(numbers, default=0) + 1:04d}{self._named.suffix}")
