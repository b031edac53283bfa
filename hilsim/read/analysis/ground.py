"""The ground under a sensor, found in its points: how high the sensor is above it, and how the sensor is tilted.

The ground is the plane, at most 30 degrees from level in the sensor frame, that holds the most points with the fewest below it. A random sample
consensus finds it (Fischler and Bolles, 1981) with a fixed seed; least squares on its points, iterated, make it exact.

What is no ground gives a reason instead. A horizontal cut through walls is a plane with points too: there, columns over the plane
hold many more points than the plane, where those over a floor hold few.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import require
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose, extrinsics

_MAX_POINTS = 50_000
_SCORED_POINTS = 4096
_TRIPLES = 2048
_BLOCK = 128
_TRIES = 4
"""Planes that are refined and judged, the best first."""
_ROUNDS = 20
_MIN_BELOW = 200
_STEEPEST_DEG = 30.0
_LEVEL = math.cos(math.radians(_STEEPEST_DEG))
_LOWEST_M = 0.1
_MIN_RATIO = 0.03
_MIN_COLUMN_RATIO = 0.4
"""Share of the points in a floor among all points in it and over it. Cuts through walls have 0.05 to 0.3."""
_MIN_FREE_RATIO = 0.8
"""Share of the floor's points that are in columns with that share, which suffices too, as in a narrow room with high walls."""
_LARGEST_RMS_M = 0.06
_NARROWEST_M, _WIDEST_M, _WIDTH_RATIO = 0.02, 0.1, 0.1
"""Half the thickness of the plane: a tenth of the sensor's height, within bounds."""
_REACH_RATIO = 10.0
"""Range up to which points are taken for the ground, in heights of the sensor: fields and streets beyond it are not flat."""
_SIGMAS = 3.0
_NARROWEST_COLUMN_M, _WIDEST_COLUMN_M, _COLUMN_RATIO = 0.1, 0.5, 0.5
"""Side of a column: half the sensor's height, within bounds."""

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The plane of the ground, and what follows of the sensor's pose."""

    normal: Annotated[Vector, "Unit vector upwards, in the sensor frame."]
    height_m: Annotated[float, "Distance of the sensor above the plane."]
    roll_deg: Annotated[float, "Roll of the sensor over level ground, positive right side down."]
    pitch_deg: Annotated[float, "Pitch of the sensor over level ground, positive nose down."]
    inlier_ratio: Annotated[float, "Share of the points that lie in the plane."]
    rms_m: Annotated[float, "Their root mean square distance from it."]

    @property
    def tilt_deg(self) -> float:
        """Angle between the sensor's upward axis and the ground's."""
        return math.degrees(math.acos(min(self.normal[2], 1.0)))

    @property
    def pose(self) -> Pose:
        """World from sensor where the ground is z = 0, the sensor above the origin, and azimuth 0 looks along world +y."""
        return extrinsics((0.0, 0.0, self.height_m), (self.roll_deg, self.pitch_deg, 90.0))

    def __str__(self) -> str:
        angles = f"tilted by {self.tilt_deg:.1f} deg (roll {_tenths(self.roll_deg)}, pitch {_tenths(self.pitch_deg)})"
        return f"ground {self.height_m:.2f} m below the sensor, {angles}, from {100.0 * self.inlier_ratio:.0f} % of points, rms {1e3 * self.rms_m:.0f} mm"


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why no ground was found.

    Attributes:
        reason: The rule that the best plane breaks.
    """

    reason: str

    def __str__(self) -> str:
        return f"ground not found: {self.reason}"


def _tenths(angle_deg: float) -> str:
    """An angle to a tenth of a degree, without the sign of a zero."""
    return f"{round(angle_deg, 1) + 0.0:.1f}"


def points_of(decoded: npt.NDArray[Any]) -> Points:
    """``float64[n, 3]`` of decoded points (``POINT_DTYPE``)."""
    return np.stack([decoded["x"], decoded["y"], decoded["z"]], axis=-1).astype(np.float64)


def fit_ground(points_m: Points, *, seed: int = 0) -> Ground | Reason:
    """Find the ground in points of a sensor.

    Args:
        points_m: ``float64[n, 3]`` in the sensor frame (x right, y forward, z up); of more than 50,000 a random choice is used.
        seed: Seed of the random choice; the same seed gives the same ground.

    Returns:
        The ground, or the reason why there is none.

    Raises:
        ValueError: the points have another shape.
    """
    require((points_m.ndim == 2 and points_m.shape[1] == 3, f"points_m must be n x 3, got shape {points_m.shape}"))
    random = np.random.Generator(np.random.Philox(seed))
    points = points_m if len(points_m) <= _MAX_POINTS else points_m[random.integers(len(points_m), size=_MAX_POINTS)]
    points = points[np.isfinite(points).all(axis=1) & (points != 0.0).any(axis=1)]
    below = points[points[:, 2] < 0.0]
    if len(below) < _MIN_BELOW:
        return Reason(reason=f"at least {_MIN_BELOW} points must be below the sensor, got {len(below)}")
    found = _candidates(points, below, random)
    first: Reason | None = None
    for plane in found:
        judged = _judged(points, plane)
        if isinstance(judged, Ground):
            return judged
        first = first or judged
    return first or Reason(reason=f"no plane below the sensor is within {_STEEPEST_DEG:.0f} degrees of level")


def _candidates(points: Points, below: Points, random: np.random.Generator) -> Points:
    """Planes ``float64[k, 4]`` (normal, height) of random triples, the one with the most points first, none twice."""
    corner = below[random.integers(len(below), size=(_TRIPLES, 3))]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(normal, axis=1)
    normal = normal[length > 0.0] / length[length > 0.0, np.newaxis]
    normal *= np.where(normal[:, 2:] < 0.0, -1.0, 1.0)
    height_m = -(normal * corner[length > 0.0, 0]).sum(axis=1)
    is_level = (normal[:, 2] >= _LEVEL) & (height_m >= _LOWEST_M)
    planes = np.column_stack([normal, height_m])[is_level]
    chosen = points if len(points) <= _SCORED_POINTS else points[random.integers(len(points), size=_SCORED_POINTS)]
    blocks = [_scores(chosen, planes[at : at + _BLOCK]) for at in range(0, len(planes), _BLOCK)]
    best: list[npt.NDArray[np.float64]] = []
    for row in np.argsort(-np.concatenate(blocks), kind="stable") if blocks else ():
        if all(abs(plane[3] - planes[row, 3]) > 2.0 * _width_m(plane[3]) or plane[:3] @ planes[row, :3] < 0.99 for plane in best):
            best.append(planes[row])
        if len(best) == _TRIES:
            break
    return np.array(best).reshape(-1, 4)


def _scores(points: Points, planes: Points) -> npt.NDArray[np.int64]:
    """Points in each plane, less those below it: they are what a table's top has, and the ground has not."""
    above_m = points @ planes[:, :3].T + planes[:, 3]
    width_m = np.clip(_WIDTH_RATIO * planes[:, 3], _NARROWEST_M, _WIDEST_M)
    is_near = np.linalg.norm(points, axis=1)[:, np.newaxis] <= _REACH_RATIO * planes[:, 3]
    scores: npt.NDArray[np.int64] = (is_near & (np.abs(above_m) <= width_m)).sum(axis=0) - (is_near & (above_m < -width_m)).sum(axis=0)
    return scores


