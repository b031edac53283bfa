"""Optics in whole scenes: the worked cases of the range equation with surfaces, beams and weather in place, through every stage, in all return modes."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.hits import GAP_SHIFT
from hilsim.emulator.truth import Cause, packets_with_truth
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.rng import Purpose
from hilsim.sensor.decimation import channel_rings, decimate_beams, decimate_rays
from hilsim.sensor.echoes import COSINE, ECHO_DRAWS, ECHO_ENERGY, ENERGY, RANGE, RETRO
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.optics.window import WindowSectorSpec, WindowSpec
from hilsim.sensor.response import laser_biases_m
from hilsim.sensor.specs import BeamSpec, DecimationSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.materials import DEFAULTS, Material
from hilsim.world.scene.primitives import cylinder, sphere
from hilsim.world.scene.world import SceneObject
from tests.compiled import compiled_only
from tests.depth import examples
from tests.renderers import CpuRenderer, ReferenceRenderer
from tests.unit.emulator.optical_scenes import CODE_M, Return, ahead, diffuse, level, still_lidar, wall, workspace_of

THRESHOLD = 5e-5
TURN_PACKETS = 76  # at 600 rpm


def assert_reported(objects, spec, *, strongest, last, dual, **setting):
    """What the firing along +x reports, (range in m, byte) a return, in each mode."""
    for mode, expected in (("strongest", [strongest]), ("last", [last]), ("dual", dual)):
        reported = ahead(still_lidar(objects, spec, return_mode=mode, **setting))
        assert reported == [Return(*each) for each in expected], mode


def echo_energies(lidar):
    """Energy of each echo of the firing along +x, nearest first."""
    workspace = workspace_of(lidar)
    count = int(workspace.hits.hit_count[0])
    energy = np.zeros(count)
    np.add.at(energy, workspace.hits.what[0, :count, 3], workspace.hits.value[0, :count, ENERGY])
    return energy[energy > 0.0].tolist()


def nothing(spec):
    """No return: range 0 with the baseline of the first channel."""
    return 0.0, spec.channels[0].no_return_reflectivity


# The worked cases, through the whole pipeline.


@pytest.mark.parametrize("sub_rays", [1, 7, 19])
def test_a_wall_at_45_degrees(vlp16, sub_rays):
    spec = level(vlp16)
    objects = [wall(20.0, diffuse(80), angle_deg=45.0)]
    assert_reported(objects, spec, strongest=(20.0, 57), last=(20.0, 57), dual=[(20.0, 57)] * 2, sub_rays=sub_rays)
    assert echo_energies(still_lidar(objects, spec, sub_rays=sub_rays)) == [pytest.approx(1.414214e-3, rel=1e-4)]


def test_an_edge_seen_by_seven_rays_parts_the_footprint_two_to_five(vlp16):
    # The upper two of seven rays go 7 mm above the centre's at 10 m.
    objects = [wall(10.0, diffuse(50), z=(0.004, 60.0)), wall(20.0, diffuse(50))]
    spec = level(vlp16)
    assert_reported(objects, spec, strongest=(10.0, 14), last=(20.0, 36), dual=[(20.0, 36), (10.0, 14)], sub_rays=7)
    assert echo_energies(still_lidar(objects, spec, sub_rays=7)) == [pytest.approx(1.428571e-3, rel=1e-5), pytest.approx(8.928571e-4, rel=1e-5)]


@pytest.mark.parametrize(("sub_rays", "near"), [(1, 0), (7, 1), (19, 6)])
def test_an_edge_takes_the_share_of_the_rays_that_meet_it(vlp16, sub_rays, near):
    # 30 % of the half spot, 39.5 mm wide at 10 m, from the centre to the right: no ray, one of 7 at 2/3, six of 19 at 0.4 to 0.8.
    objects = [wall(10.0, diffuse(50), y=(-60.0, -0.35 * 0.0395 / 2)), wall(20.0, diffuse(50))]
    energies = echo_energies(still_lidar(objects, level(vlp16), sub_rays=sub_rays))
    shares = [near / sub_rays, 1 - near / sub_rays] if near else [1.0]
    expected = [share * 0.5 / range_m**2 for share, range_m in zip(shares, (10.0, 20.0) if near else (20.0,), strict=True)]
    assert energies == [pytest.approx(energy, rel=1e-5) for energy in expected]


def test_a_gaussian_beam_gives_the_centre_more(vlp16):
    objects = [wall(10.0, diffuse(50), y=(-60.0, -0.35 * 0.0395 / 2)), wall(20.0, diffuse(50))]
    spec = level(vlp16, beam=dataclasses.replace(vlp16.beam, profile="gaussian"))
    weight = np.exp(-2 * (2 / 3) ** 2)
    assert echo_energies(still_lidar(objects, spec, sub_rays=7))[0] == pytest.approx(weight / (1 + 6 * weight) * 0.5 / 100, rel=1e-5)


def test_surfaces_nearer_than_the_merge_distance_are_one_return(vlp16):
    objects = [wall(10.0, diffuse(50), z=(0.004, 60.0)), wall(11.0, diffuse(50))]
    near, far = 2 / 7 * 0.5 / 100, 5 / 7 * 0.5 / 121
    centre_m = (near * 10 + far * 11) / (near + far)
    merged = (round(centre_m / CODE_M) * CODE_M, int(100 * (near + far) * centre_m**2 + 0.5))
    assert_reported(objects, level(vlp16), strongest=merged, last=merged, dual=[merged] * 2, sub_rays=7)


@pytest.mark.parametrize("sub_rays", [1, 7])
def test_of_two_fences_before_a_wall_the_middle_one_is_never_output(vlp16, sub_rays):
    fence = diffuse(30, porosity=0.6)
    objects = [wall(8.0, fence), wall(12.0, fence), wall(30.0, diffuse(50))]
    spec = level(vlp16)
    assert_reported(objects, spec, strongest=(8.0, 12), last=(30.0, 18), dual=[(30.0, 18), (8.0, 12)], sub_rays=sub_rays)
    energies = echo_energies(still_lidar(objects, spec, sub_rays=sub_rays))
    assert energies == [pytest.approx(energy, rel=1e-5) for energy in (1.875e-3, 5.0e-4, 2.0e-4)]
    assert_reported(objects[:2], spec, strongest=(8.0, 12), last=(12.0, 7), dual=[(12.0, 7), (8.0, 12)], sub_rays=sub_rays)


@pytest.mark.parametrize("sub_rays", [1, 7])
def test_glass_at_an_angle_before_a_wall(vlp16, sub_rays):
    objects = [wall(10.0, diffuse(2, transmission=0.85), angle_deg=30.0), wall(15.0, diffuse(50))]
    spec = level(vlp16)
    assert_reported(objects, spec, strongest=(15.0, 36), last=(15.0, 36), dual=[(15.0, 36), (10.0, 2)], sub_rays=sub_rays)
    energies = echo_energies(still_lidar(objects, spec, sub_rays=sub_rays))
    assert energies == [pytest.approx(1.732051e-4, rel=1e-4), pytest.approx(1.605556e-3, rel=1e-5)]


def test_nothing_is_as_good_as_what_is_open_or_clear(vlp16):
    for openness in ({"porosity": 1.0}, {"porosity": 1.0, "gap_m": 0.1}):
        objects = [wall(10.0, diffuse(50, **openness)), wall(15.0, diffuse(50))]
        assert_reported(objects, level(vlp16), strongest=(15.0, 50), last=(15.0, 50), dual=[(15.0, 50)] * 2)
    objects = [wall(10.0, diffuse(0, transmission=1.0)), wall(15.0, diffuse(50))]
    assert_reported(objects, level(vlp16), strongest=(15.0, 50), last=(15.0, 50), dual=[(15.0, 50)] * 2)


def test_no_more_than_four_surfaces_are_looked_through(vlp16):
    pane = diffuse(2, transmission=0.95)
    objects = [wall(5.0 + 3 * place, pane) for place in range(4)] + [wall(30.0, diffuse(50))]
    assert ahead(still_lidar(objects, level(vlp16), return_mode="last"))[0].range_m == 14.0
    assert ahead(still_lidar(objects[1:], level(vlp16), return_mode="last"))[0].range_m == 30.0


@pytest.mark.parametrize("range_m", [10.0, 50.0])
@pytest.mark.parametrize(("material", "byte"), [(DEFAULTS["retro_sign"], 250), (Material(name="engineer grade", reflectivity=221), 221)])
def test_a_retro_reflecting_sign_has_its_byte_at_any_range(vlp16, material, byte, range_m):
    objects = [wall(range_m, material), wall(60.0, diffuse(90))]
    assert_reported(objects, level(vlp16), strongest=(range_m, byte), last=(range_m, byte), dual=[(range_m, byte)] * 2, sub_rays=7)


def test_a_bright_diffuse_surface_never_looks_like_a_retro_reflector(vlp16):
    assert ahead(still_lidar([wall(3.0, diffuse(100))], level(vlp16))) == [Return(3.0, 100)]


# Weather, window, false alarms.

FAR_GAIN = {"near_gain_m": 50.0}  # hides what the weather itself sends back


@pytest.mark.parametrize(("percent", "byte"), [(50, None), (100, 9)])
def test_fog_of_100_m_before_a_wall_at_40_m(vlp16, percent, byte):
    spec = level(vlp16)
    expected = nothing(spec) if byte is None else (40.0, byte)
    setting = {"weather": WeatherSpec(fog_visibility_m=100.0, **FAR_GAIN)}
    assert_reported([wall(40.0, diffuse(percent))], spec, strongest=expected, last=expected, dual=[expected] * 2, **setting)
    energies = echo_energies(still_lidar([wall(40.0, diffuse(percent))], spec, **setting))
    assert energies[-1] == pytest.approx(percent / 100 * 0.09102821 / 1600, rel=1e-5)


@pytest.mark.parametrize(("model", "byte"), [("marshall_palmer", 38), ("goodin", None)])
def test_rain_of_25_mm_an_hour_before_a_wall_at_50_m(vlp16, model, byte):
    spec = level(vlp16)
    expected = nothing(spec) if byte is None else (50.0, byte)
    weather = WeatherSpec(rain_mm_per_h=25.0, rain_model=model, **FAR_GAIN)
    assert_reported([wall(50.0, diffuse(50))], spec, strongest=expected, last=expected, dual=[expected] * 2, weather=weather)


def test_clear_air_is_no_weather_at_all(vlp16):
    objects = [wall(20.0, diffuse(50))]
    one, other = (workspace_of(still_lidar(objects, level(vlp16), **setting)) for setting in ({}, {"weather": WeatherSpec(near_gain_m=1.0)}))
    np.testing.assert_array_equal(one.hits.value, other.hits.value)


@compiled_only
def test_thick_fog_answers_from_nearby_where_a_wall_is_faint_or_gone(vlp16):
    lidar = still_lidar([wall(20.0, diffuse(50))], level(vlp16), weather=WeatherSpec(fog_visibility_m=50.0), return_mode="dual", phase_deg=330.0)
    _, truth = packets_with_truth(lidar, 0, TURN_PACKETS)
    of_fog = truth.cause == Cause.WEATHER
    assert 0.1 < of_fog.mean() < 0.95
    assert np.quantile(truth.range_m[of_fog], 0.95) < 6.0
    # A pair of fog and wall has the wall in the even block: nothing of the fog comes from behind it.
    even, odd = truth.block % 2 == 0, truth.block % 2 == 1
    key = truth.sequence * 16 + truth.channel
    assert not np.isin(key[odd & ~of_fog], key[even & of_fog]).any()
    assert np.isin(key[odd & of_fog], key[even & ~of_fog]).any()


@pytest.mark.parametrize("dirt", [0.9, 0.5])
def test_dirt_takes_light_twice(vlp16, dirt):
    objects = [wall(20.0, diffuse(80))]
    byte = int(80 * dirt**2 + 0.5)
    window = WindowSpec(soiling_transmission=dirt)
    assert_reported(objects, level(vlp16), strongest=(20.0, byte), last=(20.0, byte), dual=[(20.0, byte)] * 2, window=window)


@compiled_only
@pytest.mark.parametrize("rate_rpm", [600, 1200])
def test_a_blocked_sector_is_blocked_for_each_channel_by_its_own_azimuth(vlp16, rate_rpm):
    around = [SceneObject(mesh=cylinder(20.0, 60.0, diffuse(50)))]
    spec = level(vlp16, encoder=(dataclasses.replace(vlp16.encoder[0], rate_rpm=rate_rpm, tick_cdeg=0.0, noise_cdeg=0.0),))
    sectors = (
        WindowSectorSpec(azimuth_from_deg=350.0, azimuth_to_deg=20.0, transmission=0.0),
        WindowSectorSpec(azimuth_from_deg=90.0, azimuth_to_deg=180.0, transmission=0.5),
    )
    lidar = still_lidar(around, spec, window=WindowSpec(sectors=sectors), rotation_rate_rpm=rate_rpm, sub_rays=1)
    returns = lidar.firings(0, TURN_PACKETS, CpuRenderer()).returns
    time_s = np.arange(returns.distance.shape[1])[:, np.newaxis] * 55_296e-9 + np.arange(16) * 2304e-9
    azimuth_deg = rate_rpm * 6.0 * time_s % 360.0
    clear = 0.01  # the reading is a whole hundredth
    blocked = ((azimuth_deg > 350.0 + clear) | (azimuth_deg < 20.0 - clear)) & (azimuth_deg > clear)
    dim = (azimuth_deg > 90.0 + clear) & (azimuth_deg < 180.0 - clear)
    untouched = ((azimuth_deg > 20.0 + clear) & (azimuth_deg < 90.0 - clear)) | ((azimuth_deg > 180.0 + clear) & (azimuth_deg < 350.0 - clear))
    assert (returns.distance[0][blocked] == 0).all()
    assert (np.abs(returns.reflectivity[0][dim].astype(int) - 12.5) <= 1.0).all()
    assert (np.abs(returns.reflectivity[0][untouched].astype(int) - 50) <= 1.0).all()


def test_a_sector_for_some_elevations_leaves_the_other_channels_alone(vlp16):
    sector = WindowSectorSpec(azimuth_from_deg=350.0, azimuth_to_deg=20.0, elevation_from_deg=-90.0, elevation_to_deg=0.0, transmission=0.0)
    lidar = still_lidar([wall(20.0, diffuse(50))], level(vlp16, channels=vlp16.channels), window=WindowSpec(sectors=(sector,)))
    reported = workspace_of(lidar).returns.distance[0, 0] > 0
    np.testing.assert_array_equal(reported, [channel.elevation_deg > 0.0 for channel in vlp16.channels])


@compiled_only
def test_false_alarms_come_at_their_rate_uniform_in_range_as_bright_as_the_threshold(vlp16):
    rate = 0.02
    lidar = still_lidar([], vlp16, false_alarms=FalseAlarmSpec(rate_per_firing=rate))
    _, truth = packets_with_truth(lidar, 0, 4 * TURN_PACKETS)
    workspace = 4 * TURN_PACKETS * 384
    share = rate * (1 - vlp16.range_min_m / vlp16.range_max_m)
    assert abs(truth.packet.size - workspace * share) < 5 * np.sqrt(workspace * share)
    assert (truth.label == -1).all()
    assert (truth.cause == Cause.FALSE_ALARM).all()
    counts, _ = np.histogram(truth.range_m, 10, (vlp16.range_min_m, vlp16.range_max_m))
    assert np.abs(counts - counts.mean()).max() < 5 * np.sqrt(counts.mean())
    energy = truth.reflectivity / 100.0 / truth.range_m**2.0
    dim = truth.reflectivity > 20  # where a step of the byte is small beside it
    assert (energy[dim] > 0.97 * THRESHOLD).all()
    assert (energy[dim] < 1.43 * THRESHOLD).all()


def test_a_false_alarm_beside_a_wall_is_never_the_strongest_and_sometimes_the_last(vlp16):
    def reported_m(mode):
        lidar = still_lidar([wall(10.0, diffuse(50))], level(vlp16), false_alarms=FalseAlarmSpec(rate_per_firing=0.1), return_mode=mode)
        return workspace_of(lidar, 12).returns.range_m[0].reshape(-1)

    np.testing.assert_allclose(reported_m("strongest"), 10.0, atol=0.15)
    farther = np.count_nonzero(reported_m("last") > 11.0)
    assert 3 <= farther <= 45


# Detection, gaps, decimation, pairs.


@compiled_only
def test_faint_echoes_drop_out_by_their_energy_in_whole_packets(vlp16):
    # 60 % at 100 m is 1.2 times the threshold: 84.134 % are detected.
    around = [SceneObject(mesh=cylinder(100.0, 10.0, diffuse(60)))]
    spec = level(vlp16, detector={"noise_ratio": 5.0})
    distance = still_lidar(around, spec).firings(0, 260, CpuRenderer()).returns.distance
    expected = 0.84134 * distance.size
    assert abs(np.count_nonzero(distance) - expected) < 5 * np.sqrt(0.84134 * 0.15866 * distance.size)


@compiled_only
@pytest.mark.parametrize("range_m", [10.0, 12.5, 9.613])
def test_openings_are_the_same_in_every_turn_wherever_the_fence_is(vlp16, range_m):
    gap_m = 0.1
    lidar = still_lidar([wall(range_m, diffuse(50, porosity=0.5, gap_m=gap_m))], level(vlp16, channels=vlp16.channels))
    workspace = lidar.firings(0, 8 * TURN_PACKETS, CpuRenderer())
    direction = workspace.rays.direction.astype(float)
    with np.errstate(divide="ignore"):
        at = workspace.rays.origin_m + (range_m - workspace.rays.origin_m[:, :1]) / direction[:, :1] * direction
    place = at[:, 1:] / gap_m + GAP_SHIFT
    cell = np.floor(place).astype(np.int64)
    inside = (np.abs(place - cell - 0.5) < 0.499).all(axis=1) & (direction[:, 0] > 0.4)
    met = (workspace.hits.hit_count > 0)[inside]
    _, group, size = np.unique(cell[inside], axis=0, return_inverse=True, return_counts=True)
    share_met = np.bincount(group.reshape(-1), met) / size
    assert np.count_nonzero(size > 1) > 5000
    assert ((share_met == 0.0) | (share_met == 1.0)).all()
    assert 0.45 < met.mean() < 0.55


@compiled_only
def test_a_narrow_beam_passes_an_opening_or_does_not_while_a_wide_one_is_parted(vlp16):
    objects = [wall(10.0, diffuse(50, porosity=0.5, gap_m=0.03)), wall(20.0, diffuse(50))]

    def pairs(**setting):
        returns = (
            still_lidar(objects, level(vlp16, channels=vlp16.channels), return_mode="dual", phase_deg=340.0, **setting)
            .firings(0, 10, CpuRenderer())
            .returns
        )
        both = returns.range_m[0] > returns.range_m[1] + 1.0
        return both.mean()

    assert pairs(sub_rays=1) == 0.0
    assert pairs(sub_rays=19) > 0.3


@compiled_only
@pytest.mark.parametrize("step", [(2, 1), (1, 3), (4, 5)])
def test_a_thinned_sensor_reports_what_the_array_functions_keep_of_a_turn(vlp16, step):
    around = [SceneObject(mesh=cylinder(20.0, 60.0, diffuse(50)))]
    spec = level(vlp16, channels=vlp16.channels, range_max_m=120.0)
    whole, thinned = (
        still_lidar(around, spec, decimation=DecimationSpec(beam_step=beam_step, ray_step=ray_step))
        .firings(0, 2 * TURN_PACKETS, CpuRenderer())
        .returns.distance[0]
        for beam_step, ray_step in ((1, 1), step)
    )
    time_s = np.arange(len(whole))[:, np.newaxis] * 55_296e-9 + np.arange(16) * 2304e-9
    turns = 10.0 * time_s
    of_turn = np.floor(turns + 1e-12) == 0.0
    ring = np.broadcast_to(channel_rings(spec), whole.shape)
    azimuth_deg = (360.0 * turns)[of_turn]
    keeps = decimate_beams(ring[of_turn], step[0]).mask & decimate_rays(azimuth_deg, ring[of_turn], step[1]).mask
    assert (whole > 0).all()
    np.testing.assert_array_equal(thinned[of_turn], np.where(keeps, whole[of_turn], 0))


@compiled_only
@pytest.mark.parametrize("sub_rays", [7, 19])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_two_returns_of_a_pair_are_never_nearer_than_the_merge_distance(vlp16, sub_rays, seed):
    rng = np.random.default_rng(seed)
    objects = [
        wall(
            range_m,
            diffuse(int(rng.integers(5, 95)), porosity=float(rng.choice([0.0, 0.5]))),
            y=tuple(centre + np.array([-0.3, 0.3])),
            angle_deg=rng.uniform(-40, 40),
        )
        for range_m, centre in zip(rng.uniform(3.0, 12.0, 60), rng.uniform(-8.0, 8.0, 60), strict=True)
    ]
    spec = level(vlp16, channels=vlp16.channels)
    distance = (
        still_lidar(objects, spec, return_mode="dual", sub_rays=sub_rays, phase_deg=320.0).firings(0, 40, CpuRenderer()).returns.distance.astype(int)
    )
    apart = np.abs(distance[0] - distance[1])[distance[0] != distance[1]]
    assert apart.size > 300
    assert apart.min() * CODE_M >= vlp16.detector.merge_distance_m - CODE_M


# Energy.


@given(range_m=st.floats(1.0, 60.0), angle_deg=st.floats(-80.0, 80.0), percent=st.integers(1, 100))
@settings(max_examples=examples(30))
def test_energy_falls_with_the_square_of_range_and_with_the_cosine(vlp16, range_m, angle_deg, percent):
    hits = workspace_of(still_lidar([wall(range_m, diffuse(percent), angle_deg=angle_deg)], level(vlp16))).hits
    assert hits.value[0, 0, RANGE] == pytest.approx(range_m, rel=1e-5, abs=1e-4)
    assert hits.value[0, 0, COSINE] == pytest.approx(np.cos(np.radians(angle_deg)), abs=1e-3)
    assert hits.value[0, 0, ENERGY] == pytest.approx(percent / 100 * np.cos(np.radians(angle_deg)) / range_m**2, rel=5e-3)
    assert hits.value[0, 0, RETRO] == 0.0


@given(
    range_m=st.floats(1.0, 60.0),
    sub_rays=st.sampled_from([7, 19]),
    split=st.floats(-1.0, 1.0),
    porosity=st.floats(0.0, 1.0),
    transmission=st.floats(0.0, 1.0),
)
@settings(max_examples=examples(15))
def test_no_light_is_made(vlp16, range_m, sub_rays, split, porosity, transmission):
    # Shares of the light, which are energies of white surfaces freed of range and angle, sum up to 1 at most whatever there is before a wall.
    white = Material(name="white", reflectivity=100, porosity=porosity, transmission=transmission)
    edge_m = split * 0.5 * (0.0095 + 0.003 * range_m)
    hits = workspace_of(
        still_lidar([wall(range_m, white, y=(edge_m, 60.0)), wall(range_m + 20.0, diffuse(100))], level(vlp16), sub_rays=sub_rays)
    ).hits
    count = hits.hit_count[0]
    value = hits.value[0, :count]
    shares = value[:, ENERGY] * value[:, RANGE] ** 2 / value[:, COSINE]
    reflected_and_passed = 1.0 + transmission**2  # white glass, which no rig has, both reflects all and lets light pass
    assert shares.sum() <= reflected_and_passed + 1e-6
    if transmission == 0.0:
        assert shares.sum() == pytest.approx(1.0, abs=2e-4)


@pytest.mark.parametrize("range_m", [0.3, 0.499, 119.9, 120.1])
def test_only_what_is_in_range_is_reported(vlp16, range_m):
    inside = vlp16.range_min_m <= range_m <= vlp16.range_max_m
    spec = level(vlp16)
    expected = (range_m, 100) if inside else nothing(spec)
    assert_reported([wall(range_m, diffuse(100))], spec, strongest=expected, last=expected, dual=[expected] * 2)


# The same whatever way.


@pytest.fixture(scope="module")
def furnished(vlp16):
    """A lidar with everything that the optics know, and the model's own noise."""

    def make(*, seed=9, **setting):
        leaves = DEFAULTS["leaves"]
        objects = [
            SceneObject(mesh=cylinder(30.0, 20.0, diffuse(60))),
            *(
                SceneObject(mesh=sphere(1.5, leaves, 0.05), placement=Pose(position_m=(8.0 * np.cos(turn), 8.0 * np.sin(turn), 0.5)))
                for turn in range(6)
            ),
            wall(5.0, diffuse(2, transmission=0.85), y=(-1.0, 1.0), angle_deg=20.0),
            wall(7.0, diffuse(30, porosity=0.6), y=(1.0, 4.0)),
            wall(9.0, DEFAULTS["retro_sign"], y=(4.0, 5.0), z=(0.0, 1.0)),
        ]
        optics = {
            "weather": WeatherSpec(fog_visibility_m=150.0, rain_mm_per_h=10.0, snow_mm_per_h=1.0, dust_visibility_m=900.0),
            "window": WindowSpec(
                soiling_transmission=0.95, sectors=(WindowSectorSpec(azimuth_from_deg=100.0, azimuth_to_deg=140.0, transmission=0.3),)
            ),
            "false_alarms": FalseAlarmSpec(rate_per_firing=0.01),
            "decimation": DecimationSpec(ray_step=2),
            "return_mode": "dual",
            "sub_rays": 7,
        }
        spec = dataclasses.replace(vlp16, drop_out_ratio=0.02, detector=dataclasses.replace(vlp16.detector, laser_bias_m=0.01))
        return still_lidar(objects, spec, seed=seed, **{**optics, **setting})

    return make


