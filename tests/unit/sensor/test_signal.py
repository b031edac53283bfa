"""The signal of a receiver: noise of bytes, grid and correction of ranges, lost firings, bytes of empty ones."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from hilsim.compilation.jit import constant, kernel
from hilsim.compilation.lanes import WIDTH, load_lanes, store_lanes
from hilsim.rng import Purpose, uniform
from hilsim.sensor.echoes import ENERGY, RANGE, RAY, allocate_hits
from hilsim.sensor.signal import losses, noise
from hilsim.sensor.signal.signal import (
    HALVES,
    NOISES,
    RANGES,
    build_signal,
    bytes_in_steps,
    drawn_lasers,
    drop_out_ratios,
    ideal_lasers,
    noise_by_byte,
)
from hilsim.sensor.signal.spec import SignalSpec
from tests.compiled import compiled_only

REAL = SignalSpec(
    byte_noise=0.4,
    byte_noise_ratio=0.05,
    byte_step=2.2,
    grid_codes=2,
    correction_codes=3,
    correction_changes_per_byte=0.5,
    correction_straddle_ratio=0.3,
    split_loss_ratio=0.5,
    drop_out_ratio=0.006,
    one_sided_ratio=0.1,
    empty_byte_ratio=0.05,
    lost_byte_ratio=0.2,
)
BASELINE = np.full(16, 9, np.uint8)
SEED = np.uint64(7)
_SIGNAL_LOSS, _EMPTY_BYTE = constant(Purpose.SIGNAL_LOSS), constant(Purpose.EMPTY_BYTE)


@cache
def signal(spec=REAL):
    return build_signal(spec, code_min=250, code_max=60_000)


def lasers(spec=REAL, *, seed=7, stream=1):
    return drawn_lasers(spec, BASELINE, np.ones(16), np.zeros((16, 256), np.int64), seed=seed, stream=stream)


@kernel
def judge(diffuse_max, given, byte_noise, reported, range_gain, results):
    """Percent, gain, error and range of sixteen echoes → byte and column."""
    percent = noise.ranged_percents(load_lanes(given, 0), load_lanes(given, 3), range_gain)
    byte, half = noise.noisy_bytes(percent, load_lanes(given, 1), byte_noise, reported, 0, load_lanes(given, 2), diffuse_max)
    store_lanes(results, 0, byte)
    store_lanes(results, 1, half)


@kernel
def judge_one(diffuse_max, byte, percent, byte_noise, reported, channel, error):
    """The same of one echo."""
    return noise.noisy_byte(byte, percent, byte_noise, reported, channel, error, diffuse_max)


def test_sixteen_bytes_are_those_of_one_at_a_time():
    rng, of_unit = np.random.default_rng(1), lasers(replace(REAL, byte_noise_spread=0.5, byte_step_from=30.0, byte_step_growth=0.1))
    range_gain = rng.uniform(0.8, 1.2, (RANGES, 1)).astype(np.float32)
    for _ in range(20):
        given = np.stack([rng.uniform(0, 140, WIDTH), rng.uniform(0.9, 1.1, WIDTH), rng.normal(size=WIDTH), rng.uniform(0.0, 150.0, WIDTH)])
        results = np.zeros((2, WIDTH))
        judge(100, given, of_unit.byte_noise, of_unit.reported, range_gain, results)
        percent = given[0] * range_gain[np.minimum(given[3] * 4.0, RANGES - 1).astype(int), 0] * given[1]
        one = [judge_one(100, 50, float(percent[lane]), of_unit.byte_noise, of_unit.reported, lane, float(given[2, lane])) for lane in range(WIDTH)]
        assert list(zip(*results.astype(int).tolist(), strict=True)) == one
        assert results[0].min() >= 0
        assert results[0].max() <= 100
        assert (results[1] // 2 == results[0]).all()


def of_ideal(spec, percent, *, error=0.0, byte=0):
    """Byte and column that an ideal laser makes of one echo."""
    ideal = ideal_lasers(spec, BASELINE[:1], np.ones(1))
    return judge_one(100, byte, float(percent), ideal.byte_noise, ideal.reported, 0, float(error))


def test_without_noise_bytes_are_rounded_percents():
    exact = [of_ideal(SignalSpec(), percent, error=3.0) for percent in (0.2, 41.49, 41.5, 99.7, 250.0)]
    assert [byte for byte, _ in exact] == [0, 41, 42, 100, 100]


def test_bytes_come_in_steps_from_a_reflectivity_on_alone():
    spec = SignalSpec(byte_step=3.0, byte_step_from=45.0)
    assert sorted({of_ideal(spec, percent)[0] for percent in np.arange(0.0, 95.0, 0.1)}) == [*range(46), *range(48, 97, 3)]


def test_steps_grow_with_the_byte_and_differ_from_laser_to_laser():
    spec = SignalSpec(byte_step=3.0, byte_step_from=35.0, byte_step_growth=0.05)
    reported = np.flatnonzero(bytes_in_steps(spec))
    assert reported[:36].tolist() == [*range(36)]
    # From 35 on, the distance to byte 15 grows by 5 % a step.
    assert ((reported >= 35) & (reported < 75)).sum() == pytest.approx(np.log(60.0 / 20.0) / np.log(1.05), abs=1.0)
    assert np.diff(reported[reported > 80]).max() == 3
    assert np.diff(np.flatnonzero(bytes_in_steps(spec, 1.5))).max() == 5
    assert bytes_in_steps(SignalSpec()).all()


def test_noise_differs_from_laser_to_laser_from_band_to_band_and_from_place_to_place_with_the_models_mean_square():
    drawn = lasers(replace(REAL, byte_noise_spread=0.6))
    table = drawn.byte_noise.reshape(16, NOISES) / noise_by_byte(REAL)
    at_bands = np.log(table[:, ::10])
    assert at_bands.std() == pytest.approx(0.6 * np.sqrt(1.0 / 3.0), abs=0.05)
    assert at_bands.mean(axis=1).std() > 0.03
    assert np.log(drawn.place_noise).std() == pytest.approx(0.6 * np.sqrt(2.0 / 3.0), abs=0.05)
    for ratio in (table[:, ::10], drawn.place_noise):
        assert np.mean(ratio**2) == pytest.approx(1.0, abs=0.25)
    np.testing.assert_allclose(lasers().byte_noise.reshape(16, NOISES), np.tile(noise_by_byte(REAL), (16, 1)), rtol=1e-6)
    assert lasers().place_noise.tolist() == [[1.0]]


@kernel
def place(error, range_m, place_noise, channel, results):
    """Errors of sixteen bytes at their ranges."""
    store_lanes(results, 0, noise.placed_errors(load_lanes(error, 0), load_lanes(range_m, 0), place_noise, channel))


@kernel
def place_one(error, range_m, place_noise, channel):
    return noise.placed_error(error, range_m, place_noise, channel)


def test_sixteen_errors_at_their_places_are_those_of_one_at_a_time():
    rng, place_noise = np.random.default_rng(1), lasers(replace(REAL, byte_noise_spread=0.5)).place_noise
    for channel in (0, 16):
        error, range_m, results = rng.normal(size=(1, WIDTH)), rng.uniform(0.0, 150.0, (1, WIDTH)), np.zeros((1, WIDTH))
        place(error, range_m, place_noise, channel, results)
        one = [place_one(error[0, lane], range_m[0, lane], place_noise, channel + lane) for lane in range(WIDTH)]
        np.testing.assert_array_equal(results[0], one)
        assert np.unique(results / error).size > 10


def test_retro_reflectors_stay_above_the_scale_of_diffuse_surfaces():
    assert [of_ideal(REAL, 1e5, byte=byte, error=error)[0] for byte, error in ((102, -3.0), (180, 0.0), (254, 3.0))] == [
        101,
        180,
        255,
    ]


def test_the_default_signal_adds_nothing():
    found = lasers(SignalSpec())
    assert (found.reported.reshape(16, HALVES) // 2 == np.minimum((np.arange(HALVES) + 1) // 2, 255)).all()
    assert not found.byte_noise.any()
    assert (found.range_gain == 1.0).all()
    assert not found.correction.any()
    assert not signal(SignalSpec()).has_bytes
    assert not found.ripple_m.any()


def test_units_differ_by_seed_and_by_sensor():
    one = lasers()
    assert one.correction.shape == (16, HALVES)
    assert (np.abs(one.correction) <= 3).all()
    assert (np.abs(np.diff(one.correction[:, ::2].astype(int))) <= 1).all()
    for other in (lasers(seed=8), lasers(stream=2)):
        assert (one.correction != other.correction).any(axis=1).all()
    np.testing.assert_array_equal(one.correction, lasers().correction)


def test_the_ripple_repeats_every_five_firing_sequences_and_passes_from_laser_to_laser():
    ripple_m = lasers(SignalSpec(ripple_m=0.005)).ripple_m
    assert ripple_m.shape == (5, 16)
    np.testing.assert_allclose(ripple_m[:, 1:], np.roll(ripple_m, 1, axis=0)[:, :-1], atol=1e-12)
    assert 0.5 * 0.00375**2 < np.mean(ripple_m**2) < 0.6 * 0.00625**2
    np.testing.assert_allclose(ripple_m.mean(axis=0), 0.0, atol=1e-12)


def test_a_corrected_code_stays_within_the_limits():
    assert [noise.shifted_code(signal(), code, by) for code, by in ((1000, 2), (250, -3), (60_000, 3), (0, 0))] == [1002, 250, 60_000, 0]


def hits_at(*ranges_m, rays=None):
    hits = allocate_hits(1, len(ranges_m))
    hits.value[0, :, RANGE], hits.value[0, :, ENERGY], hits.hit_count[0] = ranges_m, 1.0, len(ranges_m)
    hits.what[0, :, RAY] = range(len(ranges_m)) if rays is None else rays
    return hits


@pytest.mark.parametrize(
    ("ranges_m", "rays", "expected"),
    [
        ((3.0, 3.01, 3.02), None, False),
        ((3.0, 9.0, 3.01), None, True),
        ((3.0, 3.3), None, False),
        ((30.0, 30.2, 30.4, 30.6, 30.8), None, False),  # a slanted road
        ((4.0, 4.0, 9.0, 9.0), (0, 1, 0, 1), False),  # a pane and what is behind
        ((9.0, 9.0, 1.3), (0, 1, -1), False),  # a drop of rain
    ],
)
def test_a_beam_is_split_between_surfaces_apart_from_each_other(ranges_m, rays, expected):
    hits = hits_at(*ranges_m, rays=rays)
    near_m, far_m = losses.split_after_m(hits.hit_count[0], hits.value, hits.what, 0, 0.35)
    assert np.isfinite(near_m) == np.isfinite(far_m) == expected


@pytest.mark.parametrize(
    ("draw", "far_m", "expected"),
    [(0.0, 9.0, 0.2), (0.25, 9.0, 0.6), (0.5, 9.0, 1.0), (0.51, 9.0, None), (0.25, 6.0, 1.0)],  # the last pair merges
)
def test_the_echoes_of_a_split_beam_that_is_not_lost_keep_a_share_of_their_light(draw, far_m, expected):
    dim = SignalSpec(split_loss_ratio=0.5, split_light_ratio=0.2)
    hits = hits_at(5.0, far_m, 5.01)
    lost = losses.is_lost(signal(dim), -1, 1.2, draw, SEED, 1, 3, 3, hits.value, hits.what, 0)
    assert lost == (expected is None)
    if not lost:
        np.testing.assert_allclose(hits.value[0, :, ENERGY], expected)


@kernel
def find_lost(signal, ratio, hit_count, value, what, lost):
    """Whether each firing of the same hits is lost → ``bool[n]``."""
    for index in range(lost.size):
        draw, share = uniform(SEED, 1, index, _SIGNAL_LOSS), losses.lambertian_share(hit_count, value, 0)
        lost[index] = losses.is_dropped_out(ratio, draw, share) or losses.is_lost(signal, -1, 1.2, draw, SEED, 1, index, hit_count, value, what, 0)


def are_lost(spec, hits, count):
    lost = np.zeros(count, bool)
    find_lost(signal(spec), drop_out_ratios(spec), hits.hit_count[0], hits.value, hits.what, lost)
    return lost


@pytest.mark.parametrize(("far_m", "kept"), [(3.6, [1.0, 1.0, 1.0]), (3.9, [0.0, 0.0, 1.0]), (4.5, [1.0, 1.0, 1.0])])
def test_surfaces_that_are_too_far_apart_to_mix_and_too_near_for_two_echoes_give_the_stronger_one(far_m, kept):
    hits, spec = hits_at(3.0, 3.0, far_m), SignalSpec(mixed_distance_m=0.8)
    hits.value[0, 2, ENERGY] = 3.0
    assert not are_lost(spec, hits, 1).any()
    assert (hits.value[0, :, ENERGY] > 0.0).tolist() == [bool(energy) for energy in kept]


@pytest.mark.extended
@compiled_only
def test_losses_have_their_shares():
    one, two = hits_at(3.0, 3.0), hits_at(3.0, 9.0)
    shares = [are_lost(REAL, hits, 20_000).mean() for hits in (one, two)]
    np.testing.assert_allclose(shares, (0.006, 0.506), atol=0.012)
    assert not are_lost(SignalSpec(), two, 100).any()


BY_BYTE = ((0, 0.5), (20, 0.1), (60, 0.1), (80, 0.0))


def test_drop_outs_by_byte_lie_on_the_lines_between_the_given_bytes():
    ratio = drop_out_ratios(SignalSpec(drop_out_ratio=BY_BYTE))
    np.testing.assert_allclose(ratio[[0, 5, 20, 40, 70, 80, 100, 255]], [0.5, 0.4, 0.1, 0.1, 0.05, 0.0, 0.0, 0.0])
    assert signal(SignalSpec(drop_out_ratio=BY_BYTE)).loss_ratio == 0.5
    assert set(drop_out_ratios(SignalSpec(drop_out_ratio=0.25))) == {0.25}


@compiled_only
def test_dark_surfaces_lose_more_firings_and_of_one_draw():
    """A firing that a bright surface loses is lost by a darker one too, so that a change of the byte moves no other firing."""
    spec, lost = SignalSpec(drop_out_ratio=BY_BYTE), {}
    for byte, expected in ((0, 0.5), (10, 0.3), (40, 0.1), (95, 0.0), (1000, 0.0)):
        hits = hits_at(3.0, 3.0)
        hits.value[0, :, ENERGY] = byte / 100.0 / 9.0 / 2.0
        lost[byte] = set(np.flatnonzero(are_lost(spec, hits, 4000)).tolist())
        assert len(lost[byte]) / 4000 == pytest.approx(expected, abs=0.012)
    assert lost[0] > lost[10] > lost[40]


@kernel
def draw_empty_bytes(signal, is_lost, byte):
    """Bytes of empty firings → ``int64[n]``."""
    for index in range(byte.size):
        byte[index] = losses.empty_byte(signal, 9, 9.2, is_lost, uniform(SEED, 1, index, _EMPTY_BYTE))


@compiled_only
def test_bytes_of_empty_firings_are_the_baseline_and_multiples_of_its_step():
    def bytes_of(spec, *, is_lost):
        byte = np.zeros(20_000, np.int64)
        draw_empty_bytes(signal(spec), is_lost, byte)
        return byte

    usual, at_edges = bytes_of(REAL, is_lost=False), bytes_of(REAL, is_lost=True)
    np.testing.assert_allclose([np.mean(usual != 9), np.mean(at_edges != 9)], (0.05, 0.2), atol=0.01)
    multiples = {min(int(np.floor(9.2 * count + 0.5)), 255) for count in range(1, 110)}
    assert set(at_edges.tolist()) <= multiples
    assert np.mean(at_edges[at_edges != 9] == 18) == pytest.approx(0.6, abs=0.03)
    assert (bytes_of(SignalSpec(), is_lost=True) == 9).all()


@kernel
def find_missing_sides(signal, side):
    """Missing return of pairs → ``int64[n]``."""
    for index in range(side.size):
        side[index] = losses.missing_side(signal, SEED, 1, index)


@compiled_only
def test_the_block_of_the_strongest_return_is_missing_more_often():
    found = np.zeros(20_000, np.int64)
    find_missing_sides(signal(), found)
    np.testing.assert_allclose([np.mean(found == 1), np.mean(found == 0)], (0.1, 0.01), atol=0.007)


def test_all_faults_are_named_at_once():
    with pytest.raises(
        ValueError, match=r"(?s)byte_noise must be 0 to 50, got -1.*grid_codes must be 1 to 16, got 0.*drop_out_ratio must be 0 to 1, got 2"
    ):
        SignalSpec(byte_noise=-1.0, grid_codes=0, drop_out_ratio=2.0)


@pytest.mark.parametrize("ratio", [(), ((0, 0.1), (0, 0.2)), ((5, 0.1), (2, 0.2)), ((0, 1.5),), ((300, 0.5),), ((-1, 0.5),)])
def test_drop_outs_by_byte_need_rising_bytes_and_shares(ratio):
    with pytest.raises(ValueError, match="pairs of a rising byte of 0 to 255 and a share of 0 to 1"):
        SignalSpec(drop_out_ratio=ratio)
