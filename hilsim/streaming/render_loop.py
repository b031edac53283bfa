"""Loop that renders one lidar just ahead of its deadlines, a kernel without the GIL; ``streaming.render_thread`` runs it in a thread.

It renders the packets due within the lead, puts them into the flow's ring, and sleeps. If poses are known beforehand, it sleeps until several packets can
be rendered in a row: wake-ups, and first packets with cold CPU caches, took a twentieth of the daemon's processor time. On a vehicle that is flown each
packet is rendered with the poses known exactly the lead before its deadline. When the ring is full the loop waits. When it has fallen behind it
renders the packets that can still be in time (``punctuality``), and counts the rest.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, store_release
from hilsim.compilation.jit import constant, inlined_kernel, stage_kernel
from hilsim.compilation.pins import tuple_at
from hilsim.emulator.changing.segments import BASE, CAPACITY, Segments, enter_segment, render_packet, segment_after
from hilsim.emulator.fused import render_info_packet
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.position import position_deadline_ns
from hilsim.emulator.schedule import data_deadline_ns, first_packet_due, first_packet_from
from hilsim.emulator.workspace import Workspace
from hilsim.sensor.clock import device_from_rig, rig_from_device
from hilsim.sensor.position_stream import next_position, seek_positions
from hilsim.streaming.obstacle_map import ObstacleMap, note_packet
from hilsim.streaming.punctuality import LONGEST_RUN_NS, earliest_due_ns, lead_in_force_ns, next_estimate_ns, render_from_ns
from hilsim.streaming.render_state import LoopPlace, RenderCounter, RenderState, RenderStream, RenderWord
from hilsim.transmit.brake import doze_until
from hilsim.transmit.libc import monotonic_ns, thread_cpu_ns
from hilsim.transmit.ring import Rings, depth, push
from hilsim.transmit.statistics import bin_index
from hilsim.world.scene.world import World

_LONGEST_WAIT_NS = 1_000_000
_HAND_OVER_POLL_NS = 20_000
_NONE = constant(0)
_ONE = constant(1)
_BASE, _MASK = constant(BASE), constant(CAPACITY - 1)


@inlined_kernel
def _seek_positions(plan: LidarPlan, from_ns: int, positions: npt.NDArray[np.int64]) -> None:
    """Set ``positions`` to each schedule's first packet that is due at or after rig time ``from_ns``."""
    latency_ns = plan.position.latency_ns + plan.data_latency_ns
    seek_positions(plan.position, max(device_from_rig(plan.clock, from_ns - latency_ns) - 2, 0), positions)
    schedule, position_ns = next_position(plan.position, positions)
    while positions.size > 0 and position_deadline_ns(plan, position_ns) < from_ns:
        positions[schedule] += 1
        schedule, position_ns = next_position(plan.position, positions)


@inlined_kernel
def begin_loop(plan: LidarPlan, stream: RenderStream) -> int:
    """Find this loop's first packets; returns the index of the first data packet, and writes those of the first position packets to ``stream.positions``."""
    place, positions = stream.state.place, stream.positions
    place[LoopPlace.CPU_NS] = -thread_cpu_ns()
    packet = int(place[LoopPlace.PACKET])
    if stream.goes_on:
        for schedule in range(positions.size):
            positions[schedule] = place[LoopPlace.SCHEDULES + schedule]
    else:
        packet = first_packet_due(plan, place[LoopPlace.DATA_FROM_NS])
        if place[LoopPlace.FIRED_NS] > 0:  # packets of another schedule or field of view may begin before those that were sent ended
            packet = max(packet, first_packet_from(plan, place[LoopPlace.FIRED_NS]))
        _seek_positions(plan, place[LoopPlace.POSITIONS_FROM_NS], positions)
    return packet


@inlined_kernel
def end_loop(plan: LidarPlan, stream: RenderStream) -> None:
    """Pass the place where the next loop begins to it, and let it begin."""
    state, positions = stream.state, stream.positions
    place, packet = state.place, state.counters[RenderCounter.NEXT_PACKET]
    place[LoopPlace.PACKET] = packet
    for schedule in range(positions.size):
        place[LoopPlace.SCHEDULES + schedule] = positions[schedule]
    if packet > 0:
        due_ns = data_deadline_ns(plan, packet - 1)
        place[LoopPlace.DATA_FROM_NS] = max(due_ns + 1, place[LoopPlace.DATA_FROM_NS])
        place[LoopPlace.FIRED_NS] = max(due_ns - plan.data_latency_ns, place[LoopPlace.FIRED_NS])
    place[LoopPlace.CPU_NS] += thread_cpu_ns()
    store_release(state.words, (RenderWord.ENDED,), 1)


