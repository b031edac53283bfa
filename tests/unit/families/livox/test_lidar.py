"""A Mid-360: every point against the room that it is in, stamps and numbers, tags, windows, inertial packets, changes and faults."""

import importlib
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from click.testing import CliRunner

import hilsim
from hilsim.cli.export.command import export
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.planning import build_lidar_plan
from hilsim.errors import ConfigError
from hilsim.families.livox.points import decode_emulated
from hilsim.families.livox.protocol.imu import read_imu
from hilsim.families.livox.protocol.points import has_valid_crc, read_points
from hilsim.families.livox.setting import LivoxSetting
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.faults.specs import FAULT_SPECS
from hilsim.sensor.specs import ClockSetting
from hilsim.sensor.time_input import GpsSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import about_axis, from_roll_pitch_yaw
from hilsim.world.geometry.tracks import fixed_track, smooth_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject
from tests.compiled import COMPILED, compiled_only
from tests.lidars import lidar_setting
from tests.livox_sensors import PLACE_M, ROOM_M, in_room, mid360
from tests.support import ROOM, write_rig

SECOND = 2083 if COMPILED else 60
"""Packets of a second; fewer with kernels as plain Python."""


def points_of(lidar, first=0, count=50):
    """Headers and points of packets."""
    read = [read_points(payload[: lidar.plan.data_size].tobytes()) for payload in lidar.data_packets(first, count).payload]
    return [header for header, _ in read], np.concatenate([points for _, points in read])


def to_walls_m(ahead):
    """Distance to the walls of the room from the sensor's place along directions ``[n, 3]``, by the slab method."""
    with np.errstate(divide="ignore"):
        away = (np.sign(ahead) * np.array(ROOM_M) / 2 - np.array(PLACE_M)) / ahead
    return np.where(np.isfinite(away), away, np.inf).min(axis=1)


@pytest.mark.parametrize(("data_type", "rounding_m"), [(1, 0.0025), (2, 0.025), (3, 0.02)])
def test_every_point_of_a_second_is_on_a_wall(data_type, rounding_m):
    lidar = in_room(livox=LivoxSetting(pcl_data_type=data_type))
    _, sent = points_of(lidar, 0, SECOND)
    points = decode_emulated(lidar.data_packets(0, SECOND).payload[:, : lidar.plan.data_size], lidar.setting)
    assert points.size == sent.size == SECOND * 96
    place = np.stack([points["y"], -points["x"], points["z"]], axis=1).astype(float)  # the room's axes: x forward, y left
    range_m = np.linalg.norm(place, axis=1)
    assert np.abs(range_m - to_walls_m(place / range_m[:, None])).max() < rounding_m
    assert points["range"].max() < 12.0


@compiled_only
@pytest.mark.parametrize(("model", "packets"), [("mid360", SECOND), ("hap", 4708)])
def test_by_the_profile_s_noise_and_beams_every_point_of_a_second_is_near_a_wall(model, packets):
    lidar = in_room(spec=mid360(model), is_exact=False)
    points = decode_emulated(lidar.data_packets(0, packets).payload, lidar.setting)
    place = np.stack([points["y"], -points["x"], points["z"]], axis=1).astype(float)
    range_m = np.linalg.norm(place, axis=1)
    away_m = range_m - to_walls_m(place / range_m[:, None])
    assert points.size == packets * 96
    assert np.std(away_m) == pytest.approx(lidar.setting.spec.range_noise_m, rel=0.01)
    assert abs(np.mean(away_m)) < 0.001
    assert np.abs(away_m).max() < 5.5 * lidar.setting.spec.range_noise_m


