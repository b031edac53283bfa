"""What a Cepton-style sensor says of an echo: its reflectivity code, its flags, and which two echoes make a pair."""

import itertools
import math

import numpy as np
import pytest

from hilsim.families.cepton.family import CeptonFamily
from hilsim.families.cepton.protocol.stdv import PointFlag
from hilsim.sensor.echoes import EchoChoice, chosen_echo
from hilsim.sensor.response import ReturnFlag, brightness, build_response, linear_reflectivity, return_flags
from tests.cepton_models import mirror_spec, with_detector


def ratio_of(code):
    """The closed form's inverse: 1 % a code up to 127 %, then exponentially up to 50 at code 255."""
    return code / 100 if code <= 127 else 1.27 * (50 / 1.27) ** ((code - 127) / 128)


def cepton(**detector):
    return build_response(with_detector(mirror_spec(), **detector), seed=1, stream=0)


@pytest.mark.parametrize("code", range(256))
def test_each_value_of_the_scale_comes_back_as_its_code(code):
    assert linear_reflectivity(ratio_of(code)) == code


@pytest.mark.parametrize("code", range(255))
def test_half_way_between_two_codes_the_nearer_one_is_sent(code):
    middle = (ratio_of(code) + ratio_of(code + 1)) / 2 if code < 127 else math.sqrt(ratio_of(code) * ratio_of(code + 1))
    assert (linear_reflectivity(0.999999 * middle), linear_reflectivity(1.000001 * middle)) == (code, code + 1)


@pytest.mark.parametrize(("ratio", "code"), [(-1.0, 0), (0.0, 0), (1.27, 127), (50.0, 255), (51.0, 255), (1e9, 255)])
def test_the_scale_ends_at_0_and_255(ratio, code):
    assert linear_reflectivity(ratio) == code


def test_the_range_is_taken_out_of_the_reflectivity_and_a_retro_reflector_has_no_scale_of_its_own():
    for range_m, retro in itertools.product((2.0, 150.0), (0.0, 1.0)):
        assert brightness(cepton(), 0.4 / range_m**2, range_m, retro) == (40, 0)
        assert brightness(cepton(), 20.0 / range_m**2, range_m, retro) == (linear_reflectivity(20.0), 0)


@pytest.mark.parametrize(
    ("times", "flags"),
    [(0.5, ReturnFlag.NOISE), (1.499, ReturnFlag.NOISE), (1.501, 0), (999.0, 0), (1001.0, ReturnFlag.SATURATED)],
)
def test_flags_follow_the_energy_over_the_thresholds(times, flags):
    doubting = cepton(threshold_reflectivity=0.1, threshold_range_m=100.0, saturation_ratio=1000.0, doubt_ratio=1.5)
    assert return_flags(doubting, times * 1e-5) == flags
    assert brightness(doubting, times * 1e-5, 1.0, 0.0)[1] == flags


@pytest.mark.parametrize("energy", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("detector", [{}, {"threshold_reflectivity": 0.1}, {"saturation_ratio": 1.0, "doubt_ratio": 1.0}])
def test_without_ratios_or_without_a_threshold_nothing_is_flagged(energy, detector):
    assert return_flags(cepton(**detector), energy) == 0


def test_flags_of_returns_are_the_bits_of_points():
    assert {flag.name: flag.value for flag in ReturnFlag} == {name: PointFlag[name].value for name in ("SATURATED", "NOISE", "BLOCKED")}


def reported(energies, *choices):
    """Which of some echoes, nearest first, the returns of a firing report; every second index is no detected echo."""
    echoes = np.zeros((2 * len(energies) + 1, 4))
    kept = np.arange(len(energies), dtype=np.int64) * 2 + 1
    echoes[kept, 1] = energies
    echoes[::2, 1] = 1e9
    said = [chosen_echo(echoes, kept, len(energies), choice) for choice in choices]
    return tuple(None if echo < 0 else (echo - 1) // 2 for echo in said)


@pytest.mark.parametrize(
    ("energies", "both"),
    [
        ([], (None, None)),
        ([5], (0, None)),
        ([5, 3], (0, 1)),  # strongest first, then the last
        ([3, 5], (1, 0)),  # the strongest is the last: the second strongest
        ([4, 4], (0, 1)),  # the nearer of equals is the stronger
        ([9, 5, 2], (0, 2)),
        ([2, 9, 5], (1, 2)),
        ([2, 5, 9], (2, 1)),
        ([5, 2, 9], (2, 0)),
        ([1, 2, 3, 9], (3, 2)),
        ([3, 3, 9], (2, 0)),
    ],
)
def test_the_strongest_comes_first_and_beside_it_the_last_or_the_second_strongest(energies, both):
    assert reported(energies, *CeptonFamily.pair) == both


@pytest.mark.parametrize("energies", [order for count in (1, 2, 3, 4) for order in itertools.permutations(range(1, count + 1))])
def test_the_two_returns_are_never_the_same_echo(energies):
    first, second = reported(energies, *CeptonFamily.pair)
    assert first == max(range(len(energies)), key=energies.__getitem__)
    assert (second is None) == (len(energies) == 1)
    assert first != second


@pytest.mark.parametrize(("energies", "last"), [([], None), ([5], 0), ([9, 5, 2], 2), ([2, 5, 9], 2)])
def test_in_last_return_mode_the_last_is_reported(energies, last):
    assert reported(energies, EchoChoice.LAST) == (last,)
