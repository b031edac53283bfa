"""Whole flights under the position hold, without hardware: hover, waypoints, wind, landing, failures, half an hour."""

import dataclasses
import math

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.hold import HoldSpec, build_hold, command_for
from hilsim.parts.vehicle.physics.multirotor import build_multirotor, state_at, target_speed
from hilsim.parts.vehicle.physics.specs import RotorSpec
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, rotate
from hilsim.world.geometry.tracks import fixed_track, linear_track
from hilsim.world.platforms.wind import WindSpec
from tests.compiled import COMPILED, compiled_only
from tests.unit.vehicle.flights import FlightSpec, simulate
from tests.unit.vehicle.vehicles import BARE, HOVER_RADPS, G, changed, profile

SECOND_NS = 1_000_000_000
VEHICLES = ["iris", "airsim-quad"]
GUSTS = WindSpec(speed_mps=6.0, from_deg=240.0, turbulence_ratio=0.1)


def start(spec, position_m=(0.0, 0.0, 0.0), *, step_ns=1_000_000):
    """Standing on level ground at a place."""
    x, y, z = position_m
    return state_at(build_multirotor(spec, step_ns=step_ns), (x, y, z + spec.standing_height_m))


def yaw_deg(motion):
    x, y, _ = rotate(tuple(motion[6:10]), (1.0, 0.0, 0.0))
    return math.degrees(math.atan2(y, x))


def test_it_takes_off_and_begins_to_climb():
    spec = profile("iris")
    log = simulate(FlightSpec(vehicle=spec), fixed_track(Pose(position_m=(0.0, 0.0, 3.0))), start(spec), duration_s=0.5, row_ns=100_000_000)
    np.testing.assert_array_equal(log.time_ns, np.arange(6) * 100_000_000)
    assert log.motion[-1, 2] > 0.5
    assert log.legs_down[-1] == 0


@compiled_only
@pytest.mark.parametrize("name", VEHICLES)
def test_after_half_a_minute_it_is_where_it_should_and_looks_where_it_should(name):
    spec = profile(name)
    log = simulate(FlightSpec(vehicle=spec), fixed_track(mounting((2.0, -1.0, 5.0), (0.0, 0.0, 120.0))), start(spec), duration_s=40.0)
    np.testing.assert_allclose(log.motion[-1, :3], (2.0, -1.0, 5.0), rtol=0, atol=1e-3)
    assert yaw_deg(log.motion[-1]) == pytest.approx(120.0, abs=0.01)
    trim = target_speed(build_multirotor(spec), spec.propulsion.command_for(spec.mass_kg * G / 4))
    np.testing.assert_allclose(log.rotor_radps[-1], trim, rtol=1e-4)


@compiled_only
@pytest.mark.parametrize("name", VEHICLES)
@pytest.mark.parametrize("wind", [WindSpec(), GUSTS])
def test_half_the_step_moves_a_hover_of_a_minute_by_less_than_a_centimetre(name, wind):
    spec = profile(name)
    track = fixed_track(mounting((1.0, 2.0, 4.0), (0.0, 0.0, 45.0)))
    coarse, fine = (
        simulate(FlightSpec(vehicle=spec, wind=wind, step_ns=step_ns, seed=3), track, start(spec, step_ns=step_ns), duration_s=60.0).motion[:, :3]
        for step_ns in (1_000_000, 500_000)
    )
    assert np.linalg.norm(fine - coarse, axis=1).max() < 0.01
    assert np.linalg.norm(fine[-1] - coarse[-1]) < 1e-4


