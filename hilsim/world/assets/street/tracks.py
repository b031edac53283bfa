"""Closed tracks through the demo street: rectangles with round corners, periodic without a jump.

All objects on a loop have the same speed profile, shifted in time; so distances vary but no car catches up with another.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.units import NS_PER_S
from hilsim.world.geometry.tracks import PoseTrack, smooth_track
from hilsim.world.scene.object_specs import Vector

_KEYS_A_RADIAN = 8.0
"""Keys per radian of a corner; more would not make the curve visibly rounder."""
_FINE = 16
_EASING_M = 10.0
"""Length before and after a corner over which the speed changes."""


class Loop(NamedTuple):
    """A rectangle with round corners, travelled from the middle of its south side.

    Attributes:
        centre: Centre, x and y.
        half_x_m: Half of its extent along x, to the middle of the lane.
        half_y_m: Half of its extent along y, to the middle of the lane.
        radius_m: Radius of the corners.
        speed_mps: Speed on the straights.
        corner_mps: Speed in the corners.
        clockwise: Sense of travel seen from above.
    """

    centre: tuple[float, float]
    half_x_m: float
    half_y_m: float
    radius_m: float
    speed_mps: float
    corner_mps: float
    clockwise: bool = True

    @property
    def length_m(self) -> float:
        """Length of one round."""
        return 4.0 * (self.half_x_m + self.half_y_m - 2.0 * self.radius_m) + math.tau * self.radius_m


def loop_track(loop: Loop, share: float, origin_m: Vector, height_m: float = 0.0) -> PoseTrack:
    """Track of an object that is ``share`` (0 to 1) of a round's time ahead of the start."""
    keys = round(loop.length_m * _KEYS_A_RADIAN / loop.radius_m)
    path_m = np.arange(keys, dtype=np.float64) * (loop.length_m / keys)
    time_s, period_s = _times(loop, keys)
    order = np.argsort((time_s - share * period_s) % period_s, kind="stable")
    time_ns = np.rint(((time_s - share * period_s) % period_s)[order] * NS_PER_S).astype(np.int64)
    x, y, heading = _along(loop, path_m[order])
    position_m = np.stack([x + loop.centre[0], y + loop.centre[1], np.full(keys, height_m)], axis=1) + np.array(origin_m)
    orientation = np.stack([np.cos(0.5 * heading), np.zeros(keys), np.zeros(keys), np.sin(0.5 * heading)], axis=1)
    return smooth_track(time_ns, position_m, orientation, period_ns=round(period_s * NS_PER_S))


def _times(loop: Loop, keys: int) -> tuple[npt.NDArray[np.float64], float]:
    """Times of the evenly spaced keys, and duration of a round."""
    path_m = (np.arange(keys * _FINE, dtype=np.float64) + 0.5) * (loop.length_m / (keys * _FINE))
    share = np.clip(_from_corner(loop, path_m) / _EASING_M, 0.0, 1.0)
    speed = loop.corner_mps + (loop.speed_mps - loop.corner_mps) * share * share * (3.0 - 2.0 * share)
    spent_s = np.append(0.0, np.cumsum(loop.length_m / (keys * _FINE) / speed))
    return spent_s[:-1:_FINE].copy(), float(spent_s[-1])


def _pieces(loop: Loop) -> list[tuple[float, float]]:
    """Lengths of the straights (from the middle of the south side, counter-clockwise), each with the heading at its start."""
    x, y = loop.half_x_m - loop.radius_m, loop.half_y_m - loop.radius_m
    return [(x, 0.0), (2.0 * y, 90.0), (2.0 * x, 180.0), (2.0 * y, 270.0), (x, 360.0)]


def _along(loop: Loop, path_m: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """East, north and heading (radians) at each length along the loop."""
    x, y, heading = np.zeros_like(path_m), np.zeros_like(path_m), np.zeros_like(path_m)
    begin, at = 0.0, np.array([0.0, -loop.half_y_m])
    for length, degrees in _pieces(loop):
        turn = math.radians(degrees)
        ahead, left = np.array([math.cos(turn), math.sin(turn)]), np.array([-math.sin(turn), math.cos(turn)])
        gone = path_m - begin
        straight = (gone >= 0.0) & (gone < length)
        x[straight], y[straight], heading[straight] = at[0] + gone[straight] * ahead[0], at[1] + gone[straight] * ahead[1], turn
        bend = (gone >= length) & (gone < length + 0.5 * math.pi * loop.radius_m)
        angle = (gone[bend] - length) / loop.radius_m
        corner = at + length * ahead + loop.radius_m * left
        x[bend] = corner[0] + loop.radius_m * (np.sin(angle) * ahead[0] - np.cos(angle) * left[0])
        y[bend] = corner[1] + loop.radius_m * (np.sin(angle) * ahead[1] - np.cos(angle) * left[1])
        heading[bend] = turn + angle
        begin += length + 0.5 * math.pi * loop.radius_m
        at = corner + loop.radius_m * ahead
    return (-x, y, math.pi - heading) if loop.clockwise else (x, y, heading)


def _from_corner(loop: Loop, path_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Distance to the nearest corner along the loop; 0 inside one."""
    nearest = np.full_like(path_m, np.inf)
    begin = 0.0
    for length, _ in _pieces(loop)[:4]:
        start, end = begin + length, begin + length + 0.5 * math.pi * loop.radius_m
        for shift in (-loop.length_m, 0.0, loop.length_m):
            gap = np.maximum(np.maximum(start + shift - path_m, path_m - end - shift), 0.0)
            nearest = np.minimum(nearest, gap)
        begin = end
    return nearest