@compiled_only
@pytest.mark.parametrize("sub_rays", [1, 7, 19])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_fused_kernel_and_the_stages_with_any_number_of_threads_give_the_same_bytes(furnished, sub_rays, threads):
    lidar = furnished(sub_rays=sub_rays)
    renderer = CpuRenderer(threads)
    np.testing.assert_array_equal(lidar.data_packets(5, 150).payload, lidar.data_packets(5, 150, renderer).payload)
    renderer.close()


@compiled_only
def test_a_moving_room_looks_the_same_to_beams_and_single_rays(make_lidar):
    lidar = make_lidar(sub_rays=7, return_mode="dual")
    np.testing.assert_array_equal(lidar.data_packets(50, 150).payload, lidar.data_packets(50, 150, CpuRenderer()).payload)


@compiled_only
def test_packets_do_not_depend_on_batches_and_do_depend_on_the_seed(furnished):
    lidar = furnished()
    whole = lidar.data_packets(0, 90).payload
    for first, count in ((0, 1), (89, 1), (17, 40)):
        np.testing.assert_array_equal(lidar.data_packets(first, count).payload, whole[first : first + count])
    np.testing.assert_array_equal(furnished().data_packets(0, 90).payload, whole)
    other = furnished(seed=10).data_packets(0, 90).payload
    distance, others = (decode_data_packets(payload)["blocks"]["channels"]["distance"] for payload in (whole, other))
    assert np.count_nonzero(distance != others) > 0.3 * np.count_nonzero(distance)


