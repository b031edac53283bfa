"""The stages of a lidar's pipeline as kernels on arrays: firings → rays, ranges → hits, hits → returns, returns → data packet.

``fused.py`` strings them together with the CPU ray caster into one kernel that needs no Python; ``lidar.py`` calls them one by one around any
``Renderer``. Arrays are ``[channel, sequence, sub-ray]``, which is the order ray casting likes best.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, inlined_kernel, kernel
from hilsim.draws import Purpose, uniform
from hilsim.emulator.plan import LidarPlan
from hilsim.geometry.rotations import multiply, normalise, rotate
from hilsim.packets.velodyne_data import encode_data_packet
from hilsim.render.truth import hit_normal, triangle_normal
from hilsim.scene.world import World
from hilsim.sensor.clock import device_from_rig, rig_from_device, stamp_us
from hilsim.sensor.echoes import (
    COSINE,
    ECHO,
    ECHO_CODE,
    ECHO_COLUMNS,
    ECHO_DRAWS,
    ECHO_ENERGY,
    ECHO_RANGE,
    ECHO_RETRO,
    ENERGY,
    FALSE_ALARM_RAY,
    INSTANCE,
    RANGE,
    RAY,
    RETRO,
    TRIANGLE,
    WEATHER_RAY,
    Hits,
    allocate_hits,
    chosen_echo,
    group_echoes,
    is_detected,
)
from hilsim.sensor.false_alarms import false_alarm
from hilsim.sensor.head import head_reading_cdeg, head_turns
from hilsim.sensor.response import CHANNELS_PER_STREAM, distance_code, is_dropped, noise_sd_m, reflectivity_byte
from hilsim.sensor.thinning import reported_firings, withhold_firings
from hilsim.sensor.weather import extinction, weather_echoes
from hilsim.sensor.window import window_transmission
from hilsim.vehicle.carrier import Carrier, carrier_state

_GAP = constant(Purpose.GAP)
LAYERS = 4
"""Surfaces that a ray can pass one behind the other: foliage, fences, glass."""

GAP_SHIFT = 0.6180339887498949
"""Where the grid of openings lies, in cells from the world's zero. Not at it: on a fence at a round coordinate rounding would choose between two cells."""
_FAINTEST_SHARE = 1e-4
_STEP_M = 1e-3
"""How far behind a surface that it passed a ray goes on."""
_NEAREST_M = 0.01
_CDEG_PER_RAD = 18_000.0 / math.pi
_CDEG_PER_NS_PER_CRPM = 6e-9
_EXTRA_HITS = 12
"""Room for what is no surface: drops, fog, false alarms."""


class Rays(NamedTuple):
    """Rays of ``f = channels * sequences`` firings of ``k`` sub-rays, ``n = f * k``, channel-major, a firing's sub-rays side by side.

    Attributes:
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]`` in the world, unit.
        time_ns: ``int64[n]``, rig time of each firing.
        owner: ``int32[n]``, ``firing * k + sub-ray``.
        share: ``float64[n]``, of the firing's light that the ray still carries.
        travelled_m: ``float64[n]``, from the sensor to the origin.
        range_m: ``float32[n]``, from the origin; ``inf`` for a miss.
        instance: ``int32[n]``, -1 for a miss.
        triangle: ``int32[n]``, -1 for a miss.
    """

    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    time_ns: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]
    travelled_m: npt.NDArray[np.float64]
    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


class Returns(NamedTuple):
    """What the sensor reports for some firing sequences.

    Attributes:
        distance: ``uint16[r, s, c]``, raw; 0 for no return.
        reflectivity: ``uint8[r, s, c]``.
        azimuth_cdeg: ``int64[s]``, the encoder's readings.
        echo: ``int8[r, s, c]``, which of the firing's echoes is reported; -1 for none.
        range_m: ``float64[r, s, c]``, of that echo, without noise; ``inf`` for none.
    """

    distance: npt.NDArray[np.uint16]
    reflectivity: npt.NDArray[np.uint8]
    azimuth_cdeg: npt.NDArray[np.int64]
    echo: npt.NDArray[np.int8]
    range_m: npt.NDArray[np.float64]