def _width_m(height_m: float) -> float:
    return min(max(_WIDTH_RATIO * height_m, _NARROWEST_M), _WIDEST_M)


class _Refined(NamedTuple):
    """A plane of least squares.

    Attributes:
        normal: ``float64[3]``, unit normal.
        height_m: Height of the sensor above the plane.
        is_inlier: ``bool[n]``, points in the plane.
        rms_m: Distance of the inliers from the plane, root mean square.
    """

    normal: npt.NDArray[np.float64]
    height_m: float
    is_inlier: npt.NDArray[np.bool_]
    rms_m: float


def _refined(points: Points, plane: npt.NDArray[np.float64]) -> _Refined:
    """Least squares on the inliers of a plane, until they stay the same, or the plane is no longer one of a ground."""
    normal, height_m, rms_m = plane[:3], float(plane[3]), math.inf
    is_inlier = np.zeros(len(points), dtype=np.bool_)
    range_m = np.linalg.norm(points, axis=1)
    for _ in range(_ROUNDS):
        width_m = min(_width_m(height_m), max(_SIGMAS * rms_m, _NARROWEST_M))
        held = (np.abs(points @ normal + height_m) <= width_m) & (range_m <= _REACH_RATIO * height_m)
        if (held == is_inlier).all() or held.sum() < 3:
            break
        inliers = points[held]
        centre = inliers.mean(axis=0)
        _, axes = np.linalg.eigh((inliers - centre).T @ (inliers - centre))
        upward = axes[:, 0] * (1.0 if axes[2, 0] >= 0.0 else -1.0)
        if upward[2] < _LEVEL or -float(upward @ centre) < _LOWEST_M:
            break
        is_inlier, normal, height_m = held, upward, -float(upward @ centre)
        rms_m = float(np.sqrt(np.mean(((inliers - centre) @ normal) ** 2)))
    return _Refined(normal, height_m, is_inlier, rms_m)


