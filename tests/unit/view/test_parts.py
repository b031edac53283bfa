"""Points in the world, and the stores of several scans."""

import numpy as np
import pytest

from hilsim.show.view.page.parts import History, VoxelMap, joined, placed, rotation, thinned
from tests.unit.view.feeds import points, scan

NO_ORIGIN = np.zeros(3)
TENTH_NS = 100_000_000


def _part(number, count=1000):
    return placed(scan(number, count), 0, NO_ORIGIN)


def test_points_are_turned_and_shifted_by_the_pose_of_the_sensor():
    made = points(1)
    made["x"], made["y"], made["z"] = 1.0, 2.0, 3.0
    quarter_left = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
    part = placed(scan(0, 1, points=made, position_m=(10.0, 20.0, 30.0), wxyz=quarter_left, instance=None, label=None), 3, np.array([10.0, 0.0, 0.0]))
    np.testing.assert_allclose(part.world, [[-2.0, 21.0, 33.0]], atol=1e-5)
    assert (part.instance[0], part.label[0], part.sensor[0]) == (-1, -1, 3)


def test_the_origin_of_the_page_leaves_millimetres_in_float32_far_from_the_origin_of_the_world():
    far = (4_000_000.123, 500_000.5, 0.0)
    made = scan(0, 10, position_m=far)
    part = placed(made, 0, np.round(np.array(far)))
    np.testing.assert_allclose(part.world[:, 0], made.points["x"] + 0.123, atol=1e-4)


def test_rotation_takes_a_quaternion_of_any_length():
    np.testing.assert_allclose(rotation((2.0, 0.0, 0.0, 2.0)) @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    "changes",
    [{"points": np.zeros(3)}, {"points": points(6).reshape(2, 3)}, {"instance": np.zeros(3, np.int32)}, {"label": np.zeros((1000, 1), np.int16)}],
)
def test_a_scan_of_arrays_that_do_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match="of a scan must"):
        placed(scan(0, 1000, **changes), 0, NO_ORIGIN)


def test_points_that_are_not_finite_are_left_out():
    made = points(10)
    made["x"][3], made["z"][5] = np.nan, np.inf
    part = placed(scan(0, 10, points=made), 0, NO_ORIGIN)
    assert part.size == 8
    assert np.isfinite(part.world).all()


def test_no_parts_are_a_part_without_points():
    assert joined([]).size == 0
    assert joined([]).world.shape == (0, 3)


@pytest.mark.parametrize(("count", "shown"), [(10, 10), (100, 100), (101, 51), (1000, 100)])
def test_thinning_keeps_every_kth_point(count, shown):
    part = thinned(_part(0, count), 100)
    assert part.size == shown
    assert len({part.world.shape[0], part.points.size, part.instance.size, part.label.size, part.sensor.size, part.begin_ns.size}) == 1


def test_the_history_has_the_scans_of_the_last_seconds():
    history = History()
    for number in range(40):
        history.add(_part(number, 100), 10 * TENTH_NS)
    assert [(part.stamp_ns - history.parts()[-1].stamp_ns) // TENTH_NS for part in history.parts()] == list(range(-10, 1))
    assert history.total == 1100


def test_the_history_is_bounded_and_thins_all_scans_alike():
    history = History(most=1000)
    for number in range(50):
        history.add(_part(number, 400), 1000 * TENTH_NS)
        assert sum(part.size for part in history.parts()) <= 2000
    sizes = {part.size for part in history.parts()}
    assert history.total == 50 * 400
    assert max(sizes) <= 2 * min(sizes)


def test_the_history_of_more_scans_than_points_forgets_the_oldest():
    history = History(most=10)
    for number in range(50):
        history.add(_part(number, 3), 1000 * TENTH_NS)
    assert sum(part.size for part in history.parts()) <= 20


def test_the_history_shows_whole_scans_again_after_dense_ones():
    history = History(most=1000)
    for number in range(20):
        history.add(_part(number, 400), 100 * TENTH_NS)
    for number in range(200, 206):
        history.add(_part(number, 100), 5 * TENTH_NS)
    assert history.parts()[-1].size == 100


def test_the_map_has_one_point_a_cell():
    cells = VoxelMap()
    for _ in range(3):
        cells.add(_part(0))
    keys = np.floor(joined(cells.parts()).world / np.float32(cells.cell_m)).astype(np.int64)
    assert len(np.unique(keys, axis=0)) == len(keys)
    assert cells.total == 3000


def test_the_map_adds_what_later_scans_see():
    cells = VoxelMap()
    cells.add(_part(0))
    before = joined(cells.parts()).size
    cells.add(_part(9))
    assert joined(cells.parts()).size > before


def test_the_cells_of_a_map_with_too_many_points_grow():
    cells = VoxelMap(most=500)
    for number in range(80):
        cells.add(_part(number, 300))
    whole = joined(cells.parts())
    assert 100 < whole.size <= 500
    assert cells.cell_m > 0.05
    keys = np.floor(whole.world / np.float32(cells.cell_m)).astype(np.int64)
    assert len(np.unique(keys, axis=0)) == len(keys)
