"""Solids that contain the origin of a ray: physics engines let the ray pass through them.

A lidar is mostly inside the collision of its own link. Bullet tests rays against convex shapes from outside only: one that starts inside a box, a sphere or a cylinder hits the surfaces
behind it. Meshes and planes are surfaces, hit from both sides.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.sdf.specs import SdfShape

Points = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def is_inside(shape: SdfShape, points_m: Points, pose: Pose) -> Mask:
    """Mask of the points inside a shape.

    Args:
        shape: Any shape; one without an interior contains no point.
        points_m: ``float64[n, 3]`` in the world.
        pose: Pose of the shape in the world.

    Returns:
        Mask ``bool[n]``.
    """
    contains = _INSIDE.get(shape.kind)
    if contains is None:
        return np.zeros(len(points_m), bool)
    return contains(shape, (points_m - np.array(pose.position_m)) @ matrix_from_quaternion(pose.orientation))


def containing(placed: Iterable[tuple[SdfShape, Pose]], points_m: Points) -> dict[str, Mask]:
    """Shapes that contain some of the points, by name, each with the mask of those points.

    Args:
        placed: Shapes with their poses in the world.
        points_m: ``float64[n, 3]`` in the world.
    """
    found = {shape.name: is_inside(shape, points_m, pose) for shape, pose in placed}
    return {name: mask for name, mask in found.items() if mask.any()}


def reach_m(shape: SdfShape) -> float:
    """Upper bound of the distance from a shape's origin to its farthest point."""
    return float(np.linalg.norm(shape.size_m)) + max(shape.radii_m) + shape.length_m


def _box(shape: SdfShape, at: Points) -> Mask:
    return np.asarray((np.abs(at) < 0.5 * np.array(shape.size_m)).all(axis=1), np.bool_)


def _ellipsoid(shape: SdfShape, at: Points) -> Mask:
    return np.asarray(((at / np.array(shape.radii_m)) ** 2).sum(axis=1) < 1.0, np.bool_)


def _cylinder(shape: SdfShape, at: Points) -> Mask:
    return np.asarray((np.hypot(at[:, 0], at[:, 1]) < shape.radii_m[0]) & (np.abs(at[:, 2]) < 0.5 * shape.length_m), np.bool_)


def _capsule(shape: SdfShape, at: Points) -> Mask:
    beyond_m = np.maximum(np.abs(at[:, 2]) - 0.5 * shape.length_m, 0.0)
    return np.asarray(at[:, 0] ** 2 + at[:, 1] ** 2 + beyond_m**2 < shape.radii_m[0] ** 2, np.bool_)


def _cone(shape: SdfShape, at: Points) -> Mask:
    share = 0.5 - at[:, 2] / shape.length_m
    return np.asarray((share > 0.0) & (share < 1.0) & (np.hypot(at[:, 0], at[:, 1]) < shape.radii_m[0] * share), np.bool_)


_INSIDE: dict[str, Callable[[SdfShape, Points], Mask]] = {
    "box": _box,
    "sphere": _ellipsoid,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "capsule": _capsule,
    "cone": _cone,
}
