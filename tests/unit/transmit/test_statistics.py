"""Histograms of the sending loop against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.transmit.statistics import (
    BINS,
    allocate_statistics,
    bin_index,
    bin_upper_bounds_ns,
    clear_flow,
    quantile_ns,
)

TOP_NS = 2**35


def histogram_of(values):
    histogram = np.zeros(BINS, np.int64)
    for value in values:
        histogram[bin_index(int(value))] += 1
    return histogram


@pytest.fixture(scope="module")
def durations():
    return np.random.default_rng(5).lognormal(10.5, 2.0, 20_000).astype(np.int64)  # median 36 us, p99 4 ms


@given(st.integers(0, TOP_NS - 1))
def test_a_duration_lies_within_the_bounds_of_its_bin(value_ns):
    index = bin_index(value_ns)
    bounds = bin_upper_bounds_ns()
    assert value_ns <= bounds[index]
    assert index == 0 or value_ns > bounds[index - 1]


@pytest.mark.parametrize("exponent", range(4, 35))
def test_bins_are_right_at_and_beside_each_power_of_two(exponent):
    bounds = bin_upper_bounds_ns()
    for value_ns in (2**exponent - 1, 2**exponent, 2**exponent + 1):
        assert bin_index(value_ns) == np.searchsorted(bounds, value_ns)


def test_a_bin_is_at_most_a_sixteenth_wide():
    bounds = bin_upper_bounds_ns()
    widths = np.diff(bounds)
    assert np.all(widths[16:] <= bounds[16:-1] / 16 + 1)


def test_a_negative_duration_is_counted_in_the_first_bin():
    assert bin_index(-5) == 0


@pytest.mark.parametrize("value_ns", [TOP_NS, 2**37, 2**40, 2**62, 2**63 - 1])
def test_a_duration_above_the_last_bound_is_counted_in_the_last_bin(value_ns):
    assert bin_index(value_ns) == BINS - 1


@pytest.mark.parametrize("quantile", [0.0, 0.01, 0.5, 0.99, 0.999, 1.0])
def test_a_quantile_is_never_below_and_at_most_a_sixteenth_above_that_of_numpy(durations, quantile):
    exact = np.quantile(durations, quantile, method="inverted_cdf")
    assert exact <= quantile_ns(histogram_of(durations), quantile) <= exact * 17 / 16 + 1


def test_an_empty_histogram_has_no_quantile():
    assert quantile_ns(np.zeros(BINS, np.int64), 0.5) is None


def test_a_quantile_above_one_is_refused():
    with pytest.raises(ValueError, match=r"quantile must be 0 to 1, got 99"):
        quantile_ns(np.zeros(BINS, np.int64), 99)


def test_clearing_a_flow_leaves_the_others():
    statistics = allocate_statistics(2)
    for array in statistics[:5]:
        array[:] = 7
    clear_flow(statistics, 0)
    assert all(not array[0].any() and array[1].all() for array in statistics[:5])
