"""Topics of ``hilsim publish`` as ROS 2's own rclpy and Fast DDS read them, in the environment ``.venv-ros``, against bags of the same source."""

import contextlib
import functools
import pickle
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from rosbags.highlevel import AnyReader

import hilsim
from hilsim.cli import cli
from hilsim.show.outputs.ros import ros_typestore
from tests.system.namespaces import Namespace

pytestmark = [pytest.mark.system, pytest.mark.cold]
ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-ros" / "bin" / "python"
DURATION_S = 0.4
POINTS, SCAN, CLOCK = "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/LaserScan", "rosgraph_msgs/msg/Clock"
PLAYER = f"""
import itertools, sys, time
from pathlib import Path
import hilsim
from hilsim.api.packet import Packet
from hilsim.show.outputs.ros2 import Ros2Topics
from hilsim.show.outputs.sources import capture_events, rig_events
path, layout = sys.argv[1:]
info, events = capture_events(Path(path)) if path.endswith(".pcap") else rig_events(hilsim.load_rig(path), {DURATION_S}, with_packets=False)
topics = Ros2Topics(info, layout=layout, with_laser_scans=True)
for event in itertools.cycle([event for event in events if not isinstance(event, Packet)]):
    topics.write(event)
    time.sleep(0.02)
"""


@functools.cache
def fault():
    """Reason why ROS 2 cannot be asked; None if it can."""
    if not PYTHON.is_file():
        return "its environment .venv-ros is not installed"
    probe = subprocess.run([PYTHON, "-c", "import rclpy, hilsim"], check=False, capture_output=True, text=True)
    return None if probe.returncode == 0 else (probe.stderr.strip().splitlines() or ["it ends the process"])[-1]


@pytest.fixture
def heard(tmp_path, monkeypatch):
    """Function that runs a publisher until ROS 2 has some messages of each topic; returns them by topic and reader, and what the publisher logged."""
    if fault() is not None:
        pytest.skip(f"ROS 2 does not load here: {fault()}")
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))
    network = Namespace()
    network.ip("link", "set", "lo", "up", "multicast", "on")
    network.ip("route", "add", "224.0.0.0/4", "dev", "lo")

    def run(topics, fewest, *publisher):
        observer = [ROOT / "tests/interop/ros2_observer.py", tmp_path / "heard", str(fewest), *(f"{topic}={kind}" for topic, kind in topics.items())]
        with contextlib.ExitStack() as stack, (tmp_path / "log.txt").open("w+") as log:

            def start(*words, **pipes):
                process = stack.enter_context(network.run(lambda: subprocess.Popen([PYTHON, *words], cwd=ROOT, text=True, **pipes)))
                stack.callback(process.kill)
                return process

            asked = start(*observer, stdout=subprocess.PIPE)
            assert asked.stdout.readline() == "ready\n"
            publishing = start(*publisher, stderr=log)
            assert asked.wait(200) == 0
            assert publishing.poll() is None
            log.seek(0)
            return pickle.loads((tmp_path / "heard").read_bytes()), log.read()  # noqa: S301 - of our own

    yield run
    network.close()


def assert_of_the_bag(found, topics, source, folder, *options):
    """Each message, as ROS 2 read it, is one of the bag that ``hilsim export`` makes of the source."""
    words = ["export", str(source), "-o", str(folder), "--format", "ros2", "--no-packets", *options]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    store, exported = ros_typestore(), {topic: set() for topic in topics}
    with AnyReader([folder], default_typestore=store) as reader:
        for connection, _, data in reader.messages():
            exported.setdefault(connection.topic, set()).add(bytes(data))
    for (topic, reader), messages in found.items():
        kind = topics[topic]
        again = {bytes(store.serialize_cdr(store.deserialize_cdr(each, kind), kind)) for each in messages}  # what is between the fields may differ
        assert again
        assert again <= exported[topic], (topic, reader)


def test_a_cloud_of_a_published_capture_reaches_ros_2_as_it_is_in_a_bag(heard, tmp_path):
    source, topics = tmp_path / "drive.pcap", {"/lidar_127_0_1_201/points": POINTS}
    hilsim.record("demo", source, duration_s=0.5)
    found, log = heard(topics, 1, "-m", "hilsim", "publish", source, "--ros2")
    assert_of_the_bag(found, topics, source, tmp_path / "bag")
    assert log.count("this ROS 2 has no package tf2_msgs") == 1


@pytest.mark.extended
@pytest.mark.parametrize("layout", ["xyzirt", "xyzircaedt"])
@pytest.mark.parametrize(
    ("source", "topics"),
    [
        ("demo", {"/roof/points": POINTS, "/roof/scan": SCAN, "/imu": "sensor_msgs/msg/Imu", "/odom": "nav_msgs/msg/Odometry", "/clock": CLOCK}),
        ("drive.pcap", {"/lidar_127_0_1_201/points": POINTS, "/lidar_127_0_1_201/scan": SCAN, "/lidar_127_0_1_201/fix": "sensor_msgs/msg/NavSatFix"}),
    ],
)
def test_messages_of_all_types_reach_readers_of_both_kinds(heard, tmp_path, source, topics, layout):
    if source == "drive.pcap":
        source = tmp_path / source
        hilsim.record("demo", source, duration_s=DURATION_S)
    found, _ = heard(topics, 3, "-c", PLAYER, source, layout)
    limits = ["--duration-s", str(DURATION_S)] if source == "demo" else []
    assert_of_the_bag(found, topics, source, tmp_path / "bag", "--laser-scan", "--layout", layout, *limits)


@pytest.mark.extended
def test_arguments_of_ros_rename_topics_and_unknown_ones_are_refused(heard, tmp_path):
    source = tmp_path / "drive.pcap"
    hilsim.record("demo", source, duration_s=0.5)
    command = ["-m", "hilsim", "publish", source, "--ros2", "--ros-args"]
    assert all(heard({"/car/cloud": POINTS}, 1, *command, "-r /lidar_127_0_1_201/points:=/car/cloud")[0].values())
    refused = subprocess.run([PYTHON, *command, "--nonsense"], check=False, capture_output=True, text=True, cwd=ROOT)
    assert (refused.returncode, "must be accepted by ROS 2, got ['--nonsense']" in refused.stderr) == (1, True)
