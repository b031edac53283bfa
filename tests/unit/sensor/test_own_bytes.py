"""Bytes that one laser reports and their noise: from what is reported to what the sensor has before, and back."""

import numpy as np
import pytest

from hilsim.sensor.signal import noise
from hilsim.sensor.signal.own_bytes import columns_of, noise_before_steps, noise_through, reported_sd, with_own_bytes
from hilsim.sensor.signal.signal import HALVES, NOISES, bytes_in_steps, drawn_lasers, noise_by_byte, reported_columns
from hilsim.sensor.signal.spec import SignalSpec

MODEL = SignalSpec(byte_noise=0.4, byte_noise_ratio=0.042, byte_step=2.2)
LINE = noise_by_byte(MODEL)


def in_steps(step):
    """Part of ``LaserSignals.reported`` of a laser with equal steps."""
    return reported_columns(bytes_in_steps(SignalSpec(byte_step=step))[None])[:, 0]


def reported(byte, sd, columns, firings=40):
    """Bytes of surfaces near one byte, several firings each, as the emulator reports them."""
    rng = np.random.default_rng(3)
    extent = min(4.0, byte)
    surfaces, of_all = np.linspace(byte - extent, byte + extent, 101), np.full((NOISES, 1), sd, np.float32)
    return np.array(
        [
            [noise.noisy_byte(0, float(value), of_all, columns[:, None], 0, float(error), 100)[0] for error in rng.normal(size=firings)]
            for value in surfaces
        ]
    )


@pytest.mark.parametrize(("byte", "sd", "step"), [(3.0, 0.5, 2.2), (8.0, 0.7, 3.3), (30.0, 1.7, 1.0), (60.0, 2.5, 2.6)])
def test_what_a_laser_reports_has_the_standard_deviation_that_is_predicted(byte, sd, step):
    columns = in_steps(step)
    measured = np.sqrt(reported(byte, sd, columns).var(axis=1, ddof=1).mean())
    assert reported_sd(byte, sd, columns) == pytest.approx(measured, rel=0.05)
    assert noise_before_steps(byte, reported_sd(byte, sd, columns), columns) == pytest.approx(sd, rel=0.01)


def test_noise_goes_through_every_point_of_a_curve_and_is_a_multiple_of_the_line_beyond():
    columns, expected = in_steps(2.8), {2.5: 1.0, 8.5: 0.7, 30.5: 2.9, 80.5: 1.6}
    curve = [(byte, reported_sd(byte, of_byte, columns)) for byte, of_byte in expected.items()]
    found = noise_through(curve, columns, LINE)
    middle = np.arange(NOISES) + 0.5
    np.testing.assert_allclose([np.interp(byte, middle, found) for byte in expected], list(expected.values()), rtol=0.02)
    np.testing.assert_allclose(found[[0, 120]] / LINE[[0, 120]], [found[2] / LINE[2], found[80] / LINE[80]], rtol=0.01)


def test_a_laser_reports_bytes_up_to_their_edges_and_drawn_ones_where_nothing_is_known():
    columns = columns_of(((36, 36.5), (39, 39.0), (40, 42.0), (41, 42.0), (42, 42.5), (43, 45.0)), in_steps(3.0))
    bytes_ = {float(place): int(columns[round(2 * place)]) // 2 for place in np.arange(36.0, 52.0, 0.5)}
    assert [bytes_[place] for place in (37.0, 38.5, 39.0, 41.5, 42.0, 42.5, 44.5, 45.0, 47.5)] == [36, 39, 40, 40, 42, 43, 43, 45, 48]
    assert [int(columns[round(2 * place)]) % 2 for place in (39.0, 40.0, 40.5, 41.5)] == [0, 0, 1, 1]
    np.testing.assert_array_equal(columns_of((), in_steps(3.0)), in_steps(3.0))


def test_known_bytes_and_noise_take_the_place_of_drawn_ones_laser_by_laser():
    baseline, gain = np.full(3, 9, np.uint8), np.ones(3)
    drawn = drawn_lasers(MODEL, baseline, gain, np.zeros((3, 256), np.int64), seed=7, stream=0)
    edges = [(byte, float(np.searchsorted(in_steps(3.0) // 2, byte, side="right")) / 2.0) for byte in range(256)]
    curve = tuple((byte, reported_sd(byte, 0.2 + 0.05 * byte, in_steps(3.0))) for byte in (3.0, 20.0, 70.0))
    found = with_own_bytes(drawn, LINE, [edges, (), ()], (curve, (), ()))
    np.testing.assert_array_equal(found.reported[1 : HALVES - 4, 0], in_steps(3.0)[1:-4])
    np.testing.assert_array_equal(found.reported[HALVES:], drawn.reported[HALVES:])
    np.testing.assert_allclose(found.byte_noise[[3, 20, 70], 0], [0.37, 1.22, 3.72], rtol=0.03)
    np.testing.assert_array_equal(found.byte_noise[NOISES:], drawn.byte_noise[NOISES:])
    for name in ("gain", "empty_step", "ripple_m", "correction", "range_gain"):
        np.testing.assert_array_equal(getattr(found, name), getattr(drawn, name))
    unknown = with_own_bytes(drawn, LINE, ((), (), ()), ((), (), ()))
    for name in drawn._fields:
        np.testing.assert_array_equal(getattr(unknown, name), getattr(drawn, name))


def test_a_known_response_is_linear_between_its_ranges():
    drawn = drawn_lasers(MODEL, np.full(1, 9, np.uint8), np.ones(1), np.zeros((1, 256), np.int64), seed=7, stream=0)
    found = with_own_bytes(drawn, LINE, ((),), ((),), ((2.0, 0.8), (10.0, 1.2))).range_gain[:, 0]
    np.testing.assert_allclose(found[[0, 7, 24, 39, 511]], [0.8, 0.8, 1.00625, 1.19375, 1.2], atol=1e-6)
