"""Constant poses: mountings, parked objects, starting points."""

import math
from dataclasses import dataclass

from hilsim.errors import require
from hilsim.world.geometry.frames import BODY_FROM_SENSOR, IDENTITY, Quaternion, Vector
from hilsim.world.geometry.rotations import conjugate, from_roll_pitch_yaw, multiply, normalise, rotate

UNIT_TOLERANCE = 1e-6
"""Largest difference of a quaternion's length from 1, the precision of six printed digits."""


@dataclass(frozen=True, kw_only=True)
class Pose:
    """Pose of a frame in another: ``parent = rotate(orientation, child) + position_m``.

    Attributes:
        position_m: Origin of the child frame in the parent frame.
        orientation: Unit quaternion ``(w, x, y, z)``, parent from child.
    """

    position_m: Vector = (0.0, 0.0, 0.0)
    orientation: Quaternion = IDENTITY

    def __post_init__(self) -> None:
        length = math.sqrt(sum(part * part for part in self.orientation))
        require(
            (all(map(math.isfinite, self.position_m)), f"position_m must be finite, got {self.position_m}"),
            (abs(length - 1.0) <= UNIT_TOLERANCE, f"orientation must be a unit quaternion (w, x, y, z), got length {length:.9g}"),
        )

    def __matmul__(self, child: "Pose") -> "Pose":
        """``grandparent_from_parent @ parent_from_child``."""
        x, y, z = rotate(self.orientation, child.position_m)
        px, py, pz = self.position_m
        return Pose(position_m=(px + x, py + y, pz + z), orientation=normalise(multiply(self.orientation, child.orientation)))

    def inverse(self) -> "Pose":
        """The parent's pose in the child frame."""
        back = conjugate(self.orientation)
        x, y, z = rotate(back, self.position_m)
        return Pose(position_m=(-x, -y, -z), orientation=back)

    def transform(self, point_m: Vector) -> Vector:
        """A point of the child frame in the parent frame."""
        x, y, z = rotate(self.orientation, point_m)
        px, py, pz = self.position_m
        return px + x, py + y, pz + z


def mounting(position_m: Vector, rotation_deg: Vector) -> Pose:
    """Pose of an FLU child frame; ``rotation_deg`` is (roll, pitch, yaw)."""
    return Pose(position_m=position_m, orientation=from_roll_pitch_yaw(*rotation_deg))


def extrinsics(position_m: Vector, rotation_deg: Vector) -> Pose:
    """``body_from_sensor`` of a lidar mounted at ``position_m`` with (roll, pitch, yaw) ``rotation_deg`` in the body frame.

    With zero angles azimuth 0 is along body +x; a positive yaw turns it to the left.
    """
    return mounting(position_m, rotation_deg) @ Pose(orientation=BODY_FROM_SENSOR)
