"""Casting of rays that start side by side, as the sub-rays of a laser beam, on the CPU: by the lists of their cell if they have one, else through the trees."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import stage_kernel
from hilsim.render.cells import Cells, is_found_in_cell
from hilsim.render.packets import UNKNOWN, cast_packets
from hilsim.scene.world import World


@stage_kernel
def cast_beams(
    world: World,
    order: npt.NDArray[np.int32],
    origin_m: npt.NDArray[np.float64],
    direction: npt.NDArray[np.float32],
    time_ns: npt.NDArray[np.int64],
    max_range_m: float,
    beam_rays: int,
    cells: Cells,
    cell: npt.NDArray[np.int32],
    travelled_m: npt.NDArray[np.float64],
    range_m: npt.NDArray[np.float32],
    instance: npt.NDArray[np.int32],
    triangle: npt.NDArray[np.int32],
    cosine: npt.NDArray[np.float64],
) -> None:
    """Cast rays that belong to beams; a ray's result does not depend on its neighbours.

    Args:
        world: World to cast into.
        order: ``int32[p, 16]``, as in ``render.packets.cast_packets``.
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]``, unit vectors in the world.
        time_ns: ``int64[n]``, rig time.
        max_range_m: Maximum range of a hit.
        beam_rays: Number of consecutive rays per beam; ``n`` is a multiple of it.
        cells: Lists of static triangles for rays with a fixed origin; ``NO_CELLS`` if there are none.
        cell: ``int32[n / beam_rays]``, cell of each beam, -1 for one that traverses the trees; empty (``NO_CELL``) when no beam has a cell.
            The caller guarantees that a beam is in its cell.
        travelled_m: ``float64[n]``, distance of a ray's origin from its cell's origin, along the ray; equal for the rays of a beam.
        range_m: ``float32[n]``, output; infinity for a miss.
        instance: ``int32[n]``, output; -1 for a miss.
        triangle: ``int32[n]``, output, row of the world's triangles; -1 for a miss.
        cosine: Output as in ``render.packets.cast_packets``.
    """
    has_cells = world.tile_root >= 0 and cell.shape[0] > 0 and max_range_m <= cells.max_range_m
    if has_cells:
        bounds, corners, geometry_origin_m, instance_geometry = world.node_bounds, world.corners, world.geometry_origin_m, world.instance_geometry
        cell_first, cell_row, cell_box, cell_tile, cell_reach_m = cells.first, cells.row, cells.box, cells.tile, cells.reach_m
        cells_range_m = cells.max_range_m
        local = np.empty((beam_rays, 6), dtype=np.float32)
        best = np.empty(beam_rays, dtype=np.float32)
        second = np.empty(beam_rays, dtype=np.float32)
        for begin in range(0, range_m.shape[0], beam_rays):
            for k in range(beam_rays):
                best[k] = np.float32(max_range_m)
                instance[begin + k] = -1
                triangle[begin + k] = -1
            is_found = False
            listed = cell[begin // beam_rays]
            if listed >= 0:
                reach_m = np.float64(cell_reach_m[listed])
                if travelled_m[begin] > 0.0:
                    reach_m = min(reach_m, cells_range_m) - travelled_m[begin]
                is_found = is_found_in_cell(
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
                    local,
                    best,
                    second,
                    instance,
                    triangle,
                )
            for k in range(beam_rays):
                range_m[begin + k] = best[k]
                if not is_found:
                    triangle[begin + k] = UNKNOWN
    cast_packets(world, order, origin_m, direction, time_ns, max_range_m, has_cells, range_m, instance, triangle, cosine)
