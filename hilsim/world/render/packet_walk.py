"""Traversal of one tree for sixteen rays on the CPU: each box and each triangle is tested against all rays at once.

The arithmetic is that of ``world.render.intersect``, operation by operation: a ray in a packet has the same triangle and distance as alone.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, kernel
from hilsim.compilation.lanes import (
    WIDTH,
    Doubles,
    Lanes,
    Mask,
    Numbers,
    bits_of,
    count_bits,
    doubles,
    gather,
    greater_lanes,
    lesser_lanes,
    magnitudes,
    mask_of,
    roots,
    select,
    spread,
)
from hilsim.world.render.intersect import BEYOND, FAR_SCALE, LARGEST, ONE, OUTSIDE, SMALLEST, ZERO

CHILD_0, CHILD_1 = constant(0), constant(6)
"""First columns of a node's two boxes."""
_ALL = (1 << WIDTH) - 1  # all bits of a mask


@kernel
def reciprocals(component: Lanes) -> Lanes:
    """``world.render.intersect.reciprocal`` of each lane."""
    return select((component > SMALLEST) | (component < -SMALLEST), ONE / component, LARGEST)


@kernel
def sides_entered(ix: Lanes, iy: Lanes, iz: Lanes) -> tuple[int, int, int, bool]:
    """Side of a box that rays enter first, 0 (low) or 3 (high) on each axis, and whether it is the same for all rays."""
    down_x, down_y, down_z = bits_of(ix < ZERO), bits_of(iy < ZERO), bits_of(iz < ZERO)
    is_alike = (down_x in (0, _ALL)) and (down_y in (0, _ALL)) and (down_z in (0, _ALL))
    return 3 * (down_x & 1), 3 * (down_y & 1), 3 * (down_z & 1), is_alike


@kernel
def boxes_entered(
    bounds: npt.NDArray[np.float32],
    node: np.uintp,
    child: int,
    side: tuple[int, int, int, bool],
    ox: Lanes,
    oy: Lanes,
    oz: Lanes,
    ix: Lanes,
    iy: Lanes,
    iz: Lanes,
    limit: Lanes,
) -> tuple[Lanes, Mask]:
    """Distances at which rays enter a node's child box, and mask of the rays that do within their limits: ``world.render.intersect.box_entry`` of each lane.

    ``side`` is the result of ``sides_entered`` for the rays.
    """
    side_x, side_y, side_z, is_alike = side
    x0 = (bounds[node, np.uintp(child + side_x)] - ox) * ix
    x1 = (bounds[node, np.uintp(child + 3 - side_x)] - ox) * ix
    y0 = (bounds[node, np.uintp(child + 1 + side_y)] - oy) * iy
    y1 = (bounds[node, np.uintp(child + 4 - side_y)] - oy) * iy
    z0 = (bounds[node, np.uintp(child + 2 + side_z)] - oz) * iz
    z1 = (bounds[node, np.uintp(child + 5 - side_z)] - oz) * iz
    if not is_alike:
        x0, x1 = lesser_lanes(x0, x1), greater_lanes(x0, x1)
        y0, y1 = lesser_lanes(y0, y1), greater_lanes(y0, y1)
        z0, z1 = lesser_lanes(z0, z1), greater_lanes(z0, z1)
    near = greater_lanes(greater_lanes(x0, y0), greater_lanes(z0, ZERO))
    far = lesser_lanes(lesser_lanes(x1, y1), z1) * FAR_SCALE
    return near, (near <= far) & (near <= limit)


@kernel
def triangles_met(
    corners: npt.NDArray[np.float32], row: np.uintp, ox: Lanes, oy: Lanes, oz: Lanes, dx: Lanes, dy: Lanes, dz: Lanes
) -> tuple[Lanes, Mask]:
    """Distances to a triangle along rays, and mask of the rays that hit it: ``world.render.intersect.triangle_distance`` of each lane."""
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
    inverse = ONE / determinant  # infinity or NaN for a determinant of 0: then the comparisons below fail
    sx = ox - corners[row, 0]
    sy = oy - corners[row, 1]
    sz = oz - corners[row, 2]
    u = (sx * px + sy * py + sz * pz) * inverse
    qx = sy * az - sz * ay
    qy = sz * ax - sx * az
    qz = sx * ay - sy * ax
    v = (dx * qx + dy * qy + dz * qz) * inverse
    t = (bx * qx + by * qy + bz * qz) * inverse
    return t, (u >= OUTSIDE) & (v >= OUTSIDE) & (u + v <= BEYOND) & (t > ZERO)