class Shots(NamedTuple):
    """Working arrays for the firings of some sequences, from rays to returns.

    Attributes:
        rays: As they leave.
        ahead: Rays beyond a surface that lets light pass.
        behind: The same for the surface after the next.
        hits: What they met.
        echoes: ``float64[m, 4]``, of one firing.
        kept: ``int64[m]``, echoes of one firing that are detected.
        reported: ``bool[c, s]``, firings that a thinned sensor reports.
        returns: What is reported.
    """

    rays: Rays
    ahead: Rays
    behind: Rays
    hits: Hits
    echoes: npt.NDArray[np.float64]
    kept: npt.NDArray[np.int64]
    reported: npt.NDArray[np.bool_]
    returns: Returns


def allocate_rays(count: int) -> Rays:
    """Arrays for ``count`` rays."""
    return Rays(
        origin_m=np.zeros((count, 3)),
        direction=np.zeros((count, 3), np.float32),
        time_ns=np.zeros(count, np.int64),
        owner=np.zeros(count, np.int32),
        share=np.zeros(count),
        travelled_m=np.zeros(count),
        range_m=np.zeros(count, np.float32),
        instance=np.zeros(count, np.int32),
        triangle=np.zeros(count, np.int32),
    )


def allocate_shots(plan: LidarPlan, sequences: int, *, is_opaque: bool) -> Shots:
    """Arrays for ``sequences`` firing sequences; in a world in which everything ``is_opaque`` no ray goes on behind a surface."""
    firings = plan.firing_offset_ns.size * sequences
    rays = firings * plan.beam.share.size
    most = plan.beam.share.size * (1 if is_opaque else LAYERS) + _EXTRA_HITS
    shape = (plan.returns, sequences, plan.firing_offset_ns.size)
    return Shots(
        rays=allocate_rays(rays),
        ahead=allocate_rays(1 if is_opaque else rays),
        behind=allocate_rays(1 if is_opaque else rays),
        hits=allocate_hits(firings, most),
        echoes=np.zeros((most, ECHO_COLUMNS)),
        kept=np.zeros(most, np.int64),
        reported=np.ones((plan.firing_offset_ns.size, sequences), np.bool_),
        returns=Returns(
            distance=np.zeros(shape, np.uint16),
            reflectivity=np.zeros(shape, np.uint8),
            azimuth_cdeg=np.zeros(sequences, np.int64),
            echo=np.full(shape, -1, np.int8),
            range_m=np.full(shape, np.inf),
        ),
    )


@inlined_kernel
def _put_ray(rays: Rays, at: int, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float, time_ns: int, share: float) -> None:
    rays.origin_m[at, 0] = ox
    rays.origin_m[at, 1] = oy
    rays.origin_m[at, 2] = oz
    rays.direction[at, 0] = dx
    rays.direction[at, 1] = dy
    rays.direction[at, 2] = dz
    rays.time_ns[at] = time_ns
    rays.owner[at] = at
    rays.share[at] = share
    rays.travelled_m[at] = 0.0


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
    sub_rays = plan.beam.share.size
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
            level, rise = plan.cosine_elevation[channel], plan.sine_elevation[channel]
            sine, cosine = math.sin(azimuth), math.cos(azimuth)
            turned = multiply(body, mount)
            dx, dy, dz = rotate(turned, (level * sine, level * cosine, rise))
            begin = plan.channel_origin_m[channel]
            ox, oy, oz = rotate(body, (begin[0], begin[1], begin[2]))
            ox += start_x + share * (stop_x - start_x)
            oy += start_y + share * (stop_y - start_y)
            oz += start_z + share * (stop_z - start_z)
            first = (channel * sequences + sequence) * sub_rays
            _put_ray(rays, first, ox, oy, oz, dx, dy, dz, time_ns, plan.beam.share[0])
            if sub_rays == 1:
                continue
            hx, hy, hz = rotate(turned, (cosine, -sine, 0.0))  # across the beam, horizontally and upwards
            vx, vy, vz = rotate(turned, (-rise * sine, -rise * cosine, level))
            for ray in range(1, sub_rays):
                u, v = plan.beam.tangent[ray, 0], plan.beam.tangent[ray, 1]
                x, y, z = dx + u * hx + v * vx, dy + u * hy + v * vy, dz + u * hz + v * vz
                scale = 1.0 / math.sqrt(1.0 + u * u + v * v)
                u, v = plan.beam.offset_m[ray, 0], plan.beam.offset_m[ray, 1]
                _put_ray(
                    rays,
                    first + ray,
                    ox + u * hx + v * vx,
                    oy + u * hy + v * vy,
                    oz + u * hz + v * vz,
                    x * scale,
                    y * scale,
                    z * scale,
                    time_ns,
                    plan.beam.share[ray],
                )
        device_ns += plan.sequence_ns


