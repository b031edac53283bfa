"""Flight against closed forms: what a rigid body with rotors does in still and in moving air."""

import math

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.aerodynamics import ORIENTATION, RATES, motion_derivative
from hilsim.parts.vehicle.physics.contact import no_planes
from hilsim.parts.vehicle.physics.multirotor import (
    advance,
    build_multirotor,
    orientation_of,
    position_of,
    rates_of,
    state_at,
    target_speed,
    velocity_of,
)
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, matrix_from_quaternion
from tests.compiled import COMPILED, compiled_only
from tests.unit.vehicle.vehicles import BARE, CALM, HOVER_COMMAND, HOVER_RADPS, G, changed, profile, run

SECOND = 1000
"""In steps."""


@compiled_only
def test_a_body_falls_by_half_g_t_squared_and_feels_nothing():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (1.0, 2.0, 100.0), velocity_mps=(3.0, -1.0, 2.0))
    felt = run(multirotor, state, 2 * SECOND, each=lambda after: np.abs(after.specific_force_mps2).max())
    t = 2.0
    np.testing.assert_allclose(position_of(state), (1.0 + 3.0 * t, 2.0 - t, 100.0 + 2.0 * t - 0.5 * G * t * t), rtol=0, atol=1e-10)
    np.testing.assert_allclose(velocity_of(state), (3.0, -1.0, 2.0 - G * t), rtol=0, atol=1e-11)
    assert felt.max() < 1e-10


def test_a_body_at_rest_begins_to_turn_by_the_torques_of_all_rotors():
    airframe, at_rest = build_multirotor(BARE).airframe, np.zeros(13)
    at_rest[ORIENTATION] = 1.0
    speeds, still, derivative = np.array([300.0, 400.0, 520.0, 610.0]), np.zeros(4), np.zeros(13)
    motion_derivative(airframe, at_rest, CALM, speeds, still, derivative)
    x_m, y_m, spin = np.array([(*rotor.position_m[:2], 1.0 if rotor.spin == "ccw" else -1.0) for rotor in BARE.rotors]).T
    thrust_n = 1e-5 * speeds**2
    torque_nm = np.array([(y_m * thrust_n).sum(), -(x_m * thrust_n).sum(), -(0.05 * spin * thrust_n).sum()])
    assert np.abs(torque_nm).min() > 0.05
    np.testing.assert_allclose(derivative[RATES : RATES + 3], torque_nm / BARE.inertia_kgm2, rtol=1e-12)


def test_time_is_whole_nanoseconds_of_steps():
    multirotor = build_multirotor(BARE, step_ns=333_333)
    state = state_at(multirotor, time_ns=7)
    run(multirotor, state, 100)
    assert state.time_ns[0] == 7 + 100 * 333_333


@compiled_only
def test_a_falling_body_with_drag_follows_the_hyperbolic_tangent_to_its_terminal_velocity():
    spec = changed(drag_area_m2=(0.1, 0.1, 0.5))
    multirotor = build_multirotor(spec)
    state = state_at(multirotor, (0.0, 0.0, 1000.0))
    terminal = math.sqrt(2 * spec.mass_kg * G / (1.225 * 0.5))
    for n in range(1, 4):
        run(multirotor, state, SECOND)
        assert -velocity_of(state)[2] == pytest.approx(terminal * math.tanh(G * n / terminal), abs=1e-10)
    run(multirotor, state, 5 * SECOND)
    assert -velocity_of(state)[2] == pytest.approx(terminal, rel=1e-6)


@compiled_only
def test_a_body_without_weight_is_carried_off_by_the_wind():
    spec = changed(drag_area_m2=(0.4, 0.4, 0.4))
    multirotor = build_multirotor(spec, gravity_mps2=0.0)
    state = state_at(multirotor, orientation=from_roll_pitch_yaw(20.0, -30.0, 40.0))
    run(multirotor, state, 2 * SECOND, wind_mps=(0.0, 8.0, 0.0))
    ratio = 0.5 * 1.225 * 0.4 / spec.mass_kg * 8.0 * 2.0
    np.testing.assert_allclose(velocity_of(state), (0.0, 8.0 - 8.0 / (1.0 + ratio), 0.0), rtol=0, atol=1e-10)


