"""On the ground and against walls: nothing goes through, bounces or jitters, and the accelerometer feels what a real one would."""

import math

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.contact import MAX_PUSH_MPS2, no_planes, plane_through
from hilsim.parts.vehicle.physics.multirotor import build_multirotor, legs_down, orientation_of, position_of, rates_of, state_at, velocity_of
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, matrix_from_quaternion, rotate
from tests.compiled import COMPILED, compiled_only
from tests.unit.vehicle.vehicles import BARE, HOVER_COMMAND, HOVER_RADPS, G, changed, ground, profile, run

MINUTE = 60_000 if COMPILED else 200
"""In steps; with kernels as plain Python less must do."""
SETTLING = 500 if COMPILED else 50
HEIGHT_M = 0.1


def slope(angle_deg):
    """Normal of a plane that rises to the east, and the orientation of a vehicle that rests on it."""
    turn = from_roll_pitch_yaw(0.0, -angle_deg, 0.0)
    return rotate(turn, (0.0, 0.0, 1.0)), turn


def energy(state, spec=BARE):
    motion = state.motion
    return spec.mass_kg * (0.5 * np.sum(motion[3:6] ** 2) + G * motion[2]) + 0.5 * np.sum(np.array(spec.inertia_kgm2) * motion[10:] ** 2)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["iris", pytest.param("airsim-quad", marks=compiled_only)])
@pytest.mark.parametrize("place_m", [pytest.param((0.0, 0.0, 0.0), marks=compiled_only), (6.1e5, 5.2e6, 488.0)])
def test_at_rest_for_a_minute_it_does_not_move_and_feels_gravity(name, place_m):
    spec = profile(name)
    multirotor = build_multirotor(spec)
    planes = ground(multirotor, place_m)
    state = state_at(multirotor, (place_m[0], place_m[1], place_m[2] + spec.standing_height_m + 0.0003), from_roll_pitch_yaw(0.0, 0.0, 33.0))
    run(multirotor, state, SETTLING, planes=planes)
    begin = state.motion.copy()
    felt = run(multirotor, state, MINUTE, planes=planes, each=lambda after: after.specific_force_mps2.copy())
    np.testing.assert_allclose(state.motion, begin, rtol=0, atol=1e-8)
    np.testing.assert_allclose(felt.mean(axis=0), (0.0, 0.0, G), rtol=0, atol=1e-3)
    assert felt.std(axis=0).max() < 1e-7
    assert np.linalg.norm(felt[0]) == pytest.approx(G, rel=1e-12)
    assert np.abs(velocity_of(state)).max() < 1e-12
    assert legs_down(multirotor, state) == 4


def test_at_rest_the_legs_carry_the_weight_and_share_it():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, HEIGHT_M))
    run(multirotor, state, 2 * SETTLING, planes=ground(multirotor))
    forces_n = state.impulse_ns[:4] / 1e-3
    assert forces_n[:, 2].sum() == pytest.approx(BARE.mass_kg * G, rel=1e-9)
    np.testing.assert_allclose(forces_n[:, 2], BARE.mass_kg * G / 4, rtol=0.3)
    np.testing.assert_array_equal(state.impulse_ns[4:], 0.0)


@compiled_only
def test_rotors_that_do_not_lift_it_yet_leave_it_at_rest():
    multirotor = build_multirotor(profile("iris"))
    state = state_at(multirotor, (0.0, 0.0, 0.055))
    run(multirotor, state, 2000, command=0.3, planes=ground(multirotor))
    np.testing.assert_allclose(position_of(state), (0.0, 0.0, 0.055), rtol=0, atol=2e-5)
    assert state.specific_force_mps2[2] == pytest.approx(G, rel=1e-9)


def test_it_lifts_off_when_thrust_is_above_weight():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, HEIGHT_M), rotor_radps=HOVER_RADPS * 1.1)
    run(multirotor, state, 1000, command=HOVER_COMMAND * 1.1, planes=ground(multirotor))
    assert position_of(state)[2] - HEIGHT_M == pytest.approx(0.5 * 0.21 * G, rel=1e-6)
    assert legs_down(multirotor, state) == 0


