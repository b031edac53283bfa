"""A position hold that follows a pose track from the true state, for demos and tests without a flight controller.

Four cascaded loops: position commands a velocity, velocity an acceleration, acceleration an attitude and a thrust, attitude the rates; torques
and thrust are allocated to the rotors by the pseudo-inverse of their effects. The hold has its own period, independent of the vehicle's step. It knows
the
vehicle's parameters but not the wind: an integral term estimates it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, kernel, stage_kernel
from hilsim.errors import require, within
from hilsim.parts.vehicle.physics.multirotor import Multirotor, MultirotorState, orientation_of, position_of, rates_of, velocity_of
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.rotations import about_axis, conjugate, multiply, normalise, rotate
from hilsim.world.geometry.tracks import PoseTrack, track_state

_SLOPE_NS = 10_000_000  # the track's velocity is the mean over this time before and after
_MIN_THRUST_RATIO = 0.1  # of the weight: rotors must turn to control the attitude
_UPRIGHT = 1e-6


@dataclass(frozen=True, kw_only=True)
class HoldSpec:
    """Gains and limits of a position hold; the defaults fly the shipped vehicles.

    Attributes:
        period_ns: Period of the commands; 1,000,000 to 20,000,000.
        position_per_s: Gain from distance to speed.
        velocity_per_s: Gain from velocity error to acceleration.
        integral_per_s2: Gain of the integral of the velocity error.
        attitude_per_s: Gain from attitude error to rate.
        rate_per_s: Gain from rate error to angular acceleration.
        speed_mps: Largest speed commanded by the position loop.
        tilt_deg: Largest tilt.
    """

    period_ns: int = 4_000_000
    position_per_s: float = 1.0
    velocity_per_s: float = 3.0
    integral_per_s2: float = 1.0
    attitude_per_s: float = 7.0
    rate_per_s: float = 20.0
    speed_mps: float = 6.0
    tilt_deg: float = 35.0

    def __post_init__(self) -> None:
        require(
            *within(self, period_ns=(1_000_000, 20_000_000), integral_per_s2=(0, 100), tilt_deg=(1, 60)),
            *(
                (0.0 < getattr(self, name) <= 100.0, f"{name} must be above 0 and at most 100, got {getattr(self, name)}")
                for name in ("position_per_s", "velocity_per_s", "attitude_per_s", "rate_per_s", "speed_mps")
            ),
        )


@by_reference
class Hold(NamedTuple):
    """A position hold for kernels; build with ``build_hold``. Further attributes as in ``HoldSpec``.

    Attributes:
        lean: Tangent of the largest tilt.
        share: ``float64[n, 4]``: thrust of each rotor for a total thrust (N) and torques (Nm) about x, y and z.
    """

    period_ns: int
    position_per_s: float
    velocity_per_s: float
    integral_per_s2: float
    attitude_per_s: float
    rate_per_s: float
    speed_mps: float
    lean: float
    share: npt.NDArray[np.float64]


@by_reference
class HoldState(NamedTuple):
    """State of a hold; arrays, written by ``hold_command``.

    Attributes:
        learned_mps2: ``float64[3]``, integral of the velocity error as an acceleration in the world.
    """

    learned_mps2: npt.NDArray[np.float64]


def build_hold(spec: HoldSpec, vehicle: VehicleSpec) -> Hold:
    """Build the hold of ``spec`` for a vehicle.

    Raises:
        ValueError: the vehicle's rotors cannot produce thrust and torque about all three axes.
    """
    spins = [1.0 if rotor.spin == "ccw" else -1.0 for rotor in vehicle.rotors]
    twist = vehicle.propulsion.torque_ratio_m
    effect = np.array(
        [
            (rotor.axis[2], *(np.cross(rotor.position_m, rotor.axis) - spin * twist * np.asarray(rotor.axis)))
            for rotor, spin in zip(vehicle.rotors, spins, strict=True)
        ]
    ).T
    if np.linalg.matrix_rank(effect) < 4:
        raise ValueError(f"{vehicle.model}: rotors must push and turn about all three axes for the position hold, got {len(spins)} that do not")
    return Hold(
        period_ns=int(spec.period_ns),
        position_per_s=float(spec.position_per_s),
        velocity_per_s=float(spec.velocity_per_s),
        integral_per_s2=float(spec.integral_per_s2),
        attitude_per_s=float(spec.attitude_per_s),
        rate_per_s=float(spec.rate_per_s),
        speed_mps=float(spec.speed_mps),
        lean=math.tan(math.radians(spec.tilt_deg)),
        share=np.ascontiguousarray(np.linalg.pinv(effect)),
    )


def hold_start() -> HoldState:
    """State of a hold with a zero integral."""
    return HoldState(np.zeros(3))


@kernel
def _limited(v: Vector, most: float) -> Vector:
    size = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    scale = most / size if size > most else 1.0
    return scale * v[0], scale * v[1], scale * v[2]


@kernel
def _wanted_force(hold: Hold, hold_state: HoldState, multirotor: Multirotor, state: MultirotorState, track: PoseTrack) -> Vector:
    """Commanded force (N, world) of the rotors; advances the integral."""
    now = state.time_ns[0]
    target, _ = track_state(track, now)
    ahead, _ = track_state(track, now + _SLOPE_NS)
    behind, _ = track_state(track, now - _SLOPE_NS)
    span_s = 2e-9 * _SLOPE_NS
    x, y, z = position_of(state)
    vx, vy, vz = velocity_of(state)
    gain = hold.position_per_s
    cx, cy, cz = _limited((gain * (target[0] - x), gain * (target[1] - y), gain * (target[2] - z)), hold.speed_mps)
    ex = cx + (ahead[0] - behind[0]) / span_s - vx
    ey = cy + (ahead[1] - behind[1]) / span_s - vy
    ez = cz + (ahead[2] - behind[2]) / span_s - vz
    gravity = multirotor.airframe.gravity_mps2
    grown = hold.integral_per_s2 * hold.period_ns * 1e-9
    learned = hold_state.learned_mps2
    lx, ly, lz = _limited((learned[0] + grown * ex, learned[1] + grown * ey, learned[2] + grown * ez), 0.5 * gravity)
    learned[0] = lx
    learned[1] = ly
    learned[2] = lz
    up = max(gravity + hold.velocity_per_s * ez + lz, _MIN_THRUST_RATIO * gravity)
    east, north = hold.velocity_per_s * ex + lx, hold.velocity_per_s * ey + ly
    level = math.sqrt(east * east + north * north)
    scale = hold.lean * up / level if level > hold.lean * up else 1.0
    mass_kg = multirotor.airframe.mass_kg
    return mass_kg * scale * east, mass_kg * scale * north, mass_kg * up


@kernel
def _attitude_towards(force_n: Vector, yaw_rad: float) -> Quaternion:
    """Orientation (world from body) with z along an upward force and x as near to the yaw as possible: yaw first, then the shortest tilt."""
    size = math.sqrt(force_n[0] * force_n[0] + force_n[1] * force_n[1] + force_n[2] * force_n[2])
    zx, zy, zz = force_n[0] / size, force_n[1] / size, force_n[2] / size
    tilt = normalise((1.0 + zz, -zy, zx, 0.0))
    return multiply(tilt, about_axis((0.0, 0.0, 1.0), yaw_rad))


@kernel
def _yaw_of(q: Quaternion) -> float:
    """Yaw of a body whose x axis is not vertical."""
    x, y, _ = rotate(q, (1.0, 0.0, 0.0))
    return math.atan2(y, x) if abs(x) + abs(y) > _UPRIGHT else 0.0


@kernel
def _wanted_torque(hold: Hold, multirotor: Multirotor, state: MultirotorState, attitude: Quaternion) -> Vector:
    """Torque (Nm, body) that turns the vehicle to an attitude."""
    w, x, y, z = multiply(conjugate(orientation_of(state)), attitude)
    gain = 2.0 * hold.attitude_per_s if w >= 0.0 else -2.0 * hold.attitude_per_s
    p, q, r = rates_of(state)
    jx, jy, jz = multirotor.airframe.inertia_kgm2
    rate = hold.rate_per_s
    return jx * rate * (gain * x - p), jy * rate * (gain * y - q), jz * rate * (gain * z - r)


@kernel
def command_for(multirotor: Multirotor, thrust_n: float) -> float:
    """Steady-state command for a rotor's thrust, the inverse of ``target_speed``. Above 1 the rotor cannot produce it."""
    square = max(thrust_n, 0.0) / multirotor.airframe.thrust_n_per_radps2
    idle, top = multirotor.idle_speed_radps, multirotor.top_speed_radps
    if multirotor.linear_thrust:
        return (square - idle * idle) / (top * top - idle * idle)
    return (math.sqrt(square) - idle) / (top - idle)


