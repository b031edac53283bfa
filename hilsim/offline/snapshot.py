"""Snapshots of another program's world: where the platform and the objects are at one instant, and how they move."""

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from hilsim.errors import require
from hilsim.limits import COORDINATE_M, SIZE_M
from hilsim.world.geometry.frames import IDENTITY, Quaternion, Vector
from hilsim.world.geometry.poses import UNIT_TOLERANCE, Pose
from hilsim.world.geometry.rotations import normalise, rotate

STILL: Vector = (0.0, 0.0, 0.0)
_MAX_M = COORDINATE_M.bound
_IDS = 1 << 64


class ObjectClass(IntEnum):
    """Class of an object; its number is the object's label in the ground truth."""

    OTHER = 0
    VEHICLE = 1
    PEDESTRIAN = 2
    ANIMAL = 3
    STRUCTURE = 4
    VEGETATION = 5
    SIGN = 6
    LIGHT = 7


MATERIALS = {
    ObjectClass.OTHER: "concrete",
    ObjectClass.VEHICLE: "paint_silver",
    ObjectClass.PEDESTRIAN: "wood",
    ObjectClass.ANIMAL: "wood",
    ObjectClass.STRUCTURE: "concrete",
    ObjectClass.VEGETATION: "leaves",
    ObjectClass.SIGN: "retro_sign",
    ObjectClass.LIGHT: "paint_black",
}
"""Material of each class: cloth, skin and fur reflect about as wood does, 50 % at 905 nm."""


@dataclass(frozen=True, kw_only=True)
class Motion:
    """Pose and velocities of a body.

    Attributes:
        position_m: Origin of the body's frame in the world (x east, y north, z up, or the program's own level axes).
        orientation: Unit quaternion ``(w, x, y, z)``, world from body (x forward, y left, z up).
        velocity_mps: Velocity in the world; None: not known.
        rates_radps: Rotation rates in the body's axes; None: not known.
    """

    position_m: Vector
    orientation: Quaternion = IDENTITY
    velocity_mps: Vector | None = None
    rates_radps: Vector | None = None

    def __post_init__(self) -> None:
        length = math.hypot(*self.orientation)
        x, y, z = self.position_m
        (vx, vy, vz), (p, q, r) = self.velocity_mps or STILL, self.rates_radps or STILL
        is_finite = math.isfinite(vx + vy + vz + p + q + r)
        if is_finite and max(abs(x), abs(y), abs(z)) <= _MAX_M and abs(length - 1.0) <= UNIT_TOLERANCE:
            return  # most are sound, and the texts below take longer than the rules
        numbers = (*self.position_m, *(self.velocity_mps or STILL), *(self.rates_radps or STILL))
        require(
            (all(map(math.isfinite, numbers)), f"poses and velocities must be finite, got {numbers}"),
            COORDINATE_M.rule(max(map(abs, self.position_m))),
            (abs(length - 1.0) <= UNIT_TOLERANCE, f"orientation must be a unit quaternion (w, x, y, z), got length {length:.9g}"),
        )

    @property
    def pose(self) -> Pose:
        """Pose without the velocities."""
        return Pose(position_m=self.position_m, orientation=normalise(self.orientation))

    def carrying(self, mounted: Pose) -> "Motion":
        """Motion of a frame that is mounted on the body."""
        pose = self.pose @ mounted
        rates, velocity = self.rates_radps, self.velocity_mps
        if velocity is not None:
            p, q, r = rates or STILL
            x, y, z = mounted.position_m
            turned = rotate(self.orientation, (q * z - r * y, r * x - p * z, p * y - q * x))
            velocity = (velocity[0] + turned[0], velocity[1] + turned[1], velocity[2] + turned[2])
        back = mounted.inverse().orientation
        return Motion(
            position_m=pose.position_m,
            orientation=pose.orientation,
            velocity_mps=velocity,
            rates_radps=rotate(back, rates) if rates is not None else None,
        )


@dataclass(frozen=True, kw_only=True)
class TrackedObject:
    """An object of another program's world: a shape with a motion.

    Attributes:
        id: Number of the object at its source; the same object has the same one in every snapshot.
        name: Name of the object.
        shape: Shape, centred on the origin of the object's frame.
        size_m: Length (x), width (y) and height (z); of a cylinder and a sphere the first is the diameter. None: the source does not know the shape, and
            the rig has an object of the name.
        kind: Class of the object.
        motion: Pose and velocities.
        is_still: Whether the source lists the object among those that do not move.
    """

    id: int
    name: str
    shape: Literal["box", "cylinder", "sphere"] = "box"
    size_m: Vector | None = None
    kind: ObjectClass = ObjectClass.OTHER
    motion: Motion
    is_still: bool = False

    def __post_init__(self) -> None:
        size = self.size_m if self.size_m is not None else (1.0,)
        if 0 <= self.id < _IDS and min(size) >= SIZE_M.bound and max(size) <= _MAX_M and math.isfinite(sum(size)):
            return
        require(
            (0 <= self.id < _IDS, f"id must be 0 to 2^64 - 1, got {self.id}"),
            (all(map(math.isfinite, size)), f"size_m must be finite, got {size}"),
            SIZE_M.rule(min(size), "size_m"),
            COORDINATE_M.rule(max(size), "size_m"),
        )

    @property
    def material(self) -> str:
        """Name of the built-in material of the object's class."""
        return MATERIALS[self.kind]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Poses at one instant.

    Attributes:
        time_ns: Instant on the sender's clock.
        platform: Motion of what carries the sensors; None: not in the message.
        objects: Objects, without the platform.
        omitted: A sentence for each object that cannot be shown, and for what else is not as it must be, beginning with its path in the message.
    """

    time_ns: int
    platform: Motion | None = None
    objects: tuple[TrackedObject, ...] = ()
    omitted: tuple[str, ...] = field(default=())
