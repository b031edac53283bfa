"""Loop that renders one lidar whose rays a device casts (``world.render.renderer.DeviceRenderer``), several packets at a time.

Python calls the device; the rest are the kernels of ``streaming.render_loop``, without the GIL. Python may delay the loop by milliseconds, which the
lead covers.
"""

import time
from typing import Any

from hilsim.compilation.atomics import publish
from hilsim.compilation.jit import constant, kernel
from hilsim.emulator.backdrop import sample_background
from hilsim.emulator.changing.segments import BASE
from hilsim.emulator.families.packets import encode, sense
from hilsim.emulator.firing import fire
from hilsim.emulator.fused import frame_datagram
from hilsim.emulator.layers import trace_with
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.reception.detection import respond
from hilsim.emulator.schedule import data_deadline_ns, write_sequences_of
from hilsim.emulator.workspace import Returns, Workspace, allocate_workspace
from hilsim.errors import DeviceError
from hilsim.streaming.obstacle_map import ObstacleMap, note_packet
from hilsim.streaming.render_loop import await_former, await_packets, begin_loop, end_loop, note_rendered
from hilsim.streaming.render_state import RenderCounter, RenderStream
from hilsim.transmit.libc import monotonic_ns
from hilsim.transmit.ring import push
from hilsim.world.platforms.platform import Platform
from hilsim.world.render.renderer import DeviceRenderer
from hilsim.world.scene.world import World

PACKETS_TOGETHER = 8
"""Largest number of packets cast at once: 10 ms of a VLP-16."""

_UNCHANGED = constant(BASE)


def render_ahead_on(renderer: DeviceRenderer, lidar: LidarEmulator, stream: RenderStream, obstacle_map: ObstacleMap | None) -> DeviceError | None:
    """Render packets into both rings of a lidar until stopped, as ``streaming.render_loop.render_ahead`` does.

    Returns:
        Error that ended the loop, after which another loop can continue; None: the loop was stopped.
    """
    plan, world, state = lidar.plan, lidar.world, stream.state
    if not _begin(plan, stream):
        return None
    most = PACKETS_TOGETHER if obstacle_map is None else 1  # a map takes the rays of one packet
    workspaces: dict[int, Workspace] = {}

    def workspace_of(count: int) -> Workspace:
        """Workspace for so many packets."""
        if count not in workspaces:
            workspaces[count] = allocate_workspace(plan, count * plan.sequences_per_packet, is_opaque=world.is_opaque, keeps_hits=False)._replace(
                counts=state.emulated
            )
        return workspaces[count]

    part = workspace_of(1).returns
    has_rendered = False
    fault = None
    while fault is None:
        count = _await_packets(plan, stream, most, has_rendered)
        if count == 0:
            break
        first = int(state.counters[RenderCounter.NEXT_PACKET])
        begun_ns = time.monotonic_ns()
        workspace = workspace_of(count)
        _fire(plan, lidar.platform, first, workspace)
        try:
            trace_with(lambda rays: renderer.cast_slices(world, [rays]), plan, world, workspace)
        except DeviceError as error:
            fault = error
            break
        _finish(plan, world, stream, workspace, part, obstacle_map, first, count, begun_ns)
        publish(state.counters, int(RenderCounter.NEXT_PACKET), first + count)
        has_rendered = True
    _end(plan, stream)
    return fault


@kernel
def _begin(plan: LidarPlan, stream: RenderStream) -> bool:
    """Begin where the former loop has ended; returns False if this loop is stopped before."""
    has_begun = await_former(stream.state)
    if has_begun:
        stream.state.counters[RenderCounter.NEXT_PACKET] = begin_loop(plan, stream)
    return has_begun


@kernel
def _await_packets(plan: LidarPlan, stream: RenderStream, most: int, has_rendered: bool) -> int:  # noqa: FBT001 - kernels take their arguments by place
    """Call ``streaming.render_loop.await_packets`` from Python."""
    return await_packets(plan, _UNCHANGED, stream, most, has_rendered)


@kernel
def _fire(plan: LidarPlan, platform: Platform, first: int, workspace: Workspace) -> None:
    """Make the rays of packets from ``first`` on, and find the captured background that they see."""
    write_sequences_of(plan.field_of_view, plan, first, workspace.sequence)
    fire(plan, platform, workspace.sequence, workspace.rays)
    sample_background(plan.rare, plan, workspace.sequence, workspace.backdrop)


@kernel
def _finish(
    plan: LidarPlan,
    world: World,
    stream: RenderStream,
    workspace: Workspace,
    part: Returns,
    obstacle_map: ObstacleMap | None,
    first: int,
    count: int,
    begun_ns: int,
) -> None:
    """Make packets ``first`` to ``first + count - 1`` from the hits of their rays, and put them into their ring.

    Each has its share of the time since ``begun_ns``. ``part`` is for the returns of one.
    """
    state, framing, datagram = stream.state, stream.data_framing, stream.datagram
    respond(plan, workspace)
    sense(plan, world, workspace)
    done_ns = monotonic_ns()
    share_ns = (done_ns - begun_ns) // count
    for number in range(count):
        packet = first + number
        due_ns = stream.epoch_ns + data_deadline_ns(plan, packet)
        _take_part(plan.own, workspace.returns, number * plan.sequences_per_packet, part)
        encode(plan, packet, part, workspace.counts, framing.header_size, datagram)
        size = frame_datagram(framing, packet, datagram, plan.data_size)
        if not push(stream.rings, stream.data_flow, due_ns, begun_ns, datagram, size):
            state.counters[RenderCounter.RING_FULL] += 1
        former_ns = done_ns
        done_ns = monotonic_ns()
        note_rendered(state, due_ns, done_ns, done_ns - former_ns + share_ns)
    note_packet(obstacle_map, plan, stream.platform.live, workspace)


@kernel
def _take_part(own: Any, returns: Returns, first: int, part: Returns) -> None:
    """Copy what a packet consists of from the returns of several: those of the firing sequences from ``first`` on."""
    sequences = part.azimuth_cdeg.size
    for sequence in range(sequences):
        part.azimuth_cdeg[sequence] = returns.azimuth_cdeg[first + sequence]
        for kind in range(part.distance.shape[0]):
            for channel in range(part.distance.shape[2]):
                part.distance[kind, sequence, channel] = returns.distance[kind, first + sequence, channel]
                part.reflectivity[kind, sequence, channel] = returns.reflectivity[kind, first + sequence, channel]
                part.flags[kind, sequence, channel] = returns.flags[kind, first + sequence, channel]
        for channel in range(part.distance.shape[2]):
            own.copy_return(own, returns, first + sequence, part, sequence, channel)


@kernel
def _end(plan: LidarPlan, stream: RenderStream) -> None:
    """Pass the place where the next loop begins to it, and let it begin."""
    end_loop(plan, stream)