def test_the_slow_reference_reports_the_same(vlp16):
    objects = [
        wall(5.0, diffuse(2, transmission=0.85), y=(-1.0, 1.0), angle_deg=20.0),
        wall(7.0, diffuse(30, porosity=0.6), y=(-2.0, 0.003)),
        wall(9.0, DEFAULTS["retro_sign"], z=(0.002, 1.0)),
        wall(12.0, diffuse(50)),
    ]
    lidar = still_lidar(objects, level(vlp16), return_mode="dual", sub_rays=7)
    fast = workspace_of(lidar).returns
    slow = lidar.firings(0, 1, ReferenceRenderer()).returns
    np.testing.assert_allclose(slow.range_m[:, 0], fast.range_m[:, 0], atol=1e-3)
    assert np.abs(slow.distance[:, 0].astype(int) - fast.distance[:, 0]).max() <= 1
    assert np.abs(slow.reflectivity[:, 0].astype(int) - fast.reflectivity[:, 0]).max() <= 1


def test_a_beam_without_divergence_and_window_is_one_ray_however_many_there_are(vlp16):
    objects = [wall(10.0, diffuse(50), y=(-60.0, 0.0001)), wall(20.0, diffuse(50))]
    spec = level(vlp16, beam=BeamSpec())
    one, seven = (workspace_of(still_lidar(objects, spec, sub_rays=sub_rays)) for sub_rays in (1, 7))
    np.testing.assert_array_equal(one.returns.distance, seven.returns.distance)
    assert seven.echoes[0, ECHO_ENERGY] == pytest.approx(one.echoes[0, ECHO_ENERGY])


