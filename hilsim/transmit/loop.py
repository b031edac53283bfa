"""The sending loop: merges every flow's ring by deadline and hands each datagram to the kernel at its instant; no GIL, no Python object.

Deadlines are absolute, so errors do not accumulate. The loop never sends early: it reads the clock after waking and compares. It waits at most
1.4 ms at a time: then it reads the stop flag, changes of the flow table, and rings that were empty. A producer therefore puts
a datagram into its ring at least that long before its deadline, or, where all producers have the same lead, any time before it: later datagrams are due later.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, pause, store_release
from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.transmit.brake import doze_until
from hilsim.transmit.faults.arrays import NetworkFaults, Pool
from hilsim.transmit.faults.kernels import befall, first_held, next_held_ns, release_held
from hilsim.transmit.flow_table import FlowTable
from hilsim.transmit.libc import monotonic_ns, send_datagram
from hilsim.transmit.packet_queue import PacketQueues, allocate_queues, put_into
from hilsim.transmit.ring import Rings
from hilsim.transmit.statistics import ERRNOS, Counter, LoopStatistics, bin_index

TURN_NS = 900_000
"""Longest wait while no deadline is near. A turn costs some 5 us: half a per cent of a core while idle."""

STRETCH_NS = 1_400_000
"""A deadline within this time is waited for in a single sleep: a VLP-16's 1327 us are, so each packet costs one wake-up and one chance of being late."""

_NOTHING = np.iinfo(np.int64).max


class LatePolicy(IntEnum):
    """Treatment of a datagram that is later than the limit."""

    SKIP = 0
    SEND = 1
    STOP = 2


class LoopEnd(IntEnum):
    """Reason that the loop ended."""

    STOPPED = 0
    """A stop was requested."""
    TOO_LATE = 1
    """A datagram was later than the limit, and the policy is ``STOP``."""


_STOPPED, _TOO_LATE = constant(LoopEnd.STOPPED), constant(LoopEnd.TOO_LATE)


class FollowingState(IntEnum):
    """Treatment of copies of sent datagrams for one follower."""

    OFF = 0
    """Do not copy."""
    ON = 1
    """Put a copy onto the follower's queue; count it when the queue is full."""
    ENDED = 2
    """Count only: the follower has ended."""


class Following(NamedTuple):
    """Copies of sent datagrams for Q followers, which may be slow; Q is 0 without followers.

    Attributes:
        state: ``int64[Q, 8]``, column 0: a ``FollowingState``; any thread may set it while the loop runs.
        missed: ``int64[Q, 8]``, column 0: datagrams sent while the follower was selected that are not on its queue; written by the loop alone.
        number: ``int64[F, 2]``: number on the queues of each flow and target; written while that target is not selected.
        queues: Queues with send time, deadline, the flow's number, and the bytes sent; the loop is their only producer.
    """

    state: npt.NDArray[np.int64]
    missed: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    queues: PacketQueues


def allocate_following(queues: int, flows: int, slots: int, capacity: int) -> Following:
    """Allocate followers that are off.

    Args:
        queues: Number of followers.
        flows: Rows of the rings.
        slots: Datagrams that each may lag behind.
        capacity: Bytes of the largest datagram.
    """
    return Following(
        state=np.zeros((queues, 8), np.int64),
        missed=np.zeros((queues, 8), np.int64),
        number=np.full((flows, 2), -1, np.int64),
        queues=allocate_queues(queues, slots, capacity),
    )


class LoopSettings(NamedTuple):
    """Settings of the loop.

    Attributes:
        spin_ns: Time before each deadline that is spent awake.
        late_limit_ns: Lateness above which a datagram counts as late.
        late_policy: A ``LatePolicy``.
    """

    spin_ns: int
    late_limit_ns: int
    late_policy: int


@kernel
def _refresh_flow(
    rings: Rings, statistics: LoopStatistics, flow: int, now_ns: int, next_ns: npt.NDArray[np.int64], starved: npt.NDArray[np.int64]
) -> None:
    """Read the next deadline from the ring of a flow without a known one."""
    head = rings.head[flow, 0]
    if load_acquire(rings.tail, (flow, 0)) == head:
        starved[flow] = 1
        return
    next_ns[flow] = rings.deadline_ns[flow, head % rings.deadline_ns.shape[1]]
    if starved[flow] != 0 and next_ns[flow] <= now_ns:
        statistics.counters[flow, Counter.UNDERRUN] += 1
    starved[flow] = 0


