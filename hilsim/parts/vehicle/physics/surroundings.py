"""Surfaces that a vehicle can touch: the ground under each of its points, and the nearest obstacles, found by casting rays into the scene.

Surfaces near a vehicle change slowly compared with its steps, so the caller searches a hundred times a second and reuses the planes in between; planes of moving objects move with
the objects' velocity (``carry_planes``).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, kernel, stage_kernel
from hilsim.parts.vehicle.physics.contact import PLANE_SIZE, TOUCH_M
from hilsim.parts.vehicle.physics.multirotor import MAX_OBSTACLES, Multirotor, MultirotorState, is_damaged, point_in_world, position_of, velocity_of
from hilsim.parts.vehicle.physics.nearest import nearest_on_triangle, tile_triangle
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.live_keys import UNSEEN_M
from hilsim.world.geometry.rotations import conjugate, rotate
from hilsim.world.render.cpu import cast_rays
from hilsim.world.render.movers import mover_pose
from hilsim.world.render.truth import hit_normal, triangle_normal
from hilsim.world.scene.world import World

LOOK_NS = 10_000_000
_ABOVE_M = 0.5
"""Height above a point at which downward rays start, so that a point inside the ground still finds it."""
_CLEAR_M = 0.1
"""A surface higher than this above a point and above the centre of mass may be over the vehicle (a car's body, a ceiling): a surface below takes precedence."""
_MOMENT_NS = 1_000_000
"""Interval over which a surface's velocity is computed."""
_DEEP_M = 200.0
_FAR_M = 100_000.0
_LEVEL = 0.35
"""Smallest cosine to the vertical of ground; steeper surfaces are obstacles."""
_MARGIN_M = 0.05
_BEHIND_M = 0.01
"""A point less than this in front of a plane counts as behind it, so that facets of a round object are one obstacle."""
_SAME_M = 1e-3
"""Surfaces nearer to each other than this along a ray count as one."""
_RING = 32
"""Number of horizontal directions searched for obstacles: a pole 8 cm thick is found before it enters a sphere of 0.4 m."""
_EVERY = 1 << 31
_HEADING_MPS = 0.3
"""Speed above which a ray is cast along the velocity, and below which a damaged vehicle is a wreck at rest."""


@by_reference
class Surroundings(NamedTuple):
    """Planes around a vehicle of ``p`` points, and working arrays.

    The last ray is a probe for single queries.

    Attributes:
        ground: ``float64[p, PLANE_SIZE]``, see ``physics.contact``.
        obstacles: ``float64[MAX_OBSTACLES, PLANE_SIZE]``, nearest first.
        found_m: ``float64[MAX_OBSTACLES, 3]``, point of each obstacle in the last search; NaN for none. The next search casts a ray there again.
        height_m: ``float64[1]``, height of the centre of mass above the ground; ``inf`` without ground.
        origin_m: ``float64[n, 3]``, origins of the rays.
        direction: ``float32[n, 3]``, directions of the rays.
        time_ns: ``int64[n]``, rig times of the rays.
        range_m: ``float32[n]``, ranges of the hits.
        instance: ``int32[n]``, instances of the hits.
        triangle: ``int32[n]``, triangles of the hits.
    """

    ground: npt.NDArray[np.float64]
    obstacles: npt.NDArray[np.float64]
    found_m: npt.NDArray[np.float64]
    height_m: npt.NDArray[np.float64]
    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    time_ns: npt.NDArray[np.int64]
    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


def _feelers() -> npt.NDArray[np.float32]:
    """Directions searched for obstacles, ``float32[50, 3]``: faces, edges and corners of a cube, and denser in the horizontal plane, because thin objects are mostly upright."""
    steps: list[tuple[float, float, float]] = [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)]
    steps += [(math.cos(turn), math.sin(turn), 0.0) for turn in 2.0 * math.pi / _RING * np.arange(_RING) if round(turn * 4.0 / math.pi, 6) % 1.0]
    vectors = np.array(steps, dtype=np.float64)
    directions: npt.NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return directions


