"""Counts by cell and distance: bins, slots, the hash table behind them, and an order that does not know how it came about."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.compilation.jit import kernel
from hilsim.read.background.table import BEST, BINS, COUNT, KEY, bin_of, bin_starts, clear, count_return, empty_table, grown, has_room, in_order
from hilsim.world.scene.background import MAX_MM
from tests.unit.background.backgrounds import beyond_mm


@kernel
def count_all(table, cell, distance_mm, intensity, first, used):
    slots, _, spill = table
    for index in range(first, cell.size):
        if not has_room(spill, used[0], 1):
            return index
        used[0] += count_return(slots, spill, cell[index], distance_mm[index], intensity[index])
    return cell.size


def counted(returns, cells=3, spill=4):
    table = empty_table(cells, spill)
    columns = np.array(returns, dtype=np.int64).reshape(-1, 3).T
    used, at = np.zeros(1, np.int64), 0
    while (at := count_all(table, *np.ascontiguousarray(columns), at, used)) < columns.shape[1]:
        table = grown(table)
    return in_order(table)


def by_hand(returns):
    rows = {}
    for cell, far_mm, intensity in returns:
        distance_mm = min(far_mm, MAX_MM)
        key = cell * BINS + bin_of(distance_mm)
        best, count, beyond = rows.get(key, (0, 0, 0))
        rows[key] = max(best, distance_mm * 1024 + intensity), count + 1, beyond + beyond_mm(distance_mm)
    return [[key, *rows[key]] for key in sorted(rows)]


def test_bins_rise_with_distance_without_a_gap_and_are_a_128th_wide_at_most():
    distances = np.arange(MAX_MM + 1)
    bins = np.array([bin_of(int(distance)) for distance in (*range(5000), *range(99_000, 101_000), MAX_MM)])
    assert bins[:256].tolist() == list(range(256))
    assert set(np.diff(bins[:5000])) == {0, 1}
    assert bin_of(MAX_MM) < BINS
    for distance in (300, 10_000, 100_000, 1_000_000):
        near = distances[max(distance - 10_000, 0) : distance + 10_000]
        width = sum(bin_of(int(other)) == bin_of(distance) for other in near)
        assert width <= distance / 128
    assert bin_of(10_000) == bin_of(10_047)
    assert bin_of(10_047) != bin_of(10_048)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, MAX_MM + 500), st.integers(0, 255)), max_size=120), st.randoms())
def test_counts_are_those_made_by_hand_in_whatever_order(returns, random):
    expected = by_hand(returns)
    assert counted(returns).tolist() == expected
    random.shuffle(returns)
    assert counted(returns).tolist() == expected


def test_cells_with_more_bins_than_slots_spill_and_lose_nothing():
    returns = [(1, 1000 + 100 * number, number) for number in range(60)] * 2
    rows = counted(returns)
    assert len(rows) == 60
    assert (rows[:, COUNT] == 2).all()
    assert (rows[:, BEST] >> 10).tolist() == [1000 + 100 * number for number in range(60)]


def test_the_farthest_of_a_bin_is_kept_and_of_equal_ones_the_brightest():
    rows = counted([(0, 10_040, 5), (0, 10_047, 3), (0, 10_047, 9), (0, 10_001, 255)])
    assert rows.tolist() == [[bin_of(10_040), 10_047 * 1024 + 9, 4, 56 + 63 + 63 + 17]]  # beyond 9984


@pytest.mark.parametrize(("distance_mm", "returns"), [(131_071, 10_000), (16_384, 10_000), (MAX_MM, 700)])
def test_a_slot_that_is_full_goes_on_without_losing_a_return(distance_mm, returns):
    # counts of 12 bits and sums of 20: either is full many times over
    rows = counted([(2, distance_mm, 7)] * returns + [(2, 400, 1)] * 3)
    assert rows.tolist() == [
        [2 * BINS + bin_of(400), 400 * 1024 + 1, 3, 3 * beyond_mm(400)],
        [2 * BINS + bin_of(distance_mm), distance_mm * 1024 + 7, returns, returns * beyond_mm(distance_mm)],
    ]


def test_firings_without_a_return_come_first_in_their_cell():
    table = empty_table(3)
    table.empty[1] = 7
    columns = np.array([[1, 900, 1], [0, 900, 1], [2, 900, 1]], dtype=np.int64).T
    count_all(table, *np.ascontiguousarray(columns), 0, np.zeros(1, np.int64))
    rows = in_order(table)
    assert rows[:, KEY].tolist() == [bin_of(900), BINS, BINS + bin_of(900), 2 * BINS + bin_of(900)]
    assert rows[1].tolist() == [BINS, 0, 7, 0]


def test_a_cleared_table_is_an_empty_one():
    table = empty_table(2, 64)
    columns = np.array([[1, 1000 + 100 * number, 1] for number in range(20)], dtype=np.int64).T
    count_all(table, *np.ascontiguousarray(columns), 0, np.zeros(1, np.int64))
    table.empty[0] = 3
    clear(table)
    assert in_order(table).shape == (0, 4)


@pytest.mark.parametrize("spill", [4, 64, 4096])
def test_the_hash_tables_size_cannot_be_seen(spill):
    random = np.random.default_rng(3)
    returns = list(zip(random.integers(0, 3, 900), random.integers(1, 200_000, 900), random.integers(0, 255, 900), strict=True))
    assert counted(returns, spill=spill).tolist() == by_hand([tuple(map(int, entry)) for entry in returns])


def test_bins_begin_where_their_distances_are_beyond_nothing():
    distance_mm = np.unique(np.concatenate([np.arange(1, 5000), np.geomspace(5000, MAX_MM, 5000).astype(np.int64)]))
    start_mm = bin_starts(distance_mm)
    np.testing.assert_array_equal(start_mm, distance_mm - [beyond_mm(distance) for distance in distance_mm])
    assert [bin_of(int(start)) for start in start_mm[::97]] == [bin_of(int(distance)) for distance in distance_mm[::97]]
