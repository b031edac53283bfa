"""Rotations for the estimator and the pilot: quaternions (w, x, y, z) and matrices, NED from FRD."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Quaternion: TypeAlias = tuple[float, float, float, float]
Vector: TypeAlias = tuple[float, float, float]
Floats: TypeAlias = npt.NDArray[np.float64]


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The rotation ``b`` followed by ``a``."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def turned(turn: Sequence[float] | Floats) -> Quaternion:
    """Quaternion of a rotation vector (rad)."""
    x, y, z = (float(part) for part in turn)
    angle = math.sqrt(x * x + y * y + z * z)
    scale = 0.5 - angle * angle / 48.0 if angle < 1e-3 else math.sin(0.5 * angle) / angle
    return math.cos(0.5 * angle), scale * x, scale * y, scale * z


def unit(q: Quaternion) -> Quaternion:
    """``q`` normalised to length 1."""
    w, x, y, z = q
    size = math.sqrt(w * w + x * x + y * y + z * z)
    return w / size, x / size, y / size, z / size


def conjugate(q: Quaternion) -> Quaternion:
    """The inverse rotation."""
    return q[0], -q[1], -q[2], -q[3]


def matrix(q: Quaternion) -> Floats:
    """The rotation as a matrix, (3, 3)."""
    w, x, y, z = q
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def limited(values: npt.ArrayLike, most: float | Floats) -> Floats:
    """``values`` limited to -``most`` to ``most``: a quarter of the time that ``numpy.clip`` takes for three numbers."""
    found: Floats = np.minimum(np.maximum(values, -most), most)
    return found


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product: a twentieth of the time that ``numpy.cross`` takes."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def direction(vector: Vector) -> Vector:
    """A vector as one of length 1."""
    x, y, z = vector
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


def from_axes(x: Vector, y: Vector, z: Vector) -> Quaternion:
    """Quaternion of the rotation whose columns are three axes; Shepperd's method."""
    m = tuple(zip(x, y, z, strict=True))
    trace = m[0][0] + m[1][1] + m[2][2]
    choices = (trace, m[0][0], m[1][1], m[2][2])
    best = choices.index(max(choices))
    if best == 0:
        q = (1.0 + trace, m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1])
    elif best == 1:
        q = (m[2][1] - m[1][2], 1.0 + 2.0 * m[0][0] - trace, m[0][1] + m[1][0], m[0][2] + m[2][0])
    elif best == 2:
        q = (m[0][2] - m[2][0], m[0][1] + m[1][0], 1.0 + 2.0 * m[1][1] - trace, m[1][2] + m[2][1])
    else:
        q = (m[1][0] - m[0][1], m[0][2] + m[2][0], m[1][2] + m[2][1], 1.0 + 2.0 * m[2][2] - trace)
    return unit(q)


def euler(q: Quaternion) -> tuple[float, float, float]:
    """Roll, pitch and yaw (rad) of NED from FRD."""
    w, x, y, z = q
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x))))
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return roll, pitch, yaw


def wrapped(angle: float) -> float:
    """Wrap an angle to within half a turn of 0 (rad)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi
