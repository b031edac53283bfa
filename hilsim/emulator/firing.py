"""First stage, ray generation: firings → rays, each from the pose and the direction of its own instant."""

import math

from hilsim._jit import constant, inlined_kernel, stage_kernel
from hilsim.emulator.plan import Family, LidarPlan
from hilsim.emulator.workspace import Rays
from hilsim.geometry.rotations import multiply, normalise, rotate
from hilsim.render.cells import image_cell_of, turning_cell
from hilsim.sensor.clock import rig_from_device
from hilsim.sensor.head import head_turns
from hilsim.sensor.mirror import image_point
from hilsim.vehicle.platform import Platform, platform_state

_CEPTON = constant(Family.CEPTON)


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


@inlined_kernel
def _direction(plan: LidarPlan, channel: int, firing_ns: int, turns: float) -> tuple[float, float, float, float]:
    """Sine and cosine of a firing's azimuth, cosine and sine of its elevation, in the sensor's frame."""
    if plan.family == _CEPTON:
        image_x, image_z = image_point(plan.mirror, channel, firing_ns)
        ahead = math.sqrt(1.0 + image_x * image_x)
        length = math.sqrt(1.0 + image_x * image_x + image_z * image_z)
        return image_x / ahead, 1.0 / ahead, ahead / length, image_z / length
    azimuth = 2.0 * math.pi * turns + plan.azimuth_offset_rad[channel]
    return math.sin(azimuth), math.cos(azimuth), plan.cosine_elevation[channel], plan.sine_elevation[channel]


@inlined_kernel
def _cell(plan: LidarPlan, channel: int, sine: float, cosine: float, level: float, rise: float) -> int:
    """Cell that a beam lies in."""
    if plan.family == _CEPTON:
        ahead = level * cosine
        return image_cell_of(level * sine / ahead, rise / ahead, plan.beam_cells.extent, plan.beam_cells.columns, plan.beam_cells.rows)
    return turning_cell(channel, math.atan2(sine, cosine), plan.beam_cells.columns)


@stage_kernel
def fire(plan: LidarPlan, platform: Platform, first_sequence: int, sequences: int, rays: Rays) -> None:
    """Write the ray of every firing, from the pose and the head's or mirror's angle at that firing's own time.

    The platform's pose and the head's angle (not the mirror's) are evaluated at the start and the end of each firing sequence and interpolated linearly in between:
    over 55 us that is exact to a * dt^2 / 8, 0.02 um at 50 m/s^2, and 1e-9 turns for the swings of a head.

    Args:
        plan: The lidar.
        platform: Carries the lidar.
        first_sequence: Index of the first firing sequence.
        sequences: How many.
        rays: Written.
    """
    sub_rays = plan.beam.share.size
    device_ns = first_sequence * plan.sequence_ns
    stop_ns = rig_from_device(plan.clock, device_ns)
    (stop_x, stop_y, stop_z), stop_q = platform_state(platform, stop_ns)
    stop_turns = head_turns(plan.head, device_ns)
    mount = (plan.mount_orientation[0], plan.mount_orientation[1], plan.mount_orientation[2], plan.mount_orientation[3])
    for sequence in range(sequences):
        start_ns, start_x, start_y, start_z, start_q = stop_ns, stop_x, stop_y, stop_z, stop_q
        stop_ns = rig_from_device(plan.clock, device_ns + plan.sequence_ns)
        (stop_x, stop_y, stop_z), stop_q = platform_state(platform, stop_ns)
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
            sine, cosine, level, rise = _direction(plan, channel, firing_ns, turns)
            if rays.cell.size > 0:
                rays.cell[channel * sequences + sequence] = _cell(plan, channel, sine, cosine, level, rise)
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
