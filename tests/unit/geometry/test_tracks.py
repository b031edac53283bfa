"""Pose tracks against hand-computed cases and against SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation

from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.rotations import about_axis, from_roll_pitch_yaw
from hilsim.world.geometry.tracks import curved_track, fixed_track, linear_track, smooth_track, top_speed_mps, track_pose, track_state
from tests.depth import examples

SECOND = 1_000_000_000
LEVEL = (1.0, 0.0, 0.0, 0.0)


def random_keys(seed, count=6, spread=1000.0):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(1_000_000, 2 * SECOND, count)) - SECOND
    turns = [from_roll_pitch_yaw(*rng.uniform(-180.0, 180.0, 3)) for _ in range(count)]
    return times, rng.uniform(-spread, spread, (count, 3)), turns


def test_a_fixed_track_stands_still_at_any_time():
    pose = mounting((1.0, 2.0, 3.0), (0.0, 0.0, 30.0))
    track = fixed_track(pose)
    for time_ns in (-SECOND, 0, 10**18):
        position, turn = track_state(track, time_ns)
        assert position == pose.position_m
        np.testing.assert_allclose(turn, pose.orientation, atol=1e-15)


def test_track_pose_writes_what_track_state_returns():
    track = linear_track(*random_keys(1))
    position, turn = np.empty(3), np.empty(4)
    track_pose(track, SECOND, position, turn)
    expected = track_state(track, SECOND)
    assert (tuple(position), tuple(turn)) == expected


def test_a_linear_track_keeps_constant_speed_on_both_sides_of_a_corner():
    track = linear_track([0, SECOND, 3 * SECOND], [[0, 0, 0], [1, 0, 0], [1, 4, 0]], [LEVEL] * 3)
    np.testing.assert_allclose(track_state(track, SECOND // 4)[0], (0.25, 0.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(track_state(track, SECOND * 3 // 2)[0], (1.0, 1.0, 0.0), atol=1e-15)
    assert top_speed_mps(track) == pytest.approx(2.0)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
@settings(max_examples=examples(50))
def test_a_linear_track_agrees_with_interpolation_of_each_coordinate(seed, share):
    times, positions, turns = random_keys(seed)
    at = int(times[0] + share * (times[-1] - times[0]))
    expected = [np.interp(at, times, positions[:, axis]) for axis in range(3)]
    np.testing.assert_allclose(track_state(linear_track(times, positions, turns), at)[0], expected, atol=1e-9)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
@settings(max_examples=examples(50))
def test_a_smooth_track_is_the_hermite_spline_of_its_tangents(seed, share):
    times, positions, turns = random_keys(seed)
    track = smooth_track(times, positions, turns)
    at = int(times[0] + share * (times[-1] - times[0]))
    expected = CubicHermiteSpline((times - times[0]) * 1e-9, positions, track.departure_mps)((at - times[0]) * 1e-9)
    np.testing.assert_allclose(track_state(track, at)[0], expected, atol=1e-8)


def test_smooth_tangents_reproduce_a_parabola_at_uneven_times():
    seconds = np.array([0.0, 0.5, 2.0, 3.0])
    track = smooth_track((seconds * 1e9).astype(np.int64), np.stack([seconds**2, seconds, 0 * seconds], axis=1), [LEVEL] * 4)
    np.testing.assert_allclose(track.departure_mps[1:3, 0], 2.0 * seconds[1:3], atol=1e-9)
    np.testing.assert_allclose(track_state(track, 1_200_000_000)[0], (1.44, 1.2, 0.0), atol=1e-9)


def test_a_smooth_track_has_no_corner_at_a_key():
    times, positions, turns = random_keys(3)
    track = smooth_track(times, positions, turns)
    before, at, after = (np.array(track_state(track, int(times[2]) + step)[0]) for step in (-10_000, 0, 10_000))
    np.testing.assert_allclose((at - before) / 1e-5, (after - at) / 1e-5, rtol=1e-3, atol=0.1)


def test_a_track_stands_still_outside_its_keys():
    times, positions, turns = random_keys(4)
    track = smooth_track(times, positions, turns)
    np.testing.assert_array_equal(track_state(track, int(times[0]) - SECOND)[0], positions[0])
    np.testing.assert_array_equal(track_state(track, int(times[-1]) + SECOND)[0], positions[-1])


@pytest.mark.parametrize("build", [linear_track, smooth_track])
def test_a_periodic_track_repeats_also_before_its_first_key(build):
    track = build([0, SECOND, 2 * SECOND], [[0, 0, 0], [1, 0, 0], [1, 1, 0]], [LEVEL] * 3, period_ns=4 * SECOND)
    for time_ns in (0, 1, SECOND + 7, 3 * SECOND + 123):
        for rounds in (-3, 1, 1000):
            np.testing.assert_allclose(track_state(track, time_ns + rounds * 4 * SECOND)[0], track_state(track, time_ns)[0], atol=1e-12)


def test_a_curve_keeps_its_velocities_waits_for_its_first_key_and_repeats_from_there():
    keys = [2 * SECOND, 3 * SECOND, 5 * SECOND], [[0, 0, 0], [1, 1, 0], [0, 0, 0]]
    arrival, departure = [[7, 0, 0], [0, 4, 0], [0, -3, 0]], [[2, 0, 0], [0, -1, 0], [9, 9, 9]]
    track = curved_track(*keys, arrival, departure, [LEVEL] * 3, period_ns=3 * SECOND)
    state = CubicHermiteSpline([0.0, 1.0], [[0, 0, 0], [1, 1, 0]], [[2, 0, 0], [0, 4, 0]])
    back = CubicHermiteSpline([1.0, 3.0], [[1, 1, 0], [0, 0, 0]], [[0, -1, 0], [0, -3, 0]])
    for time_s in (0.0, 0.3, 0.999, 1.0, 1.7, 2.9):
        expected = (state if time_s < 1.0 else back)(time_s)
        for rounds in (0, 1, 1000):
            np.testing.assert_allclose(track_state(track, round((2.0 + time_s + 3.0 * rounds) * 1e9))[0], expected, atol=1e-9)
    for time_s in (-1000.0, 0.0, 1.2, 2.0):
        np.testing.assert_array_equal(track_state(track, round(time_s * 1e9))[0], (0.0, 0.0, 0.0))
    path = np.array([track_state(track, time_ns)[0] for time_ns in range(0, 9 * SECOND, SECOND // 200)])
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() * 200.0 <= top_speed_mps(track)


@pytest.mark.parametrize("bad", [[[0, 0, 0]], [[0, 0]] * 2, [[0, 0, 0], [0, np.nan, 0]]])
def test_velocities_must_be_as_many_as_keys_and_finite(bad):
    for which in range(2):
        velocities = [np.zeros((2, 3))] * 2
        velocities[which] = bad
        with pytest.raises(ValueError, match=("arrival_mps", "departure_mps")[which]):
            curved_track([0, SECOND], np.zeros((2, 3)), *velocities, [LEVEL] * 2)


def test_a_periodic_track_closes_from_the_last_key_to_the_first():
    track = linear_track([0, 2 * SECOND], [[0, 0, 0], [2, 0, 0]], [LEVEL] * 2, period_ns=3 * SECOND)
    np.testing.assert_allclose(track_state(track, 2 * SECOND + SECOND // 2)[0], (1.0, 0.0, 0.0), atol=1e-12)
    assert top_speed_mps(track) == pytest.approx(2.0)


def test_a_loop_that_repeats_its_first_pose_closes_without_a_jump():
    track = linear_track([0, SECOND, 2 * SECOND], [[0, 0, 0], [5, 0, 0], [0, 0, 0]], [LEVEL] * 3, period_ns=2 * SECOND)
    assert len(track.time_ns) == 2
    np.testing.assert_allclose(track_state(track, 2 * SECOND - 1)[0], (5e-9, 0.0, 0.0), atol=1e-12)


def test_a_loop_whose_last_key_differs_from_its_first_is_refused():
    with pytest.raises(ValueError, match="row 1: a key one period after the first must repeat"):
        linear_track([0, SECOND], [[0, 0, 0], [5, 0, 0]], [LEVEL] * 2, period_ns=SECOND)


def test_a_full_turn_of_yaw_in_quarters_keeps_turning_the_same_way():
    turns = [from_roll_pitch_yaw(0.0, 0.0, yaw) for yaw in (0.0, 90.0, 180.0, 270.0)]
    track = linear_track(np.arange(4) * SECOND, np.zeros((4, 3)), turns, period_ns=4 * SECOND)
    for eighths in range(32):
        w, x, y, z = track_state(track, eighths * SECOND // 8)[1]
        yaw = Rotation.from_quat([x, y, z, w]).as_euler("ZYX", degrees=True)[0]
        assert (yaw - eighths * 11.25 + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=1e-9)


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
@settings(max_examples=examples(40))
def test_no_instant_is_faster_than_the_top_speed(seed, is_smooth, is_periodic):
    times, positions, turns = random_keys(seed, count=4, spread=50.0)
    period_ns = int(times[-1] - times[0]) + SECOND if is_periodic else 0
    track = (smooth_track if is_smooth else linear_track)(times, positions, turns, period_ns)
    at = np.linspace(times[0] - SECOND, times[-1] + 2 * SECOND, 400).astype(np.int64)
    path = np.array([track_state(track, int(t))[0] for t in at])
    speeds = np.linalg.norm(np.diff(path, axis=0), axis=1) / (np.diff(at) * 1e-9)
    assert speeds.max() <= top_speed_mps(track) * (1.0 + 1e-9)


def test_quaternions_of_keys_are_brought_to_one_hemisphere():
    q = about_axis((0.0, 0.0, 1.0), 0.2)
    track = linear_track([0, 1], np.zeros((2, 3)), [LEVEL, tuple(-part for part in q)])
    np.testing.assert_allclose(track.orientation[1], q, atol=1e-15)


@pytest.mark.parametrize(
    ("times", "positions", "turns", "message"),
    [
        ([0, 0], [[0, 0, 0]] * 2, [LEVEL] * 2, "row 1: time_ns must be later"),
        ([5, 3], [[0, 0, 0]] * 2, [LEVEL] * 2, "row 1: time_ns must be later"),
        ([0, 1], [[0, 0, 0], [0, np.nan, 0]], [LEVEL] * 2, "row 1: position_m must be finite"),
        ([0, 1], [[0, 0, 0]] * 2, [LEVEL, (1.0, 0.1, 0.0, 0.0)], "row 1: orientation must be a unit quaternion"),
        ([0, 1], [[0, 0, 0]] * 2, [(np.nan, 0.0, 0.0, 0.0), LEVEL], "row 0: orientation must be finite"),
        ([0, 1], [[0, 0, 0]], [LEVEL] * 2, r"position_m must have shape \(2, 3\)"),
        ([0, 1], [[0, 0, 0]] * 2, [LEVEL], r"orientation must have shape \(2, 4\)"),
        ([0.5], [[0, 0, 0]], [LEVEL], "time_ns must be whole nanoseconds"),
        ([], np.zeros((0, 3)), np.zeros((0, 4)), "time_ns must be whole nanoseconds"),
    ],
)
def test_a_track_names_the_row_at_fault(times, positions, turns, message):
    with pytest.raises(ValueError, match=message):
        linear_track(times, positions, turns)


def test_a_period_shorter_than_the_keys_is_refused():
    with pytest.raises(ValueError, match=r"period_ns must be 0 or at least the keys' span of 10, got 5"):
        linear_track([0, 10], np.zeros((2, 3)), [LEVEL] * 2, period_ns=5)


def test_a_fixed_track_has_no_speed():
    assert top_speed_mps(fixed_track(Pose())) == 0.0
