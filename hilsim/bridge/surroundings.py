"""What a vehicle can touch: the ground under each of its points, and the nearest obstacles about it, found by casting rays into the scene.

Surfaces near a vehicle change slowly beside its steps, so the caller looks around a hundred times a second and keeps the planes in between.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.render.cpu import cast_rays
from hilsim.render.truth import hit_normal, triangle_normal
from hilsim.scene.world import World
from hilsim.vehicle.multirotor import MOST_OBSTACLES, Multirotor, MultirotorState, point_in_world, position_of, velocity_of

LOOK_NS = 10_000_000
_ABOVE_M = 0.5
"""Rays down begin this much above a point: one that has sunk into the ground still finds it."""
_DEEP_M = 200.0
_LEVEL = 0.35
"""Surfaces steeper than this (cosine to the vertical) are obstacles, not ground."""
_MARGIN_M = 0.05


class Surroundings(NamedTuple):
    """Planes about a vehicle of ``p`` points, and working arrays.

    Attributes:
        ground: ``float64[p, 4]``, see ``vehicle.contact.plane_through``.
        obstacles: ``float64[MOST_OBSTACLES, 4]``, each in the place of the ray that found it, as long as it does.
        height_m: ``float64[1]``, of the centre of mass above the ground under it; ``inf`` where there is none.
        origin_m: ``float64[n, 3]``.
        direction: ``float32[n, 3]``.
        time_ns: ``int64[n]``.
        range_m: ``float32[n]``.
        instance: ``int32[n]``.
        triangle: ``int32[n]``.
    """

    ground: npt.NDArray[np.float64]
    obstacles: npt.NDArray[np.float64]
    height_m: npt.NDArray[np.float64]
    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    time_ns: npt.NDArray[np.int64]
    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


def _feelers() -> npt.NDArray[np.float32]:
    """Directions in which obstacles are looked for, ``float32[26, 3]``: to the faces, edges and corners of a cube."""
    steps = [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)]
    vectors = np.array(steps, dtype=np.float64)
    directions: npt.NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return directions


def surroundings(multirotor: Multirotor) -> Surroundings:
    """Nothing about a vehicle yet."""
    points, feelers = multirotor.point.shape[0], _feelers()
    rays = points + 1 + len(feelers)
    direction = np.zeros((rays, 3), np.float32)
    direction[: points + 1, 2] = -1.0
    direction[points + 1 :] = feelers
    made = Surroundings(
        ground=np.zeros((points, 4)),
        obstacles=np.zeros((MOST_OBSTACLES, 4)),
        height_m=np.full(1, np.inf),
        origin_m=np.zeros((rays, 3)),
        direction=direction,
        time_ns=np.zeros(rays, np.int64),
        range_m=np.zeros(rays, np.float32),
        instance=np.zeros(rays, np.int32),
        triangle=np.zeros(rays, np.int32),
    )
    for planes in (made.ground, made.obstacles):
        planes[:, 2] = 1.0
        planes[:, 3] = -np.inf
    return made


@kernel
def _forget(planes: npt.NDArray[np.float64], row: int) -> None:
    planes[row, 0] = 0.0
    planes[row, 1] = 0.0
    planes[row, 2] = 1.0
    planes[row, 3] = -np.inf


@kernel
def _normal_of_hit(world: World, around: Surroundings, ray: int) -> tuple[float, float, float]:
    """Unit normal of what a ray met, towards where the ray came from."""
    row, instance = around.triangle[ray], around.instance[ray]
    nx, ny, nz = triangle_normal(world.corners, row)
    if instance >= world.tile_count:
        nx, ny, nz = hit_normal(world, instance, row, around.time_ns[ray])
    along = nx * around.direction[ray, 0] + ny * around.direction[ray, 1] + nz * around.direction[ray, 2]
    sign = -1.0 if along > 0.0 else 1.0
    return sign * nx, sign * ny, sign * nz


@kernel
def _put_plane(around: Surroundings, planes: npt.NDArray[np.float64], row: int, ray: int, normal: tuple[float, float, float]) -> None:
    offset = 0.0
    for axis in range(3):
        planes[row, axis] = normal[axis]
        offset += normal[axis] * (around.origin_m[ray, axis] + around.range_m[ray] * around.direction[ray, axis])
    planes[row, 3] = offset


@kernel
def look_around(world: World, multirotor: Multirotor, state: MultirotorState, rig_ns: int, around: Surroundings) -> None:
    """Find the planes that a vehicle can touch before the next look.

    Args:
        world: The scene at rig time ``rig_ns``.
        multirotor: The vehicle.
        state: Where it is.
        rig_ns: Now.
        around: Written.
    """
    points = multirotor.point.shape[0]
    x, y, z = position_of(state)
    rays = around.range_m.size
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
    for point in range(points):
        _forget(around.ground, point)
        if around.triangle[point] >= 0:
            normal = _normal_of_hit(world, around, point)
            if normal[2] >= _LEVEL:
                _put_plane(around, around.ground, point, point, normal)
    around.height_m[0] = around.range_m[points] - _ABOVE_M
    vx, vy, vz = velocity_of(state)
    speed = math.sqrt(vx * vx + vy * vy + vz * vz)
    reach_m = multirotor.collision_radius_m + _MARGIN_M + 2e-9 * LOOK_NS * speed
    cast_rays(
        world,
        around.origin_m[down:],
        around.direction[down:],
        around.time_ns[down:],
        reach_m,
        around.range_m[down:],
        around.instance[down:],
        around.triangle[down:],
    )
    _keep_nearest(world, around, down)


@kernel
def _keep_nearest(world: World, around: Surroundings, down: int) -> None:
    """Planes of the nearest obstacles; those whose planes are alike are one."""
    count = 0
    for _ in range(around.range_m.size - down):
        best = -1
        for ray in range(down, around.range_m.size):
            if around.triangle[ray] >= 0 and (best < 0 or around.range_m[ray] < around.range_m[best]):
                best = ray
        if best < 0 or count == MOST_OBSTACLES:
            break
        normal = _normal_of_hit(world, around, best)
        _put_plane(around, around.obstacles, count, best, normal)
        is_new = normal[2] < _LEVEL  # what is level is ground, and the legs' business
        for other in range(count):
            alike = 0.0
            for axis in range(3):
                alike += around.obstacles[other, axis] * around.obstacles[count, axis]
            if alike > 0.999 and abs(around.obstacles[other, 3] - around.obstacles[count, 3]) < _MARGIN_M:
                is_new = False
        around.triangle[best] = -1
        if is_new:
            count += 1
    for row in range(count, MOST_OBSTACLES):
        _forget(around.obstacles, row)