@kernel
def closest_in_tree(
    bounds: npt.NDArray[np.float32],
    links: npt.NDArray[np.int32],
    corners: npt.NDArray[np.float32],
    root: int,
    ox: Lanes,
    oy: Lanes,
    oz: Lanes,
    dx: Lanes,
    dy: Lanes,
    dz: Lanes,
    best: Lanes,
    entering: Any,
    stack: npt.NDArray[np.int32],
    base: int,
) -> tuple[Lanes, Numbers]:
    """Nearest triangle of one tree for each of sixteen rays, if closer than ``best``: (distances, rows), with ``best`` and -1 if there is none.

    Args:
        bounds: ``float32[n, 16]``, nodes as in ``world.scene.bvh``; ``links`` is ``int32[n, 16]`` of the same memory.
        corners: ``float32[m, 9]``, corners of the triangles.
        root: Row of the root node.
        ox: Origins of the rays in the geometry's frame, x (then ``oy``, ``oz``); ``dx`` are the unit directions.
        best: Maximum distance of each ray.
        entering: Bit mask of the rays to cast.
        stack: ``int32[2 s]``, scratch with room from ``base``.
        base: First free entry of ``stack``.
    """
    ix, iy, iz = reciprocals(dx), reciprocals(dy), reciprocals(dz)
    side = sides_entered(ix, iy, iz)
    found = spread(np.int32(-1))
    top = base
    link, inside = np.int64(root), np.int64(entering)
    while True:
        if link >= 0:
            node = np.uintp(link)
            near0, is_in0 = boxes_entered(bounds, node, CHILD_0, side, ox, oy, oz, ix, iy, iz, best)
            near1, is_in1 = boxes_entered(bounds, node, CHILD_1, side, ox, oy, oz, ix, iy, iz, best)
            in0, in1 = bits_of(is_in0) & inside, bits_of(is_in1) & inside
            if in0 != 0 and in1 != 0:
                link, inside, later, others = np.int64(links[node, 12]), in0, np.int64(links[node, 13]), in1
                if 2 * count_bits(in0 & in1 & bits_of(near0 <= near1)) < count_bits(in0 & in1):
                    link, inside, later, others = later, others, link, inside
                stack[top], stack[top + 1] = later, others
                top += 2
                continue
            if in0 != 0:
                link, inside = np.int64(links[node, 12]), in0
                continue
            if in1 != 0:
                link, inside = np.int64(links[node, 13]), in1
                continue
        else:
            code = -1 - link
            first = code >> 3
            is_inside = mask_of(inside)  # a ray hits no triangle of a box that it does not enter, whichever rays share its packet
            for row in range(first, first + (code & 7)):
                t, is_met = triangles_met(corners, np.uintp(row), ox, oy, oz, dx, dy, dz)
                is_nearer = is_inside & is_met & ((t < best) | ((t == best) & (np.int32(row) < found)))
                best = select(is_nearer, t, best)
                found = select(is_nearer, np.int32(row), found)
        if top == base:
            return best, found
        top -= 2
        link, inside = np.int64(stack[top]), np.int64(stack[top + 1])


@borrowing_kernel
def planes_met(
    corners: npt.NDArray[np.float32], rows: Numbers, ox: Doubles, oy: Doubles, oz: Doubles, dx: Doubles, dy: Doubles, dz: Doubles
) -> tuple[Doubles, Doubles]:
    """``world.render.intersect.plane_distance`` of each lane, and the absolute cosine of the angle between ray and normal."""
    ax, ay, az = doubles(gather(corners, rows, 3)), doubles(gather(corners, rows, 4)), doubles(gather(corners, rows, 5))
    bx, by, bz = doubles(gather(corners, rows, 6)), doubles(gather(corners, rows, 7)), doubles(gather(corners, rows, 8))
    nx = ay * bz - az * by
    ny = az * bx - ax * bz
    nz = ax * by - ay * bx
    px, py, pz = doubles(gather(corners, rows, 0)), doubles(gather(corners, rows, 1)), doubles(gather(corners, rows, 2))
    away = nx * (px - ox) + ny * (py - oy) + nz * (pz - oz)
    along = nx * dx + ny * dy + nz * dz
    return away / along, magnitudes(along) / roots(nx * nx + ny * ny + nz * nz)  # a parallel plane gives a range that fails every comparison
