"""Sectors around a body, and the nearest return of each: what an obstacle map is made of."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.world.geometry.frames import Vector

SECTORS = 72
"""Sector k is centred at 5 k degrees clockwise from forward."""
SECTOR_DEG = 5
_EDGE_RAD = np.radians(SECTOR_DEG * (np.arange(SECTORS)[:, np.newaxis] + np.array([-0.5, 0.5])))
_EDGES = np.stack([np.cos(_EDGE_RAD), -np.sin(_EDGE_RAD)], axis=2).reshape(SECTORS, 4)
"""``float64[72, 4]``: forward and left components of the directions at which each sector begins and ends, clockwise."""


@kernel
def sector_of(forward_m: float, left_m: float) -> int:
    """Sector of a horizontal direction in the body frame."""
    clockwise_deg = math.degrees(math.atan2(-left_m, forward_m))
    return math.floor((clockwise_deg + 0.5 * SECTOR_DEG) / SECTOR_DEG) % SECTORS


@kernel
def sector_near(forward_m: float, left_m: float, guess: int) -> int:
    """``sector_of``, faster when the guess is right: neighbouring rays mostly share a sector."""
    edges = _EDGES[guess]
    is_within = edges[1] * forward_m - edges[0] * left_m >= 0.0 and edges[3] * forward_m - edges[2] * left_m < 0.0
    return guess if is_within else sector_of(forward_m, left_m)


@kernel
def note_return(
    reach_m: float,
    direction: Vector,
    origin_m: Vector,
    min_m: float,
    max_m: float,
    low_m: float,
    high_m: float,
    nearest_m: npt.NDArray[np.float64],
    guess: int,
) -> int:
    """Lower the distance of a ray's sector. Returns that sector, the next ray's ``guess``.

    Args:
        reach_m: Along the ray; ``inf`` where it meets nothing.
        direction: Unit vector in the body frame (x forward, y left, z up), or in that frame turned level.
        origin_m: Origin of the ray, in the same frame.
        min_m: Hits nearer than this (along the ray) are ignored.
        max_m: Farthest level distance that counts.
        low_m: Lower end of the height band.
        high_m: Upper end of the height band.
        nearest_m: ``float64[72]``, written: level distance from the frame's zero; ``inf``: nothing near; ``nan``: no ray looked there.
        guess: Sector of the ray before.
    """
    forward, left, up = direction
    if not reach_m >= min_m or (forward == 0.0 and left == 0.0):
        return guess
    level = math.inf
    if reach_m < math.inf:
        x, y, z = origin_m[0] + reach_m * forward, origin_m[1] + reach_m * left, origin_m[2] + reach_m * up
        distance_m = math.sqrt(x * x + y * y)
        if low_m <= z <= high_m and distance_m <= max_m:
            level = distance_m
            forward, left = x, y
    sector = sector_near(forward, left, guess)
    if not nearest_m[sector] <= level:
        nearest_m[sector] = level
    return sector
