"""Wind: the mean blows where it should, gusts have the spectra of MIL-F-8785C and repeat."""

import dataclasses
import math

import numpy as np
import pytest

from hilsim.world.platforms.wind import WindSpec, build_wind, wind_at, wind_from
from tests.compiled import COMPILED, compiled_only

GUSTS = WindSpec(speed_mps=8.0, from_deg=270.0, turbulence_ratio=0.1)
KEY_NS = 20_000_000


def blown(spec, times_ns, seed=3):
    wind = build_wind(spec, seed, 0)
    state = wind_from(wind, int(times_ns[0]))
    return np.array([wind_at(wind, state, int(time_ns)) for time_ns in times_ns])


@pytest.mark.parametrize(
    ("from_deg", "east", "north"), [(0.0, 0.0, -1.0), (90.0, -1.0, 0.0), (180.0, 0.0, 1.0), (270.0, 1.0, 0.0), (225.0, 0.5**0.5, 0.5**0.5)]
)
def test_wind_blows_away_from_where_it_comes_from(from_deg, east, north):
    wind = blown(WindSpec(speed_mps=10.0, from_deg=from_deg, up_mps=-2.0), [0, 10**12])
    np.testing.assert_allclose(wind, [(10.0 * east, 10.0 * north, -2.0)] * 2, rtol=0, atol=1e-14)


def test_gusts_have_the_scales_of_the_specification_at_twenty_feet():
    level_mps, vertical_mps, level_m, vertical_m = WindSpec(speed_mps=15.0, turbulence_ratio=0.1, height_m=6.096).gust_scales
    base = 0.177 + 0.000823 * 20.0
    assert (vertical_mps, vertical_m) == (1.5, 6.096)
    assert level_mps == pytest.approx(1.5 / base**0.4, rel=1e-12)
    assert level_m / 0.3048 == pytest.approx(20.0 / base**1.2, rel=1e-12)


@compiled_only
def test_gusts_have_their_deviations_along_across_and_up():
    wind = blown(GUSTS, np.arange(0, 40_000 * 10**9, 500_000_000))
    level_mps, vertical_mps, _, _ = GUSTS.gust_scales
    np.testing.assert_allclose(wind.mean(axis=0), (8.0, 0.0, 0.0), rtol=0, atol=0.15)
    np.testing.assert_allclose(wind.std(axis=0), (level_mps, level_mps, vertical_mps), rtol=0.05)


@compiled_only
def test_gusts_are_correlated_as_dryden_says():
    step_ns = 5 * KEY_NS
    wind = blown(GUSTS, np.arange(0, 20_000 * 10**9, step_ns)) - (8.0, 0.0, 0.0)
    _, _, level_m, vertical_m = GUSTS.gust_scales
    for axis, length_m, shape in ((0, level_m, 0.0), (1, level_m, 0.5), (2, vertical_m, 0.5)):
        passed = length_m / 8.0
        lag = round(passed * 1e9 / step_ns)
        ratio = lag * step_ns * 1e-9 / passed
        seen = np.mean(wind[lag:, axis] * wind[:-lag, axis]) / wind[:, axis].var()
        assert seen == pytest.approx(math.exp(-ratio) * (1.0 - shape * ratio), abs=0.06)


@pytest.mark.parametrize("from_deg", [225.0, 300.0, 10.0])
def test_gusts_turn_with_the_wind(from_deg):
    times_ns = np.arange(0, 50 * KEY_NS, KEY_NS)
    eastward = blown(GUSTS, times_ns)
    turned_rad = math.radians(270.0 - from_deg)
    c, s = math.cos(turned_rad), math.sin(turned_rad)
    turned = eastward @ np.array([(c, s, 0.0), (-s, c, 0.0), (0.0, 0.0, 1.0)])
    np.testing.assert_allclose(blown(dataclasses.replace(GUSTS, from_deg=from_deg), times_ns), turned, rtol=0, atol=1e-9)


def test_gusts_are_straight_between_their_keys_and_do_not_jump():
    times = np.arange(0, 4 * KEY_NS + 1, KEY_NS // 4)
    wind = blown(GUSTS, times)
    np.testing.assert_allclose(np.diff(wind[0:5], 2, axis=0), 0.0, atol=1e-12)
    before, after = blown(GUSTS, [KEY_NS - 1, KEY_NS])
    np.testing.assert_allclose(before, after, rtol=0, atol=1e-6)


def test_gusts_do_not_depend_on_how_often_they_are_asked_for():
    end = 200 * KEY_NS if COMPILED else 40 * KEY_NS
    np.testing.assert_array_equal(blown(GUSTS, np.arange(0, end + 1, KEY_NS // 20))[-1], blown(GUSTS, [0, end])[-1])


def test_seeds_and_streams_blow_differently():
    winds = {
        tuple(wind_at(wind, wind_from(wind, 0), 0)) for seed in (1, 2**64 - 1) for stream in (0, 1) for wind in [build_wind(GUSTS, seed, stream)]
    }
    assert len(winds) == 4


@pytest.mark.parametrize(
    "spec", [WindSpec(speed_mps=0.5, turbulence_ratio=0.5, height_m=300.0), WindSpec(speed_mps=60.0, turbulence_ratio=0.5, height_m=3.0)]
)
def test_the_extremes_of_what_is_allowed_still_blow(spec):
    assert np.isfinite(blown(spec, [0, 100 * KEY_NS])).all()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"speed_mps": 61.0, "from_deg": 400.0}, "speed_mps must be 0 to 60, got 61.0; from_deg must be 0 to 360, got 400.0"),
        ({"up_mps": 21.0}, "up_mps must be -20 to 20, got 21.0"),
        ({"speed_mps": 5.0, "turbulence_ratio": 0.6}, "turbulence_ratio must be 0 to 0.5, got 0.6"),
        ({"height_m": 1.0}, "height_m must be 3 to 300, got 1.0"),
        ({"turbulence_ratio": 0.1}, "speed_mps must be at least 0.5 for gusts .*, got 0.0"),
    ],
)
def test_a_wind_names_each_setting_out_of_range(setting, message):
    with pytest.raises(ValueError, match=message):
        WindSpec(**setting)
