"""First stage, ray generation: firings → rays, each from the pose and the direction of its own instant, sixteen channels at a time."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, inlined_kernel, stage_kernel
from hilsim.compilation.lanes import WIDTH, Doubles, Numbers, load_lanes, roots, scatter, singles
from hilsim.emulator.breaking.head_and_clock import slipped_turns
from hilsim.emulator.plan import BeamRow, LidarPlan
from hilsim.emulator.workspace import Rays
from hilsim.sensor.clock import remainder_of, rig_after, rig_from_device
from hilsim.sensor.head import head_turns
from hilsim.sensor.optics.beam import Beam
from hilsim.world.geometry.rotations import multiply, rotate
from hilsim.world.platforms.disturbance import keyframes_at
from hilsim.world.platforms.platform import Platform, next_keyframes, state_between

_ELAPSED, _AIMS = 4, 5  # behind the rows of directions
_AXIS = constant(0)  # column of the ray in the middle of a beam
_TURNS, _PHASE = constant(BeamRow.TURNS), constant(BeamRow.PHASE)
_ORIGIN_X, _ORIGIN_Y, _ORIGIN_Z, _BEAM_ROWS = (
    constant(BeamRow.ORIGIN_X),
    constant(BeamRow.ORIGIN_Y),
    constant(BeamRow.ORIGIN_Z),
    constant(len(BeamRow)),
)


@borrowing_kernel
def _aim(
    own: Any, plan: LidarPlan, device_ns: int, first_channel: int, turns: Doubles, aim: npt.NDArray[np.float64]
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Directions of sixteen beams, as their family aims them."""
    aimed: tuple[Doubles, Doubles, Doubles, Doubles] = own.aim(own, plan, device_ns, first_channel, turns, aim)
    return aimed


@inlined_kernel
def _time(
    plan: LidarPlan,
    rays: Rays,
    start_ns: int,
    remainder: int,
    first_channel: int,
    sequence: int,
    sequences: int,
    aim: npt.NDArray[np.float64],
    row: npt.NDArray[np.int32],
) -> None:
    """Write the times at which the beams of sixteen channels leave, and the rows of their firings. Lanes beyond the last channel repeat it."""
    sub_rays, offset_ns, ray_ns = plan.beam.share.size, plan.firing_offset_ns, rays.time_ns
    for lane in range(WIDTH):
        channel = min(first_channel + lane, offset_ns.size - 1)
        time_ns = rig_after(plan.clock, start_ns, remainder, offset_ns[channel])
        firing = channel * sequences + sequence
        aim[_ELAPSED, lane] = time_ns - start_ns
        row[0, lane] = firing
        for ray in range(firing * sub_rays, firing * sub_rays + sub_rays):
            ray_ns[ray] = time_ns


@borrowing_kernel
def _moved(
    own: Any, origin: tuple[Doubles, Doubles, Doubles], turns: Doubles, turned: tuple[Doubles, Doubles, Doubles, Doubles]
) -> tuple[Doubles, Doubles, Doubles]:
    """Origins of sixteen beams as their family moves them."""
    moved: tuple[Doubles, Doubles, Doubles] = own.move_origins(own, origin, turns, turned)
    return moved


@inlined_kernel
def _put(
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    rows: Numbers,
    column: int,
    origin: tuple[Doubles, Doubles, Doubles],
    ahead: tuple[Doubles, Doubles, Doubles],
) -> None:
    """Write a ray of each of sixteen firings, from ``column`` of their rows on."""
    ox, oy, oz = origin
    dx, dy, dz = ahead
    scatter(origin_m, rows, column, ox)
    scatter(origin_m, rows, column + 1, oy)
    scatter(origin_m, rows, column + 2, oz)
    scatter(direction, rows, column, singles(dx))
    scatter(direction, rows, column + 1, singles(dy))
    scatter(direction, rows, column + 2, singles(dz))


@inlined_kernel
def _put_around(
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    rows: Numbers,
    beam: Beam,
    origin: tuple[Doubles, Doubles, Doubles],
    ahead: tuple[Doubles, Doubles, Doubles],
    across: tuple[Doubles, Doubles, Doubles],
    upwards: tuple[Doubles, Doubles, Doubles],
) -> None:
    """Write the rays around those in the middle of sixteen beams."""
    ox, oy, oz = origin
    dx, dy, dz = ahead
    hx, hy, hz = across
    vx, vy, vz = upwards
    tangent, offset_m = beam.tangent, beam.offset_m
    for ray in range(1, tangent.shape[0]):
        u, v = tangent[ray, 0], tangent[ray, 1]
        scale = 1.0 / math.sqrt(1.0 + u * u + v * v)
        turned_ahead = ((hx * u + vx * v + dx) * scale, (hy * u + vy * v + dy) * scale, (hz * u + vz * v + dz) * scale)
        u, v = offset_m[ray, 0], offset_m[ray, 1]
        moved = (hx * u + vx * v + ox, hy * u + vy * v + oy, hz * u + vz * v + oz)
        _put(origin_m, direction, rows, 3 * ray, moved, turned_ahead)


