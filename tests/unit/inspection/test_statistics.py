"""Figures of intervals and of clocks, against NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from hilsim.read.analysis.inspection.statistics import ClockLine, Spread


def test_percentiles_mean_and_extremes_are_those_of_the_values():
    generator = np.random.default_rng(5)
    values = np.abs(generator.normal(1_327_104, 40_000, 5000)).astype(np.int64)
    spread = Spread()
    for start, stop in pairwise([0, 1, 700, 5000]):
        spread.add(values[start:stop])
    found = spread.summary()
    assert (found.min_us, found.max_us) == (values.min() / 1000, values.max() / 1000)
    assert found.mean_us == pytest.approx(values.mean() / 1000)
    assert found.sd_us == pytest.approx(values.std() / 1000)
    for ratio, figure in ((1, found.p1_us), (50, found.p50_us), (99, found.p99_us)):
        assert figure == pytest.approx(np.percentile(values, ratio) / 1000, rel=0.005)


def test_the_clock_line_is_the_least_squares_line():
    generator = np.random.default_rng(6)
    sensor = np.full(900, 1_000_000, dtype=np.int64)
    host = sensor + 40 + generator.normal(0, 3000, 900).astype(np.int64)
    line, every, cuts = ClockLine(), np.full(900, fill_value=True), (0, 17, 500, 900)
    for start, stop in pairwise(cuts):
        line.add(sensor[start:stop], host[start:stop], every[start:stop], every[start:stop])
    slope = np.polyfit(np.cumsum(sensor) * 1e-9, np.cumsum(host - sensor) * 1e-9, 1)[0]
    assert line.drift_ppm()[0] == pytest.approx(slope * 1e6)


def test_stretches_between_leaps_of_a_clock_share_a_slope_and_nothing_else():
    stretches, each = 12, 100
    jitter = np.tile(np.where(np.arange(each) == each - 1, 100_000, 0), stretches)  # each stretch's last packet was captured late
    sensor = np.arange(stretches * each) * 1_000_000
    host = sensor + jitter + np.arange(stretches * each) * 25 + np.repeat(np.arange(stretches) ** 3, each) * 10**9
    continuous = np.arange(stretches * each) % each != 0
    line = ClockLine()
    steps = np.diff(sensor, prepend=0), np.diff(host, prepend=0), continuous, np.full(len(sensor), fill_value=True)
    for start, stop in pairwise((0, 250, 600, 601, 650, 1200)):
        line.add(*(values[start:stop] for values in steps))
    offsets = np.repeat(np.eye(stretches), each, axis=0)
    table = np.column_stack((sensor, offsets))
    slope = np.linalg.lstsq(table * [1e-9, *[1] * stretches], (host - sensor) * 1e-9, rcond=None)[0][0]
    assert line.drift_ppm()[0] == pytest.approx(slope * 1e6, rel=1e-6)
    assert line.drift_ppm()[1] > 1.0
