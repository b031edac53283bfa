"""Maps of returns, against NumPy's counts and means of the same cells."""

import json

import laspy
import numpy as np
import pytest
import trimesh

import hilsim
from hilsim.errors import ConfigError
from hilsim.read.analysis.map_files import write_map
from hilsim.read.analysis.returns_map import BLOCK_CELLS, Cells, ReturnsMap
from tests.commands import run as command
from tests.compiled import compiled_only
from tests.unit.replays.streams import Recording

CELL_M = 0.25


def by_cell(points_m, cell_m):
    """Count and mean of the points in each cell, in the order of the cells."""
    index, cell_of, count = np.unique(np.floor(points_m / cell_m), axis=0, return_inverse=True, return_counts=True)
    mean = np.stack([np.bincount(cell_of.reshape(-1), weights=column) for column in points_m.T], axis=1) / count[:, None]
    return index, count, mean


def in_order(cells, cell_m):
    # A mean of positions at a cell's very edge may be rounded over it; the tests' positions are elsewhere.
    index = np.floor(cells.position_m / cell_m)
    order = np.lexsort(index.T[::-1])
    return index[order], cells.returns[order], cells.position_m[order]


def random_points(count, reach_m=30.0, seed=3):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-reach_m, reach_m, (40, 3))
    return centres[rng.integers(0, 40, count)] + rng.normal(scale=0.4, size=(count, 3))


