"""Aerodynamic forces on a multirotor: the right-hand side of its equations of motion.

Rotors: thrust ``k s^2`` (s: rotor speed), reduced in proportion to the inflow along the axis; a force and a torque against the air from the
side, in proportion to ``s`` (Martin and Salaun, "The true role of accelerometer feedback in quadrotor control", ICRA 2010). Body: drag ``-1/2 rho
|u| A u``. The equations are in ``docs/reference/vehicle.md``.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import conjugate, rotate

SEA_LEVEL_DENSITY_KGPM3 = 1.225
"""ICAO standard atmosphere (Doc 7488), height 0: the density for which rotor coefficients are given."""
POSITION, VELOCITY, ORIENTATION, RATES = 0, 3, 6, 10
"""Offsets in a motion ``float64[13]``: position (m) and velocity (m/s) in the world; quaternion, world from body; rates (rad/s) in the body."""
MOTION_SIZE = 13
_HUB, _AXIS, _SPIN = 0, 3, 6
_MAX_THRUST_RATIO = 2.0  # the linear dependence of thrust on inflow does not hold in the vortex ring state


class Airframe(NamedTuple):
    """Parameters of forces and motion for kernels; build with ``build_airframe``.

    Attributes:
        mass_kg: ``VehicleSpec.mass_kg``.
        inertia_kgm2: ``VehicleSpec.inertia_kgm2``.
        gravity_mps2: Gravity, downwards.
        rotor: ``float64[n, 7]``: hub, axis, +1 for ccw and -1 for cw.
        thrust_n_per_radps2: Thrust coefficient in the given air density.
        torque_ratio_m: ``PropulsionSpec.torque_ratio_m``.
        rotor_inertia_kgm2: Moment of inertia of one rotor.
        side_drag_n_per_mps_radps: Side drag coefficient in the given air density.
        rolling_nm_per_mps_radps: Rolling torque coefficient in the given air density.
        inflow_limit_mps: ``PropulsionSpec.inflow_limit_mps``.
        drag_n_per_mps2: Half of density times drag area, along x, y and z.
    """

    mass_kg: float
    inertia_kgm2: Vector
    gravity_mps2: float
    rotor: npt.NDArray[np.float64]
    thrust_n_per_radps2: float
    torque_ratio_m: float
    rotor_inertia_kgm2: float
    side_drag_n_per_mps_radps: float
    rolling_nm_per_mps_radps: float
    inflow_limit_mps: float
    drag_n_per_mps2: Vector


def build_airframe(spec: VehicleSpec, gravity_mps2: float, density_kgpm3: float) -> Airframe:
    """Build the airframe of ``spec`` in air of a given density."""
    ratio = density_kgpm3 / SEA_LEVEL_DENSITY_KGPM3
    jxx, jyy, jzz = (float(part) for part in spec.inertia_kgm2)
    ax, ay, az = (0.5 * density_kgpm3 * float(area) for area in spec.drag_area_m2)
    return Airframe(
        mass_kg=float(spec.mass_kg),
        inertia_kgm2=(jxx, jyy, jzz),
        gravity_mps2=float(gravity_mps2),
        rotor=np.array([(*rotor.position_m, *rotor.axis, 1.0 if rotor.spin == "ccw" else -1.0) for rotor in spec.rotors], dtype=np.float64),
        thrust_n_per_radps2=ratio * float(spec.propulsion.thrust_n_per_radps2),
        torque_ratio_m=float(spec.propulsion.torque_ratio_m),
        rotor_inertia_kgm2=float(spec.propulsion.inertia_kgm2),
        side_drag_n_per_mps_radps=ratio * float(spec.propulsion.drag_n_per_mps_radps),
        rolling_nm_per_mps_radps=ratio * float(spec.propulsion.rolling_nm_per_mps_radps),
        inflow_limit_mps=float(spec.propulsion.inflow_limit_mps),
        drag_n_per_mps2=(ax, ay, az),
    )


@kernel
def cross(a: Vector, b: Vector) -> Vector:
    """Vector product."""
    ax, ay, az = a
    bx, by, bz = b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@kernel
def air_velocity(orientation: Quaternion, velocity_mps: Vector, wind_mps: Vector) -> Vector:
    """Velocity of the body through the air, in body axes."""
    vx, vy, vz = velocity_mps
    wx, wy, wz = wind_mps
    return rotate(conjugate(orientation), (vx - wx, vy - wy, vz - wz))


@kernel
def rotor_loads(airframe: Airframe, number: int, speed_radps: float, air_mps: Vector, rates_radps: Vector) -> tuple[Vector, Vector]:
    """Aerodynamic force (N) and torque about the centre of mass (Nm) of a rotor, in body axes.

    Args:
        airframe: Airframe of the vehicle.
        number: Number of the rotor.
        speed_radps: Rotor speed, not negative.
        air_mps: The body's velocity through the air, in body axes.
        rates_radps: Angular rates of the body.
    """
    row = airframe.rotor[number]
    hub = (row[_HUB], row[_HUB + 1], row[_HUB + 2])
    ax, ay, az = row[_AXIS], row[_AXIS + 1], row[_AXIS + 2]
    cx, cy, cz = cross(rates_radps, hub)
    ux, uy, uz = air_mps[0] + cx, air_mps[1] + cy, air_mps[2] + cz
    along = ux * ax + uy * ay + uz * az
    sx, sy, sz = ux - along * ax, uy - along * ay, uz - along * az
    thrust = airframe.thrust_n_per_radps2 * speed_radps * speed_radps * min(max(1.0 - along / airframe.inflow_limit_mps, 0.0), _MAX_THRUST_RATIO)
    drag = airframe.side_drag_n_per_mps_radps * speed_radps
    rolling = airframe.rolling_nm_per_mps_radps * speed_radps
    twist = -row[_SPIN] * airframe.torque_ratio_m * thrust
    force = (thrust * ax - drag * sx, thrust * ay - drag * sy, thrust * az - drag * sz)
    tx, ty, tz = cross(hub, force)
    return force, (tx + twist * ax - rolling * sx, ty + twist * ay - rolling * sy, tz + twist * az - rolling * sz)


@kernel
def motion_derivative(
    airframe: Airframe,
    motion: npt.NDArray[np.float64],
    wind_mps: Vector,
    speed_radps: npt.NDArray[np.float64],
    growth_radps2: npt.NDArray[np.float64],
    derivative: npt.NDArray[np.float64],
) -> None:
    """Write the time derivative of ``motion`` to ``derivative``, both ``float64[13]``.

    Args:
        airframe: Airframe of the vehicle.
        motion: Motion; see ``POSITION``.
        wind_mps: Velocity of the air in the world.
        speed_radps: ``float64[n]``, rotor speeds.
        growth_radps2: ``float64[n]``, rotor accelerations, whose reaction turns the body the opposite way.
        derivative: Written.
    """
    q = (motion[ORIENTATION], motion[ORIENTATION + 1], motion[ORIENTATION + 2], motion[ORIENTATION + 3])
    rates = (motion[RATES], motion[RATES + 1], motion[RATES + 2])
    air = air_velocity(q, (motion[VELOCITY], motion[VELOCITY + 1], motion[VELOCITY + 2]), wind_mps)
    speed = math.sqrt(air[0] * air[0] + air[1] * air[1] + air[2] * air[2])
    dx, dy, dz = airframe.drag_n_per_mps2
    fx, fy, fz = -dx * speed * air[0], -dy * speed * air[1], -dz * speed * air[2]
    jx, jy, jz = airframe.inertia_kgm2
    hx, hy, hz = jx * rates[0], jy * rates[1], jz * rates[2]
    tx, ty, tz = 0.0, 0.0, 0.0
    for number in range(airframe.rotor.shape[0]):
        force, torque = rotor_loads(airframe, number, speed_radps[number], air, rates)
        row = airframe.rotor[number]
        spin = row[_SPIN] * airframe.rotor_inertia_kgm2
        turning = spin * speed_radps[number]
        growing = spin * growth_radps2[number]
        fx, fy, fz = fx + force[0], fy + force[1], fz + force[2]
        hx, hy, hz = hx + turning * row[_AXIS], hy + turning * row[_AXIS + 1], hz + turning * row[_AXIS + 2]
        tx = tx + torque[0] - growing * row[_AXIS]
        ty = ty + torque[1] - growing * row[_AXIS + 1]
        tz = tz + torque[2] - growing * row[_AXIS + 2]
    gx, gy, gz = cross(rates, (hx, hy, hz))
    ax, ay, az = rotate(q, (fx / airframe.mass_kg, fy / airframe.mass_kg, fz / airframe.mass_kg))
    for part in range(3):
        derivative[POSITION + part] = motion[VELOCITY + part]
    derivative[VELOCITY] = ax
    derivative[VELOCITY + 1] = ay
    derivative[VELOCITY + 2] = az - airframe.gravity_mps2
    w, x, y, z = q
    derivative[ORIENTATION] = 0.5 * (-x * rates[0] - y * rates[1] - z * rates[2])
    derivative[ORIENTATION + 1] = 0.5 * (w * rates[0] + y * rates[2] - z * rates[1])
    derivative[ORIENTATION + 2] = 0.5 * (w * rates[1] + z * rates[0] - x * rates[2])
    derivative[ORIENTATION + 3] = 0.5 * (w * rates[2] + x * rates[1] - y * rates[0])
    derivative[RATES] = (tx - gx) / jx
    derivative[RATES + 1] = (ty - gy) / jy
    derivative[RATES + 2] = (tz - gz) / jz
