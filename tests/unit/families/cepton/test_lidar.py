"""The emulated Cepton-style lidar: points where trigonometry says, each at its own time, in packets that keep the format's promises."""

import dataclasses

import numpy as np
import pytest

from hilsim.emulator.firing import fire
from hilsim.emulator.workspace import allocate_workspace
from hilsim.families.cepton.protocol.info import read_info_packet
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, PointFlag, point_times_us
from hilsim.families.cepton.setting import CeptonSetting
from hilsim.sensor.mirror import MirrorSpec, SegmentSpec
from hilsim.sensor.optics.window import WindowSectorSpec, WindowSpec
from hilsim.sensor.specs import ClockSetting, DecimationSpec
from hilsim.sensor.time_input import GpsSetting
from hilsim.world.geometry.rotations import normalise, rotate
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.platforms.disturbance import DisturbanceSpec, build_disturbance
from hilsim.world.platforms.platform import build_platform, platform_state
from tests.cepton_models import MIDDLE, STARING, mirror_spec, row_of_eight, with_detector
from tests.compiled import compiled_only
from tests.depth import fewer
from tests.renderers import CpuRenderer, ReferenceRenderer
from tests.unit.emulator.optical_scenes import diffuse, wall
from tests.unit.emulator.swept_scenes import (
    UTC_EPOCH_NS,
    counted,
    firings,
    headers_of,
    images,
    metres,
    payloads,
    points_of,
    swept_lidar,
)

NO_RETURN, BLOCKED, SATURATED, NOISE = PointFlag.NO_RETURN, PointFlag.BLOCKED, PointFlag.SATURATED, PointFlag.NOISE
SECOND_NS = 10**9


def test_points_of_a_wall_ahead_are_where_trigonometry_says():
    lidar = swept_lidar([wall(20.0, diffuse(60))], mirror_spec(row_of_eight()))
    points, image = points_of(lidar), images(lidar, *firings(lidar))
    assert points.size == 144
    np.testing.assert_array_equal(points["y"], 4000)
    np.testing.assert_allclose(points["x"], 4000 * image[:, 0], atol=0.51 + 0.1)  # half a count, and half a millimetre of range
    np.testing.assert_allclose(points["z"], 4000 * image[:, 1], atol=0.51 + 0.1)
    np.testing.assert_array_equal(points["channel"], np.tile(np.arange(8), 18))


def test_right_is_right_and_up_is_up():
    segments = [SegmentSpec(image_x=0.5, image_z=0.0), SegmentSpec(image_x=0.0, image_z=0.25)]
    edges = [wall(10.0, diffuse(60), y=(-60.0, -1.0)), wall(10.0, diffuse(60), z=(1.0, 60.0))]
    points = points_of(swept_lidar(edges, mirror_spec(segments, STARING)))
    assert points[["x", "y", "z"]][:2].tolist() == [(1000, 2000, 0), (0, 2000, 500)]


