"""Rays of recorded firings against synthetic objects: what each firing's light meets, and how much of it goes on behind."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, constant, inlined_kernel, kernel
from hilsim.compilation.lanes import WIDTH
from hilsim.emulator.hits import FAINTEST_SHARE, STEP_M
from hilsim.emulator.insertion.unit import MAX_FIRINGS, RecordedFirings, RecordedUnit
from hilsim.emulator.sole_surfaces import NEAREST_HIT_M
from hilsim.emulator.workspace import LAYERS, Rays, allocate_rays
from hilsim.sensor.echoes import COSINE, ENERGY, INSTANCE, RANGE, RAY, RETRO, TRIANGLE, Hits, allocate_hits
from hilsim.sensor.optics.beam import Beam
from hilsim.units import CDEG_PER_RAD, RAD_PER_CDEG, TURN_CDEG
from hilsim.world.geometry.frames import Quaternion, Vector, sensor_direction
from hilsim.world.geometry.rotations import conjugate, multiply, rotate
from hilsim.world.geometry.tracks import PoseTrack, track_state
from hilsim.world.render.movers import mover_sphere
from hilsim.world.render.packets import cast_packets
from hilsim.world.render.surfaces import flaw_at, place_on_mover, returned, texture_noise
from hilsim.world.scene.materials import Optic
from hilsim.world.scene.world import World

_LAYERS = constant(LAYERS)
_RETRO, _POROSITY, _TRANSMISSION = constant(Optic.RETRO), constant(Optic.POROSITY), constant(Optic.TRANSMISSION)
_TEXTURE, _TEXTURE_SIZE = constant(Optic.TEXTURE), constant(Optic.TEXTURE_SIZE)
_REFLECTIVITY, _GLOSS = constant(Optic.REFLECTIVITY), constant(Optic.GLOSS)
_FLAW, _FLAW_SIZE = constant(Optic.FLAW), constant(Optic.FLAW_SIZE)
_HALF_TURN_CDEG, _QUARTER_RAD, _ROUNDING_RAD = 0.5 * TURN_CDEG, 0.5 * math.pi, 1e-6


@by_reference
class FiringRays(NamedTuple):
    """Working arrays for ``F`` firings of a packet and ``k`` objects.

    Attributes:
        cast: Rays of the firings that may meet an object.
        start_m: ``float64[F, 3]``, origin of each firing's beam in the world.
        ahead: ``float64[F, 3]``, its direction in the world.
        turn: ``float64[F, 4]``, world from sensor at its time.
        spheres: ``float64[k, 4]``, centre and squared radius of each object within range.
        windows: ``float64[k, 4]``, directions that may meet it, in the sensor's frame: azimuth and half width (0.01 deg), lowest and highest elevation (rad).
        hits: Hits of each firing.
        blocked: ``float64[F, m]``, share of the firing's light that ends at each hit.
    """

    cast: Rays
    start_m: npt.NDArray[np.float64]
    ahead: npt.NDArray[np.float64]
    turn: npt.NDArray[np.float64]
    spheres: npt.NDArray[np.float64]
    windows: npt.NDArray[np.float64]
    hits: Hits
    blocked: npt.NDArray[np.float64]


def allocate_firing_rays(sub_rays: int, most_objects: int) -> FiringRays:
    """Allocate working arrays for beams of ``sub_rays`` rays and worlds of up to ``most_objects`` objects."""
    most_hits = sub_rays * LAYERS
    return FiringRays(
        cast=allocate_rays(MAX_FIRINGS * sub_rays),
        start_m=np.zeros((MAX_FIRINGS, 3)),
        ahead=np.zeros((MAX_FIRINGS, 3)),
        turn=np.zeros((MAX_FIRINGS, 4)),
        spheres=np.zeros((most_objects, 4)),
        windows=np.zeros((most_objects, 4)),
        hits=allocate_hits(MAX_FIRINGS, most_hits),
        blocked=np.zeros((MAX_FIRINGS, most_hits)),
    )


@kernel
def _between(start: Quaternion, stop: Quaternion, share: float) -> Quaternion:
    """Orientation between two that are nearly the same."""
    alike = start[0] * stop[0] + start[1] * stop[1] + start[2] * stop[2] + start[3] * stop[3]
    sign = 1.0 if alike >= 0.0 else -1.0
    w = start[0] + share * (sign * stop[0] - start[0])
    x = start[1] + share * (sign * stop[1] - start[1])
    y = start[2] + share * (sign * stop[2] - start[2])
    z = start[3] + share * (sign * stop[3] - start[3])
    scale = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    return w * scale, x * scale, y * scale, z * scale


@kernel
def find_objects(
    unit: RecordedUnit, track: PoseTrack, world: World, capture_ns: int, rig_ns: int, recorded: RecordedFirings, count: int, rays: FiringRays
) -> int:
    """Objects within the unit's range, each with a sphere that holds it during the packet and a window of directions; returns their number.

    Args:
        unit: The unit.
        track: World from carrier, over capture time.
        world: World of which every object is a mover.
        capture_ns: Capture time of the packet's stamp.
        rig_ns: Rig time of the packet's stamp.
        recorded: The packet's firings.
        count: Number of firings.
        rays: ``spheres`` and ``windows`` are written.
    """
    begin_ns, stop_ns = recorded.time_ns[0], recorded.time_ns[count - 1]
    middle_ns = begin_ns + (stop_ns - begin_ns) // 2
    (x0, y0, z0), start_q = track_state(track, capture_ns + begin_ns)
    (x1, y1, z1), stop_q = track_state(track, capture_ns + stop_ns)
    (x, y, z), body = track_state(track, capture_ns + middle_ns)
    mount_m, mount_q, spheres, windows = unit.mount_position_m, unit.mount_orientation, rays.spheres, rays.windows
    mx, my, mz = rotate(body, (mount_m[0], mount_m[1], mount_m[2]))
    ox, oy, oz = x + mx, y + my, z + mz
    towards = conjugate(multiply(body, (mount_q[0], mount_q[1], mount_q[2], mount_q[3])))
    alike = abs(start_q[0] * stop_q[0] + start_q[1] * stop_q[1] + start_q[2] * stop_q[2] + start_q[3] * stop_q[3])
    turned_rad = 2.0 * math.acos(min(alike, 1.0))
    arm_m = math.sqrt(mount_m[0] * mount_m[0] + mount_m[1] * mount_m[1] + mount_m[2] * mount_m[2])
    apart_m = math.sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2 + (z1 - z0) ** 2) + turned_rad * arm_m + unit.highest_m + unit.beam.width_m
    found = 0
    for mover in range(world.key_first.size):
        cx, cy, cz, radius = mover_sphere(world, mover, rig_ns + begin_ns, rig_ns + middle_ns, rig_ns + stop_ns)
        if radius < 0.0:
            continue
        x, y, z = cx - ox, cy - oy, cz - oz
        distance = math.sqrt(x * x + y * y + z * z)
        if distance > unit.cast_range_m + radius + apart_m:
            continue
        if found == spheres.shape[0]:
            break
        spheres[found, 0], spheres[found, 1], spheres[found, 2], spheres[found, 3] = cx, cy, cz, radius * radius
        windows[found, 0], windows[found, 1], windows[found, 2], windows[found, 3] = 0.0, _HALF_TURN_CDEG, -math.pi, math.pi
        if distance > radius + apart_m:
            right, ahead, up = rotate(towards, (x, y, z))
            wide = math.asin((radius + apart_m) / distance) + unit.beam.spread + turned_rad + _ROUNDING_RAD
            elevation = math.asin(max(min(up / distance, 1.0), -1.0))
            windows[found, 2], windows[found, 3] = elevation - wide, elevation + wide
            if abs(elevation) + wide < _QUARTER_RAD:
                windows[found, 0] = math.atan2(right, ahead) * CDEG_PER_RAD
                windows[found, 1] = math.asin(min(math.sin(wide) / math.cos(elevation), 1.0)) * CDEG_PER_RAD
        found += 1
    return found


@inlined_kernel
def _is_within(windows: npt.NDArray[np.float64], objects: int, azimuth_cdeg: float, elevation_rad: float) -> bool:
    """Whether a direction lies in the window of an object."""
    found = False
    for at in range(objects):
        beside = (azimuth_cdeg - windows[at, 0] + _HALF_TURN_CDEG) % TURN_CDEG - _HALF_TURN_CDEG
        found |= windows[at, 2] <= elevation_rad <= windows[at, 3] and abs(beside) <= windows[at, 1]
    return found


@kernel
def place_firings(
    unit: RecordedUnit, track: PoseTrack, capture_ns: int, recorded: RecordedFirings, count: int, objects: int, rays: FiringRays
) -> None:
    """Write where the beams that may meet an object begin in the world, and their directions; the direction of other beams is zeros.

    The carrier's pose is evaluated at the first and the last firing, and interpolated in between: over 1.4 ms that is exact to a * dt^2 / 8, 12 um at
    50 m/s^2.

    Args:
        unit: The unit.
        track: World from carrier, over capture time.
        capture_ns: Capture time of the packet's stamp.
        recorded: The packet's firings; ``direction`` is written for a turning head's.
        count: Number of firings.
        objects: Result of ``find_objects``.
        rays: ``start_m``, ``ahead`` and ``turn`` are written.
    """
    begin_ns, stop_ns = recorded.time_ns[0], recorded.time_ns[count - 1]
    (x0, y0, z0), start_q = track_state(track, capture_ns + begin_ns)
    (x1, y1, z1), stop_q = track_state(track, capture_ns + stop_ns)
    mount_m, mount_q, is_swept = unit.mount_position_m, unit.mount_orientation, unit.is_swept
    mount = (mount_q[0], mount_q[1], mount_q[2], mount_q[3])
    time_ns, direction, height_m = recorded.time_ns, recorded.direction, recorded.height_m
    azimuth_cdeg, elevation_rad, windows = recorded.azimuth_cdeg, recorded.elevation_rad, rays.windows
    start_m, toward, turn = rays.start_m, rays.ahead, rays.turn
    for firing in range(count):
        if not is_swept:
            if not _is_within(windows, objects, azimuth_cdeg[firing], elevation_rad[firing]):
                toward[firing, 0], toward[firing, 1], toward[firing, 2] = 0.0, 0.0, 0.0
                continue
            x, y, z = sensor_direction(azimuth_cdeg[firing] * RAD_PER_CDEG, elevation_rad[firing])
            direction[firing, 0], direction[firing, 1], direction[firing, 2] = x, y, z
        share = (time_ns[firing] - begin_ns) / (stop_ns - begin_ns) if stop_ns > begin_ns else 0.0
        body = _between(start_q, stop_q, share)
        turned = multiply(body, mount)
        ux, uy, uz = rotate(turned, (0.0, 0.0, height_m[firing]))
        mx, my, mz = rotate(body, (mount_m[0], mount_m[1], mount_m[2]))
        start_m[firing, 0] = x0 + share * (x1 - x0) + mx + ux
        start_m[firing, 1] = y0 + share * (y1 - y0) + my + uy
        start_m[firing, 2] = z0 + share * (z1 - z0) + mz + uz
        toward[firing, 0], toward[firing, 1], toward[firing, 2] = rotate(turned, (direction[firing, 0], direction[firing, 1], direction[firing, 2]))
        turn[firing, 0], turn[firing, 1], turn[firing, 2], turn[firing, 3] = turned


@inlined_kernel
def _may_meet(
    beam: Beam,
    spheres: npt.NDArray[np.float64],
    objects: int,
    start: Vector,
    ahead: Vector,
) -> bool:
    """Whether any ray of a beam may meet one of the objects' spheres."""
    found = False
    for at in range(objects):
        x, y, z = spheres[at, 0] - start[0], spheres[at, 1] - start[1], spheres[at, 2] - start[2]
        along, squared = x * ahead[0] + y * ahead[1] + z * ahead[2], x * x + y * y + z * z
        room = math.sqrt(spheres[at, 3]) + beam.width_m + beam.spread * math.sqrt(squared)
        found |= squared <= room * room or (along > 0.0 and squared - along * along <= room * room)
    return found