@compiled_only
def test_on_a_slope_that_friction_holds_it_does_not_creep():
    normal, turn = slope(25.0)
    multirotor = build_multirotor(changed(friction_ratio=0.8))
    state = state_at(multirotor, tuple(HEIGHT_M * part for part in normal), turn)
    planes = ground(multirotor, normal=normal)
    run(multirotor, state, 500, planes=planes)
    begin = position_of(state)
    run(multirotor, state, MINUTE, planes=planes)
    np.testing.assert_allclose(position_of(state), begin, rtol=0, atol=1e-7)
    np.testing.assert_allclose(rotate(orientation_of(state), tuple(state.specific_force_mps2)), (0.0, 0.0, G), rtol=0, atol=1e-6)


@compiled_only
def test_on_a_steeper_slope_it_slides_with_what_friction_leaves():
    normal, turn = slope(30.0)
    multirotor = build_multirotor(changed(friction_ratio=0.3))
    state = state_at(multirotor, tuple(HEIGHT_M * part for part in normal), turn)
    run(multirotor, state, 1000, planes=ground(multirotor, normal=normal))
    speed = G * (math.sin(math.radians(30.0)) - 0.3 * math.cos(math.radians(30.0)))
    assert np.linalg.norm(velocity_of(state)) == pytest.approx(speed, rel=1e-3)
    assert abs(np.dot(velocity_of(state), normal)) < 1e-3


@compiled_only
def test_without_friction_it_keeps_gliding():
    multirotor = build_multirotor(changed(friction_ratio=0.0))
    state = state_at(multirotor, (0.0, 0.0, HEIGHT_M), velocity_mps=(2.0, 0.0, 0.0))
    run(multirotor, state, 1000, planes=ground(multirotor))
    np.testing.assert_allclose(velocity_of(state), (2.0, 0.0, 0.0), rtol=0, atol=1e-9)


@compiled_only
def test_a_hard_landing_stops_at_once_without_a_bounce_and_says_how_hard_it_was():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, 1.0), velocity_mps=(0.0, 0.0, -3.0))
    seen = run(
        multirotor, state, 1000, planes=ground(multirotor), each=lambda after: (*position_of(after), velocity_of(after)[2], after.closing_mps[0])
    )
    impact = math.sqrt(3.0**2 + 2 * G * 0.9)
    assert seen[:, 4].max() == pytest.approx(impact, abs=0.01)
    assert seen[:, 2].min() > HEIGHT_M - 1e-5
    assert seen[:, 3].max() < 1e-9, "upward speed is a bounce"
    np.testing.assert_allclose(position_of(state), (0.0, 0.0, HEIGHT_M), rtol=0, atol=2e-5)


@compiled_only
@pytest.mark.parametrize("rotation_deg", [(25.0, 0.0, 0.0), (15.0, -20.0, 70.0), (180.0, 5.0, 0.0), (90.0, 0.0, 0.0)])
def test_a_crooked_landing_takes_energy_out_at_every_step_and_comes_to_rest(rotation_deg):
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, 0.6), from_roll_pitch_yaw(*rotation_deg), velocity_mps=(1.0, 0.5, -1.0), rates_radps=(1.0, -2.0, 0.5))
    seen = run(multirotor, state, 3000, planes=ground(multirotor), each=lambda after: (energy(after), after.motion[2]))
    assert np.diff(seen[:, 0]).max() < 1e-6
    np.testing.assert_allclose(state.motion[3:6], 0.0, atol=1e-9)
    np.testing.assert_allclose(rates_of(state), 0.0, atol=1e-9)
    corners = np.array((*BARE.legs, *BARE.hull)) @ matrix_from_quaternion(orientation_of(state)).T + position_of(state)
    assert corners[:, 2].min() == pytest.approx(0.0, abs=1e-5)
    assert np.linalg.norm(state.specific_force_mps2) == pytest.approx(G, rel=1e-6)


