"""The whole pipeline of a lidar as one kernel: from packet indices to bytes without Python, so that a daemon thread never needs the GIL.

The stages are the very kernels that ``lidar.py`` calls one by one, so the bytes are the same (tested).
"""

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, inlined_kernel, kernel
from hilsim.emulator.plan import Gps, LidarPlan
from hilsim.emulator.position import encode_position
from hilsim.emulator.stages import LAYERS, Shots, collect, encode, fire, respond
from hilsim.packets.ethernet import Framing, write_headers
from hilsim.packets.velodyne_data import DATA_PACKET_SIZE
from hilsim.packets.velodyne_position import POSITION_PACKET_SIZE
from hilsim.render.beams import cast_beams
from hilsim.render.cells import NO_CELL, NO_CELLS
from hilsim.scene.world import World
from hilsim.sensor.clock import DeviceClock
from hilsim.vehicle.carrier import Carrier

_SINGLE = constant(1)
_DATA_SIZE = constant(DATA_PACKET_SIZE)
_POSITION_SIZE = constant(POSITION_PACKET_SIZE)


@kernel
def frame_datagram(framing: Framing, index: int, datagram: npt.NDArray[np.uint8], payload_size: int) -> int:
    """Write headers (if any) before the payload that stands at ``datagram[header_size:]``; returns the datagram's size."""
    if framing.header_size == 0:
        return payload_size
    identification = index + 1 if framing.counting_identification else 0
    return write_headers(framing.template, identification, framing.udp_checksum, datagram, payload_size)


@inlined_kernel
def trace(plan: LidarPlan, world: World, shots: Shots) -> None:
    """Cast the rays, and those that go on behind what lets light pass, and gather what they met."""
    shots.hits.hit_count[:] = 0
    rays, beyond = shots.rays, shots.ahead
    count = rays.range_m.size
    beam = plan.beam
    cast_beams(
        world,
        rays.origin_m,
        rays.direction,
        rays.time_ns,
        plan.cast_range_m,
        beam.share.size,
        beam.width_m,
        beam.spread,
        NO_CELLS,
        NO_CELL,
        rays.travelled_m,
        rays.range_m,
        rays.instance,
        rays.triangle,
    )
    count = collect(plan, world, rays, count, shots.hits, beyond)
    rays, spare = beyond, shots.behind
    layer = 1
    while count > 0 and layer < LAYERS:
        cast_beams(
            world,
            rays.origin_m[:count],
            rays.direction[:count],
            rays.time_ns[:count],
            plan.cast_range_m,
            _SINGLE,
            0.0,
            0.0,
            NO_CELLS,
            NO_CELL,
            rays.travelled_m[:count],
            rays.range_m[:count],
            rays.instance[:count],
            rays.triangle[:count],
        )
        count = collect(plan, world, rays, count, shots.hits, spare)
        rays, spare = spare, rays
        layer += 1


@inlined_kernel
def render_data_packet(
    plan: LidarPlan, carrier: Carrier, world: World, framing: Framing, packet: int, shots: Shots, datagram: npt.NDArray[np.uint8]
) -> int:
    """Render and encode data packet ``packet``; returns the datagram's size in bytes.

    Args:
        plan: The lidar.
        carrier: What carries it.
        world: What it sees.
        framing: Payload or whole frame.
        packet: Index of the packet since the sensor started.
        shots: Working arrays, overwritten.
        datagram: ``uint8[>= header + 1206]``, written.
    """
    sequences = plan.sequences_per_packet
    first = packet * sequences
    fire(plan, carrier, first, sequences, shots.rays)
    trace(plan, world, shots)
    respond(plan, first, sequences, shots)
    encode(plan, packet, shots.returns, framing.header_size, datagram)
    return frame_datagram(framing, packet, datagram, _DATA_SIZE)


@kernel
def render_position_packet(
    clock: DeviceClock, gps: Gps, carrier: Carrier, framing: Framing, index: int, device_ns: int, datagram: npt.NDArray[np.uint8]
) -> int:
    """Encode the position packet assembled at ``device_ns``, the ``index``-th of its stream; returns the datagram's size in bytes."""
    encode_position(clock, gps, carrier, device_ns, datagram[framing.header_size :])
    return frame_datagram(framing, index, datagram, _POSITION_SIZE)


@kernel
def render_data_packets(
    plan: LidarPlan,
    carrier: Carrier,
    world: World,
    framing: Framing,
    first_packet: int,
    shots: Shots,
    size: npt.NDArray[np.int32],
    datagrams: npt.NDArray[np.uint8],
) -> None:
    """Render consecutive data packets, one row of ``datagrams`` each."""
    for row in range(size.size):
        size[row] = render_data_packet(plan, carrier, world, framing, first_packet + row, shots, datagrams[row])
