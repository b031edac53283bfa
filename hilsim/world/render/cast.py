"""Rays against the whole world, and the movers that a batch of rays can hit. The same source for the CPU and for CUDA."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel, stage_kernel
from hilsim.compilation.lanes import WIDTH, greater_lanes, lesser_lanes, load_lanes, store_lanes
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.live_keys import live_pose
from hilsim.world.geometry.rotations import conjugate, rotate
from hilsim.world.geometry.tracks import keyed_pose
from hilsim.world.render.intersect import INFINITY, Single, box_entry, greater, lesser, plane_distance, reciprocal
from hilsim.world.render.movers import mover_sphere
from hilsim.world.render.traverse import closest_triangle
from hilsim.world.scene.bvh import STACK_SIZE
from hilsim.world.scene.tiles import LATTICE_PER_M
from hilsim.world.scene.world import World

_COSINE_MARGIN = 1e-5
"""Margin for the directions' lengths, which are 1 to within that (``world.render.renderer.cast``), and for the rounding of cosines."""

AGREEMENT_M = 0.1
"""Largest difference of the float64 range from the float32 one: the plane of a triangle seen edge-on is not usable, and float32's result is kept."""

RAY_STACK_SIZE = 2 * STACK_SIZE
"""Stack size of one ray in ``int32`` entries: the tile tree's and one geometry's."""


@kernel
def _are_apart(cosine: float, sine: float, beside: float) -> bool:
    """Whether two cones with the same tip are disjoint: the angle between their axes is larger than the sum of their half angles.

    Args:
        cosine: Cosine of the first one's half angle.
        sine: Sine of the second one's half angle, which is below a quarter turn.
        beside: Cosine of the angle between their axes.
    """
    first_sine, second_cosine = math.sqrt(1.0 - cosine * cosine), math.sqrt(1.0 - sine * sine)
    are_half_a_turn = first_sine * second_cosine + cosine * sine <= 0.0  # the sum is half a turn or more
    return not are_half_a_turn and beside < cosine * second_cosine - first_sine * sine - _COSINE_MARGIN