@inlined_kernel
def _across(turn: Quaternion, ahead: Vector) -> Vector:
    """Unit vector to the right of a beam, level in the sensor's frame."""
    dx, dy, dz = ahead
    ux, uy, uz = rotate(turn, (0.0, 0.0, 1.0))
    hx, hy, hz = dy * uz - dz * uy, dz * ux - dx * uz, dx * uy - dy * ux
    level = math.sqrt(hx * hx + hy * hy + hz * hz)
    if level == 0.0:
        hx, hy, hz = rotate(turn, (1.0, 0.0, 0.0))
        level = 1.0
    return hx / level, hy / level, hz / level


@kernel
def _fire(
    unit: RecordedUnit,
    rig_ns: int,
    recorded: RecordedFirings,
    count: int,
    objects: int,
    begin_ns: int,
    stop_ns: int,
    rays: FiringRays,
) -> int:
    """Write the rays of the firings that may meet an object; returns their number. Arguments as of ``cast_firings``."""
    # Taken out of the loop: each look into a tuple inside would count references with an atomic instruction.
    tangent, offset_m, share, beam = unit.beam.tangent, unit.beam.offset_m, unit.beam.share, unit.beam
    start_m, toward, turns, spheres, offset_ns = rays.start_m, rays.ahead, rays.turn, rays.spheres, recorded.time_ns
    cast = rays.cast
    origin_m, direction, time_ns, firing_of, sub_ray = cast.origin_m, cast.direction, cast.time_ns, cast.firing, cast.sub_ray
    share_of, travelled_m = cast.share, cast.travelled_m
    ray = 0
    for firing in range(count):
        fired_ns = rig_ns + offset_ns[firing]
        start = (start_m[firing, 0], start_m[firing, 1], start_m[firing, 2])
        ahead = (toward[firing, 0], toward[firing, 1], toward[firing, 2])
        is_aimed = ahead[0] != 0.0 or ahead[1] != 0.0 or ahead[2] != 0.0
        if not is_aimed or fired_ns < begin_ns or fired_ns >= stop_ns or not _may_meet(beam, spheres, objects, start, ahead):
            continue
        dx, dy, dz = ahead
        hx, hy, hz = _across((turns[firing, 0], turns[firing, 1], turns[firing, 2], turns[firing, 3]), ahead)
        vx, vy, vz = hy * dz - hz * dy, hz * dx - hx * dz, hx * dy - hy * dx
        for number in range(share.size):
            u, v = tangent[number, 0], tangent[number, 1]
            scale = 1.0 / math.sqrt(1.0 + u * u + v * v)
            direction[ray, 0] = (dx + u * hx + v * vx) * scale
            direction[ray, 1] = (dy + u * hy + v * vy) * scale
            direction[ray, 2] = (dz + u * hz + v * vz) * scale
            u, v = offset_m[number, 0], offset_m[number, 1]
            origin_m[ray, 0] = start[0] + u * hx + v * vx
            origin_m[ray, 1] = start[1] + u * hy + v * vy
            origin_m[ray, 2] = start[2] + u * hz + v * vz
            time_ns[ray], firing_of[ray], sub_ray[ray] = fired_ns, firing, number
            share_of[ray], travelled_m[ray] = share[number], 0.0
            ray += 1
    return ray


