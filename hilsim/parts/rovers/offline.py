"""Rovers without a clock: their packets without commands, as batches in rig time; the same packets at the same deadlines as the daemon's."""

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from hilsim.emulator.batch import DatagramBatch, Flow
from hilsim.errors import AssetError
from hilsim.parts.rovers.cycles import advance
from hilsim.parts.rovers.driving import allocate_scan_memory
from hilsim.parts.rovers.fleet import RoverCount, Row, allocate_fleet, set_up
from hilsim.parts.rovers.flows import FLOW_PORTS, RoverFlow, rover_flow
from hilsim.parts.rovers.limits import ROVER_SCAN_POINTS
from hilsim.parts.rovers.protocol import LARGEST_PACKET, allocate_draft
from hilsim.parts.rovers.scan_queue import ANY_CYCLE, allocate_scan_queues, put_scan
from hilsim.parts.rovers.sender import DrivenRover, RoverSource, ScanSource
from hilsim.parts.rovers.specs import RoverSpec
from hilsim.protocols.ethernet import HEADER_SIZE, write_headers
from hilsim.transmit.ring import allocate_rings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hilsim.parts.rovers.scan_file import Scan
    from hilsim.world.scene.world import World

_SLOTS = 2
_SCANS = 1
_Due = tuple[int, bytes]
"""A packet with its deadline."""


class OfflineRover:
    """A rover of a rig that is recorded and not sent.

    Args:
        rover: Specification of the rover.
        source: Source of its scans, which is advanced.
        seed: Random seed of the rig.
        later: Worlds that follow the rig's own, each with the rig time from which the rover sees it.
    """

    def __init__(self, rover: RoverSpec, source: RoverSource, seed: int, later: "Iterable[tuple[int, World]]" = ()) -> None:
        self.name = rover.name
        self._later = deque(later)
        self._source = source
        self._seed = np.uint64(seed)
        self._flows: list[tuple[Flow, RoverFlow]] = []
        for label in FLOW_PORTS:
            flow = rover_flow(rover, label)
            self._flows.append((Flow(name=flow.name, **flow.key._asdict()), flow))
        self._fleet = allocate_fleet(1)
        set_up(self._fleet, 0, rover)
        self._fleet.row[0] = range(len(Row))
        self._queues = allocate_scan_queues(1, _SCANS, ROVER_SCAN_POINTS.bound)
        self._rings = allocate_rings(len(Row), _SLOTS, LARGEST_PACKET)
        self._draft = allocate_draft()
        self._memory = allocate_scan_memory(source.spec.columns * source.spec.rows) if isinstance(source, DrivenRover) else None
        self._scans: Iterator[Scan] = source.scans() if isinstance(source, ScanSource) else iter(())
        self._now_ns = 0
        self._sent = [0] * len(Row)
        self._waiting: list[list[_Due]] = [[] for _ in Row]

    @property
    def note(self) -> str:
        """Message about faults in its file; empty for none."""
        tally = self._source.tally
        if tally is None or not tally.damaged:
            return ""
        return f"{tally.damaged} damaged lines were skipped in each pass: {'; '.join(tally.faults)}"

    def span(self, stop_ns: int) -> list[DatagramBatch]:
        """Whole frames due before rig time ``stop_ns`` and not returned yet, one batch per flow.

        Raises:
            AssetError: its file cannot be read, or contains no scan any more.
        """
        while self._fleet.counters[0, RoverCount.CYCLE] * self._fleet.period_ns[0] < stop_ns:
            self._make_cycle()
        batches = []
        for row, waiting in enumerate(self._waiting):
            due = [packet for packet in waiting if packet[0] < stop_ns]
            self._waiting[row] = waiting[len(due) :]
            if due:
                batches.append(self._batch(row, due))
        return batches

    def _make_cycle(self) -> None:
        cycle = int(self._fleet.counters[0, RoverCount.CYCLE])
        if isinstance(self._source, DrivenRover) and self._memory is not None:
            period_ns = int(self._fleet.period_ns[0])
            while self._later and self._later[0][0] <= cycle * period_ns:
                self._source.see_later(*self._later.popleft(), period_ns)
            self._source.cycle(self._queues, self._fleet, 0, cycle, self._memory)
        else:
            scan = next(self._scans, None)
            if scan is None:
                raise AssetError(self._source.fault)
            put_scan(self._queues, 0, ANY_CYCLE, scan.pose, scan.points)
        while self._fleet.counters[0, RoverCount.CYCLE] == cycle:
            self._now_ns = max(self._now_ns, int(advance(self._queues, self._fleet, 0, self._rings, 0, self._now_ns, self._seed, self._draft)))
            self._empty_rings()
        if self._fleet.counters[0, RoverCount.CYCLES] != cycle:
            raise AssertionError(f"each cycle must be sent without a clock, got {self._fleet.counters[0].tolist()} after {cycle}")

    def _empty_rings(self) -> None:
        rings = self._rings
        for row in range(len(Row)):
            while rings.head[row, 0] < rings.tail[row, 0]:
                slot = int(rings.head[row, 0]) % _SLOTS
                self._waiting[row].append((int(rings.deadline_ns[row, slot]), rings.payload[row, slot, : rings.size[row, slot]].tobytes()))
                rings.head[row, 0] += 1

    def _batch(self, row: int, due: list[_Due]) -> DatagramBatch:
        flow, (_, _, framing) = self._flows[row]
        frames = np.zeros((len(due), HEADER_SIZE + LARGEST_PACKET), np.uint8)
        size = np.zeros(len(due), np.int32)
        for place, (_, payload) in enumerate(due):
            self._sent[row] += 1
            frames[place, HEADER_SIZE : HEADER_SIZE + len(payload)] = np.frombuffer(payload, np.uint8)
            identification = self._sent[row] if framing.counting_identification else 0
            size[place] = write_headers(framing.template, identification, framing.udp_checksum, frames[place], len(payload))
        return DatagramBatch(flow, np.array([deadline_ns for deadline_ns, _ in due], np.int64), np.zeros(len(due), np.int64), size, frames)
