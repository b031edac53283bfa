"""The stages of a lidar's pipeline as kernels on arrays: firings → rays, ranges → returns, returns → data packet.

``fused.py`` strings them together with the CPU ray caster into one kernel that needs no Python; ``lidar.py`` calls them one by one around any
``Renderer``. Arrays are ``[channel, sequence]`` (azimuth fastest), which is the order ray casting likes best.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.geometry.rotations import multiply, normalise, rotate
from hilsim.packets.velodyne_data import encode_data_packet
from hilsim.sensor.clock import device_from_rig, rig_from_device, stamp_us
from hilsim.sensor.head import head_reading_cdeg, head_turns
from hilsim.sensor.response import distance_code
from hilsim.vehicle.carrier import Carrier, carrier_state


class Rays(NamedTuple):
    """Ray and hit arrays of ``n = channels * sequences`` firings, channel-major.

    Attributes:
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]`` in the world, unit.
        time_ns: ``int64[n]``, rig time of each firing.
        range_m: ``float32[n]``, ``inf`` for a miss.
        instance: ``int32[n]``, -1 for a miss.
        triangle: ``int32[n]``, -1 for a miss.
    """

    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    time_ns: npt.NDArray[np.int64]
    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


class Returns(NamedTuple):
    """What the sensor reports for some firing sequences.

    Attributes:
        distance: ``uint16[r, s, c]``, raw; 0 for no return.
        reflectivity: ``uint8[r, s, c]``.
        azimuth_cdeg: ``int64[s]``, the encoder's readings.
    """

    distance: npt.NDArray[np.uint16]
    reflectivity: npt.NDArray[np.uint8]
    azimuth_cdeg: npt.NDArray[np.int64]


def allocate_rays(plan: LidarPlan, sequences: int) -> Rays:
    """Arrays for the rays of ``sequences`` firing sequences."""
    n = plan.firing_offset_ns.size * sequences
    return Rays(
        origin_m=np.zeros((n, 3)),
        direction=np.zeros((n, 3), np.float32),
        time_ns=np.zeros(n, np.int64),
        range_m=np.zeros(n, np.float32),
        instance=np.zeros(n, np.int32),
        triangle=np.zeros(n, np.int32),
    )


def allocate_returns(plan: LidarPlan, sequences: int) -> Returns:
    """Arrays for the returns of ``sequences`` firing sequences."""
    shape = (plan.returns, sequences, plan.firing_offset_ns.size)
    return Returns(distance=np.zeros(shape, np.uint16), reflectivity=np.zeros(shape, np.uint8), azimuth_cdeg=np.zeros(sequences, np.int64))


@kernel
def fire(plan: LidarPlan, carrier: Carrier, first_sequence: int, sequences: int, rays: Rays) -> None:
    """Write the ray of every firing, from the pose and the head angle at that firing's own time.

    The carrier's pose and the head's angle are evaluated at the start and the end of each firing sequence and interpolated linearly in between:
    over 55 us that is exact to a * dt^2 / 8, 0.02 um at 50 m/s^2, and 1e-9 turns for the swings of a head.

    Args:
        plan: The lidar.
        carrier: What carries it.
        first_sequence: Index of the first firing sequence.
        sequences: How many.
        rays: Written.
    """
    device_ns = first_sequence * plan.sequence_ns
    stop_ns = rig_from_device(plan.clock, device_ns)
    (stop_x, stop_y, stop_z), stop_q = carrier_state(carrier, stop_ns)
    stop_turns = head_turns(plan.head, device_ns)
    mount = (plan.mount_orientation[0], plan.mount_orientation[1], plan.mount_orientation[2], plan.mount_orientation[3])
    for sequence in range(sequences):
        start_ns, start_x, start_y, start_z, start_q = stop_ns, stop_x, stop_y, stop_z, stop_q
        stop_ns = rig_from_device(plan.clock, device_ns + plan.sequence_ns)
        (stop_x, stop_y, stop_z), stop_q = carrier_state(carrier, stop_ns)
        start_turns = stop_turns
        stop_turns = head_turns(plan.head, device_ns + plan.sequence_ns)
        travelled = stop_turns - start_turns
        travelled -= math.floor(travelled + 0.5)  # over the seam of a turn
        alike = start_q[0] * stop_q[0] + start_q[1] * stop_q[1] + start_q[2] * stop_q[2] + start_q[3] * stop_q[3]
        sign = 1.0 if alike >= 0.0 else -1.0
        for channel in range(plan.firing_offset_ns.size):
            firing_ns = device_ns + plan.firing_offset_ns[channel]
            time_ns = rig_from_device(plan.clock, firing_ns)
            share = (time_ns - start_ns) / (stop_ns - start_ns)
            qw = start_q[0] + share * (sign * stop_q[0] - start_q[0])
            qx = start_q[1] + share * (sign * stop_q[1] - start_q[1])
            qy = start_q[2] + share * (sign * stop_q[2] - start_q[2])
            qz = start_q[3] + share * (sign * stop_q[3] - start_q[3])
            body = normalise((qw, qx, qy, qz))
            turns = start_turns + travelled * (plan.firing_offset_ns[channel] / plan.sequence_ns)
            azimuth = 2.0 * math.pi * turns + plan.azimuth_offset_rad[channel]
            level = plan.cosine_elevation[channel]
            in_sensor = (level * math.sin(azimuth), level * math.cos(azimuth), plan.sine_elevation[channel])
            dx, dy, dz = rotate(multiply(body, mount), in_sensor)
            begin = plan.channel_origin_m[channel]
            ox, oy, oz = rotate(body, (begin[0], begin[1], begin[2]))
            at = channel * sequences + sequence
            rays.origin_m[at, 0] = start_x + share * (stop_x - start_x) + ox
            rays.origin_m[at, 1] = start_y + share * (stop_y - start_y) + oy
            rays.origin_m[at, 2] = start_z + share * (stop_z - start_z) + oz
            rays.direction[at, 0] = dx
            rays.direction[at, 1] = dy
            rays.direction[at, 2] = dz
            rays.time_ns[at] = time_ns
        device_ns += plan.sequence_ns


@kernel
def respond(
    plan: LidarPlan,
    material: npt.NDArray[np.uint16],
    reflectivity: npt.NDArray[np.uint8],
    first_sequence: int,
    sequences: int,
    rays: Rays,
    returns: Returns,
) -> None:
    """Turn ranges into what the sensor reports.

    Args:
        plan: The lidar.
        material: The world's material of each triangle.
        reflectivity: The world's code of each material.
        first_sequence: Index of the first firing sequence.
        sequences: How many.
        rays: With ranges written by a renderer.
        returns: Written.
    """
    for sequence in range(sequences):
        index = first_sequence + sequence
        returns.azimuth_cdeg[sequence] = head_reading_cdeg(plan.head, index * plan.sequence_ns, index)
        for channel in range(plan.firing_offset_ns.size):
            at = channel * sequences + sequence
            code = distance_code(plan.response, rays.range_m[at], channel, index)
            byte = plan.response.baseline[channel]
            if code > 0:
                byte = reflectivity[material[rays.triangle[at]]]
            for which in range(plan.returns):
                returns.distance[which, sequence, channel] = code
                returns.reflectivity[which, sequence, channel] = byte


@kernel
def encode(plan: LidarPlan, packet: int, returns: Returns, offset: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write data packet ``packet`` to ``payload[offset : offset + 1206]`` from the returns of its firing sequences."""
    stamp = stamp_us(plan.clock, packet * plan.sequences_per_packet * plan.sequence_ns)
    encode_data_packet(returns.azimuth_cdeg, returns.distance, returns.reflectivity, stamp, plan.return_mode, plan.product, payload[offset:])


@kernel
def data_deadline_ns(plan: LidarPlan, packet: int) -> int:
    """Rig time at which data packet ``packet`` is due: the end of its last firing sequence plus the model's latency."""
    return rig_from_device(plan.clock, (packet + 1) * plan.sequences_per_packet * plan.sequence_ns) + plan.data_latency_ns


@kernel
def first_packet_due(plan: LidarPlan, rig_ns: int) -> int:
    """Index of the first data packet whose deadline is at or after ``rig_ns``."""
    packet_ns = plan.sequences_per_packet * plan.sequence_ns
    packet = max(device_from_rig(plan.clock, rig_ns - plan.data_latency_ns) // packet_ns - 2, 0)
    while data_deadline_ns(plan, packet) < rig_ns:
        packet += 1
    return packet
