"""Contact and friction as impulses, solved at the end of each step: no penetration, no bounce, no jitter.

A spring stiff enough for a vehicle's legs would need steps of microseconds. Here the solver finds the velocities after the step (Moreau 1988,
"Unilateral contact and dry friction in finite freedom dynamics"; Stewart and Trinkle 1996): along the normal a point may close its gap within the
step and no more; along the ground it sticks unless that takes more than ``friction * normal`` impulse. Projected Gauss-Seidel solves all points
together, starting from the previous step's impulses, so a vehicle at rest is solved from the start. Impulses of a surface at
rest remove energy and never add any.

The impulse of an obstacle, and of any moving surface, is bounded (``MAX_PUSH_MPS2``): a real vehicle's legs and arms are compliant, and an accelerometer
measures the whole change of velocity. An impact at 3 m/s lasts 30 ms, and the surface enters the collision sphere by 4.5 cm meanwhile.
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.parts.vehicle.physics.aerodynamics import Airframe, cross
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import conjugate, rotate

TOUCH_M = 1e-5
"""Gaps below this count as contact, so that rounding at coordinates of 1e6 m does not become motion."""
_SWEEPS = 60
_KEPT_RATIO = 0.9  # decay of impulses per step: more than three points share a load in many ways, and the decay evens it out
_SETTLED_MPS = 1e-13
_ARM, _NORMAL, _FIRST, _SECOND = 0, 3, 6, 9
_SHARE, _TARGET, _PUSH, _DRIFT, _MAX_PUSH = 12, 15, 16, 19, 22
ROW_SIZE = 23
"""Size of a contact row: arm, normal, two tangents in the body; effective mass along each direction; target speed along the normal; impulses; the surface's own
speed along each direction; the largest impulse along the normal."""
MAX_PUSH_MPS2 = 100.0
"""Largest acceleration along the normal that an obstacle or a moving surface gives a vehicle: 10 g, within the accelerometer's range of 16 g."""
PLANE_SIZE = 7
"""Size of a plane that may move: unit normal, offset, velocity of its surface in the world (m/s). A plane at rest has four numbers."""


@kernel
def _felt_mass_kg(airframe: Airframe, arm: Vector, direction: Vector) -> float:
    """Effective mass at ``arm`` along ``direction``: the impulse that changes the speed there by 1 m/s."""
    tx, ty, tz = cross(arm, direction)
    jx, jy, jz = airframe.inertia_kgm2
    return 1.0 / (1.0 / airframe.mass_kg + tx * tx / jx + ty * ty / jy + tz * tz / jz)


@kernel
def _set(row: npt.NDArray[np.float64], place: int, v: Vector) -> None:
    row[place] = v[0]
    row[place + 1] = v[1]
    row[place + 2] = v[2]


@kernel
def _get(row: npt.NDArray[np.float64], place: int) -> Vector:
    return row[place], row[place + 1], row[place + 2]


