"""The thread that sends rovers' cycles, the one that reads scans ahead, and one for each driving rover."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import publish, shared_words
from hilsim.errors import AssetError
from hilsim.parts.rovers.cycles import send_cycles
from hilsim.parts.rovers.driving import ScanMemory, allocate_scan_memory, build_drive, drive_cycle, drive_on, drive_to, pose_of, scan_lead_ns
from hilsim.parts.rovers.fleet import NO_CHANGE, Fleet, FleetWord, RoverCount, Row, allocate_fleet, put_command, set_up
from hilsim.parts.rovers.limits import ROVER_SCAN_POINTS
from hilsim.parts.rovers.protocol import allocate_draft
from hilsim.parts.rovers.scan_file import Scan, ScanFile, Tally
from hilsim.parts.rovers.scan_queue import ANY_CYCLE, ScanQueues, allocate_scan_queues, put_scan, waiting_scans
from hilsim.parts.rovers.specs import RoverDriveSpec, RoverSpec
from hilsim.transmit.brake import allocate_brake, doze_until
from hilsim.transmit.ring import Rings
from hilsim.transmit.scheduling import ThreadSettings, enter
from hilsim.world.scene.successive import SuccessiveWorlds
from hilsim.world.scene.world import World

_SCANS_AHEAD = 16
POINTS_AHEAD = 2 * ROVER_SCAN_POINTS.bound
"""Room for two scans of the largest size: one being sent, one queued."""
_FULL_WAIT_S = 0.02
_MEASURING_SHARE = 0.9
"""Share of a period, before a cycle, in which its scan is measured by a lidar."""


class RoverLidar(Protocol):
    """Lidar of a driving rover."""

    @property
    def points(self) -> int:
        """Number of points of a scan where every ray hits."""

    def see(self, world: World) -> None:
        """Measure another world from now on."""

    def measured(self, state: npt.NDArray[np.float64], start_ns: int, stop_ns: int) -> npt.NDArray[np.float32]:
        """Points ``float32[n, 3]`` of an interval of rig time, in the transmitted frame, measured from the rover's state ``float64[7]``, columns by ``DriveState``."""


class RoverSource:
    """Source of a rover's scans.

    Attributes:
        tally: Result of the first pass through a file, once complete; None before.
        fault: Reason that scans have stopped; empty while they continue.
        passes: Number of passes through a file.
    """

    tally: Tally | None = None
    fault: str = ""
    passes: int = 0

    @property
    def points(self) -> int:
        """Approximate number of points of a scan."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False)
class DrivenRover(RoverSource):
    """A driving rover.

    Attributes:
        spec: Specification of its drive.
        world: World that it drives through from the start.
        lidar: Lidar; None for ideal rays.
        drive: Parameters for kernels.
        state: State of the rover.
        brake: Brake of its thread.
        can_change: Whether other worlds may follow while it drives.
    """

    spec: RoverDriveSpec
    world: World
    lidar: RoverLidar | None = None
    brake: npt.NDArray[np.int64] = field(default_factory=allocate_brake)
    can_change: bool = False

    def __post_init__(self) -> None:
        self.drive, self.state = build_drive(self.spec)
        self._worlds = SuccessiveWorlds(self.world)
        self._begun = 0
        self._choosing = threading.Lock()

    def see_later(self, from_ns: int, world: World, period_ns: int) -> int:
        """Set the world of the cycles that are due at a rig time or later; returns the rig time from which it is seen, that of a later cycle for one that has begun."""
        with self._choosing:
            is_past = from_ns <= self._begun * period_ns
            return self._worlds.add((self._begun + 1) * period_ns if is_past else from_ns, world)

    def _world_of(self, cycle: int, period_ns: int) -> World:
        """World of a cycle that begins now."""
        with self._choosing:
            self._begun = cycle
            world = self._worlds.at(cycle * period_ns)
        if self.lidar is not None:
            self.lidar.see(world)
        return world

    @property
    def points(self) -> int:
        """Number of points of a scan where every ray hits."""
        return self.spec.columns * self.spec.rows if self.lidar is None else self.lidar.points

    def run(self, queues: ScanQueues, fleet: Fleet, place: int, epoch_ns: int, words: npt.NDArray[np.int64]) -> None:
        """Drive until ``words`` request a stop."""
        memory = allocate_scan_memory(self.spec.columns * self.spec.rows)
        if self.lidar is not None or self.can_change:
            self._drive_on(queues, fleet, place, epoch_ns, words, memory)
            return
        drive_on(self.drive, self.state, self.world, queues, fleet, place, epoch_ns, words, self.brake, memory)

    def cycle(self, queues: ScanQueues, fleet: Fleet, place: int, cycle: int, memory: ScanMemory) -> None:
        """Drive to the rover's position at a cycle, and put its scan onto the queue."""
        period_ns = int(fleet.period_ns[place])
        world = self._world_of(cycle, period_ns)
        if self.lidar is None:
            drive_cycle(self.drive, self.state, world, queues, fleet, place, cycle, memory)
            return
        drive_to(self.drive, self.state, world, fleet, place, cycle, memory)
        pose = pose_of(self.state)
        put_scan(queues, place, cycle, pose, self.lidar.measured(self.state, (cycle - 1) * period_ns, cycle * period_ns))

    def warm(self, period_ns: int) -> None:
        """Load or compile the kernels of a cycle."""
        fleet, queues = allocate_fleet(1), allocate_scan_queues(1, 1, 1)
        fleet.period_ns[0] = period_ns
        other = replace(self, brake=allocate_brake())
        other.cycle(queues, fleet, 0, 1, allocate_scan_memory(self.spec.columns * self.spec.rows))

    def _drive_on(self, queues: ScanQueues, fleet: Fleet, place: int, epoch_ns: int, words: npt.NDArray[np.int64], memory: ScanMemory) -> None:
        """Drive as the kernel ``drive_on`` does, with a lidar, or in worlds that change. Kernels work without the GIL; no packet path depends on this thread."""
        period_ns, cycle = int(fleet.period_ns[place]), 1
        lead_ns = int(_MEASURING_SHARE * period_ns) if self.lidar is not None else scan_lead_ns(period_ns)
        if words[FleetWord.STOP]:
            self.warm(period_ns)
        while not words[FleetWord.STOP]:
            due_ns = epoch_ns + cycle * period_ns
            doze_until(due_ns - lead_ns, self.brake)
            if time.monotonic_ns() < due_ns:
                self.cycle(queues, fleet, place, cycle, memory)
            else:
                drive_to(self.drive, self.state, self._world_of(cycle, period_ns), fleet, place, cycle, memory)
            cycle += 1


