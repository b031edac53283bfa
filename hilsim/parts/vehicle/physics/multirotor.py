"""Simulation of a multirotor: rotors with a lag, a rigid body in the air, contact with the ground and with obstacles.

A step is a function of the previous state and of its arguments; time is counted in whole nanoseconds. In the air the fourth-order Runge-Kutta
method integrates the motion, with rotor speeds exact at each of its stages (a first-order lag has a closed form). It is explicit, needs no
step-size control at 1 ms, and its error is far below every sensor's noise: docs/decisions/0045. Contact is then solved for velocities
(``hilsim.parts.vehicle.physics.contact``).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, kernel, stage_kernel
from hilsim.errors import require
from hilsim.parts.vehicle.physics.aerodynamics import (
    MOTION_SIZE,
    ORIENTATION,
    POSITION,
    RATES,
    SEA_LEVEL_DENSITY_KGPM3,
    VELOCITY,
    Airframe,
    build_airframe,
    motion_derivative,
)
from hilsim.parts.vehicle.physics.contact import (
    MAX_PUSH_MPS2,
    ROW_SIZE,
    TOUCH_M,
    closing_speed,
    fill_row,
    impulse_of,
    plane_gap,
    plane_normal,
    plane_velocity,
    solve,
)
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.world.geometry.frames import IDENTITY, Quaternion, Vector
from hilsim.world.geometry.rotations import conjugate, normalise, rotate, turned_by

STANDARD_GRAVITY_MPS2 = 9.80665
MAX_OBSTACLES = 4
"""Largest number of surfaces, beside the ground, that can stop a vehicle at once."""
_S_PER_NS = 1e-9
MAX_STRIKE_SINE = 0.5
"""Largest sine of the angle between a rotor's disc and the direction of an obstacle that its blades strike: 30 degrees. Above and below, other parts touch it."""
_NEAR_M = 0.02  # contact rows are made for surfaces nearer than this plus the distance that the vehicle may travel in the step
_YIELD_RATIO = 0.35
"""Share of the collision radius by which arms and guards yield before the frame meets an obstacle at rest: an impact at 5 m/s needs 0.125 m of the Iris's 0.14 m."""
_LIFT_RATIO = 0.2
_MAX_LIFT_M = 1e-4
"""Largest correction in a step: 0.1 m/s, below the noise of a receiver and a barometer; an inertial sensor does not measure it."""


@by_reference
class Multirotor(NamedTuple):
    """A vehicle for kernels; build with ``build_multirotor``.

    Attributes:
        step_ns: Length of a step.
        airframe: Forces and masses.
        top_speed_radps: Rotor speed at command 1.
        idle_speed_radps: Rotor speed just above command 0.
        linear_thrust: Whether the thrust, not the speed, is linear in the command.
        decay: ``float64[2, 3]``, remaining ratio of a speed difference at the beginning, the middle and the end of a step; falling, rising.
        lag_s: ``float64[2]``: time constants, falling and rising.
        point: ``float64[p, 3]``: legs, then hull.
        legs: Number of the points that are legs.
        friction_ratio: ``VehicleSpec.friction_ratio``.
        collision_radius_m: ``VehicleSpec.collision_radius_m``.
        has_guards: ``VehicleSpec.has_propeller_guards``.
        rotor_radius_m: ``PropulsionSpec.rotor_radius_m``.
        crash_mps: ``VehicleSpec.crash_mps``.
    """

    step_ns: int
    airframe: Airframe
    top_speed_radps: float
    idle_speed_radps: float
    linear_thrust: bool
    decay: npt.NDArray[np.float64]
    lag_s: npt.NDArray[np.float64]
    point: npt.NDArray[np.float64]
    legs: int
    friction_ratio: float
    collision_radius_m: float
    has_guards: bool
    rotor_radius_m: float
    crash_mps: float