@pytest.mark.parametrize("stream", [0, 3])
@pytest.mark.parametrize("model", ["vlp16", "hdl32e"])
def test_each_distance_is_the_echoes_range_with_the_lasers_bias_and_the_firings_own_error(model, stream):
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / f"{model}.toml"), model)
    spec = level(spec, range_noise_m=0.05, detector={"laser_bias_m": 0.02, "range_noise_weak_m": 0.03})
    objects = [wall(8.0, diffuse(30, porosity=0.6)), wall(30.0, diffuse(50))]
    lidar = still_lidar(objects, spec, return_mode="dual", seed=5, stream=stream, sub_rays=1)
    first, sequences = 390_625 * 25_000, 3  # a whole number of turns, and more than 32 bits hold
    workspace = workspace_of(lidar, sequences, first)
    returns, hits = workspace.returns, workspace.hits
    bias_m = laser_biases_m(spec, seed=5, stream=stream)
    assert np.unique(bias_m).size == len(spec.channels)
    errors = []
    for sequence, channel in np.ndindex(sequences, len(spec.channels)):
        firing = channel * sequences + sequence
        for return_number, (echo, percent) in enumerate(((1, 30), (0, 12))):
            assert returns.echo[return_number, sequence, channel] == echo
            range_m = returns.range_m[return_number, sequence, channel]
            energy = hits.value[firing, hits.what[firing, : hits.hit_count[firing], 3].tolist().index(echo), ENERGY]
            assert round(100 * energy * range_m**2) == percent
            sd_m = np.hypot(0.05, 0.03 / np.sqrt(100 * energy * range_m**2 + 1) * max(1.0, range_m / spec.detector.range_noise_onset_m))
            errors.append(normal_of(5, stream * 256 + channel, (first + sequence) * ECHO_DRAWS + echo))
            measured_m = range_m + bias_m[channel] + errors[-1] * sd_m
            assert abs(int(returns.distance[return_number, sequence, channel]) - measured_m / CODE_M) <= 0.5 + 1e-6
    assert len({round(error, 9) for error in errors}) == len(errors)


def normal_of(seed, stream, index):
    """The range error's standard normal number calculated apart: Python's integers, NumPy's functions."""
    counter = index | stream << 64 | int(Purpose.RANGE_NOISE) << 96
    words = philox_words(counter, seed)
    a, b = ((words[0] << 32 | words[1]) >> 11) * 2.0**-53, ((words[2] << 32 | words[3]) >> 11) * 2.0**-53
    return float(np.sqrt(-2 * np.log1p(-a)) * np.cos(2 * np.pi * b))


def philox_words(counter, seed):
    """Philox4x32-10 in Python's integers, from the paper."""
    words, key = [counter >> 32 * place & 0xFFFFFFFF for place in range(4)], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        low, high = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [high >> 32 ^ words[1] ^ key[0], high & 0xFFFFFFFF, low >> 32 ^ words[3] ^ key[1], low & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words
