"""Intersection of a ray with a box and with a triangle: scalar float32, the same source for the CPU and for CUDA.

All constants are float32 on purpose: a Python literal would promote the whole expression to float64.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel

Single = Any
"""A float32 scalar; NumPy's type stubs cannot express arithmetic that stays float32."""

INFINITY = np.float32(np.inf)
ZERO = np.float32(0.0)
ONE = np.float32(1.0)

_EDGE_TOLERANCE = np.float32(1e-6)
"""Barycentric tolerance. Without it rays along a shared edge (azimuth exactly 45 degrees over a grid) pass between both triangles."""

OUTSIDE = -_EDGE_TOLERANCE
BEYOND = ONE + _EDGE_TOLERANCE
FAR_SCALE = np.float32(1.0 + 4e-7)
"""Margin for the rounding of the far distance (Ize 2013: 1 + 2 gamma(3) = 1 + 3.6e-7), so that a box never hides a triangle on its face."""

SMALLEST = np.float32(1e-20)
LARGEST = np.float32(1e20)


@kernel
def reciprocal(component: Single) -> Single:
    """``1 / component``, always finite, so that products with distances are never NaN."""
    if component > SMALLEST or component < -SMALLEST:
        return ONE / component
    return LARGEST


# Numba's own min and max do not compile for CUDA.
@kernel
def lesser(a: Single, b: Single) -> Single:
    """The lesser of two numbers that are not NaN."""
    return a if a < b else b  # noqa: FURB136 - see above


@kernel
def greater(a: Single, b: Single) -> Single:
    """The greater of two numbers that are not NaN."""
    return a if a > b else b  # noqa: FURB136 - see above


@kernel
def box_entry(
    bounds: npt.NDArray[np.float32],
    node: np.uintp,
    child: int,
    ox: Single,
    oy: Single,
    oz: Single,
    ix: Single,
    iy: Single,
    iz: Single,
    limit: Single,
) -> Single:
    """Distance at which a ray enters a node's child box (0 inside), infinity when it misses or enters beyond ``limit``.

    Args:
        bounds: ``float32[n, 16]``, bounds of a tree.
        node: Row of the node, unsigned.
        child: First column of the box, 0 or 6.
        ox: Origin, x (then ``oy``, ``oz``); ``ix`` is the reciprocal of the direction's component.
        limit: Maximum distance.
    """
    x0 = (bounds[node, child] - ox) * ix
    x1 = (bounds[node, child + 3] - ox) * ix
    y0 = (bounds[node, child + 1] - oy) * iy
    y1 = (bounds[node, child + 4] - oy) * iy
    z0 = (bounds[node, child + 2] - oz) * iz
    z1 = (bounds[node, child + 5] - oz) * iz
    near = greater(greater(lesser(x0, x1), lesser(y0, y1)), greater(lesser(z0, z1), ZERO))
    far = lesser(lesser(greater(x0, x1), greater(y0, y1)), greater(z0, z1)) * FAR_SCALE
    if near <= far and near <= limit:
        return near
    return INFINITY


@kernel
def triangle_distance(
    corners: npt.NDArray[np.float32],
    row: np.uintp,
    ox: Single,
    oy: Single,
    oz: Single,
    dx: Single,
    dy: Single,
    dz: Single,
) -> Single:
    """Distance to a triangle along a ray, either side, infinity for a miss (Möller, Trumbore 1997).

    Args:
        corners: ``float32[m, 9]``, first vertex and two edges of each triangle.
        row: Row of the triangle, unsigned.
        ox: Origin, x (then ``oy``, ``oz``); ``dx`` is the unit direction.
    """
    ax = corners[row, 3]
    ay = corners[row, 4]
    az = corners[row, 5]
    bx = corners[row, 6]
    by = corners[row, 7]
    bz = corners[row, 8]
    px = dy * bz - dz * by
    py = dz * bx - dx * bz
    pz = dx * by - dy * bx
    determinant = ax * px + ay * py + az * pz
    if determinant == ZERO:  # no area, or edge-on
        return INFINITY
    inverse = ONE / determinant
    sx = ox - corners[row, 0]
    sy = oy - corners[row, 1]
    sz = oz - corners[row, 2]
    u = (sx * px + sy * py + sz * pz) * inverse
    qx = sy * az - sz * ay
    qy = sz * ax - sx * az
    qz = sx * ay - sy * ax
    v = (dx * qx + dy * qy + dz * qz) * inverse
    t = (bx * qx + by * qy + bz * qz) * inverse
    # A triangle without area gives infinity or NaN after rounding; both fail these ordered comparisons.
    if u >= OUTSIDE and v >= OUTSIDE and u + v <= BEYOND and t > ZERO:
        return t
    return INFINITY


@kernel
def plane_distance(corners: npt.NDArray[np.float32], row: np.uintp, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float) -> float:
    """Distance along a ray to the plane of a triangle in float64, infinity when they are parallel: float32 finds the triangle, float64 its range."""
    ax = np.float64(corners[row, 3])
    ay = np.float64(corners[row, 4])
    az = np.float64(corners[row, 5])
    bx = np.float64(corners[row, 6])
    by = np.float64(corners[row, 7])
    bz = np.float64(corners[row, 8])
    nx = ay * bz - az * by
    ny = az * bx - ax * bz
    nz = ax * by - ay * bx
    away = nx * (np.float64(corners[row, 0]) - ox) + ny * (np.float64(corners[row, 1]) - oy) + nz * (np.float64(corners[row, 2]) - oz)
    slope = nx * dx + ny * dy + nz * dz
    return away / slope if slope != 0.0 else np.inf