@pytest.mark.parametrize(("lasers_per_firing", "firing_ns"), [(1, 100_000), (2, 200_000)])
def test_each_point_is_fired_from_the_pose_of_its_own_time(lasers_per_firing, firing_ns):
    # 800 us a firing sequence at 60 m/s and up to 100 deg/s: 48 mm along a sequence, 860 mm along a packet.
    spec = mirror_spec(row_of_eight(), lasers_per_firing=lasers_per_firing, firing_ns=firing_ns, sequence_ns=800_000, range_unit_mm=0.1)
    keys = np.array([[0.0, 0.0, 0.0], [60.0, 10.0, 2.0]])
    track = linear_track(np.array([0, SECOND_NS]), keys, np.array([[1.0, 0, 0, 0], normalise((0.9, 0.05, -0.05, 0.4))]))
    platform = build_platform(track, build_disturbance(DisturbanceSpec(amplitude_m=0.05, amplitude_deg=1.0), 3, 0))
    lidar = swept_lidar([wall(200.0, diffuse(60), y=(-900.0, 900.0), z=(-900.0, 900.0))], spec, platform=platform, mount_position_m=(1.0, 0.5, 2.0))
    first = 8
    points, (channel, device_ns) = points_of(lidar, first), firings(lidar, first)
    image = images(lidar, channel, device_ns)
    rays = allocate_workspace(lidar.plan, 18, is_opaque=True).rays
    fire(lidar.plan, platform, first * 18 + np.arange(18), rays)
    for row, (laser, time_ns) in enumerate(zip(channel, device_ns, strict=True)):
        (x, y, z), body = platform_state(platform, int(time_ns))
        origin = np.array((x, y, z)) + rotate(body, (1.0, 0.5, 2.0))
        ahead = np.array([1.0, -image[row, 0], image[row, 1]])  # of the body: x forward, y left, z up
        direction = np.array(rotate(body, tuple(ahead / np.linalg.norm(ahead))))
        ray = int(laser) * 18 + row // 8
        assert rays.time_ns[ray] == time_ns
        np.testing.assert_allclose(rays.origin_m[ray], origin, atol=2e-6)
        np.testing.assert_allclose(rays.direction[ray], direction, atol=1e-6)
        range_m = (200.0 - origin[0]) / direction[0]
        expected = range_m / np.linalg.norm(ahead) * np.array([image[row, 0], 1.0, image[row, 1]])
        np.testing.assert_allclose(metres(points)[row], expected, atol=0.0025 + 1e-4)


def test_a_mounting_turns_the_points():
    # Yawed to the left and lifted: the wall to the left is ahead, and 1 m nearer.
    lidar = swept_lidar([wall(20.0, diffuse(60))], mirror_spec(swept=STARING), mount_position_m=(1.0, 0.0, 0.0), mount_rotation_deg=(0.0, 0.0, 60.0))
    assert points_of(lidar)[["x", "y", "z"]][0].tolist() == (0, 7600, 0)


