"""A map that grows: changed blocks only, bounded memory, files."""

import numpy as np
import pytest

from hilsim.api.points import DECODED_DTYPE
from hilsim.errors import ConfigError
from hilsim.read.scans.scan import Scan
from hilsim.show.view.feed.growing_map import GrowingMap, placed

QUARTER = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
"""A quarter turn about z."""


def scan(positions_m, position_m=(0.0, 0.0, 0.0), wxyz=(1.0, 0.0, 0.0, 0.0)):
    points = np.zeros(len(positions_m), DECODED_DTYPE)
    points["x"], points["y"], points["z"] = np.reshape(np.asarray(positions_m, np.float32), (-1, 3)).T
    return Scan(sensor="roof", number=0, stamp_ns=0, points=points, position_m=position_m, wxyz=wxyz)


def test_points_are_placed_by_the_pose_of_their_scan():
    np.testing.assert_allclose(placed(scan([(1.0, 2.0, 3.0)], (10.0, 20.0, 30.0), QUARTER)), [(8.0, 21.0, 33.0)], atol=1e-6)


def test_only_changed_blocks_are_given():
    growing = GrowingMap(cell_m=0.5, memory_mb=10.0)  # a block is 8 m
    growing.add(scan([(1.0, 1.0, 1.0), (1.1, 1.1, 1.1), (20.0, 1.0, 1.0), (-1.0, -1.0, -1.0)]))
    first = growing.changed_since()
    assert [block.corner_m for block in first.blocks] == [(0.0, 0.0, 0.0), (16.0, 0.0, 0.0), (-8.0, -8.0, -8.0)]
    assert [block.returns.tolist() for block in first.blocks] == [[2], [1], [1]]
    np.testing.assert_allclose(first.blocks[0].corner_m + first.blocks[0].position_m, [(1.05, 1.05, 1.05)], rtol=1e-6)
    assert first.blocks[0].cell.tolist() == [(2 * 16 + 2) * 16 + 2]
    assert growing.changed_since(first.number).blocks == []
    growing.add(scan([(21.0, 1.0, 1.0), (np.nan, 0.0, 0.0)]))
    second = growing.changed_since(first.number)
    assert [(block.number, sorted(block.returns.tolist())) for block in second.blocks] == [(1, [1, 1])]
    assert growing.changed_since(first.number, min_count=2).blocks[0].cell.size == 0
    assert growing.left_out == 1


def test_changes_are_given_in_parts():
    growing = GrowingMap(cell_m=0.5, memory_mb=10.0)
    growing.add(scan([(8.0 * number + 1.0, 0.0, 0.0) for number in range(10)]))
    seen, number = [], 0
    for _ in range(4):
        part = growing.changed_since(number, most=3)
        seen += [block.number for block in part.blocks]
        number = part.number
    assert seen == list(range(10))
    assert growing.changed_since(number).blocks == []


def test_memory_is_bounded_and_a_map_is_begun_anew():
    growing = GrowingMap(cell_m=0.5, memory_mb=1.0)
    growing.add(scan([(8.0 * number, 0.0, 0.0) for number in range(100)]))
    before = growing.changed_since()
    assert growing.blocks == 15
    assert growing.left_out == 85
    growing.clear()
    growing.add(scan([(1.0, 1.0, 1.0)]))
    after = growing.changed_since(before.number)
    assert (after.is_new, len(after.blocks), growing.left_out) == (True, 1, 0)
    assert not growing.changed_since(after.number).is_new


def test_blocks_are_those_of_the_whole_map(tmp_path):
    growing = GrowingMap(cell_m=0.2, memory_mb=40.0)
    points = np.random.default_rng(4).uniform(-10.0, 10.0, (5000, 3))
    growing.add(scan(points))
    blocks = growing.changed_since().blocks
    growing.write(tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as written:
        assert written["count"].sum() == 5000 == sum(int(block.returns.sum()) for block in blocks)
        np.testing.assert_allclose(np.concatenate([block.corner_m + block.position_m for block in blocks]), written["position_m"], atol=1e-5)
    growing.write(str(tmp_path / "map.ply"))
    assert (tmp_path / "map.ply").read_bytes().startswith(b"ply\n")
    with pytest.raises(ConfigError, match=r"output must end in \.ply"):
        growing.write(tmp_path / "map.txt")
