"""The normal of a hit, for ground truth and for a vehicle's surroundings."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.rotations import rotate
from hilsim.world.render.movers import mover_pose
from hilsim.world.scene.world import World


@kernel
def triangle_normal(corners: npt.NDArray[np.float32], triangle: int) -> Vector:
    """Unit normal of a triangle in its geometry's frame; the winding defines its sign."""
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
    """Unit normal of a hit in the world at rig time ``time_ns``; the triangle's winding defines its sign. Zero for a miss."""
    if instance < 0:
        return 0.0, 0.0, 0.0
    normal = triangle_normal(world.corners, triangle)
    mover = instance - world.tile_count
    if mover < 0:
        return normal
    _, turn = mover_pose(world, mover, time_ns)
    return rotate(turn, normal)
