"""The disturbance is a function of time: continuous, repeatable, of the stated size."""

import math

import numpy as np
import pytest

from hilsim.world.geometry.poses import mounting
from hilsim.world.geometry.rotations import conjugate, multiply
from hilsim.world.geometry.tracks import fixed_track, linear_track
from hilsim.world.platforms.disturbance import (
    _NEARLY_OPPOSED,
    DisturbanceSpec,
    _drawn_axis,
    axis_keyframe,
    build_disturbance,
    disturbance_pose,
    position_keyframe,
)
from hilsim.world.platforms.platform import build_platform, platform_state

SPEC = DisturbanceSpec(amplitude_m=0.2, amplitude_deg=5.0, keyframe_interval_s=0.5, frequency_hz=1.3)
INTERVAL_NS = 500_000_000


def angle_between(a, b):
    return 2.0 * math.acos(min(1.0, abs(multiply(conjugate(a), b)[0])))


def test_the_path_goes_through_its_keyframes():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    for key in (-3, 0, 5):
        np.testing.assert_allclose(disturbance_pose(disturbance, key * INTERVAL_NS)[0], position_keyframe(disturbance, key), atol=1e-15)


def test_half_way_the_path_is_the_catmull_rom_mean_of_four_keyframes():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    a, b, c, d = (np.array(position_keyframe(disturbance, key)) for key in (3, 4, 5, 6))
    np.testing.assert_allclose(disturbance_pose(disturbance, 4 * INTERVAL_NS + INTERVAL_NS // 2)[0], (-a + 9 * b + 9 * c - d) / 16, atol=1e-15)


def test_keyframes_are_normal_with_the_amplitude_as_standard_deviation():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    keyframes = np.array([position_keyframe(disturbance, key) for key in range(4000)])
    np.testing.assert_allclose(keyframes.std(axis=0), 0.2, rtol=0.05)
    np.testing.assert_allclose(keyframes.mean(axis=0), 0.0, atol=4 * 0.2 / math.sqrt(4000))


def test_axes_are_spread_evenly_over_the_sphere():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    axes = np.array([_drawn_axis(disturbance, key) for key in range(4000)])
    np.testing.assert_allclose(axes.T @ axes / 4000, np.eye(3) / 3, atol=0.03)
    np.testing.assert_allclose(axes.mean(axis=0), 0.0, atol=4 / math.sqrt(3 * 4000))


def test_following_axes_never_nearly_oppose_each_other():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    drawn = np.array([_drawn_axis(disturbance, key) for key in range(4000)])
    used = np.array([axis_keyframe(disturbance, key) for key in range(4000)])
    assert (np.einsum("ij,ij->i", drawn[:-1], drawn[1:]) < _NEARLY_OPPOSED).any(), "the seed must have a pair to negate"
    assert (np.einsum("ij,ij->i", used[:-1], used[1:]) >= _NEARLY_OPPOSED).all()


def test_axes_equal_those_of_a_walk_that_remembers_the_axis_before():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    before = np.array(axis_keyframe(disturbance, 0))
    for key in range(1, 4000):
        axis = np.array(_drawn_axis(disturbance, key))
        if axis @ before < _NEARLY_OPPOSED:
            axis = -axis
        np.testing.assert_array_equal(axis_keyframe(disturbance, key), axis)
        before = axis


def test_the_pose_is_continuous_across_every_keyframe():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    for key in range(-5, 600):
        before, after = disturbance_pose(disturbance, key * INTERVAL_NS - 1), disturbance_pose(disturbance, key * INTERVAL_NS)
        np.testing.assert_allclose(before[0], after[0], atol=1e-7)
        assert angle_between(before[1], after[1]) < 1e-6


def test_the_velocity_is_continuous_across_a_keyframe():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    p = np.array([disturbance_pose(disturbance, 7 * INTERVAL_NS + step)[0] for step in (-1000, 0, 1000)])
    np.testing.assert_allclose(p[1] - p[0], p[2] - p[1], atol=1e-10)


def test_the_angle_is_the_amplitude_times_the_cosine():
    disturbance = build_disturbance(SPEC, seed=7, stream=1)
    for time_ns in (0, 123_456_789, 10**12):
        w = disturbance_pose(disturbance, time_ns)[1][0]
        expected = math.radians(5.0) * math.cos(2 * math.pi * 1.3 * time_ns * 1e-9)
        assert 2.0 * math.acos(w) == pytest.approx(abs(expected), abs=1e-7)


def test_seeds_and_streams_are_disturbed_differently():
    poses = {disturbance_pose(build_disturbance(SPEC, seed, stream), INTERVAL_NS // 3) for seed in (1, 2, 2**64 - 1) for stream in (0, 1)}
    assert len(poses) == 6


def test_a_platform_without_disturbance_follows_its_track_exactly():
    track = linear_track([0, 10**9], [[0, 0, 0], [10, 0, 0]], [(1.0, 0.0, 0.0, 0.0)] * 2)
    assert platform_state(build_platform(track), 500_000_000) == ((5.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))


def test_the_disturbance_is_between_the_body_and_the_sensor_rig():
    disturbance = build_disturbance(SPEC, seed=3, stream=0)
    body = mounting((100.0, 200.0, 3.0), (0.0, 0.0, 90.0))
    position, turn = platform_state(build_platform(fixed_track(body), disturbance), 777_000_000)
    offset, rocking = disturbance_pose(disturbance, 777_000_000)
    np.testing.assert_allclose(position, body.transform(offset), atol=1e-12)
    np.testing.assert_allclose(turn, multiply(body.orientation, rocking), atol=1e-12)


def test_a_disturbance_names_each_setting_out_of_range():
    with pytest.raises(ValueError, match=r"amplitude_m must be 0 to 10, got -1.*; keyframe_interval_s must be 0.05 to 3600, got 0"):
        DisturbanceSpec(amplitude_m=-1.0, keyframe_interval_s=0.0)
