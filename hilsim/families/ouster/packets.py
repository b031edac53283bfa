"""Packets of an Ouster: columns with their stamps, counts of photons, and inertial packets."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel, stage_kernel
from hilsim.compilation.lane_math import sines_and_cosines
from hilsim.compilation.lanes import (
    WIDTH,
    Doubles,
    bits_of,
    doubles,
    floor_lanes,
    greater_lanes,
    lane_numbers,
    lesser_lanes,
    load_lanes,
    roots,
    select,
    store_lanes,
)
from hilsim.emulator.breaking.head_and_clock import falsified_ns
from hilsim.emulator.inertial import felt_motion, origin_of
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import first_sequence_of
from hilsim.emulator.workspace import AXIS_ENERGY, SOLE_ROWS, SUMMED, Returns, Workspace
from hilsim.families.ouster.protocol.headers import ColumnField, HeaderField
from hilsim.families.ouster.protocol.imu import encode_imu_packet
from hilsim.families.ouster.protocol.lidar import encode_lidar_packet
from hilsim.families.ouster.protocol.pixels import Pixels
from hilsim.families.ouster.setting import COLUMN_PPB
from hilsim.rng import Purpose, normal, normal_pairs
from hilsim.sensor.clock import DeviceClock, rig_from_device, scaled_down, scaled_up
from hilsim.sensor.echoes import COSINE, ENERGY, INSTANCE, RANGE, RAY, TRIANGLE
from hilsim.sensor.optics.false_alarms import FalseAlarms
from hilsim.sensor.response import CHANNELS_PER_STREAM
from hilsim.world.geometry.rotations import rotate
from hilsim.world.platforms.platform import Platform
from hilsim.world.render.truth import hit_normal
from hilsim.world.scene.world import World

_COLUMN_TIME, _PHOTONS = constant(Purpose.COLUMN_TIME), constant(Purpose.PHOTONS)
_STAMP, _ID, _STATUS, _ENCODER = (
    constant(ColumnField.TIMESTAMP_NS),
    constant(ColumnField.MEASUREMENT_ID),
    constant(ColumnField.STATUS),
    constant(ColumnField.ENCODER_COUNT),
)
_FRAME_ID = constant(HeaderField.FRAME_ID)
_SLOW = constant(COLUMN_PPB)
_MAX_COUNT = 65_535.0
_AMBIENT, _SIGNAL, _BYTE, _LIGHTS = 0, 1, 2, 3
_DISC = math.cos(math.radians(0.27))
"""Cosine of half the angle that the sun's disc covers."""
_MIN_COSINE = 0.1
_ACCELEROMETER_NS, _GYROSCOPE_NS = constant(213_920), constant(435_140)
"""Times from the packet to the readings of an inertial packet, by a public capture (firmware 2.0)."""
_ACCELERATION_STEP_G, _RATE_STEP_DPS = 1.0 / 4096.0, 250.0 / 32768.0
_ONE, _TWO = constant(1), constant(2)
IMU_NS, IMU_DEVICE_NS = 10_000_000, 9_999_974
"""Time from inertial packet to inertial packet, and the device time nearest to it."""
_IMU, _IMU_DEVICE = constant(IMU_NS), constant(IMU_DEVICE_NS)


@kernel
def first_column_of(own: Any, plan: LidarPlan, packet: int) -> int:
    """Index of the first column (firing sequence) of a packet: each turn sends the same packets."""
    number = packet - plan.origin_packet
    turn = number // own.slots.size
    first: int = plan.origin_sequence + turn * own.columns_per_frame + own.slots[number - turn * own.slots.size] * plan.sequences_per_packet
    return first


@kernel
def packet_before(own: Any, plan: LidarPlan, device_ns: int) -> int:
    """Index of the last packet that begins at or before a device time, at least 0."""
    sequence = device_ns // plan.sequence_ns - plan.origin_sequence
    turn = sequence // own.columns_per_frame
    rest = (sequence - turn * own.columns_per_frame) // plan.sequences_per_packet
    packet: int = plan.origin_packet + turn * own.slots.size - 1
    for slot in range(own.slots.size):
        packet += 1 if own.slots[slot] <= rest else 0
    return max(packet, 0)


@kernel
def beside_axis(
    own: Any, origin: tuple[Doubles, Doubles, Doubles], turns: Doubles, turned: tuple[Doubles, Doubles, Doubles, Doubles]
) -> tuple[Doubles, Doubles, Doubles]:
    """Origins of sixteen beams, moved by the arm with which the head carries them round its axis."""
    sine, cosine = sines_and_cosines(turns)
    x, y, z = rotate(turned, (sine * own.arm_m, cosine * own.arm_m, sine * 0.0))
    return origin[0] + x, origin[1] + y, origin[2] + z


