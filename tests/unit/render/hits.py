"""Facts of many hits at once, for tests."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.world.render.truth import hit_normal
from hilsim.world.scene.world import World


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


@kernel
def hit_reflectivity(world: World, instance: int, triangle: int) -> int:
    """Reflectivity code ``uint8`` (0-100 percent diffuse, 101-255 retro) of a hit; 0 for a miss."""
    if instance < 0:
        return 0
    return int(world.reflectivity[world.material[triangle]])