def test_the_vehicle_hovers_at_the_speed_whose_thrust_is_its_weight():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, 10.0), rotor_radps=HOVER_RADPS)
    run(multirotor, state, SECOND, command=HOVER_COMMAND)
    np.testing.assert_allclose(position_of(state), (0.0, 0.0, 10.0), rtol=0, atol=1e-11)
    np.testing.assert_allclose(state.specific_force_mps2, (0.0, 0.0, G), rtol=0, atol=1e-10)


def test_the_accelerometer_of_a_turning_body_feels_the_thrust_along_its_own_axis():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, rates_radps=(0.0, 10.0, 0.0), rotor_radps=HOVER_RADPS)
    run(multirotor, state, 100, command=HOVER_COMMAND)
    np.testing.assert_allclose(state.specific_force_mps2, (0.0, 0.0, G), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["iris", "airsim-quad"])
def test_the_shipped_vehicles_hover_at_the_command_their_spec_says(name):
    spec = profile(name)
    multirotor = build_multirotor(spec)
    command = spec.propulsion.command_for(spec.mass_kg * G / len(spec.rotors))
    state = state_at(multirotor, (0.0, 0.0, 10.0), rotor_radps=target_speed(multirotor, command))
    run(multirotor, state, SECOND, command=command)
    np.testing.assert_allclose(state.motion[:6], (0.0, 0.0, 10.0, 0.0, 0.0, 0.0), rtol=0, atol=1e-9)
    np.testing.assert_allclose(rates_of(state), 0.0, atol=1e-12)
    assert 0.5 < command < 0.75, "a real autopilot's hover throttle is about there"


def test_thrust_goes_with_the_density_of_the_air():
    thin = build_multirotor(BARE, density_kgpm3=1.225 / 1.3**2)
    state = state_at(thin, rotor_radps=1.3 * HOVER_RADPS)
    run(thin, state, 10, command=1.3 * HOVER_COMMAND)
    np.testing.assert_allclose(velocity_of(state), 0.0, atol=1e-12)


def test_a_body_that_only_yaws_goes_round_at_a_constant_rate():
    multirotor = build_multirotor(BARE, gravity_mps2=0.0)
    state = state_at(multirotor, rates_radps=(0.0, 0.0, 2.0))
    run(multirotor, state, SECOND)
    angle = 2.0
    np.testing.assert_allclose(orientation_of(state), (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rates_of(state), (0.0, 0.0, 2.0), atol=1e-13)


def test_rotors_of_one_sense_that_run_faster_turn_the_body_the_other_way():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor)
    command = np.array([0.8, 0.8, 0.6, 0.6])
    state.rotor_radps[:] = 1000.0 * command
    run(multirotor, state, SECOND, command=command)
    torque = -0.05 * 1e-5 * 2 * (800.0**2 - 600.0**2)
    np.testing.assert_allclose(rates_of(state), (0.0, 0.0, torque / 0.045), rtol=1e-12, atol=1e-13)


def test_a_stronger_rotor_on_the_left_rolls_the_body_to_the_right():
    multirotor = build_multirotor(BARE, gravity_mps2=0.0)
    state = state_at(multirotor)
    command = np.array([0.5, 0.6, 0.6, 0.5])
    state.rotor_radps[:] = 1000.0 * command
    run(multirotor, state, 1, command=command)
    assert rates_of(state)[0] == pytest.approx(0.2 * 2 * 1e-5 * (600.0**2 - 500.0**2) / 0.02 * 1e-3, rel=1e-12)


def _momentum(state, spec):
    turn = matrix_from_quaternion(orientation_of(state))
    return turn @ (np.array(spec.inertia_kgm2) * rates_of(state))


def _energy(state, spec):
    motion = state.motion
    spin = 0.5 * np.sum(np.array(spec.inertia_kgm2) * motion[10:] ** 2)
    return 0.5 * spec.mass_kg * np.sum(motion[3:6] ** 2) + spec.mass_kg * G * motion[2] + spin


