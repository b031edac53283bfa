"""Captured backgrounds behind synthetic objects: the rules, the markers, sampling, and that what a real sensor saw comes back as sent."""

import dataclasses

import numpy as np
import pytest

from hilsim.assembly.backgrounds import build_overlay
from hilsim.emulator.families.registry import family_of
from hilsim.emulator.overlay import OverlayRule, no_overlay, sample_image, sample_turning
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.truth import BackgroundLabel, BackgroundObject, Cause, packets_with_truth
from hilsim.families.cepton.protocol.stdv import PointFlag, decode_stdv_points
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.sensor.mirror import MirrorSpec, SegmentSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.response import calibrated_ratios, linear_ratios, linear_reflectivity, reflectivity_byte
from hilsim.world.scene.background import AzimuthGrid, BackgroundMap, ImageGrid
from tests.compiled import compiled_only
from tests.renderers import CpuRenderer, ReferenceRenderer
from tests.unit.emulator.optical_scenes import diffuse, level, still_lidar, wall
from tests.unit.emulator.stages import returns_truth

GREY = diffuse(50)


def background(distance_mm, *, elevation_deg=None, columns=360, intensity=50, flags=3, grid=None, model=""):
    """A map of one distance, or of an array of them."""
    grid = grid or AzimuthGrid(columns=columns, elevation_deg=elevation_deg)
    shape = (grid.rows, grid.columns)
    return BackgroundMap(
        grid=grid,
        distance_mm=np.broadcast_to(np.asarray(distance_mm, np.uint32), shape).copy(),
        intensity=np.full(shape, intensity, np.uint16),
        flags=np.full(shape, flags, np.uint8),
        hit_count=np.zeros(shape, np.uint32),
        confidence=np.zeros(shape, np.float32),
        model=model,
    )


@pytest.fixture
def upright(vlp16):
    """A quiet VLP-16."""
    detector = dataclasses.replace(level(vlp16).detector, noise_ratio=0.0, range_noise_weak_m=0.0)
    return dataclasses.replace(level(vlp16), channels=vlp16.channels, detector=detector)


def elevations(spec):
    return tuple(sorted(channel.elevation_deg for channel in spec.channels))


def seeing(objects, spec, shown, *, rule=OverlayRule.NEAREST, is_smooth=False, **setting):
    """A still lidar with a map behind its objects."""
    return dataclasses.replace(still_lidar(objects, spec, **setting), overlay=build_overlay(shown, family_of(spec), rule=rule, is_smooth=is_smooth))


def firing_ahead(lidar):
    """Raw distances of the return(s) of packet 0's first firing, which goes along +x."""
    records = decode_data_packets(lidar.data_packets(0, 1).payload)["blocks"]["channels"][0]
    return [int(records[block, 0]["distance"]) for block in range(2 if lidar.plan.choice.size == 2 else 1)]


def truth_ahead(lidar):
    """The ground truth of the same."""
    truth = packets_with_truth(lidar, 0, 1)[1]
    row = int(np.flatnonzero((truth.sequence == 0) & (truth.channel == 0))[0])
    return int(truth.object_id[row]), int(truth.label[row]), float(truth.range_m[row])


