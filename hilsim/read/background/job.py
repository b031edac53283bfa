"""The map step: from one capture to one partial map. Its arguments are picklable and complete, so that any worker can run it."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import CaptureBatches, DatagramArrays, UnusualRecordError
from hilsim.capture.cuts import FilePart, cut
from hilsim.errors import CaptureError, require
from hilsim.read.background.compensation import STANDING, build_compensation
from hilsim.read.background.movement import Change, check_standing
from hilsim.read.background.part import Advance, Counter, FoundSensor, MapSource, map_sources
from hilsim.read.background.partial import CaptureShare, PartialMap, merge
from hilsim.read.background.survey import check_others, choose, kinds_of, survey
from hilsim.read.background.table import EMPTY, FOREIGN, OUTSIDE, PACKETS, RETURNS, TALLY_SIZE, clear, empty_table, grown, in_order
from hilsim.sensor.specs import LidarSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.scene.background import Grid

THIRDS = 3
_MIN_PART_BYTES = 8 << 20
"""Minimum size of a thread's part: some 70 ms of work."""
_POSE_SLACK_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Part of a capture to use, by the capture times of packets.

    Attributes:
        start_s: Start, since the capture's first datagram.
        duration_s: Duration; None for the rest of the capture.
    """

    start_s: float = 0.0
    duration_s: float | None = None

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.start_s < 1e9, f"start_s must be 0 to 1000000000, got {self.start_s}"),
            (self.duration_s is None or 0.0 < self.duration_s < 1e9, f"duration_s must be above 0, got {self.duration_s}"),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """Motion of the sensor's carrier.

    Attributes:
        track: Track of the body.
        is_utc: Whether times are UTC, as in captures; otherwise time 0 is the capture's start.
        body_from_sensor: Mounting of the sensor.
    """

    track: PoseTrack
    is_utc: bool
    body_from_sensor: Pose


@dataclass(frozen=True, kw_only=True, eq=False)
class MapJob:
    """Parameters of the map step for each capture.

    Attributes:
        grid: Grid of the map.
        source: Packets of the first capture's sensor.
        named: Profile of the sensor, if the user gives it.
        sensor: Address of the sensor; empty if each capture has only one.
        stretch: Part of each capture to use.
        motion: Motion of the sensor; None for a stationary sensor, which is then checked.
    """

    grid: Grid
    source: MapSource
    named: LidarSpec | None = None
    sensor: str = ""
    stretch: Stretch = Stretch()
    motion: Motion | None = None


class MappedCapture(NamedTuple):
    """Result of the map step for a capture.

    Attributes:
        partial: Counts of the capture.
        change: Change between its first and last third; None if not computed.
        notes: Notes of the reader about the file.
    """

    partial: PartialMap
    change: Change | None
    notes: tuple[str, ...]


class _Counted(NamedTuple):
    """Counts of a capture, or of a part of it.

    Attributes:
        thirds: Counts of each third of the capture.
        packets: Number of packets decoded.
        first_ns: Stamp of the first packet; 0 if there are none.
        last_ns: Stamp of the last packet.
        begin_ns: Stamp of the capture's start.
    """

    thirds: list[PartialMap]
    packets: int
    first_ns: int
    last_ns: int
    begin_ns: int


def map_capture(job: MapJob, path: Path, advance: Advance = lambda _: None, threads: int = 1) -> MappedCapture:
    """Count the returns of a capture by cell.

    Args:
        job: Parameters of the map step.
        path: Capture, which is read twice: first its beginning, to find the sensors.
        advance: Called with the number of bytes read since the last call.
        threads: Number of threads that read parts of it, if it can be divided; the result does not depend on it.

    Raises:
        CaptureError: the capture cannot be read; it has another model than the job's, several sensors, or a sensor that moved; it has no returns; its decoder is not installed.
    """
    if not path.is_file():
        raise CaptureError(
            f"{path}: must be a file that can be read twice" if path.exists() else f"{path}: cannot be opened: No such file or directory"
        )
    sensor = surveyed(job, path)
    with ThreadPoolExecutor(1, thread_name_prefix="sha256") as beside:
        digest = beside.submit(_sha256, path)
        if sensor.source.decoded and not job.sensor:
            _check_alone(job.stretch, sensor, path)
        with sensor.source.readable(path, sensor, advance) as source:
            counted, notes = _counted(job, sensor, source.path, advance if source.path == path else lambda _: None, str(path), threads)
    seen = None
    if job.motion is not None:
        check_covered(job.motion, counted.begin_ns, counted.first_ns, counted.last_ns, str(path))
    else:
        seen = check_standing(counted.thirds[0], counted.thirds[-1], f"{path}: from its first to its last third")
    share = CaptureShare(name=path.name, sha256=digest.result(), packets=counted.packets, first_ns=counted.first_ns, last_ns=counted.last_ns)
    whole = merge(counted.thirds)
    if not whole.returns:
        raise CaptureError(f"{path}: must hold returns of {sensor}, got none in {counted.packets:,} packets")
    return MappedCapture(replace(whole, captures=(share,)), seen, (*source.notes, *notes))


def _counted(job: MapJob, sensor: FoundSensor, path: Path, advance: Advance, where: str, threads: int) -> tuple[_Counted, tuple[str, ...]]:
    """Counts of each third of a capture, and notes of its reader: the file is divided into parts if possible, because thirds must not depend on the number of threads."""
    size_bytes = path.stat().st_size
    threads = min(threads, max(size_bytes // _MIN_PART_BYTES, 1))
    parts = cut(path, THIRDS * threads)
    if parts:
        progress = _Progress(advance)
        with suppress(UnusualRecordError):
            return _joined(_counted_beside(job, sensor, path, parts, progress, where, threads)), ()
        progress.take_back()
    batches = CaptureBatches(path)
    counted = _counted_part(job, sensor, _by_thirds(job.stretch, batches, advance), where)
    alone = f"read by one thread, not {threads}: only plain PCAP files of whole Ethernet frames can be read in parts"
    return counted, (*batches.file.notes.lines(), *([alone] if threads > 1 else []))


class _Progress:
    """Progress in bytes, counted by several threads."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._lock = Lock()
        self._done_bytes = 0

    def __call__(self, done_bytes: int) -> None:
        with self._lock:
            self._done_bytes += done_bytes
            self._advance(done_bytes)

    def take_back(self) -> None:
        self(-self._done_bytes)


