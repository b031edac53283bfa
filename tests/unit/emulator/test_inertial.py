"""What the IMU of a lidar reads, against motions whose forces and rates are known by hand."""

import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.inertial import felt_motion, origin_of
from hilsim.emulator.lidar import LidarEmulator
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.families.velodyne.protocol.position import decode_imu
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import about_axis, from_roll_pitch_yaw
from hilsim.world.geometry.tracks import fixed_track, smooth_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.world import build_world
from tests.lidars import lidar_setting

G = 9.80665
FLOW = Flow(name="lidar/data", source="127.0.1.201", source_port=2368, destination="127.0.0.1", destination_port=2368)
COUNT_G, COUNT_DPS = 0.001221, 0.09766


def hdl32e(track, profile="hdl32e", **setting):
    spec = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / f"{profile}.toml"), profile)
    return LidarEmulator(
        setting=lidar_setting(spec, **setting),
        world=build_world([]),
        platform=build_platform(track),
        seed=1,
        utc_epoch_ns=0,
        data_flow=FLOW,
        position_flow=FLOW,
    )


def modules(lidar):
    """``float64[3, 4]``, the median of what half a second of position packets say."""
    return np.median(decode_imu(lidar.position_span(500_000_000, 1_000_000_000).payload), axis=0)


def moving(position, turn, seconds=2.0, step_s=0.01):
    """A track through positions and orientations that are functions of time."""
    times_s = np.arange(0.0, seconds, step_s)
    return smooth_track((times_s * 1e9).astype(np.int64), np.array([position(t) for t in times_s]), np.array([turn(t) for t in times_s]))


LEVEL = (1.0, 0.0, 0.0, 0.0)


def test_at_rest_and_level_both_upward_accelerometers_read_gravity_and_all_else_nothing():
    found = modules(hdl32e(fixed_track(Pose())))
    np.testing.assert_allclose(found[:, 0], 0.0, atol=COUNT_DPS / 2)
    np.testing.assert_allclose(found[:, 1], 35.0, atol=0.1)
    np.testing.assert_allclose(found[:, 2:], [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]], atol=COUNT_G / 2)


def test_a_sensor_that_is_mounted_nose_up_reads_part_of_gravity_ahead():
    found = modules(hdl32e(fixed_track(Pose()), mount_rotation_deg=(0.0, -30.0, 0.0)))
    ahead, up = 0.5, np.sqrt(0.75)
    np.testing.assert_allclose(found[:, 2:], [[up, ahead], [up, 0.0], [-ahead, 0.0]], atol=COUNT_G)


def test_a_sensor_that_is_rolled_to_the_right_reads_part_of_gravity_on_its_left():
    found = modules(hdl32e(fixed_track(Pose(orientation=from_roll_pitch_yaw(30.0, 0.0, 0.0)))))
    left, up = 0.5, np.sqrt(0.75)
    np.testing.assert_allclose(found[:, 2:], [[up, 0.0], [up, left], [0.0, left]], atol=COUNT_G)


def test_speeding_up_is_felt_ahead():
    found = modules(hdl32e(moving(lambda t: (0.5 * 2.0 * t * t, 0.0, 0.0), lambda _: LEVEL)))
    assert found[0, 3] == pytest.approx(2.0 / G, abs=0.003)
    assert found[2, 2] == pytest.approx(-2.0 / G, abs=0.003)


def test_a_curve_to_the_left_is_felt_on_the_left_and_about_the_upward_axis():
    rate, radius = 0.5, 10.0
    track = moving(lambda t: (radius * np.sin(rate * t), radius * (1.0 - np.cos(rate * t)), 0.0), lambda t: about_axis((0.0, 0.0, 1.0), rate * t))
    found = modules(hdl32e(track))
    assert found[2, 0] == pytest.approx(np.degrees(rate), abs=COUNT_DPS)
    np.testing.assert_allclose(found[1:, 3], rate * rate * radius / G, atol=0.003)
    np.testing.assert_allclose(found[:2, 0], 0.0, atol=COUNT_DPS)


def test_rolling_and_pitching_are_read_by_the_other_gyroscopes():
    rolling = modules(hdl32e(moving(lambda _: (0.0, 0.0, 0.0), lambda t: about_axis((1.0, 0.0, 0.0), 0.2 * (t - 0.75)))))
    pitching = modules(hdl32e(moving(lambda _: (0.0, 0.0, 0.0), lambda t: about_axis((0.0, 1.0, 0.0), 0.2 * (t - 0.75)))))
    np.testing.assert_allclose(rolling[:, 0], [0.0, np.degrees(0.2), 0.0], atol=COUNT_DPS)
    np.testing.assert_allclose(pitching[:, 0], [-np.degrees(0.2), 0.0, 0.0], atol=COUNT_DPS)  # nose down, about the axis to the left


def test_a_sensor_off_the_axis_of_a_turn_feels_it():
    lidar = hdl32e(moving(lambda _: (0.0, 0.0, 0.0), lambda t: about_axis((0.0, 0.0, 1.0), 3.0 * t)), mount_position_m=(0.5, 0.0, 0.0))
    (_, ahead, up), (_, _, about_up) = felt_motion(lidar.plan, lidar.platform, 1_000_000_000, origin_of(lidar.plan))
    assert (ahead, up) == pytest.approx((-9.0 * 0.5 / G, 1.0), abs=2e-3)
    assert about_up == pytest.approx(np.degrees(3.0), abs=0.01)


def test_a_vlp16_has_no_imu():
    payload = hdl32e(fixed_track(Pose()), profile="vlp16").position_span(0, 500_000_000).payload
    assert not payload[:, :187].any()


@pytest.mark.parametrize(
    ("profile", "mode", "offset_ns"),
    [("hdl32e", "strongest", 542_592), ("hdl32e", "dual", 266_112), ("vlp16", "strongest", 0)],  # the manual's formula: 542.592 us
)
def test_the_stamp_is_of_the_models_firing(profile, mode, offset_ns):
    lidar = hdl32e(fixed_track(Pose()), profile, return_mode=mode)
    assert lidar.plan.own.stamp_offset_ns == offset_ns
    stamps = decode_data_packets(lidar.data_packets(0, 20).payload)["timestamp"]
    packet_ns = lidar.plan.sequences_per_packet * lidar.plan.sequence_ns
    np.testing.assert_array_equal(stamps, (np.arange(20) * packet_ns + offset_ns) // 1000)
