"""Point under the pointer: the nearest one to a ray among the shown points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.show.view.page.parts import Part

_NEAREST_M = 0.05
_TRUTH = (
    ("object", "true object", ""),
    ("material", "material", ""),
    ("cause", "cause of the echo", ""),
    ("range_m", "true range", " m"),
    ("incidence_deg", "angle of incidence", "°"),
)
_WIDEST_RAD = 0.03
"""Largest angle between the ray and a point that is picked: 17 pixels of a window of 800 that shows 80 degrees."""
_SAME_RAD = 0.002
"""Points within this angle of the best one count as equally near to the ray; the nearest to the camera is picked."""


@dataclass(frozen=True, kw_only=True)
class Picked:
    """A picked point.

    Attributes:
        world: ``float32[3]``, position relative to the page's origin.
        sensor: Number of the sensor on the page.
        point: The point, of ``hilsim.api.points.DECODED_DTYPE``.
        rows: Names and values for people.
    """

    world: npt.NDArray[np.float32]
    sensor: int
    point: Any
    rows: tuple[tuple[str, str], ...]


def pick(part: Part, origin: Sequence[float], direction: Sequence[float]) -> int | None:
    """Index of the point that a ray from the camera meets, None if there is none near it.

    Args:
        part: Shown points.
        origin: Position of the camera, relative to the page's origin.
        direction: Direction of the ray, of any length.
    """
    along = np.asarray(direction, np.float64)
    length = float(np.linalg.norm(along))
    if not part.size or not np.isfinite(length) or length <= 0.0 or not np.all(np.isfinite(origin)):
        return None
    away = part.world - np.asarray(origin, np.float32)
    depth = np.einsum("ij,j->i", away, (along / length).astype(np.float32))
    distance_2 = np.einsum("ij,ij->i", away, away)
    angle = np.sqrt(np.maximum(distance_2 - depth * depth, 0.0)) / np.maximum(depth, _NEAREST_M)
    angle[depth <= _NEAREST_M] = np.inf
    best = float(angle.min())
    if best > _WIDEST_RAD:
        return None
    candidates = np.flatnonzero(angle <= best + _SAME_RAD)
    return int(candidates[np.argmin(depth[candidates])])


def describe(
    part: Part, index: int, sensors: Sequence[str], origin_m: npt.NDArray[np.float64], object_name: Callable[[int], str | None] | None = None
) -> Picked:
    """Everything that is known of a point.

    Args:
        part: Shown points.
        index: Index of the point.
        sensors: Names of the sensors on the page.
        origin_m: ``float64[3]``, the page's origin in the world.
        object_name: Name of an object, by its number.
    """
    instance = int(part.instance[index])
    name = object_name(instance) if object_name is not None and instance >= 0 else None
    point, world = part.points[index], part.world[index].copy()
    x, y, z = world.astype(np.float64) + origin_m
    rows = [
        ("sensor", sensors[part.sensor[index]]),
        ("channel (ring)", str(point["ring"])),
        ("azimuth", f"{point['azimuth']:.2f}°"),
        ("range", f"{point['range']:.3f} m"),
        ("intensity", str(point["intensity"])),
        ("return", str(point["return"])),
        ("time in the scan", f"{(int(point['time']) - int(part.begin_ns[index])) / 1e6:.3f} ms"),
        ("time", f"{int(point['time']) / 1e9:.6f} s"),
        ("object", "unknown" if instance < 0 else f"{instance}, {name}" if name else str(instance)),
        ("label", str(part.label[index]) if part.label[index] >= 0 else "unknown"),
        ("position", f"{x:.2f}, {y:.2f}, {z:.2f} m (x, y, z)"),
    ]
    return Picked(world=world, sensor=int(part.sensor[index]), point=point.copy(), rows=tuple(rows))


def truth_rows(truth: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Names and values of a point's ground truth for people (``DaemonFeed.truth``)."""
    if "reason" in truth:
        return (("ground truth", f"unknown: {truth['reason']}"),)
    rows = ((title, truth.get(key), unit) for key, title, unit in _TRUTH)
    return tuple((title, (f"{value:.3f}{unit}" if isinstance(value, float) else str(value))) for title, value, unit in rows if value is not None)


def distance_m(first: Picked, second: Picked) -> float:
    """Distance between two picked points."""
    return float(np.linalg.norm(first.world.astype(np.float64) - second.world.astype(np.float64)))