def test_packets_are_on_time_and_counted():
    lidar = in_room()
    batch, (headers, _) = lidar.data_packets(65_530, 12), points_of(lidar, 65_530, 12)
    assert set(np.diff(batch.deadline_ns).tolist()) == {480_000}
    assert [header.number for header in headers] == [*range(65_530, 65_536), *range(6)]
    assert [header.stamp_ns for header in headers] == [480_000 * packet for packet in range(65_530, 65_542)]
    assert {(header.interval, header.count, header.frame, header.data_type, header.time_type, header.length) for header in headers} == {
        (4750, 96, 0, 1, 0, 1380)
    }
    assert all(has_valid_crc(payload.tobytes()) for payload in batch.payload)
    assert lidar.setting.packet_rate_hz == pytest.approx(2083.333, abs=0.001)


def test_points_are_five_microseconds_apart_and_lines_take_turns():
    lidar = in_room()
    points = decode_emulated(lidar.data_packets(0, 3).payload, lidar.setting)
    np.testing.assert_array_equal(points["time_ns"], np.repeat(np.arange(3) * 480_000, 96) + np.tile(np.arange(96) * 5000, 3))
    np.testing.assert_array_equal(points["ring"], np.arange(288) % 4)


def test_a_hap_sends_six_lines_in_turn_452_000_times_a_second():
    lidar = in_room(spec=mid360("hap", range_noise_m=0.0))
    packets = 942 if COMPILED else 20
    batch, (headers, sent) = lidar.data_packets(0, packets), points_of(lidar, 0, packets)
    points = decode_emulated(batch.payload, lidar.setting)
    place = np.stack([points["y"], -points["x"], points["z"]], axis=1).astype(float)
    range_m = np.linalg.norm(place, axis=1)
    assert points.size == sent.size == packets * 96
    assert np.abs(range_m - to_walls_m(place / range_m[:, None])).max() < 0.0025
    assert set(np.diff(batch.deadline_ns).tolist()) == {212_390}
    assert {(header.interval, header.count, header.length) for header in headers} == {(2102, 96, 1380)}
    np.testing.assert_array_equal(points["ring"][:192], np.arange(192) % 6)
    fired_ns = [at_ns + 2212 * channel for at_ns in (0, 106_195) for channel in range(48)]
    assert np.abs(points["time_ns"][:96] - fired_ns).max() < 50  # of the unit of the header, 100 ns
    assert lidar.setting.packet_rate_hz * 96 == pytest.approx(452_000, rel=5e-6)


@pytest.mark.parametrize(
    ("keys", "time_type", "first_ns"),
    [
        ({"clock": ClockSetting(offset_s=12.5)}, 0, 12_500_000_000),
        ({"clock": ClockSetting(sync="pps"), "start_delay_us": 1000.0}, 1, 1_767_229_199_901_000_000),
        ({"gps": GpsSetting(latitude_deg=1.0, longitude_deg=2.0)}, 2, 1_767_229_199_900_000_000),
    ],
)
def test_the_clock_sets_the_source_of_time(keys, time_type, first_ns):
    headers, _ = points_of(in_room(**keys), 0, 1)
    assert (headers[0].time_type, headers[0].stamp_ns) == (time_type, first_ns)


def test_a_shot_without_return_is_a_point_of_zeros():
    _, points = points_of(in_room(spec=mid360(range_noise_m=0.0, range_max_m=5.0)), 0, 100)
    assert points.size == 9600
    is_empty = (points["x"] == 0) & (points["y"] == 0) & (points["z"] == 0)
    assert 0.05 < is_empty.mean() < 0.9
    assert not points[is_empty].tobytes().strip(b"\0")


@compiled_only
def test_reflectivity_is_to_150_of_diffuse_surfaces_and_above_of_retro_reflectors():
    sign = SceneObject(mesh=box((0.1, 2.0, 2.0), Material(name="sign", reflectivity=200)), placement=Pose(position_m=(4.0, 0.0, 0.0)))
    white = SceneObject(mesh=box((0.1, 2.0, 2.0), Material(name="white", reflectivity=100)), placement=Pose(position_m=(-4.0, 0.0, 0.0)))
    _, points = points_of(in_room(objects=[sign, white]), 0, SECOND)
    ahead, behind = (
        points[
            (np.sign(points["x"]) == side)
            & (np.abs(points["x"] + 600) < 4000)
            & (np.abs(points["y"]) < 900)
            & (np.abs(points["z"] - 800) < 600)
            & (np.abs(points["x"]) > 2000)
        ]
        for side in (1, -1)
    )
    assert ahead["reflectivity"].min() > 150
    assert behind["reflectivity"].max() == 150