@by_reference
class MultirotorState(NamedTuple):
    """Variables of the simulation; arrays, written by ``step``. Made by ``state_at``.

    Attributes:
        time_ns: ``int64[1]``, rig time.
        motion: ``float64[13]``, motion; see ``hilsim.parts.vehicle.physics.aerodynamics.POSITION``.
        rotor_radps: ``float64[n]``, rotor speeds.
        impulse_ns: ``float64[p + MAX_OBSTACLES, 3]``, impulse of the last step at each point and obstacle, in the world; divided by the step's length it is a
            force.
        specific_force_mps2: ``float64[3]``, mean specific force of the last step at the centre of mass, in body axes: the reading of an ideal accelerometer.
        closing_mps: ``float64[2]``, largest closing speed that the last step stopped: at the ground, at an obstacle. 0 without contact; at rest it
            is the speed gained in one step of free fall.
        crashed: ``int64[1]``, 1 once a closing speed was above ``crash_mps``; the rotors then stop permanently.
        broken: ``int64[n]``, 1 for each rotor whose blades struck an obstacle; it has stopped permanently.
    """

    time_ns: npt.NDArray[np.int64]
    motion: npt.NDArray[np.float64]
    rotor_radps: npt.NDArray[np.float64]
    impulse_ns: npt.NDArray[np.float64]
    specific_force_mps2: npt.NDArray[np.float64]
    closing_mps: npt.NDArray[np.float64]
    crashed: npt.NDArray[np.int64]
    broken: npt.NDArray[np.int64]


def build_multirotor(
    spec: VehicleSpec, *, step_ns: int = 1_000_000, gravity_mps2: float = STANDARD_GRAVITY_MPS2, density_kgpm3: float = SEA_LEVEL_DENSITY_KGPM3
) -> Multirotor:
    """Build the vehicle of ``spec`` with a step, gravity and air density.

    Raises:
        ValueError: a parameter is out of range.
    """
    require(
        (50_000 <= step_ns <= 1_000_000, f"step_ns must be 50000 to 1000000 (1 kHz or faster), got {step_ns}"),
        (0.0 <= gravity_mps2 <= 30.0, f"gravity_mps2 must be 0 to 30, got {gravity_mps2}"),
        (0.0 <= density_kgpm3 <= 2.0, f"density_kgpm3 must be 0 to 2, got {density_kgpm3}"),
    )
    lag_s = np.array([spec.propulsion.spin_down_s, spec.propulsion.spin_up_s], dtype=np.float64)
    return Multirotor(
        step_ns=int(step_ns),
        airframe=build_airframe(spec, gravity_mps2, density_kgpm3),
        top_speed_radps=float(spec.propulsion.top_speed_radps),
        idle_speed_radps=float(spec.propulsion.idle_speed_radps),
        linear_thrust=spec.propulsion.response == "thrust",
        decay=np.exp(-np.outer(1.0 / lag_s, [0.0, 0.5 * step_ns * _S_PER_NS, step_ns * _S_PER_NS])),
        lag_s=lag_s,
        point=np.array((*spec.legs, *spec.hull), dtype=np.float64),
        legs=len(spec.legs),
        friction_ratio=float(spec.friction_ratio),
        collision_radius_m=float(spec.collision_radius_m),
        has_guards=bool(spec.has_propeller_guards),
        rotor_radius_m=float(spec.propulsion.rotor_radius_m),
        crash_mps=float(spec.crash_mps),
    )


def state_at(
    multirotor: Multirotor,
    position_m: Vector = (0.0, 0.0, 0.0),
    orientation: Quaternion = IDENTITY,
    *,
    velocity_mps: Vector = (0.0, 0.0, 0.0),
    rates_radps: Vector = (0.0, 0.0, 0.0),
    rotor_radps: float = 0.0,
    time_ns: int = 0,
) -> MultirotorState:
    """Build a state with all rotors at one speed; position of the centre of mass and velocity in the world, rates in the body."""
    return MultirotorState(
        time_ns=np.array([time_ns], dtype=np.int64),
        motion=np.array([*position_m, *velocity_mps, *normalise(orientation), *rates_radps], dtype=np.float64),
        rotor_radps=np.full(multirotor.airframe.rotor.shape[0], rotor_radps, dtype=np.float64),
        impulse_ns=np.zeros((multirotor.point.shape[0] + MAX_OBSTACLES, 3)),
        specific_force_mps2=np.zeros(3),
        closing_mps=np.zeros(2),
        crashed=np.zeros(1, dtype=np.int64),
        broken=np.zeros(multirotor.airframe.rotor.shape[0], dtype=np.int64),
    )


@kernel
def position_of(state: MultirotorState) -> Vector:
    """Position of the centre of mass in the world, metres."""
    return state.motion[POSITION], state.motion[POSITION + 1], state.motion[POSITION + 2]


