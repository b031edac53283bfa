"""A disturbance that makes a smooth flight hard for pose estimators: the body drifts around its path and oscillates about a drifting axis.

Position follows a Catmull-Rom spline through keyframes of three normal random numbers. The axis of rotation moves by slerp between keyframes
distributed evenly over the sphere; the angle about it is ``amplitude * cos(2 pi f t)``. Slerp between two successive axes that are nearly opposite
is undefined, so the later one is negated. A keyframe is a function of its number, so a pose needs no history and no state.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require, within
from hilsim.rng import Purpose, normal_pair, uniform_pair
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import about_axis

_POSITION = constant(Purpose.DISTURBANCE_POSITION)
_AXIS = constant(Purpose.DISTURBANCE_AXIS)
_FIRST_INDEX = 1 << 40  # draws are numbered from 0; keyframes before rig time 0 need numbers as well
_NEARLY_OPPOSED = math.cos(math.radians(170.0))
_NEARLY_PARALLEL = math.cos(math.radians(0.01))


Keyframes = tuple[int, Vector, Vector, Vector, Vector, Vector, Vector]
"""A keyframe's number, the positions (m) of the one before it, of it and of the next two, the unit axes of it and of the next."""


@dataclass(frozen=True, kw_only=True)
class DisturbanceSpec:
    """Amplitudes and frequencies of a disturbance.

    Attributes:
        amplitude_m: Standard deviation of a position keyframe along each axis; 0 to 10.
        amplitude_deg: Largest angle of rotation; 0 to 90.
        keyframe_interval_s: Time between keyframes; 0.05 to 3600.
        frequency_hz: Frequency of the rotation; 0 to 50.
    """

    amplitude_m: float = 0.0
    amplitude_deg: float = 0.0
    keyframe_interval_s: float = 1.0
    frequency_hz: float = 1.0

    def __post_init__(self) -> None:
        require(*within(self, amplitude_m=(0, 10), amplitude_deg=(0, 90), keyframe_interval_s=(0.05, 3600), frequency_hz=(0, 50)))


class Disturbance(NamedTuple):
    """A disturbance for kernels; build with ``build_disturbance``.

    Attributes:
        seed: Random seed of the rig.
        stream: Number of the platform in the rig.
        amplitude_m: ``DisturbanceSpec.amplitude_m``.
        amplitude_rad: ``DisturbanceSpec.amplitude_deg`` in radians.
        interval_ns: Time between keyframes.
        frequency_hz: ``DisturbanceSpec.frequency_hz``.
    """

    seed: np.uint64
    stream: int
    amplitude_m: float
    amplitude_rad: float
    interval_ns: int
    frequency_hz: float


def build_disturbance(spec: DisturbanceSpec, seed: int, stream: int) -> Disturbance:
    """Build the disturbance of ``spec`` for platform number ``stream`` of a rig with ``seed``."""
    return Disturbance(
        np.uint64(seed),
        int(stream),
        float(spec.amplitude_m),
        math.radians(spec.amplitude_deg),
        round(spec.keyframe_interval_s * 1e9),
        float(spec.frequency_hz),
    )


NO_DISTURBANCE = build_disturbance(DisturbanceSpec(), 0, 0)


@kernel
def position_keyframe(disturbance: Disturbance, key: int) -> Vector:
    """Displacement at keyframe ``key`` in metres."""
    index = 2 * (key + _FIRST_INDEX)
    x, y = normal_pair(disturbance.seed, disturbance.stream, index, _POSITION)
    z, _ = normal_pair(disturbance.seed, disturbance.stream, index + 1, _POSITION)
    return disturbance.amplitude_m * x, disturbance.amplitude_m * y, disturbance.amplitude_m * z


@kernel
def _drawn_axis(disturbance: Disturbance, key: int) -> Vector:
    """Random unit vector, uniform over the sphere (Marsaglia's cylinder: height and longitude are uniform)."""
    u, v = uniform_pair(disturbance.seed, disturbance.stream, key + _FIRST_INDEX, _AXIS)
    z = 2.0 * u - 1.0
    level = math.sqrt(1.0 - z * z)
    return level * math.cos(2.0 * math.pi * v), level * math.sin(2.0 * math.pi * v), z


