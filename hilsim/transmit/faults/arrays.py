"""Faults of the network as arrays: what befalls which flow, what is held, and counts. One thread at a time uses them, and any other may change the faults.

The faults are in two halves of one table. A change fills the half that is not selected and selects it, so a running kernel never reads half a change.
All times are rig times.
"""

import time
from collections.abc import Sequence
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import publish, shared_words
from hilsim.compilation.jit import by_reference
from hilsim.faults.catalogue import RAW_EFFECTS, Effect, NetworkAct
from hilsim.faults.specs import FaultSpec
from hilsim.faults.table import fault_seed
from hilsim.limits import HELD_DATAGRAMS, INJECTED_FAULTS
from hilsim.protocols.ethernet import HEADER_SIZE, TAG_SIZE
from hilsim.transmit.ring import Rings

NEVER_NS = 2**62
LINE_BYTES = 66
"""Bytes of a datagram on a line beside its payload: headers (42), checksum (4), preamble (8) and gap (12) of Ethernet."""
LONGEST_TAIL = 100.0
"""Largest delay of ``pareto_delay``, in means."""
_VALUES = 4


class NetworkCount(IntEnum):
    """What befell a datagram: columns of ``NetworkFaults.counts``, labels of metrics by their names."""

    LOST = 0
    OVERFLOWN = 1
    CORRUPTED = 2
    CUT = 3
    CHECKSUM = 4
    TAGGED = 5
    DELAYED = 6
    REPEATED = 7
    FRAGMENTED = 8
    NOT_HELD = 9
    """There was no room for it."""


class NetworkFault(NamedTuple):
    """A fault of the network; it acts until ``cut_ns``, when it was cleared."""

    spec: FaultSpec
    cut_ns: int = NEVER_NS

    @property
    def act(self) -> NetworkAct:
        """What it does, with its values."""
        act = self.spec.network
        if act is None:
            raise AssertionError(f"{self.spec.kind} must be a fault that acts upon datagrams")
        return act


class Pool(IntEnum):
    """Columns of ``NetworkFaults.pool``."""

    HEAD = 0
    """Place in ``order`` of the datagram that is due first."""
    COUNT = 1
    """Number of datagrams held."""
    FREE = 2
    """Number of free slots."""


@by_reference
class NetworkFaults(NamedTuple):
    """R faults, twice, of F flows, and H datagrams of up to C bytes that are held.

    Attributes:
        selected: ``int64[8]``, column 0: half of the rows in force.
        rows: ``int64[2]``: faults in each half.
        effect: ``int64[2R]``, ``Effect`` of each fault, in rising order.
        begin_ns: ``int64[2R]``, its begin.
        end_ns: ``int64[2R]``, its end.
        cut_ns: ``int64[2R]``, when it was cleared.
        ramp_ns: ``float64[2R, 2]``, times in which it comes and goes.
        is_exponential: ``bool[2R]``, how it comes.
        seed: ``int64[2R]``, seed of its random numbers.
        value: ``float64[2R, 4]``, values of its function.
        memory: ``int64[2R]``, its place in ``free_ns``.
        befalls: ``bool[2R, F]``, whether it befalls a flow.
        befallen: ``int64[F]``: 1 where a fault befalls a flow, or did; any thread may set it.
        stream: ``int64[F]``, random stream of a flow, by its name.
        header: ``int64[F]``, bytes of headers before its payloads, 0 or 42.
        serial: ``int64[F]``, changes when the row is given to another flow.
        last_ns: ``int64[F]``, deadline of its newest datagram; -1 before the first.
        ordinal: ``int64[F]``, number of that datagram among those of one deadline.
        free_ns: ``int64[R]``, when a queue has sent all that it holds.
        counts: ``int64[F, 16]``, columns by ``NetworkCount``.
        epoch_ns: ``int64[8]``, column 0: rig time 0 by the clock of the deadlines.
        pool: ``int64[8]``, columns by ``Pool``.
        order: ``int64[H]``, slots of held datagrams by the time they are due, from ``Pool.HEAD`` on, around.
        free: ``int64[H]``, free slots.
        held_flow: ``int64[H]``, flow of each.
        held_serial: ``int64[H]``, that flow's ``serial``.
        held: They: one row of H slots; the deadlines are when they are due, by the clock of the deadlines.
    """

    selected: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    effect: npt.NDArray[np.int64]
    begin_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    cut_ns: npt.NDArray[np.int64]
    ramp_ns: npt.NDArray[np.float64]
    is_exponential: npt.NDArray[np.bool_]
    seed: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    memory: npt.NDArray[np.int64]
    befalls: npt.NDArray[np.bool_]
    befallen: npt.NDArray[np.int64]
    stream: npt.NDArray[np.int64]
    header: npt.NDArray[np.int64]
    serial: npt.NDArray[np.int64]
    last_ns: npt.NDArray[np.int64]
    ordinal: npt.NDArray[np.int64]
    free_ns: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    epoch_ns: npt.NDArray[np.int64]
    pool: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    free: npt.NDArray[np.int64]
    held_flow: npt.NDArray[np.int64]
    held_serial: npt.NDArray[np.int64]
    held: Rings