@kernel
def velocity_of(state: MultirotorState) -> Vector:
    """Velocity in the world, m/s."""
    return state.motion[VELOCITY], state.motion[VELOCITY + 1], state.motion[VELOCITY + 2]


@kernel
def orientation_of(state: MultirotorState) -> Quaternion:
    """Orientation, world from body."""
    return _orientation(state.motion)


@kernel
def rates_of(state: MultirotorState) -> Vector:
    """Angular rates in the body, rad/s."""
    return state.motion[RATES], state.motion[RATES + 1], state.motion[RATES + 2]


@kernel
def point_in_world(multirotor: Multirotor, motion: npt.NDArray[np.float64], number: int) -> Vector:
    """Position of a leg or hull point, metres; the caller looks up the ground there."""
    point = multirotor.point[number]
    x, y, z = rotate(_orientation(motion), (point[0], point[1], point[2]))
    return motion[POSITION] + x, motion[POSITION + 1] + y, motion[POSITION + 2] + z


@kernel
def legs_down(multirotor: Multirotor, state: MultirotorState) -> int:
    """Number of legs under load in the last step, which shows a landing."""
    count = 0
    for number in range(multirotor.legs):
        if state.impulse_ns[number, 0] != 0.0 or state.impulse_ns[number, 1] != 0.0 or state.impulse_ns[number, 2] != 0.0:
            count += 1
    return count


@kernel
def broken_rotors(state: MultirotorState) -> int:
    """Number of rotors whose blades are broken."""
    count = 0
    for number in range(state.broken.shape[0]):
        count += state.broken[number]
    return count


@kernel
def is_damaged(state: MultirotorState) -> bool:
    """Whether the vehicle has crashed or lost blades: it cannot fly until it is reset."""
    return bool(state.crashed[0] != 0 or broken_rotors(state) != 0)


@kernel
def _orientation(motion: npt.NDArray[np.float64]) -> Quaternion:
    return motion[ORIENTATION], motion[ORIENTATION + 1], motion[ORIENTATION + 2], motion[ORIENTATION + 3]


@kernel
def target_speed(multirotor: Multirotor, command: float) -> float:
    """Steady-state rotor speed (rad/s) for a command. Commands above 1 count as 1; 0, negative values and NaN stop the rotor."""
    if not command > 0.0:
        return 0.0
    share = min(command, 1.0)
    idle, top = multirotor.idle_speed_radps, multirotor.top_speed_radps
    if multirotor.linear_thrust:
        return math.sqrt(idle * idle + share * (top * top - idle * idle))
    return idle + share * (top - idle)


@kernel
def _spin_rotors(
    multirotor: Multirotor, state: MultirotorState, command: npt.NDArray[np.float64], speed: npt.NDArray[np.float64], growth: npt.NDArray[np.float64]
) -> None:
    """Write rotor speeds and accelerations ``float64[3, n]`` at the beginning, the middle and the end of the step."""
    for number in range(state.rotor_radps.shape[0]):
        target = 0.0 if state.crashed[0] or state.broken[number] else target_speed(multirotor, command[number])
        lead = state.rotor_radps[number] - target
        rising = 1 if lead < 0.0 else 0
        for stage in range(3):
            left = lead * multirotor.decay[rising, stage]
            speed[stage, number] = target + left
            growth[stage, number] = -left / multirotor.lag_s[rising]


@kernel
def _fly(
    multirotor: Multirotor,
    before: npt.NDArray[np.float64],
    wind_mps: Vector,
    speed: npt.NDArray[np.float64],
    growth: npt.NDArray[np.float64],
    after: npt.NDArray[np.float64],
) -> None:
    """One step of the fourth-order Runge-Kutta method, from ``before`` to ``after``."""
    step_s = multirotor.step_ns * _S_PER_NS
    slope = np.empty((4, MOTION_SIZE))
    between = np.empty(MOTION_SIZE)
    motion_derivative(multirotor.airframe, before, wind_mps, speed[0], growth[0], slope[0])
    for stage in range(1, 4):
        moment = 1 if stage < 3 else 2
        reach_s = 0.5 * step_s if stage < 3 else step_s
        for part in range(MOTION_SIZE):
            between[part] = before[part] + reach_s * slope[stage - 1, part]
        motion_derivative(multirotor.airframe, between, wind_mps, speed[moment], growth[moment], slope[stage])
    for part in range(MOTION_SIZE):
        after[part] = before[part] + step_s / 6.0 * (slope[0, part] + 2.0 * slope[1, part] + 2.0 * slope[2, part] + slope[3, part])
    _set_orientation(after, normalise(_orientation(after)))