@kernel
def _opening(
    seed: np.uint64,
    material: int,
    porosity: float,
    gap_m: float,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    ray: int,
    range_m: float,
) -> float:
    """1 where a ray goes through an opening of a porous surface, 0 where it meets it: openings are cells of the world, always the same ones."""
    cell = 0
    for axis in range(3):
        place = math.floor((origin_m[ray, axis] + range_m * direction[ray, axis]) / gap_m + GAP_SHIFT)
        cell = (cell << 21) ^ (place & 0x1FFFFF)
    return 1.0 if uniform(seed, material, cell, _GAP) < porosity else 0.0


@kernel
def collect(plan: LidarPlan, world: World, rays: Rays, count: int, hits: Hits, beyond: Rays) -> int:
    """Add what rays met to their firings' hits, and let light go on behind what is open or transparent.

    Args:
        plan: The lidar.
        world: What was hit.
        rays: With ranges written by a renderer.
        count: How many of them.
        hits: Added to.
        beyond: Written: rays that go on; not touched in a world in which everything is opaque.

    Returns:
        How many rays go on.
    """
    # Taken out of the loop: each look into a tuple inside would count references with an atomic instruction.
    sub_rays = plan.beam.share.size
    origin_m, direction, time_ns, owner = rays.origin_m, rays.direction, rays.time_ns, rays.owner
    share, travelled_m, range_m = rays.share, rays.travelled_m, rays.range_m
    instance, triangle = rays.instance, rays.triangle
    material, optics, corners, tile_count = world.material, world.optics, world.corners, world.tile_count
    hit_count, value, what = hits.hit_count, hits.value, hits.what
    room = value.shape[1]
    seed = plan.response.seed
    going_on = 0
    for ray in range(count):
        row = triangle[ray]
        if row < 0:
            continue
        nx, ny, nz = triangle_normal(corners, row)
        if instance[ray] >= tile_count:
            nx, ny, nz = hit_normal(world, instance[ray], row, time_ns[ray])
        porosity, gap_m = float(optics[material[row], 2]), float(optics[material[row], 4])
        if porosity > 0.0 and gap_m > 0.0 and instance[ray] < tile_count:
            porosity = _opening(seed, material[row], porosity, gap_m, origin_m, direction, ray, float(range_m[ray]))
        cosine = abs(nx * direction[ray, 0] + ny * direction[ray, 1] + nz * direction[ray, 2])
        surface = material[row]
        transmission = float(optics[surface, 3])
        hit_m = travelled_m[ray] + range_m[ray]
        far_m = max(hit_m, _NEAREST_M)
        firing = owner[ray] // sub_rays
        at = hit_count[firing]
        if at < room and porosity < 1.0:
            value[firing, at, RANGE] = hit_m
            value[firing, at, ENERGY] = share[ray] * (1.0 - porosity) * float(optics[surface, 0]) * cosine / (far_m * far_m)
            value[firing, at, COSINE] = cosine
            value[firing, at, RETRO] = optics[surface, 1]
            what[firing, at, RAY] = owner[ray] % sub_rays
            what[firing, at, INSTANCE] = instance[ray]
            what[firing, at, TRIANGLE] = row
            hit_count[firing] = at + 1
        passing = share[ray] * (porosity + (1.0 - porosity) * transmission * transmission)
        if passing < _FAINTEST_SHARE:
            continue
        step_m = range_m[ray] + _STEP_M
        for axis in range(3):
            beyond.origin_m[going_on, axis] = origin_m[ray, axis] + step_m * direction[ray, axis]
            beyond.direction[going_on, axis] = direction[ray, axis]
        beyond.time_ns[going_on] = time_ns[ray]
        beyond.owner[going_on] = owner[ray]
        beyond.share[going_on] = passing
        beyond.travelled_m[going_on] = travelled_m[ray] + step_m
        going_on += 1
    return going_on


