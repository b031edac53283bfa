"""Debian's own subscriber of ignition-transport, and the real definitions of its messages, against what hilsim publishes and records."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

from tests.system.test_gazebo import call, delimited
from tests.unit.gazebo.worlds import box, scanner, thing, world_text

SUBSCRIBER = Path("/usr/libexec/ignition/transport11/ign-transport-topic")
DEFINITIONS = next(Path("/usr/include/ignition").glob("msgs*/ignition/msgs/laserscan.proto"), None)
LIMIT_S = 120
PERIOD_NS = 33_000_000

pytestmark = pytest.mark.system
needs_subscriber = pytest.mark.skipif(not SUBSCRIBER.exists(), reason="needs Debian's ignition-transport-cli")
needs_namespace = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2 to make network namespaces")


def write_world(folder, rate=30):
    """A scanner before a wall."""
    lidar = scanner(columns=5, rows=3, elevation=(-0.1, 0.1), rate=rate)
    path = folder / "yard.sdf"
    path.write_text(world_text(thing("wall", box(1, 40, 40), "6 0 0 0 0 0"), thing("robot", "", "0 0 1 0 0 0", inner=lidar)))
    return path


@pytest.fixture
def inside():
    """Starts programs in a network namespace of their own, where loopback has multicast; ends them."""
    name, started = f"hilsim-{uuid.uuid4().hex[:8]}", []
    subprocess.run(["ip", "netns", "add", name], check=True)
    for command in ("link set lo up", "link set lo multicast on", "route add 239.0.0.0/8 dev lo"):
        subprocess.run(["ip", "-n", name, *command.split()], check=True)

    def start(*command, **options):
        environment = os.environ | {"IGN_PARTITION": name}
        started.append(subprocess.Popen(["ip", "netns", "exec", name, *map(str, command)], env=environment, **options))
        return started[-1]

    yield start
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.fixture
def published(inside, tmp_path):
    """A daemon that publishes the world."""
    write_world(tmp_path)
    ready = tmp_path / "ready.json"
    options = ("--set", 'gazebo.messages="ignition"', "--set", "metrics.enabled=false", "--ready-file", ready)
    daemon = inside(sys.executable, "-m", "hilsim", "run", tmp_path / "yard.sdf", *options, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + LIMIT_S
    while not ready.exists():
        assert daemon.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return daemon


def heard(text):
    """Times (ns) and sequence numbers of the messages that a subscriber printed."""
    stamps = re.findall(r"header \{\n  stamp \{\n(?:    sec: (\d+)\n)?(?:    nsec: (\d+)\n)?", text)
    times = [int(second or 0) * 1_000_000_000 + int(nanosecond or 0) for second, nanosecond in stamps]
    return np.array(times), np.array([int(number) for number in re.findall(r'key: "seq"\n    value: "(\d+)"', text)])


def listening(inside, topic, count):
    return inside(SUBSCRIBER, "-e", "-t", topic, "-n", count, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@needs_subscriber
@needs_namespace
def test_a_real_subscriber_gets_every_scan_in_its_time_while_others_come_stall_and_die(inside, published):
    steady = listening(inside, "/scan", 150)
    stalled = listening(inside, "/scan", 1_000_000)
    time.sleep(1.5)
    stalled.send_signal(signal.SIGSTOP)
    for _ in range(2):
        guest = listening(inside, "/scan/points", 10)
        assert len(heard(guest.communicate(timeout=LIMIT_S)[0])[0]) == 10
    killed = listening(inside, "/scan/points", 1_000_000)
    time.sleep(0.5)
    killed.kill()
    said, _ = steady.communicate(timeout=LIMIT_S)
    times, sequence = heard(said)
    assert times.size == 150
    np.testing.assert_array_equal(np.diff(times), PERIOD_NS)
    assert (np.diff(sequence) >= 1).all()
    assert said.count('frame: "robot::link::scanner"') == 150
    assert said.count("ranges: ") == 150 * 15
    assert published.poll() is None


@needs_subscriber
@needs_namespace
def test_a_real_subscriber_lists_the_topics_and_their_types(inside, published):
    topics = subprocess.PIPE
    deadline, names = time.monotonic() + LIMIT_S, ""
    while "/scan/points" not in names and time.monotonic() < deadline:
        names = inside(SUBSCRIBER, "-l", stdout=topics, stderr=subprocess.DEVNULL, text=True).communicate(timeout=LIMIT_S)[0]
    assert {"/scan", "/scan/points"} <= set(names.split())
    told = inside(SUBSCRIBER, "-i", "-t", "/scan/points", stdout=topics, stderr=subprocess.DEVNULL, text=True).communicate(timeout=LIMIT_S)[0]
    assert re.search(r"tcp://127\.0\.0\.1:\d+, ignition\.msgs\.PointCloudPacked", told)
    assert published.poll() is None


def decoded(message, kind, file):
    """A message as text, by protobuf's own compiler."""
    root = DEFINITIONS.parent.parent.parent
    command = ["protoc", f"--decode=ignition.msgs.{kind}", f"-I{root}", str(root / "ignition" / "msgs" / file)]
    done = subprocess.run(command, input=message, capture_output=True, check=True, timeout=60)
    return done.stdout.decode()


