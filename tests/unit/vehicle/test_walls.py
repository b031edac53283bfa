"""Against walls by closed formulas: Coulomb's friction, the impulse of an impact, and what the accelerometer measures of it."""

import math

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.contact import MAX_PUSH_MPS2, no_planes, plane_through
from hilsim.parts.vehicle.physics.imu import accelerometer, build_imu
from hilsim.parts.vehicle.physics.multirotor import advance, build_multirotor, rates_of, state_at, velocity_of
from hilsim.parts.vehicle.physics.sensor_specs import ImuSpec
from hilsim.world.geometry.frames import frd_from_flu
from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from tests.compiled import compiled_only
from tests.unit.vehicle.vehicles import BARE, CALM, HOVER_COMMAND, HOVER_RADPS, PROPULSION, G, changed, run

RADIUS_M = BARE.collision_radius_m
WALL = plane_through((RADIUS_M, 0.0, 0.0), (-1.0, 0.0, 0.0)).reshape(1, 4)
SIDE_WALL = plane_through((0.0, RADIUS_M, 0.0), (0.0, -1.0, 0.0)).reshape(1, 4)
LEAN_DEG = 25.0
SAMPLE_STEPS, SAMPLE_S, STEP_S = 4, 4e-3, 1e-3


def pressed(friction, share):
    """A vehicle that leans on ``WALL`` so that its weight less its lift is ``share`` of what friction can hold; returns vehicle, state, command and thrust (N)."""
    lean = math.radians(LEAN_DEG)
    thrust_n = BARE.mass_kg * G / (math.cos(lean) + share * friction * math.sin(lean))
    speed_radps = math.sqrt(thrust_n / 4.0 / PROPULSION.thrust_n_per_radps2)
    state = state_at(build_multirotor(BARE), (0.0, 0.0, 5.0), from_roll_pitch_yaw(0.0, LEAN_DEG, 0.0), rotor_radps=speed_radps)
    return build_multirotor(changed(friction_ratio=friction)), state, speed_radps / PROPULSION.top_speed_radps, thrust_n


@pytest.mark.parametrize("friction", [0.3, 1.0])
@pytest.mark.parametrize("share", [0.5, 0.98])
def test_a_vehicle_is_held_by_a_wall_where_weight_less_lift_is_below_friction(friction, share):
    multirotor, state, command, _ = pressed(friction, share)
    begin = state.motion.copy()
    run(multirotor, state, 200, command=command, obstacles=WALL)
    np.testing.assert_allclose(state.motion, begin, rtol=0, atol=1e-5)


@pytest.mark.parametrize("friction", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("share", [1.02, 2.0])
def test_above_that_it_slides_with_what_friction_leaves_and_keeps_its_attitude(friction, share):
    multirotor, state, command, thrust_n = pressed(friction, share)
    lean = math.radians(LEAN_DEG)
    attitude = state.motion[6:10].copy()
    run(multirotor, state, 200, command=command, obstacles=WALL)
    falls_mps2 = G - thrust_n * (math.cos(lean) + friction * math.sin(lean)) / BARE.mass_kg
    np.testing.assert_allclose(velocity_of(state), (0.0, 0.0, -falls_mps2 * 0.2), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(state.motion[6:10], attitude, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rates_of(state), 0.0, atol=1e-12)


def ideal_imu():
    quiet = dict.fromkeys(
        (
            "accelerometer_noise_mps2_per_sqrt_hz",
            "accelerometer_drift_mps2",
            "gyroscope_noise_radps_per_sqrt_hz",
            "gyroscope_drift_radps",
        ),
        0.0,
    )
    return build_imu(ImuSpec(**quiet), 1, 0, round(SAMPLE_S * 1e9))


def measured(multirotor, state, samples, obstacles):
    """Integral (m/s, world) of the accelerometer's readings, gravity taken off, of a level vehicle that hovers; and the largest reading of an axis."""
    imu, means, change, largest = ideal_imu(), np.zeros(6), np.zeros(3), 0.0
    for _ in range(samples):
        advance(multirotor, state, np.full(4, HOVER_COMMAND), CALM, no_planes(8), obstacles, SAMPLE_STEPS, means)
        reading = np.array(frd_from_flu(accelerometer(imu, int(state.time_ns[0]), tuple(means[:3]))))  # the same map back
        change += SAMPLE_S * (reading - (0.0, 0.0, G))
        largest = max(largest, np.abs(reading).max())
    return change, largest


@pytest.mark.parametrize("friction", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("speed_mps", [0.5, 1.0, 3.0, 4.9])
def test_the_accelerometer_measures_the_whole_change_of_velocity_of_an_impact(speed_mps, friction):
    multirotor = build_multirotor(changed(friction_ratio=friction))
    before = np.array([speed_mps, 2.0, 0.0])
    state = state_at(multirotor, (-0.01, 0.0, 5.0), velocity_mps=tuple(before), rotor_radps=HOVER_RADPS)
    change, _ = measured(multirotor, state, 40, WALL)
    after = np.array(velocity_of(state))
    np.testing.assert_allclose(change, after - before, rtol=0, atol=1e-9)
    along_mps = 2.0 - min(2.0, friction * speed_mps)  # the impulse of friction is at most friction times the wall's
    np.testing.assert_allclose(after, (0.0, along_mps, 0.0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("speed_mps", [1.0, 3.0, 4.9])
def test_an_impact_lasts_as_long_as_the_bounded_push_takes(speed_mps):
    multirotor = build_multirotor(changed(friction_ratio=0.0))
    state = state_at(multirotor, (0.0, 0.0, 5.0), velocity_mps=(speed_mps, 0.0, 0.0), rotor_radps=HOVER_RADPS)
    seen = run(multirotor, state, 80, command=HOVER_COMMAND, obstacles=WALL, each=lambda after: (after.motion[0], after.motion[3]))
    stopped = int(np.argmax(np.abs(seen[:, 1]) < 1e-9))
    assert stopped * STEP_S == pytest.approx(speed_mps / MAX_PUSH_MPS2, abs=2.0 * STEP_S)
    assert seen[:, 0].max() == pytest.approx(speed_mps**2 / (2.0 * MAX_PUSH_MPS2), abs=speed_mps * STEP_S + 0.1 * stopped * STEP_S)


@compiled_only
@pytest.mark.parametrize("speed_mps", [5.0, 8.0, 14.0])
def test_a_wall_stops_what_arms_and_guards_do_not_within_a_third_of_the_sphere(speed_mps):
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, 5.0), velocity_mps=(speed_mps, 0.0, 0.0))
    seen = run(multirotor, state, 400, obstacles=WALL, each=lambda after: (after.motion[0], after.motion[3]))
    assert seen[:, 0].max() <= 0.35 * RADIUS_M + speed_mps * STEP_S
    assert np.abs(seen[200:, 1]).max() < 1e-9


def test_in_a_corner_both_walls_together_push_within_the_range_of_the_accelerometer():
    multirotor = build_multirotor(changed(friction_ratio=0.3))
    state = state_at(multirotor, (0.0, 0.0, 5.0), velocity_mps=(3.0, 2.0, 0.0), rotor_radps=HOVER_RADPS)
    change, largest_mps2 = measured(multirotor, state, 20, np.vstack([WALL, SIDE_WALL]))
    assert largest_mps2 < ImuSpec().accelerometer_range_mps2
    np.testing.assert_allclose(change, (-3.0, -2.0, 0.0), rtol=0, atol=1e-6)