@compiled_only
def test_a_tumbling_body_keeps_its_energy_and_angular_momentum():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, 100.0), velocity_mps=(5.0, 0.0, 8.0), rates_radps=(0.1, 15.0, 0.2))
    energy, momentum = _energy(state, BARE), _momentum(state, BARE)
    rates = run(multirotor, state, 5 * SECOND, each=rates_of)
    assert rates[:, 1].min() < 8.0, "about the middle axis it must have begun to tumble"
    assert _energy(state, BARE) == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose(_momentum(state, BARE), momentum, rtol=0, atol=1e-9)


def test_the_body_loses_the_momentum_that_a_rotor_gains():
    spec = changed(rotors=BARE.rotors[:2], rotor={"thrust_n_per_radps2": 1e-15, "inertia_kgm2": 3e-5})
    multirotor = build_multirotor(spec, gravity_mps2=0.0)
    state = state_at(multirotor)
    run(multirotor, state, 100, command=[1.0, 0.5])
    assert state.rotor_radps[0] > 900.0
    assert rates_of(state)[2] == pytest.approx(-3e-5 * state.rotor_radps.sum() / 0.045, rel=1e-6)


def test_a_spinning_rotor_makes_the_body_a_gyroscope():
    spec = changed(inertia_kgm2=(0.03, 0.03, 0.045), rotors=BARE.rotors[:1], rotor={"thrust_n_per_radps2": 1e-15, "inertia_kgm2": 1e-3})
    multirotor = build_multirotor(spec, gravity_mps2=0.0)
    state = state_at(multirotor, rates_radps=(1.0, 0.0, 0.0), rotor_radps=1000.0)
    run(multirotor, state, 100, command=1.0)
    angle = 1e-3 * 1000.0 / 0.03 * 0.1
    np.testing.assert_allclose(rates_of(state), (math.cos(angle), math.sin(angle), 0.0), rtol=0, atol=1e-6)


def test_a_half_step_makes_a_sixteenth_of_the_error():
    def after(step_ns):
        multirotor = build_multirotor(profile("iris"), step_ns=step_ns)
        state = state_at(multirotor, velocity_mps=(5.0, 3.0, 0.0), rates_radps=(20.0, 30.0, 10.0), rotor_radps=600.0)
        run(multirotor, state, 100_000_000 // step_ns, command=[0.9, 0.2, 0.5, 0.4])
        return state.motion

    exact = after(50_000) if COMPILED else after(125_000)
    coarse, fine = (np.abs(after(step_ns) - exact).max() for step_ns in (1_000_000, 500_000))
    assert coarse < 1e-6
    assert 12.0 < coarse / fine < 20.0


def test_rotors_follow_their_commands_with_a_first_order_lag():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor)
    run(multirotor, state, 50, command=[0.2, 0.4, 0.6, 1.0])
    np.testing.assert_allclose(state.rotor_radps, 1000.0 * np.array([0.2, 0.4, 0.6, 1.0]) * (1 - math.exp(-0.05 / 0.02)), rtol=1e-12)
    top = state.rotor_radps.copy()
    run(multirotor, state, 50)
    np.testing.assert_allclose(state.rotor_radps, top * math.exp(-0.05 / 0.04), rtol=1e-12)


@pytest.mark.parametrize(
    ("command", "speed", "thrust"),
    [
        (0.0, 0.0, 0.0),
        (-0.1, 0.0, 0.0),
        (math.nan, 0.0, 0.0),
        (1e-12, 100.0, 100.0),
        (0.5, 600.0, math.sqrt(0.5 * (1100.0**2 + 100.0**2))),
        (1.7, 1100.0, 1100.0),
    ],
)
def test_commands_are_rotor_speeds(command, speed, thrust):
    of_speed = build_multirotor(changed(rotor={"top_speed_radps": 1100.0, "idle_speed_radps": 100.0}))
    of_thrust = build_multirotor(changed(rotor={"top_speed_radps": 1100.0, "idle_speed_radps": 100.0, "response": "thrust"}))
    assert target_speed(of_speed, command) == pytest.approx(speed, abs=1e-6)
    assert target_speed(of_thrust, command) == pytest.approx(thrust, abs=1e-6)