@compiled_only
def test_rain_and_edges_are_tagged_and_nothing_else():
    pillar = SceneObject(mesh=box((0.3, 0.3, 4.0), Material(name="pillar", reflectivity=50)), placement=Pose(position_m=(5.5, 0.0, 0.0)))
    clear = points_of(in_room(spec=mid360(), objects=[pillar], is_exact=False), 0, SECOND)[1]
    assert set(np.unique(clear["tag"]).tolist()) == {0, 1}
    assert 0.0 < (clear["tag"] == 1).mean() < 0.02
    assert set(np.unique(points_of(in_room(spec=mid360()), 0, 500)[1]["tag"]).tolist()) == {0}


@compiled_only
def test_echoes_of_fog_are_tagged(tmp_path):
    text = ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "mid360"').replace("gps =", "# gps =") + "\n[weather]\nfog_visibility_m = 15.0\n"
    packets = [
        packet.payload for packet in hilsim.Emulator(hilsim.load_rig(write_rig(tmp_path, text))).packets(0.0, 0.2) if packet.stream == "points"
    ]
    points = np.concatenate([read_points(payload)[1] for payload in packets])
    assert 0.0001 < (points["tag"] == 8).mean() < 0.9
    assert set(np.unique(points["tag"]).tolist()) <= {0, 1, 8, 9}


def test_shots_outside_of_the_enabled_windows_have_no_return():
    windows = ((350, 20, 0, 30), (90, 100, -10, 60))
    _, first = points_of(in_room(livox=LivoxSetting(fov_deg=windows, fov_enable=1)), 0, SECOND)
    _, both = points_of(in_room(livox=LivoxSetting(fov_deg=windows, fov_enable=3)), 0, SECOND)
    for points, more in ((first, False), (both, True)):
        seen = points[points["x"] ** 2 + points["y"] ** 2 > 0]
        azimuth = np.degrees(np.arctan2(seen["y"], seen["x"])) % 360.0
        elevation = np.degrees(np.arctan2(seen["z"], np.hypot(seen["x"], seen["y"])))
        is_ahead = ((azimuth > 349.9) | (azimuth < 20.1)) & (elevation > -0.1) & (elevation < 30.1)
        is_left = (azimuth > 89.9) & (azimuth < 100.1)
        assert seen.size > 0.025 * points.size
        assert (is_ahead | (is_left & more)).all()
        assert (is_left & ~is_ahead).any() == more


def inertial(lidar, begin_ns=500_000_000, end_ns=1_000_000_000):
    """Measurements ``float[n, 6]`` of half a second."""
    return np.concatenate([read_imu(payload.tobytes())[1] for payload in lidar.position_span(begin_ns, end_ns).payload])


def test_at_rest_inertial_packets_say_one_g_two_hundred_times_a_second():
    lidar = in_room()
    np.testing.assert_allclose(inertial(lidar), np.tile([0, 0, 0, 0, 0, 1], (100, 1)), atol=1e-6)
    headers = [read_imu(payload.tobytes())[0] for payload in lidar.position_span(0, 20_000_000).payload]
    assert [(header.stamp_ns, header.number, header.interval, header.count) for header in headers] == [(5_000_000 * k, k, 0, 1) for k in range(4)]
    assert len(in_room(livox=LivoxSetting(imu=False)).position_span(0, 1_000_000_000).payload) == 0


