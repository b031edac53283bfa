"""What a hit was, for the sensor and for ground truth."""

import numpy as np

from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.renderers import CpuRenderer, cast
from tests.unit.render.hits import hit_labels, hit_normals, hit_object_ids, hit_reflectivity

SECOND = 1_000_000_000
DIRECTIONS = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def hits_in_a_small_world():
    """A wall ahead (object 7), a cube on the left that turns by 90 degrees a second (object 8), nothing above, other things behind."""
    turned = mounting((0.0, 10.0, 0.0), (0.0, 0.0, 90.0)).orientation
    track = linear_track([0, SECOND], [[0, 10, 0]] * 2, [(1.0, 0.0, 0.0, 0.0), turned])
    world = build_world(
        [
            *(SceneObject(mesh=box((1, 1, 1), DEFAULTS["wood"]), placement=Pose(position_m=(-10 - x, 0, 0)), label=1) for x in range(7)),
            SceneObject(mesh=box((1, 8, 8), DEFAULTS["plaster"]), placement=Pose(position_m=(10, 0, 0)), label=4),
            SceneObject(mesh=box((2, 2, 2), DEFAULTS["retro_sign"]), placement=track, label=9),
        ]
    )
    times = np.full(3, SECOND // 6)
    return world, cast(CpuRenderer(), world, (0.1, 0.2, 0.3), DIRECTIONS, times), times


def test_hits_name_their_object():
    world, hits, _ = hits_in_a_small_world()
    assert hit_object_ids(world, hits.instance, hits.triangle).tolist() == [7, 8, -1]


def test_hits_have_their_objects_label():
    world, hits, _ = hits_in_a_small_world()
    assert hit_labels(world, hits.instance, hits.triangle).tolist() == [4, 9, 0]


def test_hits_have_their_materials_reflectivity():
    world, hits, _ = hits_in_a_small_world()
    codes = [hit_reflectivity(world, *pair) for pair in zip(hits.instance, hits.triangle, strict=True)]
    assert codes == [85, DEFAULTS["retro_sign"].reflectivity, 0]


def test_normals_turn_with_their_object():
    world, hits, times = hits_in_a_small_world()
    normals = hit_normals(world, hits.instance, hits.triangle, times)
    angle = np.radians(15.0)
    expected = [[-1, 0, 0], [np.sin(angle), -np.cos(angle), 0], [0, 0, 0]]
    np.testing.assert_allclose(normals, expected, atol=1e-7)


def test_normals_are_perpendicular_to_what_nearby_rays_see(random_world, random_rays):
    world = random_world(21)
    origin, direction, time_ns = random_rays(21, 500)
    first = cast(CpuRenderer(), world, origin, direction, time_ns)
    nearby = direction.astype(np.float64) + np.random.default_rng(0).normal(size=direction.shape) * 1e-3
    nearby /= np.linalg.norm(nearby, axis=1, keepdims=True)
    second = cast(CpuRenderer(), world, origin, nearby, time_ns)
    same = (first.triangle == second.triangle) & (first.triangle >= 0) & (first.instance == second.instance)
    assert same.sum() > 200
    across = second.range_m[same, None] * nearby[same].astype(np.float32) - first.range_m[same, None] * direction[same]
    normals = hit_normals(world, first.instance, first.triangle, time_ns)[same]
    np.testing.assert_allclose(np.einsum("ij,ij->i", across, normals), 0.0, atol=1e-4)
