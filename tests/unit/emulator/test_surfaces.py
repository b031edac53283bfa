"""Finish of surfaces: texture, gloss, mirrors; and spurious returns, which hide every surface."""

import dataclasses
import math

import numpy as np
import pytest

from hilsim.emulator.truth import Cause, packets_with_truth
from hilsim.sensor.echoes import ENERGY, MIRRORED, RANGE, RAY
from hilsim.sensor.optics.false_alarms import SpuriousSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import about_axis
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.render.surfaces import flaw_at, texture_noise
from hilsim.world.scene.materials import DEFAULTS, wet
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.world import SceneObject
from tests.compiled import compiled_only
from tests.unit.emulator.optical_scenes import ahead, diffuse, level, seeing_relief, still_lidar, wall, workspace_of

GLASS_MIRROR = 0.08


def energies(objects, spec, **setting):
    """Ranges (m) and energies of the hits of the firing along +x."""
    hits = workspace_of(still_lidar(objects, spec, **setting)).hits
    return hits.value[0, : hits.hit_count[0]][:, [RANGE, ENERGY]]


def test_a_texture_has_mean_0_deviation_1_and_patches_of_its_size():
    rng = np.random.default_rng(5)
    places = rng.uniform(-50.0, 50.0, (4000, 3))
    noise, depth = np.array([texture_noise(*place, 0.4, 0.0) for place in places]).T
    np.testing.assert_allclose((noise.mean(), depth.mean()), 0.0, atol=0.06)
    np.testing.assert_allclose((noise.std(), depth.std()), 1.0, atol=0.04)
    assert abs(np.corrcoef(noise, depth)[0, 1]) < 0.06
    near = np.array([texture_noise(*place, 0.4, 0.0)[0] for place in places + np.array([0.02, 0.0, 0.0])])
    far = np.array([texture_noise(*place, 0.4, 0.0)[0] for place in places + np.array([2.0, 0.0, 0.0])])
    assert np.corrcoef(noise, near)[0, 1] > 0.8
    assert abs(np.corrcoef(noise, far)[0, 1]) < 0.06


def test_the_reflectivity_of_a_textured_wall_varies_by_its_deviation(vlp16):
    light = []
    for step in range(120):
        (range_m, energy) = energies(
            [wall(10.0, diffuse(50, texture=0.2, texture_m=0.05))], level(vlp16), at=Pose(position_m=(0.0, 0.37 * step, 0.0))
        )[0]
        light.append(energy * range_m**2)
    assert np.mean(light) == pytest.approx(0.5, abs=0.03)
    assert np.std(light) == pytest.approx(0.1, rel=0.2)


def test_a_textured_surface_is_as_rough_as_its_relief(vlp16):
    rough = [wall(10.0, diffuse(50, texture=0.2, texture_m=2.0, relief_m=0.02))]
    off_m = []
    for step in range(115):
        lidar = still_lidar(rough, level(vlp16), at=Pose(position_m=(0.0, 0.77 * step - 44.0, 0.0)))
        flat, deep = (workspace_of(each).hits for each in (lidar, seeing_relief(lidar, 0.5)))
        off = (deep.value - flat.value)[0, : flat.hit_count[0], RANGE]
        assert np.ptp(off) < 1e-12  # a firing's rays meet one patch
        off_m.append(off[0])
    assert np.mean(off_m) == pytest.approx(0.0, abs=0.003)
    assert np.std(off_m) == pytest.approx(0.01, rel=0.2)


@pytest.mark.parametrize("spot_m", [0.05, 0.1, 0.4])
def test_a_spot_sees_the_mean_of_the_patches_that_it_covers(spot_m):
    """The deviation of the noise at the middle of a spot beside that of its mean over 40 places of the spot."""
    rng = np.random.default_rng(8)
    number = np.arange(40)
    radius, angle = spot_m / 2.0 * np.sqrt((number + 0.5) / 40), number * math.pi * (3.0 - math.sqrt(5.0))
    spot = np.column_stack([np.zeros(40), radius * np.cos(angle), radius * np.sin(angle)])
    means = [np.mean([texture_noise(*place, 0.1, 0.0)[0] for place in middle + spot]) for middle in rng.uniform(-50.0, 50.0, (300, 3))]
    middles = [texture_noise(*middle, 0.1, spot_m)[0] for middle in rng.uniform(-50.0, 50.0, (2000, 3))]
    assert np.std(middles) == pytest.approx(np.std(means), rel=0.2)


