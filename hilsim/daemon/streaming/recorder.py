"""Recording live: an ordinary thread takes copies of what was sent off the sending loop's tape and writes them to capture files.

The thread may hold the GIL, wait for the disk and fail: the sending loop notices nothing, it only counts what no longer fits on the tape.
"""

import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import structlog

from hilsim._jit import kernel
from hilsim.capture.pcap import PcapWriter
from hilsim.config.rig import RecordSpec
from hilsim.errors import CaptureError
from hilsim.protocols.ethernet import HEADER_SIZE, Framing, write_headers
from hilsim.telemetry.readings import RecordingReading
from hilsim.transmit.loop import RecordingState
from hilsim.transmit.packet_queue import Tape, release, waiting
from hilsim.transmit.transmitter import Transmitter

log = structlog.get_logger("hilsim")

_INTERVAL_S = 0.05
_LONGEST_END_S = 5.0
"""How long the end waits for a disk that hangs; one that keeps up takes some 50 ms."""

_TAPE_S = 2.0
_FEWEST_SLOTS, _MOST_SLOTS = 4096, 65536
_ROWS = 256
"""Frames made at a time. Their 330 kB stay in the cache: 3.0 us of CPU a VLP-16 packet, where 1024 at a time take 4.7."""

_FILE_HEADER_SIZE, _RECORD_HEADER_SIZE = 24, 16


def tape_slots(packet_rate_hz: float) -> int:
    """Slots for what is sent in two seconds, so that a disk may pause that long; at most 65,536 (82 MB)."""
    return min(max(round(_TAPE_S * packet_rate_hz), _FEWEST_SLOTS), _MOST_SLOTS)


class Links(NamedTuple):
    """How L flows' datagrams become frames, by flow number; as ``Framing``, where a header of 0 bytes says that the tape holds whole frames.

    Attributes:
        header_size: ``int64[L]``.
        template: ``uint8[L, 42]``.
        counting_identification: ``bool[L]``.
        udp_checksum: ``bool[L]``.
        framed: ``int64[L]``: frames made so far, counted here.
    """

    header_size: npt.NDArray[np.int64]
    template: npt.NDArray[np.uint8]
    counting_identification: npt.NDArray[np.bool_]
    udp_checksum: npt.NDArray[np.bool_]
    framed: npt.NDArray[np.int64]


@kernel
def frame_waiting(tape: Tape, links: Links, sent_ns: npt.NDArray[np.int64], frames: npt.NDArray[np.uint8], size: npt.NDArray[np.int32]) -> int:
    """Take up to n of the oldest datagrams off the tape as Ethernet frames; returns how many.

    Args:
        tape: This is its only consumer.
        links: For every flow number on the tape.
        sent_ns: ``int64[n]``, written: when each was sent, CLOCK_MONOTONIC.
        frames: ``uint8[n, 42 + the tape's capacity]``, written.
        size: ``int32[n]``, written: bytes of each frame.
    """
    count = min(waiting(tape), sent_ns.size)
    slots = tape.time_ns.size
    for row in range(count):
        slot = (tape.head[0] + row) % slots
        number = tape.flow[slot]
        header_size = links.header_size[number]
        used = tape.size[slot]
        for at in range(used):
            frames[row, header_size + at] = tape.payload[slot, at]
        if header_size != 0:
            links.framed[number] += 1
            identification = links.framed[number] if links.counting_identification[number] else 0
            write_headers(links.template[number], identification, links.udp_checksum[number], frames[row], used)
        sent_ns[row] = tape.time_ns[slot]
        size[row] = header_size + used
    release(tape, count)
    return count


