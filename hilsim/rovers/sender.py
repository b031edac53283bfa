"""The thread that sends rovers' cycles, and the one that reads their scans ahead."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._atomics import publish, shared_words
from hilsim.errors import AssetError
from hilsim.limits import ROVER_SCAN_POINTS
from hilsim.protocols.rover import allocate_draft
from hilsim.rovers.cycles import NO_CHANGE, Fleet, FleetWord, RoverCount, Row, allocate_fleet, put_command, send_cycles
from hilsim.rovers.scan_file import Scan, ScanFile, Tally
from hilsim.rovers.scan_queue import ScanQueues, allocate_scan_queues, put_scan, waiting_scans
from hilsim.rovers.specs import RoverSpec
from hilsim.transmit.brake import allocate_brake
from hilsim.transmit.ring import Rings
from hilsim.transmit.scheduling import ThreadSettings, enter

_SCANS_AHEAD = 16
_POINTS_AHEAD = ROVER_SCAN_POINTS.bound
_FULL_WAIT_S = 0.02


@dataclass(kw_only=True, eq=False)
class ScanSource:
    """A rover's scans in a file, again and again.

    Attributes:
        file: Where they stand.
        tally: Of the first pass, when it has ended; None before.
        fault: Why nothing is read any more; empty while it is.
        passes: How often the file was read to its end.
    """

    file: ScanFile
    tally: Tally | None = None
    fault: str = ""
    passes: int = 0

    def scans(self) -> Iterator[Scan]:
        """Without an end, unless the file becomes unreadable or empty."""
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
    """One rover, as the loop counted it since start.

    Attributes:
        cycles: Sent whole.
        late_cycles: Left out because they could not be begun in time.
        empty_cycles: Left out because there was no scan.
        obeyed_commands: That came to the telemetry.
        waiting_scans: Read ahead.
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
        rovers: What they are, in the order of the arrays' rows.
        sources: Their scans.
        rings: Of the transmitter.
        seed: Of the rig.
        settings: Scheduling of the sending thread.
        fleet: What the loop knows of them, and counts.
        brake: Of the sending thread.
        scheduling_mode: What it obtained.
    """

    rovers: tuple[RoverSpec, ...]
    sources: tuple[ScanSource, ...]
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
        self.queues: ScanQueues = allocate_scan_queues(len(self.rovers), _SCANS_AHEAD, _POINTS_AHEAD)
        for place, rover in enumerate(self.rovers):
            self.fleet.number[place], self.fleet.period_ns[place] = rover.number, rover.period_ns
            self.fleet.noise[place] = rover.noise.position_m, rover.noise.rotation_deg, rover.noise.point_m

    def route(self, place: int, rows: Sequence[int]) -> None:
        """Say which rows of the rings are a rover's, in the order of ``Row``."""
        self.fleet.row[place, : len(Row)] = rows

    def warm(self) -> None:
        """Load or compile every kernel, without sending anything."""
        stopped = shared_words(FleetWord)
        stopped[FleetWord.STOP] = 1
        self._send(0, stopped)
        other = allocate_fleet(1)
        put_command(other, 0, NO_CHANGE)
        queues = allocate_scan_queues(1, 1, 1)
        put_scan(queues, 0, np.zeros(6, np.float32), np.zeros((1, 3), np.float32))
        waiting_scans(queues, 0)
        publish(stopped, 0, 1)

    def read_ahead(self, until_ns: int) -> bool:
        """Begin to read; returns whether each rover had a scan by CLOCK_MONOTONIC ``until_ns``, or when."""
        if not self._threads:
            self._begin(self._read, "rover-scans")
        while time.monotonic_ns() < until_ns:
            if all(waiting_scans(self.queues, place) for place in range(len(self.rovers))):
                return True
            time.sleep(0.001)
        return False

    def start(self, epoch_ns: int) -> None:
        """Begin to send; rig time 0 is at CLOCK_MONOTONIC ``epoch_ns``."""
        self._begin(lambda: self._run(epoch_ns), "rovers")

    def stop(self) -> None:
        """End the threads; returns when they have ended, within milliseconds."""
        self._stopping.set()
        publish(self._words, int(FleetWord.STOP), 1)
        for thread in self._threads:
            thread.join()
        self._threads = []

    @property
    def alive(self) -> bool:
        """Whether both threads run."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def command(self, place: int, datagram: bytes) -> bool:
        """Take a command for a rover; False when too many wait."""
        return bool(put_command(self.fleet, place, datagram[0] if datagram else NO_CHANGE))

    def state(self, place: int) -> RoverState:
        """Of one rover; wait-free."""
        count = self.fleet.count[place].tolist()
        counted = (count[column] for column in (RoverCount.CYCLES, RoverCount.LATE, RoverCount.EMPTY, RoverCount.OBEYED))
        return RoverState(*counted, int(waiting_scans(self.queues, place)))

    @property
    def has_begun(self) -> bool:
        """Whether each rover has begun a cycle."""
        return bool((self.fleet.count[:, RoverCount.STAGE] + self.fleet.count[:, RoverCount.CYCLES]).all())

    def _begin(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read(self) -> None:
        """Keep every queue full, a scan of each rover in turn: of a slow disk all have the same."""
        scans = [source.scans() for source in self.sources]
        waiting: list[Scan | None] = [next(each, None) for each in scans]
        while not self._stopping.is_set():
            is_put = False
            for place, scan in enumerate(waiting):
                if scan is not None and put_scan(self.queues, place, scan.pose, scan.points):
                    waiting[place] = next(scans[place], None)
                    is_put = True
            if not is_put:
                self._stopping.wait(_FULL_WAIT_S)

    def _run(self, epoch_ns: int) -> None:
        self.scheduling_mode = enter(self.settings).mode.value
        self._send(epoch_ns, self._words)

    def _send(self, epoch_ns: int, words: npt.NDArray[np.int64]) -> None:
        send_cycles(self.queues, self.fleet, self.rings, epoch_ns, np.uint64(self.seed), words, self.brake, allocate_draft())


def scan_sources(rovers: Sequence[RoverSpec], directory: Path) -> tuple[ScanSource, ...]:
    """Their scans, each file looked into.

    Raises:
        AssetError: naming every file that has none.
    """
    faults, found = [], []
    for rover in rovers:
        source = ScanSource(file=ScanFile(directory / rover.file))
        try:
            source.file.first()
        except AssetError as error:
            faults.append(str(error))
        found.append(source)
    if faults:
        raise AssetError("\n".join(faults))
    return tuple(found)
