"""What has an inside, and which points are in it, against the distance to the shape's own mesh."""

import numpy as np
import pytest

from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from hilsim.world.sdf.reading import read_sdf
from hilsim.world.sdf.solids import containing, is_inside, reach_m
from tests.unit.gazebo.worlds import box, thing, world_text

POSE = "1 -2 3 0.4 -0.3 2.0"
SHAPES = {
    "box": box(1.0, 2.0, 3.0),
    "sphere": "<sphere><radius>1.5</radius></sphere>",
    "ellipsoid": "<ellipsoid><radii>0.5 1.0 2.0</radii></ellipsoid>",
    "cylinder": "<cylinder><radius>0.7</radius><length>2.5</length></cylinder>",
    "capsule": "<capsule><radius>0.6</radius><length>1.5</length></capsule>",
    "cone": "<cone><radius>0.9</radius><length>2.0</length></cone>",
}


def read(path, geometry):
    path.write_text(world_text(thing("one", geometry, POSE)))
    scene = read_sdf(path)
    return scene.collisions[0], sdf_objects(scene, BUILT_IN_MATERIALS)[0][0]


@pytest.mark.parametrize("kind", SHAPES)
def test_a_point_is_inside_where_its_winding_number_about_the_mesh_is_1(tmp_path, kind):
    shape, thing_there = read(tmp_path / "world.sdf", SHAPES[kind])
    pose = thing_there.placement
    points = np.random.default_rng(4).uniform(-2.0, 2.0, (300, 3)) + np.array(pose.position_m)
    away_m = points - np.array(pose.position_m)
    is_clear = is_inside(shape, points + 0.005 * away_m, shape.pose) == is_inside(
        shape, points - 0.005 * away_m, shape.pose
    )  # a mesh's flats lie a little within
    points = points[is_clear]
    corners = thing_there.mesh.vertices_m @ matrix_from_quaternion(pose.orientation).T + np.array(pose.position_m)
    a, b, c = (corners[thing_there.mesh.triangles[:, corner]][np.newaxis] - points[:, np.newaxis] for corner in range(3))
    lengths = [np.linalg.norm(each, axis=2) for each in (a, b, c)]
    triple = np.einsum("ijk,ijk->ij", a, np.cross(b, c))
    below = np.prod(lengths, axis=0) + sum(
        np.einsum("ijk,ijk->ij", one, other) * length for one, other, length in ((a, b, lengths[2]), (b, c, lengths[0]), (c, a, lengths[1]))
    )
    winding = 2.0 * np.arctan2(triple, below).sum(axis=1) / (4.0 * np.pi)
    expected = winding > 0.5
    assert 5 <= expected.sum() < 150
    np.testing.assert_array_equal(is_inside(shape, points, shape.pose), expected)


def test_a_plane_and_a_mesh_have_no_inside(tmp_path):
    (tmp_path / "world.sdf").write_text(world_text(thing("one", "<plane><normal>0 0 1</normal></plane>")))
    [shape] = read_sdf(tmp_path / "world.sdf").collisions
    assert not is_inside(shape, np.zeros((3, 3)), shape.pose).any()


def test_only_shapes_with_points_in_them_are_reported_where_they_are(tmp_path):
    (tmp_path / "world.sdf").write_text(world_text(thing("near", box(1, 1, 1)), thing("far", box(1, 1, 1), "5 0 0 0 0 0")))
    placed = [(shape, shape.pose) for shape in read_sdf(tmp_path / "world.sdf").collisions]
    points = np.array([[0.1, 0.2, 0.3], [2.0, 0.0, 0.0]])
    assert {name: mask.tolist() for name, mask in containing(placed, points).items()} == {"near::link::body": [True, False]}
    moved = [(shape, Pose(position_m=(-5.0, 0.0, 0.0)) @ pose) for shape, pose in placed]
    assert {name: mask.tolist() for name, mask in containing(moved, points).items()} == {"far::link::body": [True, False]}


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_no_point_of_a_shape_is_farther_from_where_it_is_than_its_reach(tmp_path, kind):
    shape, thing_there = read(tmp_path / "world.sdf", SHAPES[kind])
    assert np.linalg.norm(thing_there.mesh.vertices_m, axis=1).max() <= reach_m(shape) + 1e-9
