"""Partial maps merge in any order and partition; the surface is what the rule says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.read.background.partial import CaptureShare, PartialMap, merge, nothing
from hilsim.read.background.surface import SurfaceRule, form_map
from hilsim.read.background.table import BINS, bin_of
from hilsim.world.scene.background import INVALID, VALID, AzimuthGrid
from tests.unit.background.backgrounds import beyond_mm

GRID = AzimuthGrid(columns=3, elevation_deg=(-1.0, 1.0))


def partial_of(returns, *, empty=(), grid=GRID):
    """A partial map of ``(column, row, distance_mm, intensity)`` and of ``(column, row)`` without a return."""
    rows = {}
    for column, row, distance_mm, intensity in returns:
        key = (column * grid.rows + row) * BINS + bin_of(distance_mm)
        best, count, beyond = rows.get(key, (0, 0, 0))
        rows[key] = max(best, distance_mm * 1024 + intensity), count + 1, beyond + beyond_mm(distance_mm)
    for column, row in empty:
        key = (column * grid.rows + row) * BINS
        rows[key] = 0, rows.get(key, (0, 0))[1] + 1, 0
    table = np.array([[key, *rows[key]] for key in sorted(rows)], dtype=np.int64).reshape(-1, 4)
    share = CaptureShare(name=f"{len(returns)}.pcap", packets=1, first_ns=0, last_ns=1)
    return PartialMap(grid=grid, rows=table, returns=len(returns), empty=len(empty), captures=(share,))


RETURNS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.one_of(st.integers(1, 300_000), st.integers(9_990, 10_010)), st.integers(0, 255)), max_size=40
)


@given(st.lists(RETURNS, min_size=1, max_size=6), st.randoms())
def test_neither_order_nor_partition_of_a_merge_shows(parts, random):
    partials = [partial_of(returns) for returns in parts]
    whole = merge(partials)
    shuffled = partials.copy()
    random.shuffle(shuffled)
    assert merge(shuffled).is_same(whole)
    cut = random.randrange(len(partials) + 1)
    pieces = [merge(group) for group in (shuffled[:cut], shuffled[cut:]) if group]
    assert merge(pieces).is_same(whole)
    assert merge([whole, nothing(GRID)]).is_same(whole)
    at_once = partial_of([entry for returns in parts for entry in returns])
    np.testing.assert_array_equal(whole.rows, at_once.rows)
    assert whole.returns == at_once.returns


def test_merging_nothing_or_different_grids_is_an_error():
    with pytest.raises(ValueError, match="partials must be 1 or more, got none"):
        merge([])
    with pytest.raises(ValueError, match="partials must have one grid, got several"):
        merge([nothing(GRID), nothing(AzimuthGrid(columns=4, elevation_deg=(-1.0, 1.0)))])


def surface(distances, rule, **more):
    formed = form_map(partial_of([(1, 0, distance, 7) for distance in distances], **more), rule)
    return int(formed.distance_mm[0, 1]), formed


def test_a_wall_behind_passing_cars_is_the_surface_and_one_stray_beyond_is_not():
    wall = [20_000] * 60
    cars = [6_000, 7_000, 8_000] * 12
    distance_mm, formed = surface([*cars, *wall, 90_000], SurfaceRule())
    assert distance_mm == 20_000
    assert formed.hit_count[0, 1] == 97
    assert formed.confidence[0, 1] == np.float32(60 / 97)
    assert surface([*cars, *wall, 90_000], SurfaceRule(kind="max"))[0] == 90_000


def test_a_share_of_strays_up_to_what_the_quantile_leaves_is_passed_over():
    for strays, expected in ((5, 20_000), (6, 90_000)):
        assert surface([20_000] * (100 - strays) + [90_000] * strays, SurfaceRule(quantile=0.95))[0] == expected


@given(st.lists(st.integers(200, 200_000), min_size=2, max_size=60), st.sampled_from([0.5, 0.75, 0.9, 0.95, 0.99]))
def test_the_farthest_was_measured_and_is_beyond_the_exact_quantile_by_less_than_a_bin(distances, quantile):
    value, _ = surface(distances, SurfaceRule(quantile=quantile, distance="farthest"))
    ordered = sorted(distances)
    exact = ordered[len(ordered) - 1 - int(len(ordered) * round((1 - quantile) * 1e6) // 1_000_000)]
    assert value in ordered
    assert exact <= value <= exact + exact / 128


@pytest.mark.parametrize("wall_mm", [700, 2_000, 9_990, 20_000, 20_480, 65_536, 100_000])
@pytest.mark.parametrize("noise_mm", [5, 29])
def test_the_mean_of_a_noisy_wall_is_the_wall_wherever_it_lies_in_its_bins(wall_mm, noise_mm):
    random = np.random.default_rng(wall_mm + noise_mm)
    noisy = np.rint(random.normal(wall_mm, noise_mm, 4000)).astype(int)
    passers = random.integers(300, wall_mm - 250, 2000)
    mean_mm, formed = surface([*noisy, *passers], SurfaceRule())
    assert abs(mean_mm - wall_mm) <= 3
    assert formed.distance_mm[0, 1] == mean_mm
    assert surface([*noisy, *passers], SurfaceRule(distance="farthest"))[0] > wall_mm + noise_mm


def test_returns_in_front_of_the_wall_by_more_than_noise_are_not_averaged_with_it():
    for gap_mm in (160, 400, 5000):
        assert surface([8_000] * 30 + [8_000 - gap_mm] * 70, SurfaceRule())[0] == 8_000
    assert surface([8_000] * 30 + [7_900] * 70, SurfaceRule())[0] == 7_930  # it cannot be distinguished from roughness


def test_the_mean_never_leaves_the_surface_that_was_found():
    slope = list(range(10_000, 20_000, 10))
    mean_mm, _ = surface(slope, SurfaceRule())
    assert 19_500 - 160 - 128 <= mean_mm <= 19_500 + 160


def test_intensities_of_bins_count_as_often_as_they_have_returns():
    partial = partial_of([(1, 0, 10_000, 10)] * 3 + [(1, 0, 10_060, 50)])
    formed = form_map(partial, SurfaceRule())
    assert (formed.distance_mm[0, 1], formed.intensity[0, 1]) == (10_015, 20)
    farthest = form_map(partial, SurfaceRule(distance="farthest"))
    assert (farthest.distance_mm[0, 1], farthest.intensity[0, 1]) == (10_060, 50)


def test_few_hits_and_cells_that_mostly_see_sky_hold_no_surface():
    assert surface([9000], SurfaceRule())[1].flags[0, 1] == INVALID
    assert surface([9000], SurfaceRule(min_hits=1))[1].flags[0, 1] == VALID
    sky = [(1, 0)] * 8
    _, formed = surface([9000, 9001], SurfaceRule(), empty=sky)
    assert (formed.flags[0, 1], formed.distance_mm[0, 1], formed.hit_count[0, 1]) == (INVALID, 0, 2)
    assert surface([9000, 9002], SurfaceRule(), empty=sky[:6])[0] == 9001
    assert surface([9000, 9002], SurfaceRule(min_share=0.2), empty=sky)[0] == 9001


def test_a_cell_is_where_its_row_and_column_say():
    formed = form_map(partial_of([(2, 0, 5000, 9), (2, 0, 5001, 3), (0, 1, 700, 1), (0, 1, 700, 4)]), SurfaceRule(kind="max", distance="farthest"))
    assert np.argwhere(formed.used).tolist() == [[0, 2], [1, 0]]
    assert (formed.distance_mm[0, 2], formed.intensity[0, 2]) == (5001, 3)
    assert (formed.distance_mm[1, 0], formed.intensity[1, 0]) == (700, 4)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"kind": "mean"}, 'kind must be "quantile" or "max", got "mean"'),
        ({"quantile": 1.0}, "quantile must be 0.5 to less than 1, got 1.0"),
        ({"distance": "median"}, 'distance must be "mean" or "farthest", got "median"'),
        ({"min_hits": 0}, "min_hits must be 1 to 1000000, got 0"),
        ({"min_share": 1.5}, "min_share must be 0 to 1, got 1.5"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(setting, said):
    with pytest.raises(ValueError, match=said):
        SurfaceRule(**setting)
