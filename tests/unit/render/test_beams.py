"""Rays cast in packets: ray by ray what the caster of single rays finds, to the bit, whether rays go alike or not, still or passed by movers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.specs import SUB_RAY_COUNTS, BeamSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.render.cpu import cast_rays
from hilsim.world.render.packets import NO_COSINE, cast_packets, packets_of
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.depth import examples
from tests.lidars import exact_signal
from tests.renderers import ReferenceRenderer

MAX_RANGE_M = 120.0
SECOND = 1_000_000_000


def bundles(rng, pattern, count, around_m=(0.0, 0.0, 0.0)):
    """``count`` beams from near ``around_m``: origins, directions and times of their rays, as ``emulator.firing.fire`` lays them out."""
    heading = rng.normal(size=(count, 3)) * [1.0, 1.0, 0.3]
    ahead = heading / np.linalg.norm(heading, axis=1, keepdims=True)
    across = np.cross(ahead, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    up = np.cross(across, ahead)
    sides = np.stack([across, up], axis=1)  # [n, 2, 3]
    begin = np.array(around_m) + rng.uniform(-5.0, 5.0, (count, 3)) * [1.0, 1.0, 0.2]
    origin = begin[:, np.newaxis] + pattern.offset_m @ sides
    direction = ahead[:, np.newaxis] + pattern.tangent @ sides
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    time_ns = np.repeat(rng.integers(-SECOND, 3 * SECOND, count), pattern.share.size)
    return np.ascontiguousarray(origin.reshape(-1, 3)), direction.reshape(-1, 3).astype(np.float32), time_ns


def cast_both(world, rays, max_range_m=MAX_RANGE_M):
    """(range, instance, triangle) in packets and ray by ray."""
    found = []
    for of_packets in (True, False):
        hits = np.empty(len(rays[0]), np.float32), np.empty(len(rays[0]), np.int32), np.empty(len(rays[0]), np.int32)
        if of_packets:
            cast_packets(world, packets_of(np.arange(len(rays[0]))), *rays, max_range_m, *hits, NO_COSINE)
        else:
            cast_rays(world, *rays, max_range_m, *hits)
        found.append(hits)
    return found


def assert_same(world, rays, max_range_m=MAX_RANGE_M):
    """Hits and ranges are equal to the bit. Returns the share of rays that hit."""
    of_packets, of_rays = cast_both(world, rays, max_range_m)
    for one, other in zip(of_packets, of_rays, strict=True):
        np.testing.assert_array_equal(one, other)
    return np.isfinite(of_rays[0]).mean()


@pytest.fixture(scope="module")
def vlp16_beam():
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
    spec = exact_signal(spec).beam  # without the receiver's axis
    return lambda sub_rays: build_beam(spec, sub_rays)


@pytest.mark.parametrize("sub_rays", SUB_RAY_COUNTS)
@pytest.mark.parametrize("around_m", [(0.0, 0.0, 0.0), (500_000.0, 4_000_000.0, 100.0)])
def test_beams_find_what_single_rays_find(random_world, vlp16_beam, sub_rays, around_m):
    pattern = vlp16_beam(sub_rays)
    for seed in range(4):
        world = random_world(seed, around_m)
        assert assert_same(world, bundles(np.random.default_rng(seed), pattern, 2000, around_m)) > 0.5


def test_rays_of_a_wide_beam_are_not_lost_where_its_centre_misses(random_world):
    # 100 mrad from a window of 10 cm: at 50 m the spot is 5 m wide, wider than most of what there is.
    pattern = build_beam(BeamSpec(divergence_h_mrad=100.0, divergence_v_mrad=100.0, window_h_mm=100.0, window_v_mm=100.0), 19)
    world = random_world(11, movers=8)
    rays = bundles(np.random.default_rng(11), pattern, 2000)
    assert assert_same(world, rays) > 0.5
    instance = cast_both(world, rays)[0][1].reshape(-1, 19)
    assert np.count_nonzero((instance[:, :1] != instance).any(axis=1)) > 100  # beams whose rays part
    of_movers = instance >= world.tile_count
    assert np.count_nonzero(of_movers.any(axis=1) & ~of_movers[:, 0]) > 10  # movers met beside the centre only


@given(
    seed=st.integers(0, 10_000),
    sub_rays=st.sampled_from(SUB_RAY_COUNTS),
    movers=st.integers(0, 6),
    divergence_mrad=st.sampled_from([0.0, 3.0, 30.0, 100.0]),
    max_range_m=st.sampled_from([3.0, 25.0, 120.0]),
)
@settings(max_examples=examples(100))
def test_beams_find_what_single_rays_find_in_any_soup(random_world, seed, sub_rays, movers, divergence_mrad, max_range_m):
    pattern = build_beam(
        BeamSpec(divergence_h_mrad=divergence_mrad, divergence_v_mrad=0.4 * divergence_mrad, window_h_mm=9.5, window_v_mm=12.7), sub_rays
    )
    assert_same(random_world(seed, movers=movers), bundles(np.random.default_rng(seed), pattern, 300), max_range_m)


def test_beams_find_what_the_reference_finds(random_world, vlp16_beam):
    pattern = vlp16_beam(7)
    world = random_world(5)
    rays = bundles(np.random.default_rng(5), pattern, 60)
    slow = np.empty(420, np.float32), np.empty(420, np.int32), np.empty(420, np.int32)
    ReferenceRenderer().cast_rays(world, *rays, MAX_RANGE_M, *slow)
    range_m, instance, _ = cast_both(world, rays)[0]
    np.testing.assert_allclose(range_m, slow[0], rtol=0.0, atol=1e-4)
    np.testing.assert_array_equal(instance, slow[1])


def test_rays_side_by_side_are_not_lost_where_the_centre_misses(random_world):
    pattern = build_beam(BeamSpec(window_h_mm=100.0, window_v_mm=100.0), 19)
    for seed in range(20, 26):
        assert_same(random_world(seed, movers=8), bundles(np.random.default_rng(seed), pattern, 2000))


def test_a_beams_result_does_not_depend_on_its_neighbours(random_world, vlp16_beam):
    pattern = vlp16_beam(7)
    world = random_world(6)
    rays = bundles(np.random.default_rng(6), pattern, 500)
    whole = cast_both(world, rays)[0]
    for first, count in ((0, 1), (147, 200), (499, 1)):
        part = slice(7 * first, 7 * (first + count))
        for of_part, of_whole in zip(cast_both(world, tuple(column[part] for column in rays))[0], whole, strict=True):
            np.testing.assert_array_equal(of_part, of_whole[part])


def test_an_empty_world_has_no_hits(vlp16_beam):
    pattern = vlp16_beam(7)
    range_m, instance, triangle = cast_both(build_world([]), bundles(np.random.default_rng(0), pattern, 10))[0]
    assert np.isinf(range_m).all()
    assert (instance == -1).all()
    assert (triangle == -1).all()


def test_of_surfaces_that_coincide_the_same_is_met_whoever_is_beside_a_ray(vlp16_beam):
    wall = box((1.0, 20.0, 20.0), DEFAULTS["plaster"])
    places = [(10.5, 0.0, 0.0)] * 9 + [(-8.5, 0.0, 0.0)] * 2 + [(0.0, 15.0, float(z)) for z in range(6)]
    world = build_world([SceneObject(mesh=wall, placement=Pose(position_m=place)) for place in places])
    pattern = vlp16_beam(7)
    for seed in range(5):
        assert assert_same(world, bundles(np.random.default_rng(seed), pattern, 1000)) > 0.3
