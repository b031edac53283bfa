"""The whole pipeline of a lidar as one kernel: from packet indices to bytes without Python, so that a daemon thread never needs the GIL.

The stages are the same kernels that ``lidar.py`` calls one by one, so the bytes are equal (tested).
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel, stage_kernel
from hilsim.compilation.lanes import WIDTH
from hilsim.emulator.backdrop import sample_background
from hilsim.emulator.families.packets import encode, encode_info, sense
from hilsim.emulator.firing import fire
from hilsim.emulator.hits import collect
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.reception.detection import respond
from hilsim.emulator.schedule import write_sequences_of
from hilsim.emulator.workspace import LAYERS, Workspace
from hilsim.protocols.ethernet import Framing, write_headers
from hilsim.world.platforms.platform import Platform
from hilsim.world.render.packets import cast_packets
from hilsim.world.scene.world import World


@kernel
def frame_datagram(framing: Framing, index: int, datagram: npt.NDArray[np.uint8], payload_size: int) -> int:
    """Write headers (if any) before the payload at ``datagram[header_size:]``; returns the datagram's size."""
    if framing.header_size == 0:
        return payload_size
    identification = index + 1 if framing.counting_identification else 0
    return write_headers(framing.template, identification, framing.udp_checksum, datagram, payload_size)


@stage_kernel
def trace(plan: LidarPlan, world: World, workspace: Workspace) -> None:
    """Cast the rays, continue those that pass through a material, and gather their hits."""
    workspace.hits.hit_count[:] = 0
    workspace.hits.flaw[:] = 0.0
    rays, beyond, spare = workspace.rays, workspace.ahead, workspace.behind
    count = rays.range_m.size
    for _ in range(LAYERS):
        cast_packets(
            world,
            rays.packets[: (count + WIDTH - 1) // WIDTH],
            rays.origin_m[:count],
            rays.direction[:count],
            rays.time_ns[:count],
            plan.cast_range_m,
            rays.range_m[:count],
            rays.instance[:count],
            rays.triangle[:count],
            rays.cosine[:count],
        )
        count = collect(plan.rare, plan, world, rays, count, workspace, beyond)
        if count == 0:
            break
        rays, beyond, spare = beyond, spare, beyond


@stage_kernel
def render_returns(plan: LidarPlan, platform: Platform, world: World, packet: int, workspace: Workspace) -> None:
    """Render the returns of data packet ``packet`` into ``workspace.returns``."""
    write_sequences_of(plan.field_of_view, plan, packet, workspace.sequence)
    fire(plan, platform, workspace.sequence, workspace.rays)
    sample_background(plan.rare, plan, workspace.sequence, workspace.backdrop)
    trace(plan, world, workspace)
    respond(plan, workspace)
    sense(plan, world, workspace)


@stage_kernel
def render_data_packet(
    plan: LidarPlan, platform: Platform, world: World, framing: Framing, packet: int, workspace: Workspace, datagram: npt.NDArray[np.uint8]
) -> int:
    """Render and encode data packet ``packet``; returns the datagram's size in bytes.

    Args:
        plan: Plan of the lidar.
        platform: Platform that carries the lidar.
        world: World that the lidar sees.
        framing: Framing of datagrams: payload, or whole frame.
        packet: Index of the packet since the sensor started.
        workspace: Working arrays, overwritten.
        datagram: ``uint8[>= header + plan.data_size]``, output.
    """
    render_returns(plan, platform, world, packet, workspace)
    encode(plan, packet, workspace.returns, workspace.counts, framing.header_size, datagram)
    return frame_datagram(framing, packet, datagram, plan.data_size)


@stage_kernel
def render_info_packet(plan: LidarPlan, platform: Platform, framing: Framing, index: int, device_ns: int, datagram: npt.NDArray[np.uint8]) -> int:
    """Encode the position (or information) packet assembled at ``device_ns``, the ``index``-th of its stream.

    Returns:
        The datagram's size in bytes; 0: it is not sent.
    """
    if not plan.position.is_sent:
        return 0
    encode_info(plan, platform, device_ns, datagram[framing.header_size :])
    return frame_datagram(framing, index, datagram, plan.info_size)


@kernel
def render_data_packets(
    plan: LidarPlan,
    platform: Platform,
    world: World,
    framing: Framing,
    first_packet: int,
    workspace: Workspace,
    size: npt.NDArray[np.int32],
    datagrams: npt.NDArray[np.uint8],
) -> None:
    """Render consecutive data packets, one row of ``datagrams`` each."""
    for row in range(size.size):
        size[row] = render_data_packet(plan, platform, world, framing, first_packet + row, workspace, datagrams[row])
