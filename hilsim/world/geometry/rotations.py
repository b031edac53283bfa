"""Unit quaternions ``(w, x, y, z)`` as tuples of four floats, for kernels and Python.

A quaternion ``world_from_body`` rotates body vectors into world vectors; ``multiply(world_from_body, body_from_sensor)`` reads right to left.

Roll, pitch and yaw rotate about x, y and z of an FLU body, applied z-y-x (yaw first, intrinsically): yaw is counter-clockwise seen from above,
pitch is positive **nose down** (right-handed about the left axis), roll is positive **right side down**.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.world.geometry.frames import FRD_FROM_FLU, NED_FROM_ENU, Quaternion, Vector

_NEARLY_PARALLEL = 1.0 - 1e-9  # cosine of half the angle above which slerp's sine loses precision and linear interpolation does not
_SERIES_SQUARES = 1e-4  # squared half angle below which four terms of a series are exact to the last digit, and cheaper than a sine
_SERIES_RATE_SQUARES = 0.25  # squared angle below which three terms of a rate's series are exact to 1e-8
_SMALL_HALF_ANGLE = 1e-4  # below this, sin(x) / x is 1 - x^2 / 6 to the last digit


@kernel
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


@kernel
def conjugate(q: Quaternion) -> Quaternion:
    """The inverse rotation."""
    w, x, y, z = q
    return w, -x, -y, -z


@kernel
def rotate(q: Quaternion, v: Vector) -> Vector:
    """The vector ``v`` rotated by ``q``."""
    w, x, y, z = q
    vx, vy, vz = v
    tx = 2.0 * (y * vz - z * vy)
    ty = 2.0 * (z * vx - x * vz)
    tz = 2.0 * (x * vy - y * vx)
    return vx + w * tx + y * tz - z * ty, vy + w * ty + z * tx - x * tz, vz + w * tz + x * ty - y * tx


@kernel
def normalise(q: Quaternion) -> Quaternion:
    """``q`` scaled to unit length."""
    w, x, y, z = q
    scale = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    return w * scale, x * scale, y * scale, z * scale


@kernel
def slerp(a: Quaternion, b: Quaternion, s: float) -> Quaternion:
    """Interpolate at constant angular speed along the shorter path from ``a`` (``s = 0``) to ``b`` (``s = 1``)."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    cosine = aw * bw + ax * bx + ay * by + az * bz
    sign = 1.0
    if cosine < 0.0:
        cosine = -cosine
        sign = -1.0
    from_a = 1.0 - s
    from_b = s
    if cosine < _NEARLY_PARALLEL:
        angle = math.acos(cosine)
        sine = math.sin(angle)
        from_a = math.sin((1.0 - s) * angle) / sine
        from_b = math.sin(s * angle) / sine
    from_b *= sign
    return normalise((from_a * aw + from_b * bw, from_a * ax + from_b * bx, from_a * ay + from_b * by, from_a * az + from_b * bz))


@kernel
def about_axis(axis: Vector, angle_rad: float) -> Quaternion:
    """Rotation by ``angle_rad``, right-handed, about the unit vector ``axis``."""
    x, y, z = axis
    sine = math.sin(0.5 * angle_rad)
    return math.cos(0.5 * angle_rad), x * sine, y * sine, z * sine


@kernel
def ned_from_frd(enu_from_flu: Quaternion) -> Quaternion:
    """Convert an orientation from world ENU and body FLU to an autopilot's convention, world NED from body FRD."""
    return multiply(NED_FROM_ENU, multiply(enu_from_flu, FRD_FROM_FLU))


@kernel
def turned_by(q: Quaternion, turn_rad: Vector) -> Quaternion:
    """``q`` followed by the rotation vector ``turn_rad`` in body axes; unit length, exact for a constant rate."""
    x, y, z = turn_rad
    half = 0.5 * math.sqrt(x * x + y * y + z * z)
    ratio = 0.5 - half * half / 12.0 if half < _SMALL_HALF_ANGLE else 0.5 * math.sin(half) / half
    return normalise(multiply(q, (math.cos(half), ratio * x, ratio * y, ratio * z)))


@kernel
def rotation_vector(q: Quaternion) -> Vector:
    """Rotation vector (rad) of a unit quaternion along the shorter path, the inverse of ``turned_by`` from the identity."""
    w, x, y, z = q
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    squares = x * x + y * y + z * z
    if squares < _SERIES_SQUARES:
        tangent = squares / (w * w)
        ratio = 2.0 / w * (1.0 - tangent * (1.0 / 3.0 - tangent * (0.2 - tangent / 7.0)))
    else:
        sine = math.sqrt(squares)
        ratio = 2.0 * math.atan2(sine, w) / sine
    return ratio * x, ratio * y, ratio * z


