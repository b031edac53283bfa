"""Replay without a real-time clock: batches in rig time, with the same packets and deadlines as the daemon's."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.pcap import CaptureFile
from hilsim.compilation.jit import constant, kernel
from hilsim.emulator.batch import DatagramBatch, Flow
from hilsim.emulator.insertion.insertion import Inserter, insert_recorded
from hilsim.emulator.insertion.unit import MAX_FIRINGS, RETURNS
from hilsim.emulator.retime import NOTHING, StampClock, retime
from hilsim.emulator.truth import Truth, allocate_truth
from hilsim.parts.replays.actions.timed import Action, unscaled
from hilsim.parts.replays.flows import LoopbackSources
from hilsim.parts.replays.inserting.lanes import InsertionLanes
from hilsim.parts.replays.recorded.plan import look_over, plan_cut
from hilsim.parts.replays.recorded.reader import CaptureReader, Cues
from hilsim.parts.replays.recorded.seam import Cut, seam_note
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.parts.replays.targets import find_target, link_framing
from hilsim.protocols.ethernet import HEADER_SIZE, Framing, write_headers

if TYPE_CHECKING:
    from hilsim.world.scene.world import World

_PACKET_NS = 20_000_000
"""Longer than a packet's firings take."""
_FOR_EVER_NS = 1 << 62
_RUNS_AHEAD = 8
"""Runs of 256 packets that are read beside the work on those before."""
_UNCOUNTED, _HEADER_SIZE = constant(0), constant(HEADER_SIZE)


_Times = npt.NDArray[np.int64]


@kernel
def _finish(
    retiming: npt.NDArray[np.int64],
    clock: StampClock,
    stamp_ns: _Times,
    template: npt.NDArray[np.uint8],
    first: int,
    udp_checksum: bool,  # noqa: FBT001 - a kernel takes plain positional scalars
    frames: npt.NDArray[np.uint8],
    size: npt.NDArray[np.int32],
) -> None:
    """Re-time the payloads at ``frames[:, 42:]`` and write their headers, numbered from ``first`` on; ``size`` becomes that of the frames."""
    for row in range(size.size):
        retime(retiming, clock, stamp_ns[row], frames[row, _HEADER_SIZE : _HEADER_SIZE + size[row]])
        identification = first + row if first != _UNCOUNTED else 0
        size[row] = write_headers(template, identification, udp_checksum, frames[row], size[row])


class _Pending(NamedTuple):
    """A packet that waits for its time; ``key`` is its stamp on the replay's time line. Times are on that line until it is played, then in rig time."""

    due_ns: int
    stamp_ns: int
    track: int
    capture_ns: int
    key: int
    payload: bytes
    passes: int


def _read_ahead(runs: Iterator[Cues]) -> Iterator[Cues]:
    """The same runs, read by another thread while the caller works on those before."""
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as pool:
        waiting: deque[Future[Cues | None]] = deque()
        while True:
            while len(waiting) < _RUNS_AHEAD:
                waiting.append(pool.submit(next, runs, None))
            cues = waiting.popleft().result()
            if cues is None:
                return
            yield cues


class TimedAction(NamedTuple):
    """A change of a replay at a rig time (``actions.timed`` does the same while packets flow).

    Attributes:
        at_ns: Rig time.
        action: Kind of the action.
        position_ns: Capture time at which a seek continues.
    """

    at_ns: int
    action: Action
    position_ns: int = 0


