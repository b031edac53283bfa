"""Firings with one echo, judged sixteen at a time: the same as one by one, to the bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim import rng
from hilsim.compilation.jit import kernel
from hilsim.compilation.lanes import WIDTH, bits_of, lane_numbers, load_lanes, store_lanes
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.rng import Purpose, uniform
from hilsim.sensor import sole_echoes
from hilsim.sensor.echoes import ECHO_DRAWS, detection_probability, is_detected
from hilsim.sensor.response import brightness, build_response, distance_code, noise_sd_m
from tests.cepton_models import mirror_spec, with_detector

EVERYBODY = (1 << WIDTH) - 1


@kernel
def judge(response, among, first_channel, sequence, given, results, bits):
    """Range, energy, retro, bias and error of sixteen echoes → distance, byte; whose passes, whose is not decided, whose byte is another's affair."""
    range_m, energy, retro, bias_m, error = (
        load_lanes(given, 0),
        load_lanes(given, 1),
        load_lanes(given, 2),
        load_lanes(given, 3),
        load_lanes(given, 4),
    )
    bits[0], bits[1] = sole_echoes.detected(response, among, energy, first_channel, sequence)
    diffuse, other = sole_echoes.diffuse_bytes(response, range_m, energy, retro)
    store_lanes(results, 0, sole_echoes.distance_codes(response, range_m, energy, bias_m, error))
    store_lanes(results, 1, diffuse)
    bits[2] = bits_of(other)


def judged(response, range_m, energy, retro=0.0, bias_m=0.0, error=0.0, *, among=EVERYBODY, first_channel=0, sequence=0):
    given_, results, bits = np.zeros((5, WIDTH)), np.zeros((2, WIDTH)), np.zeros(3, np.int64)
    for row, values in enumerate((range_m, energy, retro, bias_m, error)):
        given_[row] = values
    judge(response, among, first_channel, sequence, given_, results, bits)
    passing, undecided, other = ([int(word) >> lane & 1 == 1 for lane in range(WIDTH)] for word in bits)
    return results[0], results[1], passing, undecided, other


def vlp16(**changes):
    detector = {key: changes.pop(key) for key in list(changes) if key not in ("range_noise_m", "range_min_m", "range_max_m")}
    table = read_toml(profiles_directory() / "sensors" / "vlp16.toml")
    return build_response(parse_table(VelodyneSpec, table | changes | {"detector": table["detector"] | detector}, "vlp16"), seed=7, stream=2)


def cepton(**detector):
    return build_response(with_detector(mirror_spec(), **detector), seed=7, stream=1)


RESPONSES = {
    "VLP-16": vlp16(),
    "every laser's noise alike": vlp16(range_noise_m=0.03, range_noise_weak_m=0.0),
    "a hard threshold": vlp16(noise_ratio=0.0),
    "Cepton": cepton(saturation_ratio=100.0, doubt_ratio=1.5),
}


@pytest.mark.parametrize("name", RESPONSES)
@given(seed=st.integers(0, 2**32 - 1))
def test_sixteen_echoes_are_judged_as_one_by_one(name, seed):
    response = RESPONSES[name]
    dice = np.random.default_rng(seed)
    range_m = dice.uniform(0.2, 1.2 * response.range_max_m, WIDTH)
    energy = response.threshold_energy * np.exp(dice.uniform(-2.0, 3.0, WIDTH)) if seed % 2 else dice.uniform(0.0, 2.0, WIDTH) / range_m**2
    retro, bias_m, error = dice.choice([0.0, 0.3, 0.5, 0.6, 1.0], WIDTH), dice.normal(0.0, 0.02, WIDTH), dice.normal(0.0, 1.5, WIDTH)
    first_channel, sequence, among = 16 * int(dice.integers(8)), int(dice.integers(2**40)), int(dice.integers(1, 2**16))
    codes, diffuse, passing, undecided, other = judged(
        response, range_m, energy, retro, bias_m, error, among=among, first_channel=first_channel, sequence=sequence
    )
    for lane in range(WIDTH):
        r, e = float(range_m[lane]), float(energy[lane])
        assert codes[lane] == distance_code(response, r + bias_m[lane] + error[lane] * noise_sd_m(response, e, r))
        byte, flags = brightness(response, e, r, retro[lane])
        assert other[lane] or (diffuse[lane], 0) == (byte, flags)
        if not among >> lane & 1:
            assert not passing[lane]
            assert not undecided[lane]
        elif not undecided[lane]:
            stream = response.stream * 256 + first_channel + lane
            decision = is_detected(e, response.threshold_energy, response.noise_ratio, response.seed, stream, sequence * ECHO_DRAWS)
            assert passing[lane] == decision