@compiled_only
def test_it_flies_through_its_waypoints_when_the_track_does():
    spec = profile("iris")
    points = [[0.0, 0.0, 3.0], [0.0, 0.0, 3.0], [10.0, 0.0, 3.0], [10.0, 10.0, 6.0], [0.0, 0.0, 3.0]]
    times = [0, 8, 14, 20, 28]
    yaws = [from_roll_pitch_yaw(0.0, 0.0, yaw) for yaw in (0.0, 0.0, 90.0, 180.0, 225.0)]
    track = linear_track([SECOND_NS * t for t in times], points, yaws)
    log = simulate(FlightSpec(vehicle=spec), track, start(spec), duration_s=36.0, row_ns=SECOND_NS)
    for t, point in list(zip(times, points, strict=True))[1:]:
        np.testing.assert_allclose(log.motion[t, :3], point, rtol=0, atol=1.2)
    np.testing.assert_allclose(log.motion[-1, :3], points[-1], rtol=0, atol=0.02)
    assert yaw_deg(log.motion[-1]) % 360.0 == pytest.approx(225.0, abs=0.1)


@compiled_only
def test_in_a_steady_wind_it_leans_until_drag_and_thrust_are_even():
    spec = changed(drag_area_m2=(0.05, 0.05, 0.05))
    wind = WindSpec(speed_mps=8.0, from_deg=270.0)
    log = simulate(FlightSpec(vehicle=spec, wind=wind), fixed_track(Pose(position_m=(0.0, 0.0, 5.0))), start(spec), duration_s=60.0)
    np.testing.assert_allclose(log.motion[-1, :3], (0.0, 0.0, 5.0), rtol=0, atol=1e-3)
    up = rotate(tuple(log.motion[-1, 6:10]), (0.0, 0.0, 1.0))
    drag_n = 0.5 * 1.225 * 0.05 * 8.0**2
    assert up[0] / up[2] == pytest.approx(-drag_n / (spec.mass_kg * G), rel=1e-4)
    assert up[1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.extended
@compiled_only
@pytest.mark.parametrize("name", VEHICLES)
def test_half_an_hour_in_gusts_stays_near_without_a_nan_and_time_stays_exact(name):
    spec = profile(name)
    log = simulate(
        FlightSpec(vehicle=spec, wind=GUSTS, seed=1),
        fixed_track(Pose(position_m=(0.0, 0.0, 10.0))),
        start(spec),
        duration_s=1800.0,
        row_ns=SECOND_NS // 10,
    )
    np.testing.assert_array_equal(log.time_ns, np.arange(18_001) * (SECOND_NS // 10))
    assert np.isfinite(log.motion).all()
    np.testing.assert_allclose(np.linalg.norm(log.motion[:, 6:10], axis=1), 1.0, rtol=0, atol=1e-14)
    away = np.linalg.norm(log.motion[300:, :3] - (0.0, 0.0, 10.0), axis=1)
    assert away.max() < 2.5
    np.testing.assert_allclose(log.motion[300:, :3].mean(axis=0), (0.0, 0.0, 10.0), rtol=0, atol=0.05)


@compiled_only
def test_six_rotors_fly_as_well_as_four():
    hubs = [(0.3 * math.cos(math.radians(30.0 + 60.0 * n)), 0.3 * math.sin(math.radians(30.0 + 60.0 * n)), 0.02) for n in range(6)]
    spec = changed(rotors=tuple(RotorSpec(position_m=hub, spin=("ccw", "cw")[n % 2]) for n, hub in enumerate(hubs)))
    log = simulate(FlightSpec(vehicle=spec), fixed_track(mounting((1.0, 1.0, 3.0), (0.0, 0.0, -60.0))), start(spec), duration_s=40.0)
    np.testing.assert_allclose(log.motion[-1, :3], (1.0, 1.0, 3.0), rtol=0, atol=1e-3)
    assert yaw_deg(log.motion[-1]) == pytest.approx(-60.0, abs=0.01)
    np.testing.assert_allclose(log.rotor_radps[-1], HOVER_RADPS * math.sqrt(4 / 6), rtol=1e-4)


@compiled_only
@pytest.mark.parametrize("name", VEHICLES)
def test_it_lands_where_the_track_ends_in_the_ground_and_stays_there(name):
    spec = profile(name)
    points = [[3.0, 0.0, 4.0], [3.0, 0.0, 4.0], [3.0, 0.0, -1.0], [3.0, 0.0, -1.0]]
    track = linear_track([0, 10 * SECOND_NS, 18 * SECOND_NS, 40 * SECOND_NS], points, [(1.0, 0.0, 0.0, 0.0)] * 4)
    log = simulate(FlightSpec(vehicle=spec), track, start(spec), duration_s=30.0)
    touch = np.flatnonzero(log.legs_down[1000:])[0] + 1000
    assert log.closing_mps[touch - 5 : touch + 5, 0].max() < 1.0
    assert (log.legs_down[-500:] == 4).all()
    assert np.ptp(log.motion[-500:, :3], axis=0).max() < 1e-6
    np.testing.assert_allclose(log.specific_force_mps2[-500:], np.tile((0.0, 0.0, G), (500, 1)), rtol=0, atol=1e-3)


@compiled_only
@pytest.mark.parametrize("name", VEHICLES)
def test_with_a_dead_motor_it_comes_down_and_lies_still(name):
    spec = profile(name)
    state = state_at(build_multirotor(spec), (0.0, 0.0, 8.0), rotor_radps=500.0)
    log = simulate(FlightSpec(vehicle=spec), fixed_track(Pose(position_m=(0.0, 0.0, 8.0))), state, duration_s=40.0, health=[1.0, 1.0, 0.0, 1.0])
    assert np.isfinite(log.motion).all()
    assert np.abs(log.motion[:300, 10:]).max() > 3.0, "it must have spun"
    assert log.motion[:, 2].min() > -1e-3
    assert state.crashed[0] == 1
    np.testing.assert_allclose(log.motion[-1, 3:6], 0.0, atol=1e-9)


@compiled_only
def test_flown_against_a_wall_it_stays_in_front_of_it():
    spec = dataclasses.replace(profile("iris"), crash_mps=math.inf, has_propeller_guards=True)
    wall = ((4.0, 0.0, 0.0), (-1.0, 0.0, 0.0))
    track = linear_track([0, 5 * SECOND_NS, 12 * SECOND_NS], [[0, 0, 3], [0, 0, 3], [8, 0, 3]], [(1.0, 0.0, 0.0, 0.0)] * 3)
    log = simulate(FlightSpec(vehicle=spec, obstacles=(wall,)), track, start(spec), duration_s=20.0)
    assert log.motion[:, 0].max() <= 4.0 - 0.4 + 0.01  # guards give way by 4 mm at this speed
    assert log.motion[-1, 0] <= 4.0 - 0.4 + 2e-5
    assert 0.3 < log.closing_mps[:, 1].max() < 3.0
    assert np.isfinite(log.motion).all()


def test_the_same_flight_twice_is_the_same_to_the_last_bit():
    spec = profile("iris")
    track = fixed_track(Pose(position_m=(1.0, 0.0, 3.0)))
    once, again = (simulate(FlightSpec(vehicle=spec, wind=GUSTS, seed=9), track, start(spec), duration_s=0.2) for _ in range(2))
    for a, b in zip(once, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_rows_of_the_log_do_not_change_the_flight():
    spec = profile("iris")
    track = fixed_track(Pose(position_m=(1.0, 0.0, 3.0)))
    fine, coarse = (
        simulate(FlightSpec(vehicle=spec, wind=GUSTS, seed=9), track, start(spec), duration_s=0.2, row_ns=row_ns)
        for row_ns in (1_000_000, 50_000_000)
    )
    np.testing.assert_array_equal(fine.motion[::50], coarse.motion)


@pytest.mark.parametrize("response", ["speed", "thrust"])
def test_the_command_for_a_thrust_gives_that_thrust(response):
    spec = changed(rotor={"idle_speed_radps": 80.0, "response": response})
    multirotor = build_multirotor(spec)
    for thrust_n in (0.5, 4.9, 9.0):
        command = command_for(multirotor, thrust_n)
        assert spec.propulsion.command_for(thrust_n) == pytest.approx(command, rel=1e-12)
        assert 1e-5 * target_speed(multirotor, command) ** 2 == pytest.approx(thrust_n, rel=1e-12)


def test_rotor_commands_give_the_requested_thrust_and_torques():
    hold = build_hold(HoldSpec(), BARE)
    thrusts = hold.share @ (20.0, 0.3, -0.2, 0.05)
    positions = np.array([rotor.position_m for rotor in BARE.rotors])
    spins = np.array([1.0, 1.0, -1.0, -1.0])
    np.testing.assert_allclose(
        (thrusts.sum(), positions[:, 1] @ thrusts, -positions[:, 0] @ thrusts, -0.05 * spins @ thrusts), (20.0, 0.3, -0.2, 0.05), rtol=0, atol=1e-12
    )


def test_a_vehicle_whose_rotors_cannot_yaw_is_refused():
    with pytest.raises(ValueError, match="bare: rotors must push and turn about all three axes for the position hold, got 4 that do not"):
        build_hold(HoldSpec(), changed(rotor={"torque_ratio_m": 0.0}))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"period_ns": 500_000}, "period_ns must be 1000000 to 20000000, got 500000"),
        ({"tilt_deg": 80.0, "speed_mps": 0.0}, r"tilt_deg must be 1 to 60, got 80.0; speed_mps must be above 0 and at most 100, got 0.0"),
        ({"integral_per_s2": -1.0}, "integral_per_s2 must be 0 to 100, got -1.0"),
    ],
)
def test_a_hold_names_each_setting_out_of_range(setting, message):
    with pytest.raises(ValueError, match=message):
        HoldSpec(**setting)


