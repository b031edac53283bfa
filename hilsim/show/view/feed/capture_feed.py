"""Scans of a capture, played at its own rate in a loop."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.capture.batches import CaptureBatches, DatagramArrays
from hilsim.capture.metadata import given_metadata
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError, HilsimError, require
from hilsim.read.scans.streams import SensorStreams
from hilsim.show.view.feed.packets import LatestPackets
from hilsim.show.view.feed.store import ScanStore
from hilsim.show.view.feed.streams import StoredFeed
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.poses import Pose

log = structlog.get_logger("hilsim")

_STEP_S = 0.02
_LONGEST_S = 1e6


class CaptureFeed(StoredFeed):
    """A capture file as a feed. Times are those of the capture; scans of each pass are numbered on.

    Attributes:
        title: Path of the capture.
        duration_s: Time from the first to the last packet.
        notes: Remarks of the reader on the file, such as packets that the capture cut, one sentence each.
        fault: Reason why playing has ended; empty while it has not.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        mounts: Mapping[str, Pose] | None = None,
        seconds: float = 10.0,
        most_bytes: int = 256_000_000,
        with_packets: bool = False,
    ) -> None:
        """Read the capture once for its length, and start to play it.

        Args:
            path: PCAP or PCAPNG, plain, gzip or zstd.
            mounts: Poses of sensors by their names; the others are at the origin.
            seconds: Time for which scans are stored.
            most_bytes: Most memory of stored scans.
            with_packets: Whether packets are stored for ``packets``.

        Raises:
            CaptureError: it cannot be read, or has no UDP datagram.
            ValueError: an argument is out of bounds.
        """
        self.title = str(path)
        self.fault = ""
        self._path = Path(path)
        self._begin_ns, self.duration_s, self.notes = _measured(self._path)
        self._packets = LatestPackets() if with_packets else None
        self._store = ScanStore(seconds=seconds, most_bytes=most_bytes)
        self._mounts = mounts or {}
        self._streams = SensorStreams(self._store.add, self._store.add_sensor, self._pose, given_metadata(capture=self._path))
        self._names = SensorNames()
        self._changing = threading.Condition()
        self._is_playing = True
        self._is_closed = False
        self._seek_s: float | None = 0.0
        self._position_s = 0.0
        self._thread = threading.Thread(target=self._run, name="view-capture", daemon=True)
        self._thread.start()

    def _pose(self, sensor: str, _stamp_ns: int) -> tuple[Vector, Quaternion]:
        mount = self._mounts.get(sensor, Pose())
        return mount.position_m, mount.orientation

    @property
    def position_s(self) -> float:
        """Time of the latest played packet from the first one."""
        return self._position_s

    @property
    def is_playing(self) -> bool:
        """Whether it plays."""
        return self._is_playing

    def play(self) -> None:
        """Continue."""
        self._set(is_playing=True)

    def pause(self) -> None:
        """Pause; scans remain stored."""
        self._set(is_playing=False)

    def seek_s(self, position_s: float) -> None:
        """Continue at a time from the first packet, also while it is paused.

        Raises:
            ValueError: the time is out of bounds.
        """
        require((0.0 <= position_s <= _LONGEST_S, f"position_s must be 0 to {_LONGEST_S:g}, got {position_s}"))
        with self._changing:
            self._seek_s = min(position_s, self.duration_s)
            self._changing.notify_all()

    def status(self) -> None:
        """A capture has none."""
        return

    def close(self) -> None:
        """End the thread."""
        with self._changing:
            self._is_closed = True
            self._changing.notify_all()
        self._thread.join(5.0)

    def _set(self, *, is_playing: bool) -> None:
        with self._changing:
            self._is_playing = is_playing
            self._changing.notify_all()

    def _run(self) -> None:
        try:
            while not self._is_closed:
                with self._changing:
                    seek_s, self._seek_s = self._seek_s, None
                self._play(0.0 if seek_s is None else seek_s)
        except HilsimError as error:
            self.fault = str(error)
            log.warning("view.capture_ended", capture=self.title, reason=self.fault)

    def _play(self, begin_s: float) -> None:
        """Play from a time to the end of the file, or until it is closed or another time is requested."""
        self._streams.reset()
        self._position_s = begin_s
        file_ns = self._begin_ns + round(begin_s * 1e9)
        shown_ns = time.monotonic_ns()
        for whole in CaptureBatches(self._path):
            if int(whole.host_stamp_ns.max()) < file_ns:
                if self._is_interrupted():
                    return
                continue
            after = np.flatnonzero(whole.host_stamp_ns >= file_ns)
            while after.size:
                due_ns = int(whole.host_stamp_ns[after[0]]) + round(_STEP_S * 1e9)
                some = after[whole.host_stamp_ns[after] < due_ns]
                pause_ns = self._await(shown_ns + due_ns - file_ns)
                if pause_ns is None:
                    return
                shown_ns += pause_ns
                self._show(whole, some)
                after = after[some.size :] if np.array_equal(some, after[: some.size]) else np.setdiff1d(after, some)

    def _show(self, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        for name, own in self._names.rows(batch, rows):
            self._add(name, batch, own)
        self._position_s = max((int(batch.host_stamp_ns[rows[-1]]) - self._begin_ns) / 1e9, 0.0)

    def _await(self, due_ns: int) -> int | None:
        """Wait for CLOCK_MONOTONIC ``due_ns``; returns by how much a pause has delayed it, or None if the playing is interrupted."""
        paused_ns = 0
        with self._changing:
            while True:
                if self._is_closed or self._seek_s is not None:
                    return None
                begun_ns = time.monotonic_ns()
                if not self._is_playing:
                    self._changing.wait()
                    paused_ns += time.monotonic_ns() - begun_ns
                elif begun_ns >= due_ns + paused_ns:
                    behind_ns = begun_ns - due_ns - paused_ns
                    return paused_ns + (behind_ns if behind_ns > 500_000_000 else 0)  # too slow a machine plays slower, and does not hurry
                else:
                    self._changing.wait((due_ns + paused_ns - begun_ns) / 1e9)

    def _is_interrupted(self) -> bool:
        return self._is_closed or self._seek_s is not None


def _measured(path: Path) -> tuple[int, float, tuple[str, ...]]:
    """First stamp of a capture, its length in seconds, and remarks.

    Raises:
        CaptureError: it cannot be read, or has no UDP datagram.
    """
    reader = CaptureBatches(path)
    first, last = 1 << 62, 0
    for batch in reader:
        first = min(first, int(batch.host_stamp_ns.min()))
        last = max(last, int(batch.host_stamp_ns.max()))
    if last < first:
        raise CaptureError(f"{path}: a capture must have UDP datagrams, got none")
    return first, (last - first) / 1e9, reader.file.notes.lines()
