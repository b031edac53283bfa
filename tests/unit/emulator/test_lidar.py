"""The emulated lidar: the same bytes always, at the right time, true to what each firing sees."""

import dataclasses
import itertools

import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.firing import fire
from hilsim.emulator.schedule import data_deadline_ns
from hilsim.emulator.workspace import allocate_workspace
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.families.velodyne.protocol.position import decode_position_packets
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.echoes import COSINE, RETRO
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec, SpuriousSpec, SunSpec
from hilsim.sensor.optics.window import WindowSpec
from hilsim.sensor.specs import ClockSetting, DecimationSpec
from hilsim.sensor.unit.encoder import RateJitterSpec
from hilsim.world.geometry.rotations import rotate
from hilsim.world.platforms.disturbance import NO_DISTURBANCE, DisturbanceSpec, build_disturbance
from hilsim.world.platforms.platform import platform_state
from tests.compiled import COMPILED, compiled_only
from tests.renderers import CpuRenderer, ReferenceRenderer

PACKET_NS = 24 * 55_296
SECOND_NS = 10**9
UTC_EPOCH_NS = 1_767_225_600_000_000_000  # of the fixtures


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))


@compiled_only
def test_packets_do_not_depend_on_how_they_are_asked_for(make_lidar):
    lidar = make_lidar()
    whole = lidar.data_packets(100, 24)
    for first, count in [(123, 1), (100, 1), (104, 7), (115, 4)]:
        part = lidar.data_packets(first, count)
        row = first - 100
        np.testing.assert_array_equal(part.payload, whole.payload[row : row + count])
        np.testing.assert_array_equal(part.deadline_ns, whole.deadline_ns[row : row + count])


def test_the_fused_kernel_and_the_stages_give_the_same_bytes(make_lidar):
    lidar, count = make_lidar(), 12 if COMPILED else 3
    assert same(lidar.data_packets(7, count), lidar.data_packets(7, count, CpuRenderer()))