@kernel
def own_clock_ns(own: Any, clock: DeviceClock, device_ns: int) -> int:
    """Time that the sensor's clock shows at a device time."""
    base_ns: int = own.stamp_base_ns
    if clock.follows_pulse:
        utc_ns = clock.utc_epoch_ns + rig_from_device(clock, device_ns)
        return utc_ns if own.counts_utc else utc_ns - base_ns
    return base_ns + scaled_up(scaled_down(device_ns, _SLOW), clock.stamp_ppb)


@kernel
def _shown_ns(own: Any, plan: LidarPlan, device_ns: int) -> int:
    """Time that its clock shows, with what faults make of it."""
    shown_ns: int = falsified_ns(plan.rare, plan, own_clock_ns(own, plan.clock, device_ns), device_ns)
    return shown_ns


@kernel
def column_stamp_ns(own: Any, plan: LidarPlan, sequence: int) -> int:
    """Stamp of a column: the encoder triggers it, so it oscillates about even times."""
    periods = sequence / own.columns_per_frame * own.wave_turns + own.wave_phase
    lead_ns = float(own.wave_ns) * math.sin(2.0 * math.pi * (periods - math.floor(periods)))
    if own.jitter_ns > 0.0:
        lead_ns += own.jitter_ns * normal(plan.response.seed, plan.response.stream, sequence, _COLUMN_TIME)
    stamp_ns = _shown_ns(own, plan, sequence * plan.sequence_ns) + math.floor(lead_ns)
    grid_ns = int(own.stamp_grid_ns)
    return max(stamp_ns, 0) // grid_ns * grid_ns


@kernel
def is_inside(own: Any, column: int) -> bool:
    """Whether a column of a turn is inside the window."""
    first, last = int(own.first_column), int(own.last_column)
    if first <= last:
        return first <= column <= last
    return column >= first or column <= last


@stage_kernel
def encode_columns(
    own: Any,
    plan: LidarPlan,
    packet: int,
    returns: Returns,
    counts: npt.NDArray[np.int64],  # noqa: ARG001 - as of any family
    offset: int,
    payload: npt.NDArray[np.uint8],
) -> None:
    """Write lidar packet ``packet`` to ``payload[offset:]``."""
    of_returns = returns.own
    header, columns = of_returns.header, of_returns.columns
    first = first_sequence_of(plan, packet)
    for word in range(header.size):
        header[word] = own.header[word]
    turned = first - own.frame_sequence
    frame = own.first_frame + turned // own.columns_per_frame
    header[_FRAME_ID] = frame & 0xFFFF if own.layout.header_fields[_FRAME_ID, 1] <= 16 else frame & 0xFFFFFFFF
    begin = turned % own.columns_per_frame
    for column in range(columns.shape[0]):
        number = begin + column
        columns[column, _STAMP] = column_stamp_ns(own, plan, first + column)
        columns[column, _ID] = number
        columns[column, _STATUS] = own.valid_status if is_inside(own, number) else 0
        columns[column, _ENCODER] = number * own.encoder_counts
    pixels = Pixels(returns.distance, of_returns.flags, returns.reflectivity, of_returns.signal, of_returns.near_ir, of_returns.window)
    encode_lidar_packet(own.layout, header, columns, pixels, payload[offset:])


@inlined_kernel
def _ambient(own: Any, alarms: FalseAlarms, ahead: tuple[float, float, float]) -> float:
    """Mean count of the sky in a direction, beyond that of darkness."""
    dx, dy, dz = ahead
    if own.near_ir_sun > 0.0 and dx * alarms.sun_x + dy * alarms.sun_y + dz * alarms.sun_z > _DISC:
        return _MAX_COUNT
    return float(own.near_ir_sky) * min(1.0, 0.5 + max(0.0, dz + 0.5))


@inlined_kernel
def _lit(own: Any, alarms: FalseAlarms, ahead: tuple[float, float, float], normal_of: tuple[float, float, float]) -> float:
    """Mean count of a white surface with a normal, beyond that of darkness. No surface has a shadow on it."""
    nx, ny, nz = normal_of
    side = -1.0 if nx * ahead[0] + ny * ahead[1] + nz * ahead[2] > 0.0 else 1.0
    sunlight = max(0.0, side * (nx * alarms.sun_x + ny * alarms.sun_y + nz * alarms.sun_z))
    return float(own.near_ir_sky) * (1.0 + side * nz) + float(own.near_ir_sun) * sunlight


@inlined_kernel
def _counts(mean: Doubles, noise: Doubles, factor: float) -> Doubles:
    """Numbers of photons about their means."""
    return floor_lanes(mean + noise * roots(mean) * factor + 0.5)