def _counted_beside(
    job: MapJob, sensor: FoundSensor, path: Path, parts: tuple[FilePart, ...], advance: Advance, where: str, threads: int
) -> list[_Counted]:
    """Count each part of the capture in a thread pool (the kernels release the GIL)."""
    first = next((batch for batch in CaptureBatches(path, FilePart(parts[0].start, parts[-1].stop, parts[0].fraction_ns)) if batch.start.size), None)
    begin_ns = 0 if first is None else int(first.host_stamp_ns[0])

    def of_part(number: int) -> _Counted:
        batches = CaptureBatches(path, parts[number])
        return _counted_part(job, sensor, _by_thirds(job.stretch, batches, advance, place=number * THIRDS // len(parts), begin_ns=begin_ns), where)

    if threads == 1:
        return list(map(of_part, range(len(parts))))
    with ThreadPoolExecutor(threads, thread_name_prefix="map") as pool:
        return list(pool.map(of_part, range(len(parts))))


def _counted_part(job: MapJob, sensor: FoundSensor, batches: Iterator[tuple[int, int, DatagramArrays]], where: str) -> _Counted:
    """Counts of batches whose thirds are in order."""
    maker = PartialMapMaker(job, sensor, where)
    thirds: list[PartialMap] = []
    for third, begin_ns, batch in batches:
        while len(thirds) < third:
            thirds.append(maker.take())
        maker.add(batch, begin_ns)
    while len(thirds) < THIRDS:
        thirds.append(maker.take())
    return _Counted(thirds, maker.packets, maker.first_ns, maker.last_ns, maker.begin_ns)


def _joined(parts: list[_Counted]) -> _Counted:
    """Sum of the counts of all parts, which must be in order."""
    seen = [part for part in parts if part.packets] or parts[:1]
    return _Counted(
        [merge(thirds) for thirds in zip(*(part.thirds for part in parts), strict=True)],
        sum(part.packets for part in parts),
        seen[0].first_ns,
        seen[-1].last_ns,
        seen[0].begin_ns,
    )


def _check_alone(stretch: Stretch, sensor: FoundSensor, path: Path) -> None:
    """Check as ``PartialMapMaker.add`` does, for a sensor whose packets are decoded by another process: its output has only this sensor."""
    for _, _, batch in _by_thirds(stretch, CaptureBatches(path), lambda _: None):
        kinds = kinds_of(batch)
        check_others(batch, kinds, (kinds == _number(type(sensor.source))) & (batch.sender == sensor.sender), sensor, str(path))


def check_covered(motion: Motion, begin_ns: int, first_ns: int, last_ns: int, where: str) -> None:
    """Check that poses are known for every packet: outside its keys a track is constant.

    Args:
        motion: Motion of the sensor.
        begin_ns: Time at which the capture begins.
        first_ns: Time of the first packet.
        last_ns: Time of the last packet.
        where: Name of the capture for the error.

    Raises:
        CaptureError: the poses do not cover the packets.
    """
    base_ns = 0 if motion.is_utc else begin_ns
    first_s, last_s = (first_ns - base_ns) / 1e9, (last_ns - base_ns) / 1e9
    known_s = float(motion.track.time_ns[0]) / 1e9, float(motion.track.time_ns[-1]) / 1e9
    if not known_s[0] - _POSE_SLACK_S <= first_s <= last_s <= known_s[1] + _POSE_SLACK_S:
        raise CaptureError(
            f"{where}: the poses must cover the packets' times, {first_s:.3f} to {last_s:.3f} s, got poses from {known_s[0]:.3f} to {known_s[1]:.3f} s"
        )


def surveyed(job: MapJob, path: Path) -> FoundSensor:
    """Sensor of the capture, which must be of the job's model.

    Raises:
        CaptureError: the capture has another model, no sensor, or several.
    """
    sensor = choose(survey(CaptureBatches(path), job.sensor), job.sensor, str(path))
    if (type(sensor.source), sensor.source.model) != (type(job.source), job.source.model):
        raise CaptureError(f"{path}: must be of a {job.source.model}, as the captures before, got {sensor}")
    return sensor


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from error


def _by_thirds(
    stretch: Stretch, batches: CaptureBatches, advance: Advance, *, place: int | None = None, begin_ns: int | None = None
) -> Iterator[tuple[int, int, DatagramArrays]]:
    """Yield the batches of a capture's selected part, each with its third and the capture's first stamp. Thirds are divided by time if its length is known, else by ``place``, or the position in the file."""
    size_bytes = max(batches.file.size_bytes, 1)
    done = 0
    first_ns = begin_ns
    for batch in batches:
        third_here = min(THIRDS * done // size_bytes, THIRDS - 1) if place is None else place
        advance(batches.read_bytes - done)
        done = batches.read_bytes
        if not batch.start.size:
            continue
        first_ns = int(batch.host_stamp_ns[0]) if first_ns is None else first_ns
        if stretch == Stretch():
            yield third_here, first_ns, batch
            continue
        since_s = (batch.host_stamp_ns - first_ns) * 1e-9 - stretch.start_s
        if stretch.duration_s is None:
            yield third_here, first_ns, _part(batch, since_s >= 0.0)
            continue
        step_s = stretch.duration_s / THIRDS
        for third in range(THIRDS):
            yield third, first_ns, _part(batch, (since_s >= third * step_s) & (since_s < (third + 1) * step_s))
        if since_s[0] > stretch.duration_s:
            return


def _part(batch: DatagramArrays, is_in: npt.NDArray[np.bool_]) -> DatagramArrays:
    return DatagramArrays(batch.data, batch.start[is_in], batch.size[is_in], batch.host_stamp_ns[is_in], batch.sender[is_in])


def _number(source: type[MapSource]) -> int:
    """Kind of a source's packets in ``kinds_of``."""
    return map_sources().index(source) + 1


class PartialMapMaker:
    """Counts the returns of batches.

    Attributes:
        packets: Number of packets decoded since the start.
        begin_ns: Start of their source.
        first_ns: Stamp of the first packet; 0 before.
        last_ns: Stamp of the last packet.
    """

    def __init__(self, job: MapJob, sensor: FoundSensor, where: str) -> None:
        """Prepare for one sensor's packets; ``where`` is the name of their source in errors."""
        self._job = job
        self._sensor = sensor
        self._where = where
        self._table = empty_table(job.grid.rows * job.grid.columns)
        self._tally = np.zeros(TALLY_SIZE, dtype=np.int64)
        self._kind = _number(sensor.source.decoded or type(sensor.source))
        self._count: Counter | None = None
        self.packets = self.begin_ns = self.first_ns = self.last_ns = 0

    def add(self, batch: DatagramArrays, begin_ns: int) -> None:
        """Count the returns of the sensor's packets in a batch of a source that started at ``begin_ns``.

        Raises:
            CaptureError: there are packets of another sensor without a choice, or of another model.
        """
        kinds = kinds_of(batch)
        is_chosen = (kinds == self._kind) & (batch.sender == self._sensor.sender)
        if not self._job.sensor:
            check_others(batch, kinds, is_chosen, self._sensor, self._where)
        stamps = batch.host_stamp_ns[is_chosen]
        if not stamps.size:
            return
        if self._count is None:
            self.begin_ns, self.first_ns = begin_ns, int(stamps[0])
            self._count = self._counter(begin_ns)
        self.last_ns = int(stamps[-1])
        at = 0
        while (at := self._count(batch, is_chosen, at, self._table, self._tally)) < len(kinds):
            self._table = grown(self._table)
        if self._tally[FOREIGN]:
            raise CaptureError(f"{self._where}: must hold packets of one model from {self._sensor}, got some that name another one")

    def _counter(self, begin_ns: int) -> Counter:
        motion = self._job.motion
        moved = build_compensation(motion.track, motion.body_from_sensor) if motion else STANDING
        epoch_ns = 0 if motion and motion.is_utc else begin_ns
        return self._sensor.source.counter(self._job.grid, self._job.named, moved, epoch_ns)

    def take(self) -> PartialMap:
        """Counts since the last call."""
        tally = self._tally.copy()
        partial = PartialMap(
            grid=self._job.grid,
            rows=in_order(self._table),
            returns=int(tally[RETURNS]),
            empty=int(tally[EMPTY]),
            outside=int(tally[OUTSIDE]),
        )
        self.packets += int(tally[PACKETS])
        clear(self._table)
        self._tally[:] = 0
        return partial
