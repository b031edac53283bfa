"""Statistics of the signal on small arrays whose answers are counted by hand or by loops."""

import numpy as np
import pytest

from hilsim.families.velodyne.comparison.signal import (
    CLASSES,
    WHITE_AUTOCORRELATION,
    EdgeStatistics,
    Firings,
    GridStatistics,
    PatchStatistics,
    autocorrelations,
    find_patches,
)
from hilsim.read.analysis.comparison.streams import gather
from tests.unit.families.velodyne.conformance.streams import BASELINE, vlp16


def firings(distance, byte=50):
    """One laser that fires these distance codes in one packet; a row a packet if there are several."""
    distance = np.atleast_2d(np.asarray(distance, dtype=np.int64))[:, :, None]
    return Firings(distance=distance, byte=np.broadcast_to(np.asarray(byte, dtype=np.int64), distance.shape[:2])[:, :, None], unit_mm=2)


def looked_at(statistics, distance, byte=50):
    statistics.look(firings(distance, byte))
    return statistics


def test_steps_are_counted_by_parity_and_by_equality_of_bytes():
    grid = looked_at(GridStatistics(channels=1), [1000, 1003, 1003, 0, 1004, 1030, 1031, 1033], [50, 50, 51, 0, 51, 51, 51, 99])
    # 1000-1003 odd equal, 1003-1003 even, 1030-1031 odd equal, 1031-1033 even; 1004-1030 is 26 codes
    assert (grid.steps, grid.odd, grid.equal, grid.odd_equal) == (4, 2, 2, 2)
    assert (grid.diffuse, grid.diffuse_equal) == (4, 2)


def test_white_ranges_have_half_of_odd_steps_and_no_parity_to_predict():
    generator = np.random.default_rng(3)
    grid = looked_at(GridStatistics(channels=1), 1000 + generator.integers(0, 12, (400, 24)), generator.integers(20, 90, (400, 24)))
    assert grid.odd / grid.steps == pytest.approx(0.5, abs=0.02)
    assert grid.odd_equal / grid.equal == pytest.approx(0.5, abs=0.1)
    assert grid.predicted_share == pytest.approx(0.5, abs=0.03)


def test_a_grid_of_two_codes_that_the_byte_shifts_is_found():
    generator = np.random.default_rng(4)
    byte = generator.integers(20, 24, (400, 24))
    grid = looked_at(GridStatistics(channels=1), 1000 + 2 * generator.integers(0, 6, (400, 24)) + byte % 2, byte)
    assert grid.odd / grid.steps == pytest.approx(0.5, abs=0.02)
    assert grid.odd_equal / grid.equal == 0.0
    assert grid.predicted_share == 1.0


def test_parity_is_predicted_by_the_other_returns_only():
    generator = np.random.default_rng(5)
    distance, byte = 1000 + generator.integers(0, 9, (1, 24)), generator.integers(20, 24, (1, 24))
    hits = 0.0
    for place in range(24):
        others = [distance[0, k] % 2 for k in range(24) if k != place and byte[0, k] == byte[0, place]]
        mean = np.mean(others) if others else 0.5
        hits += 0.5 if mean == 0.5 else float((mean > 0.5) == distance[0, place] % 2)
    assert looked_at(GridStatistics(channels=1), distance, byte).predicted_share == pytest.approx(hits / 24)


def test_white_noise_has_the_autocorrelation_that_the_parabola_leaves_it():
    assert pytest.approx(-0.25) == WHITE_AUTOCORRELATION
    generator = np.random.default_rng(6)
    distance = np.rint(3000 + generator.normal(0.0, 4.0, (6000, 12))).astype(np.int64)
    patches = looked_at(PatchStatistics(), distance)
    assert patches.count(3) > 5000
    assert patches.autocorrelation(3) == pytest.approx(WHITE_AUTOCORRELATION, abs=0.012)


def test_noise_that_lasts_has_a_larger_autocorrelation():
    generator = np.random.default_rng(7)
    white = generator.normal(0.0, 4.0, (3000, 13))
    distance = np.rint(3000 + white[:, 1:] + white[:, :-1]).astype(np.int64)
    assert looked_at(PatchStatistics(), distance).autocorrelation(3) > WHITE_AUTOCORRELATION + 0.2


def test_patches_are_whole_smooth_runs_of_twelve_returns():
    wall = np.rint(4000 + 3 * np.arange(24) + 0.4 * (np.arange(24) - 12) ** 2).astype(np.int64)
    assert len(find_patches(firings(wall)).distance) == 2
    np.testing.assert_allclose(find_patches(firings(wall)).residual_mm, 0.0, atol=2.0)  # a parabola but for rounding
    for change in ((5, 0), (5, 4400)):
        broken = wall.copy()
        broken[change[0]] = change[1]
        assert find_patches(firings(broken)).packet.tolist() == [0]
    assert len(find_patches(firings(wall[:11])).distance) == 0


def test_patches_know_their_laser_and_packet():
    distance = np.full((3, 24, 16), 2000)
    distance[1, :, 4] = 0
    patches = find_patches(Firings(distance=distance, byte=np.full_like(distance, 9), unit_mm=2))
    found = {(packet, laser) for packet, laser in zip(patches.packet.tolist(), patches.laser.tolist(), strict=True)}
    assert found == {(packet, laser) for packet in range(3) for laser in range(16)} - {(1, 4)}


def test_byte_noise_is_the_median_deviation_within_patches_of_a_class():
    byte = np.vstack([np.full((3, 12), 50), np.tile([48, 52], (4, 6)), np.tile([20, 22], (2, 6))])
    patches = looked_at(PatchStatistics(), np.full((9, 12), 2000), byte)
    place = CLASSES.index((40, 70))
    assert patches.count(place) == 7
    assert patches.constant_share(place) == pytest.approx(3 / 7)
    assert patches.byte_sd[place].quantile(0.5) == 2.0
    assert patches.byte_sd[CLASSES.index((20, 40))].quantile(0.5) == 1.0
    assert np.isnan(patches.constant_share(CLASSES.index((70, 100))))