@stage_kernel
def fire(plan: LidarPlan, platform: Platform, sequence_index: npt.NDArray[np.int64], rays: Rays) -> None:  # noqa: PLR0915 - one loop over firings
    """Write the ray of every firing, from the pose and the head's or mirror's angle at that firing's own time.

    The platform's pose and the head's angle (not the mirror's) are evaluated at the start and the end of each firing sequence and interpolated linearly in between:
    over 55 us that is exact to a * dt^2 / 8, 0.02 um at 50 m/s^2, and 1e-9 turns for the swings of a head.

    Args:
        plan: The lidar.
        platform: Carries the lidar.
        sequence_index: ``int64[s]``, rising indices of the firing sequences.
        rays: Written: origins, directions and times.
    """
    channels, sub_rays = plan.firing_offset_ns.size, plan.beam.share.size
    beams = plan.beam_lanes
    origin_m, direction = rays.origin_m.reshape(-1, 3 * sub_rays), rays.direction.reshape(-1, 3 * sub_rays)
    aim, row = np.zeros((_AIMS, WIDTH), np.float64), np.zeros((1, WIDTH), np.int32)
    sequences = sequence_index.size
    stop_ns, stop_turns = rig_from_device(plan.clock, sequence_index[0] * plan.sequence_ns), 0.0
    keyframes = keyframes_at(platform.disturbance, stop_ns)
    (stop_x, stop_y, stop_z), stop_q = state_between(platform, keyframes, stop_ns)
    mount = (plan.mount_orientation[0], plan.mount_orientation[1], plan.mount_orientation[2], plan.mount_orientation[3])
    for sequence in range(sequences):
        device_ns = sequence_index[sequence] * plan.sequence_ns
        if sequence == 0 or sequence_index[sequence] != sequence_index[sequence - 1] + 1:
            stop_ns = rig_from_device(plan.clock, device_ns)
            stop_turns = head_turns(plan.head, device_ns) + slipped_turns(plan.rare, plan, device_ns)
            keyframes = next_keyframes(platform, keyframes, stop_ns)
            (stop_x, stop_y, stop_z), stop_q = state_between(platform, keyframes, stop_ns)
        start_ns, start_x, start_y, start_z, start_q = stop_ns, stop_x, stop_y, stop_z, stop_q
        stop_ns = rig_from_device(plan.clock, device_ns + plan.sequence_ns)
        keyframes = next_keyframes(platform, keyframes, stop_ns)
        (stop_x, stop_y, stop_z), stop_q = state_between(platform, keyframes, stop_ns)
        start_turns = stop_turns
        stop_turns = head_turns(plan.head, device_ns + plan.sequence_ns) + slipped_turns(plan.rare, plan, device_ns + plan.sequence_ns)
        remainder = remainder_of(device_ns, plan.clock.oscillator_ppb)
        travelled = stop_turns - start_turns
        travelled -= math.floor(travelled + 0.5)  # over the seam of a turn
        alike = start_q[0] * stop_q[0] + start_q[1] * stop_q[1] + start_q[2] * stop_q[2] + start_q[3] * stop_q[3]
        sign = 1.0 if alike >= 0.0 else -1.0
        for first_channel in range(0, channels, WIDTH):
            _time(plan, rays, start_ns, remainder, first_channel, sequence, sequences, aim, row)
            table = first_channel // WIDTH * _BEAM_ROWS
            turns = load_lanes(beams, table + _TURNS) + load_lanes(beams, table + _PHASE) * travelled + start_turns
            sine, cosine, level, rise = _aim(plan.own, plan, device_ns, first_channel, turns, aim)
            share = load_lanes(aim, _ELAPSED) / np.float64(stop_ns - start_ns)
            qw = share * (sign * stop_q[0] - start_q[0]) + start_q[0]
            qx = share * (sign * stop_q[1] - start_q[1]) + start_q[1]
            qy = share * (sign * stop_q[2] - start_q[2]) + start_q[2]
            qz = share * (sign * stop_q[3] - start_q[3]) + start_q[3]
            scale = 1.0 / roots(qw * qw + qx * qx + qy * qy + qz * qz)
            body = (qw * scale, qx * scale, qy * scale, qz * scale)
            turned = multiply(body, mount)
            dx, dy, dz = rotate(turned, (level * sine, level * cosine, rise))
            begin = (load_lanes(beams, table + _ORIGIN_X), load_lanes(beams, table + _ORIGIN_Y), load_lanes(beams, table + _ORIGIN_Z))
            mx, my, mz = rotate(body, begin)
            ox = share * (stop_x - start_x) + start_x + mx
            oy = share * (stop_y - start_y) + start_y + my
            oz = share * (stop_z - start_z) + start_z + mz
            ox, oy, oz = _moved(plan.own, (ox, oy, oz), load_lanes(beams, table + _PHASE) * travelled + start_turns, turned)
            rows = load_lanes(row, 0)
            _put(origin_m, direction, rows, _AXIS, (ox, oy, oz), (dx, dy, dz))
            if sub_rays > 1:
                across = rotate(turned, (cosine, 0.0 - sine, 0.0))
                upwards = rotate(turned, (0.0 - rise * sine, 0.0 - rise * cosine, level))
                _put_around(origin_m, direction, rows, plan.beam, (ox, oy, oz), (dx, dy, dz), across, upwards)