@kernel
def _collect(world: World, rays: FiringRays, count: int, sub_rays: int) -> int:
    """Add what rays met to their firings' hits; rays that go on behind it are moved to the front; returns their number."""
    # Taken out of the loop, as in ``_fire``.
    optics, material, hits, blocked, cast = world.optics, world.material, rays.hits, rays.blocked, rays.cast
    hit_count, value, what, flaw, room = hits.hit_count, hits.value, hits.what, hits.flaw, hits.value.shape[1]
    origin_m, direction, time_ns, firing_of, sub_ray = cast.origin_m, cast.direction, cast.time_ns, cast.firing, cast.sub_ray
    share_of, travelled_m, range_m, instance, triangle = cast.share, cast.travelled_m, cast.range_m, cast.instance, cast.triangle
    cosine_of, going_on = cast.cosine, 0
    for ray in range(count):
        row = triangle[ray]
        if row < 0:
            continue
        surface, firing, share, ray_m = material[row], firing_of[ray], share_of[ray], float(range_m[ray])
        porosity, transmission = float(optics[surface, _POROSITY]), float(optics[surface, _TRANSMISSION])
        cosine = cosine_of[ray]
        hit_m = travelled_m[ray] + ray_m
        far_m = max(hit_m, NEAREST_HIT_M)
        passing = share * (porosity + (1.0 - porosity) * transmission * transmission)
        at = hit_count[firing]
        if at < room and porosity < 1.0:
            value[firing, at, RANGE] = hit_m
            texture, x_m, y_m, z_m = float(optics[surface, _TEXTURE]), 0.0, 0.0, 0.0
            flaw_ratio = float(optics[surface, _FLAW]) if sub_ray[ray] == 0 and travelled_m[ray] == 0.0 else 0.0
            if texture > 0.0 or flaw_ratio > 0.0:
                x_m, y_m, z_m = place_on_mover(
                    world,
                    instance[ray],
                    time_ns[ray],
                    origin_m[ray, 0] + ray_m * direction[ray, 0],
                    origin_m[ray, 1] + ray_m * direction[ray, 1],
                    origin_m[ray, 2] + ray_m * direction[ray, 2],
                )
            noise, _ = texture_noise(x_m, y_m, z_m, float(optics[surface, _TEXTURE_SIZE]), 0.0) if texture > 0.0 else (0.0, 0.0)
            light = returned(float(optics[surface, _REFLECTIVITY]), float(optics[surface, _GLOSS]), cosine, texture, noise)
            value[firing, at, ENERGY] = share * (1.0 - porosity) * light / (far_m * far_m)
            value[firing, at, COSINE] = cosine
            value[firing, at, RETRO] = optics[surface, _RETRO]
            what[firing, at, RAY] = sub_ray[ray]
            what[firing, at, INSTANCE] = instance[ray]
            what[firing, at, TRIANGLE] = row
            blocked[firing, at] = share - passing
            hit_count[firing] = at + 1
            if flaw_ratio > 0.0:
                flaw[firing] = flaw_at(x_m, y_m, z_m, flaw_ratio, float(optics[surface, _FLAW_SIZE]))
        if passing * sub_rays < FAINTEST_SHARE:
            continue
        step_m = ray_m + STEP_M
        for axis in range(3):
            origin_m[going_on, axis] = origin_m[ray, axis] + step_m * direction[ray, axis]
            direction[going_on, axis] = direction[ray, axis]
        travelled_m[going_on] = travelled_m[ray] + step_m
        time_ns[going_on], firing_of[going_on], sub_ray[going_on] = time_ns[ray], firing, sub_ray[ray]
        share_of[going_on] = passing
        going_on += 1
    return going_on