class CaptureSeries:
    """One capture file, or one after the other.

    Attributes:
        path: The file being written.
        recorded: Frames that stand in files.
    """

    def __init__(self, spec: RecordSpec, directory: Path) -> None:
        """Files as ``spec`` says, relative to ``directory``; nothing is made before ``open``."""
        self.path = self._named = directory / spec.file
        self.recorded = 0
        self._spec = spec
        self._writer: PcapWriter | None = None
        self._bytes = 0
        self._first_ns: int | None = None
        self._until_ns = 0

    def check(self) -> None:
        """See whether files can be created.

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

    def open(self) -> None:
        """Begin the first file.

        Raises:
            CaptureError: it cannot be created.
        """
        self.path = self._following() if self._spec.rotates else self._named
        self._begin()

    def write(self, stamp_ns: npt.NDArray[np.int64], frames: npt.NDArray[np.uint8], size: npt.NDArray[np.int32]) -> None:
        """Append frames, beginning new files where they are due.

        Args:
            stamp_ns: ``int64[n]``, nanoseconds since 1970-01-01 UTC, not falling.
            frames: ``uint8[n, capacity]``.
            size: ``int32[n]``.

        Raises:
            CaptureError: the disk is full or fails; ``recorded`` tells how many got there, the file ends with a whole record.
        """
        at = 0
        while at < size.size:
            ends = np.cumsum(size[at:] + np.int64(_RECORD_HEADER_SIZE))
            count = self._fitting(stamp_ns[at:], ends)
            if count == 0:
                self._rotate()
                continue
            rows = slice(at, at + count)
            self._append(stamp_ns[rows], frames[rows], size[rows], ends[:count])
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
        """How many frames belong into this file; into an empty one at least one."""
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
        """When the file that begins with this stamp ends: boundaries are whole multiples after the first frame of all, so that they do not wander."""
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
                self.recorded += int(np.searchsorted(ends, self.path.stat().st_size - self._bytes, side="right"))
            raise
        self._bytes += int(ends[-1])
        self.recorded += size.size

    def _rotate(self) -> None:
        self.close()
        self.path = self._following()
        self._begin()
        if self._spec.keep:
            for _, path in self._existing()[: -self._spec.keep]:
                try:
                    path.unlink()
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


class Recorder:
    """Records what a transmitter sends until it is stopped or the disk fails.

    Attributes:
        fault: Why the recording has ended before it was told to; empty while it has not.
    """

    def __init__(self, spec: RecordSpec, directory: Path) -> None:
        """As ``spec`` says, files relative to ``directory``; nothing is made before ``open``."""
        self.fault = ""
        self._series = CaptureSeries(spec, directory)
        self._transmitter: Transmitter | None = None
        self._framings: dict[int, Framing] = {}
        self._links = _links({}, None)
        self._changing = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._utc_offset_ns = 0
        self._lost = 0
        self._warned = False

    def check(self) -> None:
        """See whether files can be created, before anything is sent.

        Raises:
            CaptureError: they cannot.
        """
        self._series.check()

    def add_flow(self, number: int, framing: Framing) -> None:
        """Say how a flow's datagrams become frames (``PAYLOAD_ONLY``: they are frames); before its first one is sent.

        Args:
            number: ``Transmitter.flow_number``; one that was used before counts its frames anew.
            framing: The headers to put before each.
        """
        with self._changing:
            self._framings[number] = framing
            self._links = _links(self._framings, self._links)
            self._links.framed[number] = 0

    def open(self, transmitter: Transmitter) -> None:
        """Create the first file and load the kernel.

        Raises:
            CaptureError: the file cannot be created.
        """
        self._transmitter = transmitter
        capacity = HEADER_SIZE + transmitter.tape.payload.shape[1]
        self._sent_ns, self._size = np.zeros(_ROWS, np.int64), np.zeros(_ROWS, np.int32)
        self._frames = np.zeros((_ROWS, capacity), np.uint8)
        self._take(transmitter)
        self._series.open()

    def start(self, *, utc_offset_ns: int) -> None:
        """Record from now on; ``utc_offset_ns`` is UTC minus CLOCK_MONOTONIC."""
        transmitter = self._opened()
        self._utc_offset_ns = utc_offset_ns
        self._thread = threading.Thread(target=self._run, args=(transmitter,), name="record", daemon=True)
        transmitter.set_recording(RecordingState.ON)
        self._thread.start()
        log.info("recording.started", file=str(self._series.path))

    def stop(self) -> None:
        """Write what is still on the tape and close the file; the transmitter has stopped before. A disk that hangs is left after 5 s."""
        self._ending.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_LONGEST_END_S)
            if thread.is_alive():
                self.fault = f"{self._series.path}: the disk took nothing for {_LONGEST_END_S:g} s"
                log.error("recording.ended", reason=self.fault, packets=self._series.recorded)
                return
        with suppress(CaptureError):  # here it holds no frame that is not on disk
            self._series.close()

    def reading(self) -> RecordingReading:
        """What a scrape shows; wait-free."""
        return RecordingReading(running=not self.fault, recorded_packets=self._series.recorded, unrecorded_packets=self._unrecorded())

    def _unrecorded(self) -> int:
        return int(self._opened().statistics.unrecorded[0]) + self._lost

    def _opened(self) -> Transmitter:
        if self._transmitter is None:
            raise AssertionError("a recorder is opened before it is used")
        return self._transmitter

    def _run(self, transmitter: Transmitter) -> None:
        try:
            while not self._ending.wait(_INTERVAL_S):
                self._write_waiting(transmitter)
            self._write_waiting(transmitter)
            self._series.close()
        except (CaptureError, OSError) as error:
            self._fail(transmitter, str(error))
        except Exception as error:  # the top of a thread: whatever ends a recording must not do so in silence
            log.exception("recording.broke", file=str(self._series.path))
            self._fail(transmitter, f"an error of this program: {type(error).__name__}: {error}")
        else:
            log.info("recording.ended", file=str(self._series.path), packets=self._series.recorded, unrecorded_packets=self._unrecorded())

    def _take(self, transmitter: Transmitter) -> int:
        with self._changing:
            return int(frame_waiting(transmitter.tape, self._links, self._sent_ns, self._frames, self._size))

    def _write_waiting(self, transmitter: Transmitter) -> None:
        count = _ROWS
        while count == _ROWS:
            count = self._take(transmitter)
            before = self._series.recorded
            try:
                self._series.write(self._sent_ns[:count] + self._utc_offset_ns, self._frames[:count], self._size[:count])
            finally:
                self._lost += count - (self._series.recorded - before)  # 0 unless it failed
        if not self._warned and transmitter.statistics.unrecorded[0] > 0:
            self._warned = True
            log.warning("recording.packets_missed", packets=int(transmitter.statistics.unrecorded[0]), reason="the disk is slower than the stream")

    def _fail(self, transmitter: Transmitter, reason: str) -> None:
        try:
            transmitter.set_recording(RecordingState.ENDED)
            count = self._take(transmitter)
            while count > 0:
                self._lost += count
                count = self._take(transmitter)
            with suppress(CaptureError, OSError):
                self._series.close()
        finally:
            self.fault = reason
            log.error("recording.ended", reason=reason, packets=self._series.recorded, unrecorded_packets=self._unrecorded())


def _links(framings: dict[int, Framing], former: Links | None) -> Links:
    """Tables with a row for every number up to the highest; what ``former`` counted is kept."""
    count = max(framings, default=-1) + 1
    links = Links(
        header_size=np.zeros(count, np.int64),
        template=np.zeros((count, HEADER_SIZE), np.uint8),
        counting_identification=np.zeros(count, np.bool_),
        udp_checksum=np.zeros(count, np.bool_),
        framed=np.zeros(count, np.int64),
    )
    for number, framing in framings.items():
        links.header_size[number] = framing.header_size
        links.template[number] = framing.template
        links.counting_identification[number] = framing.counting_identification
        links.udp_checksum[number] = framing.udp_checksum
    if former is not None:
        links.framed[: former.framed.size] = former.framed[:count]
    return links
