"""Which static triangles the rays of each cell can meet: what ``render.cells`` needs, made once for a sensor that stands still.

How far a list must reach is found by casting a few rays of the cell; that may be too little (rays then walk the trees) and never does harm. That a
list holds every triangle up to its reach is what hits depend on: a triangle is left out only when no ray of the cell can meet it, whatever float32
makes of the ray. Each bound below therefore has room for the rounding of the test in ``render.intersect`` and of origins to the lattice.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim._jit import kernel
from hilsim.render.beams import cast_beams
from hilsim.render.cast import RAY_STACK_SIZE
from hilsim.render.cells import NO_CELL, NO_CELLS, Cells, frozen
from hilsim.scene.tiles import LATTICE_PER_M
from hilsim.scene.world import World

_ORIGIN_M = 1.01 * 0.5 * math.sqrt(3.0) / LATTICE_PER_M + 1e-9  # how far rounding to the lattice moves an origin
_ANGLE_RAD = 5e-7  # a direction's rounding to float32, and that of whoever chose the cell
_ROUNDING = 2e-6
"""Of the sums and products of a triangle test, relative to the product of the lengths that go in: ten operations of 6e-8, and as much again."""
_TOLERANCE = 3e-6  # of barycentric coordinates: the test's own at edges, 1e-6, with their rounding
_BOX_RATIO = 1e-6  # of a tile's box: its origin's rounding relative to the tree's is the tile tree's own business

_RIM = 6
_SURFACES = 4  # that light passes, one behind the other, as far as a list looks for the opaque one
_STEP_M = 1e-3
_REACH_MARGIN_M = 0.05
_REACH_MARGIN_RATIO = 0.002
_CHUNK = 4096  # cells whose lists are gathered at once: bounds the memory, and how long a call keeps its thread


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
    """Distance before which no ray of a bundle enters a node's child box; infinity when none does within ``reach_m``.

    A ray that is in the box after ``t`` is within ``width_m + angle_rad * t`` of the axis' point there, and ``t`` is at most the distance of the
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
    """Whether a ray of a bundle can meet a triangle within ``reach_m``; x, y, z is the bundle's origin, dx, dy, dz its axis.

    The numbers that ``triangle_distance`` compares are scalar products of the direction with vectors that the origin gives. A direction within
    ``angle_rad`` of the axis changes them by that share of the vector's length at most, an origin within ``width_m`` by that times an edge's length.
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
        return True  # seen edge-on by some ray
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
def _inverse(component: float) -> float:
    return 1.0 / component if abs(component) > 1e-20 else 1e20


@kernel
def _gather(  # noqa: C901 - two walks, one within the other
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
    """Write the triangles that rays of a bundle can meet to ``entries`` ``int32[m, 3]`` (row, box, tile) from ``begin``; returns how many.

    -1 when they are more than ``most``.
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


