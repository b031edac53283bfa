"""The figures that were measured on real captures by other means, reproduced."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.comparison.comparison import Verdict
from hilsim.read.analysis.comparison.streams import compare, gather

pytestmark = pytest.mark.extended

GPS, DUAL, FAST = "vlp16_strongest_gps.pcap", "vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap"
FIELD, HDL, ALPHA = "vlp32c_strongest_fov.pcap", "hdl32e_strongest.pcap", "vls128_strongest.pcap"
WITHOUT = Path(__file__).parent / "vlp16_without_byte_noise.pcap.gz"
"""0.4 s of the demo street, 7 rays a beam, as hilsim rendered it before it had byte noise, a range grid and units:
``hilsim record profiles/rigs/demo.toml -o vlp16_without_byte_noise.pcap --duration-s 0.4``, compressed by ``gzip -9n``."""


@pytest.fixture
def statistics(capture):
    return lambda name: gather(CaptureFile(capture(name)), name=name)


@pytest.mark.parametrize(
    ("name", "model", "mode", "packets", "rpm"),
    [
        (GPS, "VLP-16", "STRONGEST", 293, 599.07),
        (DUAL, "VLP-16", "DUAL", 603, 599.98),
        (FAST, "VLP-16", "STRONGEST", 1902, 1198.77),
        (FIELD, "VLP-32C", "STRONGEST", 379, 600.04),
        (HDL, "HDL-32E", "STRONGEST", 2702, 706.5),
        (ALPHA, "VLS-128", "STRONGEST", 2193, 599.7),
    ],
)
def test_sensor_and_rotation(statistics, name, model, mode, packets, rpm):
    found = statistics(name)
    assert (found.model.name, found.return_mode.name, found.spacing.packets) == (model, mode, packets)
    assert found.azimuth.rate_rpm == pytest.approx(rpm, abs=0.02)


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        (DUAL, {38: 0.076, 39: 0.216, 40: 0.560, 41: 0.119, 42: 0.030}),
        (FAST, {78: 0.015, 79: 0.475, 80: 0.448, 81: 0.048}),
        (FIELD, {18: 0.065, 19: 0.166, 20: 0.592, 21: 0.150, 22: 0.027}),
        (HDL, {18: 0.011, 19: 0.50, 20: 0.43, 21: 0.056}),
    ],
)
def test_azimuth_increments(statistics, name, shares):
    increments = statistics(name).azimuth.increments
    for value, share in shares.items():
        assert increments.share(value, value + 1) == pytest.approx(share, abs=0.003 if share > 0.4 else 0.0015)


def test_two_units_at_600_rpm_differ_by_a_total_variation_of_0_037(statistics):
    a, b = statistics(GPS), statistics(DUAL)
    rows = {row.statistic.name: row for row in compare(a, b).rows}
    assert rows["azimuth.total_variation"].distance == pytest.approx(0.037, abs=0.0005)
    assert rows["azimuth.total_variation"].verdict is Verdict.ALIKE
    for found in (a, b):
        assert -0.49 <= found.azimuth.scatter.autocorrelation() <= -0.47
        assert 0.78 <= found.azimuth.increments.sd <= 0.87
        assert found.azimuth.increments.mean == pytest.approx(39.795, abs=0.05)
    assert {name for name, row in rows.items() if row.verdict is Verdict.DIFFERS} == set()


@pytest.mark.parametrize(
    ("name", "cycle_us", "step_us", "share"),
    [
        (GPS, 1327.1044, 1327, 0.896),
        (FAST, 1327.1038, 1327, 0.896),
        (DUAL, 663.5523, 663, 0.45),
        (FIELD, 663.5510, 663, 0.45),
        (HDL, 552.9601, 553, 0.96),
    ],
)
def test_time_stamps(statistics, name, cycle_us, step_us, share):
    stamps = statistics(name).stamps
    assert 0.2880 <= stamps.residual_us < 0.2895
    assert stamps.cycle_us == pytest.approx(cycle_us, abs=0.0011)
    assert stamps.steps.share(step_us, step_us + 1) == pytest.approx(share, abs=0.003)
    assert stamps.residuals.largest < 0.53


@pytest.mark.parametrize(
    ("name", "mean_us", "sd_us", "p1_us", "p99_us"),
    [(GPS, 1327.072, 14.05, 1269.8, 1396.0), (DUAL, 663.54, 33.8, 515, 812), (HDL, 552.99, 19.9, 487.0, 619.0)],
)
def test_host_spacing(statistics, name, mean_us, sd_us, p1_us, p99_us):
    gaps = statistics(name).spacing.gaps
    assert gaps.mean == pytest.approx(mean_us, abs=0.01)
    assert gaps.sd == pytest.approx(sd_us, abs=0.05)
    assert gaps.quantile(0.01) == pytest.approx(p1_us, abs=0.15)
    assert gaps.quantile(0.99) == pytest.approx(p99_us, abs=0.35)


def test_host_spacing_percentiles(statistics):
    gaps = statistics(GPS).spacing.gaps
    assert [round(gaps.quantile(ratio)) for ratio in (0.05, 0.5, 0.95)] == [1313, 1327, 1338]
    assert statistics(GPS).spacing.doubt is None
    assert statistics(FAST).spacing.doubt == "capture times are whole milliseconds"
    assert "bursts" in statistics(FIELD).spacing.doubt


def test_bytes_of_firings_without_a_return(statistics):
    one, other, early = (statistics(name).returns for name in (GPS, DUAL, FAST))
    np.testing.assert_array_equal(one.baseline, [9, 23, 24, 23, 20, 12, 11, 13, 17, 14, 11, 8, 23, 7, 23, 11])
    np.testing.assert_array_equal(other.baseline, [4, 3, 4, 4, 6, 8, 3, 8, 4, 11, 3, 7, 6, 10, 4, 11])
    assert one.baseline_share > 0.95
    assert (one.zero_byte_share, other.zero_byte_share) == (0.0, 0.0)
    assert early.zero_byte_share == pytest.approx(0.08, abs=0.005)


def test_returns(statistics):
    one, other, far = (statistics(name).returns for name in (GPS, DUAL, HDL))
    assert (one.ranges_m.smallest, other.ranges_m.smallest) == (0.5, 0.5)
    assert far.ranges_m.largest == pytest.approx(52_652 * 0.002)
    assert one.below_floor == other.below_floor == 0
    assert one.ranges_m.total == 73_486  # as velodyne-decoder 3.1 counts them
    assert other.ranges_m.total == 59_414
    assert far.ranges_m.total == 872_800
    for returns in (one, other, far):
        assert 0.475 <= returns.odd / returns.ranges_m.total <= 0.517
    assert (one.reflectivity.quantile(0.5), other.reflectivity.quantile(0.5)) == (49, 33)
    assert one.reflectivity.quantile(0.95) == one.reflectivity.quantile(0.99) == 100
    assert statistics(FIELD).returns.reflectivity.share(101, 256) == pytest.approx(0.23, abs=0.005)
    assert statistics(FIELD).returns.ranges_m.smallest == pytest.approx(178 * 0.004)


@pytest.mark.parametrize(
    ("name", "sigma_mm"),
    [
        (GPS, [13.3, 8.0, 8.0, 7.3, 6.0, 5.3, 5.3, 4.6, 10.6]),
        (DUAL, [15.2, 13.3, 9.9, 8.6, 6.6, 5.3, 4.6, 4.6]),
        (FAST, [17.2, 11.9, 11.9, 9.9, 6.6, 5.3, 5.3, 5.3, 23.2]),
        (FIELD, [5.3, 4.0, 4.0, 5.3, 5.3, 4.0, 6.6, 4.0, 4.0]),
        (HDL, [13.3, 6.0, 4.0, 4.6, 5.3, 4.0, 2.7, 3.3, 4.0]),
    ],
)
def test_range_noise(statistics, name, sigma_mm):
    found = statistics(name).noise.sigma_mm[: len(sigma_mm)]
    np.testing.assert_allclose(found, sigma_mm, atol=0.051)


def test_pairs_of_dual_mode(statistics):
    dual = statistics(DUAL).dual
    assert dual.empty / dual.pairs == pytest.approx(0.493, abs=0.0005)
    assert dual.identical / dual.with_return == pytest.approx(0.978, abs=0.0005)
    assert dual.different / dual.with_return == pytest.approx(0.012, abs=0.0005)
    assert (dual.only_even, dual.only_odd, dual.different) == (528, 57, 708)
    assert dual.even_farther == 708
    assert (dual.even_stronger, dual.odd_stronger) == (339, 289)
    assert dual.separations_m.smallest == pytest.approx(1.19)
    assert dual.separations_m.quantile(0.5) == pytest.approx(2.95, abs=0.005)
    assert dual.empty_equal / dual.empty == pytest.approx(0.999, abs=0.0005)


@pytest.mark.parametrize("names", list(combinations((GPS, DUAL, FAST), 2)))
def test_no_two_real_units_differ(statistics, names):
    comparison = compare(*(statistics(name) for name in names))
    assert comparison.differing == []
    assert comparison.alike >= 8


@pytest.mark.parametrize("name", [GPS, DUAL])
def test_a_stream_without_byte_noise_differs_from_real_units_in_what_betrays_it(statistics, name):
    without = gather(CaptureFile(WITHOUT), name=WITHOUT.name)
    found = set(compare(statistics(name), without).differing)
    assert {"grid.odd", "grid.odd_equal_bytes", "grid.parity", "bytes.equal", "bytes.sd_20_39", "bytes.sd_40_69", "bytes.constant_40_69"} <= found
    assert {"edges.with_empty", "edges.near_mixed", "empty.at_baseline", "empty.byte_kinds", "azimuth.mod_5_rarest"} <= found


def test_a_stream_without_byte_noise_is_like_itself():
    without = gather(CaptureFile(WITHOUT), name=WITHOUT.name)
    assert compare(without, without).differing == []


@pytest.mark.parametrize(
    ("name", "odd", "odd_equal", "parity", "equal", "byte_sd", "at_baseline", "rarest"),
    [
        (GPS, 0.35, 0.20, 0.71, 0.245, 2.85, 0.97, 0.136),
        (DUAL, 0.35, 0.22, 0.65, 0.161, 6.5, 0.77, 0.154),
        (FAST, 0.15, 0.03, 0.84, 0.257, 4.25, 0.71, 0.165),
    ],
)
def test_signal_of_real_units(statistics, name, odd, odd_equal, parity, equal, byte_sd, at_baseline, rarest):
    found = statistics(name)
    assert found.grid.odd / found.grid.steps == pytest.approx(odd, abs=0.006)
    assert found.grid.odd_equal / found.grid.equal == pytest.approx(odd_equal, abs=0.006)
    assert found.grid.predicted_share == pytest.approx(parity, abs=0.006)
    assert found.grid.diffuse_equal / found.grid.diffuse == pytest.approx(equal, abs=0.001)
    assert found.patches.byte_sd[3].quantile(0.5) == pytest.approx(byte_sd, abs=0.051)
    assert found.returns.baseline_share == pytest.approx(at_baseline, abs=0.006)
    assert found.azimuth.of_class.min() / found.azimuth.of_class.sum() == pytest.approx(rarest, abs=0.001)


@pytest.mark.parametrize("name", [HDL, FIELD, ALPHA])
def test_other_models_than_the_vlp_16_have_no_grid_of_two_codes(statistics, name):
    grid = statistics(name).grid
    assert grid.odd / grid.steps == pytest.approx(0.5, abs=0.01)
    assert grid.odd_equal / grid.equal == pytest.approx(0.5, abs=0.01)


def test_neighbouring_firings_of_a_vls_128_are_found_across_its_packets_of_three(statistics):
    found = statistics(ALPHA)
    assert found.edges.edges > 2000
    assert found.patches.count(3) > 1000
    assert (found.returns.baseline[[5, 17, 33, 50]] == [19, 39, 63, 15]).all()


@pytest.mark.parametrize("name", [HDL, FIELD, ALPHA])
def test_one_unit_judges_no_other(statistics, name):
    comparison = compare(statistics(name), statistics(name))
    assert comparison.alike <= 3
    assert {reason for _, reason in comparison.not_looked_at} == {f"no two units of a {comparison.a.model.name} were measured"}
