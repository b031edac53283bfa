"""Lists of the triangles that rays of a cell can meet: for rays that leave one place for good, instead of a walk through the trees.

A cell is a thin bundle of rays: origins about one point, directions about one axis. ``render.cell_lists`` finds for each cell the static triangles
that any of its rays can meet within a distance, the cell's reach. A ray then tests its cell's triangles only, with the very arithmetic of the walk.

The walk also decides by what it does *not* test: boxes that a ray misses by a rounding, or enters behind what is already found. A ray's hit is
therefore taken only where such decisions cannot matter: nothing else is met within a guard of it, it is nearer than the cell's reach, and the box of
its leaf is entered before it. All other rays (on edges, on surfaces that coincide, beyond the reach) walk the trees, so hits are those of the walk bit
for bit. Where float32 fails altogether, on triangles seen edge-on to within its rounding, the walk may name a hit behind a wall; a cell does not.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.render.intersect import INFINITY, Single, reciprocal, triangle_distance, wide_box_entry
from hilsim.scene.tiles import LATTICE_PER_M

_GUARD_M = np.float32(2e-4)
_GUARD_RATIO = np.float32(4e-6)
"""Float32 ranges err by a few ulp, boxes have 4 um of room: with these two nothing of that can change which triangle is nearest."""


class Cells(NamedTuple):
    """Cells and their lists; ``render.cell_lists.build_cells`` is the maker.

    Attributes:
        first: ``int32[n + 1]``, where a cell's entries begin in the following three, and at last where they end.
        row: ``int32[m]``, triangle of an entry, row of the world's triangles.
        box: ``int32[m]``, the box of its leaf: twice the node's row, plus the child.
        tile: ``int32[m]``, its instance; a cell's entries are sorted by it.
        reach_m: ``float32[n]``, up to where a cell's list is complete; infinity when up to ``max_range_m``, 0 when there is no list.
        max_range_m: Rays that go farther walk the trees.
    """

    first: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    box: npt.NDArray[np.int32]
    tile: npt.NDArray[np.int32]
    reach_m: npt.NDArray[np.float32]
    max_range_m: float


NO_CELLS = Cells(
    first=np.zeros(1, np.int32),
    row=np.zeros(0, np.int32),
    box=np.zeros(0, np.int32),
    tile=np.zeros(0, np.int32),
    reach_m=np.zeros(0, np.float32),
    max_range_m=0.0,
)
"""For a sensor that moves: with it no ray has a cell."""

NO_CELL = np.zeros(0, np.int32)
"""The cells of rays that have none."""


@kernel
def place_in_tile(
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    begin: int,
    geometry_origin_m: npt.NDArray[np.float64],
    geometry: int,
    local: npt.NDArray[np.float32],
) -> None:
    """Write rays from ``begin`` to ``local`` ``float32[k, 6]``: origin in a tile's frame, direction.

    On the lattice the differences to vertices are exact: neighbouring tiles see the same ray.
    """
    for k in range(local.shape[0]):
        for axis in range(3):
            away = origin_m[begin + k, axis] - geometry_origin_m[geometry, axis]
            local[k, axis] = np.float32(math.floor(away * LATTICE_PER_M + 0.5) / LATTICE_PER_M)
            local[k, 3 + axis] = direction[begin + k, axis]


@kernel
def closest_in_cell(  # noqa: C901, PLR0911 - one search and the reasons for not trusting it
    bounds: npt.NDArray[np.float32],
    corners: npt.NDArray[np.float32],
    geometry_origin_m: npt.NDArray[np.float64],
    instance_geometry: npt.NDArray[np.int32],
    first: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    boxes: npt.NDArray[np.int32],
    tiles: npt.NDArray[np.int32],
    cell: int,
    reach_m: Single,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    begin: int,
    width_m: Single,
    spread: Single,
    local: npt.NDArray[np.float32],
    best: npt.NDArray[np.float32],
    second: npt.NDArray[np.float32],
    found: npt.NDArray[np.int32],
) -> bool:
    """Nearest triangle for each ray of a beam from its cell's list; False when the trees must be walked instead.

    Args:
        bounds: As ``links`` and so on in ``render.beams``.
        corners: ``float32[m, 9]``.
        geometry_origin_m: ``float64[g, 3]``.
        instance_geometry: ``int32[i]``.
        first: As ``rows``, ``boxes`` and ``tiles`` of ``Cells``.
        cell: The beam's.
        reach_m: How far the list is complete, from where the rays begin.
        origin_m: ``float64[n, 3]``, all rays.
        direction: ``float32[n, 3]``.
        begin: The beam's first ray.
        width_m: Of the beam, with ``spread`` as in ``cast_beams``.
        local: ``float32[k, 6]`` scratch.
        best: ``float32[k]``, holds the greatest range; updated.
        second: ``float32[k]`` scratch.
        found: ``int32[k]`` out: entry of the list, -1 for a miss.
    """
    rays = local.shape[0]
    for k in range(rays):
        second[k] = best[k]
        found[k] = -1
    tile = -1
    for entry in range(first[cell], first[cell + 1]):
        if tiles[entry] != tile:
            tile = tiles[entry]
            place_in_tile(origin_m, direction, begin, geometry_origin_m, instance_geometry[tile], local)
        row = np.uintp(rows[entry])
        for k in range(rays):
            t = triangle_distance(corners, row, local[k, 0], local[k, 1], local[k, 2], local[k, 3], local[k, 4], local[k, 5])
            if t < best[k]:
                second[k] = best[k]
                best[k] = t
                found[k] = entry
            elif t < second[k]:
                second[k] = t
    farthest = best[0]
    for k in range(1, rays):
        farthest = max(farthest, best[k])
    if farthest + (_GUARD_M + _GUARD_RATIO * farthest) > reach_m:
        return False
    margin = width_m + spread * farthest
    for k in range(rays):
        if found[k] < 0:
            continue
        guard = _GUARD_M + _GUARD_RATIO * best[k]
        if second[k] - best[k] <= guard:
            return False
        if tiles[found[k]] != tile:
            tile = tiles[found[k]]
            place_in_tile(origin_m, direction, begin, geometry_origin_m, instance_geometry[tile], local)
        box = boxes[found[k]]
        near = wide_box_entry(
            bounds,
            np.uintp(box >> 1),
            6 * (box & 1),
            local[0, 0],
            local[0, 1],
            local[0, 2],
            reciprocal(local[0, 3]),
            reciprocal(local[0, 4]),
            reciprocal(local[0, 5]),
            margin,
            best[k] + guard,
        )
        if near == INFINITY:
            return False
    return True