@pytest.mark.skipif(DEFINITIONS is None or shutil.which("protoc") is None, reason="needs Debian's libignition-msgs-dev and protobuf-compiler")
def test_recorded_messages_are_those_of_the_real_definitions(tmp_path):
    write_world(tmp_path, rate=10)
    call("record", "yard.sdf", "-o", "out", "--duration-s", "0.3", cwd=tmp_path)
    scans, clouds = delimited(tmp_path / "out" / "scan.LaserScan.pb"), delimited(tmp_path / "out" / "scan_points.PointCloudPacked.pb")
    assert len(scans) == len(clouds) == 3
    for number, (scan, cloud) in enumerate(zip(scans, clouds, strict=True)):
        told = decoded(scan, "LaserScan", "laserscan.proto")
        assert not re.search(r"^ *\d+: ", told, re.MULTILINE)  # a number that the definition does not know
        ranges_m = np.array([float(text) for text in re.findall(r"^ranges: (\S+)$", told, re.MULTILINE)])
        columns, rows = np.meshgrid(np.linspace(-0.5, 0.5, 5), np.linspace(-0.1, 0.1, 3))
        np.testing.assert_allclose(ranges_m, (5.5 / np.cos(columns) / np.cos(rows)).reshape(-1), atol=1e-3)
        assert len(re.findall(r"^intensities: 0$", told, re.MULTILINE)) == 15
        for line in (
            "count: 5",
            "vertical_count: 3",
            "range_min: 0.1",
            "range_max: 30",
            "angle_min: -0.5",
            "angle_step: 0.25",
            "vertical_angle_max: 0.1",
        ):
            assert f"\n{line}\n" in told
        times, sequence = heard(told + decoded(cloud, "PointCloudPacked", "pointcloud_packed.proto"))
        assert times.tolist() == [number * 100_000_000] * 2
        assert sequence.tolist() == [2 * number, 2 * number + 1]
    told = decoded(clouds[0], "PointCloudPacked", "pointcloud_packed.proto")
    assert not re.search(r"^ *\d+: ", told, re.MULTILINE)
    assert re.findall(r'  name: "(\w+)"\n(?:  offset: (\d+)\n)?  datatype: (\w+)\n  count: 1', told) == [
        ("x", "", "FLOAT32"), ("y", "4", "FLOAT32"), ("z", "8", "FLOAT32"), ("intensity", "12", "FLOAT32"), ("ring", "16", "UINT16"),
    ]  # fmt: skip
    for line in ("height: 3", "width: 5", "point_step: 18", "row_step: 90", "is_dense: true"):
        assert f"\n{line}\n" in f"{told}\n"