@kernel
def _set_orientation(motion: npt.NDArray[np.float64], q: Quaternion) -> None:
    motion[ORIENTATION] = q[0]
    motion[ORIENTATION + 1] = q[1]
    motion[ORIENTATION + 2] = q[2]
    motion[ORIENTATION + 3] = q[3]


@kernel
def _most_push_ns(multirotor: Multirotor, plane: npt.NDArray[np.float64], is_obstacle: bool, gap_m: float) -> float:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Largest impulse (Ns) along the normal from a surface in a step: bounded for moving surfaces, and for obstacles until arms and guards have yielded."""
    vx, vy, vz = plane_velocity(plane)
    is_moving = vx != 0.0 or vy != 0.0 or vz != 0.0
    yields = is_obstacle and gap_m > -_YIELD_RATIO * multirotor.collision_radius_m
    if is_moving or yields:
        return multirotor.airframe.mass_kg * MAX_PUSH_MPS2 * multirotor.step_ns * _S_PER_NS
    return math.inf


@kernel
def _rows(
    multirotor: Multirotor,
    state: MultirotorState,
    ground: npt.NDArray[np.float64],
    obstacles: npt.NDArray[np.float64],
    reach_m: float,
    rows: npt.NDArray[np.float64],
    place: npt.NDArray[np.int64],
    gap: npt.NDArray[np.float64],
) -> int:
    """Fill a contact row for each point and obstacle nearer than ``reach_m``; returns the number of rows. ``place`` is the index of each row's impulse."""
    q = _orientation(state.motion)
    points = multirotor.point.shape[0]
    step_s = multirotor.step_ns * _S_PER_NS
    count = 0
    for number in range(points + obstacles.shape[0]):
        if number < points:
            plane = ground[number]
            gap_m = plane_gap(plane, point_in_world(multirotor, state.motion, number))
        else:
            plane = obstacles[number - points]
            gap_m = plane_gap(plane, (state.motion[POSITION], state.motion[POSITION + 1], state.motion[POSITION + 2])) - multirotor.collision_radius_m
        if gap_m < reach_m:
            # The force of an obstacle acts on the centre of mass. At the sphere's surface, friction would roll the vehicle along a wall like a ball and couple its attitude to the wall.
            arm = (0.0, 0.0, 0.0)
            if number < points:
                arm = (multirotor.point[number, 0], multirotor.point[number, 1], multirotor.point[number, 2])
            was = state.impulse_ns[number]
            back = conjugate(q)
            fill_row(
                multirotor.airframe,
                rows[count],
                arm,
                plane_normal(plane, q),
                gap_m,
                rotate(back, (was[0], was[1], was[2])),
                rotate(back, plane_velocity(plane)),
                _most_push_ns(multirotor, plane, number >= points, gap_m),
                step_s,
            )
            place[count] = number
            gap[count] = gap_m
            count += 1
    return count


