"""The point of a triangle nearest to a given point: the contact of a sphere with an edge, a corner or a thin object."""

import numpy as np

from hilsim.compilation.jit import kernel
from hilsim.world.geometry.frames import Vector
from hilsim.world.scene.world import World


@kernel
def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def tile_triangle(world: World, instance: int, triangle: int) -> tuple[Vector, Vector, Vector]:
    """First corner of a triangle of a tile in the world (m), and the two edges from it."""
    row = world.corners[triangle]
    place = world.geometry_origin_m[world.instance_geometry[instance]]
    corner_m = (place[0] + row[0], place[1] + row[1], place[2] + row[2])
    return corner_m, (np.float64(row[3]), np.float64(row[4]), np.float64(row[5])), (np.float64(row[6]), np.float64(row[7]), np.float64(row[8]))


@kernel
def _nearest_shares(first_m: Vector, second_m: Vector, away_m: Vector) -> tuple[float, float]:
    """Coordinates, along the two edges, of the point of a triangle nearest to a point ``away_m`` from its corner."""
    d1, d2 = _dot(first_m, away_m), _dot(second_m, away_m)
    across = _dot(first_m, second_m)
    d3, d4 = d1 - _dot(first_m, first_m), d2 - across
    d5, d6 = d1 - across, d2 - _dot(second_m, second_m)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    first, second = 0.0, 0.0
    if d1 <= 0.0 and d2 <= 0.0:
        pass
    elif d3 >= 0.0 and d4 <= d3:
        first = 1.0
    elif d6 >= 0.0 and d5 <= d6:
        second = 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        first = d1 / (d1 - d3)
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        second = d2 / (d2 - d6)
    elif va <= 0.0 and d4 >= d3 and d5 >= d6:
        second = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        first = 1.0 - second
    else:
        first, second = vb / (va + vb + vc), vc / (va + vb + vc)
    return first, second


@kernel
def nearest_on_triangle(point_m: Vector, corner_m: Vector, first_m: Vector, second_m: Vector) -> Vector:
    """The point (m) of a triangle, given by a corner and the two edges from it, that is nearest to a point.

    By the regions of corners, edges and face: Ericson, "Real-Time Collision Detection" (2005), section 5.1.5.
    """
    u, v = _nearest_shares(first_m, second_m, (point_m[0] - corner_m[0], point_m[1] - corner_m[1], point_m[2] - corner_m[2]))
    return (
        corner_m[0] + u * first_m[0] + v * second_m[0],
        corner_m[1] + u * first_m[1] + v * second_m[1],
        corner_m[2] + u * first_m[2] + v * second_m[2],
    )
