"""Each topic on synthetic packets whose statistics are known."""

import numpy as np
import pytest

from hilsim.read.analysis.comparison.noise import CLASSES
from hilsim.read.analysis.comparison.streams import gather
from hilsim.units import HOUR_US
from tests.unit.families.velodyne.conformance.streams import BASELINE, stamps_us, vlp16


def statistics(stream):
    return gather(stream.datagrams(), name="stream")


def records(stream):
    return stream.data["blocks"]["records"]


def test_white_noise_of_the_angle_correlates_increments_by_minus_a_half():
    azimuth = statistics(vlp16(2000, noise=3.0)).azimuth
    assert azimuth.scatter.autocorrelation() == pytest.approx(-0.5, abs=0.01)
    assert azimuth.increments.sd == pytest.approx(np.sqrt(2 * 3.0**2 + 2 / 12), rel=0.02)
    assert azimuth.rate_rpm == pytest.approx(600.0, abs=0.02)


def test_noise_of_the_rate_does_not_correlate_increments():
    stream = vlp16(2000)
    steps = np.random.default_rng(3).integers(36, 45, 2000 * 12)
    stream.data["blocks"]["azimuth"] = (np.cumsum(steps) % 36000).reshape(2000, 12)
    azimuth = statistics(stream).azimuth
    assert azimuth.scatter.autocorrelation() == pytest.approx(0.0, abs=0.02)
    assert azimuth.increments.mean == pytest.approx(steps[1:].mean())
    assert azimuth.increments.total == 2000 * 12 - 1


def test_increments_are_of_pairs_of_blocks_in_dual_mode():
    azimuth = statistics(vlp16(700, dual=True)).azimuth
    assert azimuth.increments.total == 700 * 6 - 1
    assert azimuth.increments.mean == pytest.approx(39.813, abs=0.01)


def test_an_exact_clock_cut_to_microseconds_has_a_residual_of_one_over_root_twelve():
    stamps = statistics(vlp16(2000)).stamps
    assert stamps.residual_us == pytest.approx(1 / np.sqrt(12), abs=0.001)
    assert stamps.cycle_us == pytest.approx(1327.104, abs=0.0005)
    assert stamps.steps.share(1327, 1328) == pytest.approx(0.896, abs=0.002)


def test_a_clock_that_runs_fast_is_found_in_the_cycle_and_not_in_the_residual():
    stream = vlp16(1500)
    stream.data["stamp"] = stamps_us(1500, 1_327_104 * 1.000137, 5_000_000)
    stamps = statistics(stream).stamps
    assert stamps.drift_ppm == pytest.approx(137.0, abs=0.2)
    assert stamps.residual_us == pytest.approx(0.289, abs=0.002)


def test_rounded_steps_added_up_have_no_residual():
    stream = vlp16(500)
    stream.data["stamp"] = 1_000_000 + 1327 * np.arange(500)
    stamps = statistics(stream).stamps
    assert stamps.residual_us == pytest.approx(0.0, abs=1e-6)
    assert stamps.drift_ppm == pytest.approx(-78.4, abs=0.1)


def test_the_end_of_the_hour_breaks_nothing():
    stamps = statistics(vlp16(700, start_us=HOUR_US - 300_000)).stamps
    assert stamps.fitted == 700
    assert stamps.residual_us == pytest.approx(0.289, abs=0.003)


def test_lost_packets_leave_the_line_and_do_not_count_as_spacing_or_increments():
    stream = vlp16(900)
    kept = np.full(900, fill_value=True)
    kept[100:120] = kept[400:402] = False
    found, whole = statistics(stream.change(keep=kept)), statistics(stream)
    assert found.stamps.fitted == 878
    assert found.stamps.cycle_us == pytest.approx(whole.stamps.cycle_us, abs=0.001)
    assert found.spacing.gaps.total == 878 - 1 - 2
    assert found.spacing.gaps.largest < 1400.0
    assert found.azimuth.increments.total == 878 * 12 - 1 - 2
    assert found.azimuth.increments.largest < 50


def test_a_pause_of_the_firing_inside_a_packet_is_no_increment():
    stream = vlp16(200)
    azimuth = stream.data["blocks"]["azimuth"].astype(int)
    azimuth[50, 7:] += 18_000
    azimuth[51:] += 18_000
    stream.data["blocks"]["azimuth"] = azimuth % 36_000
    stream.data["stamp"][51:] += 50_374
    found = statistics(stream)
    assert found.azimuth.increments.total == 200 * 12 - 1 - 2
    assert found.spacing.gaps.total == 198


def test_spacing_is_of_capture_times():
    stream = vlp16(3000)
    generator = np.random.default_rng(4)
    stream.data_host_ns[:] = 10**18 + np.cumsum(generator.normal(1_327_104, 20_000, 3000)).astype(np.int64)
    spacing = statistics(stream).spacing
    gap_us = np.diff(stream.data_host_ns) / 1000
    assert spacing.gaps.mean == pytest.approx(gap_us.mean(), abs=0.01)
    assert spacing.gaps.sd == pytest.approx(gap_us.std(), abs=0.01)
    assert spacing.gaps.quantile(0.99) == pytest.approx(np.quantile(gap_us, 0.99), abs=0.1)
    assert spacing.rate_hz == pytest.approx(753.5, abs=1.0)
    assert spacing.doubt is None