@kernel
def _gather_cells(
    world: World,
    origin_m: npt.NDArray[np.float64],
    axis: npt.NDArray[np.float64],
    group: npt.NDArray[np.int32],
    angle_rad: npt.NDArray[np.float64],
    width_m: float,
    sampled_m: npt.NDArray[np.float64],
    max_range_m: float,
    most: int,
    count: npt.NDArray[np.int32],
    reach_m: npt.NDArray[np.float32],
    entries: npt.NDArray[np.int32],
) -> int:
    """Gather the lists of some cells, one after another; returns how many entries there are.

    Args:
        sampled_m: ``float64[n, k]``, falling ranges of some rays of each cell. A list that would be too long reaches as far as the next of them
            instead; where that serves less than half of the rays there is no list.
        count: ``int32[n]`` out, entries of a cell.
        reach_m: ``float32[n]`` out.
        entries: ``int32[n * most, 3]`` out.
    """
    stack = np.empty(RAY_STACK_SIZE, dtype=np.int32)
    total = 0
    for cell in range(count.shape[0]):
        count[cell] = 0
        reach_m[cell] = 0.0
        for sample in range((sampled_m.shape[1] + 1) // 2):
            reach = sampled_m[cell, sample] * (1.0 + _REACH_MARGIN_RATIO) + _REACH_MARGIN_M
            found = _gather(world, origin_m[group[cell]], axis[cell], angle_rad[cell], width_m, min(reach, max_range_m), stack, entries, total, most)
            if found >= 0:
                count[cell] = found
                total += found
                reach_m[cell] = reach if reach < max_range_m else np.inf
                break
    return total


def _sampled_ranges(
    world: World, origin_m: npt.NDArray[np.float64], axis: npt.NDArray[np.float64], angle_rad: npt.NDArray[np.float64], max_range_m: float
) -> npt.NDArray[np.float64]:
    """Falling ranges ``float64[n, 1 + _RIM]`` to what is opaque, along each cell's axis and its rim; infinity for a miss."""
    helper = np.eye(3)[np.argmin(np.abs(axis), axis=1)]
    across = np.cross(axis, helper)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    up = np.cross(across, axis)
    turn = 2.0 * np.pi * np.arange(_RIM) / _RIM
    around = np.cos(turn)[:, np.newaxis] * across[:, np.newaxis] + np.sin(turn)[:, np.newaxis] * up[:, np.newaxis]
    rim = axis[:, np.newaxis] + np.tan(np.minimum(angle_rad, 1.5))[:, np.newaxis, np.newaxis] * around
    rim /= np.linalg.norm(rim, axis=2, keepdims=True)
    direction = np.concatenate([axis[:, np.newaxis], rim], axis=1).astype(np.float32).reshape(-1, 3)
    origin = np.repeat(origin_m, 1 + _RIM, axis=0)
    passes = (world.optics[:, 2] > 0.0) | (world.optics[:, 3] > 0.0)
    sampled = np.zeros(len(direction))
    going = np.arange(len(direction))
    for _ in range(_SURFACES):
        hits = np.empty(len(going), np.float32), np.empty(len(going), np.int32), np.empty(len(going), np.int32)
        begin = origin[going] + sampled[going, np.newaxis] * direction[going]
        unused = np.zeros(len(going), np.int64), max_range_m, 1, 0.0, 0.0, NO_CELLS, NO_CELL, np.zeros(len(going))
        cast_beams(world, begin, direction[going], *unused, *hits)
        sampled[going] += hits[0]
        met = hits[2] >= 0
        going = going[met][passes[world.material[hits[2][met]]]]
        sampled[going] += _STEP_M
        if len(going) == 0:
            break
    return -np.sort(-sampled.reshape(-1, 1 + _RIM), axis=1)


def build_cells(
    world: World,
    origin_m: npt.ArrayLike,
    axis: npt.ArrayLike,
    group: npt.ArrayLike,
    half_angle_rad: npt.ArrayLike,
    max_range_m: float,
    width_m: float = 0.0,
    spread: float = 0.0,
    most: int = 32,
) -> Cells:
    """Lists of the static triangles that beams of each cell can meet; movers are not in them.

    A beam lies in a cell when its centre ray leaves the origin of the cell's group (within 1 um) in a direction within the half angle of the axis.

    Args:
        world: What stands still in it is listed.
        origin_m: ``float64[g, 3]`` in the world.
        axis: ``float64[n, 3]``, unit vectors.
        group: ``int32[n]``, which origin.
        half_angle_rad: ``float64[n]``, or one for all.
        max_range_m: Rays go so far at most.
        width_m: How far the origins of a beam's rays are from its centre's, at most.
        spread: How much farther rays are from the centre ray a metre on, at most.
        most: Entries of a cell, at most; where more are needed rays walk the trees.

    Raises:
        ValueError: an axis that is not a unit vector, a group without origin, a number below 0 or not finite.
    """
    origins = np.ascontiguousarray(origin_m, dtype=np.float64).reshape(-1, 3)
    axes = np.ascontiguousarray(axis, dtype=np.float64).reshape(-1, 3)
    groups = np.ascontiguousarray(np.broadcast_to(np.asarray(group, dtype=np.int32), (len(axes),)))
    angles = np.broadcast_to(np.asarray(half_angle_rad, dtype=np.float64), (len(axes),))
    _check(origins, axes, groups, angles, max_range_m, width_m, spread, most)
    if world.tile_root < 0 or len(axes) == 0:
        return NO_CELLS._replace(first=frozen(np.zeros(len(axes) + 1), np.int32), reach_m=frozen(np.full(len(axes), np.inf), np.float32))
    nobody = np.zeros(0, np.int32)
    still = world._replace(key_first=nobody, key_count=nobody)
    wide_rad = angles + math.atan(spread) + _ANGLE_RAD
    counts, reaches, lists = [np.zeros(1, np.int32)], [], []
    entries = np.empty((_CHUNK * most, 3), np.int32)
    for begin in range(0, len(axes), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        sampled = _sampled_ranges(still, origins[groups[part]], axes[part], wide_rad[part], float(max_range_m))
        count, reach = np.empty(len(sampled), np.int32), np.empty(len(sampled), np.float32)
        where = origins, axes[part], groups[part], wide_rad[part], width_m + _ORIGIN_M + 1e-6
        total = _gather_cells(still, *where, sampled, float(max_range_m), most, count, reach, entries)
        counts.append(count)
        reaches.append(reach)
        lists.append(entries[:total].copy())
    row, box, tile = (frozen(column, np.int32) for column in np.concatenate(lists).T)
    return Cells(
        first=frozen(np.cumsum(np.concatenate(counts)), np.int32),
        row=row,
        box=box,
        tile=tile,
        reach_m=frozen(np.concatenate(reaches), np.float32),
        max_range_m=float(max_range_m),
    )


def _check(
    origin_m: npt.NDArray[np.float64],
    axis: npt.NDArray[np.float64],
    group: npt.NDArray[np.int32],
    half_angle_rad: npt.NDArray[np.float64],
    max_range_m: float,
    width_m: float,
    spread: float,
    most: int,
) -> None:
    off = np.flatnonzero(~(np.abs(np.linalg.norm(axis, axis=1) - 1.0) <= 1e-6))
    if len(off):
        raise ValueError(f"row {off[0]}: axis must be a unit vector, got {axis[off[0]].tolist()}")
    off = np.flatnonzero((group < 0) | (group >= len(origin_m)))
    if len(off):
        raise ValueError(f"row {off[0]}: group must be 0 to {len(origin_m) - 1}, got {group[off[0]]}")
    if not np.isfinite(origin_m).all():
        raise ValueError("origin_m must be finite")
    if not ((half_angle_rad >= 0.0) & (half_angle_rad < 1.0)).all():
        raise ValueError("half_angle_rad must be 0 to below 1")
    for name, value in (("max_range_m", max_range_m), ("width_m", width_m), ("spread", spread)):
        if not 0.0 <= value < math.inf:
            raise ValueError(f"{name} must be at least 0 and finite, got {value}")
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
