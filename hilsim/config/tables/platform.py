"""``[platform]`` of a rig: the carrier of the sensors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hilsim.errors import require
from hilsim.world.geometry.frames import Vector
from hilsim.world.platforms.disturbance import DisturbanceSpec


@dataclass(frozen=True, kw_only=True)
class PlatformSpec:
    """The carrier of the sensors, and its motion.

    Attributes:
        kind: ``fixed``, ``trajectory`` (from ``file``), ``street`` (the built-in street's own route), ``background`` (at the pose of the background's capture),
            ``vehicle`` (the vehicle of ``[vehicle]``), or ``external`` (moved by another simulator, see ``[external]``).
        position_m: Position of a fixed platform in the world; of an external one before its first pose.
        rotation_deg: Roll, pitch and yaw of a fixed platform; of an external one before its first pose.
        file: Trajectory file, relative to the rig. A ``.csv`` has a header with, in any order, ``time_s`` (or ``time_ns``), ``x_m``, ``y_m``, ``z_m`` and
            ``qw``, ``qx``, ``qy``, ``qz`` or ``roll_deg``, ``pitch_deg``, ``yaw_deg``; without a header the columns are time_s, x, y, z, qw, qx, qy, qz.
            A ``.tum`` or ``.txt`` has ``time x y z qx qy qz qw``, separated by blanks. Poses are the body's (x forward, y left, z up) in the world.
            EuRoC's ``.csv`` is read too, and KITTI's ``.txt`` of 3 x 4 matrices of a camera, with ``times.txt`` (and ``calib.txt``, if it is there) beside it.
        loop: Whether to repeat the trajectory; its first and last pose must be equal.
        disturbance: Disturbance between platform and sensors.
    """

    kind: Literal["fixed", "trajectory", "street", "background", "vehicle", "external"] = "fixed"
    position_m: Vector = (0.0, 0.0, 0.0)
    rotation_deg: Vector = (0.0, 0.0, 0.0)
    file: str = ""
    loop: bool = False
    disturbance: DisturbanceSpec | None = None

    moved_keys: ClassVar[Mapping[str, str]] = {"wobble": "[platform.disturbance]"}

    def __post_init__(self) -> None:
        require(
            (all(map(math.isfinite, self.position_m)), f"position_m must be finite, got {self.position_m}"),
            (all(map(math.isfinite, self.rotation_deg)), f"rotation_deg must be finite, got {self.rotation_deg}"),
            ((self.kind == "trajectory") == bool(self.file), 'file must be given for kind "trajectory" and only for it'),
        )