def test_axes_are_forward_left_and_up():
    nose_up = in_room(platform=build_platform(fixed_track(Pose(orientation=from_roll_pitch_yaw(0.0, -30.0, 0.0)))))
    np.testing.assert_allclose(inertial(nose_up).mean(axis=0), [0, 0, 0, 0.5, 0, np.sqrt(0.75)], atol=1e-4)


def test_a_turning_sensor_feels_the_lever_arm_of_its_inertial_sensors():
    times_s, rate = np.arange(0.0, 2.0, 0.01), 4.0
    turning = smooth_track(
        (times_s * 1e9).astype(np.int64), np.zeros((times_s.size, 3)), np.array([about_axis((0, 0, 1), rate * t) for t in times_s])
    )
    found = np.median(inertial(in_room(platform=build_platform(turning))), axis=0)
    inward = -(rate**2) * np.array([0.011, 0.02329]) / 9.80665
    np.testing.assert_allclose(found, [0, 0, rate, *inward, 1], atol=2e-3)


def test_another_data_type_begins_with_the_next_packet():
    lidar = in_room()
    setup = replace(lidar.setting.setup, livox=LivoxSetting(pcl_data_type=3))
    later = lidar.followed_by(replace(lidar, setting=replace(lidar.setting, setup=setup), later=()), 10_000_000)
    changed = replace(lidar, later=(later,))
    batch = changed.data_span(0, 20_000_000)
    read = [read_points(payload[:size].tobytes())[0] for payload, size in zip(batch.payload, batch.size, strict=True)]
    types = [header.data_type for header in read]
    assert types == sorted(types)
    assert set(types) == {1, 3}
    assert set(np.diff([header.stamp_ns for header in read]).tolist()) == {480_000}
    assert [header.number for header in read] == list(range(len(read)))


def test_inertial_packets_come_and_go_with_their_setting():
    lidar = in_room(livox=LivoxSetting(imu=False))
    setup = replace(lidar.setting.setup, livox=LivoxSetting(imu=True))
    changed = replace(lidar, later=(lidar.followed_by(replace(lidar, setting=replace(lidar.setting, setup=setup), later=()), 50_000_000),))
    headers = [read_imu(payload.tobytes())[0] for payload in changed.position_span(0, 100_000_000).payload]
    assert [header.stamp_ns for header in headers] == [5_000_000 * number for number in range(10, 20)]
    assert lidar.position_span(0, 100_000_000).payload.size == 0


