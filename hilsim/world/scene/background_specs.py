"""The keys of a rig's ``[[scene.background]]``."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require

Vector = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class BackgroundSpec:
    """A captured depth map (``hilsim background``) that a sensor sees behind the scene's objects. The sensor must be stationary at the pose of the capture.

    Attributes:
        file: NPZ file, relative to the rig.
        sensor: Name of the sensor that sees the map; optional if the rig has one sensor.
        rule: ``nearest``: the nearer of object and background; ``background-first``: the background wherever it is valid; ``synthetic-only``: no background.
        sampling: ``nearest``: the cell in the beam's direction; ``edge-aware``: interpolated between cells of one surface, the nearest cell at edges.
        height_m: Height of the sensor above the scene's ground, a "ground only" mounting that replaces the file's own.
        pitch_deg: Pitch of the sensor at ``height_m``, positive nose down.
        position_m: Position of the sensor in the world, a full mounting that replaces the file's own.
        rotation_deg: Roll, pitch and yaw of the sensor at ``position_m``; all 0 faces east.
    """

    file: str
    sensor: str = ""
    rule: Literal["nearest", "background-first", "synthetic-only"] = "nearest"
    sampling: Literal["nearest", "edge-aware"] = "nearest"
    height_m: float | None = None
    pitch_deg: float | None = None
    position_m: Vector | None = None
    rotation_deg: Vector | None = None

    def __post_init__(self) -> None:
        require(*self._rules())

    def _rules(self) -> Iterator[tuple[bool, str]]:
        is_ground_only, is_full = self.height_m is not None, self.position_m is not None
        yield bool(self.file.strip()), "file must not be empty"
        yield is_ground_only or self.pitch_deg is None, "pitch_deg must come with height_m"
        yield is_full or self.rotation_deg is None, "rotation_deg must come with position_m"
        yield not (is_ground_only and is_full), "a background must have height_m or position_m, got both"
        numbers = [self.height_m, self.pitch_deg, *(self.position_m or ()), *(self.rotation_deg or ())]
        yield (
            all(math.isfinite(number) for number in numbers if number is not None),
            "height_m, pitch_deg, position_m and rotation_deg must be finite",
        )
