"""Cells of a stationary lidar: static triangles that each beam can hit, found once, so that a firing tests only these and moving objects."""

import math

import numpy as np

from hilsim.emulator.plan import BeamCells, LidarPlan
from hilsim.geometry.frames import Quaternion
from hilsim.geometry.poses import Pose
from hilsim.geometry.rotations import multiply
from hilsim.render.cell_lists import build_image_cells, build_turning_cells
from hilsim.scene.world import World

TURN_CELLS = 3750
"""0.096 degrees: half of a VLP-16's step at 600 rpm."""
_IMAGE_CELL = math.radians(0.15)
_MOST_IMAGE_CELLS = 250_000
_EDGE = 1e-6


def turning_cells(plan: LidarPlan, world: World, body: Pose) -> BeamCells:
    """Cells of a turn, a row a channel, of a lidar on a platform fixed at ``body``."""
    origins = [body.transform((x, y, z)) for x, y, z in plan.channel_origin_m.tolist()]
    elevations, beam = np.radians(plan.elevation_deg), (plan.beam.width_m, plan.beam.spread)
    cells = build_turning_cells(world, origins, _orientation(plan, body), elevations, TURN_CELLS, plan.cast_range_m, *beam)
    return BeamCells(cells, columns=TURN_CELLS)


def image_cells(plan: LidarPlan, world: World, body: Pose, extent: tuple[float, float, float, float]) -> BeamCells:
    """Cells of an image of which beams reach ``extent``: smallest and largest x, smallest and largest z."""
    x_min, x_max, z_min, z_max = extent
    around = (x_min - _EDGE, x_max + _EDGE, z_min - _EDGE, z_max + _EDGE)
    width, height = around[1] - around[0], around[3] - around[2]
    side = max(_IMAGE_CELL, math.sqrt(width * height / _MOST_IMAGE_CELLS))
    columns, rows = math.ceil(width / side), math.ceil(height / side)
    x, y, z = plan.channel_origin_m[0].tolist()
    origin, beam = body.transform((x, y, z)), (plan.beam.width_m, plan.beam.spread)
    cells = build_image_cells(world, origin, _orientation(plan, body), around, columns, rows, plan.cast_range_m, *beam)
    return BeamCells(cells, columns, rows, around)


def _orientation(plan: LidarPlan, body: Pose) -> Quaternion:
    """World from sensor."""
    w, x, y, z = plan.mount_orientation.tolist()
    return multiply(body.orientation, (w, x, y, z))