@kernel
def _turn_rate(turn_rad: Vector, rates: Vector) -> Vector:
    """Time derivative of a rotation vector at body rates: the inverse of the right Jacobian of the exponential, times the rates."""
    x, y, z = turn_rad
    a, b, c = rates
    u, v, w = y * c - z * b, z * a - x * c, x * b - y * a
    squares = x * x + y * y + z * z
    second = 1.0 / 12.0 + squares * (1.0 / 720.0 + squares / 30240.0)
    if squares > _SERIES_RATE_SQUARES:
        half = 0.5 * math.sqrt(squares)
        second = (1.0 - half * math.cos(half) / math.sin(half)) / squares
    return (
        a + 0.5 * u + second * (y * w - z * v),
        b + 0.5 * v + second * (z * u - x * w),
        c + 0.5 * w + second * (x * v - y * u),
    )


@kernel
def turned_between(a: Quaternion, b: Quaternion, departure_rad: Vector, arrival_rad: Vector, s: float) -> Quaternion:
    """Cubic Hermite curve of orientations along the shorter path from ``a`` (``s = 0``) to ``b`` (``s = 1``).

    The curve is cubic in the rotation vector from ``a``; exact at a constant rate.

    Args:
        a: Unit quaternion.
        b: Unit quaternion.
        departure_rad: Body rates at ``a`` times the time from ``a`` to ``b``.
        arrival_rad: Body rates at ``b`` times that time.
        s: Ratio of the time that has passed, 0 to 1.
    """
    whole = rotation_vector(multiply(conjugate(a), b))
    arrival = _turn_rate(whole, arrival_rad)
    rise = s * s * (3.0 - 2.0 * s)
    leave = s * (1.0 - s) * (1.0 - s)
    arrive = s * s * (s - 1.0)
    x = 0.5 * (rise * whole[0] + leave * departure_rad[0] + arrive * arrival[0])
    y = 0.5 * (rise * whole[1] + leave * departure_rad[1] + arrive * arrival[1])
    z = 0.5 * (rise * whole[2] + leave * departure_rad[2] + arrive * arrival[2])
    squares = x * x + y * y + z * z
    if squares < _SERIES_SQUARES:
        cosine = 1.0 - squares * (0.5 - squares * (1.0 / 24.0 - squares / 720.0))
        ratio = 1.0 - squares * (1.0 / 6.0 - squares * (1.0 / 120.0 - squares / 5040.0))
    else:
        half = math.sqrt(squares)
        cosine = math.cos(half)
        ratio = math.sin(half) / half
    return normalise(multiply(a, (cosine, ratio * x, ratio * y, ratio * z)))


def from_roll_pitch_yaw(roll_deg: float, pitch_deg: float, yaw_deg: float) -> Quaternion:
    """Quaternion of roll, pitch and yaw; the module's docstring states order and signs."""
    roll = about_axis((1.0, 0.0, 0.0), math.radians(roll_deg))
    pitch = about_axis((0.0, 1.0, 0.0), math.radians(pitch_deg))
    yaw = about_axis((0.0, 0.0, 1.0), math.radians(yaw_deg))
    return multiply(yaw, multiply(pitch, roll))


def roll_pitch_yaw_rad(q: Quaternion) -> Vector:
    """Roll, pitch and yaw (rad) of a quaternion, the inverse of ``from_roll_pitch_yaw`` (degrees); not unique at a pitch of a quarter turn."""
    w, x, y, z = q
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = math.asin(min(max(2.0 * (w * y - z * x), -1.0), 1.0))
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return roll, pitch, yaw


def matrix_from_quaternion(q: Quaternion) -> npt.NDArray[np.float64]:
    """``float64[3, 3]`` with ``matrix @ v == rotate(q, v)``."""
    columns = [rotate(q, axis) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    return np.array(columns, dtype=np.float64).T.copy()


def quaternion_from_matrix(matrix: npt.NDArray[np.float64]) -> Quaternion:
    """Quaternion of a rotation ``float64[3, 3]``, the inverse of ``matrix_from_quaternion``; of a matrix that is not exactly a rotation, the nearest (Davenport)."""
    axis = np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
    trace = np.trace(matrix)
    likeness = np.block([[np.array([[trace]]), axis[np.newaxis]], [axis[:, np.newaxis], matrix + matrix.T - trace * np.eye(3)]])
    w, x, y, z = np.linalg.eigh(likeness)[1][:, -1].tolist()
    return w, x, y, z