@inlined_kernel
def _note_done(counters: npt.NDArray[np.int64], due_ns: int, done_ns: int) -> None:
    """Count a datagram that was made too late."""
    if done_ns > due_ns:
        counters[RenderCounter.LATE] += 1
        if counters[RenderCounter.LATE_SINCE_NS] == 0:
            counters[RenderCounter.LATE_SINCE_NS] = done_ns


@inlined_kernel
def note_rendered(state: RenderState, due_ns: int, done_ns: int, taken_ns: int) -> None:
    """Count a data packet that was rendered and put into its ring."""
    counters = state.counters
    _note_done(counters, due_ns, done_ns)
    counters[RenderCounter.RENDERED] += 1
    counters[RenderCounter.RENDER_SUM_NS] += taken_ns
    counters[RenderCounter.ESTIMATE_NS] = next_estimate_ns(counters[RenderCounter.ESTIMATE_NS], taken_ns)
    state.render[bin_index(taken_ns)] += 1


@inlined_kernel
def await_former(state: RenderState) -> bool:
    """Wait until the former loop has ended; returns False if this loop is stopped meanwhile."""
    store_release(state.words, (RenderWord.WAITING,), 1)
    is_stopped = False
    while not is_stopped and load_acquire(state.before, (RenderWord.ENDED,)) == 0:
        is_stopped = load_acquire(state.words, (RenderWord.STOP,)) != 0
        if not is_stopped:
            doze_until(monotonic_ns() + _HAND_OVER_POLL_NS, state.brake)
    return not is_stopped


@stage_kernel
def _encode_position(
    segments: Segments | None, plan: LidarPlan, at: int, stream: RenderStream, next_packet: int, index: int, position_ns: int
) -> int:
    """Encode the position packet assembled at a device time by the plan in force then; ``plan`` is that of segment ``at``. Returns its size in bytes."""
    if segments is None:
        return render_info_packet(plan, stream.platform, stream.position_framing, index, position_ns, stream.datagram)
    later = segment_after(plan, segments, at, next_packet, rig_from_device(plan.clock, position_ns))
    if later == at:
        return render_info_packet(plan, stream.platform, stream.position_framing, index, position_ns, stream.datagram)
    changed = tuple_at(segments.plan[later & _MASK], plan)
    return render_info_packet(changed, stream.platform, stream.position_framing, index, position_ns, stream.datagram)


@inlined_kernel
def _render_position(plan: LidarPlan, at: int, stream: RenderStream, position_ns: int, due_ns: int, now_ns: int) -> None:
    """Encode a position packet into its ring; it costs little, so only a packet that the sending loop would drop is skipped."""
    counters, positions = stream.state.counters, stream.positions
    if now_ns > due_ns + stream.late_limit_ns:
        counters[RenderCounter.POSITIONS_SKIPPED] += 1
    else:
        index = _NONE
        for schedule in range(positions.size):
            index += positions[schedule]
        size = _encode_position(stream.segments, plan, at, stream, counters[RenderCounter.NEXT_PACKET], index, position_ns)
        if size > 0 and not push(stream.rings, stream.position_flow, due_ns, now_ns, stream.datagram, size):
            counters[RenderCounter.RING_FULL] += 1
        _note_done(counters, due_ns, monotonic_ns())
        counters[RenderCounter.POSITIONS] += 1 if size > 0 else 0


@inlined_kernel
def _rest(rings: Rings, flow: int, begin_ns: int, due_ns: int, now_ns: int, brake: npt.NDArray[np.int64]) -> bool:
    """Sleep a while if the next packet is not to be made before ``begin_ns``, or its ring is full and it is not due; returns False if neither holds."""
    wait_ns = begin_ns - now_ns
    is_early = wait_ns > 0
    is_held = not is_early and now_ns < due_ns and depth(rings, flow) >= rings.deadline_ns.shape[1]
    if is_early:  # in one sleep if it is near; a longer sleep would delay the reaction to a stop or to another lead
        doze_until(now_ns + min(wait_ns, LONGEST_RUN_NS), brake)
    elif is_held:
        doze_until(min(now_ns + _LONGEST_WAIT_NS, due_ns), brake)
    return is_early or is_held


@inlined_kernel
def await_packets(plan: LidarPlan, at: int, stream: RenderStream, most: int, has_rendered: bool) -> int:  # noqa: FBT001 - kernels take their arguments by place
    """Sleep until data packets are to be rendered, and encode the position packets that are due meanwhile into their ring.

    Args:
        plan: Plan of the lidar, that of segment ``at``.
        at: Segment of the data packet before.
        stream: The loop's stream.
        most: Largest number of packets to return.
        has_rendered: Whether the packet before was rendered just now.

    Returns:
        Number of packets, from ``RenderCounter.NEXT_PACKET`` on, whose lead has begun and for which the ring has room; 0: the loop is to end.
    """
    state, rings, positions, epoch_ns, stop_packet = stream.state, stream.rings, stream.positions, stream.epoch_ns, stream.stop_packet
    counters, words = state.counters, state.words
    packet = counters[RenderCounter.NEXT_PACKET]
    is_running = has_rendered
    count = _NONE
    while count == 0 and load_acquire(words, (RenderWord.STOP,)) == 0 and packet != stop_packet:
        data_due_ns = epoch_ns + data_deadline_ns(plan, packet)
        schedule, position_ns = next_position(plan.position, positions)
        position_due_ns = epoch_ns + position_deadline_ns(plan, position_ns)
        is_data = data_due_ns <= position_due_ns
        due_ns = data_due_ns if is_data else position_due_ns
        flow = stream.data_flow if is_data else stream.position_flow
        now_ns = monotonic_ns()
        estimate_ns = counters[RenderCounter.ESTIMATE_NS]
        lead_ns = lead_in_force_ns(load_acquire(state.lead, (0,)), estimate_ns, plan.sequences_per_packet * plan.sequence_ns)
        begin_ns = render_from_ns(due_ns, lead_ns, is_running, stream.platform.is_live)
        is_running = not _rest(rings, flow, begin_ns, due_ns, now_ns, state.brake)
        if not is_running:
            counters[RenderCounter.LATE_SINCE_NS] = 0
            continue
        slots = rings.deadline_ns.shape[1]
        is_full = depth(rings, flow) >= slots  # and the packet is due: the sending loop takes no packet before its deadline
        if is_full:
            counters[RenderCounter.RING_FULL] += 1
        if not is_data:
            if not is_full:
                _render_position(plan, at, stream, position_ns, due_ns, now_ns)
            positions[schedule] += 1
            state.place[LoopPlace.POSITIONS_FROM_NS] = due_ns - epoch_ns + 1
            continue
        from_ns = earliest_due_ns(now_ns, estimate_ns, stream.late_limit_ns, counters[RenderCounter.LATE_SINCE_NS])
        if is_full:
            packet += 1
            store_release(counters, (RenderCounter.NEXT_PACKET,), packet)
        elif due_ns < from_ns:
            following = max(first_packet_due(plan, from_ns - epoch_ns), packet + 1)
            counters[RenderCounter.SKIPPED] += following - packet
            packet = following
            store_release(counters, (RenderCounter.NEXT_PACKET,), packet)
        else:
            count += 1
            while (
                count < most
                and packet + count != stop_packet
                and depth(rings, flow) + count < slots
                and epoch_ns + data_deadline_ns(plan, packet + count) - lead_ns <= now_ns
            ):
                count += 1
    return count


@stage_kernel
def render_ahead(
    segments: Segments, plan: LidarPlan, world: World, workspace: Workspace, stream: RenderStream, obstacle_map: ObstacleMap | None
) -> None:
    """Render packets into both rings of a lidar until stopped.

    Args:
        segments: The stream's.
        plan: Plan of the lidar.
        world: World that the lidar sees.
        workspace: Working arrays.
        stream: What never changes.
        obstacle_map: Map in which a packet's returns are entered, once the packet is in the ring; None: no map.
    """
    state, platform, epoch_ns = stream.state, stream.platform, stream.epoch_ns
    counters = state.counters
    if not await_former(state):
        return
    packet = begin_loop(plan, stream)
    store_release(counters, (RenderCounter.NEXT_PACKET,), packet)
    has_rendered = False
    at = enter_segment(plan, segments, _BASE, packet)
    now = plan if at < 0 else tuple_at(segments.plan[at & _MASK], plan)
    now_world, now_workspace = world, workspace
    while await_packets(now, at, stream, _ONE, has_rendered) != 0:
        packet = counters[RenderCounter.NEXT_PACKET]
        former, at = at, enter_segment(plan, segments, at, packet)
        if at >= 0:
            row = at & _MASK
            now, now_world = tuple_at(segments.plan[row], plan), tuple_at(segments.world[row], world)
            now_workspace = tuple_at(segments.workspace[row], workspace)
        if at != former:
            has_rendered = False
            continue  # with a limited view the packet may end much later than it did, and changes until then are to be in it
        due_ns = epoch_ns + data_deadline_ns(now, packet)
        begun_ns = monotonic_ns()
        size = render_packet(now, platform, now_world, stream.data_framing, segments, at, packet, now_workspace, stream.datagram)
        done_ns = monotonic_ns()
        if not push(stream.rings, stream.data_flow, due_ns, begun_ns, stream.datagram, size):
            counters[RenderCounter.RING_FULL] += 1
        note_rendered(state, due_ns, done_ns, done_ns - begun_ns)
        note_packet(obstacle_map, now, platform.live, now_workspace)
        store_release(counters, (RenderCounter.NEXT_PACKET,), packet + 1)
        has_rendered = True
    end_loop(now, stream)
