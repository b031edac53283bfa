"""What a hit was: reflectivity for the sensor, object, label and normal for ground truth."""

import math

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.geometry.frames import Vector
from hilsim.geometry.rotations import rotate
from hilsim.geometry.tracks import keyed_pose
from hilsim.scene.world import World


@kernel
def hit_reflectivity(world: World, instance: int, triangle: int) -> int:
    """Reflectivity code ``uint8`` (0-100 percent diffuse, 101-255 retro) of a hit; 0 for a miss."""
    if instance < 0:
        return 0
    return int(world.reflectivity[world.material[triangle]])


@kernel
def triangle_normal(corners: npt.NDArray[np.float32], triangle: int) -> Vector:
    """Unit normal of a triangle in its geometry's frame, by its winding."""
    ax = np.float64(corners[triangle, 3])
    ay = np.float64(corners[triangle, 4])
    az = np.float64(corners[triangle, 5])
    bx = np.float64(corners[triangle, 6])
    by = np.float64(corners[triangle, 7])
    bz = np.float64(corners[triangle, 8])
    x = ay * bz - az * by
    y = az * bx - ax * bz
    z = ax * by - ay * bx
    scale = 1.0 / math.sqrt(x * x + y * y + z * z)
    return x * scale, y * scale, z * scale


@kernel
def hit_normal(world: World, instance: int, triangle: int, time_ns: int) -> Vector:
    """Unit normal of a hit in the world at rig time ``time_ns``, by the triangle's winding; zero for a miss."""
    if instance < 0:
        return 0.0, 0.0, 0.0
    normal = triangle_normal(world.corners, triangle)
    mover = instance - world.tile_count
    if mover < 0:
        return normal
    _, turn = keyed_pose(
        world.key_time_ns,
        world.key_position_m,
        world.key_arrival_mps,
        world.key_departure_mps,
        world.key_orientation,
        world.key_first[mover],
        world.key_count[mover],
        world.period_ns[mover],
        time_ns,
    )
    return rotate(turn, normal)


@kernel
def fill_normals(
    world: World,
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
    time_ns: npt.NDArray[np.int64],
    normal: npt.NDArray[np.float64],
) -> None:
    """Write ``hit_normal`` of each hit to ``normal`` ``float64[n, 3]``."""
    for row in range(instance.shape[0]):
        x, y, z = hit_normal(world, instance[row], triangle[row], time_ns[row])
        normal[row, 0] = x
        normal[row, 1] = y
        normal[row, 2] = z


def hit_normals(
    world: World, instance: npt.NDArray[np.int32], triangle: npt.NDArray[np.int32], time_ns: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Unit normals ``float64[n, 3]`` of hits in the world, each at its own time; zero rows for misses."""
    normal = np.empty((len(instance), 3), dtype=np.float64)
    fill_normals(world, instance, triangle, time_ns, normal)
    return normal


def hit_object_ids(world: World, instance: npt.NDArray[np.int32], triangle: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Place of each hit's object in ``build_world``'s sequence, ``int32[n]``; -1 for a miss."""
    ids = np.full(len(instance), -1, dtype=np.int32)
    hit = np.flatnonzero(instance >= 0)
    ids[hit] = np.where(instance[hit] < world.tile_count, world.owner[triangle[hit]], world.instance_object[instance[hit]])
    return ids


def hit_labels(world: World, instance: npt.NDArray[np.int32], triangle: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Label of each hit's object, ``uint8[n]``; 0 for a miss."""
    ids = hit_object_ids(world, instance, triangle)
    labels = np.zeros(len(ids), dtype=np.uint8)
    labels[ids >= 0] = world.object_label[ids[ids >= 0]]
    return labels
