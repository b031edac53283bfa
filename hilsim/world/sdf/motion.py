"""Motion of actors in an SDF world.

An actor's trajectories are executed in sequence, each a curve through its waypoints: positions by a Hermite spline with Catmull-Rom tangents (reduced by ``tension``), orientations by a spherical
quadrangle, both uniform in each span's time. Between trajectories, and at the end of a loop, an actor jumps within a millisecond, which is Gazebo's step.
Times are whole milliseconds, truncated. Source: gz-sim ``SceneManager.cc``, gz-common ``Animation.cc``, gz-math ``Spline.cc`` and ``RotationSpline.cc``.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError
from hilsim.limits import TRAJECTORY_POSES
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.geometry.tracks import PoseTrack, curved_track
from hilsim.world.sdf.specs import SdfActor, SdfTrajectory

_Array = npt.NDArray[np.float64]

LEAP_NS = 1_000_000
_KEYS_A_RADIAN = 64.0
"""Keys per radian of a span's rotation: between keys a track rotates uniformly, a quadrangle does not."""
_MIN_TURNING, _MAX_KEYS = 8, 512
_SAME_M, _SAME_COSINE = 1e-6, 1.0 - 1e-9
_CLOSED = 1e-3
"""Distance below which gz-math treats points as equal."""
_MIN_RAD = 1e-9
_SMALL_SINE = 1e-3
_NEARLY_ONE = 1.0 - 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class _Keys:
    """Keys of a part of a track in an actor's frame; the first is at time 0."""

    time_ns: npt.NDArray[np.int64]
    position_m: _Array
    arrival_mps: _Array
    departure_mps: _Array
    orientation: _Array


def actor_track(actor: SdfActor, stand: Pose) -> PoseTrack | None:
    """Track of an actor.

    Args:
        actor: Actor of a file.
        stand: Pose of the file's origin in the world.

    Returns:
        Track of its frame in the world; None if it does not move.

    Raises:
        AssetError: it has too many waypoints.
    """
    moving = [trajectory for trajectory in actor.trajectories if trajectory.waypoints]
    if not moving:
        return None
    TRAJECTORY_POSES.enforce(sum(len(each.waypoints) for each in moving), actor.where, AssetError)
    follow = [*moving[1:], moving[0]] if actor.is_looped else moving[1:]
    parts = [_keys(each, following) for each, following in zip(moving, [*follow, None], strict=False)]
    lengths_ns = [_length_ns(each) for each in moving]
    begins_ns = np.cumsum([int(actor.delay_s * 1000.0) * 1_000_000, *lengths_ns])
    at = stand @ actor.pose
    turn = matrix_from_quaternion(at.orientation)
    keys = _joined([replace(part, time_ns=part.time_ns + begin_ns) for part, begin_ns in zip(parts, begins_ns, strict=False)])
    period_ns = int(sum(lengths_ns)) if actor.is_looped else 0
    if period_ns > 0 and keys.time_ns[-1] < begins_ns[-1]:  # it jumps to its beginning
        leap_mps = (keys.position_m[0] - keys.position_m[-1]) / ((begins_ns[-1] - keys.time_ns[-1]) * 1e-9)
        keys.departure_mps[-1] = keys.arrival_mps[0] = leap_mps
    return curved_track(
        keys.time_ns,
        keys.position_m @ turn.T + np.array(at.position_m),
        keys.arrival_mps @ turn.T,
        keys.departure_mps @ turn.T,
        _product(np.array(at.orientation), keys.orientation),
        period_ns,
    )


def _length_ns(trajectory: SdfTrajectory) -> int:
    return int(trajectory.waypoints[-1].time_ms - trajectory.waypoints[0].time_ms) * 1_000_000


def _keys(trajectory: SdfTrajectory, following: SdfTrajectory | None) -> _Keys:
    """Keys of one trajectory; it ends a jump earlier if the following one begins elsewhere."""
    times_ns = np.array([waypoint.time_ms for waypoint in trajectory.waypoints], np.int64) * 1_000_000
    times_ns -= times_ns[0]
    curve = _Curve(trajectory, times_ns)
    turns = curve.turns_rad()
    keys = [np.zeros(1, np.int64)]
    for begin_ns, end_ns, turn_rad in zip(times_ns[:-1].tolist(), times_ns[1:].tolist(), turns.tolist(), strict=True):
        count = min(max(_MIN_TURNING, int(np.ceil(turn_rad * _KEYS_A_RADIAN))), _MAX_KEYS) if turn_rad > 0.0 else 1
        keys.append(np.unique(np.linspace(begin_ns, end_ns, count + 1).round().astype(np.int64))[1:])
    time_ns = np.concatenate(keys)
    leaps = following is not None and not _same_pose(trajectory.waypoints[-1].pose, following.waypoints[0].pose)
    if leaps and len(time_ns) > 1:
        time_ns = np.append(time_ns[time_ns < times_ns[-1] - LEAP_NS], times_ns[-1] - LEAP_NS)
    return _Keys(
        time_ns=time_ns,
        position_m=curve.positions(time_ns),
        arrival_mps=curve.velocities(time_ns, "left"),
        departure_mps=curve.velocities(time_ns, "right"),
        orientation=curve.orientations(time_ns),
    )