def test_a_value_too_close_to_its_draw_is_not_decided():
    response, draws = vlp16(), np.zeros(WIDTH)
    for lane in range(WIDTH):
        draws[lane] = uniform(response.seed, response.stream * 256 + lane, 5 * ECHO_DRAWS, int(Purpose.DETECTION))
    low, high = np.zeros(WIDTH), np.full(WIDTH, 4 * response.threshold_energy)
    for _ in range(60):  # the energy whose chance is the draw
        middle = (low + high) / 2
        is_less = np.array([detection_probability(each, response.threshold_energy, response.noise_ratio) for each in middle]) < draws
        low, high = np.where(is_less, middle, low), np.where(is_less, high, middle)
    _, _, passing, undecided, _ = judged(response, 20.0, high, sequence=5)
    assert all(undecided)
    assert not any(passing)


def test_few_echoes_are_left_to_be_judged_one_by_one():
    response, undecided = vlp16(), 0
    for sequence in range(500):
        undecided += sum(judged(response, 20.0, np.linspace(0.2, 2.8, WIDTH) * response.threshold_energy, sequence=sequence)[3])
    assert undecided <= 1


@kernel
def chances_of(given, results):
    store_lanes(results, 0, sole_echoes._passing_chances(load_lanes(given, 0)))


def test_chances_are_within_half_of_the_bound_that_is_kept_from_them():
    for first in np.arange(-12.0, 12.0, 0.16):
        given_, results = np.array([first + 0.01 * np.arange(WIDTH)]), np.zeros((1, WIDTH))
        chances_of(given_, results)
        exact = [0.5 * math.erfc(-each / math.sqrt(2.0)) for each in given_[0]]
        np.testing.assert_allclose(results[0], exact, rtol=0.0, atol=5e-7)


@pytest.mark.parametrize(("energy", "other"), [(1.26, False), (1.28, True), (0.0149, True), (0.0151, False), (0.99, False)])
def test_what_has_another_scale_or_a_flag_is_left_to_who_knows_it(energy, other):
    response = cepton()._replace(saturation_energy=2.0, doubt_energy=0.015)
    assert judged(response, 1.0, energy)[4] == [other] * WIDTH
    assert judged(response._replace(saturation_energy=0.5), 1.0, 0.6)[4] == [True] * WIDTH


@pytest.mark.parametrize(("retro", "energy", "other"), [(0.51, 1.01, True), (0.49, 1.01, False), (1.0, 0.99, False), (0.0, 5.0, False)])
def test_only_a_bright_retro_reflector_is_left_to_its_own_scale(retro, energy, other):
    response = vlp16()
    _, diffuse, _, _, others = judged(response, 1.0, energy, retro)
    assert others == [other] * WIDTH
    assert other or set(diffuse) == {min(round(100 * energy), 100)}


@kernel
def pairs_of(seed, first_stream, index, results):
    first, second = rng.uniform_pairs(seed, lane_numbers() + np.uint64(first_stream), index, 3)
    store_lanes(results, 0, first)
    store_lanes(results, 1, second)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 17), st.integers(0, 2**62))
def test_sixteen_uniform_draws_are_those_of_their_streams_to_the_bit(seed, first_stream, index):
    results = np.zeros((2, WIDTH))
    pairs_of(np.uint64(seed), first_stream, index, results)
    assert [rng.uniform_pair(np.uint64(seed), first_stream + lane, index, 3) for lane in range(WIDTH)] == list(zip(*results, strict=True))
