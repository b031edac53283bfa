"""The obstacle messages of a whole scan, ray by ray as the render threads note them."""

import math

import numpy as np

from hilsim.parts.vehicle.obstacle_messages import distance_of_beam, obstacles_of_sectors, orientation_axis
from hilsim.streaming.obstacle_sectors import SECTORS, note_return


def obstacle_values(spec, range_m, direction, origin_m=(0.0, 0.0, 0.0)):
    """OBSTACLE_DISTANCE of a scan: ``float[n]`` ranges, ``inf`` where a ray meets nothing, and ``float[n, 3]`` directions in the body frame."""
    nearest_m = np.full(SECTORS, math.nan)
    sector = 0
    for reach, looks in zip(range_m, direction, strict=True):
        forward, left, up = (float(part) for part in looks)
        place = (spec.range_min_m, spec.range_max_m, spec.low_m, spec.high_m)
        sector = note_return(float(reach), (forward, left, up), origin_m, *place, nearest_m, sector)
    return obstacles_of_sectors(spec, nearest_m)


def distance_values(spec, range_m, direction):
    """DISTANCE_SENSOR of a scan; None if no ray is in the beam."""
    is_in = direction @ np.array(orientation_axis(spec.orientation)) >= math.cos(math.radians(0.5 * spec.width_deg))
    counted = np.where(range_m <= spec.range_max_m, range_m, math.inf)[is_in & (range_m >= spec.range_min_m)]
    return distance_of_beam(spec, float(counted.min()) if counted.size else math.nan)