def _judged(points: Points, plane: npt.NDArray[np.float64]) -> Ground | Reason:
    """The ground of a plane, or what speaks against it."""
    found = _refined(points, plane)
    x, y, z = (float(part) for part in found.normal)
    ratio = float(found.is_inlier.mean())
    if ratio < _MIN_RATIO:
        return Reason(reason=f"the plane must hold {_MIN_RATIO:.0%} of the points, got {ratio:.1%}")
    if found.rms_m > _LARGEST_RMS_M:
        return Reason(reason=f"the plane's points must be within {1e3 * _LARGEST_RMS_M:.0f} mm (rms), got {1e3 * found.rms_m:.0f} mm")
    columns, free = _column_ratios(points, found)
    if columns < _MIN_COLUMN_RATIO and free < _MIN_FREE_RATIO:
        return Reason(reason=f"of the points over and in the plane {_MIN_COLUMN_RATIO:.0%} must be in it, got {columns:.0%} (walls, not a floor)")
    return Ground(
        normal=(x, y, z),
        height_m=found.height_m,
        roll_deg=math.degrees(math.atan2(-x, z)),
        pitch_deg=math.degrees(-math.asin(min(max(y, -1.0), 1.0))),
        inlier_ratio=ratio,
        rms_m=found.rms_m,
    )


def _column_ratios(points: Points, found: _Refined) -> tuple[float, float]:
    """Share of the inliers among all points of their columns, and share of those inliers in whose column they are so many."""
    across = np.cross(found.normal, (0.0, 1.0, 0.0))
    across /= np.linalg.norm(across)
    along = np.cross(found.normal, across)
    side_m = min(max(_COLUMN_RATIO * found.height_m, _NARROWEST_COLUMN_M), _WIDEST_COLUMN_M)
    cell = np.floor(points @ np.column_stack([across, along]) / side_m).astype(np.int64)
    key = cell[:, 0] * (1 << 32) + cell[:, 1]
    _, column = np.unique(key, return_inverse=True)
    inliers, every = np.bincount(column, weights=found.is_inlier), np.bincount(column)
    is_free = inliers >= _MIN_COLUMN_RATIO * every
    return float(inliers.sum() / every[inliers > 0].sum()), float(inliers[is_free].sum() / inliers.sum())