def test_flaws_cover_their_share_of_a_surface_and_each_has_its_own_depth():
    rng = np.random.default_rng(6)
    places = rng.uniform(-50.0, 50.0, (6000, 3))
    depth = np.array([flaw_at(*place, 0.3, 0.1) for place in places])
    assert (depth > 0.0).mean() == pytest.approx(0.3, abs=0.02)
    flawed = np.sqrt(depth[depth > 0.0])
    assert [flawed.min(), flawed.mean(), flawed.max()] == pytest.approx([0.0, 0.5, 1.0], abs=0.03)
    beside = np.array([flaw_at(*place, 0.3, 0.1) for place in places + np.array([0.005, 0.0, 0.0])])
    assert (beside == depth).mean() > 0.9


@compiled_only
def test_firings_are_lost_at_flaws_by_their_depth_and_others_are_as_much_dimmer(vlp16):
    """The same firings of two rigs with different seeds meet the same flaws, and lose other firings of them."""
    sequences, lost = 200, []
    for seed in (1, 2):
        lidar = still_lidar([wall(10.0, diffuse(50, flaw_ratio=0.6, flaw_m=0.05))], level(vlp16), seed=seed)
        workspace = workspace_of(lidar, sequences)
        flaw, returns = workspace.hits.flaw.reshape(16, sequences).T, workspace.returns
        is_met = returns.distance[0] > 0
        for low, high in ((0.01, 0.2), (0.2, 0.5), (0.5, 1.0)):
            among = (flaw > low) & (flaw <= high)
            assert (~is_met[among]).mean() == pytest.approx(flaw[among].mean(), abs=0.08)
        assert is_met[flaw == 0.0].all()
        seen = is_met & (flaw > 0.0) & (flaw < 0.9)
        light = returns.energy[0][seen] * returns.range_m[0][seen] ** 3 / 10.0  # the cosine of the incidence is 10 m by the range
        assert np.median(light / (0.5 * (1.0 - flaw[seen]))) == pytest.approx(1.0, abs=0.02)
        lost.append((flaw, is_met))
    np.testing.assert_array_equal(lost[0][0], lost[1][0])
    assert (lost[0][1] != lost[1][1]).any()


def test_a_texture_goes_along_with_its_object(vlp16):
    """A box that has moved and turned shows the sensor that has moved and turned with it the same."""
    material = diffuse(50, texture=0.4, texture_m=0.2)
    mesh = Mesh.uniform([(10.0, -60, -60), (10.0, 60, -60), (10.0, 60, 60), (10.0, -60, 60)], [[0, 1, 2], [0, 2, 3]], material)
    poses = (Pose(), Pose(position_m=(37.3, -11.1, 0.4), orientation=about_axis((0.0, 0.0, 1.0), 0.7)))
    first, second = (energies([SceneObject(mesh=mesh, placement=fixed_track(pose))], level(vlp16), at=pose)[0, 1] for pose in poses)
    assert first == pytest.approx(second, rel=1e-4)


@pytest.mark.parametrize("finish", [{"texture": 0.4, "texture_m": 0.2}, {"porosity": 0.5, "gap_m": 0.2}])
def test_texture_and_openings_are_the_same_whether_the_object_stands_still_or_moves(vlp16, finish):
    mesh = Mesh.uniform([(0.0, -60, -60), (0.0, 60, -60), (0.0, 60, 60), (0.0, -60, 60)], [[0, 1, 2], [0, 2, 3]], diffuse(50, **finish))
    seen = []
    for step in range(40):
        pose = Pose(position_m=(10.0, 0.31 * step, -0.17 * step), orientation=about_axis((0.0, 0.0, 1.0), 0.02 * step))
        hits = [energies([SceneObject(mesh=mesh, placement=placement)], level(vlp16)) for placement in (pose, fixed_track(pose))]
        np.testing.assert_allclose(*hits, rtol=1e-4)
        seen.append(hits[0][:, 1].sum())
    assert np.std(seen) > 0.1 * np.mean(seen)


@pytest.mark.parametrize(("angle_deg", "light"), [(0.0, 0.4), (10.0, 0.2 * math.cos(math.radians(10)) + 0.2 * math.cos(math.radians(20)) ** 20)])
def test_gloss_brightens_what_is_met_squarely(vlp16, angle_deg, light):
    (range_m, energy) = energies([wall(10.0, diffuse(40, gloss=0.5), angle_deg=angle_deg)], level(vlp16))[0]
    assert energy * range_m**2 == pytest.approx(light, rel=2e-3)