@compiled_only
def test_spans_join_without_gap_or_overlap(make_lidar):
    lidar = make_lidar()
    whole = lidar.data_span(0, SECOND_NS // 40)
    edges = [0, 1, 10_000_000, 10_000_001, 13_333_333, SECOND_NS // 40]
    parts = [lidar.data_span(start, stop) for start, stop in itertools.pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate([part.payload for part in parts]), whole.payload)
    positions = [lidar.position_span(start, stop) for start, stop in itertools.pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate([part.payload for part in positions]), lidar.position_span(0, SECOND_NS // 40).payload)


def test_deadlines_are_the_end_of_the_last_firing_sequence_plus_the_latency(make_lidar):
    batch = make_lidar(start_delay_us=500.0).data_packets(0, 12)
    expected = 500_000 + np.arange(1, 13) * PACKET_NS + 100_000
    np.testing.assert_array_equal(batch.deadline_ns, expected)


@pytest.mark.parametrize("ppm", [-1000.0, 0.0, 137.0])
@pytest.mark.parametrize("late_ns", [0, 3600 * SECOND_NS, 86_400 * 30 * SECOND_NS])
def test_the_first_packet_due_is_found_however_late_and_whatever_the_oscillator(make_lidar, ppm, late_ns):
    lidar = make_lidar(clock=ClockSetting(oscillator_ppm=ppm))
    packet = lidar.first_data_packet(late_ns)
    assert data_deadline_ns(lidar.plan, packet) >= late_ns
    assert packet == 0 or data_deadline_ns(lidar.plan, packet - 1) < late_ns


def test_each_firing_leaves_from_the_pose_and_angle_of_its_own_time(make_lidar):
    lidar = make_lidar(mount_position_m=(0.0, 0.0, 1.9), rotation_rate_rpm=1200)
    rays = allocate_workspace(lidar.plan, 24, is_opaque=True).rays
    fire(lidar.plan, lidar.platform, 4800 + np.arange(24), rays)
    times = rays.time_ns.reshape(16, 24)
    np.testing.assert_array_equal(np.diff(times, axis=0), 2304)
    np.testing.assert_array_equal(np.diff(times, axis=1), 55_296)
    for channel, sequence in [(0, 0), (7, 13), (15, 23)]:
        row = channel * 24 + sequence
        position, q = platform_state(lidar.platform, int(times[channel, sequence]))
        x, y, z, w = q[1], q[2], q[3], q[0]
        up = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        offset_m = lidar.setting.spec.channels[channel].vertical_offset_mm / 1000
        np.testing.assert_allclose(rays.origin_m[row], np.array(position) + up * (1.9 + offset_m), atol=1e-6)
        assert rays.direction[row] @ up == pytest.approx(np.sin(np.radians(lidar.setting.spec.channels[channel].elevation_deg)), abs=1e-6)


def test_each_of_more_than_sixteen_lasers_leaves_by_its_own_elevation_and_azimuth(make_lidar):
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "hdl32e.toml"), "hdl32e")
    offsets_deg = np.linspace(-3.0, 3.0, 32)
    channels = tuple(dataclasses.replace(laser, azimuth_offset_deg=offset) for laser, offset in zip(spec.channels, offsets_deg, strict=True))
    spec = dataclasses.replace(spec, channels=channels, rate_jitter=RateJitterSpec())
    level = make_lidar().platform._replace(disturbance=NO_DISTURBANCE)
    lidar = dataclasses.replace(make_lidar(spec=spec, rotation_rate_rpm=600), platform=level)
    rays = allocate_workspace(lidar.plan, 12, is_opaque=True).rays
    fire(lidar.plan, lidar.platform, 2164 + np.arange(12), rays)  # over the seam of a turn
    time_s = rays.time_ns.reshape(32, 12) / 1e9
    direction = rays.direction.reshape(32, 12, 3)
    azimuth_deg = np.degrees(np.arctan2(-direction[..., 1], direction[..., 0]))
    expected_deg = 3600.0 * time_s + offsets_deg[:, np.newaxis]
    np.testing.assert_allclose((azimuth_deg - expected_deg + 180.0) % 360.0 - 180.0, 0.0, atol=1e-4)
    elevation_deg = np.degrees(np.arcsin(direction[..., 2]))
    np.testing.assert_allclose(elevation_deg, np.repeat([[laser.elevation_deg] for laser in channels], 12, axis=1), atol=1e-4)
    assert np.unique(time_s).size > 12


@compiled_only
def test_firings_over_several_keyframes_of_a_disturbance_leave_from_the_poses_of_their_own_times(make_lidar):
    disturbance = build_disturbance(DisturbanceSpec(amplitude_m=0.02, amplitude_deg=1.0, keyframe_interval_s=0.05), 3, 0)
    lidar = dataclasses.replace(make_lidar(), platform=make_lidar().platform._replace(disturbance=disturbance))
    rays = allocate_workspace(lidar.plan, 3000, is_opaque=True).rays
    fire(lidar.plan, lidar.platform, 0 + np.arange(3000), rays)
    offset_m = lidar.setting.spec.channels[5].vertical_offset_mm / 1000
    for row in range(5 * 3000, 6 * 3000, 7):
        position, turn = platform_state(lidar.platform, int(rays.time_ns[row]))
        np.testing.assert_allclose(rays.origin_m[row], np.add(position, rotate(turn, (0.0, 0.0, offset_m))), atol=1e-6)
    assert int(rays.time_ns[6 * 3000 - 1]) > 3 * 50_000_000


def test_azimuth_zero_looks_ahead_and_a_quarter_turn_looks_right(make_lidar):
    lidar = dataclasses.replace(make_lidar(), platform=make_lidar().platform._replace(disturbance=NO_DISTURBANCE))
    rays = allocate_workspace(lidar.plan, 1, is_opaque=True).rays
    for quarter, axis, sign in [(0, 0, 1), (1, 1, -1), (2, 0, -1), (3, 1, 1)]:
        sequence = round(quarter * 25_000_000 / 55_296)
        fire(lidar.plan, lidar.platform, sequence + np.arange(1), rays)
        assert sign * rays.direction[7, axis] > 0.98  # laser 7 looks 7 degrees up; the rate jitter turns it by a little


def test_a_lasers_azimuth_offset_turns_its_beam_clockwise_as_the_azimuth_does(make_lidar, vlp16):
    """The VLP-32C manual adds it to the azimuth (63-9325 page 66), which counts clockwise: a positive offset looks further right."""
    offsets_deg = np.linspace(-30.0, 45.0, 16)
    channels = tuple(dataclasses.replace(laser, azimuth_offset_deg=offset) for laser, offset in zip(vlp16.channels, offsets_deg, strict=True))
    straight, turned = (
        dataclasses.replace(make_lidar(spec=spec), platform=make_lidar().platform._replace(disturbance=NO_DISTURBANCE))
        for spec in (vlp16, dataclasses.replace(vlp16, channels=channels))
    )
    azimuth_deg = []
    for lidar in (straight, turned):
        rays = allocate_workspace(lidar.plan, 1, is_opaque=True).rays
        fire(lidar.plan, lidar.platform, 1000 + np.arange(1), rays)
        azimuth_deg.append(np.degrees(np.arctan2(-rays.direction[:, 1], rays.direction[:, 0])))
    np.testing.assert_allclose((azimuth_deg[1] - azimuth_deg[0] + 180) % 360 - 180, offsets_deg, atol=1e-4)


def quiet(spec):
    """A model without noise on its ranges."""
    return dataclasses.replace(spec, range_noise_m=0.0, detector=dataclasses.replace(spec.detector, range_noise_weak_m=0.0))


@compiled_only
def test_codes_are_true_ranges_within_noise_and_reflectivity_is_the_materials_at_its_angle(make_lidar, vlp16):
    lidar = make_lidar(spec=quiet(vlp16))
    workspace = lidar.firings(0, 3, ReferenceRenderer())
    packets = decode_data_packets(lidar.data_packets(0, 3).payload)
    codes = packets["blocks"]["channels"]["distance"].reshape(-1, 16)
    bytes_ = packets["blocks"]["channels"]["reflectivity"].reshape(-1, 16)
    true_m = workspace.rays.range_m.reshape(16, -1).T
    cosine = workspace.hits.value[:, 0, COSINE].reshape(16, -1).T
    is_retro = workspace.hits.value[:, 0, RETRO].reshape(16, -1).T > 0
    hit = np.isfinite(true_m)
    assert hit.sum() > 500
    assert np.abs(codes[hit] * 0.002 - true_m[hit]).max() <= 0.002
    walls = hit & ~is_retro
    assert np.abs(bytes_[walls] - 85.0 * cosine[walls]).max() <= 0.5 + 1e-3
    assert bytes_[walls].max() == 85
    assert (bytes_[hit & is_retro] > 200).all()
    assert (codes[~hit] == 0).all()
    baseline = np.array([channel.no_return_reflectivity for channel in vlp16.channels])
    np.testing.assert_array_equal(bytes_[~hit], np.broadcast_to(baseline, hit.shape)[~hit])
    np.testing.assert_array_equal(workspace.returns.distance[0] > 0, hit)


def test_position_packets_name_the_second_in_progress_once_the_sentence_has_come(make_lidar):
    batch = make_lidar().position_span(0, 2 * SECOND_NS)
    packets = decode_position_packets(batch.payload)
    assert packets.size == pytest.approx(2 * 145.8, abs=4)
    for packet, stamped_ns in zip(packets, batch.pose_ns, strict=True):
        of_second_ns = (UTC_EPOCH_NS + int(stamped_ns)) % SECOND_NS
        second = (UTC_EPOCH_NS + int(stamped_ns)) // SECOND_NS - (1 if of_second_ns < 70_900_000 else 0)
        sentence = packet["nmea"].tobytes().rstrip(b"\0")
        assert sentence.endswith(b"\r\n")
        assert int(sentence[7:9]) * 3600 + int(sentence[9:11]) * 60 + int(sentence[11:13]) == second % 86_400
        assert packet["timestamp"] == pytest.approx((UTC_EPOCH_NS + int(stamped_ns)) // 1000 % 3_600_000_000, abs=1)


def test_without_a_receiver_position_packets_carry_a_stamp_only(make_lidar):
    lidar = make_lidar(gps=None, clock=ClockSetting(sync="free", offset_s=100.0))
    packet = decode_position_packets(lidar.position_span(0, SECOND_NS // 10).payload)[0]
    assert packet["pps"] == 0
    assert not packet["nmea"].any()


def test_a_sensor_that_no_receiver_is_connected_to_has_a_free_clock_and_a_position_packet_with_a_stamp_alone(make_lidar):
    lidar = make_lidar(gps=None, clock=ClockSetting())
    batch = lidar.position_span(0, SECOND_NS // 10)
    for payload, stamped_ns in zip(batch.payload, batch.pose_ns, strict=True):
        said = payload[:512].copy()
        assert int(said[198:202].view("<u4")[0]) == stamped_ns // 1000  # counted from its start, not from UTC's hour
        said[198:202] = 0
        assert not said.any()


def test_a_pulse_without_a_receiver_locks_the_clock_where_it_is_asked_for(make_lidar):
    packet = decode_position_packets(make_lidar(gps=None, clock=ClockSetting(sync="pps")).position_span(0, SECOND_NS // 10).payload)[0]
    assert (packet["pps"], packet["nmea"].any()) == (2, False)


def test_stamps_in_utc_are_refused_for_a_velodyne(make_lidar):
    with pytest.raises(ValueError, match=r'clock.stamps must be "power_up" for a VLP-16: its stamps count from the hour'):
        make_lidar(clock=ClockSetting(stamps="utc"))


def test_a_setting_names_every_broken_rule(vlp16, make_lidar):
    with pytest.raises(ValueError, match=r"phase_deg must be 0 to less than 360, got 360.0; start_delay_us"):
        make_lidar(phase_deg=360.0, start_delay_us=-1.0)
    with pytest.raises(ValueError, match=r"rotation_rate_rpm must be 300 to 1200 in steps of 60 for a VLP-16, got 610"):
        make_lidar(rotation_rate_rpm=610)
    with pytest.raises(ValueError, match="sub_rays must be one of 1, 7, 19, got 5"):
        make_lidar(sub_rays=5)
    assert vlp16.model == "VLP-16"


def test_a_rate_of_zero_is_refused_and_no_rate_is_600_rpm(make_lidar):
    with pytest.raises(ValueError, match=r"rotation_rate_rpm must be 300 to 1200 in steps of 60 for a VLP-16, got 0"):
        make_lidar(rotation_rate_rpm=0)
    assert make_lidar().plan.head == make_lidar(rotation_rate_rpm=600).plan.head


@compiled_only
@pytest.mark.parametrize("sub_rays", [1, 7])
def test_a_lidar_whose_kernels_lack_rare_physics_sends_the_bytes_of_one_that_has_them_switched_off(make_lidar, sub_rays):
    full = make_lidar(sub_rays=sub_rays)
    plain = dataclasses.replace(full, may_change=False)
    assert (plain.plan.rare, plain.plan.field_of_view) == (None, None)
    assert full.plan.rare is not None
    np.testing.assert_array_equal(plain.data_packets(5, 12).payload, full.data_packets(5, 12).payload)
    for start_ns in (0, SECOND_NS):
        for span in ("data_span", "position_span"):
            one, other = (getattr(lidar, span)(start_ns, start_ns + 20_000_000) for lidar in (plain, full))
            np.testing.assert_array_equal(one.payload, other.payload)
            np.testing.assert_array_equal(one.deadline_ns, other.deadline_ns)


@pytest.mark.parametrize(
    "changes",
    [
        {"window": WindowSpec(soiling_transmission=0.5)},
        {"decimation": DecimationSpec(beam_step=2)},
        {"field_of_view_deg": (0, 90)},
        {"spurious": SpuriousSpec(rate=0.1)},
        {"false_alarms": FalseAlarmSpec(rate_per_firing=0.001)},
        {"false_alarms": FalseAlarmSpec(sun=SunSpec(rate_per_firing=0.1))},
    ],
    ids=["window", "decimation", "field of view", "spurious returns", "false alarms", "sun"],
)
def test_a_setup_with_rare_physics_has_kernels_with_them(make_lidar, changes):
    lidar = dataclasses.replace(make_lidar(**changes), may_change=False)
    assert lidar.plan.rare is not None
    assert lidar.plan.field_of_view is not None
