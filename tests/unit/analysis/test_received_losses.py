"""Firings without a return, counted by hand on small streams."""

import numpy as np
import pytest

from tests.received_losses import drop_outs, empty_bytes, find_edges

UNIT_M = 0.002
BORDERS = (0.0, 10.0, 100.0)


def column(*values):
    """One laser's firings in a row."""
    return np.array(values, np.int64)[:, None]


def test_a_single_empty_firing_of_an_even_surface_is_lost():
    found = drop_outs(column(1000, 1001, 0, 1002, 1003, 1004, 1005), column(40, 40, 9, 41, 41, 41, 41), UNIT_M, BORDERS)
    assert (found.lost.tolist(), found.places.tolist()) == ([0, 1], [0, 1])  # the windows beside it have the empty firing among their four


@pytest.mark.parametrize(
    ("distance", "reflectivity"),
    [
        ((1000, 1001, 0, 1030, 1031), (40,) * 5),  # a step of 58 mm
        ((1000, 1001, 0, 1002, 1003), (20, 20, 9, 40, 40)),  # another surface
        ((1000, 1001, -1, 1002, 1003), (40,) * 5),  # two parts of a stream
        ((1000, 0, 0, 1002, 1003), (40,) * 5),
    ],
)
def test_other_empty_firings_are_at_no_place(distance, reflectivity):
    assert not drop_outs(column(*distance), column(*reflectivity), UNIT_M, BORDERS).places.any()


def test_places_are_counted_by_the_mean_byte_around_them():
    distance = np.full((9, 2), 500)
    found = drop_outs(distance, np.full((9, 2), [4, 60]), UNIT_M, BORDERS)
    assert (found.lost.tolist(), found.places.tolist()) == ([0, 0], [5, 5])


def test_edges_have_their_side_their_empty_firings_and_their_mixed_points():
    near, far = [1000, 1001, 1000], [2000, 2001, 2000]  # 2 and 4 m
    leaving = find_edges(column(*near, 0, 1500, *far), UNIT_M)
    assert (leaving.near_m.tolist(), leaving.far_m.tolist()) == ([2.0], [4.0])
    assert (leaving.is_approach.tolist(), leaving.empty.tolist(), leaving.is_mixed.tolist()) == ([False], [1], [True])
    np.testing.assert_allclose(leaving.parallax_per_m, 0.25)
    approach = find_edges(column(*far, 0, 0, *near), UNIT_M)
    assert (approach.is_approach.tolist(), approach.empty.tolist(), approach.is_mixed.tolist()) == ([True], [2], [False])
    for between in ((-1,), (0,) * 5):  # a pause, and sky
        assert find_edges(column(*near, *between, *far), UNIT_M).empty.size == 0


def test_bytes_of_empty_firings_are_counted_between_returns_and_away_from_them():
    distance = column(1000, 0, 0, 1000, 0, 0, 0, 0, 0)
    found = empty_bytes(distance, column(40, 3, 6, 40, 6, 3, 3, 3, 7), np.array([3]))
    assert found == (2, 1, 2, 1)