def _same_pose(one: Pose, other: Pose) -> bool:
    apart_m = np.abs(np.subtract(one.position_m, other.position_m)).max()
    return bool(apart_m <= _SAME_M and abs(np.dot(one.orientation, other.orientation)) >= _SAME_COSINE)


def _joined(parts: list[_Keys]) -> _Keys:
    """Concatenate parts. A part that ends where the next one begins shares its key; one that ends earlier jumps in a straight line."""
    found = parts[0]
    for part in parts[1:]:
        kept = slice(None, -1) if found.time_ns[-1] == part.time_ns[0] else slice(None)
        arrival, departure = part.arrival_mps.copy(), found.departure_mps[kept].copy()
        if found.time_ns[-1] == part.time_ns[0]:
            arrival[0] = found.arrival_mps[-1]
        else:
            departure[-1] = arrival[0] = (part.position_m[0] - found.position_m[-1]) / ((part.time_ns[0] - found.time_ns[-1]) * 1e-9)
        found = _Keys(
            time_ns=np.concatenate((found.time_ns[kept], part.time_ns)),
            position_m=np.concatenate((found.position_m[kept], part.position_m)),
            arrival_mps=np.concatenate((found.arrival_mps[kept], arrival)),
            departure_mps=np.concatenate((departure, part.departure_mps)),
            orientation=np.concatenate((found.orientation[kept], part.orientation)),
        )
    return found


class _Curve:
    """Curve through a trajectory's waypoints.

    Args:
        trajectory: Trajectory with at least one waypoint.
        times_ns: Times of its waypoints, from 0.
    """

    def __init__(self, trajectory: SdfTrajectory, times_ns: npt.NDArray[np.int64]) -> None:
        self._times_ns = times_ns
        self._points = np.array([waypoint.pose.position_m for waypoint in trajectory.waypoints], np.float64)
        self._turns = np.array([waypoint.pose.orientation for waypoint in trajectory.waypoints], np.float64)
        self._tangents = _tangents(self._points) * (1.0 - min(max(trajectory.tension, 0.0), 1.0))
        self._corners = _corners(self._turns)

    def turns_rad(self) -> _Array:
        """Largest rotation in each span; 0 without one."""
        ends = _product(_conjugate(self._turns[:-1]), self._turns[1:])
        legs = _product(_conjugate(self._corners[:-1]), self._corners[1:])
        turned = np.maximum(_angle(ends), _angle(legs))
        is_bent = np.abs(self._corners - self._turns).max(axis=1) > 0.0
        return np.where(is_bent[:-1] | is_bent[1:], np.maximum(turned, _MIN_RAD), turned)

    def positions(self, time_ns: npt.NDArray[np.int64]) -> _Array:
        """Positions ``float64[k, 3]``."""
        first, s, _ = self._spans(time_ns, "right")
        following = np.minimum(first + 1, len(self._points) - 1)
        rise, leave, arrive = s * s * (3.0 - 2.0 * s), s * (1.0 - s) ** 2, s * s * (s - 1.0)
        begin = self._points[first]
        found: _Array = begin + rise * (self._points[following] - begin) + leave * self._tangents[first] + arrive * self._tangents[following]
        return found

    def velocities(self, time_ns: npt.NDArray[np.int64], side: str) -> _Array:
        """Velocities ``float64[k, 3]``, in the span on the left or right of a waypoint."""
        if len(self._points) < 2:
            return np.zeros((len(time_ns), 3))
        first, s, span_s = self._spans(time_ns, side)
        rise, leave, arrive = 6.0 * s * (1.0 - s), (1.0 - s) * (1.0 - 3.0 * s), s * (3.0 * s - 2.0)
        slope = rise * (self._points[first + 1] - self._points[first]) + leave * self._tangents[first] + arrive * self._tangents[first + 1]
        found: _Array = slope / span_s
        return found

    def orientations(self, time_ns: npt.NDArray[np.int64]) -> _Array:
        """Orientations ``float64[k, 4]``."""
        first, s, _ = self._spans(time_ns, "right")
        following = np.minimum(first + 1, len(self._turns) - 1)
        ends = _slerp(s, self._turns[first], self._turns[following], shortest=True)
        legs = _slerp(s, self._corners[first], self._corners[following])
        found = _slerp(2.0 * s * (1.0 - s), ends, legs)
        found = np.where(s == 0.0, self._turns[first], np.where(s == 1.0, self._turns[following], found))
        unit: _Array = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit

    def _spans(self, time_ns: npt.NDArray[np.int64], side: str) -> tuple[npt.NDArray[np.int64], _Array, _Array]:
        """Span of each time, position within it as ``float64[k, 1]``, and its duration in seconds."""
        last = max(len(self._times_ns) - 2, 0)
        first = np.clip(np.searchsorted(self._times_ns, time_ns, "left" if side == "left" else "right") - 1, 0, last)
        following = np.minimum(first + 1, len(self._times_ns) - 1)
        span_ns = np.maximum(self._times_ns[following] - self._times_ns[first], 1)
        return first, ((time_ns - self._times_ns[first]) / span_ns)[:, np.newaxis], (span_ns * 1e-9)[:, np.newaxis]