@kernel
def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def fill_row(
    airframe: Airframe,
    row: npt.NDArray[np.float64],
    arm: Vector,
    normal: Vector,
    gap_m: float,
    before_ns: Vector,
    surface_mps: Vector,
    most_ns: float,
    step_s: float,
) -> None:
    """Write a contact to ``row``, ``float64[ROW_SIZE]``.

    Args:
        airframe: Airframe of the vehicle.
        row: Written.
        arm: Vector from the centre of mass to the point, in the body.
        normal: Unit vector out of the obstacle, in the body.
        gap_m: Distance from the point to the obstacle.
        before_ns: Impulse at this point in the previous step, in the body.
        surface_mps: Velocity of the obstacle's surface, in the body.
        most_ns: Largest impulse along the normal, infinite for a rigid contact.
        step_s: Length of the step.
    """
    nx, ny, nz = normal
    ax, ay, az = (0.0, 1.0, 0.0) if abs(nx) > 0.7 else (1.0, 0.0, 0.0)
    along = nx * ax + ny * ay + nz * az
    fx, fy, fz = ax - along * nx, ay - along * ny, az - along * nz
    scale = 1.0 / math.sqrt(fx * fx + fy * fy + fz * fz)
    first = (fx * scale, fy * scale, fz * scale)
    second = cross(normal, first)
    _set(row, _ARM, arm)
    _set(row, _NORMAL, normal)
    _set(row, _FIRST, first)
    _set(row, _SECOND, second)
    _set(row, _SHARE, (_felt_mass_kg(airframe, arm, normal), _felt_mass_kg(airframe, arm, first), _felt_mass_kg(airframe, arm, second)))
    # Aim at the middle of the contact tolerance, so that a point at rest stays within it.
    row[_TARGET] = -max(gap_m - 0.5 * TOUCH_M, 0.0) / step_s if gap_m > TOUCH_M else 0.0
    _set(row, _DRIFT, (_dot(surface_mps, normal), _dot(surface_mps, first), _dot(surface_mps, second)))
    row[_MAX_PUSH] = most_ns
    bx, by, bz = before_ns
    kept = (_KEPT_RATIO * bx, _KEPT_RATIO * by, _KEPT_RATIO * bz)
    _set(row, _PUSH, (min(max(_dot(kept, normal), 0.0), row[_MAX_PUSH]), _dot(kept, first), _dot(kept, second)))


