"""Planes in what a still sensor sees: walls, floor and ceiling that several lasers meet."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.calibration.cells import Cells
from hilsim.families.velodyne.calibration.figures import Rows
from hilsim.families.velodyne.protocol.geometry import FiringGeometry

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_MAX_PLANES = 10
_TRIES = 400
_NEAR_M = 0.03
_MIN_CELLS, _MIN_LASERS, _MIN_OF_LASER = 150, 4, 12
_MIN_COSINE = 0.2


@dataclass(frozen=True, kw_only=True)
class Rays(Rows):
    """Cells with a range, one each."""

    laser: Annotated[Ints, "``int64[n]``."]
    range_m: Annotated[Doubles, "``float64[n]``, mean range."]
    azimuth_rad: Annotated[Doubles, "``float64[n]``, mean azimuth."]
    elevation_rad: Annotated[Doubles, "``float64[n]``, elevation of the model."]
    origin_m: Annotated[Doubles, "``float64[n, 3]``, origin of the laser."]
    reflectivity: Annotated[Doubles, "``float64[n]``, mean byte."]
    visits: Annotated[Ints, "``int64[n]``, number of returns."]

    def directions(self, elevation_error_rad: Doubles | float = 0.0, azimuth_error_rad: Doubles | float = 0.0) -> Doubles:
        """Unit vectors, ``float64[n, 3]``, with errors of each ray's elevation and azimuth."""
        elevation, azimuth = self.elevation_rad + elevation_error_rad, self.azimuth_rad + azimuth_error_rad
        level = np.cos(elevation)
        return np.stack([level * np.sin(azimuth), level * np.cos(azimuth), np.sin(elevation)], axis=1)

    def points_m(self) -> Doubles:
        """Points by the model, ``float64[n, 3]``."""
        return np.asarray(self.origin_m + self.range_m[:, None] * self.directions())


def rays_of(cells: Cells, geometry: FiringGeometry) -> Rays:
    """The cells that have a range."""
    laser, column = np.nonzero(np.isfinite(cells.range_m))
    height_m = np.array(geometry.vertical_offset_mm or (0.0,) * len(geometry.elevation_deg))[laser] / 1000.0
    nothing = np.zeros(laser.size)
    return Rays(
        laser=laser,
        range_m=cells.range_m[laser, column],
        azimuth_rad=cells.azimuth_rad[laser, column],
        elevation_rad=np.radians(geometry.elevation_deg)[laser],
        origin_m=np.stack([nothing, nothing, height_m], axis=1),
        reflectivity=cells.reflectivity[laser, column],
        visits=cells.visits[laser, column],
    )


def find_planes(rays: Rays) -> list[Ints]:
    """Find planes, the largest first; returns the rays on each.

    Three rays near each other, of at least two lasers, make a plane; the one that most rays lie on is fitted, and its rays are set aside. The tries are the
    same for the same rays.
    """
    points, directions = rays.points_m(), rays.directions()
    free = np.ones(rays.laser.size, np.bool_)
    found: list[Ints] = []
    for number in range(_MAX_PLANES):
        rows = np.flatnonzero(free)
        if rows.size < _MIN_CELLS:
            break
        plane = _best_plane(points[rows], rays.laser[rows], rays.azimuth_rad[rows], number)
        if plane is None:
            break
        for _ in range(4):
            on = rows[_is_on(points[rows], directions[rows], *plane)]
            if on.size < _MIN_CELLS:
                break
            plane = _fitted(points[on])
        on = rows[_is_on(points[rows], directions[rows], *plane)]
        on = on[np.bincount(rays.laser[on], minlength=rays.laser.max() + 1)[rays.laser[on]] >= _MIN_OF_LASER]
        if on.size < _MIN_CELLS or np.unique(rays.laser[on]).size < _MIN_LASERS:
            break
        free[on] = False
        near = rows[np.abs(points[rows] @ plane[0] - plane[1]) <= 3.0 * _NEAR_M]  # what is beside the wall would be found as planes of its own
        free[near] = False
        found.append(on)
    return found


def _is_on(points: Doubles, directions: Doubles, normal: Doubles, distance_m: float) -> npt.NDArray[np.bool_]:
    return np.asarray((np.abs(points @ normal - distance_m) <= _NEAR_M) & (np.abs(directions @ normal) >= _MIN_COSINE))


def _fitted(points: Doubles) -> tuple[Doubles, float]:
    """Normal and distance of the plane through points."""
    middle = points.mean(axis=0)
    normal = np.linalg.svd(points - middle, full_matrices=False)[2][2]
    return normal, float(middle @ normal)


def _best_plane(points: Doubles, laser: Ints, azimuth_rad: Doubles, number: int) -> tuple[Doubles, float] | None:
    """Plane that most points lie on, among tries."""
    order = np.lexsort((azimuth_rad, laser))
    begin = np.searchsorted(laser[order], np.arange(laser.max() + 2))
    best, most = None, 0
    step = max(1, points.shape[0] // 6000)
    for a, b, c, d in np.random.default_rng(number).random((_TRIES, 4)):
        place = int(a * order.size)
        own = laser[order[place]]
        first = order[place]
        second = order[min(max(place + int((b - 0.5) * 120), begin[own]), begin[own + 1] - 1)]
        others = np.flatnonzero(np.diff(begin))
        other = others[int(c * others.size)]
        span = order[begin[other] : begin[other + 1]]
        near = np.abs((azimuth_rad[span] - azimuth_rad[first] + np.pi) % (2.0 * np.pi) - np.pi)
        if other == own or near.min() > 0.02:
            continue
        third = span[int(np.argmin(np.abs(near - 0.1 * (d - 0.5))))]
        normal = np.cross(points[second] - points[first], points[third] - points[first])
        length = float(np.linalg.norm(normal))
        if length < 0.02:
            continue
        normal = normal / length
        on = int((np.abs(points[::step] @ normal - points[first] @ normal) <= _NEAR_M).sum())
        if on > most:
            best, most = (normal, float(points[first] @ normal)), on
    return best
