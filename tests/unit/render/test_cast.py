"""Rays in whole worlds: by hand, against the slow reference, and however they are batched."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.compilation.jit import kernel
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.render.cpu import cast_rays
from hilsim.world.scene.materials import DEFAULTS, Material
from hilsim.world.scene.primitives import box, plane, sphere
from hilsim.world.scene.world import SceneObject, build_world
from tests.depth import examples
from tests.renderers import CpuRenderer, Hits, ReferenceRenderer, cast

SECOND = 1_000_000_000
LEVEL = (1.0, 0.0, 0.0, 0.0)
UTM = (500_000.0, 6_600_000.0, 100.0)
CPU = CpuRenderer()
WALL = box((1.0, 20.0, 20.0), DEFAULTS["plaster"])


def assert_agree(world, rays, hits, expected):
    """Same misses and ranges within 1 mm; the same triangle except where two are equally far."""
    np.testing.assert_array_equal(np.isfinite(hits.range_m), np.isfinite(expected.range_m))
    hit = np.isfinite(expected.range_m)
    np.testing.assert_allclose(hits.range_m[hit], expected.range_m[hit], rtol=0.0, atol=1e-3)
    other = hit & (hits.triangle != expected.triangle)
    assert other.mean() < 0.02
    assert (hits.instance[~hit] == -1).all()
    assert (hits.triangle[~hit] == -1).all()
    assert rays[0].shape[0] == len(hits.range_m)
    assert (hits.instance < len(world.instance_geometry)).all()


def test_a_wall_is_seen_at_its_distance():
    world = build_world([SceneObject(mesh=WALL, placement=Pose(position_m=(10.5, 0.0, 0.0)))])
    hits = cast(CPU, world, (0.0, 0.0, 0.0), [[1, 0, 0], [0.6, 0.8, 0], [-1, 0, 0]])
    assert hits.range_m[0] == 10.0
    assert hits.range_m[1] == np.inf
    assert (hits.range_m[2], hits.instance[2], hits.triangle[2]) == (np.inf, -1, -1)


@pytest.mark.parametrize("y", [-10.0, 0.0, 10.0])
@pytest.mark.parametrize("z", [-10.0, 0.0, 10.0])
def test_a_ray_that_runs_exactly_along_a_walls_rim_sees_the_wall_on_every_side(y, z):
    world = build_world([SceneObject(mesh=WALL, placement=Pose(position_m=(10.5, 0.0, 0.0)))])
    assert cast(CPU, world, (0.0, y, z), [[1, 0, 0]]).range_m[0] == 10.0


def test_the_nearer_of_two_walls_is_seen():
    walls = [SceneObject(mesh=WALL, placement=Pose(position_m=(x, 0.0, 0.0))) for x in (30.5, 10.5, 20.5)]
    assert cast(CPU, build_world(walls), (0.0, 0.0, 0.0), [[1, 0, 0]]).range_m[0] == 10.0


def test_objects_beyond_the_greatest_range_are_not_seen():
    world = build_world([SceneObject(mesh=WALL, placement=Pose(position_m=(10.5, 0.0, 0.0)))])
    assert cast(CPU, world, (0.0, 0.0, 0.0), [[1, 0, 0]], max_range_m=9.99).range_m[0] == np.inf
    assert cast(CPU, world, (0.0, 0.0, 0.0), [[1, 0, 0]], max_range_m=10.01).range_m[0] == 10.0


def test_an_empty_world_has_no_echo():
    assert cast(CPU, build_world([]), (0.0, 0.0, 0.0), [[1, 0, 0]]).range_m[0] == np.inf


def test_a_mover_is_seen_where_it_is_at_each_rays_own_time():
    track = linear_track([0, SECOND], [[10.5, 0, 0], [40.5, 0, 0]], [LEVEL] * 2)
    world = build_world([SceneObject(mesh=WALL, placement=track)])
    times = np.array([-1, 0, 55_296, SECOND // 3, SECOND, 2 * SECOND])
    hits = cast(CPU, world, (0.0, 0.0, 0.0), np.tile([1.0, 0, 0], (6, 1)), times)
    np.testing.assert_allclose(hits.range_m, [10, 10, 10 + 30 * 55_296e-9, 20, 40, 40], atol=4e-6)


def test_a_mover_that_turns_is_seen_turned():
    turned = mounting((10.0, 0.0, 0.0), (0.0, 0.0, 90.0)).orientation
    track = linear_track([0, SECOND], [[10, 0, 0]] * 2, [LEVEL, turned])
    world = build_world([SceneObject(mesh=box((2.0, 6.0, 2.0), DEFAULTS["wood"]), placement=track)])
    hits = cast(CPU, world, (0.0, 0.0, 0.0), np.tile([1.0, 0, 0], (3, 1)), [0, SECOND // 2, SECOND])
    np.testing.assert_allclose(hits.range_m, [9.0, 10.0 - math.sqrt(2.0), 7.0], atol=1e-5)


def test_a_mover_hides_a_wall_and_a_wall_hides_a_mover():
    track = linear_track([0, SECOND], [[5, 0, 0], [25, 0, 0]], [LEVEL] * 2)
    world = build_world(
        [SceneObject(mesh=WALL, placement=Pose(position_m=(10.5, 0, 0))), SceneObject(mesh=box((1.0, 1.0, 1.0), DEFAULTS["wood"]), placement=track)]
    )
    hits = cast(CPU, world, (0.0, 0.0, 0.0), np.tile([1.0, 0, 0], (2, 1)), [0, SECOND])
    np.testing.assert_allclose(hits.range_m, [4.5, 10.0])
    assert hits.instance.tolist() == [1, 0]


@given(st.integers(0, 10_000))
@settings(max_examples=examples(12))
def test_random_worlds_agree_with_the_reference(random_world, random_rays, seed):
    world, rays = random_world(seed), random_rays(seed, 150)
    assert_agree(world, rays, cast(CPU, world, *rays), cast(ReferenceRenderer(), world, *rays))


@pytest.mark.extended
@given(st.integers(0, 10_000))
@settings(max_examples=examples(12))
def test_random_worlds_at_utm_coordinates_agree_with_the_reference(random_world, random_rays, seed):
    world, rays = random_world(seed, UTM), random_rays(seed, 150, UTM)
    assert_agree(world, rays, cast(CPU, world, *rays), cast(ReferenceRenderer(), world, *rays))


def test_moving_everything_to_utm_coordinates_moves_no_range_by_a_millimetre(random_world, random_rays):
    here = cast(CPU, random_world(5), *random_rays(5, 4000))
    there = cast(CPU, random_world(5, UTM), *random_rays(5, 4000, UTM))
    both = np.isfinite(here.range_m) & np.isfinite(there.range_m)
    # A ray within a lattice step of an edge may see what is behind it; those are one in thousands.
    assert np.mean(np.isfinite(here.range_m) != np.isfinite(there.range_m)) < 1e-3
    assert np.mean(np.abs(here.range_m[both] - there.range_m[both]) > 1e-3) < 1e-3


@pytest.mark.parametrize("sizes", [[1] * 300, [7] * 43, [299, 2], [150, 151]])
def test_a_rays_hit_does_not_depend_on_its_batch(random_world, random_rays, sizes):
    world = random_world(11)
    origin, direction, time_ns = random_rays(11, sum(sizes))
    whole = cast(CPU, world, origin, direction, time_ns)
    edges = np.cumsum([0, *sizes])
    parts = [cast(CPU, world, origin[a:b], direction[a:b], time_ns[a:b]) for a, b in pairwise(edges)]
    for name in Hits._fields:
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


@pytest.mark.parametrize("half_angle_rad", [1e-4, 0.01, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("apart_m", [0.0, 0.1, 10.0])
def test_a_small_mover_that_only_the_outermost_ray_of_a_batch_meets_is_met(half_angle_rad, apart_m):
    rng = np.random.default_rng(14)
    for _ in range(60):
        place = rng.normal(size=3)
        place *= rng.uniform(10.0, 60.0) / np.linalg.norm(place)
        track = linear_track([0, SECOND], [place, place], [LEVEL] * 2)
        world = build_world([SceneObject(mesh=box((0.2, 0.2, 0.2), DEFAULTS["wood"]), placement=track)])
        origin = rng.uniform(-1.0, 1.0, (50, 3)) * apart_m
        origin[0] = rng.choice([-1.0, 1.0], 3) * apart_m
        aimed = (place - origin[0]) / np.linalg.norm(place - origin[0])
        aside = np.cross(aimed, rng.normal(size=3))
        aside /= np.linalg.norm(aside)
        aimed = place + 0.08 * aside - origin[0]  # the mover's middle is beyond
        aimed /= np.linalg.norm(aimed)
        turn = rng.uniform(0.5, 1.0, (50, 1)) * half_angle_rad
        turn[0] = 0.0
        direction = np.cos(turn) * aimed + np.sin(turn) * aside
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        hits = cast(CPU, world, origin, direction)
        assert hits.range_m[0] == cast(CPU, world, origin[0], direction[:1]).range_m[0]
        assert np.isfinite(hits.range_m[0])


def test_a_wide_mover_right_behind_rays_that_go_nearly_all_round_is_met():
    place = [-5.0, 0.0, 0.0]
    world = build_world([SceneObject(mesh=sphere(2.0, DEFAULTS["wood"]), placement=linear_track([0, SECOND], [place, place], [LEVEL] * 2))])
    turn = np.radians([*np.linspace(-60.0, 60.0, 41), 170.0, -170.0])
    direction = np.stack([np.cos(turn), np.sin(turn), np.zeros(turn.size)], axis=1)
    assert np.isfinite(cast(CPU, world, np.zeros(3), direction).range_m[-2:]).all()


def test_threads_give_the_same_hits_as_none(random_world, random_rays):
    world, rays = random_world(12), random_rays(12, 20_000)
    renderer = CpuRenderer(threads=2)
    threaded = cast(renderer, world, *rays)
    renderer.close()
    for a, b in zip(threaded, cast(CPU, world, *rays), strict=True):
        np.testing.assert_array_equal(a, b)


@kernel
def nearest_of(world, origin_m, direction, time_ns, range_m, instance, triangle):
    cast_rays(world, origin_m, direction, time_ns, 200.0, range_m, instance, triangle)
    return range_m.min()


def test_rays_can_be_cast_from_inside_another_kernel(random_world, random_rays):
    world, rays = random_world(13), random_rays(13, 50)
    hits = cast(CPU, world, *rays)
    again = Hits(*(np.empty_like(values) for values in hits))
    assert nearest_of(world, *rays, *again) == hits.range_m.min()


def test_a_scene_of_many_tiles_is_seen_across_their_borders():
    ground = SceneObject(mesh=plane((6000.0, 6000.0), DEFAULTS["grass"]), placement=Pose(position_m=(*UTM[:2], 0.0)))
    world = build_world([ground])
    assert world.tile_count > 50
    rng = np.random.default_rng(3)
    count = 20_000
    origin = np.array([*UTM[:2], 0.0]) + rng.uniform(-2500.0, 2500.0, (count, 3)) * [1, 1, 0] + [0, 0, 2.0]
    azimuth, dip = rng.uniform(0.0, 2 * np.pi, count), np.radians(rng.uniform(1.0, 89.0, count))
    direction = np.stack([np.cos(dip) * np.cos(azimuth), np.cos(dip) * np.sin(azimuth), -np.sin(dip)], axis=1).astype(np.float32)
    hits = cast(CPU, world, origin, direction)
    np.testing.assert_allclose(hits.range_m, -2.0 / direction[:, 2].astype(np.float64), rtol=0.0, atol=1e-4)


def test_a_direction_that_is_no_unit_vector_is_refused():
    with pytest.raises(ValueError, match=r"row 1: direction must be a unit vector, got \[1.0, 1.0, 0.0\]"):
        cast(CPU, build_world([]), (0.0, 0.0, 0.0), [[1, 0, 0], [1, 1, 0]])


def test_a_renderer_without_threads_is_refused():
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        CpuRenderer(threads=0)


def test_materials_of_one_name_may_differ_in_reflectivity():
    dark, bright = Material(name="paint", reflectivity=5), Material(name="paint", reflectivity=90)
    world = build_world([SceneObject(mesh=box((1, 1, 1), dark)), SceneObject(mesh=box((1, 1, 1), bright), placement=Pose(position_m=(5, 0, 0)))])
    assert sorted(world.reflectivity.tolist()) == [5, 90]