@kernel
def axis_keyframe(disturbance: Disturbance, key: int) -> Vector:
    """Unit axis at keyframe ``key``: the drawn one, negated if it nearly opposes the previous keyframe's.

    The previous keyframe's axis may itself be negated, which matters only while drawn axes are nearly collinear. So the chain of signs restarts
    at every keyframe whose drawn axis is not nearly collinear with the previous one: looking back to there is enough, 1.02 steps on average.
    """
    start = key
    x, y, z = _drawn_axis(disturbance, start)
    while True:
        px, py, pz = _drawn_axis(disturbance, start - 1)
        if abs(x * px + y * py + z * pz) <= -_NEARLY_OPPOSED:
            break
        x, y, z = px, py, pz
        start -= 1
    ax, ay, az = _drawn_axis(disturbance, start)
    for following in range(start + 1, key + 1):
        x, y, z = _drawn_axis(disturbance, following)
        if ax * x + ay * y + az * z < _NEARLY_OPPOSED:
            x, y, z = -x, -y, -z
        ax, ay, az = x, y, z
    return ax, ay, az


@kernel
def _between(a: Vector, b: Vector, s: float) -> Vector:
    """Slerp of two unit vectors that are not opposite."""
    ax, ay, az = a
    bx, by, bz = b
    cosine = ax * bx + ay * by + az * bz
    from_a = 1.0 - s
    from_b = s
    if cosine < _NEARLY_PARALLEL:
        angle = math.acos(cosine)
        sine = math.sin(angle)
        from_a = math.sin((1.0 - s) * angle) / sine
        from_b = math.sin(s * angle) / sine
    x = from_a * ax + from_b * bx
    y = from_a * ay + from_b * by
    z = from_a * az + from_b * bz
    scale = 1.0 / math.sqrt(x * x + y * y + z * z)
    return x * scale, y * scale, z * scale


@kernel
def _catmull_rom(a: float, b: float, c: float, d: float, s: float) -> float:
    """Uniform Catmull-Rom spline from ``b`` to ``c``."""
    return b + 0.5 * s * (c - a + s * (2.0 * a - 5.0 * b + 4.0 * c - d + s * (3.0 * (b - c) + d - a)))


@kernel
def keyframes_at(disturbance: Disturbance, time_ns: int) -> Keyframes:
    """Keyframes around a rig time. Drawing them takes four times as long as interpolating the pose."""
    key = time_ns // disturbance.interval_ns
    before = from_m = to_m = after = (0.0, 0.0, 0.0)
    if disturbance.amplitude_m > 0.0:
        before, from_m = position_keyframe(disturbance, key - 1), position_keyframe(disturbance, key)
        to_m, after = position_keyframe(disturbance, key + 1), position_keyframe(disturbance, key + 2)
    from_axis = to_axis = (1.0, 0.0, 0.0)
    if disturbance.amplitude_rad > 0.0:
        from_axis, to_axis = axis_keyframe(disturbance, key), axis_keyframe(disturbance, key + 1)
    return key, before, from_m, to_m, after, from_axis, to_axis


@kernel
def is_between(disturbance: Disturbance, keyframes: Keyframes, time_ns: int) -> bool:
    """Whether a rig time is between the keyframes."""
    return time_ns // disturbance.interval_ns == keyframes[0]


@kernel
def pose_between(disturbance: Disturbance, keyframes: Keyframes, time_ns: int) -> tuple[Vector, Quaternion]:
    """``disturbance_pose`` at a rig time between the keyframes (``is_between``)."""
    key, (ax, ay, az), (bx, by, bz), (cx, cy, cz), (dx, dy, dz), from_axis, to_axis = keyframes
    s = (time_ns - key * disturbance.interval_ns) / disturbance.interval_ns
    position = (0.0, 0.0, 0.0)
    if disturbance.amplitude_m > 0.0:
        position = (_catmull_rom(ax, bx, cx, dx, s), _catmull_rom(ay, by, cy, dy, s), _catmull_rom(az, bz, cz, dz, s))
    turn = (1.0, 0.0, 0.0, 0.0)
    if disturbance.amplitude_rad > 0.0:
        axis = _between(from_axis, to_axis, s)
        turn = about_axis(axis, disturbance.amplitude_rad * math.cos(2.0 * math.pi * disturbance.frequency_hz * (time_ns * 1e-9)))
    return position, turn


@kernel
def disturbance_pose(disturbance: Disturbance, time_ns: int) -> tuple[Vector, Quaternion]:
    """Displacement in metres and rotation of the disturbed frame in the body, at rig time ``time_ns``."""
    return pose_between(disturbance, keyframes_at(disturbance, time_ns), time_ns)