@kernel
def cast_firings(
    unit: RecordedUnit,
    world: World,
    rig_ns: int,
    recorded: RecordedFirings,
    count: int,
    objects: int,
    begin_ns: int,
    stop_ns: int,
    rays: FiringRays,
) -> None:
    """Cast the firings of a packet that lie in a stretch of rig time, as far as they may meet an object, and gather their hits.

    Args:
        unit: The unit.
        world: World of which every object is a mover.
        rig_ns: Rig time of the packet's stamp.
        recorded: The packet's firings.
        count: Number of firings.
        objects: Result of ``find_objects``.
        begin_ns: Rig time from which firings are cast.
        stop_ns: Rig time before which they are.
        rays: Working arrays; ``hits`` and ``blocked`` are written for all firings of the packet.
    """
    rays.hits.hit_count[:count] = 0
    rays.hits.flaw[:count] = 0.0
    sub_rays, cast = int(unit.beam.share.size), rays.cast
    going_on = _fire(unit, rig_ns, recorded, count, objects, begin_ns, stop_ns, rays)
    layer = 0
    while going_on > 0 and layer < _LAYERS:
        cast_packets(
            world,
            cast.packets[: (going_on + WIDTH - 1) // WIDTH],
            cast.origin_m[:going_on],
            cast.direction[:going_on],
            cast.time_ns[:going_on],
            unit.cast_range_m,
            cast.range_m[:going_on],
            cast.instance[:going_on],
            cast.triangle[:going_on],
            cast.cosine[:going_on],
        )
        going_on = _collect(world, rays, going_on, sub_rays)
        layer += 1