def test_thrust_fades_in_a_climb_and_grows_in_a_descent():
    multirotor = build_multirotor(changed(rotor={"inflow_limit_mps": 20.0}), gravity_mps2=0.0)
    for up_mps, share in ((0.0, 1.0), (5.0, 0.75), (-5.0, 1.25), (25.0, 0.0), (-50.0, 2.0)):
        state = state_at(multirotor, velocity_mps=(0.0, 0.0, up_mps), rotor_radps=HOVER_RADPS)
        run(multirotor, state, 1, command=HOVER_COMMAND)
        assert state.specific_force_mps2[2] == pytest.approx(share * G, abs=0.01)


def test_the_rotors_drag_is_linear_in_the_speed_through_the_air():
    multirotor = build_multirotor(changed(rotor={"drag_n_per_mps_radps": 2e-4}))
    for speed_mps in (1.0, 2.0, 4.0):
        state = state_at(multirotor, rotor_radps=HOVER_RADPS)
        run(multirotor, state, 1, command=HOVER_COMMAND, wind_mps=(0.0, -speed_mps, 0.0))
        assert state.specific_force_mps2[1] == pytest.approx(-speed_mps * 4 * 2e-4 * HOVER_RADPS / BARE.mass_kg, rel=1e-3)


def test_air_from_the_side_rolls_the_body_about_it():
    multirotor = build_multirotor(changed(rotor={"rolling_nm_per_mps_radps": 1e-5}))
    state = state_at(multirotor, velocity_mps=(3.0, 0.0, 0.0), rotor_radps=HOVER_RADPS)
    run(multirotor, state, 1, command=HOVER_COMMAND)
    assert rates_of(state)[0] == pytest.approx(-4 * 1e-5 * HOVER_RADPS * 3.0 / 0.02 * 1e-3, rel=1e-3)


def test_the_mean_over_many_steps_is_what_an_imu_with_that_period_feels():
    multirotor = build_multirotor(profile("iris"))
    begin = {"rates_radps": (3.0, -2.0, 1.0), "velocity_mps": (4.0, 0.0, 0.0), "rotor_radps": 700.0}
    one, many, felt = state_at(multirotor, **begin), state_at(multirotor, **begin), np.empty(6)
    command = np.array([0.5, 0.6, 0.7, 0.8])
    rates = [rates_of(one)]
    forces = run(multirotor, one, 4, command=command, each=lambda after: (rates.append(rates_of(after)), after.specific_force_mps2.copy())[1])
    advance(multirotor, many, command, CALM, no_planes(8), no_planes(0), 4, felt)
    np.testing.assert_array_equal(many.motion, one.motion)
    np.testing.assert_allclose(felt[:3], forces.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(felt[3:], (0.5 * np.array(rates[0]) + np.sum(rates[1:4], axis=0) + 0.5 * np.array(rates[4])) / 4, rtol=1e-14)


def test_a_step_does_not_depend_on_where_in_the_world_it_is():
    multirotor = build_multirotor(profile("iris"))
    near, far = state_at(multirotor, rates_radps=(1.0, 2.0, 3.0)), state_at(multirotor, (6e5, 5e6, 300.0), rates_radps=(1.0, 2.0, 3.0))
    for state in (near, far):
        run(multirotor, state, 100, command=0.6)
    np.testing.assert_array_equal(far.motion[3:], near.motion[3:])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"step_ns": 2_000_000}, "step_ns must be 50000 to 1000000"),
        ({"gravity_mps2": -1.0}, "gravity_mps2 must be 0 to 30, got -1.0"),
        ({"density_kgpm3": 3.0}, "density_kgpm3 must be 0 to 2, got 3.0"),
    ],
)
def test_a_step_gravity_or_density_out_of_range_is_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        build_multirotor(BARE, **setting)


def test_the_rotors_of_a_crashed_vehicle_run_down_whatever_is_commanded():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, rotor_radps=HOVER_RADPS)
    state.crashed[0] = 1
    run(multirotor, state, 200, command=1.0)
    assert (state.rotor_radps < HOVER_RADPS * math.exp(-0.2 / 0.04) * 1.001).all()
