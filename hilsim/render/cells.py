"""Lists of the triangles that rays of a cell can hit: for rays with a fixed origin, in place of a traversal of the trees.

A cell is a thin bundle of rays: origins near one point, directions near one axis. ``render.cell_lists`` finds for each cell the static triangles
that any of its rays can hit within a distance, the cell's reach. A ray then tests only its cell's triangles, with the same arithmetic as the traversal.

The traversal's result also depends on the triangles that it does *not* test: in boxes that a ray misses by rounding, or enters beyond the current hit. A ray's hit is
therefore used only where that cannot matter: no other hit is within a guard distance, it is nearer than the cell's reach, and the ray enters the box of
its leaf before it. All other rays (on edges, on coincident surfaces, beyond the reach) traverse the trees, so hits equal those of the traversal bit
for bit. Where float32 fails altogether, on triangles seen edge-on to within rounding, the traversal may find a hit behind a wall; a cell does not.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import inlined_kernel, kernel
from hilsim.render.intersect import INFINITY, Single, box_entry, reciprocal, triangle_distance
from hilsim.scene.tiles import LATTICE_PER_M

GUARD_M = np.float32(2e-4)
GUARD_RATIO = np.float32(4e-6)
"""Guard distance relative to the range. Float32 ranges err by a few ulp, boxes have a margin of 4 um: with both, rounding cannot change the nearest triangle."""


class Cells(NamedTuple):
    """Cells and their lists, valid only for the world of ``render.cell_lists.build_cells``, which makes them.

    Attributes:
        first: ``int32[n + 1]``, start of each cell's entries in the following three arrays, and the end of the last.
        row: ``int32[m]``, triangle of an entry, row of the world's triangles.
        box: ``int32[m]``, box of the entry's leaf: twice the node's row, plus the child.
        tile: ``int32[m]``, instance of the entry; a cell's entries are sorted by it.
        reach_m: ``float32[n]``, range up to which a cell's list is complete; infinity for ``max_range_m``, 0 for no list.
        max_range_m: Maximum range of the lists; rays with a larger one traverse the trees.
    """

    first: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    box: npt.NDArray[np.int32]
    tile: npt.NDArray[np.int32]
    reach_m: npt.NDArray[np.float32]
    max_range_m: float


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Contiguous read-only copy of an array; with read-only arrays everywhere, kernels are compiled once."""
    array = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array


NO_CELLS = Cells(
    first=frozen([0], np.int32),
    row=frozen([], np.int32),
    box=frozen([], np.int32),
    tile=frozen([], np.int32),
    reach_m=frozen([], np.float32),
    max_range_m=0.0,
)
"""Cells of a moving sensor: no ray has a cell."""

NO_CELL = np.zeros(0, np.int32)
"""Cell numbers of beams without cells; writable like those of beams with cells, so that kernels are compiled once."""


@kernel
def turning_cell(channel: int, azimuth_rad: float, sectors: int) -> int:
    """Cell of ``build_turning_cells`` for a beam; ``azimuth_rad`` is the beam's own, in any turn."""
    turns = azimuth_rad / (2.0 * math.pi)
    sector = int((turns - math.floor(turns)) * sectors)
    return channel * sectors + min(sector, sectors - 1)


@kernel
def image_cell_of(image_x: float, image_z: float, extent: tuple[float, float, float, float], columns: int, rows: int) -> int:
    """Cell of ``build_image_cells`` for a beam through a point of the image; -1 outside the extent (smallest and largest x, smallest and largest z)."""
    x_min, x_max, z_min, z_max = extent
    column = math.floor((image_x - x_min) / (x_max - x_min) * columns)
    row = math.floor((image_z - z_min) / (z_max - z_min) * rows)
    if not (0 <= column < columns and 0 <= row < rows):
        return -1
    return int(row * columns + column)


@inlined_kernel
def place_in_tile(
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    begin: int,
    geometry_origin_m: npt.NDArray[np.float64],
    geometry: int,
    local: npt.NDArray[np.float32],
) -> None:
    """Write rays from ``begin`` in a tile's frame (origin on the lattice, direction) to ``local`` ``float32[k, 6]``.

    On the lattice the differences to vertices are exact: neighbouring tiles test the same ray.
    """
    for k in range(local.shape[0]):
        for axis in range(3):
            away = origin_m[begin + k, axis] - geometry_origin_m[geometry, axis]
            local[k, axis] = np.float32(math.floor(away * LATTICE_PER_M + 0.5) / LATTICE_PER_M)
            local[k, 3 + axis] = direction[begin + k, axis]


@inlined_kernel
def is_found_in_cell(
    bounds: npt.NDArray[np.float32],
    corners: npt.NDArray[np.float32],
    geometry_origin_m: npt.NDArray[np.float64],
    instance_geometry: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    boxes: npt.NDArray[np.int32],
    tiles: npt.NDArray[np.int32],
    first: int,
    last: int,
    reach_m: Single,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    begin: int,
    local: npt.NDArray[np.float32],
    best: npt.NDArray[np.float32],
    second: npt.NDArray[np.float32],
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
) -> bool:
    """Find the nearest triangle of a list for each ray of a beam; returns False when the trees must be traversed instead, and outputs are then invalid.

    Args:
        bounds: ``float32[n, 16]``, bounds of the world's nodes.
        corners: ``float32[m, 9]``, corners of the world's triangles.
        geometry_origin_m: ``float64[g, 3]``, origins of the geometries.
        instance_geometry: ``int32[i]``, geometry of each instance.
        rows: ``Cells.row``; likewise ``boxes`` and ``tiles``.
        first: The cell's first entry.
        last: The cell's last entry plus one.
        reach_m: Range up to which the list is complete, from the rays' origins.
        origin_m: ``float64[n, 3]``, origins of all rays.
        direction: ``float32[n, 3]``, directions of all rays.
        begin: The beam's first ray.
        local: ``float32[k, 6]``, scratch.
        best: ``float32[k]``, maximum range on entry; updated.
        second: ``float32[k]``, scratch.
        instance: ``int32[n]`` for all rays, updated.
        triangle: ``int32[n]`` for all rays, updated.
    """
    rays = local.shape[0]
    for k in range(rays):
        second[k] = best[k]
    is_sure = True
    tile = -1
    for entry in range(first, last):
        if tiles[entry] != tile:
            tile = tiles[entry]
            place_in_tile(origin_m, direction, begin, geometry_origin_m, instance_geometry[tile], local)
        row = np.uintp(rows[entry])
        for k in range(rays):
            ox, oy, oz, dx, dy, dz = local[k, 0], local[k, 1], local[k, 2], local[k, 3], local[k, 4], local[k, 5]
            t = triangle_distance(corners, row, ox, oy, oz, dx, dy, dz)
            if t < best[k]:
                second[k] = best[k]
                best[k] = t
                instance[begin + k] = tile
                triangle[begin + k] = rows[entry]
                node, child = np.uintp(boxes[entry] >> 1), 6 * (boxes[entry] & 1)
                limit = t + (GUARD_M + GUARD_RATIO * t)
                is_sure = is_sure and box_entry(bounds, node, child, ox, oy, oz, reciprocal(dx), reciprocal(dy), reciprocal(dz), limit) < INFINITY
            elif t < second[k]:
                second[k] = t
    for k in range(rays):
        guard = GUARD_M + GUARD_RATIO * best[k]
        is_sure = is_sure and best[k] + guard <= reach_m and (triangle[begin + k] < 0 or second[k] - best[k] > guard)
    return is_sure
