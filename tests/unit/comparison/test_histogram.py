"""Distributions and their distances, against hand-computed values, NumPy and SciPy."""

import math

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from hilsim.read.analysis.comparison.histogram import Histogram, total_variation, wasserstein


def filled(values, *, first=0.0, width=1.0, bins=300):
    histogram = Histogram(first=first, width=width, bins=bins)
    histogram.add(np.asarray(values))
    return histogram


def test_total_variation_is_half_the_sum_of_the_differences_of_shares():
    one, other = filled([39, 40, 40, 41]), filled([40, 40, 40, 42])
    assert total_variation(one, other) == pytest.approx(0.5 * (0.25 + 0.25 + 0.25 + 0.25))
    assert total_variation(one, one) == 0.0
    assert total_variation(filled([1]), filled([2, 3])) == 1.0


def test_wasserstein_is_how_far_values_are_moved():
    assert wasserstein(filled([10, 10]), filled([10, 14])) == pytest.approx(2.0)
    assert wasserstein(filled([0.10], width=0.01), filled([0.25], width=0.01)) == pytest.approx(0.15)


def test_wasserstein_agrees_with_scipy():
    generator = np.random.default_rng(1)
    one, other = generator.integers(0, 256, 1000), generator.binomial(255, 0.4, 333)
    assert wasserstein(filled(one), filled(other)) == pytest.approx(wasserstein_distance(one, other))


@pytest.mark.parametrize("count", [1, 2, 7, 292, 1000])
def test_figures_agree_with_numpy(count):
    values = np.random.default_rng(count).integers(0, 250, count)
    histogram = filled(values)
    for ratio in (0.0, 0.01, 0.05, 0.5, 0.95, 0.99, 1.0):
        assert histogram.quantile(ratio) == pytest.approx(np.quantile(values, ratio))
    assert histogram.mean == pytest.approx(values.mean())
    assert histogram.sd == pytest.approx(values.std())
    assert (histogram.smallest, histogram.largest) == (values.min(), values.max())
    assert histogram.share(100, 101) == pytest.approx((values == 100).mean())
    assert histogram.share(101, 256) == pytest.approx((values > 100).mean())


def test_values_beyond_the_grid_count_in_its_end_bins():
    histogram = filled([-7.0, 5.0, 1e12], bins=10)
    assert histogram.to_json() == {"values": [0.0, 5.0, 9.0], "counts": [1, 1, 1]}


def test_statistics_of_no_values_are_unknown():
    empty = filled([])
    for value in (empty.mean, empty.sd, empty.mode, empty.smallest, empty.largest, empty.quantile(0.5), empty.share(0, 1)):
        assert math.isnan(value)
    assert math.isnan(total_variation(empty, filled([1])))
    assert math.isnan(wasserstein(filled([1]), empty))
