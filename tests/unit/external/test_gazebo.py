"""Poses of a Gazebo world: messages, and a subscriber beside a publisher over real sockets."""

import os
import threading

import pytest

from hilsim.errors import PacketError
from hilsim.parts.external.sources.gazebo import gazebo_snapshot, gazebo_snapshots
from hilsim.parts.gazebo.specs import GazeboSpec
from hilsim.parts.gazebo.subscriber import Subscriber
from hilsim.parts.gazebo.transport import Transport
from hilsim.protocols.gazebo import NamedPose, encode_poses
from hilsim.protocols.protobuf import double, message, string, varint
from hilsim.world.geometry.poses import Pose, mounting

CAR = NamedPose("car", 8, mounting((1.0, 2.0, 3.0), (0.0, 0.0, 90.0)))
CRATE = NamedPose("crate", 9, Pose(position_m=(4.0, 5.0, 6.0)))
LINK = NamedPose("crate", 10, Pose(position_m=(7.0, 7.0, 7.0)))
CONTENT = encode_poses(2_000_000_003, [CAR, CRATE, LINK])


def test_models_are_taken_by_name_and_the_first_of_a_name_counts():
    found = gazebo_snapshot(CONTENT, "car")
    assert found.time_ns == 2_000_000_003
    assert found.platform.pose == CAR.pose
    assert found.platform.velocity_mps is None
    assert [(one.id, one.name, one.motion.position_m, one.size_m) for one in found.objects] == [(9, "crate", (4.0, 5.0, 6.0), None)]
    assert [one.name for one in gazebo_snapshot(CONTENT, objects=["car", "gone"]).objects] == ["car"]
    assert gazebo_snapshot(CONTENT, "tank").platform is None


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", r"Pose_V\.header\.stamp must be given"),
        (message(1, message(1, varint(1, 2**63))), "Pose_V.header.stamp: distance of a time stamp"),
        (message(1, message(1, b"")) + message(2, string(2, "a")), r"Pose_V\.pose\[0\]\.orientation must have length 1, got 0"),
        (message(2, message(4, double(2, float("nan")))), r"Pose_V\.pose\[0\]\.position\.x: must be finite, got nan"),
    ],
)
def test_what_is_no_such_message_is_refused_with_the_fields_path(content, rule):
    with pytest.raises(PacketError, match=rule):
        gazebo_snapshot(content, where="m")


def test_subscriber_finds_the_publisher_and_gets_its_messages():
    spec = GazeboSpec(partition=f"poses-{os.getpid()}")
    transport = Transport(spec, [("/world/yard/pose/info", "Pose_V"), ("/world/yard/pose", "Pose_V")])
    transport.open()
    done = threading.Event()

    def publish():
        while not done.wait(0.01):
            for topic in ("/world/yard/pose", "/world/yard/pose/info"):
                if transport.wants(topic):
                    transport.publish(topic, CONTENT if topic.endswith("info") else b"of another topic")

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        with Subscriber(spec, "/world/yard/pose/info", "Pose_V") as subscriber:
            snapshots = gazebo_snapshots(subscriber, "car", silence_s=30.0)
            assert [next(snapshots).time_ns for _ in range(5)] == 5 * [2_000_000_003]
    finally:
        done.set()
        publisher.join()
        transport.close()


def test_subscriber_ends_after_a_silence_and_must_be_entered():
    spec = GazeboSpec(partition=f"silence-{os.getpid()}")
    with Subscriber(spec, "/nothing", "Pose_V") as subscriber:
        assert list(subscriber.messages(silence_s=0.2)) == []
    with pytest.raises(RuntimeError, match="must be entered"):
        next(Subscriber(spec, "/nothing", "Pose_V").messages())
