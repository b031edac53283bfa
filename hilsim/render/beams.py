"""Rays that leave side by side, as the sub-rays of a laser beam do: one walk through the tree for all of them, on the CPU.

Boxes are tested once, by the beam's centre ray against boxes widened by the beam's half width there; triangles are tested by every ray. The results
are those of ``render.cast`` ray by ray, but where a ray meets two triangles at the very same distance (an edge).
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, kernel, stage_kernel
from hilsim.geometry.rotations import conjugate, rotate
from hilsim.geometry.tracks import keyed_pose
from hilsim.render.cast import AGREEMENT_M, RAY_STACK_SIZE, bound_movers
from hilsim.render.cells import Cells, is_found_in_cell, place_in_tile
from hilsim.render.intersect import INFINITY, Single, greater, lesser, plane_distance, reciprocal, triangle_distance, wide_box_entry
from hilsim.scene.world import World

_CHUNK = 1024  # rays that share one bounding of the movers
_BOTTOM = constant(0)  # of the stack
_CHILD_0, _CHILD_1 = constant(0), constant(6)  # first columns of a node's boxes


@kernel
def _closest_in_tree(  # noqa: C901, PLR0912 - one walk
    bounds: npt.NDArray[np.float32],
    links: npt.NDArray[np.int32],
    corners: npt.NDArray[np.float32],
    root: int,
    ray: npt.NDArray[np.float32],
    width_m: Single,
    spread: Single,
    best: npt.NDArray[np.float32],
    found: npt.NDArray[np.int32],
    stack: npt.NDArray[np.int32],
    base: int,
) -> None:
    """Nearest triangle of one tree for each ray of a beam, if closer than what ``best`` holds.

    Args:
        bounds: ``float32[n, 16]``, nodes as in ``scene.bvh``; ``links`` is ``int32[n, 16]`` of the same memory.
        corners: ``float32[m, 9]``.
        root: Node row.
        ray: ``float32[k, 6]``, origin in the geometry's frame and unit direction; the first is the beam's centre.
        width_m: How far other rays' origins are from the centre's, at most.
        spread: How much farther they are apart a metre on, at most.
        best: ``float32[k]``, updated.
        found: ``int32[k]``, updated: row of the triangle.
        stack: ``int32[s]`` scratch with room from ``base``.
        base: First free entry of ``stack``.
    """
    rays = ray.shape[0]
    ox, oy, oz = ray[0, 0], ray[0, 1], ray[0, 2]
    ix, iy, iz = reciprocal(ray[0, 3]), reciprocal(ray[0, 4]), reciprocal(ray[0, 5])
    reach = best[0]
    for k in range(1, rays):
        reach = greater(reach, best[k])
    margin = width_m + spread * reach
    top = base
    link = np.int64(root)
    while True:
        if link >= 0:
            node = np.uintp(link)
            near0 = wide_box_entry(bounds, node, _CHILD_0, ox, oy, oz, ix, iy, iz, margin, reach)
            near1 = wide_box_entry(bounds, node, _CHILD_1, ox, oy, oz, ix, iy, iz, margin, reach)
            if near0 <= near1:
                if near1 < INFINITY:
                    stack[top] = links[node, 13]
                    top += 1
                if near0 < INFINITY:
                    link = np.int64(links[node, 12])
                    continue
            else:
                if near0 < INFINITY:
                    stack[top] = links[node, 12]
                    top += 1
                link = np.int64(links[node, 13])
                continue
        else:
            code = -1 - link
            first = code >> 3
            is_nearer = False
            for row in range(first, first + (code & 7)):
                for k in range(rays):
                    t = triangle_distance(corners, np.uintp(row), ray[k, 0], ray[k, 1], ray[k, 2], ray[k, 3], ray[k, 4], ray[k, 5])
                    if t < best[k]:
                        best[k] = t
                        found[k] = row
                        is_nearer = True
            if is_nearer:
                reach = best[0]
                for k in range(1, rays):
                    reach = greater(reach, best[k])
                margin = width_m + spread * reach
        if top == base:
            return
        top -= 1
        link = np.int64(stack[top])


@stage_kernel
def cast_beams(  # noqa: C901, PLR0912, PLR0915 - one loop over beams: calls with the world as an argument cost more than the rays
    world: World,
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    time_ns: npt.NDArray[np.int64],
    max_range_m: float,
    beam_rays: int,
    width_m: float,
    spread: float,
    cells: Cells,
    cell: npt.NDArray[np.int32],
    travelled_m: npt.NDArray[np.float64],
    range_m: npt.NDArray[np.float32],
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
) -> None:
    """Cast rays that belong to beams, each beam at one time; a beam's result does not depend on its neighbours.

    Args:
        world: What can be hit.
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]``, unit vectors in the world.
        time_ns: ``int64[n]``, rig time; the same for the rays of a beam.
        max_range_m: Only what is closer counts.
        beam_rays: So many rays in a row are one beam's, its centre first; ``n`` is a multiple of it.
        width_m: How far the origins of a beam's rays are from its centre's, at most.
        spread: How much farther rays are from the centre ray a metre on, at most: the tangent of half the divergence.
        cells: Lists of static triangles for rays that leave one place for good; ``NO_CELLS`` when there are none.
        cell: ``int32[n / beam_rays]``, cell that each beam lies in, -1 for one that walks the trees; empty (``NO_CELL``) when none has a cell.
            Whether a beam does lie in its cell is not checked.
        travelled_m: ``float64[n]``, how far from its cell's origin a ray begins, along itself; the same for the rays of a beam.
        range_m: ``float32[n]`` out; infinity for a miss.
        instance: ``int32[n]`` out; -1 for a miss.
        triangle: ``int32[n]`` out, row of the world's triangles; -1 for a miss.
    """
    bounds, links, corners = world.node_bounds, world.node_links, world.corners
    tree_origin_m, tile_count, tile_root = world.origin_m, world.tile_count, world.tile_root
    geometry_root, geometry_origin_m, instance_geometry = world.geometry_root, world.geometry_origin_m, world.instance_geometry
    key_time_ns, key_position_m, key_arrival_mps = world.key_time_ns, world.key_position_m, world.key_arrival_mps
    key_departure_mps, key_orientation = world.key_departure_mps, world.key_orientation
    key_first, key_count, period_ns = world.key_first, world.key_count, world.period_ns
    stack = np.empty(RAY_STACK_SIZE, dtype=np.int32)
    spheres = np.empty((key_first.shape[0], 4), dtype=np.float64)
    movers = np.empty(key_first.shape[0], dtype=np.int32)
    local = np.empty((beam_rays, 6), dtype=np.float32)
    placed = np.empty((beam_rays, 6), dtype=np.float64)
    won = np.empty((beam_rays, 6), dtype=np.float64)  # `placed` of the winner, for the range in float64
    best = np.empty(beam_rays, dtype=np.float32)
    found = np.empty(beam_rays, dtype=np.int32)
    second = np.empty(beam_rays, dtype=np.float32)
    cell_first, cell_row, cell_box, cell_tile, cell_reach_m = cells.first, cells.row, cells.box, cells.tile, cells.reach_m
    cells_range_m = cells.max_range_m
    has_cells = tile_root >= 0 and cell.shape[0] > 0 and max_range_m <= cells_range_m
    width, tangent = np.float32(width_m), np.float32(spread)
    mover_count = 0
    bounded_to = 0
    for begin in range(0, range_m.shape[0], beam_rays):
        if begin >= bounded_to:
            bounded_to = min(begin + _CHUNK // beam_rays * beam_rays, range_m.shape[0])
            mover_count = bound_movers(world, origin_m, direction, time_ns, begin, bounded_to, max_range_m, spheres, movers)
        for k in range(beam_rays):
            best[k] = np.float32(max_range_m)
            instance[begin + k] = -1
            triangle[begin + k] = -1
        walks = tile_root >= 0
        ix, iy, iz = reciprocal(direction[begin, 0]), reciprocal(direction[begin, 1]), reciprocal(direction[begin, 2])
        if has_cells and cell[begin // beam_rays] >= 0:
            listed = cell[begin // beam_rays]
            reach_m = np.float64(cell_reach_m[listed])
            if travelled_m[begin] > 0.0:
                reach_m = min(reach_m, cells_range_m) - travelled_m[begin]
            walks = not is_found_in_cell(
                bounds,
                corners,
                geometry_origin_m,
                instance_geometry,
                cell_row,
                cell_box,
                cell_tile,
                cell_first[listed],
                cell_first[listed + 1],
                np.float32(reach_m),
                origin_m,
                direction,
                begin,
                ix,
                iy,
                iz,
                width,
                tangent,
                placed,
                local,
                best,
                second,
                won,
                instance,
                triangle,
            )
        if walks:
            for k in range(beam_rays):
                best[k] = np.float32(max_range_m)
                instance[begin + k] = -1
                triangle[begin + k] = -1
            rx = np.float32(origin_m[begin, 0] - tree_origin_m[0])
            ry = np.float32(origin_m[begin, 1] - tree_origin_m[1])
            rz = np.float32(origin_m[begin, 2] - tree_origin_m[2])
            top = _BOTTOM
            link = np.int64(tile_root)
            while True:
                if link >= 0:
                    reach = best[0]
                    for k in range(1, beam_rays):
                        reach = greater(reach, best[k])
                    margin = width + tangent * reach
                    node = np.uintp(link)
                    near0 = wide_box_entry(bounds, node, _CHILD_0, rx, ry, rz, ix, iy, iz, margin, reach)
                    near1 = wide_box_entry(bounds, node, _CHILD_1, rx, ry, rz, ix, iy, iz, margin, reach)
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
                    place_in_tile(origin_m, direction, begin, geometry_origin_m, geometry, placed, local)
                    for k in range(beam_rays):
                        found[k] = -1
                    _closest_in_tree(bounds, links, corners, geometry_root[geometry], local, width, tangent, best, found, stack, top)
                    for k in range(beam_rays):
                        if found[k] >= 0:
                            instance[begin + k] = tile
                            triangle[begin + k] = found[k]
                            for column in range(6):
                                won[k, column] = placed[k, column]
                if top == 0:
                    break
                top -= 1
                link = np.int64(stack[top])

        dx, dy, dz = np.float64(direction[begin, 0]), np.float64(direction[begin, 1]), np.float64(direction[begin, 2])
        length = dx * dx + dy * dy + dz * dz
        for candidate in range(mover_count):
            cx = spheres[candidate, 0] - origin_m[begin, 0]
            cy = spheres[candidate, 1] - origin_m[begin, 1]
            cz = spheres[candidate, 2] - origin_m[begin, 2]
            along = (cx * dx + cy * dy + cz * dz) / length
            distance_2 = cx * cx + cy * cy + cz * cz
            wide = math.sqrt(spheres[candidate, 3])
            wide += width_m + spread * (math.sqrt(distance_2) + wide)
            apart = distance_2 - wide * wide
            if apart > 0.0 and (along < 0.0 or apart > along * along * length):
                continue
            mover = movers[candidate]
            (px, py, pz), turn = keyed_pose(
                key_time_ns,
                key_position_m,
                key_arrival_mps,
                key_departure_mps,
                key_orientation,
                key_first[mover],
                key_count[mover],
                period_ns[mover],
                time_ns[begin],
            )
            body_from_world = conjugate(turn)
            number = tile_count + mover
            geometry = instance_geometry[number]
            for k in range(beam_rays):
                ray = begin + k
                mx, my, mz = rotate(body_from_world, (origin_m[ray, 0] - px, origin_m[ray, 1] - py, origin_m[ray, 2] - pz))
                nx, ny, nz = rotate(body_from_world, (np.float64(direction[ray, 0]), np.float64(direction[ray, 1]), np.float64(direction[ray, 2])))
                placed[k, 0] = mx - geometry_origin_m[geometry, 0]
                placed[k, 1] = my - geometry_origin_m[geometry, 1]
                placed[k, 2] = mz - geometry_origin_m[geometry, 2]
                placed[k, 3] = nx
                placed[k, 4] = ny
                placed[k, 5] = nz
                for column in range(6):
                    local[k, column] = placed[k, column]
                found[k] = -1
            _closest_in_tree(bounds, links, corners, geometry_root[geometry], local, width, tangent, best, found, stack, _BOTTOM)
            for k in range(beam_rays):
                if found[k] >= 0:
                    instance[begin + k] = number
                    triangle[begin + k] = found[k]
                    for column in range(6):
                        won[k, column] = placed[k, column]

        for k in range(beam_rays):
            distance = np.inf
            row = triangle[begin + k]
            if row >= 0:
                distance = np.float64(best[k])
                exact = plane_distance(corners, np.uintp(row), won[k, 0], won[k, 1], won[k, 2], won[k, 3], won[k, 4], won[k, 5])
                if math.fabs(exact - distance) < AGREEMENT_M:
                    distance = exact
            range_m[begin + k] = distance
