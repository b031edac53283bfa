"""Pose tracks: a pose as a function of rig time, exact at every nanosecond.

Position is a cubic Hermite curve through the keys, orientation a slerp between them. A key has two velocities, one arriving and one leaving,
so that a polyline with corners is exact. Outside its keys a track is constant, or repeats with ``period_ns``; a periodic track
is closed by a segment from the last key to the first key one period later. A waiting track is constant before its first key and repeats after it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.poses import UNIT_TOLERANCE, Pose
from hilsim.world.geometry.rotations import slerp

_S_PER_NS = 1e-9
_FIRST_ROW = constant(0)


class PoseTrack(NamedTuple):
    """Keys of a pose track; build with ``fixed_track``, ``linear_track``, ``smooth_track`` or ``curved_track``.

    Attributes:
        time_ns: ``int64[k]``, rig time, strictly rising.
        position_m: ``float64[k, 3]`` in the world.
        arrival_mps: ``float64[k, 3]``, velocity of the segment that ends at the key.
        departure_mps: ``float64[k, 3]``, velocity of the segment that begins at the key.
        orientation: ``float64[k, 4]``, unit quaternions ``(w, x, y, z)``, world from body.
        period_ns: 0: constant outside the keys; else the track repeats. Below 0: it repeats with ``-period_ns``, and waits for its first key.
    """

    time_ns: npt.NDArray[np.int64]
    position_m: npt.NDArray[np.float64]
    arrival_mps: npt.NDArray[np.float64]
    departure_mps: npt.NDArray[np.float64]
    orientation: npt.NDArray[np.float64]
    period_ns: int


@borrowing_kernel
def between_keys(time_ns: npt.NDArray[np.int64], first: int, count: int, period_ns: int, at_ns: int) -> tuple[int, int, float, float]:
    """Rows before and after a time, the ratio between them (0 to 1), and the time between them (s), which is 0 at the first row's own time."""
    last = first + count - 1
    t = at_ns
    round_ns = abs(period_ns)
    if period_ns > 0 or (period_ns < 0 and at_ns > time_ns[first]):
        t = time_ns[first] + (at_ns - time_ns[first]) % round_ns
    low = first
    if t > time_ns[first]:
        high = last + 1
        while high - low > 1:
            middle = (low + high) // 2
            if time_ns[middle] <= t:
                low = middle
            else:
                high = middle
    follower = low + 1
    span_ns = 0
    if low < last:
        span_ns = time_ns[follower] - time_ns[low]
    elif round_ns > 0:
        follower = first
        span_ns = time_ns[first] + round_ns - time_ns[last]
    if span_ns == 0 or t <= time_ns[low]:
        return low, low, 0.0, 0.0
    return low, follower, (t - time_ns[low]) / span_ns, span_ns * _S_PER_NS


@borrowing_kernel
def _position(
    position_m: npt.NDArray[np.float64],
    arrival_mps: npt.NDArray[np.float64],
    departure_mps: npt.NDArray[np.float64],
    low: int,
    follower: int,
    s: float,
    span_s: float,
) -> Vector:
    """Position between two rows; the arguments are results of ``between_keys``."""
    if span_s == 0.0:
        return position_m[low, 0], position_m[low, 1], position_m[low, 2]
    # Increments from the first key keep a polyline straight, and world coordinates of 1e6 m exact to the last digit.
    rise = s * s * (3.0 - 2.0 * s)
    leave = s * (1.0 - s) * (1.0 - s) * span_s
    arrive = s * s * (s - 1.0) * span_s
    x = position_m[low, 0] + rise * (position_m[follower, 0] - position_m[low, 0]) + leave * departure_mps[low, 0] + arrive * arrival_mps[follower, 0]
    y = position_m[low, 1] + rise * (position_m[follower, 1] - position_m[low, 1]) + leave * departure_mps[low, 1] + arrive * arrival_mps[follower, 1]
    z = position_m[low, 2] + rise * (position_m[follower, 2] - position_m[low, 2]) + leave * departure_mps[low, 2] + arrive * arrival_mps[follower, 2]
    return x, y, z


@borrowing_kernel
def keyed_position(
    time_ns: npt.NDArray[np.int64],
    position_m: npt.NDArray[np.float64],
    arrival_mps: npt.NDArray[np.float64],
    departure_mps: npt.NDArray[np.float64],
    first: int,
    count: int,
    period_ns: int,
    at_ns: int,
) -> Vector:
    """Position of ``keyed_pose`` without the orientation, which costs most of a pose."""
    low, follower, s, span_s = between_keys(time_ns, first, count, period_ns, at_ns)
    return _position(position_m, arrival_mps, departure_mps, low, follower, s, span_s)