@kernel
def _touch(
    multirotor: Multirotor,
    state: MultirotorState,
    ground: npt.NDArray[np.float64],
    obstacles: npt.NDArray[np.float64],
    after: npt.NDArray[np.float64],
) -> None:
    """Correct ``after`` for contacts, and write impulses and closing speeds."""
    step_s = multirotor.step_ns * _S_PER_NS
    points = multirotor.point.shape[0]
    rows = np.empty((points + obstacles.shape[0], ROW_SIZE))
    place = np.empty(points + obstacles.shape[0], np.int64)
    gap = np.empty(points + obstacles.shape[0])
    reach_m = _NEAR_M + step_s * _top_speed(multirotor, after)
    count = _rows(multirotor, state, ground, obstacles, reach_m, rows, place, gap)
    state.impulse_ns[:] = 0.0
    state.closing_mps[:] = 0.0
    if count == 0:
        return
    before = state.motion
    q = _orientation(before)
    vx, vy, vz = rotate(conjugate(q), (after[VELOCITY], after[VELOCITY + 1], after[VELOCITY + 2]))
    free = np.array([vx, vy, vz, after[RATES], after[RATES + 1], after[RATES + 2]])
    velocity = free.copy()
    solve(multirotor.airframe, rows, count, multirotor.friction_ratio, velocity)
    touched = False
    for number in range(count):
        impulse = impulse_of(rows[number])
        if impulse[0] != 0.0 or impulse[1] != 0.0 or impulse[2] != 0.0:
            touched = True
            ix, iy, iz = rotate(q, impulse)
            state.impulse_ns[place[number], 0] = ix
            state.impulse_ns[place[number], 1] = iy
            state.impulse_ns[place[number], 2] = iz
            kind = 0 if place[number] < points else 1
            state.closing_mps[kind] = max(state.closing_mps[kind], closing_speed(rows[number], free))
    if touched:
        cx, cy, cz = rotate(q, (velocity[0] - free[0], velocity[1] - free[1], velocity[2] - free[2]))
        after[VELOCITY] += cx
        after[VELOCITY + 1] += cy
        after[VELOCITY + 2] += cz
        for part in range(3):
            after[POSITION + part] = before[POSITION + part] + step_s * after[VELOCITY + part]
            after[RATES + part] = velocity[3 + part]
        _set_orientation(after, turned_by(q, (step_s * velocity[3], step_s * velocity[4], step_s * velocity[5])))
    deepest = -1
    for number in range(count):
        if gap[number] < -TOUCH_M and (deepest < 0 or gap[number] < gap[deepest]):
            deepest = number
    if deepest >= 0:
        _lift(ground[place[deepest]] if place[deepest] < points else obstacles[place[deepest] - points], -gap[deepest], after)


@kernel
def _reach_m(multirotor: Multirotor, number: int, towards: Vector) -> float:
    """Distance of a rotor's farthest blade tip from the centre of mass along a unit vector, in body axes."""
    x, y, z, ax, ay, az = multirotor.airframe.rotor[number, :6]
    along = towards[0] * ax + towards[1] * ay + towards[2] * az
    reach_m: float = towards[0] * x + towards[1] * y + towards[2] * z + multirotor.rotor_radius_m * math.sqrt(max(1.0 - along * along, 0.0))
    return reach_m


@kernel
def _strike(multirotor: Multirotor, state: MultirotorState, obstacles: npt.NDArray[np.float64], speed_radps: npt.NDArray[np.float64]) -> None:
    """Break the blades that turn into an obstacle of this step.

    The collision sphere is hub and blade in every direction, so what touches it touches the tip that reaches farthest towards it; a tip that reaches ``d`` less
    is struck where the obstacle is ``d`` inside the sphere.
    """
    points = multirotor.point.shape[0]
    q = _orientation(state.motion)
    for number in range(obstacles.shape[0]):
        impulse = state.impulse_ns[points + number]
        if impulse[0] == 0.0 and impulse[1] == 0.0 and impulse[2] == 0.0:
            continue
        x, y, z = plane_normal(obstacles[number], q)
        towards = (-x, -y, -z)
        gap_m = (
            plane_gap(obstacles[number], (state.motion[POSITION], state.motion[POSITION + 1], state.motion[POSITION + 2]))
            - multirotor.collision_radius_m
        )
        farthest_m = -math.inf
        for rotor in range(state.broken.shape[0]):
            farthest_m = max(farthest_m, _reach_m(multirotor, rotor, towards))
        for rotor in range(state.broken.shape[0]):
            axis = multirotor.airframe.rotor[rotor]
            sine = towards[0] * axis[3] + towards[1] * axis[4] + towards[2] * axis[5]
            is_reached = _reach_m(multirotor, rotor, towards) >= farthest_m - max(-gap_m, TOUCH_M)
            if is_reached and abs(sine) <= MAX_STRIKE_SINE and speed_radps[rotor] * multirotor.rotor_radius_m > multirotor.crash_mps:
                state.broken[rotor] = 1


@kernel
def _top_speed(multirotor: Multirotor, motion: npt.NDArray[np.float64]) -> float:
    """An upper bound of the speed of any point of the vehicle."""
    reach_m = multirotor.collision_radius_m
    for number in range(multirotor.point.shape[0]):
        x, y, z = multirotor.point[number]
        reach_m = max(reach_m, math.sqrt(x * x + y * y + z * z))
    vx, vy, vz = motion[VELOCITY], motion[VELOCITY + 1], motion[VELOCITY + 2]
    wx, wy, wz = motion[RATES], motion[RATES + 1], motion[RATES + 2]
    return math.sqrt(vx * vx + vy * vy + vz * vz) + reach_m * math.sqrt(wx * wx + wy * wy + wz * wz)


