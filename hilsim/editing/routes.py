"""Ways of objects: what an object's ``motion`` is for points that a user has chosen, and where points snap to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hilsim.errors import require, within
from hilsim.world.geometry.frames import Vector
from hilsim.world.scene.object_specs import finite

_TURN_S = 0.5
_STRAIGHT_DEG = 1.0
_SHORTEST_M = 0.001
FASTEST_MPS = 100.0
_DIGITS = 9


@dataclass(frozen=True, kw_only=True)
class Snap:
    """Places that objects snap to.

    Attributes:
        grid_m: Distance of the lines that x and y snap to; 0: none.
        turn_deg: Step that angles snap to; 0: none.
        on_ground: Whether objects are put on the ground; z of a position is then the height above it.
    """

    grid_m: float = 0.0
    turn_deg: float = 0.0
    on_ground: bool = False

    def __post_init__(self) -> None:
        require(*within(self, grid_m=(0, 1000), turn_deg=(0, 180)))

    def position(self, position_m: Sequence[float]) -> Vector:
        """The nearest place of the grid, at the same height."""
        x, y, z = map(float, position_m)
        return _stepped(x, self.grid_m), _stepped(y, self.grid_m), z

    def rotation(self, rotation_deg: Sequence[float]) -> Vector:
        """The nearest angles."""
        roll, pitch, yaw = (_stepped(float(angle), self.turn_deg) for angle in rotation_deg)
        return roll, pitch, yaw


FREE = Snap()


def _stepped(value: float, step: float) -> float:
    return round(round(value / step) * step, _DIGITS) + 0.0 if step and math.isfinite(value) else value


def heading_deg(start_m: Vector, end_m: Vector) -> float:
    """Yaw of an object that looks from one place to another."""
    return math.degrees(math.atan2(end_m[1] - start_m[1], end_m[0] - start_m[0]))


def route_faults(points_m: Sequence[Sequence[float]], speed_mps: float, *, loop: bool) -> list[str]:
    """Faults of a way, one sentence each."""
    rules = [
        (len(points_m) >= 2, f"points_m must be at least 1 beside the place of the object, got {len(points_m) - 1}"),
        (0.0 < speed_mps <= FASTEST_MPS, f"speed_mps must be above 0 and at most {FASTEST_MPS:g}, got {speed_mps}"),
        *(finite(f"points_m[{number - 1}]", map(float, point)) for number, point in enumerate(points_m)),
    ]
    faults = [message for holds, message in rules if not holds]
    if not faults:
        ends = [*points_m, points_m[0]] if loop else points_m
        short = [number for number in range(1, len(ends)) if math.dist(ends[number - 1], ends[number]) < _SHORTEST_M]
        faults += [f"points_m[{number - 1}] must be elsewhere than the point before, got {tuple(ends[number])} twice" for number in short]
    return faults


def route(points_m: Sequence[Vector], speed_mps: float, begin_s: float, *, loop: bool = False, smooth: bool = False) -> dict[str, Any]:
    """Table ``motion`` of an object that passes points at a speed and looks where it goes.

    With straight lines the object turns on the spot for half a second where they meet; on a curve it looks along it.

    Args:
        points_m: Points, without faults (``route_faults``).
        speed_mps: Speed between them.
        begin_s: Rig time at which it leaves the first point.
        loop: Whether it returns to the first point, and begins again.
        smooth: Whether the way is a curve.
    """
    ends = [*points_m, points_m[0]] if loop else list(points_m)
    headings = [heading_deg(start, end) for start, end in pairwise(ends)]
    found: list[dict[str, Any]] = []
    time_s = begin_s

    def pass_by(point_m: Vector, yaw_deg: float) -> None:
        found.append({"time_s": round(time_s, _DIGITS), "position_m": list(point_m), "rotation_deg": [0.0, 0.0, yaw_deg]})

    pass_by(ends[0], headings[0] if not (smooth and loop) else _between(headings[-1], headings[0]))
    for number, point_m in enumerate(ends[1:], 1):
        time_s += math.dist(ends[number - 1], point_m) / speed_mps
        arriving = headings[number - 1]
        leaving = headings[number] if number < len(headings) else headings[0] if loop else arriving
        if smooth:
            pass_by(point_m, _between(arriving, leaving))
            continue
        pass_by(point_m, arriving)
        if abs(math.remainder(leaving - arriving, 360.0)) > _STRAIGHT_DEG or (loop and number == len(headings)):
            time_s += _TURN_S
            pass_by(point_m, leaving)
    return {"waypoints": found, **({"loop": True} if loop else {}), **({"interpolation": "smooth"} if smooth else {})}


def _between(first_deg: float, second_deg: float) -> float:
    return first_deg + 0.5 * math.remainder(second_deg - first_deg, 360.0)