@kernel
def _bounds(places: npt.NDArray[Any]) -> tuple[Vector, Vector]:
    """Least and largest x, y and z of ``float[n, 3]``, sixteen rows at a time."""
    whole = places.shape[0] // WIDTH * WIDTH
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    if whole > 0:
        rows, ends = places[:whole].reshape(-1, WIDTH), np.empty((6, WIDTH), places.dtype)
        for row in range(3):
            least = most = load_lanes(rows, row)  # every third row has the same axes in its lanes
            for other in range(row + 3, rows.shape[0], 3):
                least, most = lesser_lanes(load_lanes(rows, other), least), greater_lanes(load_lanes(rows, other), most)
            store_lanes(ends, row, least)
            store_lanes(ends, 3 + row, most)
        for at in range(3 * WIDTH):
            low[at % 3] = min(low[at % 3], ends[at // WIDTH, at % WIDTH])
            high[at % 3] = max(high[at % 3], ends[3 + at // WIDTH, at % WIDTH])
    for place in range(whole, places.shape[0]):
        for axis in range(3):
            low[axis], high[axis] = min(low[axis], places[place, axis]), max(high[axis], places[place, axis])
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])


@stage_kernel
def bound_movers(
    world: World,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    time_ns: npt.NDArray[np.int64],
    begin: int,
    end: int,
    max_range_m: float,
    spheres: npt.NDArray[np.float64],
    movers: npt.NDArray[np.int32],
) -> int:
    """Movers that rays ``begin`` to ``end`` could hit, each with a sphere that contains it at all the rays' times; returns their number.

    Args:
        world: World with the movers.
        origin_m: ``float64[n, 3]``, origins of the rays.
        direction: ``float32[n, 3]``, unit vectors.
        time_ns: ``int64[n]``, rig times of the rays.
        begin: First ray.
        end: Last ray plus one, above ``begin``.
        max_range_m: Maximum range of the rays.
        spheres: ``float64[k, 4]``, output: centre and squared radius.
        movers: ``int32[k]``, output: numbers of the movers, increasing.
    """
    first_ns = time_ns[begin]
    last_ns = time_ns[begin]
    for ray in range(begin, end):
        first_ns = min(first_ns, time_ns[ray])
        last_ns = max(last_ns, time_ns[ray])
    (low_x, low_y, low_z), (high_x, high_y, high_z) = _bounds(origin_m[begin:end])
    (least_x, least_y, least_z), (most_x, most_y, most_z) = _bounds(direction[begin:end])
    ahead_x, ahead_y, ahead_z = 0.5 * (least_x + most_x), 0.5 * (least_y + most_y), 0.5 * (least_z + most_z)
    squared = ahead_x * ahead_x + ahead_y * ahead_y + ahead_z * ahead_z
    ahead, cosine = math.sqrt(squared), -1.0
    if ahead > 0.0:  # the cone about the middle of a box that contains the ends of all directions, through the box's corners
        apart = (most_x - ahead_x) ** 2 + (most_y - ahead_y) ** 2 + (most_z - ahead_z) ** 2
        cosine = max(-1.0, (0.5 * (1.0 + squared - apart) - 2.0 * _COSINE_MARGIN) / ahead)
    middle_x, middle_y, middle_z = 0.5 * (low_x + high_x), 0.5 * (low_y + high_y), 0.5 * (low_z + high_z)
    apart_m = math.sqrt((high_x - middle_x) ** 2 + (high_y - middle_y) ** 2 + (high_z - middle_z) ** 2)
    middle_ns = first_ns + (last_ns - first_ns) // 2
    count = 0
    for mover in range(world.key_first.shape[0]):
        x, y, z, radius = mover_sphere(world, mover, first_ns, middle_ns, last_ns)
        if radius < 0.0:
            continue
        away_x = max(low_x - x, x - high_x, 0.0)
        away_y = max(low_y - y, y - high_y, 0.0)
        away_z = max(low_z - z, z - high_z, 0.0)
        reach = max_range_m + radius
        x_m, y_m, z_m = x - middle_x, y - middle_y, z - middle_z
        distance = math.sqrt(x_m * x_m + y_m * y_m + z_m * z_m)
        wide = radius + apart_m
        if distance > wide and ahead > 0.0:
            beside = (ahead_x * x_m + ahead_y * y_m + ahead_z * z_m) / (ahead * distance)
            if _are_apart(cosine, wide / distance, beside):
                continue
        if away_x * away_x + away_y * away_y + away_z * away_z <= reach * reach:
            spheres[count, 0] = x
            spheres[count, 1] = y
            spheres[count, 2] = z
            spheres[count, 3] = radius * radius
            movers[count] = mover
            count += 1
    return count


@stage_kernel
def cast_span(  # noqa: C901, PLR0912, PLR0915 - one loop over rays: calls with the world as an argument cost more than the rays
    world: World,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    time_ns: npt.NDArray[np.int64],
    max_range_m: float,
    begin: int,
    end: int,
    spheres: npt.NDArray[np.float64],
    movers: npt.NDArray[np.int32],
    mover_count: int,
    stack: npt.NDArray[np.int32],
    range_m: npt.NDArray[np.float32],
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
) -> None:
    """Cast rays ``begin`` to ``end``, the inner loop of ``world.render.cpu.cast_rays``, which documents arguments and results.

    Geometry is searched in float32 near its own origin; the range is then computed from the triangle's plane in float64.

    Args:
        spheres: Result of ``bound_movers``, with ``movers`` and ``mover_count``, for a batch that contains these rays.
        stack: ``int32[RAY_STACK_SIZE]``, scratch.
    """
    # Read before the loop: each access to the tuple inside would count references with an atomic instruction.
    bounds = world.node_bounds
    links = world.node_links
    corners = world.corners
    tree_origin_m = world.origin_m
    tile_count = world.tile_count
    tile_root = world.tile_root
    geometry_root = world.geometry_root
    geometry_origin_m = world.geometry_origin_m
    instance_geometry = world.instance_geometry
    key_time_ns = world.key_time_ns
    key_position_m = world.key_position_m
    key_arrival_mps = world.key_arrival_mps
    key_departure_mps = world.key_departure_mps
    key_orientation = world.key_orientation
    key_first = world.key_first
    key_count = world.key_count
    period_ns = world.period_ns
    live = world.live
    for ray in range(begin, end):
        ox = origin_m[ray, 0]
        oy = origin_m[ray, 1]
        oz = origin_m[ray, 2]
        dx = direction[ray, 0]
        dy = direction[ray, 1]
        dz = direction[ray, 2]
        best: Single = np.float32(max_range_m)
        instance_hit = -1
        triangle_hit = -1
        # The ray in the hit geometry's frame, for the range in float64.
        wx = wy = wz = 0.0
        vx: float = np.float64(dx)
        vy: float = np.float64(dy)
        vz: float = np.float64(dz)

        if tile_root >= 0:
            ix = reciprocal(dx)
            iy = reciprocal(dy)
            iz = reciprocal(dz)
            rx = np.float32(ox - tree_origin_m[0])
            ry = np.float32(oy - tree_origin_m[1])
            rz = np.float32(oz - tree_origin_m[2])
            top = 0
            link = np.int64(tile_root)
            while True:
                if link >= 0:
                    node = np.uintp(link)
                    near0 = box_entry(bounds, node, 0, rx, ry, rz, ix, iy, iz, best)
                    near1 = box_entry(bounds, node, 6, rx, ry, rz, ix, iy, iz, best)
                    nearer = 12 if near0 <= near1 else 13
                    if greater(near0, near1) < INFINITY:
                        stack[top] = links[node, 25 - nearer]
                        top += 1
                    if lesser(near0, near1) < INFINITY:
                        link = np.int64(links[node, nearer])
                        continue
                else:
                    tile = int((-1 - link) >> 3)
                    geometry = instance_geometry[tile]
                    lx = ox - geometry_origin_m[geometry, 0]
                    ly = oy - geometry_origin_m[geometry, 1]
                    lz = oz - geometry_origin_m[geometry, 2]
                    # On the lattice the differences to vertices are exact: neighbouring tiles test the same ray.
                    t, row = closest_triangle(
                        bounds,
                        links,
                        corners,
                        geometry_root[geometry],
                        np.float32(math.floor(lx * LATTICE_PER_M + 0.5) / LATTICE_PER_M),
                        np.float32(math.floor(ly * LATTICE_PER_M + 0.5) / LATTICE_PER_M),
                        np.float32(math.floor(lz * LATTICE_PER_M + 0.5) / LATTICE_PER_M),
                        dx,
                        dy,
                        dz,
                        best,
                        stack,
                        top,
                    )
                    if row >= 0:
                        best = t
                        instance_hit = tile
                        triangle_hit = row
                        wx = lx
                        wy = ly
                        wz = lz
                if top == 0:
                    break
                top -= 1
                link = np.int64(stack[top])

        length = vx * vx + vy * vy + vz * vz
        for candidate in range(mover_count):
            cx = spheres[candidate, 0] - ox
            cy = spheres[candidate, 1] - oy
            cz = spheres[candidate, 2] - oz
            along = cx * dx + cy * dy + cz * dz
            apart = cx * cx + cy * cy + cz * cz - spheres[candidate, 3]
            if apart > 0.0 and (along < 0.0 or apart * length > along * along):
                continue
            mover = movers[candidate]
            if key_first[mover] < 0:  # as in render.movers, whose arguments would be counted for each ray
                (px, py, pz), turn = live_pose(live, -1 - key_first[mover], time_ns[ray])
            else:
                (px, py, pz), turn = keyed_pose(
                    key_time_ns,
                    key_position_m,
                    key_arrival_mps,
                    key_departure_mps,
                    key_orientation,
                    key_first[mover],
                    key_count[mover],
                    period_ns[mover],
                    time_ns[ray],
                )
            body_from_world = conjugate(turn)
            number = tile_count + mover
            geometry = instance_geometry[number]
            mx, my, mz = rotate(body_from_world, (ox - px, oy - py, oz - pz))
            nx, ny, nz = rotate(body_from_world, (np.float64(dx), np.float64(dy), np.float64(dz)))
            mx -= geometry_origin_m[geometry, 0]
            my -= geometry_origin_m[geometry, 1]
            mz -= geometry_origin_m[geometry, 2]
            t, row = closest_triangle(
                bounds,
                links,
                corners,
                geometry_root[geometry],
                np.float32(mx),
                np.float32(my),
                np.float32(mz),
                np.float32(nx),
                np.float32(ny),
                np.float32(nz),
                best,
                stack,
                0,
            )
            if row >= 0:
                best = t
                instance_hit = number
                triangle_hit = row
                wx = mx
                wy = my
                wz = mz
                vx = nx
                vy = ny
                vz = nz

        distance = np.inf
        if triangle_hit >= 0:
            distance = np.float64(best)
            exact = plane_distance(corners, np.uintp(triangle_hit), wx, wy, wz, vx, vy, vz)
            if math.fabs(exact - distance) < AGREEMENT_M:
                distance = exact
        range_m[ray] = distance
        instance[ray] = instance_hit
        triangle[ray] = triangle_hit