def test_a_mirror_shows_what_is_aside_behind_itself(vlp16):
    """A mirror 4 m ahead at 45 degrees sends the beam to a wall 6 m aside: it appears 10 m ahead, with the mirror's share of its light, twice."""
    mirror = wall(4.0, diffuse(0, mirror=0.9), y=(-3.0, 3.0), angle_deg=45.0)
    for aside_m in (6.0, -6.0):
        aside = Mesh.uniform([(-30, aside_m, -30), (30, aside_m, -30), (30, aside_m, 30), (-30, aside_m, 30)], [[0, 1, 2], [0, 2, 3]], diffuse(50))
        lidar = still_lidar([mirror, SceneObject(mesh=aside, label=7)], level(vlp16))
        hits = workspace_of(lidar).hits
        found = [hits.value[0, at] for at in range(hits.hit_count[0]) if hits.what[0, at, RAY] & MIRRORED]
        if found:
            break
    share = 0.9 + 0.1 * (1.0 - math.sqrt(0.5)) ** 5
    (only,) = found
    assert only[RANGE] == pytest.approx(10.0, abs=2e-3)
    assert only[ENERGY] == pytest.approx(0.5 * share**2 / 100.0, rel=2e-3)
    assert ahead(lidar)[0].range_m == pytest.approx(10.0, abs=0.004)
    _, truth = packets_with_truth(lidar, 0, 1)
    first = np.flatnonzero((truth.sequence == 0) & (truth.channel == 0))
    assert (truth.cause[first], truth.label[first], truth.object_id[first]) == (Cause.MIRROR, 7, 1)


def test_a_pane_both_lets_light_pass_and_reflects_more_of_it_at_a_flat_angle(vlp16):
    for angle_deg in (0.0, 60.0, 80.0):
        pane = wall(4.0, diffuse(0, transmission=0.85, mirror=GLASS_MIRROR), angle_deg=angle_deg)
        behind = [(range_m, energy) for range_m, energy in energies([pane, wall(9.0, diffuse(50))], level(vlp16)) if 8.9 < range_m < 9.1]
        cosine = math.cos(math.radians(angle_deg))
        share = GLASS_MIRROR + (1.0 - GLASS_MIRROR) * (1.0 - cosine) ** 5
        ((range_m, energy),) = behind
        assert energy * range_m**2 == pytest.approx(0.5 * (0.85 * (1.0 - share) / (1.0 - GLASS_MIRROR)) ** 2, rel=2e-3)


@compiled_only
def test_two_mirrors_face_to_face_end(vlp16):
    mirrors = [wall(5.0, diffuse(10, mirror=0.9)), wall(-5.0, diffuse(10, mirror=0.9))]
    lidar = still_lidar(mirrors, level(vlp16), sub_rays=7)
    whole, one_by_one = lidar.data_packets(0, 4).payload, [lidar.data_packets(packet, 1).payload[0] for packet in range(4)]
    np.testing.assert_array_equal(whole, one_by_one)


def test_a_wet_road_is_darker_and_mirrors_and_a_wall_stays_as_it_is():
    road = wet(DEFAULTS["asphalt"], 1.0)
    assert (road.reflectivity, road.mirror) == (8, 0.02)
    assert wet(DEFAULTS["brick"], 1.0) == DEFAULTS["brick"]
    assert wet(DEFAULTS["asphalt"], 0.0) is DEFAULTS["asphalt"]


@compiled_only
@pytest.mark.parametrize("mode", ["strongest", "last", "dual"])
def test_spurious_returns_win_whatever_the_surface(vlp16, mode):
    lidar = still_lidar([wall(6.0, diffuse(90))], level(vlp16), return_mode=mode, spurious=SpuriousSpec(rate=0.05, max_range_m=50.0))
    _, truth = packets_with_truth(lidar, 0, 60)
    firings = 60 * 24 * 16 // (2 if mode == "dual" else 1)
    returns = 2 if mode == "dual" else 1
    spurious = truth.cause == Cause.FALSE_ALARM
    assert spurious.sum() / returns == pytest.approx(0.05 * firings, abs=4 * math.sqrt(0.05 * firings))
    assert (truth.label[spurious] == -1).all()
    assert (truth.range_m[spurious] < 6.0).mean() == pytest.approx(5.5 / 49.5, abs=0.04)


def test_a_retro_reflector_blooms_into_the_beams_beside_it(vlp16):
    """A sign 20 m away whose edge lies one and a half spots beside the beam: without a halo the beam misses it, with one it sees it weakly."""
    spot_m = 0.0095 + 0.003 * 20.0
    sign = [wall(20.0, DEFAULTS["retro_sign"], y=(0.75 * spot_m, 5.0)), wall(30.0, diffuse(50))]
    plain, blooming = (
        still_lidar(sign, level(vlp16, beam=dataclasses.replace(vlp16.beam, halo_share=share)), sub_rays=7, return_mode="dual")
        for share in (0.0, 1e-3)
    )
    assert [found.range_m for found in ahead(plain)] == [30.0, 30.0]
    assert sorted(found.range_m for found in ahead(blooming)) == [20.0, 30.0]
    assert min(ahead(blooming)).byte < 100
    assert blooming.plan.beam.share.sum() == pytest.approx(1.0)
