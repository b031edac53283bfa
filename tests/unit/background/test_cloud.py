"""Maps as points: a cell's centre by hand, in the sensor frame and in the world; PLY read by trimesh."""

import math

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st

from hilsim.errors import AssetError
from hilsim.read.background.files.cloud import cell_directions, map_points_m, world_points_m, write_ply
from hilsim.world.geometry.overlay_frames import ground_only_pose
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.background import AzimuthGrid, ImageGrid, azimuth_column, image_cell
from tests.unit.background.backgrounds import IMAGE, background, maps, told

QUARTERS = AzimuthGrid(columns=4, elevation_deg=(-30.0, 0.0))
SQUARE = ImageGrid(columns=3, rows=2, x_min=-1.0, x_max=1.0, z_min=-0.5, z_max=0.5)


def test_cells_of_a_turn_are_seen_clockwise_from_forward():
    points = map_points_m(background(QUARTERS, distance_mm=np.full((2, 4), 2000), flags=np.full((2, 4), 3)))
    half = math.sqrt(0.5)
    level = [(half, half, 0), (half, -half, 0), (-half, -half, 0), (-half, half, 0)]
    np.testing.assert_allclose(points[4:], np.multiply(2.0, level), atol=1e-15)
    np.testing.assert_allclose(points[:4, 2], -1.0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 2.0, rtol=1e-15)


def test_cells_of_an_image_lie_at_their_image_coordinates():
    points = map_points_m(background(SQUARE, distance_mm=np.full((2, 3), 3000), flags=np.full((2, 3), 3)))
    np.testing.assert_allclose(points[:, 0] / points[:, 1], [-0.5, 0.5, 1.0] * 2)
    np.testing.assert_allclose(points[:, 2] / points[:, 1], [0.0] * 3 + [0.5] * 3, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 3.0, rtol=1e-15)


@given(st.integers(1, 65_536), st.data())
def test_the_centre_of_a_column_lies_in_that_column(columns, data):
    column = data.draw(st.integers(0, columns - 1))
    ((x, y, _),) = cell_directions(AzimuthGrid(columns=columns, elevation_deg=(0.0,)), np.array([0]), np.array([column]))
    assert azimuth_column(columns, math.degrees(math.atan2(x, y)) * 100.0) == column


@given(st.integers(2, 65_536), st.data())
def test_the_centre_of_an_image_cell_lies_in_that_cell(columns, data):
    column = data.draw(st.integers(0, columns - 2))
    grid = ImageGrid(columns=columns, rows=2, x_min=-0.6, x_max=0.7, z_min=-0.2, z_max=0.3)
    ((x, y, z),) = cell_directions(grid, np.array([0]), np.array([column]))
    assert image_cell(columns, grid.x_min, grid.x_max, x / y) == column
    assert image_cell(2, grid.z_min, grid.z_max, z / y) == 0


def test_only_used_cells_are_points_row_by_row():
    seen = background(QUARTERS, distance_mm=[[5000, 100, 200_000, 6000], [7000, 8000, 0, 9000]], flags=[[3, 3, 3, 3], [3, 0, 3, 3]])
    np.testing.assert_allclose(np.linalg.norm(map_points_m(seen), axis=1), [5.0, 6.0, 7.0, 9.0])


def test_points_in_the_world_are_where_the_pose_takes_them():
    seen = told()
    expected = [seen.pose.transform(tuple(point)) for point in map_points_m(seen).tolist()]
    np.testing.assert_allclose(world_points_m(seen), expected, rtol=1e-15)


def test_a_cell_ahead_of_a_dipped_sensor_lies_on_the_ground():
    ahead = background(ImageGrid(columns=2, rows=2, x_min=-1, x_max=1, z_min=-1, z_max=1), distance_mm=[[3000, 0], [0, 0]])
    ((x, y, z),) = world_points_m(background(ahead.grid, distance_mm=ahead.distance_mm, flags=[[3, 0], [0, 0]], pose=ground_only_pose(1.5, 30.0)))
    assert (x, y, z) == pytest.approx((0.0, 3.0 * math.cos(math.radians(30.0)), 0.0), abs=1e-12)


def test_points_in_the_world_need_a_pose():
    with pytest.raises(ValueError, match="pose must be known for points in the world, got None"):
        world_points_m(background())


@pytest.mark.parametrize("pose", [None, Pose(position_m=(691_000.0, 5_334_000.0, 510.0))])
def test_trimesh_reads_points_and_intensity_of_a_ply(tmp_path, pose):
    seen = background(IMAGE, model='A "B"\nend_header', pose=pose)
    write_ply(seen, tmp_path / "a.ply")
    cloud = trimesh.load(tmp_path / "a.ply")
    assert isinstance(cloud, trimesh.PointCloud)
    np.testing.assert_array_equal(cloud.vertices, map_points_m(seen) if pose is None else world_points_m(seen))
    vertex = cloud.metadata["_ply_raw"]["vertex"]["data"]
    np.testing.assert_array_equal(vertex["intensity"].reshape(-1), seen.intensity[seen.used])


@pytest.mark.parametrize(
    ("pose", "frame"), [(None, "sensor: x right, y forward, z up"), (Pose(), "world: x east, y north, z up")], ids=["sensor", "world"]
)
def test_the_header_of_a_ply_says_what_it_holds(tmp_path, pose, frame):
    write_ply(background(IMAGE, model="VLP-16", pose=pose), tmp_path / "a.ply")
    header, _, points = (tmp_path / "a.ply").read_bytes().partition(b"end_header\n")
    assert header.decode("ascii").splitlines() == [
        "ply",
        "format binary_little_endian 1.0",
        'comment hilsim background of "VLP-16"',
        f"comment frame {frame}; metres",
        "element vertex 14",
        "property double x",
        "property double y",
        "property double z",
        "property ushort intensity",
    ]
    assert len(points) == 14 * 26


@given(seen=maps())
def test_any_map_has_a_point_at_its_distance_for_each_used_cell(seen):
    points = map_points_m(seen)
    assert points.shape == (np.count_nonzero(seen.used), 3)
    assert points.dtype == np.float64


def test_a_ply_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(AssetError, match=r"a\.ply: cannot be written: No such file or directory"):
        write_ply(told(), tmp_path / "none" / "a.ply")
