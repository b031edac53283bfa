"""Returns made of noise."""

import math

import numpy as np
import pytest

from hilsim.sensor.optics.false_alarms import FalseAlarmSpec, SpuriousSpec, SunSpec, alarm_rate, build_false_alarms, false_alarm, spurious_return

THRESHOLD = 5e-5
MAX_RANGE_M = 130.0


def alarms_of(rate, firings, *, seed=7, stream=3):
    return np.array([false_alarm(rate, seed, stream, sequence, MAX_RANGE_M, THRESHOLD) for sequence in range(firings)])


def test_at_night_there_are_none():
    assert not alarms_of(0.0, 500).any()


def test_alarms_have_the_given_rate_and_are_uniform_in_range_and_energy():
    firings, rate = 20_000, 0.1
    range_m, energy = alarms_of(rate, firings).T
    found = range_m > 0.0
    assert found.sum() == pytest.approx(rate * firings, abs=4 * math.sqrt(rate * firings))
    assert (energy[~found] == 0.0).all()
    for value in (range_m[found] / MAX_RANGE_M, (energy[found] / THRESHOLD - 1.0) / 0.4):
        assert value.min() >= 0.0
        assert value.max() <= 1.0
        distance = np.abs(np.sort(value) - (np.arange(value.size) + 0.5) / value.size).max()
        assert distance < 1.63 / math.sqrt(value.size)  # Kolmogorov-Smirnov, 1 %
    assert abs(np.corrcoef(range_m[found], energy[found])[0, 1]) < 4 / math.sqrt(found.sum())


def test_an_alarm_depends_on_its_firing_only():
    forwards = alarms_of(0.1, 300)
    backwards = np.array([false_alarm(0.1, 7, 3, sequence, MAX_RANGE_M, THRESHOLD) for sequence in reversed(range(300))])[::-1]
    np.testing.assert_array_equal(forwards, backwards)
    assert (alarms_of(0.1, 300, stream=4) != forwards).any()
    assert (alarms_of(0.1, 300, seed=8) != forwards).any()


@pytest.mark.parametrize("rate", [-1e-4, 0.11, math.nan])
def test_a_senseless_rate_is_refused(rate):
    with pytest.raises(ValueError, match=r"rate_per_firing must be 0 to 0.1, got"):
        FalseAlarmSpec(rate_per_firing=rate)


def test_the_sun_adds_alarms_towards_it_and_none_away_from_it():
    spec = FalseAlarmSpec(rate_per_firing=0.01, sun=SunSpec(azimuth_deg=90.0, elevation_deg=0.0, rate_per_firing=0.2, width_deg=10.0))
    alarms = build_false_alarms(spec)
    aside = math.radians(10.0)
    assert alarm_rate(alarms, 1.0, 0.0, 0.0) == pytest.approx(0.21)
    assert alarm_rate(alarms, math.cos(aside), math.sin(aside), 0.0) == pytest.approx(0.01 + 0.2 / math.e)
    assert alarm_rate(alarms, -1.0, 0.0, 0.0) == pytest.approx(0.01, abs=1e-6)


def test_spurious_returns_have_the_given_rate_and_are_uniform_in_range_and_reflectivity():
    firings, rate = 20_000, 0.1
    alarms = build_false_alarms(FalseAlarmSpec(), SpuriousSpec(rate=rate, max_range_m=80.0))
    range_m, energy = np.array([spurious_return(alarms, 7, 3, sequence, 0.5, MAX_RANGE_M) for sequence in range(firings)]).T
    found = range_m > 0.0
    assert found.sum() == pytest.approx(rate * firings, abs=4 * math.sqrt(rate * firings))
    for value in ((range_m[found] - 0.5) / 79.5, energy[found] * range_m[found] ** 2):
        distance = np.abs(np.sort(value) - (np.arange(value.size) + 0.5) / value.size).max()
        assert distance < 1.63 / math.sqrt(value.size)  # Kolmogorov-Smirnov, 1 %
