"""Poses from telemetry that pymavlink packs."""

import math
import socket

import numpy as np
import pytest
from pymavlink.dialects.v20 import common

from hilsim.errors import PacketError
from hilsim.parts.external.sources.mavlink import MavlinkPoses, mavlink_snapshots
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, roll_pitch_yaw_rad
from tests.mavlink import packer

_HEADING = 0.6  # rad, clockwise from north
_LEVEL = (math.cos(_HEADING / 2), 0.0, 0.0, math.sin(_HEADING / 2))
_NO = [0.0] * 21


def attitude(ms, turn=_LEVEL, rates=(0.0, 0.0, 0.0), sender=None):
    return common.MAVLink_attitude_quaternion_message(ms, *turn, *rates).pack(sender or packer())


def position(ms, place=(1.0, 2.0, -3.0), velocity=(0.5, 1.5, -0.25)):
    return common.MAVLink_local_position_ned_message(ms, *place, *velocity).pack(packer())


def odometry(us, frame=1, child=12, turn=_LEVEL, velocity=(2.0, 0.0, 0.0), rates=(0.1, 0.2, 0.3)):
    return common.MAVLink_odometry_message(us, frame, child, 1.0, 2.0, -3.0, list(turn), *velocity, *rates, _NO, _NO).pack(packer())


def test_odometry_in_ned_and_frd_becomes_enu_and_flu():
    (found,) = MavlinkPoses().feed(odometry(1_500_000))
    motion = found.platform
    assert found.time_ns == 1_500_000_000
    assert motion.position_m == (2.0, 1.0, 3.0)
    np.testing.assert_allclose(roll_pitch_yaw_rad(motion.orientation), (0.0, 0.0, math.pi / 2 - _HEADING), atol=1e-6)
    np.testing.assert_allclose(motion.velocity_mps, (2.0 * math.sin(_HEADING), 2.0 * math.cos(_HEADING), 0.0), atol=1e-6)
    np.testing.assert_allclose(motion.rates_radps, (0.1, -0.2, -0.3), atol=1e-6)


def test_odometry_in_enu_has_the_same_pose_as_in_ned():
    body = from_roll_pitch_yaw(0.0, 0.0, math.degrees(math.pi / 2 - _HEADING))
    w, x, y, z = body
    turn = (-x, w, z, -y)  # times half a turn about x: world ENU from body FRD
    (found,) = MavlinkPoses().feed(odometry(1, frame=4, turn=turn))
    np.testing.assert_allclose(np.abs(np.dot(found.platform.orientation, body)), 1.0, atol=1e-6)
    assert found.platform.position_m == (1.0, 2.0, -3.0)
    np.testing.assert_allclose(found.platform.velocity_mps, (2.0 * math.sin(_HEADING), 2.0 * math.cos(_HEADING), 0.0), atol=1e-6)


def test_velocities_in_the_poses_own_frame_are_taken_as_they_are():
    (found,) = MavlinkPoses().feed(odometry(1, child=1, velocity=(1.0, 2.0, 3.0), rates=(0.0, 0.0, 0.5)))
    np.testing.assert_allclose(found.platform.velocity_mps, (2.0, 1.0, -3.0), atol=1e-6)
    np.testing.assert_allclose(found.platform.rates_radps, (0.0, 0.0, -0.5), atol=1e-6)


def test_attitude_and_position_give_a_snapshot_each_once_both_are_there():
    poses = MavlinkPoses()
    assert list(poses.feed(attitude(100, rates=(0.0, 0.0, 2.0)))) == []
    (first,) = poses.feed(position(150))
    assert first.time_ns == 150_000_000
    np.testing.assert_allclose(roll_pitch_yaw_rad(first.platform.orientation)[2], math.pi / 2 - _HEADING - 0.1, atol=1e-6)
    assert first.platform.position_m == (2.0, 1.0, 3.0)
    (second,) = poses.feed(attitude(160))
    np.testing.assert_allclose(second.platform.position_m, (2.015, 1.005, 3.0025), atol=1e-6)
    np.testing.assert_allclose(second.platform.velocity_mps, (1.5, 0.5, 0.25), atol=1e-6)
    assert list(poses.feed(position(160))) == []  # the time is not later
    assert list(poses.feed(position(700))) == []  # the attitude is too old


def test_other_systems_are_passed_over():
    poses = MavlinkPoses()
    assert len(list(poses.feed(odometry(1) + attitude(1, sender=packer(9, 1)) + odometry(2)))) == 2
    assert (poses.system, poses.others) == (1, 1)


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (odometry(1, frame=0), "frame_id must be MAV_FRAME 1, 4, 20 or 21 .* got 0 and 12"),
        (odometry(1, child=3), "got 1 and 3"),
        (odometry(1, turn=(0.0, 0.0, 0.0, 0.0)), "quaternion of message 331 must have length 1, got 0"),
        (odometry(1, turn=(math.nan, 0.0, 0.0, 0.0)), "must have length 1, got nan"),
        (odometry(1, velocity=(math.inf, 0.0, 0.0)), "message 331: poses and velocities must be finite"),
    ],
)
def test_what_cannot_be_used_is_refused(message, rule):
    with pytest.raises(PacketError, match=rule):
        list(MavlinkPoses().feed(message))


def test_datagrams_of_a_socket_are_read():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(0.2)
        for us in (1000, 2000, 3000):
            sending.sendto(odometry(us), listening.getsockname())
        assert [found.time_ns for found in mavlink_snapshots(listening)] == [1_000_000, 2_000_000, 3_000_000]