@borrowing_kernel
def keyed_pose(
    time_ns: npt.NDArray[np.int64],
    position_m: npt.NDArray[np.float64],
    arrival_mps: npt.NDArray[np.float64],
    departure_mps: npt.NDArray[np.float64],
    orientation: npt.NDArray[np.float64],
    first: int,
    count: int,
    period_ns: int,
    at_ns: int,
) -> tuple[Vector, Quaternion]:
    """Pose at ``at_ns`` of the track whose ``count`` keys start at row ``first``; many tracks may share the arrays."""
    low, follower, s, span_s = between_keys(time_ns, first, count, period_ns, at_ns)
    place = _position(position_m, arrival_mps, departure_mps, low, follower, s, span_s)
    a = (orientation[low, 0], orientation[low, 1], orientation[low, 2], orientation[low, 3])
    if span_s == 0.0:
        return place, a
    b = (orientation[follower, 0], orientation[follower, 1], orientation[follower, 2], orientation[follower, 3])
    return place, slerp(a, b, s)


@borrowing_kernel
def track_state(track: PoseTrack, time_ns: int) -> tuple[Vector, Quaternion]:
    """Position in metres and orientation of ``track`` at rig time ``time_ns``."""
    return keyed_pose(
        track.time_ns,
        track.position_m,
        track.arrival_mps,
        track.departure_mps,
        track.orientation,
        _FIRST_ROW,
        track.time_ns.shape[0],
        track.period_ns,
        time_ns,
    )


@borrowing_kernel
def track_pose(track: PoseTrack, time_ns: int, position_m: npt.NDArray[np.float64], orientation: npt.NDArray[np.float64]) -> None:
    """Write the pose at rig time ``time_ns`` to ``position_m`` ``float64[3]`` and ``orientation`` ``float64[4]``."""
    (x, y, z), (qw, qx, qy, qz) = track_state(track, time_ns)
    position_m[0] = x
    position_m[1] = y
    position_m[2] = z
    orientation[0] = qw
    orientation[1] = qx
    orientation[2] = qy
    orientation[3] = qz


def fixed_track(pose: Pose) -> PoseTrack:
    """Build a track that does not move."""
    return linear_track([0], [pose.position_m], [pose.orientation])


def linear_track(time_ns: npt.ArrayLike, position_m: npt.ArrayLike, orientation: npt.ArrayLike, period_ns: int = 0) -> PoseTrack:
    """Build a track of straight lines at constant speed between the keys.

    Args:
        time_ns: ``int64[k]``, strictly rising.
        position_m: ``float64[k, 3]``.
        orientation: ``float64[k, 4]``, unit quaternions.
        period_ns: 0, or the length of a loop. A last key exactly one period after the first must repeat the first's pose and is dropped.

    Raises:
        ValueError: a key is not finite, out of order or without unit length; the message names the row.
    """
    keys = _checked(time_ns, position_m, orientation, period_ns)
    slope = _slopes(keys.time_ns, keys.position_m, period_ns)
    return keys._replace(arrival_mps=np.roll(slope, 1, axis=0), departure_mps=slope)


def smooth_track(time_ns: npt.ArrayLike, position_m: npt.ArrayLike, orientation: npt.ArrayLike, period_ns: int = 0) -> PoseTrack:
    """Build a curve without corners: Catmull-Rom tangents for unevenly spaced keys. Arguments and errors as in ``linear_track``."""
    keys = _checked(time_ns, position_m, orientation, period_ns)
    after = _slopes(keys.time_ns, keys.position_m, period_ns)
    before = np.roll(after, 1, axis=0)
    span_after = _spans_s(keys.time_ns, period_ns)[:, np.newaxis]
    span_before = np.roll(span_after, 1, axis=0)
    tangent = (span_after * before + span_before * after) / (span_after + span_before)
    if period_ns == 0:
        tangent[0] = after[0]
        tangent[-1] = before[-1]
    return keys._replace(arrival_mps=tangent, departure_mps=tangent.copy())


def curved_track(
    time_ns: npt.ArrayLike,
    position_m: npt.ArrayLike,
    arrival_mps: npt.ArrayLike,
    departure_mps: npt.ArrayLike,
    orientation: npt.ArrayLike,
    period_ns: int = 0,
) -> PoseTrack:
    """Build a curve with given velocities; a periodic one waits for its first key.

    Args:
        time_ns: As in ``linear_track``; likewise ``position_m``, ``orientation`` and ``period_ns``.
        arrival_mps: ``float64[k, 3]``, velocity on arrival at each key.
        departure_mps: ``float64[k, 3]``, velocity on departure from each key.

    Raises:
        ValueError: a key is not finite, out of order or without unit length; the message names the row.
    """
    keys = _checked(time_ns, position_m, orientation, period_ns)
    arrival, departure = np.array(arrival_mps, np.float64, ndmin=2), np.array(departure_mps, np.float64, ndmin=2)
    for name, velocity in (("arrival_mps", arrival), ("departure_mps", departure)):
        if velocity.shape[1:] != (3,) or len(velocity) < len(keys.time_ns):
            raise ValueError(f"{name} must have shape ({len(keys.time_ns)}, 3), got {velocity.shape}")
        _refuse_row(~np.isfinite(velocity).all(axis=1), f"{name} must be finite", velocity)
    count = len(keys.time_ns)
    if len(arrival) > count:  # the last key repeats the first one
        arrival[0] = arrival[count]
    return keys._replace(arrival_mps=arrival[:count].copy(), departure_mps=departure[:count].copy(), period_ns=-keys.period_ns)