def build_surroundings(multirotor: Multirotor) -> Surroundings:
    """Allocate surroundings without any surface."""
    points, feelers = multirotor.point.shape[0], _feelers()
    rays = points + 1 + len(feelers) + 1 + MAX_OBSTACLES + 1
    direction = np.zeros((rays, 3), np.float32)
    direction[:, 2] = -1.0
    direction[points + 1 : points + 1 + len(feelers)] = feelers
    around = Surroundings(
        ground=np.zeros((points, PLANE_SIZE)),
        obstacles=np.zeros((MAX_OBSTACLES, PLANE_SIZE)),
        found_m=np.full((MAX_OBSTACLES, 3), np.nan),
        height_m=np.full(1, np.inf),
        origin_m=np.zeros((rays, 3)),
        direction=direction,
        time_ns=np.zeros(rays, np.int64),
        range_m=np.zeros(rays, np.float32),
        instance=np.zeros(rays, np.int32),
        triangle=np.zeros(rays, np.int32),
    )
    for planes in (around.ground, around.obstacles):
        planes[:, 2] = 1.0
        planes[:, 3] = -np.inf
    return around


@kernel
def _forget(planes: npt.NDArray[np.float64], row: int) -> None:
    planes[row, 0] = 0.0
    planes[row, 1] = 0.0
    planes[row, 2] = 1.0
    planes[row, 3] = -np.inf
    planes[row, 4:] = 0.0


@kernel
def surface_velocity(world: World, instance: int, point_m: Vector, time_ns: int) -> Vector:
    """Velocity (m/s) in the world of a mover's surface at a point; zero for a static instance."""
    mover = instance - world.tile_count
    if mover < 0 or (world.key_first[mover] >= 0 and world.key_count[mover] < 2):
        return 0.0, 0.0, 0.0
    (ax, ay, az), turn = mover_pose(world, mover, time_ns)
    (bx, by, bz), after = mover_pose(world, mover, time_ns + _MOMENT_NS)
    if max(abs(az), abs(bz)) >= UNSEEN_M:  # it appears or disappears
        return 0.0, 0.0, 0.0
    there = rotate(conjugate(turn), (point_m[0] - ax, point_m[1] - ay, point_m[2] - az))
    x, y, z = rotate(after, there)
    scale = 1e9 / _MOMENT_NS
    return scale * (bx + x - point_m[0]), scale * (by + y - point_m[1]), scale * (bz + z - point_m[2])


@kernel
def carry_planes(around: Surroundings, step_s: float) -> None:
    """Advance the planes of moving surfaces by a step."""
    for planes in (around.ground, around.obstacles):
        for row in range(planes.shape[0]):
            along = planes[row, 0] * planes[row, 4] + planes[row, 1] * planes[row, 5] + planes[row, 2] * planes[row, 6]
            planes[row, 3] += along * step_s


@kernel
def _normal_of_hit(world: World, around: Surroundings, ray: int) -> tuple[float, float, float]:
    """Unit normal of a ray's hit, pointing towards the ray's origin."""
    row, instance = around.triangle[ray], around.instance[ray]
    nx, ny, nz = triangle_normal(world.corners, row)
    if instance >= world.tile_count:
        nx, ny, nz = hit_normal(world, instance, row, around.time_ns[ray])
    along = nx * around.direction[ray, 0] + ny * around.direction[ray, 1] + nz * around.direction[ray, 2]
    sign = -1.0 if along > 0.0 else 1.0
    return sign * nx, sign * ny, sign * nz


@kernel
def _hit_point(around: Surroundings, ray: int) -> Vector:
    reach = around.range_m[ray]
    return (
        around.origin_m[ray, 0] + reach * around.direction[ray, 0],
        around.origin_m[ray, 1] + reach * around.direction[ray, 1],
        around.origin_m[ray, 2] + reach * around.direction[ray, 2],
    )


@kernel
def _put_plane(world: World, around: Surroundings, planes: npt.NDArray[np.float64], row: int, ray: int, point_m: Vector, normal: Vector) -> None:
    """Write the plane of a ray's hit through a given point."""
    vx, vy, vz = surface_velocity(world, around.instance[ray], point_m, around.time_ns[ray])
    for axis in range(3):
        planes[row, axis] = normal[axis]
    planes[row, 3] = normal[0] * point_m[0] + normal[1] * point_m[1] + normal[2] * point_m[2]
    planes[row, 4] = vx
    planes[row, 5] = vy
    planes[row, 6] = vz