def expected_us(lidar, first, count):
    """What the counter shows at every point, in Python's own integers."""
    clock = lidar.setting.setup.clock
    _, device_ns = firings(lidar, first, count)
    offset_ns, gain_ppb = round(clock.offset_s * SECOND_NS), round((clock.stamp_ppm or 0.0) * 1000)
    return np.array([(offset_ns + time + time * gain_ppb // SECOND_NS) // 1000 for time in device_ns.tolist()])


@pytest.mark.extended
@compiled_only
@pytest.mark.parametrize(
    "clock",
    [
        ClockSetting(),
        ClockSetting(sync="free", offset_s=123.456789012),
        ClockSetting(sync="free", oscillator_ppm=1000.0, stamp_ppm=1000.0),
        ClockSetting(sync="free", offset_s=9e8, oscillator_ppm=-1000.0, stamp_ppm=-1000.0),
        ClockSetting(oscillator_ppm=137.0),
    ],
    ids=["pps", "free", "fast", "slow", "drifting"],
)
@pytest.mark.parametrize(
    "timing",
    [
        {"segments": row_of_eight()},
        {"segments": (MIDDLE,), "sequence_ns": 254_000},
        {"segments": row_of_eight(), "lasers_per_firing": 3, "firing_ns": 21_333, "sequence_ns": 70_001},
    ],
    ids=["eight", "longest step", "by threes"],
)
@pytest.mark.parametrize("first", [0, 10**9])
def test_header_and_steps_give_the_time_of_each_firing_over_many_packets(clock, timing, first):
    lidar = swept_lidar([], mirror_spec(**timing), clock=clock)
    count = fewer(500, 2000)
    batch = lidar.data_packets(first, count)
    points = points_of(lidar, first, count).reshape(count, -1)
    found = np.array([point_times_us(row, header.stamp_us) for row, header in zip(points, headers_of(batch), strict=True)])
    np.testing.assert_array_equal(found.ravel(), expected_us(lidar, first, count))
    # Each header names the time of the last point of the packet before.
    np.testing.assert_array_equal([header.stamp_us for header in headers_of(batch)][1:], found[:-1, -1])


def test_the_first_point_of_all_comes_at_the_headers_own_time():
    lidar = swept_lidar([], mirror_spec(), clock=ClockSetting(sync="free", offset_s=2.0))
    header, points = headers_of(lidar.data_packets(0, 1))[0], points_of(lidar)
    assert (header.stamp_us, points["step_us"][0], points["step_us"][1]) == (2_000_000, 0, 64)


@pytest.mark.parametrize(
    ("segments", "setting", "points", "size"),
    [
        (8, {}, 144, 1464),
        (8, {"return_mode": "dual"}, 144, 1464),
        (8, {"cepton": CeptonSetting(header_version=1)}, 136, 1380),
        (1, {"cepton": CeptonSetting(header_version=1)}, 143, 1450),
        (5, {}, 140, 1424),
        (72, {"return_mode": "dual"}, 144, 1464),
        (71, {"return_mode": "dual", "cepton": CeptonSetting(header_version=1)}, 142, 1440),
        (72, {"cepton": CeptonSetting(header_version=1)}, 72, 740),
    ],
)
def test_the_count_is_that_of_the_points_in_the_packet(segments, setting, points, size):
    lidar = swept_lidar([], mirror_spec([MIDDLE] * segments, sequence_ns=8000 * segments), **setting)
    batch = lidar.data_packets(0, 3)
    for payload, header in zip(payloads(batch), headers_of(batch), strict=True):
        assert (header.points, len(payload)) == (points, size)
        assert header.size + 10 * header.points == len(payload)
    assert lidar.setting.packet_rate_hz == pytest.approx(1e9 / (lidar.setting.sequences_per_packet * 8000 * segments))


@pytest.mark.parametrize("version", [1, 2])
def test_the_sequence_number_goes_up_by_one_over_its_32_bits(version):
    lidar = swept_lidar([], mirror_spec(), cepton=CeptonSetting(header_version=version))
    headers = headers_of(lidar.data_packets(2**32 - 2, 4))
    assert [header.version for header in headers] == [version] * 4
    assert [header.sequence for header in headers] == ([2**32 - 2, 2**32 - 1, 0, 1] if version == 2 else [None] * 4)


@compiled_only
def test_the_frame_parity_changes_where_the_sweep_turns():
    swept = MirrorSpec(x_hz=10.0, x_amplitude=0.5, z_hz=200.0, z_amplitude=0.2, passes_per_scan=2)
    lidar = swept_lidar([], mirror_spec(row_of_eight(), swept))
    count = 400
    parity = points_of(lidar, 0, count)["flags"] & FRAME_PARITY != 0
    _, device_ns = firings(lidar, 0, count)
    changes = device_ns[1:][np.diff(parity)]
    np.testing.assert_array_equal(changes, [75_000_000, 175_000_000, 275_000_000, 375_000_000])
    assert not parity[0]


def test_a_miss_is_a_point_without_return_at_the_origin():
    points = points_of(swept_lidar([], mirror_spec(row_of_eight())))
    np.testing.assert_array_equal(points["flags"] & ~np.uint8(FRAME_PARITY), NO_RETURN)
    for field in ("x", "y", "z", "reflectivity"):
        assert not points[field].any()


@pytest.mark.parametrize(
    ("image", "ahead_m", "expected"),
    [
        ((1.0, 0.0), 163.83, (32_766, 32_766, 0)),
        ((1.0, 0.0), 163.85, None),
        ((-1.0, 0.0), 163.835, (-32_767, 32_767, 0)),
        ((-1.0, 0.0), 163.84, (-32_768, 32_768, 0)),
        ((-1.0, 0.0), 163.85, None),
        ((0.0, 1.0), 163.83, (0, 32_766, 32_766)),
        ((0.0, 1.0), 163.85, None),
        ((0.0, -1.0), 163.84, (0, 32_768, -32_768)),
        ((0.0, -1.0), 163.85, None),
        ((0.0, 0.0), 327.67, (0, 65_534, 0)),
        ((0.0, 0.0), 327.69, None),
    ],
)
def test_a_return_too_far_sideways_is_sent_as_no_return_and_counted(image, ahead_m, expected):
    spec = mirror_spec([SegmentSpec(image_x=image[0], image_z=image[1])], STARING, range_max_m=327.675, sequence_ns=8000)
    far = wall(ahead_m, diffuse(60), y=(-900.0, 900.0), z=(-900.0, 900.0))
    points, unrepresentable = counted(swept_lidar([far], spec), count=2)
    assert len(set(points[["x", "y", "z", "flags"]].tolist())) == 1
    x, y, z, flags = points[["x", "y", "z", "flags"]][0].tolist()
    if expected is None:
        assert (x, y, z, flags) == (0, 0, 0, NO_RETURN)
        assert unrepresentable == (288 if image != (0.0, 0.0) else 0)  # straight ahead it is the range limit that ends it
    else:
        assert (x, y, z, flags, unrepresentable) == (*expected, 0, 0)


def test_an_empty_return_shows_nothing_of_the_echo_that_could_not_be_represented():
    spec = with_detector(mirror_spec([SegmentSpec(image_x=1.0, image_z=0.0)], STARING), threshold_reflectivity=0.01, saturation_ratio=1.5)
    near, far = (swept_lidar([wall(ahead_m, diffuse(90), y=(-900.0, 900.0))], spec) for ahead_m in (20.0, 170.0))
    assert points_of(near)["flags"][0] == SATURATED
    points, unrepresentable = counted(far)
    assert (points["flags"][0], points["reflectivity"][0], unrepresentable) == (NO_RETURN, 0, 144)


@compiled_only
def test_points_behind_a_blocked_sector_are_flagged_by_their_own_azimuth_and_elevation():
    sectors = (
        WindowSectorSpec(azimuth_from_deg=350.0, azimuth_to_deg=10.0, elevation_from_deg=-5.0, elevation_to_deg=3.0, transmission=0.0),
        WindowSectorSpec(azimuth_from_deg=15.0, azimuth_to_deg=25.0, transmission=0.5),
    )
    lidar = swept_lidar([wall(20.0, diffuse(64))], mirror_spec(row_of_eight()), window=WindowSpec(sectors=sectors))
    count = 100
    points = points_of(lidar, 0, count)
    x, z = images(lidar, *firings(lidar, 0, count)).T
    azimuth_deg, elevation_deg = np.degrees(np.arctan(x)), np.degrees(np.arctan(z / np.hypot(1.0, x)))
    blocked = (np.abs(azimuth_deg) < 10.0) & (elevation_deg >= -5.0) & (elevation_deg <= 3.0)
    assert 900 < blocked.sum() < points.size - 900
    np.testing.assert_array_equal(points["flags"] & BLOCKED != 0, blocked)
    np.testing.assert_array_equal(points["flags"] & NO_RETURN != 0, blocked)
    dirty = (azimuth_deg >= 15.0) & (azimuth_deg < 25.0)
    cosine = 1.0 / np.sqrt(1.0 + x**2 + z**2)
    expected = np.where(dirty, 0.25, 1.0) * 64 * cosine
    np.testing.assert_allclose(points["reflectivity"][~blocked], expected[~blocked], atol=0.6)


@pytest.mark.parametrize(("percent", "flags"), [(60, 0), (12, NOISE), (9, NO_RETURN)])
def test_weak_points_are_flagged_as_noise(percent, flags):
    spec = with_detector(mirror_spec(swept=STARING), threshold_reflectivity=0.1, threshold_range_m=20.0, doubt_ratio=1.5)
    points = points_of(swept_lidar([wall(20.0, diffuse(percent))], spec))
    assert set(points["flags"].tolist()) == {flags}
    assert points["reflectivity"][0] == (0 if flags == NO_RETURN else percent)


@pytest.mark.extended
@compiled_only
def test_bytes_do_not_depend_on_slices_threads_or_renderer(make_swept):
    lidar = make_swept(return_mode="dual", sub_rays=7)
    whole = lidar.data_packets(50, 30)
    for first, count in [(79, 1), (50, 1), (60, 13)]:
        np.testing.assert_array_equal(lidar.data_packets(first, count).payload, whole.payload[first - 50 : first - 50 + count])
    for threads in (1, 3):
        renderer = CpuRenderer(threads)
        batch = lidar.data_packets(50, 30, renderer)
        renderer.close()
        np.testing.assert_array_equal(batch.payload, whole.payload)
        np.testing.assert_array_equal(batch.deadline_ns, whole.deadline_ns)
    few = make_swept(sub_rays=1)
    np.testing.assert_array_equal(few.data_packets(50, 4, ReferenceRenderer()).payload, few.data_packets(50, 4).payload)


@compiled_only
def test_the_seed_makes_the_noise_and_nothing_else(make_swept):
    one, same, other = (make_swept(seed=seed).data_packets(0, 20).payload for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    differing = one != other
    assert differing.any()
    assert not differing[:, :24].any()
    of_points = differing[:, 24:].reshape(20, 144, 10).any(axis=(0, 1))
    np.testing.assert_array_equal(np.flatnonzero(of_points[6:]) + 6, [])  # neither reflectivity nor step, channel, flags


@pytest.fixture
def make_swept(world):
    """A noisy sensor in the room with the moving ball, on a moving platform."""

    def make(*, seed=9, **setting):
        keys = np.array([[0.0, 0.0, 0.0], [3.0, 1.0, 0.2]])
        track = linear_track(np.array([0, 2 * SECOND_NS]), keys, np.tile((1.0, 0.0, 0.0, 0.0), (2, 1)))
        platform = build_platform(track, build_disturbance(DisturbanceSpec(amplitude_m=0.02, amplitude_deg=1.0), 3, 0))
        lidar = swept_lidar([], mirror_spec(row_of_eight(), range_noise_m=0.02), platform=platform, seed=seed, **setting)
        return dataclasses.replace(lidar, world=world)

    return make


def informed(**changes):
    setting = {"cepton": CeptonSetting(info_packets=True, serial=4165, firmware=(3, 51, 0, 0), part_number=7)} | changes
    return swept_lidar([], mirror_spec(row_of_eight()), **setting)


def test_sensor_information_comes_twice_a_second_and_before_the_first_points():
    lidar = informed(start_delay_us=500.0)
    batch = lidar.position_span(0, 10 * SECOND_NS)
    np.testing.assert_array_equal(batch.deadline_ns, 500_000 + 100_000 + np.arange(20) * 500_000_000)
    assert batch.deadline_ns[0] < lidar.data_packets(0, 1).deadline_ns[0]
    assert set(batch.size.tolist()) == {88}
    assert (batch.payload[:, 5] == 8).all()


@pytest.mark.parametrize(("mode", "returns"), [("strongest", 1), ("last", 1), ("dual", 2)])
def test_sensor_information_is_that_of_the_rig(mode, returns):
    clock = ClockSetting(sync="free", offset_s=100.5)
    said = read_info_packet(payloads(informed(return_mode=mode, clock=clock, start_delay_us=2.0).position_span(0, SECOND_NS))[1])
    assert (said.model, said.serial, said.firmware, said.model_name, said.part_number) == (3, 4165, (3, 51, 0, 0), "hand-made", 7)
    assert said.power_up_us == UTC_EPOCH_NS // 1000 + 2 - 100_500_000
    assert (said.sync_offset_us, said.returns) == (0, returns)


@pytest.mark.parametrize(
    "clock", [ClockSetting(), ClockSetting(offset_s=77.0, oscillator_ppm=200.0), ClockSetting(oscillator_ppm=-1000.0, stamp_ppm=140.0)]
)
def test_the_utc_offset_of_a_synchronised_sensor_applies_to_points_sent_with_it(clock):
    lidar = informed(clock=clock)
    hour_ns = 3600 * SECOND_NS
    batch = lidar.position_span(hour_ns, hour_ns + 2 * SECOND_NS)
    for payload, sent_ns in zip(payloads(batch), batch.pose_ns, strict=True):
        offset_us = read_info_packet(payload).sync_offset_us
        packet = lidar.first_data_packet(int(sent_ns))
        _, device_ns = firings(lidar, packet)
        (header,) = headers_of(lidar.data_packets(packet, 1))
        last_us = int(point_times_us(points_of(lidar, packet), header.stamp_us)[-1])
        true_us = (UTC_EPOCH_NS + int(device_ns[-1] / (1 + (clock.oscillator_ppm or 0.0) * 1e-6))) / 1000
        assert last_us + offset_us == pytest.approx(true_us, abs=4.0)  # at most 2.3 ms apart, in which 1140 ppm make 2.6 us


@pytest.mark.parametrize("sync", ["auto", "free"])
def test_points_stamped_in_utc_say_when_they_were_fired_and_nothing_is_to_be_added(sync):
    lidar = informed(clock=ClockSetting(stamps="utc", sync=sync, offset_s=60.0), start_delay_us=250.0)
    first = 10_000
    _, device_ns = firings(lidar, first)
    (header,) = headers_of(lidar.data_packets(first, 1))
    fired_us = (UTC_EPOCH_NS + 250_000 + device_ns) // 1000
    np.testing.assert_array_equal(point_times_us(points_of(lidar, first), header.stamp_us), fired_us)
    said = read_info_packet(payloads(lidar.position_span(SECOND_NS, 2 * SECOND_NS))[0])
    assert said.sync_offset_us == 0
    assert said.power_up_us == UTC_EPOCH_NS // 1000 + 250 - 60_000_000


def test_the_first_header_of_utc_stamps_names_the_first_firing():
    header, points = (
        headers_of(informed(clock=ClockSetting(stamps="utc")).data_packets(0, 1))[0],
        points_of(informed(clock=ClockSetting(stamps="utc"))),
    )
    assert (header.stamp_us, points["step_us"][0]) == (UTC_EPOCH_NS // 1000, 0)


def test_without_the_option_no_information_is_sent():
    batch = swept_lidar([], mirror_spec()).position_span(0, 10 * SECOND_NS)
    assert (batch.size.size, batch.deadline_ns.size) == (0, 0)


def test_deadlines_are_the_end_of_the_last_firing_sequence_plus_the_latency():
    lidar = swept_lidar([], mirror_spec(row_of_eight()), start_delay_us=500.0)
    np.testing.assert_array_equal(lidar.data_packets(0, 3).deadline_ns, 500_000 + 100_000 + np.arange(1, 4) * 18 * 64_000)
    drifting = swept_lidar([], mirror_spec(row_of_eight()), clock=ClockSetting(oscillator_ppm=1000.0))
    assert drifting.data_packets(999, 1).deadline_ns[0] == 100_000 + 1000 * 18 * 64_000 * 1000 // 1001


def test_a_setting_names_every_key_of_the_wrong_family(vlp16):
    gps, decimation = GpsSetting(latitude_deg=1.0, longitude_deg=2.0), DecimationSpec(ray_step=3)
    with pytest.raises(ValueError, match=r"gps must not be given for a hand-made: .*; decimation must not be given .*; phase_deg must be 0 to less"):
        swept_lidar([], mirror_spec(), gps=gps, decimation=decimation, phase_deg=360.0)
    with pytest.raises(ValueError, match=r"cepton must not be given for a VLP-16; rotation_rate_rpm must be 300 to 1200"):
        swept_lidar([], vlp16, cepton=CeptonSetting(), rotation_rate_rpm=610)


def test_lasers_that_do_not_fit_a_packet_are_refused():
    with pytest.raises(ValueError, match=r"segments must be at most 71 in return_mode dual \(a packet holds 143 points\), got 72"):
        swept_lidar([], mirror_spec([MIDDLE] * 72, sequence_ns=576_000), return_mode="dual", cepton=CeptonSetting(header_version=1))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"serial": -1}, "serial must be 0 to 4294967295, got -1"),
        ({"part_number": 2**32}, "part_number must be 0 to 4294967295, got 4294967296"),
        ({"firmware": (1, 2, 3, -1)}, r"firmware must be four numbers of 0 to 255, got \(1, 2, 3, -1\)"),
        ({"serial": -1, "part_number": -1}, "serial must be .*; part_number must be 0 to 4294967295, got -1"),
    ],
)
def test_rules_of_what_a_sensor_says_of_itself_name_their_key(changes, fault):
    with pytest.raises(ValueError, match=fault):
        CeptonSetting(**changes)