def _tangents(points: _Array) -> _Array:
    """Half of the vector from a point's one neighbour to the other; at an end to its only neighbour, or around a closed curve."""
    if len(points) < 2:
        return np.zeros_like(points)
    found = np.empty_like(points)
    found[1:-1] = 0.5 * (points[2:] - points[:-2])
    if np.abs(points[0] - points[-1]).max() <= _CLOSED:
        found[0] = found[-1] = 0.5 * (points[1] - points[-2])
    else:
        found[0], found[-1] = 0.5 * (points[1] - points[0]), 0.5 * (points[-1] - points[-2])
    return found


def _corners(turns: _Array) -> _Array:
    """The quadrangle's inner corners, after Shoemake."""
    if len(turns) < 2:
        return turns
    back = _conjugate(turns)
    after, before = np.roll(turns, -1, axis=0), np.roll(turns, 1, axis=0)
    if np.abs(turns[0] - turns[-1]).max() <= _CLOSED:
        before[0], after[-1] = turns[-2], turns[1]
    else:
        before[0], after[-1] = turns[0], turns[-1]
    return _product(turns, _exponential(-0.25 * (_logarithm(_product(back, after)) + _logarithm(_product(back, before)))))


def _product(a: _Array, b: _Array) -> _Array:
    """Product of quaternions ``(w, x, y, z)`` in the last axis."""
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ),
        axis=-1,
    )


def _conjugate(turns: _Array) -> _Array:
    found: _Array = turns * np.array((1.0, -1.0, -1.0, -1.0))
    return found


def _angle(turns: _Array) -> _Array:
    """Angle from 0 to a whole turn: a quadrangle may take the longer path."""
    found: _Array = 2.0 * np.arctan2(np.linalg.norm(turns[:, 1:], axis=1), turns[:, 0])
    return found


def _logarithm(turns: _Array) -> _Array:
    angle = np.arccos(np.clip(turns[:, :1], -1.0, 1.0))
    sine = np.sin(angle)
    factor = np.where(np.abs(sine) >= _SMALL_SINE, angle / np.where(sine == 0.0, 1.0, sine), 1.0)
    return np.concatenate((np.zeros_like(angle), factor * turns[:, 1:]), axis=1)


def _exponential(turns: _Array) -> _Array:
    angle = np.linalg.norm(turns[:, 1:], axis=1, keepdims=True)
    sine = np.sin(angle)
    factor = np.where(np.abs(sine) >= _SMALL_SINE, sine / np.where(angle == 0.0, 1.0, angle), 1.0)
    return np.concatenate((np.cos(angle), factor * turns[:, 1:]), axis=1)


def _slerp(s: _Array, a: _Array, b: _Array, *, shortest: bool = False) -> _Array:
    """Slerp between two quaternions, linear where they are nearly equal or nearly opposite; along the longer path by default."""
    cosine = (a * b).sum(axis=1, keepdims=True)
    if shortest:
        b, cosine = np.where(cosine < 0.0, -b, b), np.abs(cosine)
    sine = np.sqrt(np.maximum(1.0 - cosine * cosine, 0.0))
    angle = np.arctan2(sine, cosine)
    safe = np.where(sine == 0.0, 1.0, sine)
    round_way = np.sin((1.0 - s) * angle) / safe * a + np.sin(s * angle) / safe * b
    straight = (1.0 - s) * a + s * b
    straight /= np.maximum(np.linalg.norm(straight, axis=1, keepdims=True), 1e-300)
    return np.where(np.abs(cosine) < _NEARLY_ONE, round_way, straight)
