"""Counting of the points of STDV packets by cell: points are projected through the sensor's window to image coordinates ``x / y`` and ``z / y``.

Points flagged as no return, noise or blocked are excluded; the direction of a point without a return is unknown.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.compilation.jit import constant, kernel, signed
from hilsim.families.cepton.protocol.stdv import POINT_UNIT_M, PointFlag, point_at, points_of
from hilsim.read.background.compensation import STANDING, Compensation, into_first_frame
from hilsim.read.background.table import EMPTY, OUTSIDE, PACKETS, RETURNS, USED, CellTable, count_return, has_room
from hilsim.world.scene.background import ImageGrid, image_cell

_NO_SURFACE = constant(PointFlag.NO_RETURN | PointFlag.NOISE | PointFlag.BLOCKED)
_UNIT_MM = 1000.0 * POINT_UNIT_M


class ImagePlan(NamedTuple):
    """Parameters of the kernel; build with ``build_image_plan``.

    Attributes:
        columns: Number of columns of the grid.
        rows: Number of rows of the grid.
        edges: Image x of the first and last column, image z of the first and last row.
        epoch_ns: Capture time that is time 0 of the poses.
        moved: Motion of the sensor.
    """

    columns: int
    rows: int
    edges: tuple[float, float, float, float]
    epoch_ns: int
    moved: Compensation


def build_image_plan(grid: ImageGrid, moved: Compensation = STANDING, epoch_ns: int = 0) -> ImagePlan:
    """Build the parameters for a grid."""
    return ImagePlan(grid.columns, grid.rows, (grid.x_min, grid.x_max, grid.z_min, grid.z_max), epoch_ns, moved)


@kernel
def add_points(
    plan: ImagePlan, batch: DatagramArrays, is_chosen: npt.NDArray[np.bool_], first: int, table: CellTable, tally: npt.NDArray[np.int64]
) -> int:
    """Count the points of a batch's chosen STDV packets, from the ``first`` on; arguments and result as those of a ``read.background.part.Counter``."""
    slots, _, spill = table
    data = batch.data
    x_min, x_max, z_min, z_max = plan.edges
    for index in range(first, batch.start.size):
        if not is_chosen[index]:
            continue
        at, point_size, points = points_of(data, batch.start[index], batch.size[index])
        if not has_room(spill, tally[USED], points):
            return index
        tally[PACKETS] += 1
        back_us = 0
        for point in range(points):
            back_us += signed(data[at + point * point_size + 7])
        for _ in range(points):
            raw_x, raw_y, raw_z, reflectivity, step_us, _, flags = point_at(data, at)
            x, y, z = float(raw_x), float(raw_y), float(raw_z)
            back_us -= step_us
            at += point_size
            if flags & _NO_SURFACE or y == 0.0:
                tally[EMPTY] += 1
                continue
            if plan.moved.is_needed:
                time_ns = batch.host_stamp_ns[index] - plan.epoch_ns - back_us * 1000
                metres = _UNIT_MM * 1e-3
                mx, my, mz = into_first_frame(plan.moved, time_ns, (x * metres, y * metres, z * metres))
                x, y, z = mx / metres, my / metres, mz / metres
            column = row = -1
            if y > 0.0:
                column = image_cell(plan.columns, x_min, x_max, x / y)
                row = image_cell(plan.rows, z_min, z_max, z / y)
            if column < 0 or row < 0:
                tally[OUTSIDE] += 1
                continue
            tally[RETURNS] += 1
            distance_mm = signed(_UNIT_MM * math.sqrt(x * x + y * y + z * z) + 0.5)
            tally[USED] += count_return(slots, spill, column * plan.rows + row, distance_mm, reflectivity)
    return batch.start.size


@kernel
def widen(batch: DatagramArrays, is_chosen: npt.NDArray[np.bool_], extent: npt.NDArray[np.float64]) -> None:
    """Extend ``extent`` ``float64[4]`` (smallest and largest image x, smallest and largest image z) to a batch's points."""
    data = batch.data
    for index in range(batch.start.size):
        if not is_chosen[index]:
            continue
        at, point_size, points = points_of(data, batch.start[index], batch.size[index])
        for _ in range(points):
            raw_x, raw_y, raw_z, _, _, _, flags = point_at(data, at)
            x, y, z = float(raw_x), float(raw_y), float(raw_z)
            if not flags & _NO_SURFACE and y > 0.0:
                extent[0] = min(extent[0], x / y)
                extent[1] = max(extent[1], x / y)
                extent[2] = min(extent[2], z / y)
                extent[3] = max(extent[3], z / y)
            at += point_size
