"""Step and noise of one laser's bytes: from what is reported to what the sensor has before its rounding, and back."""

import numpy as np
import pytest

from hilsim.sensor.signal import noise
from hilsim.sensor.signal.own_bytes import noise_before_steps, noise_line, reported_repeats, reported_sd, with_own_bytes
from hilsim.sensor.signal.signal import drawn_lasers
from hilsim.sensor.signal.spec import SignalSpec

MODEL = SignalSpec(byte_noise=0.4, byte_noise_ratio=0.042, byte_step=2.2)


def reported(byte, sd, step, firings=40):
    """Bytes of surfaces near one byte, several firings each, as the emulator reports them."""
    rng = np.random.default_rng(3)
    extent = min(4.0, max(byte, 0.5 * step))
    surfaces = np.linspace(max(byte - extent, 0.0), byte + extent, 101)
    return np.array(
        [
            [noise.noisy_byte(0, float(value), 1.0, step, 0.0, sd, 0.0, float(error), 100)[0] for error in rng.normal(size=firings)]
            for value in surfaces
        ]
    )


@pytest.mark.parametrize(("byte", "sd", "step"), [(3.0, 0.5, 2.2), (8.0, 0.7, 3.3), (30.0, 1.7, 1.0), (60.0, 2.5, 2.6)])
def test_what_a_laser_reports_has_the_standard_deviation_that_is_predicted(byte, sd, step):
    measured = np.sqrt(reported(byte, sd, step).var(axis=1, ddof=1).mean())
    assert reported_sd(byte, sd, step) == pytest.approx(measured, rel=0.05)
    assert noise_before_steps(byte, reported_sd(byte, sd, step), step) == pytest.approx(sd, rel=0.01)


def test_steps_make_bytes_repeat():
    found = reported(60.0, 2.5, 2.6)
    seen = (found[:, 1:] == found[:, :-1]).mean()
    expected = reported_repeats(np.linspace(56.0, 64.0, 101), 2.5, 2.6).mean()
    assert expected == pytest.approx(seen, abs=0.02)
    assert expected > 2.0 * reported_repeats(np.linspace(56.0, 64.0, 101), 2.5, 1.0).mean()


def test_a_lasers_line_goes_through_its_curve_and_falls_nowhere_below_zero():
    curve = [(byte, reported_sd(byte, 0.7 + 0.03 * byte, 2.8)) for byte in (2.0, 8.0, 30.0, 80.0)]
    assert noise_line(curve, 2.8, 0.4, 0.042) == pytest.approx((0.7, 0.03), rel=0.01)
    assert 0.0 <= noise_line([(5.0, 0.4), (90.0, 9.0)], 1.0, 0.4, 0.042)[0] < 0.05
    level, ratio = noise_line([(5.0, 3.0), (90.0, 1.0)], 1.0, 0.4, 0.042)
    assert level > 0.0
    assert 0.0 <= ratio < 0.01


def test_dark_bytes_below_the_steps_have_none():
    curve = [(byte, reported_sd(byte, 0.7 + 0.03 * byte, 2.8 if byte >= 45.0 else 1.0)) for byte in (2.0, 8.0, 30.0, 80.0)]
    assert noise_line(curve, 2.8, 0.4, 0.042, 45.0) == pytest.approx((0.7, 0.03), rel=0.01)


def test_a_curve_of_one_point_scales_the_line_of_the_unit():
    curve = [(60.0, reported_sd(60.0, 2.0 * (0.4 + 0.042 * 60.0), 1.0))]
    assert noise_line(curve, 1.0, 0.4, 0.042) == pytest.approx((0.8, 0.084), rel=0.02)


def test_known_steps_and_noise_take_the_place_of_drawn_ones_laser_by_laser():
    baseline, gain = np.full(3, 9, np.uint8), np.ones(3)
    drawn = drawn_lasers(MODEL, baseline, gain, np.zeros((3, 256), np.int64), seed=7, stream=0)
    curve = tuple((byte, reported_sd(byte, 0.2 + 0.05 * byte, 3.0)) for byte in (3.0, 20.0, 70.0))
    found = with_own_bytes(drawn, np.array([3.0, np.nan, np.nan]), (curve, (), ()))
    np.testing.assert_array_equal(found.step, [3.0, *drawn.step[1:]])
    np.testing.assert_allclose(found.byte_noise, [0.2, 0.4, 0.4], rtol=0.02)
    np.testing.assert_allclose(found.byte_noise_ratio, [0.05, 0.042, 0.042], rtol=0.02)
    for name in ("gain", "empty_step", "ripple_m", "correction"):
        np.testing.assert_array_equal(getattr(found, name), getattr(drawn, name))
    unknown = with_own_bytes(drawn, np.full(3, np.nan), ((), (), ()))
    for name in drawn._fields:
        np.testing.assert_array_equal(getattr(unknown, name), getattr(drawn, name))