@inlined_kernel
def _limited(counts: Doubles, least: float) -> Doubles:
    """Counts as 16 bits hold them."""
    return lesser_lanes(greater_lanes(counts, least), _MAX_COUNT)


@inlined_kernel
def _is_reversed(order: int, first: int, second: int) -> bool:
    """Whether a pixel's returns, of which the stronger is the first, are the other way round by its setting; a sole one is the first."""
    return second > 0 and (first == 0 or (order == _ONE and second < first) or (order == _TWO and second > first))


@kernel
def _leave_out(returns: Returns, sequence: int) -> None:
    """Clear the pixels of a column outside the window."""
    for channel in range(returns.distance.shape[2]):
        for number in range(returns.distance.shape[0]):
            returns.distance[number, sequence, channel] = 0
            returns.reflectivity[number, sequence, channel] = 0
            returns.echo[number, sequence, channel] = -1
            returns.range_m[number, sequence, channel] = np.inf
            returns.own.signal[number, sequence, channel] = 0
        returns.own.near_ir[0, sequence, channel] = 0


@stage_kernel
def sense_light(own: Any, plan: LidarPlan, world: World, workspace: Workspace) -> None:  # noqa: C901, PLR0912, PLR0915 - one loop over pixels: a call with arrays costs as much as the rest of a pixel
    """Count the photons of pixels, and finish their returns: their order, and columns outside the window.

    Args:
        own: The lidar.
        plan: The lidar.
        world: World that it sees.
        workspace: After ``emulator.reception.detection.respond``.
    """
    returns, hits, sequence_index, sub_rays, alarms = workspace.returns, workspace.hits, workspace.sequence, plan.beam.share.size, plan.false_alarms
    distance, range_m, energy, signal, near_ir = returns.distance, returns.range_m, returns.energy, returns.own.signal, returns.own.near_ir
    reflectivity, echo, order, diffuse_max = returns.reflectivity, returns.echo, own.order, plan.response.diffuse_max
    hit_count, value, what, tile_count = hits.hit_count, hits.value, hits.what, world.tile_count
    rays, sums, bits, light = workspace.rays, workspace.sole.sums, workspace.sole.bits, np.zeros((_LIGHTS, WIDTH))
    direction, times_ns, range_of, cosine_of, instance_of, triangle_of = (
        rays.direction,
        rays.time_ns,
        rays.range_m,
        rays.cosine,
        rays.instance,
        rays.triangle,
    )
    sequences, channels, first_stream = sequence_index.size, distance.shape[2], plan.response.stream * CHANNELS_PER_STREAM
    distances, ranges_m, energies = distance.reshape(-1, WIDTH), range_m.reshape(-1, WIDTH), energy.reshape(-1, WIDTH)
    for sequence in range(sequences):
        index = sequence_index[sequence]
        if not is_inside(own, (index - own.frame_sequence) % own.columns_per_frame):
            _leave_out(returns, sequence)
            continue
        if distance.shape[0] > 1:
            for channel in range(channels):
                if _is_reversed(order, distance[0, sequence, channel], distance[1, sequence, channel]):
                    a, b = distance[0, sequence, channel], distance[1, sequence, channel]
                    distance[0, sequence, channel], distance[1, sequence, channel] = b, a
                    c, d = reflectivity[0, sequence, channel], reflectivity[1, sequence, channel]
                    reflectivity[0, sequence, channel], reflectivity[1, sequence, channel] = d, c
                    e, f = echo[0, sequence, channel], echo[1, sequence, channel]
                    echo[0, sequence, channel], echo[1, sequence, channel] = f, e
                    g, h = range_m[0, sequence, channel], range_m[1, sequence, channel]
                    range_m[0, sequence, channel], range_m[1, sequence, channel] = h, g
                    i, j = energy[0, sequence, channel], energy[1, sequence, channel]
                    energy[0, sequence, channel], energy[1, sequence, channel] = j, i
        of_instance, of_triangle, upright = -1, -1, (0.0, 0.0, 0.0)
        for group in range(0, channels, WIDTH):
            of_group = (sequence * channels + group) // WIDTH
            summed, of_axis = bits[of_group, SUMMED], of_group * SOLE_ROWS + AXIS_ENERGY
            for channel in range(group, group + WIDTH):
                lane, firing = channel - group, channel * sequences + sequence
                ray = firing * sub_rays
                ahead = (float(direction[ray, 0]), float(direction[ray, 1]), float(direction[ray, 2]))
                axis_energy, axis_m, cosine, instance, triangle = (
                    sums[of_axis, lane],
                    float(range_of[ray]),
                    cosine_of[ray],
                    instance_of[ray],
                    triangle_of[ray],
                )
                if summed >> lane & 1 == 0:
                    triangle = -1
                    for hit in range(hit_count[firing]):  # of a ray the nearest is first
                        if what[firing, hit, RAY] == 0 and what[firing, hit, TRIANGLE] >= 0:
                            axis_energy, axis_m, cosine = value[firing, hit, ENERGY], value[firing, hit, RANGE], value[firing, hit, COSINE]
                            instance, triangle = what[firing, hit, INSTANCE], what[firing, hit, TRIANGLE]
                            break
                if triangle < 0:
                    light[_AMBIENT, lane] = own.near_ir_floor + _ambient(own, alarms, ahead)
                else:
                    white = min(1.0, axis_energy * sub_rays * axis_m * axis_m / max(cosine, _MIN_COSINE))
                    if triangle != of_triangle or instance != of_instance or instance >= tile_count:  # beams beside each other mostly meet the same
                        of_instance, of_triangle = instance, triangle
                        upright = hit_normal(world, instance, triangle, times_ns[ray])
                    light[_AMBIENT, lane] = own.near_ir_floor + white * _lit(own, alarms, ahead, upright)
            of_signal, of_ambient = normal_pairs(plan.response.seed, lane_numbers() + np.uint64(first_stream + group), index, _PHOTONS)
            store_lanes(light, _AMBIENT, _limited(_counts(load_lanes(light, _AMBIENT), of_ambient, own.near_ir_noise), 0.0))
            for channel in range(group, group + WIDTH):
                near_ir[0, sequence, channel] = int(light[_AMBIENT, channel - group])
            for number in range(distance.shape[0]):
                row = ((number * sequences + sequence) * channels + group) // WIDTH
                away_m, is_return = load_lanes(ranges_m, row), load_lanes(distances, row) > np.int32(0)
                # Photons of a surface of one percent; nearer than in focus they grow no more.
                square = away_m * away_m
                per_percent = own.signal / (greater_lanes(square, own.signal_near_m2) * 100.0)
                mean = select(is_return, per_percent * (doubles(load_lanes(energies, row)) * 100.0 * square), own.signal_floor)
                photons = _limited(_counts(mean, of_signal, 1.0), 1.0)
                store_lanes(light, _SIGNAL, photons)
                store_lanes(light, _BYTE, lesser_lanes(floor_lanes(photons / per_percent + 0.5), float(diffuse_max)))
                returned, counted = bits_of(is_return), bits_of(is_return) & bits_of(photons < _MAX_COUNT)
                for channel in range(group, group + WIDTH):
                    bit = 1 << channel - group
                    signal[number, sequence, channel] = int(light[_SIGNAL, channel - group]) if returned & bit != 0 or number == 0 else 0
                    if (
                        counted & bit != 0 and reflectivity[number, sequence, channel] <= diffuse_max
                    ):  # of a diffuse surface it is made of its photons
                        reflectivity[number, sequence, channel] = int(light[_BYTE, channel - group])