def broken(kind=None, **keys):
    """Headers and points of packets of a fifth of a second, with a fault."""
    return points_of(in_room(faults=() if kind is None else (FAULT_SPECS[kind](**keys),)), 0, SECOND // 5)


def test_a_blocked_sector_returns_nothing():
    _, points = broken("blocked_sector", azimuth_deg=(30.0, 90.0))
    _, clean = broken()
    clockwise = np.degrees(np.arctan2(-clean["y"], clean["x"])) % 360.0
    is_seen = (clean["x"] != 0) | (clean["y"] != 0)
    is_blocked = (clockwise > 30.5) & (clockwise < 89.5) & is_seen
    assert is_blocked.sum() > 0.075 * clean.size
    assert not points[is_blocked].tobytes().strip(b"\0")
    is_free = ((clockwise < 29.5) | (clockwise > 91.5)) & is_seen
    np.testing.assert_array_equal(points[is_free], clean[is_free])


def test_a_dead_line_has_no_points():
    _, points = broken("dead_channel", channels=(2, 6, 10, 14))
    is_seen = (points["x"] != 0).reshape(-1, 4).mean(axis=0)
    assert is_seen[2] == 0
    assert (np.delete(is_seen, 2) > 0.3).all()


def test_stamps_leap_with_the_clock():
    headers, _ = broken("clock_jump", at_s=SECOND / 10 * 0.00048, jump_s=2.0)
    steps = np.diff([header.stamp_ns for header in headers])
    assert sorted(set(steps.tolist())) == [480_000, 2_000_480_000]


@compiled_only
def test_points_of_the_emulator_are_those_of_packets_with_their_origin(tmp_path):
    text = ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "mid360"').replace("gps =", "# gps =")
    emulator = hilsim.Emulator(hilsim.load_rig(write_rig(tmp_path, text)))
    points = emulator.points(0.0, 0.1)
    assert 10_000 < points.size < 20_000
    assert (points["instance"] >= 0).all()
    scans = list(emulator.scans(0.0, 0.3))
    assert len(scans) == 3
    assert scans[1].points["time"].min() >= 99_999_000
    assert scans[1].points["time"].max() < 200_000_000


@compiled_only
def test_a_capture_is_read_by_tenths_of_a_second(tmp_path):
    text = ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "mid360"').replace("gps =", "# gps =")
    rig = hilsim.load_rig(write_rig(tmp_path, text))
    hilsim.record(rig, tmp_path / "x.pcap", duration_s=0.35)
    points = hilsim.decode(tmp_path / "x.pcap")
    assert {"tag", "ring"} <= set(points.dtype.names)
    numbers = [points[points["time"] // 100_000_000 == window].size for window in range(3)]
    assert numbers == [scan.points.size for scan in hilsim.Emulator(rig).scans(0.0, 0.3)]


@compiled_only
@pytest.mark.parametrize("is_capture", [False, True])
def test_an_export_has_line_tag_and_first_return(tmp_path, is_capture):
    text = ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "mid360"').replace("gps =", "# gps =") + "\n[weather]\nfog_visibility_m = 15.0\n"
    source = write_rig(tmp_path, text)
    if is_capture:
        hilsim.record(hilsim.load_rig(source), tmp_path / "x.pcap", duration_s=0.25)
        source = tmp_path / "x.pcap"

    def exported(kind):
        options = [] if is_capture else ["--duration-s", "0.2"]
        result = CliRunner().invoke(export, [str(source), "-o", str(tmp_path / kind), "--format", kind, *options])
        assert result.exit_code == 0, result.output
        return min((tmp_path / kind).rglob(f"*.{kind}"))

    with np.load(exported("npz")) as file:
        points = {name: file[name] for name in file.files}
    assert set(points["return_type"].tolist()) == {2}
    assert set(points["ring"].tolist()) == {0, 1, 2, 3}
    assert {0, 8} <= set(points["tag"].tolist()) <= {0, 1, 8, 9}
    if find_spec("laspy") is not None:  # the lowest versions are tested without it
        np.testing.assert_array_equal(importlib.import_module("laspy").read(exported("las"))["tag"], points["tag"])


def test_light_of_a_livox_reaches_no_other_sensor():
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
    plan = build_lidar_plan(lidar_setting(spec, interference=True), seed=1, utc_epoch_ns=0, others=(in_room().setting,))
    assert plan.rare.interference.sources.size == 0


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"rotation_rate_rpm": 600}, "rotation_rate_rpm must not be given for a Mid-360"),
        ({"return_mode": "dual"}, "return_mode must not be given for a Mid-360: it reports the first return"),
        ({"field_of_view_deg": (0, 90)}, r"field_of_view_deg must not be given for a Mid-360: livox\.fov_deg sets it"),
        ({"interference": True}, "interference must not be given"),
    ],
)
def test_keys_of_other_sensors_are_refused(keys, text):
    with pytest.raises((ConfigError, ValueError), match=text):
        in_room(**keys)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"serial": "x" * 16}, "serial must be at most 15 ASCII characters"),
        ({"fov_deg": ((0, 361, 0, 1), (0, 360, 0, 1))}, "fov_deg must be azimuths of 0 to 360"),
        ({"blind_spot_cm": 20}, "blind_spot_cm must be 50 to 200"),
    ],
)
def test_settings_out_of_range_are_refused(keys, text):
    with pytest.raises(ValueError, match=text):
        LivoxSetting(**keys)