@dataclass(kw_only=True, eq=False)
class ScanSource(RoverSource):
    """A rover's scans from a file, repeated.

    Attributes:
        file: File of the scans.
    """

    file: ScanFile

    @property
    def points(self) -> int:
        """Number of points of the first scan.

        Raises:
            AssetError: there is none.
        """
        return len(self.file.first().points)

    def scans(self) -> Iterator[Scan]:
        """Scans without end, unless the file becomes unreadable or empty."""
        while True:
            tally = Tally()
            try:
                yield from self.file.scans(tally)
            except AssetError as error:
                self.fault = str(error)
                return
            self.tally = self.tally or tally
            self.passes += 1
            if not tally.scans:
                self.fault = f"{self.file.path}: must hold a scan, got none any more"
                return


class RoverState(NamedTuple):
    """Counts of one rover since start.

    Attributes:
        cycles: Number of cycles sent.
        late_cycles: Number of cycles skipped because they could not begin in time.
        empty_cycles: Number of cycles skipped because there was no scan.
        obeyed_commands: Number of commands applied to the telemetry.
        waiting_scans: Number of scans read ahead.
    """

    cycles: int
    late_cycles: int
    empty_cycles: int
    obeyed_commands: int
    waiting_scans: int


@dataclass(kw_only=True, eq=False)
class RoverSender:
    """All rovers of a rig.

    Attributes:
        rovers: Specifications, in the order of the arrays' rows.
        sources: Sources of their scans.
        rings: Rings of the transmitter.
        seed: Random seed of the rig.
        settings: Scheduling of the sending thread.
        fleet: Arrays shared with the loop.
        brake: Brake of the sending thread.
        scheduling_mode: Scheduling of the sending thread.
    """

    rovers: tuple[RoverSpec, ...]
    sources: tuple[RoverSource, ...]
    rings: Rings
    seed: int
    settings: ThreadSettings
    brake: npt.NDArray[np.int64] = field(default_factory=allocate_brake)
    scheduling_mode: str = ""
    _words: npt.NDArray[np.int64] = field(default_factory=lambda: shared_words(FleetWord))
    _threads: list[threading.Thread] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.fleet: Fleet = allocate_fleet(len(self.rovers))
        self.queues: ScanQueues = allocate_scan_queues(len(self.rovers), _SCANS_AHEAD, POINTS_AHEAD)
        for place, rover in enumerate(self.rovers):
            set_up(self.fleet, place, rover)

    def route(self, place: int, rows: Sequence[int]) -> None:
        """Set the rows of the rings of a rover, in the order of ``Row``."""
        self.fleet.row[place, : len(Row)] = rows

    def warm(self) -> None:
        """Load or compile every kernel without sending."""
        stopped = shared_words(FleetWord)
        stopped[FleetWord.STOP] = 1
        self._send(0, stopped)
        for place, source in self._driven:
            source.run(self.queues, self.fleet, place, 0, stopped)
        other = allocate_fleet(1)
        put_command(other, 0, NO_CHANGE)
        queues = allocate_scan_queues(1, 1, 1)
        put_scan(queues, 0, ANY_CYCLE, np.zeros(6, np.float32), np.zeros((1, 3), np.float32))
        waiting_scans(queues, 0)
        publish(stopped, 0, 1)

    def read_ahead(self, until_ns: int) -> bool:
        """Start to read files; returns whether each of these rovers had a scan by CLOCK_MONOTONIC ``until_ns``."""
        if self._read_ones and not self._threads:
            self._begin(self._read, "rover-scans")
        while time.monotonic_ns() < until_ns:
            if all(waiting_scans(self.queues, place) for place, _ in self._read_ones):
                return True
            time.sleep(0.001)
        return False

    def start(self, epoch_ns: int) -> None:
        """Start driving and sending; rig time 0 is at CLOCK_MONOTONIC ``epoch_ns``."""
        for place, source in self._driven:
            self._begin(partial(self._drive, source, place, epoch_ns), f"drive-{self.rovers[place].number}")
        self._begin(lambda: self._run(epoch_ns), "rovers")

    def stop(self) -> None:
        """Stop the threads; returns when they have ended, within milliseconds."""
        self._stopping.set()
        publish(self._words, int(FleetWord.STOP), 1)
        for thread in self._threads:
            thread.join()
        self._threads = []

    @property
    def alive(self) -> bool:
        """Whether all threads are running."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def command(self, place: int, datagram: bytes) -> bool:
        """Queue a command for a rover; False when the queue is full."""
        return bool(put_command(self.fleet, place, datagram[0] if datagram else NO_CHANGE))

    def state(self, place: int) -> RoverState:
        """Counts of one rover; wait-free."""
        count = self.fleet.counters[place].tolist()
        return RoverState(
            cycles=count[RoverCount.CYCLES],
            late_cycles=count[RoverCount.LATE],
            empty_cycles=count[RoverCount.EMPTY],
            obeyed_commands=count[RoverCount.OBEYED],
            waiting_scans=int(waiting_scans(self.queues, place)),
        )

    @property
    def has_begun(self) -> bool:
        """Whether each rover has begun a cycle."""
        return bool((self.fleet.counters[:, RoverCount.STAGE] + self.fleet.counters[:, RoverCount.CYCLES]).all())

    def _begin(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read(self) -> None:
        """Keep every queue full, reading one scan of each rover in turn, so that all rovers share a slow disk equally."""
        scans = {place: source.scans() for place, source in self._read_ones}
        waiting = {place: next(each, None) for place, each in scans.items()}
        while not self._stopping.is_set():
            is_put = False
            for place, scan in waiting.items():
                if scan is not None and put_scan(self.queues, place, ANY_CYCLE, scan.pose, scan.points):
                    waiting[place] = next(scans[place], None)
                    is_put = True
            if not is_put:
                self._stopping.wait(_FULL_WAIT_S)

    @property
    def _read_ones(self) -> list[tuple[int, ScanSource]]:
        return [(place, source) for place, source in enumerate(self.sources) if isinstance(source, ScanSource)]

    @property
    def _driven(self) -> list[tuple[int, DrivenRover]]:
        return [(place, source) for place, source in enumerate(self.sources) if isinstance(source, DrivenRover)]

    def _drive(self, source: DrivenRover, place: int, epoch_ns: int) -> None:
        enter(ThreadSettings(scheduling="plain"))  # it has 60 ms, and rendering may be slow: it must not delay other threads
        source.run(self.queues, self.fleet, place, epoch_ns, self._words)

    def _run(self, epoch_ns: int) -> None:
        self.scheduling_mode = enter(self.settings).mode.value
        self._send(epoch_ns, self._words)

    def _send(self, epoch_ns: int, words: npt.NDArray[np.int64]) -> None:
        send_cycles(self.queues, self.fleet, self.rings, epoch_ns, np.uint64(self.seed), words, self.brake, allocate_draft())


def scan_sources(
    rovers: Sequence[RoverSpec], directory: Path, world: World | None, lidars: Sequence[RoverLidar | None] = (), *, can_change: bool = False
) -> tuple[RoverSource, ...]:
    """Open the sources of their scans, and read the first scan of each file.

    Args:
        rovers: The rovers.
        directory: Directory that file names are relative to.
        world: World of the driving rovers.
        lidars: Lidar of each rover; None, or no entry: ideal rays.
        can_change: Whether other worlds may follow while rovers drive.

    Raises:
        AssetError: a file has no scan; the message names every such file.
    """
    faults: list[str] = []
    found: list[RoverSource] = []
    for rover, lidar in zip_longest(rovers, lidars[: len(rovers)]):
        if rover.drive is not None and world is not None:
            found.append(DrivenRover(spec=rover.drive, world=world, lidar=lidar, can_change=can_change))
            continue
        source = ScanSource(file=ScanFile(directory / rover.file))
        try:
            source.file.first()
        except AssetError as error:
            faults.append(str(error))
        found.append(source)
    if faults:
        raise AssetError("\n".join(faults))
    return tuple(found)