@kernel
def _earliest_flow(
    rings: Rings, table: FlowTable, statistics: LoopStatistics, now_ns: int, next_ns: npt.NDArray[np.int64], starved: npt.NDArray[np.int64]
) -> int:
    """Active flow with the earliest next deadline; -1 when all rings are empty."""
    chosen = -1
    earliest_ns = _NOTHING
    for flow in range(next_ns.size):
        if load_acquire(table.active, (flow,)) == 0:
            next_ns[flow] = _NOTHING
            starved[flow] = 0
            continue
        if next_ns[flow] == _NOTHING:
            _refresh_flow(rings, statistics, flow, now_ns, next_ns, starved)
        if next_ns[flow] < earliest_ns:
            chosen = flow
            earliest_ns = next_ns[flow]
    return chosen


@kernel
def _count_send(statistics: LoopStatistics, flow: int, sent_ns: int, deadline_ns: int, pose_ns: int, size: int) -> None:
    counters = statistics.counters[flow]
    lateness_ns = sent_ns - deadline_ns
    if lateness_ns < 0:
        counters[Counter.EARLY] += 1
    statistics.lateness[flow, bin_index(lateness_ns)] += 1
    counters[Counter.LATENESS_SUM_NS] += lateness_ns
    counters[Counter.LATENESS_MAX_NS] = max(counters[Counter.LATENESS_MAX_NS], lateness_ns)
    if counters[Counter.LAST_SEND_NS] != 0:
        error_ns = abs((sent_ns - counters[Counter.LAST_SEND_NS]) - (deadline_ns - counters[Counter.LAST_DEADLINE_NS]))
        statistics.interval_error[flow, bin_index(error_ns)] += 1
        counters[Counter.INTERVAL_ERROR_SUM_NS] += error_ns
    if pose_ns != 0:
        statistics.pose_latency[flow, bin_index(sent_ns - pose_ns)] += 1
        counters[Counter.POSE_LATENCY_SUM_NS] += sent_ns - pose_ns
    counters[Counter.LAST_SEND_NS] = sent_ns
    counters[Counter.LAST_DEADLINE_NS] = deadline_ns
    counters[Counter.BYTES] += size
    counters[Counter.PACKETS] += 1


@kernel
def _copy_to_queues(rings: Rings, following: Following, flow: int, target: int, row: int, slot: int, sent_ns: int) -> None:
    """Copy a sent datagram to the followers' queues, after the send, so that only the next packet is delayed, by a fraction of a microsecond per follower. The loop waits for no follower."""
    for queue in range(following.state.shape[0]):
        state = load_acquire(following.state, (queue, 0))
        if state == FollowingState.OFF:
            continue
        if state == FollowingState.ON:
            payload = rings.payload[row, slot]
            number, deadline_ns = following.number[flow, target], rings.deadline_ns[row, slot]
            if put_into(following.queues, queue, number, sent_ns, deadline_ns, payload, rings.size[row, slot]):
                continue
        following.missed[queue, 0] += 1


@kernel
def _send(rings: Rings, table: FlowTable, statistics: LoopStatistics, following: Following, flow: int, row: int, slot: int) -> None:
    """Send a datagram of a flow from a slot of a row of rings, its own or that of what is held."""
    target = load_acquire(table.selected, (flow,))
    size = rings.size[row, slot]
    payload = rings.payload.ctypes.data + (row * rings.payload.shape[1] + slot) * rings.payload.shape[2]
    address = table.address.ctypes.data + (2 * flow + target) * table.address.shape[2]
    result = send_datagram(table.descriptor[flow, target], payload, size, address, table.address_size[flow, target])
    sent_ns = monotonic_ns()
    if result < 0:
        number = -result
        statistics.counters[flow, Counter.SEND_ERROR] += 1
        statistics.send_errors[flow, number if number < ERRNOS else 0] += 1
        return
    _count_send(statistics, flow, sent_ns, rings.deadline_ns[row, slot], rings.pose_ns[row, slot], size)
    _copy_to_queues(rings, following, flow, target, row, slot, sent_ns)