def test_a_flight_names_what_cannot_be():
    with pytest.raises(ValueError, match=r"hold\.period_ns must be a whole number of steps of 300000, got 4000000"):
        FlightSpec(vehicle=BARE, step_ns=300_000)
    with pytest.raises(ValueError, match="obstacles must be at most 4, got 5"):
        FlightSpec(vehicle=BARE, obstacles=(((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),) * 5)
    with pytest.raises(ValueError, match="row_ns must be a whole number of steps of 1000000, got 1500000"):
        simulate(FlightSpec(vehicle=BARE), fixed_track(Pose()), start(BARE), duration_s=1.0, row_ns=1_500_000)


@pytest.mark.parametrize("yaw_deg_wanted", [170.0, -170.0])
def test_more_yaw_than_the_rotors_have_room_for_does_not_cost_height(yaw_deg_wanted):
    heavy = changed(mass_kg=3.2)
    state = state_at(build_multirotor(heavy), (0.0, 0.0, 5.0), rotor_radps=HOVER_RADPS * math.sqrt(3.2 / 2.0))
    track = fixed_track(mounting((0.0, 0.0, 5.0), (0.0, 0.0, yaw_deg_wanted)))
    log = simulate(FlightSpec(vehicle=heavy), track, state, duration_s=3.0 if COMPILED else 0.5)
    np.testing.assert_allclose(log.motion[:, 2], 5.0, rtol=0, atol=0.02)


def test_less_yaw_than_the_slowest_rotor_has_room_for_does_not_cost_height():
    light = changed(mass_kg=0.6)
    state = state_at(build_multirotor(light), (0.0, 0.0, 5.0), rotor_radps=HOVER_RADPS * math.sqrt(0.6 / 2.0))
    track = fixed_track(mounting((0.0, 0.0, 5.0), (0.0, 0.0, 170.0)))
    log = simulate(FlightSpec(vehicle=light), track, state, duration_s=3.0 if COMPILED else 0.5)
    np.testing.assert_allclose(log.motion[:, 2], 5.0, rtol=0, atol=0.05)