@inlined_kernel
def _mark(hits: Hits, firing: int, at: int, ray: int) -> None:
    """Say of a hit that no surface made it."""
    hits.value[firing, at, COSINE] = 1.0
    hits.value[firing, at, RETRO] = 0.0
    hits.what[firing, at, RAY] = ray
    hits.what[firing, at, INSTANCE] = -1
    hits.what[firing, at, TRIANGLE] = -1


@inlined_kernel
def _weaken(plan: LidarPlan, hits: Hits, firing: int, azimuth_cdeg: float, channel: int, index: int) -> None:
    """Take away what a firing's light loses on its way, and add the echoes of what it loses it to."""
    value, what = hits.value, hits.what
    weather = plan.weather
    count = hits.hit_count[firing]
    nearest_m = np.inf
    for at in range(count):
        nearest_m = min(nearest_m, value[firing, at, RANGE])
        value[firing, at, ENERGY] *= extinction(weather, value[firing, at, RANGE])
    if weather.has_echoes:
        stream = plan.response.stream * CHANNELS_PER_STREAM + channel
        total = weather_echoes(weather, plan.response.seed, stream, index, nearest_m, value[firing, :, RANGE], value[firing, :, ENERGY], count)
        for at in range(count, total):
            _mark(hits, firing, at, WEATHER_RAY)
        count = total
    through = window_transmission(plan.window, azimuth_cdeg, channel)
    for at in range(count):
        value[firing, at, ENERGY] *= through * through
    hits.hit_count[firing] = count
    what[firing, count:, ECHO] = -1


@inlined_kernel
def _add_false_alarm(plan: LidarPlan, hits: Hits, firing: int, channel: int, index: int) -> bool:
    """Let noise be taken for an echo, now and then; returns whether it was."""
    response = plan.response
    stream = response.stream * CHANNELS_PER_STREAM + channel
    range_m, energy = false_alarm(plan.false_alarms, response.seed, stream, index, response.range_max_m, response.threshold_energy)
    at = hits.hit_count[firing]
    if range_m <= 0.0 or at >= hits.value.shape[1]:
        return False
    hits.value[firing, at, RANGE] = range_m
    hits.value[firing, at, ENERGY] = max(energy, 1e-12)
    _mark(hits, firing, at, FALSE_ALARM_RAY)
    hits.hit_count[firing] = at + 1
    return True


@inlined_kernel
def _echo_of(hits: Hits, firing: int, ray: int) -> int:
    """The echo that holds a firing's hit of some ray; -1 where there is none."""
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, RAY] == ray:
            return int(hits.what[firing, at, ECHO])
    return -1


@inlined_kernel
def _thin(plan: LidarPlan, first_sequence: int, sequences: int, shots: Shots) -> None:
    """Let a thinned sensor keep back the firings that it does not report."""
    if not plan.is_thinned:
        return
    returns = shots.returns
    reported_firings(plan.thinning, plan.head, first_sequence, sequences, shots.reported)
    withhold_firings(shots.reported, plan.response.baseline, returns.distance, returns.reflectivity)
    for channel in range(shots.reported.shape[0]):
        for sequence in range(sequences):
            if not shots.reported[channel, sequence]:
                returns.echo[:, sequence, channel] = -1
                returns.range_m[:, sequence, channel] = np.inf