@pytest.mark.parametrize("parts", [1, 7])
def test_cells_hold_the_number_and_the_mean_of_their_returns(parts):
    points = random_points(1_000)
    grown = ReturnsMap(CELL_M, memory_mb=50.0)
    for part in np.array_split(points, parts):
        grown.add(part)
    index, count, mean = in_order(grown.cells(), CELL_M)
    expected_index, expected_count, expected_mean = by_cell(points, CELL_M)
    assert np.array_equal(index, expected_index)
    assert np.array_equal(count, expected_count)
    np.testing.assert_allclose(mean, expected_mean, atol=2e-6)
    assert grown.left_out == 0
    assert grown.blocks == len(np.unique(expected_index // BLOCK_CELLS, axis=0))


@pytest.mark.extended
@compiled_only
def test_a_million_returns_far_from_the_origin_keep_their_precision():
    far = np.array([431_500.0, 5_410_200.0, 280.0])
    points = random_points(1_000_000, reach_m=15.0) + far
    grown = ReturnsMap(CELL_M, memory_mb=200.0)
    grown.add(points)
    _, count, mean = in_order(grown.cells(min_count=20), CELL_M)
    _, expected_count, expected_mean = by_cell(points, CELL_M)
    is_dense = expected_count >= 20
    assert np.array_equal(count, expected_count[is_dense])
    np.testing.assert_allclose(mean, expected_mean[is_dense], atol=1e-5)


def test_memory_is_bounded_and_what_does_not_fit_is_counted():
    grown = ReturnsMap(CELL_M, memory_mb=1.0)
    edge_m = CELL_M * BLOCK_CELLS
    centres = (np.stack(np.meshgrid(*[np.arange(4)] * 3), axis=-1).reshape(-1, 3) + 0.5) * edge_m
    grown.add(centres)
    assert grown.blocks == 15
    assert grown.left_out == 64 - 15
    grown.add(centres[:15])  # known blocks go on
    assert grown.left_out == 64 - 15
    assert grown.cells().returns.tolist() == [2] * 15


def test_positions_that_are_none_are_left_out():
    grown = ReturnsMap(CELL_M, memory_mb=2.0)
    grown.add(np.array([[np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0], [0.0, -1e12, 0.0], [-0.1, -0.1, -0.1]]))
    assert grown.left_out == grown.too_far == 3
    np.testing.assert_allclose(grown.cells().position_m, [[-0.1, -0.1, -0.1]], atol=1e-6)


@pytest.mark.parametrize(("arguments", "fault"), [((0.0, 10.0), "cell_m must be 0.001 to 100"), ((0.2, 0.5), "memory_mb must be 1 to 1000000")])
def test_a_grid_that_cannot_be_is_refused(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        ReturnsMap(*arguments)


def test_files_are_read_by_others(tmp_path):
    cells = Cells(np.array([[1.5, -2.25, 0.125], [400_000.0, -2.0, 30.0001]]), np.array([3, 70_000]))
    near = Cells(cells.position_m[:1], cells.returns[:1])
    write_map(tmp_path / "map.ply", cells, CELL_M)
    cloud = trimesh.load(tmp_path / "map.ply")
    np.testing.assert_allclose(cloud.vertices, cells.position_m)
    write_map(tmp_path / "map.npz", cells, CELL_M)
    with np.load(tmp_path / "map.npz") as file:
        assert np.array_equal(file["position_m"], cells.position_m)
        assert file["count"].tolist() == [3, 70_000]
        assert file["cell_m"] == CELL_M
    write_map(tmp_path / "map.las", near, CELL_M)
    read = laspy.read(tmp_path / "map.las")
    np.testing.assert_allclose(read.xyz, near.position_m, atol=1e-4)
    assert read["count"].tolist() == [3]
    with pytest.raises(ConfigError, match="extent of a LAS file must be at most 200000 m, got 399998"):
        write_map(tmp_path / "far.las", cells, CELL_M)
    with pytest.raises(ConfigError, match=r"output must end in .ply, .las or .npz, got"):
        write_map(tmp_path / "map.xyz", cells, CELL_M)
    write_map(tmp_path / "empty.las", Cells(np.zeros((0, 3)), np.zeros(0, np.int64)), CELL_M)
    assert len(laspy.read(tmp_path / "empty.las")) == 0


@compiled_only
def test_a_driving_rigs_walls_are_where_they_stand(tmp_path):
    rig = tmp_path / "rig.toml"
    (tmp_path / "way.csv").write_text("time_s,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n2,8,0,0,0.9689,0,0,0.2474\n")
    rig.write_text(
        'name = "drive"\n[[scene.box]]\nname = "wall"\nposition_m = [6.0, 12.0, 0.0]\nsize_m = [60.0, 1.0, 8.0]\nmaterial = "concrete"\n'
        '[platform]\nkind = "trajectory"\nfile = "way.csv"\n[[sensor]]\nname = "roof"\nprofile = "vlp16"\nmount_position_m = [0.5, 0.0, 1.0]\n'
        "mount_rotation_deg = [0.0, 10.0, 30.0]\n"
    )
    emulator = hilsim.Emulator(rig)
    points = emulator.world_points(emulator.points(0.0, 1.5))
    assert len(points) > 2_000
    assert abs(np.median(points[:, 1]) - 11.5) < 0.005
    assert np.abs(points[:, 1] - 11.5).max() < 0.3
    result = command("map", rig, "-o", tmp_path / "map.npz", "--duration-s", "1.5", "--json")
    facts = json.loads(result.stdout)
    assert facts["returns"] == len(points)
    with np.load(tmp_path / "map.npz") as file:
        index, count, mean = in_order(Cells(file["position_m"], file["count"]), 0.2)
    expected_index, expected_count, expected_mean = by_cell(points, 0.2)
    assert facts["cells"] == len(expected_count)
    assert np.array_equal(index, expected_index)
    assert np.array_equal(count, expected_count)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-5)


@compiled_only
def test_a_captures_returns_are_placed_by_a_file_of_poses(tmp_path):
    capture = Recording().add_turning(400).write(tmp_path / "still.pcap")
    points = hilsim.decode(capture)
    plain = np.stack([points["x"], points["y"], points["z"]], axis=1).astype(np.float64)
    (tmp_path / "way.csv").write_text("time_s,x,y,z,qw,qx,qy,qz\n0,100,0,0,1,0,0,0\n10,100,0,0,1,0,0,0\n")
    assert command("map", capture, "-o", tmp_path / "still.npz").returncode == 0
    assert command("map", capture, "-o", tmp_path / "there.npz", "--poses", tmp_path / "way.csv", "--position-m", "0", "0", "2").returncode == 0
    maps = []
    for name in ("still", "there"):
        with np.load(tmp_path / f"{name}.npz") as file:
            maps.append((file["position_m"], file["count"]))
    # The sensor's x points right, the body's x forward.
    np.testing.assert_allclose(np.average(maps[0][0], axis=0, weights=maps[0][1]), plain.mean(axis=0), atol=1e-3)
    moved = np.average(maps[1][0], axis=0, weights=maps[1][1]) - np.average(maps[0][0], axis=0, weights=maps[0][1])
    np.testing.assert_allclose(moved, [100.0, 0.0, 2.0], atol=2e-3)


def test_poses_that_end_before_the_capture_are_refused(tmp_path):
    capture = Recording().add_turning(400).write(tmp_path / "still.pcap")
    (tmp_path / "way.csv").write_text("time_s,x,y,z,qw,qx,qy,qz\n0,100,0,0,1,0,0,0\n0.3,100,0,0,1,0,0,0\n")
    result = command("map", capture, "-o", tmp_path / "map.npz", "--poses", tmp_path / "way.csv")
    assert result.returncode == 1
    assert "the poses must cover the packets' times, 0.000 to 0.5" in result.stderr
    assert "got poses from 0.000 to 0.300 s" in result.stderr


@compiled_only
def test_returns_that_are_too_far_away_are_named_apart_from_those_without_memory(tmp_path):
    capture = Recording().add_turning(4).write(tmp_path / "still.pcap")
    result = command("map", capture, "-o", tmp_path / "map.npz", "--position-m", "1e30", "0", "0")
    assert result.returncode == 0
    assert "returns were left out: they are too far away for cells of 0.2 m" in result.stderr
    assert "memory" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "fault"),
    [
        (("-o", "map.ply", "--position-m", "nan", "0", "0"), 2, "--position-m must be finite"),
        (("-o", "map.ply", "--rotation-deg", "0", "inf", "0"), 2, "--rotation-deg must be finite"),
        (("-o", "none/map.ply"), 1, "none/map.ply: the folder must exist"),
    ],
)
def test_places_and_files_that_cannot_be_are_refused(tmp_path, monkeypatch, arguments, code, fault):
    monkeypatch.chdir(tmp_path)
    result = command("map", Recording().add_turning(4).write(tmp_path / "still.pcap"), *arguments)
    assert result.returncode == code
    assert fault in result.stderr


def test_options_of_captures_are_refused_for_a_rig(tmp_path):
    result = command("map", "demo", "-o", tmp_path / "map.ply", "--position-m", "0", "0", "1")
    assert result.returncode == 2
    assert "are for captures: a rig knows where its sensors are" in result.stderr