@kernel
def _has_foot(world: World, around: Surroundings, ray: int, normal: Vector) -> bool:
    """Whether the foot of the perpendicular from the ray's origin to the hit's plane is on a surface; beyond an edge it is not."""
    probe = around.range_m.size - 1
    away_m = 0.0
    for axis in range(3):
        around.origin_m[probe, axis] = around.origin_m[ray, axis]
        around.direction[probe, axis] = -normal[axis]
        away_m -= around.range_m[ray] * around.direction[ray, axis] * normal[axis]
    around.time_ns[probe] = around.time_ns[ray]
    cast_rays(
        world,
        around.origin_m[probe:],
        around.direction[probe:],
        around.time_ns[probe:],
        away_m + _SAME_M,
        around.range_m[probe:],
        around.instance[probe:],
        around.triangle[probe:],
    )
    return bool(around.triangle[probe] >= 0 and abs(around.range_m[probe] - away_m) < _SAME_M)


@kernel
def _put_obstacle(world: World, around: Surroundings, row: int, ray: int) -> Vector:
    """Write the plane of a ray's hit that a sphere about the ray's origin touches first: the surface's own, or at an edge the one facing the origin; returns its point."""
    normal = _normal_of_hit(world, around, ray)
    point_m = _hit_point(around, ray)
    # Movers keep their whole plane: the front of a car does not pass over a vehicle on the ground, whose sphere is higher than the vehicle.
    if around.instance[ray] < world.tile_count and not _has_foot(world, around, ray, normal):
        centre_m = (around.origin_m[ray, 0], around.origin_m[ray, 1], around.origin_m[ray, 2])
        corner_m, first_m, second_m = tile_triangle(world, around.instance[ray], around.triangle[ray])
        near_m = nearest_on_triangle(centre_m, corner_m, first_m, second_m)
        x, y, z = centre_m[0] - near_m[0], centre_m[1] - near_m[1], centre_m[2] - near_m[2]
        size_m = math.sqrt(x * x + y * y + z * z)
        if size_m > _SAME_M:
            point_m = near_m
            normal = (x / size_m, y / size_m, z / size_m)
    _put_plane(world, around, around.obstacles, row, ray, point_m, normal)
    return point_m


@kernel
def _is_behind(around: Surroundings, count: int, point_m: Vector) -> bool:
    """Whether a point is on or behind one of the first planes, which keep a sphere from it: another part of a flat wall, or of a convex object."""
    for row in range(count):
        plane = around.obstacles[row]
        if plane[0] * point_m[0] + plane[1] * point_m[1] + plane[2] * point_m[2] - plane[3] < _BEHIND_M:
            return True
    return False


@kernel
def _look_below(world: World, around: Surroundings, ray: int, highest_m: float) -> None:
    """Where a downward ray hit a surface above ``highest_m``, use the surface below instead if there is one; moving surfaces are always kept."""
    if around.triangle[ray] < 0 or around.origin_m[ray, 2] - around.range_m[ray] <= highest_m:
        return
    was_m, instance, triangle, begin_m = around.range_m[ray], around.instance[ray], around.triangle[ray], around.origin_m[ray, 2]
    around.origin_m[ray, 2] = highest_m
    cast_rays(
        world,
        around.origin_m[ray : ray + 1],
        around.direction[ray : ray + 1],
        around.time_ns[ray : ray + 1],
        _DEEP_M,
        around.range_m[ray : ray + 1],
        around.instance[ray : ray + 1],
        around.triangle[ray : ray + 1],
    )
    if around.triangle[ray] < 0 and instance < world.tile_count:
        around.origin_m[ray, 2] = begin_m
        around.range_m[ray] = was_m
        around.instance[ray] = instance
        around.triangle[ray] = triangle


