"""Limits, noise and drop-outs; and when position packets are sent."""

import numpy as np
import pytest

from hilsim.compilation.jit import borrowing_kernel
from hilsim.compilation.lanes import WIDTH, store_lanes
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.position_stream import build_position_stream, next_position, position_time_ns, seek_positions
from hilsim.sensor.response import build_response, distance_code, draw_noise, is_dropped, noise_sd_m, range_noise, reflectivity_byte
from tests.lidars import exact_signal


def vlp16(**override):
    path = profiles_directory() / "sensors" / "vlp16.toml"
    return exact_signal(parse_table(VelodyneSpec, read_toml(path) | override, "vlp16"))


def quiet(**override):
    return build_response(vlp16(range_noise_m=0.0, **override), seed=1, stream=0)


@pytest.mark.parametrize(
    ("range_m", "code"),
    [(0.498, 0), (0.4989, 0), (0.4991, 250), (0.5, 250), (10.0, 5000), (10.0009, 5000), (10.0011, 5001), (120.0, 60000), (120.01, 0), (np.inf, 0)],
)
def test_ranges_are_rounded_to_2_mm_and_limited(range_m, code):
    assert distance_code(quiet(), range_m) == code


def test_range_noise_has_the_given_spread_and_no_bias():
    noisy = build_response(vlp16(), seed=1, stream=0)
    measured = np.array([20.0 + 0.02 * range_noise(noisy, channel, sequence, 0) for channel in range(16) for sequence in range(1000)])
    assert measured.mean() == pytest.approx(20.0, abs=4 * 0.02 / np.sqrt(measured.size))
    assert measured.std() == pytest.approx(0.02, rel=0.03)


@pytest.mark.parametrize(
    ("share", "is_retro", "code"),
    [
        (0.5, False, 50),
        (0.5, True, 50),
        (1.0, False, 100),
        (1.0, True, 100),
        (1.2, False, 100),
        (5.0, False, 100),
        (1.0001, True, 101),
        (1.2, True, 105),
        (1000.0, True, 255),
    ],
)
def test_only_a_retro_reflector_is_brighter_than_a_white_wall(share, is_retro, code):
    """Codes of the logarithmic scale by hand: 154 steps from 1 to 1000, so 1.2 is 101.5 + 154 * log(1.2) / log(1000) = 105.6."""
    assert reflectivity_byte(share / 400.0, 20.0, is_retro, 100) == code


def test_drop_outs_have_the_given_share():
    dropping = quiet(drop_out_ratio=0.25)
    lost = np.mean([is_dropped(dropping, channel, sequence) for channel in range(16) for sequence in range(1000)])
    assert lost == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 16_000))


def test_the_same_firing_always_draws_the_same_noise():
    noisy = build_response(vlp16(), seed=1, stream=0)
    assert len({range_noise(noisy, 3, 77, 0) for _ in range(3)}) == 1


@borrowing_kernel
def draw_all(response, errors, byte_errors):
    """Draw the errors of sixteen channels' first echoes of every firing sequence."""
    for sequence in range(errors.shape[0]):
        error, byte_error = draw_noise(response, 0, sequence)
        store_lanes(errors, sequence, error)
        store_lanes(byte_errors, sequence, byte_error)


def test_ranges_of_neighbouring_firings_share_a_part_of_their_error_and_bytes_do_not():
    drawn = {}
    for overlap in (0.0, 0.4):
        response = build_response(vlp16(detector={"range_noise_overlap": overlap}), seed=1, stream=0)
        drawn[overlap] = np.zeros((3000, WIDTH)), np.zeros((3000, WIDTH))
        draw_all(response, *drawn[overlap])
    (alone, bytes_alone), (shared, bytes_shared) = drawn.values()
    np.testing.assert_allclose(shared[:-1], (alone[:-1] + 0.4 * alone[1:]) / np.hypot(1.0, 0.4), atol=1e-12)
    assert [float(np.mean(shared[:-lag] * shared[lag:])) for lag in (1, 2)] == pytest.approx([0.4 / 1.16, 0.0], abs=0.02)
    assert shared.std() == pytest.approx(1.0, abs=0.02)
    np.testing.assert_array_equal(bytes_shared, bytes_alone)


def test_every_echo_of_a_firing_has_noise_of_its_own():
    noisy = build_response(vlp16(), seed=1, stream=0)
    assert len({range_noise(noisy, 3, 77, echo) for echo in range(4)}) == 4


@pytest.mark.parametrize(("percent", "sd_mm"), [(1.5, 16.3), (8.0, 9.0), (15.0, 7.0), (30.0, 5.5), (85.0, 4.1)])
def test_weak_echoes_are_noisier_as_measured_on_real_units(percent, sd_mm):
    noisy = build_response(vlp16(), seed=1, stream=0)
    assert 1000 * noise_sd_m(noisy, percent / 100 / 10.0**2, 10.0) == pytest.approx(sd_mm, abs=0.05)
    assert noise_sd_m(noisy, percent / 100 / 30.0**2, 30.0) > noise_sd_m(noisy, percent / 100 / 10.0**2, 10.0)


def test_a_spec_names_every_broken_rule_at_once():
    with pytest.raises(ValueError, match=r"range_min_m and range_max_m must be .*; range_noise_m must be 0 to 1, got -1"):
        VelodyneSpec(**{**vars(vlp16()), "range_max_m": 200.0, "range_noise_m": -1.0})


def test_position_intervals_are_irregular_like_a_real_units():
    stream = build_position_stream(vlp16().position, seed=1, stream=0)
    counters = np.zeros(2, np.int64)
    times = []
    for _ in range(3000):
        schedule, time_ns = next_position(stream, counters)
        counters[schedule] += 1
        times.append(time_ns)
    intervals_us = np.diff(times) / 1000
    assert intervals_us.mean() == pytest.approx(6858, rel=0.01)
    assert intervals_us.min() >= 1300
    assert 10_000 < intervals_us.max() < 11_500


def test_a_position_stream_can_be_entered_anywhere():
    stream = build_position_stream(vlp16().position, seed=1, stream=0)
    everything = sorted(position_time_ns(stream, schedule, index) for schedule in (0, 1) for index in range(400))
    counters = np.zeros(2, np.int64)
    seek_positions(stream, 1_000_000_000, counters)
    found = []
    for _ in range(50):
        schedule, time_ns = next_position(stream, counters)
        counters[schedule] += 1
        found.append(time_ns)
    assert found == [time_ns for time_ns in everything if time_ns >= 1_000_000_000][:50]
