"""Blades without guards: which of them an obstacle breaks, and what is left of the rotors."""

import math

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.contact import plane_through
from hilsim.parts.vehicle.physics.multirotor import MAX_STRIKE_SINE, build_multirotor, is_damaged, state_at, velocity_of
from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from tests.compiled import compiled_only
from tests.unit.vehicle.vehicles import HOVER_COMMAND, HOVER_RADPS, changed, ground, run

BLADE_M, RADIUS_M, CRASH_MPS = 0.1, 0.4, 5.0
UNGUARDED = changed(has_propeller_guards=False, collision_radius_m=RADIUS_M, crash_mps=CRASH_MPS, rotor={"rotor_radius_m": BLADE_M})
RIGHT_FRONT, LEFT_REAR, LEFT_FRONT, RIGHT_REAR = range(4)
FRONT = {RIGHT_FRONT, LEFT_FRONT}


def wall(course_deg, elevation_deg=0.0, *, away_m=RADIUS_M):
    """A plane at a distance from the origin in a direction: 0 is ahead, 90 to the left."""
    course, elevation = math.radians(course_deg), math.radians(elevation_deg)
    towards = np.array([math.cos(course) * math.cos(elevation), math.sin(course) * math.cos(elevation), math.sin(elevation)])
    return plane_through(tuple(away_m * towards), tuple(-towards)).reshape(1, 4), towards


def met(spec, planes, towards, *, speed_mps=0.2, rotor_radps=HOVER_RADPS, orientation=(1.0, 0.0, 0.0, 0.0), steps=3):
    """State after some steps of a vehicle that touches a plane at a speed."""
    state = state_at(build_multirotor(spec), velocity_mps=tuple(speed_mps * towards), rotor_radps=rotor_radps, orientation=orientation)
    run(build_multirotor(spec), state, steps, command=rotor_radps / spec.propulsion.top_speed_radps, obstacles=planes)
    return state


def broken(state):
    return set(np.flatnonzero(state.broken).tolist())


@pytest.mark.parametrize(
    ("course_deg", "struck"),
    [
        (0.0, FRONT),
        (90.0, {LEFT_FRONT, LEFT_REAR}),
        (180.0, {LEFT_REAR, RIGHT_REAR}),
        (45.0, {LEFT_FRONT}),
        (-45.0, {RIGHT_FRONT}),
        (10.0, {LEFT_FRONT}),
    ],
)
def test_a_touch_breaks_the_blades_that_reach_farthest_towards_the_obstacle(course_deg, struck):
    assert broken(met(UNGUARDED, *wall(course_deg))) == struck


def test_a_deeper_contact_breaks_the_blades_that_reach_less_far():
    course_deg = 10.0
    behind_m = 0.4 * math.sin(math.radians(course_deg))  # of the front rotors, 0.4 m apart
    for depth_m, struck in ((behind_m - 0.005, {LEFT_FRONT}), (behind_m + 0.005, FRONT)):
        planes, towards = wall(course_deg, away_m=RADIUS_M - depth_m)
        assert broken(met(UNGUARDED, planes, towards, steps=1)) == struck


def test_the_attitude_of_the_vehicle_decides_which_blades_are_struck():
    planes, towards = wall(0.0)
    assert broken(met(UNGUARDED, planes, towards, orientation=from_roll_pitch_yaw(0.0, 0.0, 90.0))) == {RIGHT_FRONT, RIGHT_REAR}


@pytest.mark.parametrize(("off_deg", "is_struck"), [(-1.0, True), (1.0, False)])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_an_obstacle_more_than_thirty_degrees_above_or_below_the_rotors_breaks_no_blade(off_deg, is_struck, sign):
    elevation_deg = sign * (math.degrees(math.asin(MAX_STRIKE_SINE)) + off_deg)
    assert bool(broken(met(UNGUARDED, *wall(0.0, elevation_deg), steps=1))) == is_struck


@pytest.mark.parametrize(("tip_mps", "is_struck"), [(0.0, False), (0.9 * CRASH_MPS, False), (1.1 * CRASH_MPS, True)])
def test_a_blade_breaks_if_its_tip_is_faster_than_the_crash_speed(tip_mps, is_struck):
    assert bool(broken(met(UNGUARDED, *wall(0.0), rotor_radps=tip_mps / BLADE_M))) == is_struck


@pytest.mark.parametrize(
    "spec",
    [changed(UNGUARDED, has_propeller_guards=True), changed(UNGUARDED, crash_mps=math.inf)],
)
def test_guards_and_an_infinite_crash_speed_keep_the_blades(spec):
    state = met(spec, *wall(0.0), steps=1)
    assert state.impulse_ns[len(spec.legs) + len(spec.hull)].any()
    assert not is_damaged(state)


def test_an_obstacle_that_does_not_touch_breaks_nothing():
    assert not is_damaged(met(UNGUARDED, *wall(0.0, away_m=RADIUS_M + 0.01)))


def test_ground_breaks_no_blade():
    multirotor = build_multirotor(UNGUARDED)
    state = state_at(multirotor, (0.0, 0.0, 0.1), velocity_mps=(0.0, 0.0, -1.0), rotor_radps=HOVER_RADPS)
    run(multirotor, state, 50, command=HOVER_COMMAND, planes=ground(multirotor))
    assert not is_damaged(state)


@compiled_only
def test_struck_rotors_run_down_the_others_obey_and_the_vehicle_turns_over_and_falls():
    multirotor = build_multirotor(UNGUARDED)
    planes, towards = wall(0.0)
    state = met(UNGUARDED, planes, towards)
    assert is_damaged(state)
    assert state.crashed[0] == 0
    run(multirotor, state, 120, command=HOVER_COMMAND, obstacles=planes)
    lag_s = UNGUARDED.propulsion.spin_down_s
    np.testing.assert_allclose(state.rotor_radps[[RIGHT_FRONT, LEFT_FRONT]], HOVER_RADPS * math.exp(-0.122 / lag_s), rtol=0.05)
    np.testing.assert_allclose(state.rotor_radps[[LEFT_REAR, RIGHT_REAR]], HOVER_RADPS, rtol=1e-9)
    assert broken(state) == FRONT
    assert state.motion[11] > 5.0, "it must pitch nose down"
    assert velocity_of(state)[2] < -0.3
