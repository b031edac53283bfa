"""Flight control loops: position, velocity, attitude, rate, and the mixer of a quad x. Gains are PX4 1.12's defaults where it has such a gain (MC_*, MPC_*).

It knows neither mass nor thrust of the vehicle. An integral term finds the hover thrust.
"""

import math

import numpy as np

from hilsim_flight_controller.flying.attitude import Floats, Quaternion, conjugate, cross, direction, from_axes, limited, multiply
from hilsim_flight_controller.flying.estimator import GRAVITY_MPS2, Estimator

HOVER_THRUST = 0.5  # MPC_THR_HOVER
_POSITION, _HEIGHT = 0.95, 1.0
_VELOCITY = np.array([1.8, 1.8, 4.0])
_INTEGRAL = np.array([0.4, 0.4, 2.0])
_MAX_INTEGRAL = np.array([3.0, 3.0, 7.0])
_UP, _DOWN = 1.5, 0.7
_LEAN = math.tan(math.radians(30.0))
_ATTITUDE = np.array([6.5, 6.5, 2.8])
_MAX_RATES = np.array([3.8, 3.8, 1.0])
_RATE_P = np.array([0.15, 0.15, 0.2])
_RATE_I = np.array([0.2, 0.2, 0.1])
_RATE_D = np.array([0.003, 0.003, 0.0])
_MAX_RATE_I = 0.3
_D_CUTOFF_S = 1.0 / (2.0 * math.pi * 30.0)
_MIX = np.array([[-0.707, 0.707, 1.0], [0.707, -0.707, 1.0], [0.707, 0.707, -1.0], [-0.707, -0.707, -1.0]])
"""Front right (ccw), rear left (ccw), front left (cw), rear right (cw): weights of roll, pitch and yaw."""


class Pilot:
    """Commands for four motors from an estimate and a position setpoint.

    Attributes:
        fastest_mps: Largest horizontal speed commanded by the position loop.
    """

    def __init__(self) -> None:
        self.fastest_mps = 3.0
        self.reset()

    def reset(self) -> None:
        """Reset the integrals."""
        self.integral: Floats = np.zeros(3)
        self.rate_integral: Floats = np.zeros(3)
        self.last_rates: Floats | None = None
        self.slope: Floats = np.zeros(3)
        self.force_mps2 = 0.0  # commanded thrust in units of acceleration

    def fly(self, estimate: Estimator, step_s: float, place: Floats, yaw: float, climb: float | None = None) -> Floats:
        """Motor commands, 0 to 1. ``place`` (m) is in NED, ``yaw`` in rad; ``climb`` (m/s, down positive) replaces its height."""
        wanted = self._velocity(estimate, place, climb)
        force = self._force(estimate, step_s, wanted)
        attitude = _attitude(force, yaw)
        up = -estimate.r[:, 2]
        self.force_mps2 = max(float(force @ up), 0.1 * GRAVITY_MPS2)
        torque = self._torque(estimate, step_s, attitude)
        return mix(HOVER_THRUST * self.force_mps2 / GRAVITY_MPS2, torque)

    def _velocity(self, estimate: Estimator, place: Floats, climb: float | None) -> Floats:
        away = np.asarray(place) - estimate.p
        wanted = np.array([_POSITION * away[0], _POSITION * away[1], _HEIGHT * away[2]])
        level = math.hypot(wanted[0], wanted[1])
        if level > self.fastest_mps:
            wanted[:2] *= self.fastest_mps / level
        wanted[2] = min(max(wanted[2], -_UP), _DOWN) if climb is None else climb
        return wanted

    def _force(self, estimate: Estimator, step_s: float, wanted: Floats) -> Floats:
        """Commanded specific force, NED; in hover it is (0, 0, -g)."""
        error = wanted - estimate.v
        self.integral = limited(self.integral + _INTEGRAL * error * step_s, _MAX_INTEGRAL)
        force: Floats = _VELOCITY * error + self.integral
        force[2] = min(force[2] - GRAVITY_MPS2, -0.2 * GRAVITY_MPS2)
        level, most = math.hypot(force[0], force[1]), -force[2] * _LEAN
        if level > most:
            force[:2] *= most / level
        return force

    def _torque(self, estimate: Estimator, step_s: float, attitude: Quaternion) -> Floats:
        error = multiply(conjugate(estimate.q), attitude)
        sign = 2.0 if error[0] >= 0.0 else -2.0
        wanted = limited(sign * _ATTITUDE * np.array(error[1:]), _MAX_RATES)
        rates = estimate.rates
        if self.last_rates is not None and step_s > 0.0:
            share = step_s / (step_s + _D_CUTOFF_S)
            self.slope = self.slope + share * ((rates - self.last_rates) / step_s - self.slope)
        self.last_rates = rates
        difference = wanted - rates
        self.rate_integral = limited(self.rate_integral + _RATE_I * difference * step_s, _MAX_RATE_I)
        torque: Floats = _RATE_P * difference + self.rate_integral - _RATE_D * self.slope
        return torque


def _attitude(force: Floats, yaw: float) -> Quaternion:
    """Orientation (NED from FRD) with -z along a force, and x as near to a heading as possible."""
    north, east, down = force.tolist()
    z = direction((-north, -east, -down))
    y = direction(cross(z, (math.cos(yaw), math.sin(yaw), 0.0)))
    return from_axes(cross(y, z), y, z)


def mix(thrust: float, torque: Floats) -> Floats:
    """Four motor commands, 0 to 1: roll and pitch have priority over thrust, thrust over yaw."""
    tilt: Floats = _MIX[:, :2] @ torque[:2]
    span = float(tilt.max() - tilt.min())
    if span > 1.0:
        tilt = tilt / span
    thrust = min(max(thrust, -float(tilt.min())), 1.0 - float(tilt.max()))
    motors = thrust + tilt
    twist = _MIX[:, 2] * torque[2]
    room = 1.0
    for motor, share in zip(motors, twist, strict=True):
        if share > 0.0:
            room = min(room, (1.0 - motor) / share)
        elif share < 0.0:
            room = min(room, motor / -share)
    found: Floats = np.clip(motors + max(room, 0.0) * twist, 0.0, 1.0)
    return found