@compiled_only
def test_a_vehicle_that_starts_in_the_ground_leaves_it_slowly_and_without_a_jump():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, HEIGHT_M - 0.2), from_roll_pitch_yaw(3.0, -2.0, 10.0))
    before = orientation_of(state)
    seen = run(
        multirotor, state, 2500, planes=ground(multirotor), each=lambda after: (np.abs(after.motion[3:6]).max(), after.motion[2], after.motion[6])
    )
    assert seen[:1000, 0].max() < 1e-9
    assert np.diff(seen[:, 1]).max() <= 1.001e-4
    assert seen[999, 2] == pytest.approx(before[0], abs=1e-9)  # not turned while it is inside
    run(multirotor, state, 1000, planes=ground(multirotor))
    assert position_of(state)[2] == pytest.approx(HEIGHT_M, abs=2e-5)


def moving_wall(x_m, speed_mps):
    """A wall at ``x_m`` that comes towards greater x, as ``float64[1, 7]``."""
    return np.array([[*plane_through((x_m, 0.0, 0.0), (1.0, 0.0, 0.0)), speed_mps, 0.0, 0.0]])


@compiled_only
@pytest.mark.parametrize("speed_mps", [2.0, 7.0, 14.0])
def test_a_wall_that_comes_pushes_the_vehicle_to_its_own_speed_and_no_step_feels_more_than_an_inertial_sensor_measures(speed_mps):
    multirotor = build_multirotor(changed(friction_ratio=0.3))
    state = state_at(multirotor, (0.0, 0.0, HEIGHT_M))
    wall, before, closing, steps = moving_wall(-0.5, speed_mps), state.motion.copy(), [], []
    for _ in range(400):
        run(multirotor, state, 1, planes=ground(multirotor), obstacles=wall)
        wall[0, 3] += speed_mps * 1e-3
        steps.append(state.motion - before)
        before = state.motion.copy()
        closing.append(state.closing_mps[1])
    steps = np.array(steps)
    assert max(closing) == pytest.approx(speed_mps, rel=0.01)
    assert state.motion[3] == pytest.approx(speed_mps, rel=0.05)
    assert np.linalg.norm(steps[:, 3:6], axis=1).max() < 16.0 * G * 1e-3
    assert np.linalg.norm(steps[:, :3], axis=1).max() < 1.05e-3 * speed_mps + 1e-4
    assert np.linalg.norm(state.motion[10:13]) < np.radians(2000.0)


def test_a_plane_of_seven_numbers_at_rest_is_as_one_of_four():
    multirotor = build_multirotor(profile("iris"))
    one, other = (state_at(multirotor, (0.0, 0.0, 0.3), from_roll_pitch_yaw(8.0, 3.0, 0.0), velocity_mps=(1.0, 0.0, 0.0)) for _ in range(2))
    planes = ground(multirotor)
    steps = 400 if COMPILED else 200
    run(multirotor, one, steps, planes=planes)
    run(multirotor, other, steps, planes=np.hstack([planes, np.zeros((len(planes), 3))]))
    np.testing.assert_array_equal(other.motion, one.motion)


@compiled_only
def test_a_floor_that_rises_and_moves_aside_carries_the_vehicle_that_rests_on_it():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor, (0.0, 0.0, HEIGHT_M))
    planes = np.hstack([ground(multirotor), np.tile((0.5, 0.0, 0.3), (len(multirotor.point), 1))])
    for _ in range(1000):
        run(multirotor, state, 1, planes=planes)
        planes[:, 3] += 0.3e-3
    np.testing.assert_allclose(velocity_of(state), (0.5, 0.0, 0.3), atol=1e-3)
    assert position_of(state)[2] == pytest.approx(HEIGHT_M + 0.3, abs=2e-3)
    assert np.linalg.norm(state.specific_force_mps2) == pytest.approx(G, rel=1e-3)


@compiled_only
def test_each_leg_rests_on_its_own_ground():
    multirotor = build_multirotor(BARE)
    planes = no_planes(8)
    for number, (x, y, _) in enumerate(BARE.legs):
        planes[number] = plane_through((x, y, 0.1 * x), (0.0, 0.0, 1.0))
    state = state_at(multirotor, (0.0, 0.0, 0.2))
    run(multirotor, state, 2000, planes=planes)
    nose = rotate(orientation_of(state), (1.0, 0.0, 0.0))
    assert nose[2] / nose[0] == pytest.approx(0.1, abs=1e-3)
    assert np.linalg.norm(rates_of(state)) < 1e-9