@kernel
def copy_pixel(own: Any, source: Returns, source_sequence: int, target: Returns, target_sequence: int, channel: int) -> None:  # noqa: ARG001 - as of any family
    """Copy the counts of a pixel."""
    for number in range(source.own.signal.shape[0]):
        target.own.signal[number, target_sequence, channel] = source.own.signal[number, source_sequence, channel]
    target.own.near_ir[0, target_sequence, channel] = source.own.near_ir[0, source_sequence, channel]


@stage_kernel
def write_inertial(own: Any, plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the inertial packet assembled at ``device_ns`` to ``payload[:48]``."""
    times_ns, acceleration_g, rate_dps = np.zeros(3, np.int64), np.zeros(3, np.float32), np.zeros(3, np.float32)
    times_ns[0] = device_ns // _IMU_DEVICE * _IMU
    times_ns[1] = _shown_ns(own, plan, device_ns + _ACCELEROMETER_NS) // own.stamp_grid_ns * own.stamp_grid_ns
    times_ns[2] = _shown_ns(own, plan, device_ns + _GYROSCOPE_NS) // own.stamp_grid_ns * own.stamp_grid_ns
    rig_ns = rig_from_device(plan.clock, device_ns)
    (right_g, forward_g, up_g), (about_right, about_forward, about_up) = felt_motion(plan, platform, rig_ns, origin_of(plan))
    for axis, force in enumerate((forward_g, -right_g, up_g)):  # its own axes: x forward, y left
        acceleration_g[axis] = math.floor(force / _ACCELERATION_STEP_G + 0.5) * _ACCELERATION_STEP_G
    for axis, rate in enumerate((about_forward, -about_right, about_up)):
        rate_dps[axis] = math.floor(rate / _RATE_STEP_DPS + 0.5) * _RATE_STEP_DPS
    encode_imu_packet(times_ns, acceleration_g, rate_dps, payload)
