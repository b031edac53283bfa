"""Boxes and triangles by hand."""

import numpy as np
import pytest

from hilsim.world.render.intersect import box_entry, plane_distance, reciprocal, triangle_distance

f = np.float32
ROW = np.uintp(0)
# A triangle in the plane x = 5: corners (5, 0, 0), (5, 2, 0), (5, 0, 2).
TRIANGLE = np.array([[5, 0, 0, 0, 2, 0, 0, 0, 2]], dtype=np.float32)


def shoot(origin, direction, triangle=TRIANGLE):
    return triangle_distance(triangle, ROW, *(f(part) for part in (*origin, *direction)))


def enter(low, high, origin, direction, limit=100.0):
    bounds = np.zeros((1, 16), dtype=np.float32)
    bounds[0, :6] = [*low, *high]
    return box_entry(bounds, ROW, 0, *(f(part) for part in origin), *(reciprocal(f(part)) for part in direction), f(limit))


def test_a_ray_hits_a_triangle_from_either_side():
    assert shoot((0, 0.5, 0.5), (1, 0, 0)) == 5.0
    assert shoot((7, 0.5, 0.5), (-1, 0, 0)) == 2.0


@pytest.mark.parametrize(
    ("origin", "direction"),
    [((0, 1.5, 1.5), (1, 0, 0)), ((0, -0.1, 0.5), (1, 0, 0)), ((0, 0.5, -0.1), (1, 0, 0)), ((6, 0.5, 0.5), (1, 0, 0)), ((5, -1, 0.5), (0, 1, 0))],
    ids=["beyond the long side", "left", "below", "behind", "edge-on"],
)
def test_a_ray_that_misses_a_triangle_gets_infinity(origin, direction):
    assert shoot(origin, direction) == np.inf


def test_edges_and_corners_belong_to_the_triangle():
    for y, z in ((0, 0), (2, 0), (0, 2), (1, 1), (0, 1)):
        assert shoot((0, y, z), (1, 0, 0)) == 5.0


def test_the_tolerance_at_an_edge_is_a_millionth_of_the_edge():
    assert shoot((0, -1e-6, 0.5), (1, 0, 0)) == 5.0
    assert shoot((0, -4e-6, 0.5), (1, 0, 0)) == np.inf


def test_a_triangle_without_area_is_never_hit():
    assert shoot((0, 0, 0), (1, 0, 0), np.array([[5, 0, 0, 0, 1, 0, 0, 2, 0]], dtype=np.float32)) == np.inf


def test_a_ray_enters_a_box_where_it_should():
    assert enter((2, -1, -1), (3, 1, 1), (0, 0, 0), (1, 0, 0)) == 2.0
    assert enter((2, -1, -1), (3, 1, 1), (5, 0, 0), (-1, 0, 0)) == 2.0


def test_a_ray_that_starts_in_a_box_enters_at_zero():
    assert enter((-1, -1, -1), (1, 1, 1), (0.5, 0, 0), (0, 0, 1)) == 0.0


def test_boxes_beside_behind_and_beyond_the_limit_are_missed():
    assert enter((2, 1, -1), (3, 2, 1), (0, 0, 0), (1, 0, 0)) == np.inf
    assert enter((2, -1, -1), (3, 1, 1), (5, 0, 0), (1, 0, 0)) == np.inf
    assert enter((2, -1, -1), (3, 1, 1), (0, 0, 0), (1, 0, 0), limit=1.9) == np.inf


def test_a_flat_box_is_hit():
    assert enter((-10, -10, 0), (10, 10, 0), (0, 0, 3), (0.6, 0, -0.8)) == pytest.approx(3.75)


def test_a_ray_along_an_axis_enters_a_box_it_runs_through_and_not_one_beside_it():
    assert enter((2, -1, -1e-6), (3, 1, 1e-6), (0, 0, 0), (1, 0, 0)) == 2.0
    assert enter((2, -1, 1e-6), (3, 1, 2e-6), (0, 0, 0), (1, 0, 0)) == np.inf


def test_reciprocals_are_finite_also_of_zero():
    assert reciprocal(f(0.5)) == 2.0
    assert reciprocal(f(-4.0)) == -0.25
    for component in (0.0, -0.0, 1e-30, -1e-30):
        assert np.isfinite(reciprocal(f(component)))


def test_plane_distance_is_exact_in_float64():
    assert plane_distance(TRIANGLE, ROW, 1e-9, 0.5, 0.5, 1.0, 0.0, 0.0) == 5.0 - 1e-9
