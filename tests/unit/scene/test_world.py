"""The world keeps every triangle, its place, its material and its owner."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import fixed_track, linear_track
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.primitives import box, plane, sphere
from hilsim.world.scene.tiles import EDGE_MAX_M, LATTICE_PER_M, cut_long_edges, snap
from hilsim.world.scene.world import SceneObject, build_world
from tests.depth import examples

GRASS, WOOD = DEFAULTS["grass"], DEFAULTS["wood"]
UTM = (500_000.25, 6_600_000.75, 120.0)


def still_corners(world):
    """Corners ``[m, 3, 3]`` in the world of all triangles in tiles."""
    tile_of = np.full(len(world.corners), -1)
    for tile in range(world.tile_count):
        waiting = [int(world.geometry_root[tile])]
        while waiting:
            link = waiting.pop()
            if link >= 0:
                waiting += [int(child) for child in world.node_links[link, 12:14]]
            else:
                first, count = (-1 - link) >> 3, (-1 - link) & 7
                assert (tile_of[first : first + count] == -1).all()
                tile_of[first : first + count] = tile
    rows = np.flatnonzero(tile_of >= 0)
    origin = world.geometry_origin_m[tile_of[rows]]
    c = world.corners[rows].astype(np.float64)
    return np.stack([c[:, :3], c[:, :3] + c[:, 3:6], c[:, :3] + c[:, 6:]], axis=1) + origin[:, np.newaxis], rows


def test_static_triangles_stand_within_half_a_lattice_step_of_where_they_were_put_at_utm_coordinates():
    mesh = sphere(3.0, GRASS, tolerance_m=0.05)
    pose = mounting(UTM, (10.0, 20.0, 30.0))
    world = build_world([SceneObject(mesh=mesh, placement=pose)])
    corners, rows = still_corners(world)
    expected = np.array([pose.transform(tuple(vertex)) for vertex in mesh.vertices_m])[mesh.triangles[world.source[rows]]]
    np.testing.assert_allclose(corners, expected, rtol=0.0, atol=0.5 / LATTICE_PER_M + 1e-9)


def test_a_world_keeps_owner_label_and_material_of_each_triangle():
    mixed = Mesh(np.eye(3), np.array([[0, 1, 2], [2, 1, 0]]), np.array([1, 0]), (GRASS, WOOD))
    world = build_world([SceneObject(mesh=plane((4.0, 4.0), GRASS), label=3), SceneObject(mesh=mixed, label=9)])
    by_owner = {(int(o), int(s)): int(world.reflectivity[m]) for o, s, m in zip(world.owner, world.source, world.material, strict=True)}
    assert by_owner == {(0, 0): 50, (0, 1): 50, (1, 0): WOOD.reflectivity, (1, 1): 50}
    assert world.object_label.tolist() == [3, 9]


def test_a_scene_within_a_kilometre_is_one_tile():
    assert build_world([SceneObject(mesh=plane((1000.0, 1000.0), GRASS), placement=Pose(position_m=UTM))]).tile_count == 1


def test_a_larger_plane_is_cut_into_tiles_without_losing_area():
    world = build_world([SceneObject(mesh=plane((3000.0, 1700.0), GRASS))])
    corners, _ = still_corners(world)
    sides = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    assert world.tile_count > 8
    assert sides.max() <= EDGE_MAX_M
    assert areas.sum() == pytest.approx(3000.0 * 1700.0, rel=1e-7)
    assert np.abs(world.corners).max() < 512.0


@given(st.integers(0, 10_000))
@settings(max_examples=examples(60))
def test_cutting_keeps_area_winding_and_plane(seed):
    rng = np.random.default_rng(seed)
    corners = snap(rng.uniform(-700.0, 700.0, (3, 3, 3)))
    pieces, source = cut_long_edges(corners, np.arange(3))
    for row in range(3):
        whole = np.cross(corners[row, 1] - corners[row, 0], corners[row, 2] - corners[row, 0])
        part = pieces[source == row]
        np.testing.assert_allclose(np.cross(part[:, 1] - part[:, 0], part[:, 2] - part[:, 0]).sum(axis=0), whole, rtol=1e-6, atol=1.0)
    assert np.linalg.norm(np.roll(pieces, -1, axis=1) - pieces, axis=2).max() <= EDGE_MAX_M


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_triangle_with_one_long_edge_becomes_two_halves(turn):
    corners = np.roll([[0.0, 0.0, 0.0], [400.0, 0.0, 0.0], [200.0, 150.0, 0.0]], turn, axis=0)
    pieces, _ = cut_long_edges(corners[np.newaxis], np.zeros(1, dtype=np.int64))
    areas = 0.5 * np.cross(pieces[:, 1] - pieces[:, 0], pieces[:, 2] - pieces[:, 0])[:, 2]
    assert areas.tolist() == [15_000.0, 15_000.0]


@given(st.integers(0, 10_000))
@settings(max_examples=examples(30))
def test_cutting_leaves_neighbours_joined_edge_to_edge(seed):
    rng = np.random.default_rng(seed)
    a, b, c, d = snap(rng.uniform(-700.0, 700.0, (4, 3)))
    pieces, source = cut_long_edges(np.array([[a, b, c], [b, a, d]]), np.arange(2))

    def points_on_shared_edge(row):
        points = np.unique(pieces[source == row].reshape(-1, 3), axis=0)
        along = (b - a) / np.linalg.norm(b - a)
        away = np.linalg.norm(np.cross(points - a, along), axis=1)
        return {tuple(point) for point in points[away < 0.01]}

    assert points_on_shared_edge(0) == points_on_shared_edge(1)


def test_moving_objects_of_one_mesh_share_its_triangles_and_nodes():
    car = box((4.0, 2.0, 1.5), WOOD)
    track = linear_track([0, 10**9], [[0, 0, 0], [10, 0, 0]], [(1.0, 0.0, 0.0, 0.0)] * 2)
    one = build_world([SceneObject(mesh=car, placement=track)])
    many = build_world([SceneObject(mesh=car, placement=track, label=number) for number in range(20)])
    assert len(many.corners) == len(one.corners) == 12
    assert len(many.node_bounds) == len(one.node_bounds)
    assert many.instance_object.tolist() == list(range(20))
    assert many.key_first.tolist() == list(range(0, 40, 2))


def test_the_sphere_of_a_mover_holds_its_mesh_and_its_speed_is_an_upper_bound():
    track = linear_track([0, 10**9], [[0, 0, 0], [10, 0, 0]], [(1.0, 0.0, 0.0, 0.0)] * 2)
    world = build_world([SceneObject(mesh=box((4.0, 2.0, 1.0), WOOD), placement=track)])
    assert np.sqrt(4 + 1 + 0.25) < world.radius_m[0] < 2.3
    assert 10.0 <= world.speed_mps[0] < 10.001


def test_a_mesh_far_from_its_own_zero_is_kept_near_its_middle():
    mesh = Mesh.uniform(np.eye(3) + 10_000.0, [[0, 1, 2]], WOOD)
    world = build_world([SceneObject(mesh=mesh, placement=fixed_track(Pose()))])
    assert np.abs(world.corners).max() <= 1.5
    np.testing.assert_allclose(world.geometry_origin_m[0], 10_000.5)


def test_an_empty_world_has_nothing():
    world = build_world([])
    assert (world.tile_count, world.tile_root, len(world.corners), len(world.key_first)) == (0, -1, 0, 0)


def test_node_bounds_and_links_are_the_same_memory():
    world = build_world([SceneObject(mesh=box((1.0, 1.0, 1.0), WOOD))])
    assert world.node_bounds.ctypes.data == world.node_links.ctypes.data
    assert world.node_bounds.ctypes.data % 64 == 0


def test_a_label_that_is_no_byte_is_refused():
    with pytest.raises(ValueError, match="object 0: label must be 0 to 255, got 256"):
        build_world([SceneObject(mesh=box((1.0, 1.0, 1.0), WOOD), label=256)])