def test_autocorrelations_of_rows():
    rows = np.array([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(autocorrelations(rows), [-0.75, 0.75, np.nan])
    np.testing.assert_allclose(autocorrelations(rows, 2), [0.5, 0.5, np.nan])


NEAR, FAR = [1000, 1000, 1001], [1500, 1500, 1501]  # 2 m and 3 m: a gap of 1 m
VERY_FAR = [4000, 4001, 4000]


@pytest.mark.parametrize(
    ("between", "beyond", "expected"),
    [
        ([], FAR, (1, 0, 1, 0, 0, 0)),
        ([0], FAR, (1, 1, 1, 0, 0, 0)),
        ([1250], FAR, (1, 0, 1, 1, 0, 0)),
        ([1020], FAR, (1, 0, 1, 0, 0, 0)),  # settled with the near side
        ([0, 1250], FAR, (1, 1, 1, 1, 0, 0)),
        ([2000], VERY_FAR, (1, 0, 0, 0, 1, 1)),
        ([0, 0], VERY_FAR, (1, 1, 0, 0, 1, 0)),
        ([0, 0, 0], VERY_FAR, (0, 0, 0, 0, 0, 0)),  # sky between two surfaces
        ([], [1200, 1200, 1200], (0, 0, 0, 0, 0, 0)),  # 0.4 m
        ([2000, 2001], VERY_FAR, (2, 0, 0, 0, 2, 0)),  # a narrow surface between two edges
    ],
)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_each_edge_counts_once(between, beyond, expected, is_reversed):
    row = [*NEAR, *between, *beyond]
    edges = looked_at(EdgeStatistics(), row[::-1] if is_reversed else row)
    assert (edges.edges, edges.with_empty, edges.near, edges.near_mixed, edges.far, edges.far_mixed) == expected


def test_single_empty_firings_and_isolated_returns_are_counted():
    edges = looked_at(EdgeStatistics(), [1000, 1000, 0, 1001, 1001, 0, 0, 500, 0, 0, 700, 0, 1001])
    assert (edges.returns, edges.single, edges.isolated) == (7, 1, 2)
    assert looked_at(EdgeStatistics(), [1000, 1000, 0, 1400, 1400]).single == 0


def test_packets_with_a_pause_inside_are_left_out():
    stream = vlp16(100)
    stream.data["blocks"]["records"]["distance"] = 2000
    whole = gather(stream.datagrams(), name="x").edges.returns
    azimuth = stream.data["blocks"]["azimuth"].astype(int)
    azimuth[50, 7:] += 18_000
    azimuth[51:] += 18_000
    stream.data["blocks"]["azimuth"] = azimuth % 36_000
    stream.data["stamp"][51:] += 50_374
    assert whole - gather(stream.datagrams(), name="x").edges.returns == 24 * 16


def test_encoder_readings_have_lags_and_classes():
    generator = np.random.default_rng(8)
    stream = vlp16(1500)
    tick = generator.normal(0.0, 1.0, 1500 * 12 + 2)
    noise = tick[2:] + tick[:-2]  # of the increments: lag 2 of positive sign
    azimuth = np.cumsum(np.rint(40.0 + 2.0 * noise)).astype(int)
    stream.data["blocks"]["azimuth"] = (azimuth % 36_000).reshape(1500, 12)
    found = gather(stream.datagrams(), name="x").azimuth
    step = np.diff(azimuth) - np.diff(azimuth).mean()
    for lag in (1, 2, 3):
        assert found.scatter.autocorrelation(lag) == pytest.approx((step[lag:] * step[:-lag]).mean() / step.var(), abs=1e-3)
    assert found.scatter.autocorrelation(2) > 0.4
    shares = np.bincount(azimuth % 36_000 % 5, minlength=5) / len(azimuth)
    assert (found.of_class.min() / found.of_class.sum(), found.of_class.max() / found.of_class.sum()) == (
        pytest.approx(shares.min()),
        pytest.approx(shares.max()),
    )


def test_bytes_of_split_pairs_are_those_of_the_nearer_and_the_farther_return():
    stream = vlp16(100, dual=True)
    records = stream.data["blocks"]["records"]
    even, odd = records[:, ::2], records[:, 1::2]
    even["distance"], odd["distance"] = 2000, 1000
    even["reflectivity"], odd["reflectivity"] = 8, 3
    even["distance"][:10], odd["distance"][:10] = 1000, 2000  # the wrong way round
    even["reflectivity"][:10], odd["reflectivity"][:10] = 4, 9
    dual = gather(stream.datagrams(), name="x").dual
    assert dual.near_bytes.to_json()["values"] == [3, 4]
    assert dual.far_bytes.to_json()["values"] == [8, 9]
    assert dual.near_bytes.counts[4] == dual.far_bytes.counts[9] == 10 * 6 * 32


def test_kinds_of_empty_bytes_are_those_that_are_not_rare():
    stream = vlp16(100)
    records = stream.data["blocks"]["records"]
    records["distance"] = 0
    records["reflectivity"] = np.tile(BASELINE, 2)
    assert gather(stream.datagrams(), name="x").returns.byte_kinds == 1.0
    records["reflectivity"][:20] = np.tile(2 * BASELINE, 2)
    records["reflectivity"][20, 0] = 255  # two firings of each laser in 2400
    assert gather(stream.datagrams(), name="x").returns.byte_kinds == 2.0
