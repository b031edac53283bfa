"""The emulated Ouster: points where surfaces are, columns at the encoder's angles, and packets as its settings have them."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.config.profiles import profiles_directory, read_profile
from hilsim.config.sensor_profiles import parse_profile
from hilsim.emulator.batch import Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.truth import packets_with_truth
from hilsim.families.ouster.protocol.geometry import column_angles_rad, points_m
from hilsim.families.ouster.protocol.imu import decode_imu_packets
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets, lidar_layout
from hilsim.families.ouster.setting import OusterSetting
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec, SunSpec
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import ClockSetting
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import fixed_track, linear_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import COMPILED, compiled_only
from tests.lidars import lidar_setting
from tests.renderers import CpuRenderer

UTC_EPOCH_NS = 1_767_225_600_250_000_000
FRAME_NS, PACKETS = 100_000_000, 64
DUAL = "RNG19_RFL8_SIG16_NIR16_DUAL"
LOW = "RNG15_RFL8_NIR8"
PLASTER, FENCE = Material(name="plaster", reflectivity=50), Material(name="fence", reflectivity=50, porosity=0.5, gap_m=0.0)
ROOM = [
    ((8.5, 0.0, 1.5), (1.0, 14.0, 5.0)),
    ((-6.5, 0.0, 1.5), (1.0, 14.0, 5.0)),
    ((0.0, 5.5, 1.5), (18.0, 1.0, 5.0)),
    ((0.0, -4.5, 1.5), (18.0, 1.0, 5.0)),
    ((0.0, 0.0, -1.5), (18.0, 14.0, 1.0)),
]
"""Centres and sizes of boxes about a place that is 8 m long to the front, 6 m to the back, 5 m to the left and 4 m to the right, 1 m above a floor."""


def of_model(name="os1-32", **changes):
    """Specification of a shipped model without noise."""
    path = profiles_directory() / "sensors" / f"{name}.toml"
    return parse_profile(read_profile(path) | {"range_noise_m": 0.0, "detector": {}} | changes, name)


def world_of(boxes, material=PLASTER):
    return build_world([SceneObject(mesh=box(size, material), placement=Pose(position_m=place)) for place, size in boxes])


def ouster(boxes=ROOM, spec=None, track=None, world=None, setup=None, **settings):
    """An Ouster of 32 beams in a room, with these settings of its interface."""
    setting = lidar_setting(spec=spec or of_model(), **{"unit": "ideal", "sub_rays": 1} | (setup or {}), ouster=OusterSetting(**settings))
    flow = Flow(name="lidar", source="127.0.1.201", source_port=7502, destination="127.0.0.1", destination_port=7502)
    return LidarEmulator(
        setting=setting,
        world=world or world_of(boxes),
        platform=build_platform(track or fixed_track(Pose())),
        seed=5,
        utc_epoch_ns=UTC_EPOCH_NS,
        data_flow=flow,
        position_flow=flow,
    )


def read(lidar, first, count):
    """Packets of a lidar as its own metadata describe them."""
    metadata = lidar.setting.family.metadata(0, destination="127.0.0.1", data_port=None, position_port=None)
    layout = lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)
    batch = lidar.data_packets(first, count)
    assert set(batch.size.tolist()) == {layout.size}
    return metadata, decode_lidar_packets(batch.payload, metadata.profile, layout)


def seen(lidar, first=0, count=PACKETS):
    """``float64[n, 3]``: points of packets in the sensor frame."""
    metadata, packets = read(lidar, first, count)
    angles = column_angles_rad(packets.columns["measurement_id"].astype(np.int64), metadata.columns_per_frame)
    return points_m(packets.pixels.range_mm[:, 0], angles, metadata.beams)


def outside_m(points, boxes):
    """Distance of points from the nearest face of boxes: inside and outside alike."""
    gaps = []
    for place, size in boxes:
        beyond = np.abs(points - place) - np.array(size) / 2.0
        gaps.append(np.where((beyond < 0.0).all(axis=-1), beyond.max(axis=-1), np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)))
    return np.min(np.abs(gaps), axis=0)


@compiled_only
@pytest.mark.parametrize("name", ["os0-32", "os1-32", "os2-32"])
def test_every_point_of_a_turn_lies_on_a_surface_and_ahead_is_ahead(name):
    points = seen(ouster(spec=of_model(name)))
    hit = ~np.isnan(points[..., 0])
    assert hit.mean() > 0.6
    assert outside_m(points[hit], ROOM).max() < 0.0006  # half a millimetre of range, and rounding
    ahead = points[32, :, :][hit[32]]  # column 512 of 1024 looks away from the connector
    assert ahead[:, 0].min() > 1.0  # the floor 1 m below
    assert points[16, 0][hit[16, 0]][:, 1].min() > 1.0  # the head turns clockwise: from the back over the left side
    heights = points[32, 0, :, 2]
    assert heights[np.flatnonzero(hit[32, 0])[0]] > heights[np.flatnonzero(hit[32, 0])[-1]]


@compiled_only
def test_a_mounted_sensor_that_moves_sees_each_column_from_where_it_is_then():
    keys = np.array([[0.0, 0.0, 0.0], [2.0, -1.0, 0.3]])
    level = np.tile((1.0, 0.0, 0.0, 0.0), (2, 1))
    track = linear_track(np.array([0, FRAME_NS]), keys, level)
    mounted = SensorSetup(mount_position_m=(0.3, 0.2, 0.1), mount_rotation_deg=(4.0, -3.0, 100.0))
    lidar = ouster(track=track, setup={"mount_position_m": mounted.mount_position_m, "mount_rotation_deg": mounted.mount_rotation_deg})
    points = seen(lidar).reshape(1024, 32, 3)
    pose = mounting(mounted.mount_position_m, mounted.mount_rotation_deg)  # its frame has x ahead, as the body's
    times = np.arange(1024) * 97_656.25 / FRAME_NS
    in_world = np.array([[pose.transform(tuple(p)) for p in column] for column in points]) + (times[:, None] * keys[1])[:, None, :]
    hit = ~np.isnan(in_world[..., 0])
    assert hit.mean() > 0.6
    assert outside_m(in_world[hit], ROOM).max() < 0.0008


@compiled_only
@pytest.mark.parametrize(("mode", "column_ns"), [("512x10", 195_312.5), ("1024x10", 97_656.25), ("1024x20", 48_828.125), ("2048x10", 48_828.125)])
def test_columns_are_numbered_and_stamped_as_the_mode_says(mode, column_ns):
    lidar = ouster(lidar_mode=mode, first_frame=65_535)
    columns = int(mode.partition("x")[0])
    _, packets = read(lidar, columns // 16 - 2, 4)
    assert packets.headers["frame_id"].tolist() == [65_535, 65_535, 0, 0]
    assert packets.columns["measurement_id"].ravel().tolist() == [*range(columns - 32, columns), *range(32)]
    assert set(packets.columns["status"].ravel().tolist()) == {1}
    stamps = packets.columns["timestamp_ns"].astype(np.int64).ravel()
    assert not (stamps % 8).any()
    even = (columns - 32 + np.arange(64)) * column_ns
    assert np.abs(stamps - even).max() < 8_000  # five standard deviations of the encoder's oscillation
    # After ten years columns are still where they were: nothing accumulates.
    late = 10 * 365 * 86_400 * round(1e9 / column_ns) // 16
    assert lidar.deadlines_ns(late, 1)[0] - lidar.deadlines_ns(0, 1)[0] == int(late * 16 * column_ns)


@compiled_only
def test_steps_from_column_to_column_vary_as_those_of_real_units():
    _, packets = read(ouster(), 0, PACKETS)
    steps_ns = np.diff(packets.columns["timestamp_ns"].astype(np.int64).ravel())
    assert 1_400 < steps_ns.std() < 1_900  # of public captures at 1024x10
    assert steps_ns.min() > 92_400
    assert steps_ns.max() < 102_800


def test_stamps_of_older_firmware_are_whole_tens_of_nanoseconds_and_follow_utc_where_they_are_to():
    _, packets = read(ouster(firmware="2.3.1", timestamp_mode="TIME_FROM_PTP_1588", spec=of_model(stamp_jitter_us=0.0)), 3, 1)
    stamps = packets.columns["timestamp_ns"].astype(np.int64).ravel()
    assert not (stamps % 10).any()
    np.testing.assert_allclose(stamps - UTC_EPOCH_NS, (48 + np.arange(16)) * 97_656.25, atol=10)
    _, packets = read(ouster(timestamp_mode="TIME_FROM_SYNC_PULSE_IN", spec=of_model(stamp_jitter_us=0.0)), 0, 1)
    assert abs(int(packets.columns["timestamp_ns"][0, 0]) - 250_000_000) <= 8  # from the pulse before the first column on


@compiled_only
@pytest.mark.parametrize("angle_deg", [0.0, 90.0, 225.0])
def test_a_locked_head_passes_its_angle_at_the_second(angle_deg):
    lidar = ouster(timestamp_mode="TIME_FROM_PTP_1588", spec=of_model(stamp_jitter_us=0.0), setup={"phase_lock_deg": angle_deg})
    metadata, packets = read(lidar, 0, 10 * PACKETS)
    stamps = packets.columns["timestamp_ns"].astype(np.int64).ravel()
    second = np.flatnonzero(np.diff(stamps // 10**9))
    assert second.size == 1
    column = int(packets.columns["measurement_id"].ravel()[second[0] + 1])
    turned_deg = np.degrees(column_angles_rad(column, 1024))
    assert abs((turned_deg - angle_deg + 180.0) % 360.0 - 180.0) <= 0.36
    assert metadata.settings["phase_lock_offset"] == round(angle_deg * 1000)
    assert metadata.settings["phase_lock_enable"] is True


@compiled_only
@pytest.mark.parametrize(("window", "sent", "inside"), [((90_000, 180_000), range(32, 49), range(512, 769)), ((300_000, 60_000), None, None)])
def test_packets_outside_the_window_are_not_sent_and_columns_outside_are_empty(window, sent, inside):
    lidar = ouster(azimuth_window_mdeg=window)
    first, last = lidar.setting.family.setting.column_window
    wrapped = first > last
    inside = set(inside) if inside else {*range(first, 1024), *range(last + 1)}
    per_turn = len(lidar.plan.own.slots)
    _, packets = read(lidar, 0, 2 * per_turn)
    ids = packets.columns["measurement_id"]
    numbers = sorted({each // 16 for each in inside})
    assert (ids[:, 0] // 16).tolist() == numbers * 2
    assert sent is None or numbers == list(sent)
    assert wrapped or numbers[0] == first // 16
    assert packets.headers["frame_id"].tolist() == [0] * per_turn + [1] * per_turn
    is_inside = np.isin(ids, list(inside))
    assert (packets.columns["status"] == is_inside).all()
    for values in packets.pixels:
        assert not values.transpose(0, 2, 1, 3)[~is_inside].any()
    assert packets.pixels.near_ir.transpose(0, 2, 1, 3)[is_inside].all()
    steps = np.diff(packets.columns["timestamp_ns"][:, 0].astype(np.int64))
    assert steps.max() > 1_600_000
    for start_ns in range(0, 2 * FRAME_NS, 7_654_321):
        packet = lidar.first_data_packet(start_ns)
        due = lidar.deadlines_ns(max(packet - 1, 0), 2)
        assert due[-1 if packet else 0] >= start_ns
        assert packet == 0 or due[0] < start_ns


@compiled_only
def test_a_second_return_is_another_echo_or_zero_and_the_order_is_as_set():
    boxes = [((6.0, 0.0, 0.0), (0.01, 20.0, 20.0)), ((9.5, 0.0, 0.0), (1.0, 40.0, 40.0))]
    world = build_world(
        [
            SceneObject(mesh=box(boxes[0][1], FENCE), placement=Pose(position_m=boxes[0][0])),
            SceneObject(mesh=box(boxes[1][1], Material(name="white", reflectivity=100)), placement=Pose(position_m=boxes[1][0])),
        ]
    )
    found = {}
    for order in ("STRONGEST_TO_WEAKEST", "NEAREST_TO_FARTHEST", "FARTHEST_TO_NEAREST"):
        _, packets = read(ouster(world=world, udp_profile_lidar=DUAL, return_order=order), 20, 24)
        first, second = packets.pixels.range_mm[:, 0].astype(int), packets.pixels.range_mm[:, 1].astype(int)
        both = second > 0
        assert both.any()
        assert (first[both] > 0).all()
        assert not (packets.pixels.signal[:, 1][~both]).any()
        assert not (packets.pixels.reflectivity[:, 1][~both]).any()
        found[order] = first, second, both, packets.pixels.signal
    first, second, both, signal = found["STRONGEST_TO_WEAKEST"]
    assert (signal[:, 0][both] > signal[:, 1][both]).mean() > 0.98  # photons are counted with noise
    near_first, near_second, _, _ = found["NEAREST_TO_FARTHEST"]
    assert (near_first[both] < near_second[both]).all()
    far_first, far_second, _, _ = found["FARTHEST_TO_NEAREST"]
    assert (far_first[both] == near_second[both]).all()
    assert (far_second[both] == near_first[both]).all()
    np.testing.assert_array_equal(np.maximum(first, second), np.maximum(near_first, near_second))


@compiled_only
def test_signal_falls_with_the_square_of_the_range_and_every_pixel_has_ambient_light():
    spec = of_model(photons={"signal": 1e6, "signal_near_m": 0.0, "near_ir_noise": 0.0})
    means = []
    for away in (10.0, 20.0):
        _, packets = read(ouster([((away + 0.5, 0.0, 0.0), (1.0, 1.0, 1.0))], spec=spec), 30, 2)
        hit = packets.pixels.range_mm[:, 0] > 0
        assert hit.any()
        assert not hit.all()
        means.append(packets.pixels.signal[:, 0][hit].mean())
        empty = packets.pixels.signal[:, 0][~hit]
        assert empty.min() >= 1
        assert empty.max() < 20
        assert packets.pixels.near_ir.min() >= 300
    assert means[0] / means[1] == pytest.approx(4.0, rel=0.02)
    assert means[0] == pytest.approx(1e6 * 0.5 / 100.0, rel=0.02)


@compiled_only
def test_reflectivity_is_made_of_the_photons_and_near_targets_give_no_more_of_them():
    spec = of_model(photons={"signal": 40_000.0, "signal_near_m": 12.0})
    _, packets = read(ouster([((30.5, 0.0, 0.0), (1.0, 3.0, 3.0))], spec=spec), 30, 3)
    hit = packets.pixels.range_mm[:, 0] > 0
    byte, signal = packets.pixels.reflectivity[:, 0][hit].astype(float), packets.pixels.signal[:, 0][hit].astype(float)
    range_m = packets.pixels.range_mm[:, 0][hit] / 1000.0 - 0.0167
    assert hit.sum() > 50
    np.testing.assert_allclose(byte, signal * range_m**2 / 400.0, atol=0.6)
    assert byte.std() == pytest.approx(50.0 / np.sqrt(40_000.0 * 0.5 / 30.0**2), rel=0.3)  # of 22 photons
    near = []
    for away in (5.0, 10.0):
        _, packets = read(ouster([((away + 0.5, 0.0, 0.0), (1.0, 2.0, 2.0))], spec=spec), 30, 3)
        hit = packets.pixels.range_mm[:, 0] > 0
        near.append(packets.pixels.signal[:, 0][hit].mean())
        assert packets.pixels.reflectivity[:, 0][hit].mean() == pytest.approx(50.0, abs=1.0)
    assert near[0] == pytest.approx(near[1], rel=0.05)


@compiled_only
def test_packets_are_the_same_whether_hits_of_all_rays_are_stored_or_of_axes_alone():
    boxes = [*ROOM, ((3.0, 1.0, 0.5), (0.1, 0.3, 2.0)), ((4.0, -1.0, 0.5), (0.2, 0.2, 2.0))]
    world = build_world(
        [SceneObject(mesh=box(size, FENCE if place[0] == 4.0 else PLASTER), placement=Pose(position_m=place)) for place, size in boxes]
    )
    lidar = ouster(world=world, setup={"sub_rays": 7})
    np.testing.assert_array_equal(lidar.data_packets(0, PACKETS).payload, lidar.data_packets(0, PACKETS, CpuRenderer()).payload)


@compiled_only
def test_a_wall_that_faces_the_sun_is_brighter_in_the_near_infrared_than_one_that_does_not():
    spec = of_model(photons={"near_ir_floor": 100.0, "near_ir_sky": 400.0, "near_ir_sun": 1000.0, "near_ir_noise": 0.0})
    # Azimuth counts from north, +y: at 90 degrees the sun is in the east, +x, and shines on the wall behind.
    low_sun = FalseAlarmSpec(sun=SunSpec(azimuth_deg=90.0, elevation_deg=0.001))
    lidar = ouster(spec=spec, setup={"false_alarms": low_sun})
    _, packets = read(lidar, 0, PACKETS)
    near_ir = packets.pixels.near_ir[:, 0]
    middle = 15
    assert near_ir[0, 0, middle] == 100 + (400 + 1000) // 2
    assert near_ir[32, 0, middle] == 100 + 400 // 2
    night = ouster(spec=spec, setup={"false_alarms": FalseAlarmSpec(sun=SunSpec(elevation_deg=-20.0))})
    _, packets = read(night, 0, 1)
    assert packets.pixels.near_ir[0, 0, 0, middle] == 100 + 400 // 2


def test_coarse_profiles_report_ranges_in_steps_of_eight_millimetres():
    count = PACKETS if COMPILED else 2
    _, packets = read(ouster(udp_profile_lidar=LOW), 0, count)
    hit = packets.pixels.range_mm[:, 0] > 0
    assert not (packets.pixels.range_mm % 8).any()
    points = seen(ouster(udp_profile_lidar=LOW), 0, count)
    assert outside_m(points[hit], ROOM).max() < 0.0042


def test_inertial_packets_feel_gravity_and_turns_at_a_hundred_hertz():
    tilted = {"mount_rotation_deg": (0.0, 90.0, 0.0)}
    level = ouster().position_span(0, FRAME_NS)
    assert level.size.tolist() == [48] * 10
    packets = decode_imu_packets(level.payload)
    assert np.diff(packets["diagnostic_ns"].astype(np.int64)).tolist() == [10_000_000] * 9
    np.testing.assert_allclose((packets["accelerometer_ns"] - packets["diagnostic_ns"]).astype(int), 213_920, atol=8)
    np.testing.assert_allclose((packets["gyroscope_ns"] - packets["diagnostic_ns"]).astype(int), 435_140, atol=8)
    np.testing.assert_allclose(packets["acceleration_g"], np.tile([0.0, 0.0, 1.0], (10, 1)), atol=1e-6)
    assert not packets["rate_dps"].any()
    down = decode_imu_packets(ouster(setup=tilted).position_span(0, FRAME_NS).payload)
    np.testing.assert_allclose(down["acceleration_g"], np.tile([-1.0, 0.0, 0.0], (10, 1)), atol=3e-4)
    quarter = np.array([[1.0, 0.0, 0.0, 0.0], [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]])
    turning = linear_track(np.array([0, 10**9]), np.zeros((2, 3)), quarter)
    rates = decode_imu_packets(ouster(track=turning).position_span(3 * FRAME_NS, 4 * FRAME_NS).payload)["rate_dps"]
    np.testing.assert_allclose(rates, np.tile([0.0, 0.0, 90.0], (10, 1)), atol=0.3)


def test_inertial_packets_leave_after_their_readings_and_lidar_packets_later_after_their_columns():
    """The gyroscope is read 435 us after the first stamp."""
    lidar = ouster(lidar_mode="512x10")
    inertial, columns = lidar.position_span(0, FRAME_NS), lidar.data_packets(0, 2)
    assert np.abs(inertial.deadline_ns - np.arange(len(inertial.size)) * 10_000_000 - 500_000).max() < 1000
    assert np.abs(columns.deadline_ns - np.arange(1, 3) * 3_125_000 - 8_800_000).max() < 1000


@pytest.mark.extended
@compiled_only
@pytest.mark.parametrize("profile", ["LEGACY", DUAL, LOW, "FUSA_RNG15_RFL8_NIR8_DUAL"])
def test_any_stretch_is_the_same_bytes_and_each_row_of_truth_is_a_pixel(profile):
    lidar = ouster(udp_profile_lidar=profile, spec=replace(of_model(), range_noise_m=0.02))
    whole = lidar.data_packets(60, 8)
    np.testing.assert_array_equal(lidar.data_packets(63, 2).payload, whole.payload[3:5])
    np.testing.assert_array_equal(lidar.data_packets(60, 8, CpuRenderer()).payload, whole.payload)
    batch, truth = packets_with_truth(lidar, 60, 8)
    np.testing.assert_array_equal(batch.payload, whole.payload)
    _, packets = read(lidar, 60, 8)
    returns = packets.pixels.range_mm.shape[1]
    at = truth.packet - 60, truth.record % returns, truth.block.astype(int), truth.record // returns
    np.testing.assert_array_equal(packets.pixels.range_mm[at], truth.distance)
    np.testing.assert_array_equal(packets.pixels.reflectivity[at], truth.reflectivity)
    np.testing.assert_array_equal(truth.record // returns, truth.channel)
    assert truth.packet.size == (packets.pixels.range_mm > 0).sum()
    reported_m = truth.range_m + truth.noise_m + truth.bias_m + truth.correction_m
    np.testing.assert_allclose(reported_m, truth.distance / 1000.0, atol=1e-9)


def test_a_setting_of_another_family_and_each_contradiction_are_faults_reported_at_once():
    setup = {"return_mode": "dual", "rotation_rate_rpm": 600, "phase_lock_deg": 10.0, "clock": ClockSetting(sync="pps")}
    with pytest.raises(ValueError, match="return_mode must not be given") as fault:
        ouster(setup=setup)
    assert all(part in str(fault.value) for part in ("rotation_rate_rpm", "phase_lock_deg", "clock.sync"))
    with pytest.raises(ValueError, match="lidar_mode must be one of") as fault:
        OusterSetting(lidar_mode="1000x10", signal_multiplier=5, firmware="4.0.0", azimuth_window_mdeg=(5, 5), serial=-1)
    assert all(part in str(fault.value) for part in ("signal_multiplier", "firmware", "azimuth_window_mdeg", "serial"))
    with pytest.raises(ValueError, match="azimuth_window_mdeg must be at most 180000 wide beside signal_multiplier 2"):
        OusterSetting(signal_multiplier=2)
    with pytest.raises(ValueError, match="ouster must not be given for a VLP-16"):
        lidar_setting(spec=parse_profile(read_profile(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16"), ouster=OusterSetting())


FORMS = [
    {"udp_profile_lidar": DUAL, "return_order": "FARTHEST_TO_NEAREST", "azimuth_window_mdeg": (179_000, 181_000)},
    {"udp_profile_lidar": "LEGACY", "firmware": "2.3.1"},
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["udp_profile_lidar"])
def test_a_packet_has_a_pixel_for_each_beam_that_sees_something_and_ambient_light_for_all(form):
    lidar = ouster([((6.0, 0.0, 0.0), (0.01, 3.0, 0.4)), ((9.5, 0.0, 0.0), (1.0, 4.0, 1.0))], **form)
    at = 0 if "azimuth_window_mdeg" in form else 32
    metadata, packets = read(lidar, at, 1)
    ids = packets.columns["measurement_id"][0]
    assert ids.tolist() == list(range(ids[0], ids[0] + 16))
    valid = packets.columns["status"][0] & 1 == 1
    first, last = metadata.window
    assert valid.tolist() == [first <= column <= last for column in ids]
    near_ir = packets.pixels.near_ir[0, 0]
    assert near_ir[valid].all()
    assert not near_ir[~valid].any()
    assert (packets.pixels.range_mm[0, 0][valid] > 0).any()
    assert not packets.pixels.range_mm[0][:, ~valid].any()