@kernel
def _lift(plane: npt.NDArray[np.float64], depth_m: float, after: npt.NDArray[np.float64]) -> None:
    """Move a penetrating vehicle part of the way out: position only, no velocity or rotation, and so slowly that no sensor shows it."""
    way_m = min(_LIFT_RATIO * depth_m, _MAX_LIFT_M)
    for part in range(3):
        after[POSITION + part] += way_m * plane[part]


@kernel
def _feel(multirotor: Multirotor, state: MultirotorState, after: npt.NDArray[np.float64]) -> None:
    """Write the step's mean specific force: its change of velocity minus gravity, in the body's axes at mid-step."""
    step_s = multirotor.step_ns * _S_PER_NS
    before = state.motion
    a, b = _orientation(before), _orientation(after)
    middle = normalise((a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]))
    fx = (after[VELOCITY] - before[VELOCITY]) / step_s
    fy = (after[VELOCITY + 1] - before[VELOCITY + 1]) / step_s
    fz = (after[VELOCITY + 2] - before[VELOCITY + 2]) / step_s + multirotor.airframe.gravity_mps2
    x, y, z = rotate(conjugate(middle), (fx, fy, fz))
    state.specific_force_mps2[0] = x
    state.specific_force_mps2[1] = y
    state.specific_force_mps2[2] = z


@stage_kernel
def step(
    multirotor: Multirotor,
    state: MultirotorState,
    command: npt.NDArray[np.float64],
    wind_mps: Vector,
    ground: npt.NDArray[np.float64],
    obstacles: npt.NDArray[np.float64],
) -> None:
    """Advance ``state`` by one step.

    Args:
        multirotor: The vehicle.
        state: State, overwritten with the state one step later.
        command: ``float64[n]``, rotor commands, 0 to 1 as in MAVLink's HIL_ACTUATOR_CONTROLS; see ``target_speed``.
        wind_mps: Velocity of the air in the world.
        ground: ``float64[p, 4]``, the surface under (or over) each point of the vehicle as a plane: see ``hilsim.parts.vehicle.physics.contact.plane_through`` and
            ``no_planes``; or ``float64[p, PLANE_SIZE]`` with velocities of moving surfaces.
        obstacles: ``float64[k, 4]`` or ``float64[k, PLANE_SIZE]``, planes that the collision sphere must stay outside of, at most ``MAX_OBSTACLES``: through the nearest point of
            each obstacle within reach, facing the vehicle. Impulses of the previous step are used by index: keep an obstacle at its index from step to
            step.
    """
    rotors = state.rotor_radps.shape[0]
    speed = np.empty((3, rotors))
    growth = np.empty((3, rotors))
    after = np.empty(MOTION_SIZE)
    _spin_rotors(multirotor, state, command, speed, growth)
    _fly(multirotor, state.motion, wind_mps, speed, growth, after)
    _touch(multirotor, state, ground, obstacles, after)
    if not multirotor.has_guards:
        _strike(multirotor, state, obstacles, speed[0])
    _feel(multirotor, state, after)
    state.motion[:] = after
    state.rotor_radps[:] = speed[2]
    state.time_ns[0] += multirotor.step_ns
    if max(state.closing_mps[0], state.closing_mps[1]) > multirotor.crash_mps:
        state.crashed[0] = 1


@kernel
def advance(
    multirotor: Multirotor,
    state: MultirotorState,
    command: npt.NDArray[np.float64],
    wind_mps: Vector,
    ground: npt.NDArray[np.float64],
    obstacles: npt.NDArray[np.float64],
    steps: int,
    imu_means: npt.NDArray[np.float64],
) -> None:
    """Advance ``state`` by ``steps`` steps with all arguments constant.

    ``imu_means``, ``float64[6]``, receives the mean specific force and the mean rates, in body axes: the readings of an ideal IMU with this period.
    """
    imu_means[:] = 0.0
    for _ in range(steps):
        for part in range(3):
            imu_means[3 + part] += 0.5 * state.motion[RATES + part] / steps
        step(multirotor, state, command, wind_mps, ground, obstacles)
        for part in range(3):
            imu_means[part] += state.specific_force_mps2[part] / steps
            imu_means[3 + part] += 0.5 * state.motion[RATES + part] / steps