@kernel
def _mix(hold: Hold, multirotor: Multirotor, thrust_n: float, torque_nm: Vector, command: npt.NDArray[np.float64]) -> None:
    """Allocate thrust and torque to the rotors; the torque about z is reduced to what the rotors' limits leave."""
    most = multirotor.airframe.thrust_n_per_radps2 * multirotor.top_speed_radps * multirotor.top_speed_radps
    least = multirotor.airframe.thrust_n_per_radps2 * multirotor.idle_speed_radps * multirotor.idle_speed_radps
    room = 1.0
    for number in range(command.shape[0]):
        share = hold.share[number]
        base = share[0] * thrust_n + share[1] * torque_nm[0] + share[2] * torque_nm[1]
        yaw = share[3] * torque_nm[2]
        if yaw > 0.0:
            room = min(room, max(most - base, 0.0) / yaw)
        elif yaw < 0.0:
            room = min(room, max(base - least, 0.0) / -yaw)
    for number in range(command.shape[0]):
        share = hold.share[number]
        thrust = share[0] * thrust_n + share[1] * torque_nm[0] + share[2] * torque_nm[1] + room * share[3] * torque_nm[2]
        command[number] = min(max(command_for(multirotor, thrust), 0.0), 1.0)


@stage_kernel
def hold_command(
    hold: Hold, hold_state: HoldState, multirotor: Multirotor, state: MultirotorState, track: PoseTrack, command: npt.NDArray[np.float64]
) -> None:
    """Write the commands ``float64[n]``, 0 to 1, that move the vehicle to the track's current position; call every ``period_ns``.

    The hold follows the track's position and yaw, not its roll and pitch.
    """
    force = _wanted_force(hold, hold_state, multirotor, state, track)
    _, turn = track_state(track, state.time_ns[0])
    up_x, up_y, up_z = rotate(orientation_of(state), (0.0, 0.0, 1.0))
    weight_n = multirotor.airframe.mass_kg * multirotor.airframe.gravity_mps2
    thrust_n = max(force[0] * up_x + force[1] * up_y + force[2] * up_z, _MIN_THRUST_RATIO * weight_n)
    torque = _wanted_torque(hold, multirotor, state, _attitude_towards(force, _yaw_of(turn)))
    _mix(hold, multirotor, thrust_n, torque, command)