def top_speed_mps(track: PoseTrack) -> float:
    """An upper bound of the track's speed, exact for straight lines.

    The velocity of a cubic segment is a quadratic Bezier curve and stays in the convex hull of its three control velocities.
    """
    departure = track.departure_mps
    arrival = np.roll(track.arrival_mps, -1, axis=0)
    middle = 3.0 * _slopes(track.time_ns, track.position_m, abs(track.period_ns)) - departure - arrival
    segments = slice(None) if track.period_ns != 0 else slice(0, len(track.time_ns) - 1)
    speeds = np.linalg.norm(np.stack([departure[segments], middle[segments], arrival[segments]]), axis=-1)
    # Positions are rounded to float64: the bound includes the last digit over the shortest span.
    return float(np.max(speeds, initial=0.0)) * (1.0 + 1e-9)


def _spans_s(time_ns: npt.NDArray[np.int64], period_ns: int) -> npt.NDArray[np.float64]:
    """Seconds from each key to the next; from the last to the first of the next period (1 s where the track does not repeat)."""
    closing_ns = time_ns[0] + period_ns - time_ns[-1] if period_ns > 0 else 1_000_000_000
    spans: npt.NDArray[np.float64] = np.append(np.diff(time_ns), closing_ns) * _S_PER_NS
    return spans


def _slopes(time_ns: npt.NDArray[np.int64], position_m: npt.NDArray[np.float64], period_ns: int) -> npt.NDArray[np.float64]:
    """Mean velocity from each key to the next, zero after the last key of a track that does not repeat."""
    slopes: npt.NDArray[np.float64] = (np.roll(position_m, -1, axis=0) - position_m) / _spans_s(time_ns, period_ns)[:, np.newaxis]
    if period_ns == 0:
        slopes[-1] = 0.0
    return slopes


def _checked(time_ns: npt.ArrayLike, position_m: npt.ArrayLike, orientation: npt.ArrayLike, period_ns: int) -> PoseTrack:
    """Keys as contiguous arrays with zero velocities, and quaternions of exact unit length along the shorter path."""
    stamps = np.asarray(time_ns)
    if stamps.ndim != 1 or len(stamps) == 0 or stamps.dtype.kind not in "iu":
        raise ValueError(f"time_ns must be whole nanoseconds in one dimension, at least one, got {stamps.dtype} of shape {stamps.shape}")
    times = np.ascontiguousarray(stamps, dtype=np.int64)
    positions = np.array(position_m, dtype=np.float64, order="C", ndmin=2)
    quaternions = np.array(orientation, dtype=np.float64, order="C", ndmin=2)
    if positions.shape != (len(times), 3):
        raise ValueError(f"position_m must have shape ({len(times)}, 3), got {positions.shape}")
    if quaternions.shape != (len(times), 4):
        raise ValueError(f"orientation must have shape ({len(times)}, 4), got {quaternions.shape}")
    _refuse_row(~np.isfinite(positions).all(axis=1), "position_m must be finite", positions)
    _refuse_row(~np.isfinite(quaternions).all(axis=1), "orientation must be finite", quaternions)
    _refuse_row(np.append(False, np.diff(times) <= 0), "time_ns must be later than in the row before", times)
    lengths = np.linalg.norm(quaternions, axis=1)
    _refuse_row(np.abs(lengths - 1.0) > UNIT_TOLERANCE, "orientation must be a unit quaternion (w, x, y, z)", quaternions)
    quaternions /= lengths[:, np.newaxis]
    for row in range(1, len(times)):
        if quaternions[row] @ quaternions[row - 1] < 0.0:
            quaternions[row] *= -1.0
    span_ns = int(times[-1] - times[0])
    if period_ns < 0 or (0 < period_ns < span_ns):
        raise ValueError(f"period_ns must be 0 or at least the keys' span of {span_ns}, got {period_ns}")
    if period_ns == span_ns and len(times) > 1:
        if not np.allclose(positions[-1], positions[0], rtol=0.0, atol=1e-6) or abs(quaternions[-1] @ quaternions[0]) < 1.0 - 1e-9:
            raise ValueError(f"row {len(times) - 1}: a key one period after the first must repeat the first key's pose")
        times, positions, quaternions = times[:-1].copy(), positions[:-1].copy(), quaternions[:-1].copy()
    still = np.zeros_like(positions)
    return PoseTrack(times, positions, still, still.copy(), quaternions, int(period_ns))


def _refuse_row(bad: npt.NDArray[np.bool_] | np.bool_, rule: str, values: npt.NDArray[np.generic]) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ValueError(f"row {rows[0]}: {rule}, got {values[rows[0]].tolist()}")
