"""Firings that meet one surface, sixteen at a time: the same as ray by ray, to the bit."""

import dataclasses

import numpy as np
import pytest

from hilsim.compilation.jit import kernel
from hilsim.compilation.lanes import load_lanes, store_lanes
from hilsim.emulator.firing import fire
from hilsim.emulator.fused import render_returns
from hilsim.emulator.hits import collect
from hilsim.emulator.workspace import SUMMED, allocate_workspace
from hilsim.sensor.echoes import sole_echo
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import about_axis
from hilsim.world.render.packets import cast_packets
from hilsim.world.render.surfaces import returned, returned_by_all, texture_noise, texture_noises
from tests.compiled import compiled_only
from tests.unit.emulator.optical_scenes import diffuse, seeing_relief, still_lidar, wall

SEQUENCES = 24
NEVER_FIRST_M = 5e-324
"""Way of a ray that has travelled: it is met one by one, and any range stays what it is."""


@kernel
def _by_lanes(given, result):
    noise, depth = texture_noises(load_lanes(given, 0), load_lanes(given, 1), load_lanes(given, 2), load_lanes(given, 3), load_lanes(given, 4))
    store_lanes(result, 0, noise)
    store_lanes(result, 2, depth)
    light = returned_by_all(load_lanes(given, 5), load_lanes(given, 6), load_lanes(given, 7), load_lanes(given, 8), load_lanes(result, 0))
    store_lanes(result, 1, light)


@kernel
def _one_by_one(given, result):
    for lane in range(given.shape[1]):
        result[0, lane], result[2, lane] = texture_noise(given[0, lane], given[1, lane], given[2, lane], given[3, lane], given[4, lane])
        result[1, lane] = returned(given[5, lane], given[6, lane], given[7, lane], given[8, lane], result[0, lane])


@kernel
def _sole_echoes(hits, merge_distance_m, sums):
    for firing in range(hits.hit_count.size):
        _, sums[firing, 0], sums[firing, 1], sums[firing, 2] = sole_echo(hits.hit_count[firing], hits.value, hits.what, firing, merge_distance_m)


@compiled_only
def test_lights_of_sixteen_surfaces_are_those_of_each():
    rng = np.random.default_rng(3)
    for _ in range(600):
        given = rng.uniform(-300.0, 300.0, (9, 16))
        given[3:5], given[5], given[7] = rng.uniform(0.01, 1.0, (2, 16)), rng.random(16), rng.random(16)
        given[6], given[8] = rng.choice([0.0, 0.3, 1.0], 16), rng.choice([0.0, 0.03, 0.5], 16)
        by_lanes, one_by_one = np.zeros((3, 16)), np.zeros((3, 16))
        _by_lanes(given, by_lanes)
        _one_by_one(given, one_by_one)
        np.testing.assert_array_equal(by_lanes, one_by_one)


@pytest.fixture
def lidar(vlp16):
    """Walls side by side and above each other: matt, glossy, open, flawed, turned; some of them end within beams."""
    turned = dataclasses.replace(
        wall(9.0, diffuse(30, texture=0.2, texture_m=0.1, relief_m=0.01), y=(-0.2, 3.0), z=(-3.0, 0.5)),
        placement=Pose(position_m=(0.5, 0.1, 0.2), orientation=about_axis((0.0, 0.6, 0.8), 0.3)),
    )
    objects = [
        turned,
        wall(12.0, diffuse(50, gloss=0.5, texture=0.1), y=(-0.5, 0.3), z=(-1.0, 3.0)),
        wall(14.0, diffuse(40, porosity=0.5, gap_m=0.1), y=(-1.5, -0.5)),
        wall(20.0, diffuse(60, flaw_ratio=0.2), y=(-3.0, -1.6)),
        wall(30.0, diffuse(20, texture=0.3), angle_deg=40.0, z=(-60.0, 2.0)),
    ]
    return seeing_relief(still_lidar(objects, vlp16, is_exact=False, sub_rays=7), 1.0)


def _cast(lidar, first):
    workspace = allocate_workspace(lidar.plan, SEQUENCES, is_opaque=False)
    workspace.sequence[:] = np.arange(first, first + SEQUENCES)
    rays = workspace.rays
    fire(lidar.plan, lidar.platform, workspace.sequence, rays)
    cast_packets(
        lidar.world,
        rays.packets,
        rays.origin_m,
        rays.direction,
        rays.time_ns,
        lidar.plan.cast_range_m,
        rays.range_m,
        rays.instance,
        rays.triangle,
        rays.cosine,
    )
    return workspace


@compiled_only
@pytest.mark.parametrize("first", [0, 1800])
def test_hits_and_sums_of_one_surface_are_those_of_its_rays(lidar, first):
    together, alone = _cast(lidar, first), _cast(lidar, first)
    rays = together.rays.range_m.size
    collect(lidar.plan.rare, lidar.plan, lidar.world, together.rays, rays, together, together.ahead)
    alone.rays.travelled_m[0] = NEVER_FIRST_M
    collect(lidar.plan.rare, lidar.plan, lidar.world, alone.rays, rays, alone, alone.ahead)
    np.testing.assert_array_equal(together.hits.hit_count, alone.hits.hit_count)
    for firing, count in enumerate(alone.hits.hit_count):
        np.testing.assert_array_equal(together.hits.value[firing, :count], alone.hits.value[firing, :count])
        np.testing.assert_array_equal(together.hits.what[firing, :count, :3], alone.hits.what[firing, :count, :3])
    sums = np.zeros((alone.hits.hit_count.size, 3))
    _sole_echoes(alone.hits, lidar.plan.response.merge_distance_m, sums)
    settled = together.sole.bits[:, SUMMED, None] >> np.arange(16) & 1 == 1
    assert 0.1 < settled.mean() < 0.9
    by_group = together.sole.sums.reshape(SEQUENCES, -1, 16)[:, :3]
    np.testing.assert_array_equal(by_group.swapaxes(1, 2)[settled], sums.reshape(16, SEQUENCES, 3).swapaxes(0, 1)[settled])


@compiled_only
def test_returns_do_not_depend_on_hits_that_are_not_written(lidar):
    whole, few = (allocate_workspace(lidar.plan, SEQUENCES, is_opaque=False, keeps_hits=keeps_hits) for keeps_hits in (True, False))
    for packet in range(70, 80):
        for workspace in (whole, few):
            render_returns(lidar.plan, lidar.platform, lidar.world, packet, workspace)
        for name in ("distance", "reflectivity", "flags", "echo", "range_m", "energy", "correction"):
            np.testing.assert_array_equal(getattr(few.returns, name), getattr(whole.returns, name), name)