@kernel
def respond(plan: LidarPlan, first_sequence: int, sequences: int, shots: Shots) -> None:
    """Turn what firings met into what the sensor reports.

    Args:
        plan: The lidar.
        first_sequence: Index of the first firing sequence.
        sequences: How many.
        shots: ``hits`` are sorted and grouped, ``returns`` written.
    """
    hit_count, value, what = shots.hits.hit_count, shots.hits.value, shots.hits.what
    echoes, kept = shots.echoes, shots.kept
    distance, reflectivity, azimuth_cdeg = shots.returns.distance, shots.returns.reflectivity, shots.returns.azimuth_cdeg
    reported_echo, reported_m = shots.returns.echo, shots.returns.range_m
    response, head, hits = plan.response, plan.head, shots.hits
    baseline, seed = response.baseline, response.seed
    is_weak = (
        plan.weather.extinction_per_m > 0.0 or plan.weather.has_echoes or plan.window.dirt_transmission < 1.0 or plan.window.sectors.shape[0] > 0
    )
    has_alarms = plan.false_alarms.rate_per_shot > 0.0
    azimuth_offset_rad = plan.azimuth_offset_rad
    cdeg_per_ns = _CDEG_PER_NS_PER_CRPM * head.rate_crpm
    for sequence in range(sequences):
        index = first_sequence + sequence
        azimuth_cdeg[sequence] = head_reading_cdeg(head, index * plan.sequence_ns, index)
        for channel in range(baseline.size):
            firing = channel * sequences + sequence
            found = 0
            certain = -1
            if is_weak:
                turned_cdeg = cdeg_per_ns * plan.firing_offset_ns[channel] + _CDEG_PER_RAD * azimuth_offset_rad[channel]
                _weaken(plan, hits, firing, azimuth_cdeg[sequence] + turned_cdeg, channel, index)
            is_alarm = has_alarms and _add_false_alarm(plan, hits, firing, channel, index)
            if hit_count[firing] > 0 and not is_dropped(response, channel, index):
                found = group_echoes(hit_count[firing], value, what, firing, response.merge_distance_m, echoes)
                certain = _echo_of(hits, firing, FALSE_ALARM_RAY) if is_alarm else -1
            stream = response.stream * CHANNELS_PER_STREAM + channel
            count = 0
            for echo in range(found):
                draw = index * ECHO_DRAWS + min(echo, ECHO_DRAWS - 1)
                energy, range_m = echoes[echo, ECHO_ENERGY], echoes[echo, ECHO_RANGE]
                if echo != certain and not is_detected(energy, response.threshold_energy, response.noise_ratio, seed, stream, draw):
                    continue
                code = distance_code(response, range_m, noise_sd_m(response, energy, range_m), channel, index, echo)
                if code > 0:
                    echoes[echo, ECHO_CODE] = code
                    kept[count] = echo
                    count += 1
            for which in range(plan.returns):
                echo = chosen_echo(echoes, kept, count, which, plan.returns, plan.reports_last)
                reported_echo[which, sequence, channel] = echo
                if echo < 0:
                    distance[which, sequence, channel] = 0
                    reflectivity[which, sequence, channel] = baseline[channel]
                    reported_m[which, sequence, channel] = np.inf
                    continue
                distance[which, sequence, channel] = int(echoes[echo, ECHO_CODE])
                reported_m[which, sequence, channel] = echoes[echo, ECHO_RANGE]
                reflectivity[which, sequence, channel] = reflectivity_byte(
                    echoes[echo, ECHO_ENERGY], echoes[echo, ECHO_RANGE], 2.0 * echoes[echo, ECHO_RETRO] > 1.0, response.diffuse_max
                )
    _thin(plan, first_sequence, sequences, shots)


@inlined_kernel
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