class OfflineReplay:
    """Replay of one capture for a recording, without sending.

    Attributes:
        first_ns: Host stamp of the capture's first datagram.
        begin_ns: Rig time at which the replay begins.
        note: Remark for the operator, empty for none.
        later_worlds: Rig times and worlds with which the inserter continues, by time.
        truth: Ground truth of the returns that objects made, with the deadline of each packet, since it was taken last; None: it is not noted.
        actions: Pauses and seeks, by time.
    """

    def __init__(
        self, spec: ReplaySpec, path: Path, sources: LoopbackSources, *, utc_epoch_ns: int, inserter: Inserter | None = None, threads: int = 1
    ) -> None:
        """Scan the capture; ``utc_epoch_ns`` is the UTC of rig time 0, and ``inserter`` puts objects into the points, with a number of threads.

        Raises:
            CaptureError: the capture cannot be replayed.
        """
        self._spec = spec
        self._sources = sources
        self._inserter = inserter
        self._lanes = InsertionLanes(inserter, threads) if inserter is not None else None
        self._threads = threads
        self.later_worlds: deque[tuple[int, World]] = deque()
        self.truth: list[tuple[int, Truth]] | None = None
        self._rows = allocate_truth(MAX_FIRINGS * RETURNS)
        self._points = 0
        self.actions: deque[TimedAction] = deque()
        shown_ns = utc_epoch_ns if spec.retime == "utc" else round(spec.clock_offset_s * 1e9)
        self._clock = StampClock(shown_ns=shown_ns, utc_ns=utc_epoch_ns)
        overview = look_over(path, spec)
        self.first_ns, self.begin_ns = overview.first_ns, 0
        master, kind = overview.find_master(spec.loop_sensor)
        cut, self.note = None, ""
        if spec.loop == "seamless" and kind is not None:
            cut = plan_cut(path, spec, overview.first_ns, master, kind, overview.names)
            self.note = seam_note(kind, cut)

        def find_cut(*, wait: bool) -> Cut | None:  # noqa: ARG001 - known from the beginning
            return cut

        self._reader = CaptureReader(CaptureFile(path), spec, overview.first_ns, find_cut, master, names=overview.names)
        self._capacity = overview.capacity + HEADER_SIZE
        self._framings: list[tuple[Framing, Flow]] = []
        self._played: list[int] = []
        self._pending: deque[_Pending] = deque()
        self._runs: Iterator[Cues] | None = None
        self._has_ended = False
        self._held_ns: int | None = None
        self._moved_ns = 0
        self._passes = 0

    def span(self, stop_ns: int) -> list[DatagramBatch]:
        """Next frames, up to those due before rig time ``stop_ns``, as a batch for each flow.

        Raises:
            CaptureError: the file cannot be read.
        """
        due = []
        while (cue := self._next_due(stop_ns)) is not None:
            due.append(cue)
        return [self._batch(track, [cue for cue in due if cue.track == track]) for track in sorted({cue.track for cue in due})]

    def _next_due(self, stop_ns: int) -> _Pending | None:
        """Next packet, with rig times, after all actions before it; None if it is due at ``stop_ns`` or later, or must wait for a resume."""
        while True:
            self._fill()
            head_ns = self._rig_ns(self._pending[0].due_ns) if self._pending else None
            if self.actions and (self._held_ns is not None or head_ns is None or head_ns >= self.actions[0].at_ns):
                self._act(self.actions.popleft())
                continue
            if self._held_ns is not None or head_ns is None or head_ns >= stop_ns:
                return None
            cue = self._pending.popleft()
            self._passes = cue.passes
            return cue._replace(due_ns=head_ns, stamp_ns=self._rig_ns(cue.stamp_ns))

    def _fill(self) -> None:
        while not self._pending and not self._has_ended:
            if self._runs is None:
                self._runs = self._begun_runs()
            cues = next(self._runs, None)
            if cues is None:
                self._has_ended = True
                return
            columns = (column.tolist() for column in (cues.due_ns, cues.stamp_ns, cues.track, cues.capture_ns))
            for due_ns, stamp_ns, track, capture_ns, payload in zip(*columns, cues.payloads, strict=True):
                self._pending.append(_Pending(due_ns, stamp_ns, track, capture_ns, stamp_ns, payload, cues.passes))

    def _begun_runs(self) -> Iterator[Cues]:
        """Runs from the beginning; read ahead beside insertion, unless a seek goes on where the reading has come to."""
        runs = self._reader.runs()
        is_ahead = self._lanes is not None and self._threads > 1 and all(action.action is not Action.SEEK for action in self.actions)
        return _read_ahead(runs) if is_ahead else runs

    def _act(self, action: TimedAction) -> None:
        match action.action:
            case Action.PAUSE:
                self._held_ns = action.at_ns if self._held_ns is None else self._held_ns
            case Action.RESUME if self._held_ns is not None:
                self._moved_ns += action.at_ns - self._held_ns
                self._held_ns = None
            case Action.SEEK:
                since_ns = action.at_ns if self._held_ns is None else self._held_ns
                line_ns = unscaled(since_ns - self.begin_ns - self._moved_ns, self._spec.interval_scale)
                self._pending.clear()
                self._runs = self._reader.runs(action.position_ns, lambda: line_ns, self._passes)
                self._has_ended = False

    def _rig_ns(self, line_ns: int) -> int:
        return self.begin_ns + self._moved_ns + self._scaled(line_ns)

    def _scaled(self, duration_ns: int) -> int:
        return duration_ns if self._spec.interval_scale == 1.0 else round(duration_ns * self._spec.interval_scale)

    def _batch(self, track: int, cues: "list[_Pending]") -> DatagramBatch:
        framing, flow = self._framing(track)
        retiming = np.array(NOTHING if self._spec.retime == "none" else self._reader.tracks[track].retiming, np.int64)
        frames, size = np.zeros((len(cues), self._capacity), np.uint8), np.array([len(cue.payload) for cue in cues], np.int32)
        for row, cue in enumerate(cues):
            frames[row, HEADER_SIZE : HEADER_SIZE + size[row]] = np.frombuffer(cue.payload, np.uint8)
        due_ns, stamp_ns, capture_ns, key = (
            np.array(column, np.int64) for column in zip(*((cue.due_ns, cue.stamp_ns, cue.capture_ns, cue.key) for cue in cues), strict=True)
        )
        if self._inserter is not None and self._lanes is not None and self._reader.tracks[track].takes_objects:
            self._insert(self._inserter, self._lanes, frames, size, due_ns, stamp_ns, capture_ns, key)
        first = self._played[track] + 1 if framing.counting_identification else _UNCOUNTED
        _finish(retiming, self._clock, stamp_ns, framing.template, first, framing.udp_checksum, frames, size)
        self._played[track] += len(cues)
        return DatagramBatch(flow, due_ns, np.zeros(len(cues), np.int64), size, frames)

    def _insert(
        self, inserter: Inserter, lanes: InsertionLanes, frames: npt.NDArray[np.uint8], size: npt.NDArray[np.int32], due_ns: _Times, *times: _Times
    ) -> None:
        """Put objects into the packets of a batch; ``times`` are their stamps', their capture times and their keys."""
        stamp_ns, row = times[0], 0
        while row < size.size:
            self._add_worlds(inserter, int(stamp_ns[row]))
            next_ns = self.later_worlds[0][0] - _PACKET_NS if self.later_worlds else _FOR_EVER_NS
            stop = max(int(np.searchsorted(stamp_ns, next_ns)), row + 1) if self.truth is None else row + 1
            chosen = slice(row, stop)
            if self.truth is None:
                lanes.insert(frames[chosen], HEADER_SIZE, size[chosen], *(column[chosen] for column in times))
            else:
                place = inserter.insertion, frames[row, HEADER_SIZE:], int(size[row]), int(times[1][row]), int(stamp_ns[row]), int(times[2][row])
                rows = insert_recorded(*place, self._points + row, self._rows)
                self.truth.append((int(due_ns[row]), Truth._make(column[:rows].copy() for column in self._rows)))
            row = stop
        self._points += size.size

    @property
    def is_overlaid(self) -> bool:
        """Whether objects are put into the points."""
        return self._inserter is not None

    def take_truth(self) -> tuple[npt.NDArray[np.int64], Truth]:
        """Deadline of each row's packet, ``int64[n]``, and the rows of ``truth``, which is emptied."""
        noted, self.truth = self.truth or [], []
        deadline_ns = np.repeat(np.array([due_ns for due_ns, _ in noted], np.int64), [truth.packet.size for _, truth in noted])
        if not noted:
            return deadline_ns, allocate_truth(0)
        return deadline_ns, Truth._make(np.concatenate(column) for column in zip(*(truth for _, truth in noted), strict=True))

    def _add_worlds(self, inserter: Inserter, stamp_ns: int) -> None:
        """Give the inserter the worlds that may begin in a packet of this stamp."""
        while self.later_worlds and self.later_worlds[0][0] <= stamp_ns + _PACKET_NS:
            inserter.add(*self.later_worlds.popleft())

    def _framing(self, number: int) -> tuple[Framing, Flow]:
        while len(self._framings) <= number:
            track = self._reader.tracks[len(self._framings)]
            target = find_target(self._spec, track.recorded, track.kind, self._sources)
            name = f"{self._spec.name}/{track.recorded}"
            self._framings.append((link_framing(self._spec, target, track.first, track.kind), Flow(name=name, **target._asdict())))
            self._played.append(0)
        return self._framings[number]