def allocate_network_faults(flows: int, capacity: int, faults: int = int(INJECTED_FAULTS.bound)) -> NetworkFaults:
    """Allocate an intact network for ``flows`` flows of datagrams of up to ``capacity`` bytes, and so many faults; without any it holds nothing."""
    rows, slots = 2 * max(faults, 1), int(HELD_DATAGRAMS.bound) if faults else 1
    pool = shared_words(Pool)
    pool[Pool.FREE] = slots
    return NetworkFaults(
        selected=np.zeros(8, np.int64),
        rows=np.zeros(2, np.int64),
        effect=np.zeros(rows, np.int64),
        begin_ns=np.zeros(rows, np.int64),
        end_ns=np.zeros(rows, np.int64),
        cut_ns=np.zeros(rows, np.int64),
        ramp_ns=np.zeros((rows, 2)),
        is_exponential=np.zeros(rows, np.bool_),
        seed=np.zeros(rows, np.int64),
        value=np.zeros((rows, _VALUES)),
        memory=np.zeros(rows, np.int64),
        befalls=np.zeros((rows, flows), np.bool_),
        befallen=np.zeros(flows, np.int64),
        stream=np.zeros(flows, np.int64),
        header=np.zeros(flows, np.int64),
        serial=np.zeros(flows, np.int64),
        last_ns=np.full(flows, -1, np.int64),
        ordinal=np.zeros(flows, np.int64),
        free_ns=np.zeros(rows // 2, np.int64),
        counts=shared_words(NetworkCount, flows),
        epoch_ns=np.zeros(8, np.int64),
        pool=pool,
        order=np.zeros(slots, np.int64),
        free=np.arange(slots),
        held_flow=np.zeros(slots, np.int64),
        held_serial=np.zeros(slots, np.int64),
        held=Rings(
            head=np.zeros((1, 8), np.int64),
            tail=np.zeros((1, 8), np.int64),
            deadline_ns=np.zeros((1, slots), np.int64),
            pose_ns=np.zeros((1, slots), np.int64),
            size=np.zeros((1, slots), np.int32),
            payload=np.zeros((1, slots, capacity + TAG_SIZE), np.uint8),
        ),
    )


class BrokenNetwork:
    """Faults of the network in the order in which they were asked for, and their arrays.

    Attributes:
        arrays: Arrays for kernels.
        faults: The faults in force, or to come.
    """

    def __init__(self, arrays: NetworkFaults, seed: int) -> None:
        """An intact network in a rig of a seed."""
        self.arrays = arrays
        self.faults: tuple[NetworkFault, ...] = ()
        self._seed = seed
        self._names: dict[int, tuple[str, bool]] = {}
        self._memory: dict[FaultSpec, int] = {}

    def add_flow(self, row: int, name: str, *, has_headers: bool, is_raw: bool) -> None:
        """Add a flow that nothing uses yet.

        Args:
            row: Its row.
            name: Its name, by which faults find it and random numbers are drawn.
            has_headers: Whether its datagrams are whole frames.
            is_raw: Whether they are sent as frames.
        """
        arrays = self.arrays
        self._names[row] = name, is_raw
        arrays.stream[row], arrays.header[row] = crc32(name.encode()), HEADER_SIZE if has_headers else 0
        arrays.serial[row] += 1
        arrays.last_ns[row], arrays.ordinal[row], arrays.counts[row] = -1, 0, 0
        half = int(arrays.selected[0])
        for place, fault in enumerate(_ordered(self.faults)):
            arrays.befalls[self._row(half, place), row] = self._befalls(fault, row)
        arrays.befallen[row] = any(self._befalls(fault, row) for fault in self.faults)

    def _row(self, half: int, place: int) -> int:
        return half * (self.arrays.effect.size // 2) + place

    def _befalls(self, fault: NetworkFault, row: int) -> bool:
        name, is_raw = self._names[row]
        act = fault.act
        return fault.spec.befalls(name) and fnmatchcase(name.partition("/")[2], act.flows) and (is_raw or act.effect not in RAW_EFFECTS)

    def set_faults(self, faults: Sequence[NetworkFault], until_ns: int = NEVER_NS) -> bool:
        """Put faults in force; the former half may be used until the kernel takes its next datagram.

        Returns:
            False, and nothing has changed, if CLOCK_MONOTONIC has come to ``until_ns`` meanwhile.
        """
        arrays, half = self.arrays, 1 - int(self.arrays.selected[0])
        kept = {fault.spec: place for fault in faults if (place := self._memory.get(fault.spec)) is not None}
        unused = iter(sorted(set(range(arrays.free_ns.size)) - set(kept.values())))
        for fault in faults:
            if fault.spec not in kept:
                kept[fault.spec] = next(unused)
                arrays.free_ns[kept[fault.spec]] = 0
        for place, fault in enumerate(_ordered(faults)):
            row, spec, act = self._row(half, place), fault.spec, fault.act
            arrays.effect[row], arrays.memory[row] = act.effect, kept[spec]
            arrays.begin_ns[row], arrays.end_ns[row], arrays.cut_ns[row] = spec.begin_ns, spec.end_ns, fault.cut_ns
            arrays.ramp_ns[row], arrays.is_exponential[row] = (1e9 * spec.ramp_s, 1e9 * spec.ramp_out_s), spec.ramp == "exponential"
            arrays.seed[row], arrays.value[row, : len(act.values)] = fault_seed(spec, self._seed), act.values
            arrays.befalls[row] = False
            for flow in self._names:
                arrays.befalls[row, flow] = self._befalls(fault, flow)
        arrays.rows[half] = len(faults)
        for flow in self._names:
            if any(self._befalls(fault, flow) for fault in faults):
                publish(arrays.befallen, flow, 1)  # before it is in force, so that the first datagram is judged
        if time.monotonic_ns() >= until_ns:
            return False
        publish(arrays.selected, 0, half)
        self.faults, self._memory = tuple(faults), kept
        return True

    def rest(self) -> None:
        """Let flows that no fault befalls any more pass unseen, once the kernel uses the present faults."""
        for flow in self._names:
            if not any(self._befalls(fault, flow) for fault in self.faults):
                publish(self.arrays.befallen, flow, 0)


def _ordered(faults: Sequence[NetworkFault]) -> list[NetworkFault]:
    return sorted(faults, key=lambda fault: fault.act.effect)


def earliest_ns(faults: Sequence[NetworkFault], start_ns: int) -> int:
    """Rig time from which datagrams must be known for those that leave at ``start_ns`` or later to be as of a network that ran from rig time 0 on."""
    delay_ms, from_ns = 0.0, start_ns
    for fault in faults:
        spec, act = fault.spec, fault.act
        first, second, third, fourth = (*map(float, act.values), 0.0, 0.0, 0.0)[:4]
        match act.effect:
            case Effect.DELAY:
                delay_ms += first + second * (LONGEST_TAIL if fourth else 1.0)
            case Effect.REORDER | Effect.REPEAT:
                delay_ms += second
            case Effect.QUEUE if spec.begin_ns < start_ns:
                full_ns = round(1e6 * first + 8e9 * fourth / third)
                delay_ms += full_ns / 1e6
                if spec.end_ns + full_ns > start_ns:  # what it holds depends on all that came before
                    from_ns = min(from_ns, spec.begin_ns)
    return max(min(from_ns, start_ns) - round(1e6 * delay_ms) - 1, 0)