@stage_kernel
def _send_held(faults: NetworkFaults, table: FlowTable, statistics: LoopStatistics, following: Following) -> int:
    """``_send`` the held datagram that is due, unless its flow has ended meanwhile; returns its flow."""
    slot = first_held(faults)
    flow = faults.held_flow[slot]
    if load_acquire(table.active, (flow,)) != 0 and faults.held_serial[slot] == faults.serial[flow]:
        _send(faults.held, table, statistics, following, flow, 0, slot)
    return int(flow)


@stage_kernel
def _judge(faults: NetworkFaults, rings: Rings, flow: int, slot: int) -> int:
    """Let faults of the network befall a datagram that is due; returns how many are held."""
    rig_ns = rings.deadline_ns[flow, slot] - faults.epoch_ns[0]
    return befall(faults, flow, rig_ns, rings.pose_ns[flow, slot], rings.payload[flow, slot], rings.size[flow, slot])


@stage_kernel
def send_loop(  # noqa: C901, PLR0912 - a call of another kernel counts the references of its tuples, a fifth of a microsecond
    rings: Rings,
    table: FlowTable,
    statistics: LoopStatistics,
    following: Following,
    faults: NetworkFaults,
    stop: npt.NDArray[np.int64],
    settings: LoopSettings,
) -> int:
    """Send until stopped; returns a ``LoopEnd``.

    Lateness is measured after the kernel has accepted a datagram, so it includes the part of the network stack that the send call covers.
    A datagram that the kernel refuses is counted by errno and not tried again; nothing but ``stop`` and the policy ``STOP`` ends the loop.

    Args:
        rings: Rings to send from; this is their only consumer.
        table: Destinations of the flows.
        statistics: Counters; this is their only writer.
        following: Copies for followers; a full queue is counted, and the loop does not wait for it.
        faults: Faults of the network; datagrams that they may befall are judged when they are due, and sent when they are due then.
        stop: ``int64[8]``, column 0: a value other than 0 ends the loop within 1.4 ms.
        settings: Late policy and spin.
    """
    flows = rings.head.shape[0]
    slots = rings.deadline_ns.shape[1]
    next_ns = np.full(flows, _NOTHING, np.int64)  # deadline of each flow's next datagram, where known
    starved = np.zeros(flows, np.int64)  # whether the ring was found empty
    turns = statistics.passes[0]
    while load_acquire(stop, (0,)) == 0:
        turns += 1
        store_release(statistics.passes, (0,), turns)
        now_ns = monotonic_ns()
        store_release(statistics.pass_ns, (0,), now_ns)
        chosen = _earliest_flow(rings, table, statistics, now_ns, next_ns, starved)
        deadline_ns = next_ns[chosen] if chosen >= 0 else _NOTHING
        is_held = faults.pool[Pool.COUNT] != 0 and next_held_ns(faults) <= deadline_ns
        if is_held:
            chosen, deadline_ns = faults.held_flow[first_held(faults)], next_held_ns(faults)
        if deadline_ns - settings.spin_ns > now_ns:
            wake_ns = now_ns + TURN_NS
            if deadline_ns - settings.spin_ns <= now_ns + STRETCH_NS:
                wake_ns = deadline_ns - settings.spin_ns
            doze_until(wake_ns, statistics.brake)
            continue
        while now_ns < deadline_ns:
            pause()
            now_ns = monotonic_ns()
        is_silent = load_acquire(table.is_silent, (chosen,)) != 0
        is_judged = not is_held and not is_silent and load_acquire(faults.befallen, (chosen,)) != 0
        is_late = not is_silent and not is_judged and now_ns - deadline_ns > settings.late_limit_ns
        if is_late:
            statistics.counters[chosen, Counter.LATE] += 1
            if settings.late_policy == LatePolicy.STOP and table.sends_late[chosen] == 0:
                return _TOO_LATE
        if is_silent:
            statistics.counters[chosen, Counter.SILENCED] += 1
        elif is_late and settings.late_policy == LatePolicy.SKIP and table.sends_late[chosen] == 0:
            statistics.counters[chosen, Counter.DROPPED] += 1
        elif is_held:
            _send_held(faults, table, statistics, following)
        elif is_judged:
            _judge(faults, rings, chosen, rings.head[chosen, 0] % slots)
        else:
            _send(rings, table, statistics, following, chosen, chosen, rings.head[chosen, 0] % slots)
        if is_held:
            release_held(faults)
            continue
        next_ns[chosen] = _NOTHING
        store_release(rings.head, (chosen, 0), rings.head[chosen, 0] + 1)
    return _STOPPED