def test_capture_times_that_are_not_those_of_arrival_are_doubted():
    stream = vlp16(300)
    even = stream.data_host_ns.copy()
    stream.data_host_ns[:] = even // 1_000_000 * 1_000_000
    assert statistics(stream).spacing.doubt == "capture times are whole milliseconds"
    stream.data_host_ns[:] = even[np.arange(300) // 75 * 75] + np.arange(300) % 75 * 4000
    assert "bursts" in statistics(stream).spacing.doubt


def test_range_noise_is_found_by_reflectivity():
    stream = vlp16(1500)
    generator = np.random.default_rng(5)
    quiet = generator.random((1500, 1, 1)) < 0.5
    sigma_mm = np.where(quiet, 6.0, 18.0)
    angle = np.linspace(0, 200, 1500 * 24).reshape(1500, 12, 2, 1)
    wall_mm = np.broadcast_to(8000 + 400 * np.sin(angle), (1500, 12, 2, 16)).reshape(1500, 12, 32)
    records(stream)["distance"] = np.rint((wall_mm + sigma_mm * generator.standard_normal(wall_mm.shape)) / 2)
    records(stream)["reflectivity"] = np.where(quiet, 55, 1)
    noise = statistics(stream).noise
    sigma = dict(zip(CLASSES, noise.sigma_mm, strict=True))
    assert sigma[(40, 70)] == pytest.approx(6.0, abs=0.7)
    assert sigma[(0, 3)] == pytest.approx(18.0, abs=0.9)
    assert np.isnan(sigma[(70, 100)])


def test_edges_and_missing_returns_are_not_noise():
    stream = vlp16(100)
    sequence = np.arange(100 * 24).reshape(100, 12, 2, 1)
    stairs = np.broadcast_to(1000 + 200 * (sequence // 10 % 2), (100, 12, 2, 16)).copy()
    stairs[(np.broadcast_to(sequence, stairs.shape) % 10) == 9] = 0
    records(stream)["distance"] = stairs.reshape(100, 12, 32)
    records(stream)["reflectivity"] = 55
    noise = statistics(stream).noise
    assert noise.windows.sum() == 16 * 6 * 240  # nine returns to a stair have six fours
    assert noise.sigma_mm[5] == 0.0


def test_bytes_of_returns_and_of_firings_without_one_are_kept_apart():
    stream = vlp16(100)
    records(stream)["distance"] = 2000
    records(stream)["reflectivity"] = 40
    records(stream)["reflectivity"][:, :6] = 100
    records(stream)["distance"][:, 11] = 0
    records(stream)["reflectivity"][:, 11] = np.tile(BASELINE, 2)
    records(stream)["reflectivity"][:10, 11] = np.tile(3 * BASELINE.astype(int) % 256, 2)
    records(stream)["reflectivity"][10:15, 11] = 101
    records(stream)["reflectivity"][15, 11] = 0
    returns = statistics(stream).returns
    assert returns.reflectivity.share(100, 101) == pytest.approx(6 / 11)
    assert returns.reflectivity.share(101, 256) == 0.0
    assert returns.empty / returns.fired == pytest.approx(1 / 12)
    np.testing.assert_allclose(returns.empty_shares, 1 / 12)
    np.testing.assert_array_equal(returns.baseline, BASELINE)
    assert returns.baseline_share == pytest.approx(0.84)
    assert returns.multiple_share == pytest.approx(10 / 16)
    assert returns.zero_byte_share == pytest.approx(0.01)


def test_distances_below_the_floor_and_odd_codes_are_counted():
    stream = vlp16(100)
    records(stream)["distance"] = 1001
    records(stream)["distance"][:, ::2] = 1000
    records(stream)["distance"][0, 0, :3] = (249, 250, 0)
    returns = statistics(stream).returns
    assert returns.below_floor == 1
    assert (returns.ranges_m.smallest, returns.ranges_m.largest) == (pytest.approx(0.498), pytest.approx(2.002))
    assert returns.odd / returns.ranges_m.total == pytest.approx(0.5, abs=0.001)


def test_pairs_of_dual_mode_are_counted_by_what_they_hold():
    stream = vlp16(100, dual=True)
    even, odd = records(stream)[:, ::2], records(stream)[:, 1::2]
    for block in (even, odd):
        block["distance"] = 1000
        block["reflectivity"] = 30
    odd["distance"][:, 0, 0] = 400  # farther even, 1.2 m, weaker
    odd["reflectivity"][:, 0, 0] = 60
    odd["distance"][:, 0, 1] = 1500  # the wrong way round, 1 m, stronger
    odd["reflectivity"][:, 0, 1] = 20
    odd["distance"][:, 0, 2] = 0
    even["distance"][:, 0, 3] = 0
    for block in (even, odd):
        block["distance"][:, 1] = 0
    odd["reflectivity"][:25, 1] = 31
    found = statistics(stream)
    dual = found.dual
    assert (dual.pairs, dual.empty, dual.with_return) == (100 * 6 * 32, 100 * 32, 100 * 5 * 32)
    assert (dual.different, dual.only_even, dual.only_odd) == (200, 100, 100)
    assert dual.identical == 100 * 5 * 32 - 400
    assert (dual.even_farther, dual.even_stronger, dual.odd_stronger) == (100, 100, 100)
    assert (dual.separations_m.smallest, dual.separations_m.largest) == (pytest.approx(1.0), pytest.approx(1.2))
    assert dual.empty_equal == 75 * 32
    assert found.returns.ranges_m.total == dual.identical + 2 * dual.different + dual.only_even + dual.only_odd
    assert found.returns.empty == dual.empty