CASES = {
    "a car before the wall hides it": (5.0, OverlayRule.NEAREST, 5.0, (0, 7)),
    "a car behind the wall is hidden": (15.0, OverlayRule.NEAREST, 10.0, (BackgroundObject.CHOSEN, BackgroundLabel.CHOSEN)),
    "no car at all": (None, OverlayRule.NEAREST, 10.0, (BackgroundObject.ALONE, BackgroundLabel.ALONE)),
    "background first before a nearer car": (5.0, OverlayRule.BACKGROUND_FIRST, 10.0, (BackgroundObject.CHOSEN, BackgroundLabel.CHOSEN)),
    "background first before a farther car": (15.0, OverlayRule.BACKGROUND_FIRST, 10.0, (BackgroundObject.CHOSEN, BackgroundLabel.CHOSEN)),
    "background first alone": (None, OverlayRule.BACKGROUND_FIRST, 10.0, (BackgroundObject.ALONE, BackgroundLabel.ALONE)),
    "synthetic only": (15.0, OverlayRule.SYNTHETIC_ONLY, 15.0, (0, 7)),
}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_chooses_between_an_object_and_a_captured_wall_at_10_m(upright, case):
    car_m, rule, range_m, owner = CASES[case]
    objects = [] if car_m is None else [wall(car_m, GREY, label=7)]
    spec = level(upright)
    lidar = seeing(objects, upright, background(10_000, elevation_deg=elevations(upright)), rule=rule)
    lidar = dataclasses.replace(lidar, setting=dataclasses.replace(lidar.setting, spec=dataclasses.replace(spec, channels=upright.channels)))
    cosine = np.cos(np.radians(upright.channels[0].elevation_deg))
    object_id, label, found_m = truth_ahead(lidar)
    assert (object_id, label) == owner
    assert found_m == pytest.approx(range_m if owner[0] >= BackgroundObject.ALONE else range_m / cosine, abs=1e-3)
    assert firing_ahead(lidar)[0] == pytest.approx(found_m / 0.002, abs=0.51)


def test_the_numbers_of_the_note_mark_backgrounds():
    assert (BackgroundObject.ALONE, BackgroundLabel.ALONE) == (888_888, 99)
    assert (BackgroundObject.CHOSEN, BackgroundLabel.CHOSEN) == (999_999, 100)


@pytest.mark.parametrize(
    ("distance_mm", "flags", "is_used"), [(100, 3, False), (101, 3, True), (199_999, 3, True), (200_000, 3, False), (10_000, 0, False)]
)
def test_a_cell_counts_between_100_mm_and_200_m_and_where_it_is_valid(upright, distance_mm, flags, is_used):
    shown = background(distance_mm, elevation_deg=elevations(upright))
    shown.distance_mm[:, 180:] = 7000  # so that something is used
    shown.flags[:, :180] = flags
    made = build_overlay(shown, family_of(upright), rule=OverlayRule.NEAREST, is_smooth=False)
    range_m, _ = sample_turning(made, 0, 100.0)
    assert range_m == (pytest.approx(distance_mm / 1000) if is_used else np.inf)


def test_a_ghost_where_a_cell_is_invalid_is_synthetic_only(upright):
    shown = background(10_000, elevation_deg=elevations(upright), flags=0)
    shown.flags[:, 180:] = 3  # behind the sensor
    lidar = seeing([wall(15.0, GREY, label=7)], upright, shown)
    assert truth_ahead(lidar)[:2] == (0, 7)


def test_light_that_passes_a_fence_meets_the_background_behind_it(upright):
    fence = wall(5.0, diffuse(50, porosity=0.5))
    spec = dataclasses.replace(upright, channels=level(upright).channels)
    single = dataclasses.replace(still_lidar([fence], spec, return_mode="dual"))
    shown = background(10_000, elevation_deg=tuple(np.arange(16) * 1e-6))  # all channels level, as the test's sensor
    lidar = dataclasses.replace(single, overlay=build_overlay(shown, family_of(spec), rule=OverlayRule.NEAREST, is_smooth=False))
    assert firing_ahead(lidar) == [5000, 2500]  # last, strongest
    truth = packets_with_truth(lidar, 0, 1)[1]
    first = np.flatnonzero((truth.sequence == 0) & (truth.channel == 0))
    assert truth.object_id[first].tolist() == [BackgroundObject.ALONE, 0]


@compiled_only
def test_sensors_see_the_same_with_a_captured_room_as_with_the_room_itself(upright):
    """A room whose wall is a sphere: the captured map is exact whatever the cell, so ranges must be those of the merged scene."""
    from hilsim.world.scene.primitives import sphere  # noqa: PLC0415
    from hilsim.world.scene.world import SceneObject  # noqa: PLC0415

    room = SceneObject(mesh=sphere(12.0, GREY, 0.0005))
    car = wall(6.0, GREY, y=(-1.5, 1.5), z=(-1.0, 1.0), angle_deg=20.0)
    merged = still_lidar([room, car], upright)
    shown = background(12_000, elevation_deg=elevations(upright))
    overlaid = seeing([car], upright, shown)
    merged_codes, codes = (
        decode_data_packets(lidar.data_packets(0, 76).payload)["blocks"]["channels"]["distance"].astype(int) for lidar in (merged, overlaid)
    )
    assert np.abs(merged_codes - codes).max() <= 1
    assert 5000 < np.count_nonzero(codes == 6000) < codes.size - 500


