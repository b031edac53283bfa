"""The slow wander of the stamps of a VLS-128: its figures against those of a real unit, and that it is a function of time."""

from pathlib import Path

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.sensor.clock import build_device_clock, stamp_us
from hilsim.sensor.specs import ClockSetting
from hilsim.sensor.unit.wander import build_stamp_wander, no_stamp_wander, stamp_wander_ns
from hilsim.units import HOUR_US
from tests.compiled import compiled_only

CYCLE_NS = 165_888
PACKETS = 2193
LAGS = (1, 12, 64, 192)
STEPS = (1, 4, 16, 64)


def wander(seed=1, stream=0, sd_us=6.5):
    return build_stamp_wander(sd_us, 0.0425, seed=seed, stream=stream)


def clock(wander, *, sync="free", utc_epoch_ns=0):
    return build_device_clock(ClockSetting(sync=sync), follows_pulse=sync == "pps", start_ns=0, utc_epoch_ns=utc_epoch_ns, wander=wander)


def residual_us(stamps):
    """Distance of stamps from a straight line, ``float64[n]``."""
    number = np.arange(len(stamps))
    return stamps - np.polyval(np.polyfit(number, stamps, 1), number)


def figures(residual):
    """Its rms, its autocorrelations at ``LAGS``, and the mean squares of its steps over ``STEPS``."""
    correlations = [float(residual[lag:] @ residual[:-lag] / (residual @ residual)) for lag in LAGS]
    steps = [float(np.mean((residual[step:] - residual[:-step]) ** 2)) for step in STEPS]
    return np.array([residual.std(), *correlations, *steps])


@pytest.fixture(scope="module")
def emulated():
    """Figures of 60 units, ``float64[60, 9]``."""
    clocks = [clock(wander(seed)) for seed in range(60)]
    return np.array([figures(residual_us(np.array([stamp_us(each, CYCLE_NS * number) for number in range(PACKETS)]))) for each in clocks])


@compiled_only
def test_units_scatter_on_average_as_the_real_one(emulated):
    assert emulated[:, 0].mean() == pytest.approx(5.75, rel=0.1)
    np.testing.assert_allclose(emulated[:, 1:5].mean(axis=0), [0.989, 0.904, 0.521, 0.055], atol=0.08)
    np.testing.assert_allclose(emulated[:, 5:].mean(axis=0), [0.62, 1.86, 6.75, 25.85], rtol=0.25)


@compiled_only
def test_the_real_units_figures_lie_within_those_of_the_emulated_ones(emulated, capture):
    payloads = [datagram.payload for datagram in CaptureFile(Path(capture("vls128_strongest.pcap"))) if len(datagram.payload) == 1206]
    real = figures(residual_us(stacked_packets(payloads)["timestamp"].astype(np.float64)))
    assert real[0] == pytest.approx(5.75, abs=0.01)
    assert (np.abs(real - emulated.mean(axis=0)) < 3.0 * np.maximum(emulated.std(axis=0), 0.1)).all()


@compiled_only
def test_its_standard_deviation_is_the_one_given():
    course_us = np.array([stamp_wander_ns(wander(seed), number * 10**8) for seed in range(20) for number in range(100)]) / 1000.0
    assert course_us.std() == pytest.approx(6.5, rel=0.1)
    assert abs(course_us.mean()) < 0.6  # four standard errors


@compiled_only
def test_it_has_no_leap():
    course_ns = np.array([stamp_wander_ns(wander(), number * 5000) for number in range(3000)])  # 5 us apart
    assert np.abs(np.diff(course_ns)).max() < 200


def test_each_seed_and_each_sensor_has_a_course_of_its_own():
    courses = [[stamp_wander_ns(wander(seed, stream), number * 10**7) for number in range(300)] for seed, stream in ((1, 0), (1, 1), (2, 0))]
    assert (np.abs(np.corrcoef(courses) - np.eye(3)) < 0.25).all()


def test_no_stamp_of_the_first_packets_is_of_the_hour_before():
    first = [stamp_us(clock(wander(seed)), CYCLE_NS * number) for seed in range(200) for number in range(3)]
    assert max(first) < HOUR_US // 2


def test_stamps_under_the_pulse_wander_about_utc():
    wandering, regular = (clock(each, sync="pps", utc_epoch_ns=7_500_000_000) for each in (wander(), no_stamp_wander()))
    lead_us = np.array([stamp_us(wandering, number * 10**7) - stamp_us(regular, number * 10**7) for number in range(400)])
    assert lead_us.std() == pytest.approx(6.5, rel=0.3)
    assert np.abs(lead_us).max() < 40


def test_without_a_wander_stamps_are_those_of_a_regular_clock():
    assert [stamp_wander_ns(no_stamp_wander(), number * 10**7) for number in range(5)] == [0] * 5
    assert [stamp_us(clock(no_stamp_wander()), CYCLE_NS * number) for number in range(3)] == [0, 165, 331]
