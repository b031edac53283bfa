"""Static triangles that a thin bundle of rays can hit: origins within some width of a point, directions within some angle of an axis.

A triangle is excluded only when no ray of the bundle can hit it for any float32 rounding of the ray: each bound includes the rounding of the tests
in ``render.intersect``. Boxes are only an acceleration; the triangle's own test decides.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.scene.world import World

_ROUNDING = 2e-6
"""Rounding error of the sums and products of a triangle test, relative to the product of the lengths: ten operations of 6e-8, and as much again."""
_TOLERANCE = 3e-6  # barycentric coordinates: the test's own tolerance at edges, 1e-6, with its rounding
_BOX_RATIO = (
    3e-5  # relative to distance: a float32 hit may be outside its triangle and hence outside the box, most where an edge points at the sensor
)


@kernel
def _inverse(component: float) -> float:
    return 1.0 / component if abs(component) > 1e-20 else 1e20


@kernel
def _entry(
    bounds: npt.NDArray[np.float32],
    node: np.uintp,
    child: int,
    x: float,
    y: float,
    z: float,
    ix: float,
    iy: float,
    iz: float,
    angle_rad: float,
    width_m: float,
    reach_m: float,
) -> float:
    """Lower bound of the distance at which a ray of a bundle enters a node's child box; infinity when none does within ``reach_m``.

    A ray that is in the box after ``t`` is within ``width_m + angle_rad * t`` of the axis point there, and ``t`` is at most the distance of the
    box's farthest corner.
    """
    x0, x1 = bounds[node, child] - x, bounds[node, child + 3] - x
    y0, y1 = bounds[node, child + 1] - y, bounds[node, child + 4] - y
    z0, z1 = bounds[node, child + 2] - z, bounds[node, child + 5] - z
    fx, fy, fz = max(-x0, x1), max(-y0, y1), max(-z0, z1)
    margin = width_m + angle_rad * min(math.sqrt(fx * fx + fy * fy + fz * fz) + width_m, reach_m)
    margin += _BOX_RATIO * max(fx, fy, fz)
    x0, x1 = (x0 - margin) * ix, (x1 + margin) * ix
    y0, y1 = (y0 - margin) * iy, (y1 + margin) * iy
    z0, z1 = (z0 - margin) * iz, (z1 + margin) * iz
    near = max(min(x0, x1), min(y0, y1), min(z0, z1), 0.0)
    far = min(max(x0, x1), max(y0, y1), max(z0, z1))
    return near if near <= far and near <= reach_m else np.inf


@kernel
def _length(x: float, y: float, z: float) -> float:
    return math.sqrt(x * x + y * y + z * z)


@kernel
def _is_met(
    corners: npt.NDArray[np.float32],
    row: int,
    x: float,
    y: float,
    z: float,
    dx: float,
    dy: float,
    dz: float,
    angle_rad: float,
    width_m: float,
    reach_m: float,
) -> bool:
    """Whether a ray of a bundle can hit a triangle within ``reach_m``; x, y, z is the bundle's origin, dx, dy, dz its axis.

    ``triangle_distance`` compares scalar products of the direction with vectors that depend on the origin. A direction within
    ``angle_rad`` of the axis changes them by at most that share of the vector's length, an origin within ``width_m`` by that times an edge's length.
    """
    ax, ay, az = float(corners[row, 3]), float(corners[row, 4]), float(corners[row, 5])
    bx, by, bz = float(corners[row, 6]), float(corners[row, 7]), float(corners[row, 8])
    sx, sy, sz = x - corners[row, 0], y - corners[row, 1], z - corners[row, 2]
    a, b, c, s = _length(ax, ay, az), _length(bx, by, bz), _length(ax - bx, ay - by, az - bz), _length(sx, sy, sz) + width_m
    nx, ny, nz = by * az - bz * ay, bz * ax - bx * az, bx * ay - by * ax
    n = _length(nx, ny, nz)
    slope = dx * nx + dy * ny + dz * nz
    steepest = n * angle_rad + _ROUNDING * a * b
    if abs(slope) <= steepest:
        return True  # edge-on for some ray
    sign = 1.0 if slope > 0.0 else -1.0
    away = -sign * (sx * nx + sy * ny + sz * nz)
    slack = n * width_m + _ROUNDING * s * a * b
    if away + slack < 0.0 or away - slack > reach_m * (abs(slope) + steepest):
        return False
    ux, uy, uz = by * sz - bz * sy, bz * sx - bx * sz, bx * sy - by * sx
    vx, vy, vz = sy * az - sz * ay, sz * ax - sx * az, sx * ay - sy * ax
    wx, wy, wz = nx - ux - vx, ny - uy - vy, nz - uz - vz
    width = width_m * (1.0 + angle_rad)
    room = _TOLERANCE * n
    if sign * (dx * ux + dy * uy + dz * uz) + _length(ux, uy, uz) * angle_rad + b * width + _ROUNDING * s * b + room < 0.0:
        return False
    if sign * (dx * vx + dy * vy + dz * vz) + _length(vx, vy, vz) * angle_rad + a * width + _ROUNDING * s * a + room < 0.0:
        return False
    rounding = _ROUNDING * (s * (a + b) + a * b)
    return bool(sign * (dx * wx + dy * wy + dz * wz) + _length(wx, wy, wz) * angle_rad + c * width + rounding + room >= 0.0)


@kernel
def gather(  # noqa: C901 - two walks, one within the other
    world: World,
    origin_m: npt.NDArray[np.float64],
    axis: npt.NDArray[np.float64],
    angle_rad: float,
    width_m: float,
    reach_m: float,
    stack: npt.NDArray[np.int32],
    entries: npt.NDArray[np.int32],
    begin: int,
    most: int,
) -> int:
    """Write the triangles that rays of a bundle can hit to ``entries`` ``int32[m, 3]`` (row, box, tile) from ``begin``; returns their number.

    Returns -1 when there are more than ``most``.
    """
    bounds, links, corners = world.node_bounds, world.node_links, world.corners
    tree_origin_m, geometry_origin_m, instance_geometry = world.origin_m, world.geometry_origin_m, world.instance_geometry
    geometry_root = world.geometry_root
    dx, dy, dz = axis[0], axis[1], axis[2]
    ix, iy, iz = _inverse(dx), _inverse(dy), _inverse(dz)
    rx, ry, rz = origin_m[0] - tree_origin_m[0], origin_m[1] - tree_origin_m[1], origin_m[2] - tree_origin_m[2]
    count = 0
    top = 1
    stack[0] = world.tile_root
    while top > 0:
        top -= 1
        node = np.uintp(stack[top])
        for child in range(2):
            if _entry(bounds, node, 6 * child, rx, ry, rz, ix, iy, iz, angle_rad, width_m, reach_m) == np.inf:
                continue
            link = np.int64(links[node, 12 + child])
            if link >= 0:
                stack[top] = link
                top += 1
                continue
            tile = (-1 - link) >> 3
            geometry = instance_geometry[tile]
            x, y, z = (
                origin_m[0] - geometry_origin_m[geometry, 0],
                origin_m[1] - geometry_origin_m[geometry, 1],
                origin_m[2] - geometry_origin_m[geometry, 2],
            )
            base = top
            stack[top] = geometry_root[geometry]
            top += 1
            while top > base:
                top -= 1
                inner = np.uintp(stack[top])
                for side in range(2):
                    if _entry(bounds, inner, 6 * side, x, y, z, ix, iy, iz, angle_rad, width_m, reach_m) == np.inf:
                        continue
                    link = np.int64(links[inner, 12 + side])
                    if link >= 0:
                        stack[top] = link
                        top += 1
                        continue
                    first = (-1 - link) >> 3
                    for row in range(first, first + ((-1 - link) & 7)):
                        if not _is_met(corners, row, x, y, z, dx, dy, dz, angle_rad, width_m, reach_m):
                            continue
                        if count == most:
                            return -1
                        entries[begin + count, 0] = row
                        entries[begin + count, 1] = 2 * inner + side
                        entries[begin + count, 2] = tile
                        count += 1
    return count