@compiled_only
@pytest.mark.parametrize("is_smooth", [False, True])
def test_stage_by_stage_and_in_one_kernel_the_bytes_and_the_truth_are_the_same(upright, is_smooth):
    rng = np.random.default_rng(3)
    shown = background(rng.integers(2000, 90_000, (16, 360)), elevation_deg=elevations(upright))
    objects = [wall(20.0, diffuse(40, porosity=0.4)), wall(40.0, GREY, angle_deg=30.0)]
    lidar = seeing(objects, upright, shown, is_smooth=is_smooth, return_mode="dual", sub_rays=7)
    whole, truth = packets_with_truth(lidar, 5, 8)
    for renderer in (CpuRenderer(), CpuRenderer(threads=2)):
        np.testing.assert_array_equal(lidar.data_packets(5, 8, renderer).payload, whole.payload)
        for name, mine, theirs in zip(truth._fields, truth, returns_truth(lidar, 5, 8, renderer), strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
    np.testing.assert_array_equal(lidar.data_packets(7, 2).payload, whole.payload[2:4])
    slow = decode_data_packets(lidar.data_packets(5, 1, ReferenceRenderer()).payload)["blocks"]["channels"]["distance"].astype(int)
    fast = decode_data_packets(whole.payload[:1])["blocks"]["channels"]["distance"].astype(int)
    assert np.count_nonzero(np.abs(slow - fast) > 1) <= 2


def test_a_faint_background_is_reported_because_a_real_sensor_saw_it_and_lost_in_fog(upright):
    spec = dataclasses.replace(upright, detector=dataclasses.replace(upright.detector, threshold_reflectivity=0.5))
    shown = background(90_000, elevation_deg=elevations(upright), intensity=3)
    assert firing_ahead(seeing([], spec, shown)) == [45_000]
    foggy = packets_with_truth(seeing([], spec, shown, weather=WeatherSpec(fog_visibility_m=50.0)), 0, 1)[1]
    assert set(foggy.cause.tolist()) <= {Cause.WEATHER}  # the fog itself comes back, the wall does not


def test_a_background_has_no_surface_to_be_slanted_and_is_caused_by_one(upright):
    truth = packets_with_truth(seeing([], upright, background(10_000, elevation_deg=elevations(upright))), 0, 1)[1]
    assert truth.range_m.size == 384
    assert np.isnan(truth.incidence_deg).all()
    assert set(truth.material.tolist()) == {-1}
    assert set(truth.cause.tolist()) == {Cause.SURFACE}
    assert set(truth.sub_rays.tolist()) == {1}


@pytest.mark.parametrize("range_m", [0.6, 7.0, 99.0])
def test_every_reflectivity_byte_comes_back_as_it_was_captured(range_m):
    for code, (turning, swept) in enumerate(zip(calibrated_ratios(), linear_ratios(), strict=True)):
        energy = float(np.float32(turning)) / range_m**2
        assert reflectivity_byte(energy, range_m, code > 100, 100) == code
        assert linear_reflectivity(float(np.float32(swept)) / range_m**2 * range_m**2) == code


# Sampling.


def test_a_turning_sensor_takes_the_cell_that_its_azimuth_lies_in_from_the_row_of_its_channel(upright):
    distance = 1000 * (1 + np.arange(16))[:, None] + np.arange(360)[None, :]
    made = build_overlay(background(distance, elevation_deg=elevations(upright)), family_of(upright), rule=OverlayRule.NEAREST, is_smooth=False)
    ring = np.argsort(np.argsort([channel.elevation_deg for channel in upright.channels]))
    for channel in (0, 1, 7, 15):
        for azimuth_cdeg, column in ((0.0, 0), (99.99, 0), (100.0, 1), (35_999.9, 359), (36_050.0, 0), (-1.0, 359)):
            assert sample_turning(made, channel, azimuth_cdeg)[0] == pytest.approx(1 + ring[channel] + column / 1000)


def image_map(distance, **size):
    distance = np.asarray(distance)
    grid = ImageGrid(columns=distance.shape[1], rows=distance.shape[0], **{"x_min": -1.0, "x_max": 1.0, "z_min": -0.5, "z_max": 0.5} | size)
    return background(distance, grid=grid)


@pytest.fixture(scope="module")
def swept():
    """A quiet mirror sensor of two lasers."""
    return CeptonSpec(
        family="cepton",
        model="test",
        model_code=24,
        mac_prefix="18:12:12",
        segments=(SegmentSpec(image_x=-0.4, image_z=0.0), SegmentSpec(image_x=0.4, image_z=0.0)),
        mirror=MirrorSpec(x_hz=5.0, x_amplitude=0.4, z_hz=170.0, z_amplitude=0.3),
        firing_ns=8000,
        sequence_ns=16_000,
        range_unit_mm=1.0,
        range_min_m=0.5,
        range_max_m=250.0,
        range_noise_m=0.0,
        data_latency_us=0.0,
    )


def test_an_image_sensor_takes_the_cell_of_the_notes_formula_and_nothing_beyond_the_edges(swept):
    made = build_overlay(image_map(1000 * np.arange(1, 13).reshape(3, 4)), family_of(swept), rule=OverlayRule.NEAREST, is_smooth=False)
    for x, z in ((-1.0, -0.5), (-0.4, -0.1), (0.3, 0.0), (0.99, 0.49), (1.0, 0.5)):
        column, row = int((x + 1.0) / 2.0 * 3), int((z + 0.5) * 2)
        assert sample_image(made, x, z)[0] == pytest.approx(1 + 4 * row + column)
    for x, z in ((-1.01, 0.0), (1.01, 0.0), (0.0, -0.51), (0.0, 0.51)):
        assert sample_image(made, x, z) == (np.inf, 0.0)


def test_an_image_sensor_reports_points_at_the_captured_range_before_and_behind_an_object(swept):
    lidar = dataclasses.replace(
        still_lidar([wall(8.0, GREY, y=(-60.0, 0.0))], swept),
        overlay=build_overlay(image_map(np.full((40, 60), 9000)), family_of(swept), rule=OverlayRule.NEAREST, is_smooth=False),
    )
    points = decode_stdv_points(lidar.data_packets(40, 1).payload[0].tobytes())
    range_m = np.sqrt(sum((points[axis] * 0.005) ** 2 for axis in "xyz"))
    assert not (points["flags"] & PointFlag.NO_RETURN).any()
    right = points["x"] > 5  # the wall is where y < 0 in the world: to the right
    np.testing.assert_allclose(range_m[~right], 9.0, atol=0.0044)
    depth_m = points["y"][right] * 0.005
    nearer = depth_m < 8.0 - 0.006
    np.testing.assert_allclose(depth_m[~nearer], 8.0, atol=0.006)
    np.testing.assert_allclose(range_m[right][nearer], 9.0, atol=0.0044)


def flat_wall(columns, spec_range_m=10.0):
    """Range (mm) along each cell's middle of a wall ahead, of the level row of an azimuth grid."""
    azimuth = np.radians((np.arange(columns) + 0.5) * 360.0 / columns)
    return 1000 * spec_range_m / np.clip(np.cos(azimuth), 1e-3, None)


def test_edge_aware_sampling_of_a_flat_wall_is_nearer_to_it_than_the_cell_alone(upright):
    distance = np.tile(np.rint(np.clip(flat_wall(1800), 0, 150_000)), (16, 1))
    angles = np.linspace(-55.0, 55.0, 2001)
    true_m = 10.0 / np.cos(np.radians(angles))
    errors = {}
    for is_smooth in (False, True):
        made = build_overlay(
            background(distance, elevation_deg=elevations(upright), columns=1800), family_of(upright), rule=OverlayRule.NEAREST, is_smooth=is_smooth
        )
        errors[is_smooth] = np.abs([sample_turning(made, 1, 100.0 * angle)[0] for angle in angles] - true_m).max()
    assert errors[True] < 0.0015
    assert errors[False] > 0.04


def test_edge_aware_sampling_makes_nothing_up_at_an_edge_or_beside_a_hole(upright):
    distance = np.full((16, 360), 10_000)
    distance[:, 90:180] = 20_000
    distance[:, 180:] = 0
    made = build_overlay(background(distance, elevation_deg=elevations(upright)), family_of(upright), rule=OverlayRule.NEAREST, is_smooth=True)
    found = {round(sample_turning(made, 0, azimuth_cdeg)[0], 6) for azimuth_cdeg in range(0, 36_000, 7)}
    assert found == {10.0, 20.0, np.inf}


def test_edge_aware_sampling_of_an_image_is_flat_on_a_flat_wall(swept):
    x, z = (np.linspace(low, high, count + 1)[:-1] for low, high, count in ((-1.0, 1.0, 200), (-0.5, 0.5, 100)))
    middle_x, middle_z = x + 1.0 / 199 * 1.0, z + 0.5 / 99
    grid = ImageGrid(columns=200, rows=100, x_min=-1.0, x_max=1.0, z_min=-0.5, z_max=0.5)
    across = -1.0 + (np.arange(200) + 0.5) * 2.0 / 199
    up = -0.5 + (np.arange(100) + 0.5) / 99
    distance = np.rint(10_000 * np.sqrt(1.0 + across[None, :] ** 2 + up[:, None] ** 2))
    made = build_overlay(background(distance, grid=grid), family_of(swept), rule=OverlayRule.NEAREST, is_smooth=True)
    assert middle_x.size == 200
    assert middle_z.size == 100
    rng = np.random.default_rng(1)
    for image_x, image_z in rng.uniform((-0.97, -0.47), (0.97, 0.47), (300, 2)):
        assert sample_image(made, image_x, image_z)[0] == pytest.approx(10.0 * np.sqrt(1.0 + image_x**2 + image_z**2), abs=0.0015)


# What does not belong together.


def test_a_background_of_another_model_or_kind_or_without_anything_is_refused(upright, swept):
    shown = background(10_000, elevation_deg=elevations(upright), model="HDL-32E")
    with pytest.raises(ValueError, match="a background must be of the sensor's model VLP-16, got one of a HDL-32E"):
        build_overlay(shown, family_of(upright), rule=OverlayRule.NEAREST, is_smooth=False)
    with pytest.raises(ValueError, match="a background for a test must have cells of image x and z, got the other kind"):
        build_overlay(background(10_000, elevation_deg=elevations(upright)), family_of(swept), rule=OverlayRule.NEAREST, is_smooth=False)
    with pytest.raises(
        ValueError, match=r"must be of the sensor's model VLP-16, got one of a test; .* azimuth and channel, .*; a background must have a valid cell"
    ):
        build_overlay(dataclasses.replace(image_map(np.zeros((2, 2))), model="test"), family_of(upright), rule=OverlayRule.NEAREST, is_smooth=False)
    with pytest.raises(ValueError, match=r"rows of a background for a VLP-16 must be its 16 elevations from -15 to 15 deg, got 2 from -1 to 1 deg"):
        build_overlay(background(10_000, elevation_deg=(-1.0, 1.0)), family_of(upright), rule=OverlayRule.NEAREST, is_smooth=False)


def test_a_sensor_without_a_background_is_synthetic_only(upright):
    assert no_overlay().rule == OverlayRule.SYNTHETIC_ONLY
    assert LidarSetting(name="a", stream=0, spec=upright).spec is upright
    assert still_lidar([wall(5.0, GREY)], upright).plan.rare.overlay.rule == OverlayRule.SYNTHETIC_ONLY
