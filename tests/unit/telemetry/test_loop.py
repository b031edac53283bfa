"""The sending loop's own arrays, written by hand, as a scrape tells them."""

import errno

import numpy as np
import pytest

from hilsim.telemetry.loop import read_flows, read_histograms, read_loop_turn_age_s
from hilsim.telemetry.metrics import LATENCY_BOUNDS_S, TIMING_BOUNDS_S
from hilsim.transmit.ring import allocate_rings, push
from hilsim.transmit.statistics import Counter, allocate_statistics, bin_index, bin_upper_bounds_ns


@pytest.fixture
def arrays():
    """Statistics and rings of two flows, as a loop might leave them."""
    statistics, rings = allocate_statistics(2), allocate_rings(2, 8, 1206)
    statistics.counters[0, Counter.PACKETS] = 3
    statistics.counters[0, Counter.BYTES] = 3 * 1206
    statistics.counters[0, Counter.LATE] = 2
    statistics.counters[0, Counter.DROPPED] = 1
    statistics.counters[0, Counter.UNDERRUN] = 5
    statistics.counters[0, Counter.EARLY] = 6
    statistics.counters[0, Counter.LAST_SEND_NS] = 7_000_000_000
    statistics.counters[0, Counter.LATENESS_SUM_NS] = 15_000
    statistics.counters[0, Counter.INTERVAL_ERROR_SUM_NS] = 2_000
    statistics.counters[0, Counter.POSE_LATENCY_SUM_NS] = 9_000_000
    statistics.counters[0, Counter.LATENESS_MAX_NS] = 12_000
    for lateness_ns in (1_000, 2_000, 12_000):
        statistics.lateness[0, bin_index(lateness_ns)] += 1
    statistics.interval_error[0, bin_index(2_000)] += 1
    statistics.pose_latency[0, bin_index(3_000_000)] += 3
    statistics.send_errors[0, errno.ENETUNREACH] = 4
    statistics.send_errors[0, 0] = 2
    for _ in range(3):
        push(rings, 1, 0, 0, np.zeros(1206, np.uint8), 512)
    return statistics, rings


def read(arrays):
    return read_flows(("front/left/data", "rear/position"), *arrays, now_ns=7_250_000_000, befallen=np.zeros((2, 16), np.int64))


def test_a_flow_is_named_by_what_follows_the_last_slash(arrays):
    assert [(flow.sensor, flow.flow) for flow in read(arrays)] == [("front/left", "data"), ("rear", "position")]


def test_counts_are_those_of_the_flow(arrays):
    flow = read(arrays)[0]
    assert (flow.sent_packets, flow.sent_bytes, flow.late_packets, flow.dropped_packets) == (3, 3618, 2, 1)
    assert (flow.underrun_packets, flow.early_packets, flow.lateness_max_s) == (5, 6, 12e-6)


def test_depth_is_what_waits_in_the_ring(arrays):
    assert [(flow.ring_depth_packets, flow.ring_capacity_packets) for flow in read(arrays)] == [(0, 8), (3, 8)]


def test_send_errors_are_reported_by_name(arrays):
    assert [flow.send_errors for flow in read(arrays)] == [{"ENETUNREACH": 4, "other": 2}, {}]


def test_the_age_of_the_last_datagram_is_unknown_before_the_first(arrays):
    assert [flow.last_sent_age_s for flow in read(arrays)] == [0.25, None]


def test_histograms_keep_count_and_sum(arrays):
    flow = read(arrays)[0]
    assert (flow.lateness.cumulative[0], flow.lateness.cumulative[1], flow.lateness.cumulative[-1], flow.lateness.sum_s) == (2, 3, 3, 15e-6)
    assert (flow.interval_error.cumulative[-1], flow.interval_error.sum_s) == (1, 2e-6)
    assert flow.pose_to_wire.cumulative == (*(0 if bound <= 3e-3 else 3 for bound in LATENCY_BOUNDS_S), 3)


def test_a_flow_without_poses_has_no_histogram_of_them(arrays):
    assert read(arrays)[1].pose_to_wire is None


@pytest.mark.parametrize("bounds_s", [TIMING_BOUNDS_S, LATENCY_BOUNDS_S], ids=["timing", "latency"])
def test_buckets_agree_with_the_loops_own_rebinning(bounds_s):
    bins = np.random.default_rng(7).integers(0, 100, (3, 512))
    readings = read_histograms(bounds_s, bins, [0, 0, 0])
    ends_ns, bounds_ns = bin_upper_bounds_ns()[:-1], [round(bound * 1e9) for bound in bounds_s]
    expected = [[int(row[:-1][ends_ns <= bound_ns].sum()) for bound_ns in bounds_ns] for row in bins]
    assert [list(reading.cumulative[:-1]) for reading in readings] == expected
    assert [reading.cumulative[-1] for reading in readings] == bins.sum(axis=1).tolist()


def test_buckets_never_exceed_numpys_counts_and_lack_at_most_the_bin_of_the_bound():
    durations_ns = np.random.default_rng(8).lognormal(11.0, 2.0, 10_000).astype(np.int64)
    bins = np.bincount([bin_index(int(value)) for value in durations_ns], minlength=512)
    cumulative = read_histograms(TIMING_BOUNDS_S, bins[np.newaxis], [0])[0].cumulative
    for count, bound_s in zip(cumulative[:-1], TIMING_BOUNDS_S, strict=True):
        exact = np.sum(durations_ns <= round(bound_s * 1e9))
        assert exact - bins[bin_index(round(bound_s * 1e9))] <= count <= exact
    assert cumulative[-1] == durations_ns.size


def test_a_duration_is_never_counted_below_what_it_took():
    for bound_index, bound in enumerate(TIMING_BOUNDS_S):
        bins = np.zeros((1, 512), np.int64)
        bins[0, bin_index(round(bound * 1e9) + 1)] = 1
        assert read_histograms(TIMING_BOUNDS_S, bins, [0])[0].cumulative[bound_index] == 0


def test_the_age_of_the_loops_turn_is_reported_once_it_has_turned(arrays):
    statistics, _ = arrays
    assert read_loop_turn_age_s(statistics, 5_000) is None
    statistics.pass_ns[0] = 4_000
    assert read_loop_turn_age_s(statistics, 5_000) == 1e-6


def test_what_the_loop_did_during_the_reading_makes_nothing_negative(arrays):
    statistics, rings = arrays
    rings.head[1, 0] = 5
    statistics.counters[1, Counter.LAST_SEND_NS] = 7_260_000_000
    flow = read(arrays)[1]
    assert (flow.ring_depth_packets, flow.last_sent_age_s) == (0, 0)