def test_without_ground_it_falls_for_ever():
    multirotor = build_multirotor(BARE)
    state = state_at(multirotor)
    run(multirotor, state, 1000)
    assert position_of(state)[2] == pytest.approx(-0.5 * G, rel=1e-9)
    np.testing.assert_array_equal(state.closing_mps, 0.0)


def test_a_wall_stops_the_vehicle_and_the_speed_is_reported():
    multirotor = build_multirotor(changed(friction_ratio=0.0))
    wall = plane_through((5.0, 0.0, 0.0), (-1.0, 0.0, 0.0)).reshape(1, 4)
    state = state_at(multirotor, (4.0, 0.0, 10.0), velocity_mps=(2.0, 1.0, 0.0), rotor_radps=HOVER_RADPS)
    seen = run(
        multirotor,
        state,
        1000,
        command=HOVER_COMMAND,
        obstacles=wall,
        each=lambda after: (*position_of(after), *velocity_of(after), *after.closing_mps),
    )
    assert seen[:, 0].max() == pytest.approx(5.0 - 0.35 + 2.0**2 / (2.0 * MAX_PUSH_MPS2), abs=4e-3)  # guards give way
    assert seen[-1, 0] == pytest.approx(5.0 - 0.35, abs=1e-4)
    assert seen[:, 7].max() == pytest.approx(2.0, rel=1e-9)
    np.testing.assert_array_equal(seen[:, 6], 0.0)
    np.testing.assert_allclose(seen[-1, 3:6], (0.0, 1.0, 0.0), rtol=0, atol=1e-9)


def test_pressed_against_a_wall_the_vehicle_stays_there_and_feels_it():
    multirotor = build_multirotor(changed(friction_ratio=0.0), gravity_mps2=0.0)
    wall = plane_through((0.0, 0.0, 0.35), (0.0, 0.0, -1.0)).reshape(1, 4)
    state = state_at(multirotor, rotor_radps=HOVER_RADPS)
    run(multirotor, state, 1000, command=HOVER_COMMAND, obstacles=wall)
    np.testing.assert_allclose(state.motion[:6], 0.0, atol=1e-5)
    assert state.specific_force_mps2[2] == pytest.approx(0.0, abs=1e-6)
    assert state.impulse_ns[8, 2] / 1e-3 == pytest.approx(-BARE.mass_kg * G, rel=1e-9)


def test_a_corner_of_walls_holds_from_all_sides():
    multirotor = build_multirotor(BARE)
    corner = np.array([plane_through((1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)), plane_through((0.0, 1.0, 0.0), (0.0, -1.0, 0.0))])
    state = state_at(multirotor, (0.0, 0.1, 2.0), velocity_mps=(3.0, 4.0, 0.0))
    seen = run(multirotor, state, 600, obstacles=corner, each=lambda after: position_of(after)[:2])
    assert seen.max() <= 0.65 + 4.0**2 / (2.0 * MAX_PUSH_MPS2) + 5e-3


def test_a_contact_too_fast_breaks_the_vehicle_for_good():
    for speed_mps, broken in ((2.0, 0), (4.0, 1)):
        multirotor = build_multirotor(changed(crash_mps=3.0), gravity_mps2=0.0)
        state = state_at(multirotor, (0.0, 0.0, 0.3), velocity_mps=(0.0, 0.0, -speed_mps), rotor_radps=500.0)
        run(multirotor, state, 500, command=0.5, planes=ground(multirotor))
        assert state.crashed[0] == broken
        assert (state.rotor_radps < 1.0).all() == bool(broken)


def test_a_plane_needs_a_normal_with_a_length():
    with pytest.raises(ValueError, match=r"normal must have a length, got \(0.0, 0.0, 0.0\)"):
        plane_through((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
