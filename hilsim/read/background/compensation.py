"""Motion compensation: points of a moving sensor in its initial frame, from the poses of its carrier."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.units import CDEG_PER_RAD
from hilsim.world.geometry.frames import IDENTITY, Quaternion, Vector
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import rotate
from hilsim.world.geometry.tracks import PoseTrack, fixed_track, track_state


class Compensation(NamedTuple):
    """Motion of the sensor; build with ``build_compensation`` or use ``STANDING``.

    Attributes:
        is_needed: Whether the sensor moved.
        track: Track of the body in the world.
        body_from_sensor: Mounting, as position and orientation.
        first_from_world: Transformation to the sensor's initial frame, as position and orientation.
    """

    is_needed: bool
    track: PoseTrack
    body_from_sensor: tuple[Vector, Quaternion]
    first_from_world: tuple[Vector, Quaternion]


_NOWHERE = ((0.0, 0.0, 0.0), IDENTITY)
STANDING = Compensation(False, fixed_track(Pose()), _NOWHERE, _NOWHERE)  # noqa: FBT003 - a named tuple for kernels


def build_compensation(track: PoseTrack, body_from_sensor: Pose) -> Compensation:
    """Build the compensation for a body on ``track`` that carries the sensor; the initial frame is that of the track's first key."""
    (x, y, z), orientation = track_state(track, int(track.time_ns[0]))
    first = (Pose(position_m=(x, y, z), orientation=orientation) @ body_from_sensor).inverse()
    mounted = (body_from_sensor.position_m, body_from_sensor.orientation)
    return Compensation(True, track, mounted, (first.position_m, first.orientation))  # noqa: FBT003


@kernel
def into_first_frame(moved: Compensation, time_ns: int, point_m: Vector) -> Vector:
    """Transform a point of the sensor's frame at ``time_ns`` of the track to the sensor's initial frame."""
    (mx, my, mz), mounted = moved.body_from_sensor
    x, y, z = rotate(mounted, point_m)
    (bx, by, bz), turned = track_state(moved.track, time_ns)
    x, y, z = rotate(turned, (x + mx, y + my, z + mz))
    (fx, fy, fz), back = moved.first_from_world
    x, y, z = rotate(back, (x + bx, y + by, z + bz))
    return x + fx, y + fy, z + fz


@kernel
def polar(point_m: Vector) -> tuple[float, float, float]:
    """Azimuth (0.01 deg, clockwise from +y), elevation (rad) and distance (m) of a point of a sensor's frame."""
    x, y, z = point_m
    level_m = math.sqrt(x * x + y * y)
    return math.atan2(x, y) * CDEG_PER_RAD, math.atan2(z, level_m), math.sqrt(level_m * level_m + z * z)


def row_edges_rad(elevation_deg: Sequence[float]) -> npt.NDArray[np.float64]:
    """``float64[rows + 1]``, elevations that bound rows of increasing ``elevation_deg``."""
    rows_deg = np.array(elevation_deg)
    middles = (rows_deg[1:] + rows_deg[:-1]) / 2
    outer = (rows_deg[0] - (middles[0] - rows_deg[0]), rows_deg[-1] + (rows_deg[-1] - middles[-1])) if middles.size else (-90.0, 90.0)
    return np.radians(np.concatenate(([outer[0]], middles, [outer[1]])))
