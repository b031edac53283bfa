"""The wobble and what it rides on."""

import math

import numpy as np
import pytest

from hilsim.geometry.poses import mounting
from hilsim.geometry.rotations import conjugate, multiply
from hilsim.geometry.tracks import fixed_track, linear_track
from hilsim.vehicle.carrier import carrier_state, make_carrier
from hilsim.vehicle.wobble import KEYFRAMES, WobbleSpec, make_wobble, wobble_state

SPEC = WobbleSpec(amplitude_m=0.1, amplitude_deg=5.0, keyframe_interval_s=0.5, frequency_hz=1.3)
INTERVAL_NS = 500_000_000


def angle_rad(q):
    return 2 * math.acos(min(abs(q[0]), 1.0))


@pytest.mark.parametrize("seed", range(5))
def test_no_two_neighbouring_axes_are_nearly_opposite_not_even_over_the_repeat(seed):
    axis = make_wobble(SPEC, seed=seed).axis
    cosines = np.sum(axis * np.roll(axis, 1, axis=0), axis=1)
    assert cosines.min() > -math.cos(math.radians(10.0))
    np.testing.assert_allclose(np.linalg.norm(axis, axis=1), 1.0, atol=1e-12)


def test_axes_are_spread_evenly_over_the_sphere():
    axis = np.concatenate([make_wobble(SPEC, seed=seed).axis for seed in range(8)])
    np.testing.assert_allclose(axis.mean(axis=0), 0.0, atol=4 * math.sqrt(1 / 3 / len(axis)))
    np.testing.assert_allclose((axis**2).mean(axis=0), 1 / 3, atol=0.02)


def test_the_curve_passes_through_its_keyframes():
    wobble = make_wobble(SPEC, seed=3)
    for key in (0, 1, 17, KEYFRAMES - 1, KEYFRAMES, KEYFRAMES + 1):
        position, _ = wobble_state(wobble, key * INTERVAL_NS)
        np.testing.assert_allclose(position, wobble.position_m[key % KEYFRAMES], atol=1e-12)


@pytest.mark.parametrize("key", [1, 2, 500, KEYFRAMES - 1, KEYFRAMES])
def test_position_velocity_and_rotation_are_continuous_at_keyframes(key):
    wobble = make_wobble(SPEC, seed=3)
    step_ns = 1000
    before, at, after = (wobble_state(wobble, key * INTERVAL_NS + offset) for offset in (-step_ns, 0, step_ns))
    velocity = [np.subtract(b[0], a[0]) / (step_ns * 1e-9) for a, b in ((before, at), (at, after))]
    np.testing.assert_allclose(velocity[0], velocity[1], atol=1e-3)
    assert angle_rad(multiply(conjugate(before[1]), after[1])) < 1e-4


def test_the_rotation_is_the_amplitude_times_the_cosine_of_time():
    wobble = make_wobble(SPEC, seed=3)
    for time_ns in (0, 123_456_789, 10**10):
        expected = abs(math.radians(5.0) * math.cos(2 * math.pi * 1.3 * time_ns * 1e-9))
        assert angle_rad(wobble_state(wobble, time_ns)[1]) == pytest.approx(expected, abs=1e-9)


def test_position_keyframes_are_normal_with_the_given_spread():
    position = make_wobble(SPEC, seed=3).position_m
    assert position.std() == pytest.approx(0.1, rel=0.05)
    assert abs(position.mean()) < 4 * 0.1 / math.sqrt(position.size)


def test_without_a_wobble_the_carrier_is_its_track():
    carrier = make_carrier(fixed_track(mounting((1.0, 2.0, 3.0), (0.0, 0.0, 90.0))), None, seed=1)
    position, orientation = carrier_state(carrier, 123)
    assert position == (1.0, 2.0, 3.0)
    np.testing.assert_allclose(orientation, (math.sqrt(0.5), 0, 0, math.sqrt(0.5)), atol=1e-12)


def test_the_wobble_displaces_in_the_carriers_own_frame():
    yaw_90 = make_carrier(fixed_track(mounting((100.0, 0.0, 0.0), (0.0, 0.0, 90.0))), SPEC, seed=3)
    offset, _ = wobble_state(make_wobble(SPEC, seed=3), 77_000_000)
    position, _ = carrier_state(yaw_90, 77_000_000)
    np.testing.assert_allclose(np.subtract(position, (100.0, 0.0, 0.0)), (-offset[1], offset[0], offset[2]), atol=1e-12)


def test_a_carrier_far_from_zero_moves_exactly():
    keys = np.array([[500_000.0, 6_600_000.0, 10.0], [500_010.0, 6_600_000.0, 10.0]])
    track = linear_track(np.array([0, 10**9]), keys, np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)))
    position, _ = carrier_state(make_carrier(track, None, seed=1), 250_000_000)
    assert position == pytest.approx((500_002.5, 6_600_000.0, 10.0), abs=1e-9)


def test_a_wobble_spec_names_every_broken_rule():
    with pytest.raises(ValueError, match=r"amplitude_m must be 0 to 10, got -1.*; frequency_hz must be 0 to 100, got nan"):
        WobbleSpec(amplitude_m=-1.0, frequency_hz=float("nan"))