@stage_kernel
def look_around(world: World, multirotor: Multirotor, state: MultirotorState, rig_ns: int, around: Surroundings) -> None:
    """Find the planes that a vehicle can touch before the next search.

    Args:
        world: Scene at rig time ``rig_ns``.
        multirotor: The vehicle.
        state: State of the vehicle.
        rig_ns: Current rig time.
        around: Surroundings, written.
    """
    points = multirotor.point.shape[0]
    x, y, z = position_of(state)
    rays = around.range_m.size
    last = rays - 1
    for ray in range(rays):
        around.time_ns[ray] = rig_ns
        px, py, pz = (x, y, z)
        if ray < points:
            px, py, pz = point_in_world(multirotor, state.motion, ray)
        around.origin_m[ray, 0] = px
        around.origin_m[ray, 1] = py
        around.origin_m[ray, 2] = pz + (_ABOVE_M if ray <= points else 0.0)
    down = points + 1
    cast_rays(
        world,
        around.origin_m[:down],
        around.direction[:down],
        around.time_ns[:down],
        _DEEP_M,
        around.range_m[:down],
        around.instance[:down],
        around.triangle[:down],
    )
    for point in range(down):
        _look_below(world, around, point, max(around.origin_m[point, 2] - _ABOVE_M, z) + _CLEAR_M)
    for point in range(points):
        _forget(around.ground, point)
        if around.triangle[point] >= 0:
            normal = _normal_of_hit(world, around, point)
            if normal[2] >= _LEVEL:
                _put_plane(world, around, around.ground, point, point, _hit_point(around, point), normal)
    around.height_m[0] = around.range_m[points] - (around.origin_m[points, 2] - z)
    vx, vy, vz = velocity_of(state)
    speed = math.sqrt(vx * vx + vy * vy + vz * vz)
    # A pedestrian steps over a wreck, and does not push it along.
    touchable = world.tile_count if is_damaged(state) and speed < _HEADING_MPS else _EVERY
    for mover in range(world.speed_mps.size):
        speed = max(speed, world.speed_mps[mover])
    reach_m = multirotor.collision_radius_m + _MARGIN_M + 2e-9 * LOOK_NS * speed
    _aim(around, (x, y, z), (vx, vy, vz))
    cast_rays(
        world,
        around.origin_m[down:last],
        around.direction[down:last],
        around.time_ns[down:last],
        reach_m,
        around.range_m[down:last],
        around.instance[down:last],
        around.triangle[down:last],
    )
    _keep_nearest(world, around, down, touchable)


def is_below_ground(world: World, position_m: Vector) -> bool:
    """Whether a still surface is above a position and no surface is below it: a vehicle there would fall for ever."""
    below, above = (_nearest(world, (position_m[0], position_m[1], position_m[2] + _ABOVE_M), upwards) for upwards in (-1.0, 1.0))
    return below < 0 and 0 <= above < world.tile_count


def _nearest(world: World, origin_m: Vector, upwards: float) -> int:
    """Instance of the nearest surface on a vertical ray; -1 for none."""
    range_m, instance, triangle = np.empty(1, np.float32), np.full(1, -1, np.int32), np.empty(1, np.int32)
    direction = np.array([[0.0, 0.0, upwards]], np.float32)
    cast_rays(world, np.array([origin_m]), direction, np.zeros(1, np.int64), _FAR_M, range_m, instance, triangle)
    return int(instance[0])


@kernel
def _aim_ray(around: Surroundings, ray: int, towards: Vector) -> None:
    """Point a ray along a vector of non-zero length."""
    x, y, z = towards
    size = math.sqrt(x * x + y * y + z * z)
    around.direction[ray, 0] = x / size
    around.direction[ray, 1] = y / size
    around.direction[ray, 2] = z / size


@kernel
def _aim(around: Surroundings, centre_m: Vector, velocity_mps: Vector) -> None:
    """Point the rays before the probe along the velocity and at the obstacles of the last search, so that thin objects are not lost between the fixed directions."""
    first = around.range_m.size - 2 - MAX_OBSTACLES
    vx, vy, vz = velocity_mps
    if vx * vx + vy * vy + vz * vz > _HEADING_MPS * _HEADING_MPS:
        _aim_ray(around, first, velocity_mps)
    for row in range(MAX_OBSTACLES):
        towards = (around.found_m[row, 0] - centre_m[0], around.found_m[row, 1] - centre_m[1], around.found_m[row, 2] - centre_m[2])
        if abs(towards[0]) + abs(towards[1]) + abs(towards[2]) > TOUCH_M:  # false for no obstacle
            _aim_ray(around, first + 1 + row, towards)


@kernel
def _keep_nearest(world: World, around: Surroundings, down: int, instances: int) -> None:
    """Keep the planes of the nearest obstacles among the first ``instances``; obstacles hidden by others are excluded."""
    count, last = 0, around.range_m.size - 1
    for _ in range(last - down):
        best = -1
        for ray in range(down, last):
            if around.triangle[ray] >= 0 and around.instance[ray] < instances and (best < 0 or around.range_m[ray] < around.range_m[best]):
                best = ray
        if best < 0 or count == MAX_OBSTACLES:
            break
        point_m = _put_obstacle(world, around, count, best)
        around.triangle[best] = -1
        # A level surface is ground, which the legs touch.
        if around.obstacles[count, 2] < _LEVEL and not _is_behind(around, count, point_m):
            hit_m = _hit_point(around, best)
            for axis in range(3):
                around.found_m[count, axis] = hit_m[axis]
            count += 1
    for row in range(count, MAX_OBSTACLES):
        _forget(around.obstacles, row)
        around.found_m[row] = math.nan