@kernel
def _speed(row: npt.NDArray[np.float64], direction: int, velocity: npt.NDArray[np.float64]) -> float:
    """Speed of a row's point along one of its directions relative to the surface; ``velocity`` is ``float64[6]``: linear and angular, in the body."""
    cx, cy, cz = cross((velocity[3], velocity[4], velocity[5]), _get(row, _ARM))
    drift_mps: float = row[_DRIFT + (direction - _NORMAL) // 3]
    return _dot((velocity[0] + cx, velocity[1] + cy, velocity[2] + cz), _get(row, direction)) - drift_mps


@kernel
def _push(airframe: Airframe, row: npt.NDArray[np.float64], direction: int, impulse_ns: float, velocity: npt.NDArray[np.float64]) -> None:
    """Apply an impulse at a row's point along one of its directions to ``velocity``."""
    along = _get(row, direction)
    tx, ty, tz = cross(_get(row, _ARM), along)
    jx, jy, jz = airframe.inertia_kgm2
    velocity[0] += impulse_ns * along[0] / airframe.mass_kg
    velocity[1] += impulse_ns * along[1] / airframe.mass_kg
    velocity[2] += impulse_ns * along[2] / airframe.mass_kg
    velocity[3] += impulse_ns * tx / jx
    velocity[4] += impulse_ns * ty / jy
    velocity[5] += impulse_ns * tz / jz


@kernel
def closing_speed(row: npt.NDArray[np.float64], velocity: npt.NDArray[np.float64]) -> float:
    """Closing speed of a row's point and the surface, m/s; negative when they separate."""
    return -_speed(row, _NORMAL, velocity)


@kernel
def _settle(airframe: Airframe, row: npt.NDArray[np.float64], friction: float, velocity: npt.NDArray[np.float64]) -> float:
    """Solve one row with all others fixed; returns the largest change of speed."""
    was = row[_PUSH]
    row[_PUSH] = min(max(was + row[_SHARE] * (row[_TARGET] - _speed(row, _NORMAL, velocity)), 0.0), row[_MAX_PUSH])
    _push(airframe, row, _NORMAL, row[_PUSH] - was, velocity)
    change: float = abs(row[_PUSH] - was) / row[_SHARE]
    first_was, second_was = row[_PUSH + 1], row[_PUSH + 2]
    first = first_was - row[_SHARE + 1] * _speed(row, _FIRST, velocity)
    second = second_was - row[_SHARE + 2] * _speed(row, _SECOND, velocity)
    most = friction * row[_PUSH]
    size = math.sqrt(first * first + second * second)
    if size > most:
        first *= most / size
        second *= most / size
    row[_PUSH + 1] = first
    row[_PUSH + 2] = second
    _push(airframe, row, _FIRST, first - first_was, velocity)
    _push(airframe, row, _SECOND, second - second_was, velocity)
    along: float = abs(first - first_was) / row[_SHARE + 1]
    aside: float = abs(second - second_was) / row[_SHARE + 2]
    return max(change, along, aside)


@kernel
def solve(airframe: Airframe, rows: npt.NDArray[np.float64], count: int, friction: float, velocity: npt.NDArray[np.float64]) -> None:
    """Change ``velocity`` so that ``count`` contacts are satisfied, and write their impulses; see ``impulse_of``.

    Args:
        airframe: Airframe of the vehicle.
        rows: ``float64[m, ROW_SIZE]``, each written by ``fill_row``.
        count: Number of rows.
        friction: Coefficient of friction.
        velocity: ``float64[6]``, linear and angular velocity in the body without contact.
    """
    for number in range(count):
        for direction in range(3):
            _push(airframe, rows[number], _NORMAL + 3 * direction, rows[number, _PUSH + direction], velocity)
    for _ in range(_SWEEPS):
        change = 0.0
        for number in range(count):
            change = max(change, _settle(airframe, rows[number], friction, velocity))
        if change < _SETTLED_MPS:
            break


@kernel
def impulse_of(row: npt.NDArray[np.float64]) -> Vector:
    """Impulse on the body at a row's point, in N s, in body axes."""
    n, f, s = row[_PUSH], row[_PUSH + 1], row[_PUSH + 2]
    return (
        n * row[_NORMAL] + f * row[_FIRST] + s * row[_SECOND],
        n * row[_NORMAL + 1] + f * row[_FIRST + 1] + s * row[_SECOND + 1],
        n * row[_NORMAL + 2] + f * row[_FIRST + 2] + s * row[_SECOND + 2],
    )


@kernel
def plane_velocity(plane: npt.NDArray[np.float64]) -> Vector:
    """Velocity of a plane's surface in the world, m/s; zero for a plane of four numbers."""
    if plane.size < PLANE_SIZE:
        return 0.0, 0.0, 0.0
    return _get(plane, 4)


@kernel
def plane_gap(plane: npt.NDArray[np.float64], point_m: Vector) -> float:
    """Distance of a point of the world from a plane ``float64[4]`` (unit normal and offset), positive outside; infinite where there is no plane."""
    offset_m: float = plane[3]
    return _dot(_get(plane, 0), point_m) - offset_m


@kernel
def plane_normal(plane: npt.NDArray[np.float64], orientation: Quaternion) -> Vector:
    """Normal of a plane of the world in body axes."""
    return rotate(conjugate(orientation), (plane[0], plane[1], plane[2]))


@kernel
def write_plane(plane: npt.NDArray[np.float64], point_m: Vector, normal: Vector) -> None:
    """Write the plane through a point with a unit normal, as for a ray hit, to ``plane`` ``float64[4]``."""
    _set(plane, 0, normal)
    plane[3] = _dot(normal, point_m)


@kernel
def write_no_plane(plane: npt.NDArray[np.float64]) -> None:
    """Write "no surface" to ``plane`` ``float64[4]``."""
    _set(plane, 0, (0.0, 0.0, 1.0))
    plane[3] = -math.inf


def plane_through(point_m: Vector, normal: Vector) -> npt.NDArray[np.float64]:
    """Plane through a point, ``float64[4]``: unit normal and offset. A point is outside where ``normal @ point > offset``.

    Raises:
        ValueError: the normal has length 0.
    """
    length = math.hypot(*normal)
    if not 0.0 < length < math.inf:
        raise ValueError(f"normal must have a length, got {normal}")
    plane = np.empty(4)
    x, y, z = (float(part) for part in point_m)
    write_plane(plane, (x, y, z), (normal[0] / length, normal[1] / length, normal[2] / length))
    return plane


def no_planes(count: int) -> npt.NDArray[np.float64]:
    """``float64[count, 4]`` without any surface."""
    planes = np.empty((count, 4))
    for plane in planes:
        write_no_plane(plane)
    return planes
