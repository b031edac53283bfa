"""Live topics and channels of ``hilsim publish``: another process subscribes to ROS 2 topics, a WebSocket client to Foxglove's channels."""

import asyncio
import contextlib
import json
import signal
import struct
import subprocess
import sys
import time
from collections import defaultdict

import pytest
import websockets

from tests.system.conftest import sensor_table
from tests.system.test_changes import CONTROL

pytestmark = [pytest.mark.system, pytest.mark.cold]
DOMAIN = "87"
FEWEST = 5

_SUBSCRIBER = f"""
import sys, time
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from hilsim.outputs.dds import DdsTypes
from hilsim.outputs.ros import ros_typestore
kind = DdsTypes(ros_typestore()).kind("sensor_msgs/msg/PointCloud2")
participant = DomainParticipant({DOMAIN})
qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(10))
reader = DataReader(participant, Topic(participant, "rt" + sys.argv[1], kind), qos)
print("ready", flush=True)
count = 0
while count < {FEWEST}:
    for message in reader.take(10):
        assert message.width * message.point_step == len(message.data) > 100_000
        assert [field.name for field in message.fields] == ["x", "y", "z", "intensity", "ring", "time"]
        count += 1
    time.sleep(0.01)
print(message.header.frame_id)
"""


def recorded(tmp_path):
    capture = tmp_path / "drive.pcap"
    subprocess.run([sys.executable, "-m", "hilsim", "record", "demo", "-o", str(capture), "--duration-s", "1.5"], check=True, capture_output=True)
    return capture


async def heard(url, fewest=FEWEST):
    """Messages of each of three channels, until each has some."""
    topics, found, asked_s = {}, defaultdict(list), 0.0
    async with asyncio.timeout(120), websockets.connect(url, subprotocols=["foxglove.sdk.v1"], max_size=None) as socket:
        while len(found) < 3 or min(map(len, found.values())) < fewest:
            with contextlib.suppress(TimeoutError):
                message = await asyncio.wait_for(socket.recv(), 1.0)
                if isinstance(message, str):
                    text = json.loads(message)
                    topics |= {each["id"]: each["topic"] for each in text.get("channels", ()) if text["op"] == "advertise"}
                elif message[0] == 1:
                    found[topics[struct.unpack("<I", message[1:5])[0]]].append(message[13:])  # behind the channel and the time
            if time.monotonic() > asked_s + 0.5:  # again: the server advertises a channel a moment before it accepts a subscription
                asked_s = time.monotonic()
                missing = [{"id": channel, "channelId": channel} for channel, topic in topics.items() if topic not in found]
                await socket.send(json.dumps({"op": "subscribe", "subscriptions": missing}))
    return found


def test_a_capture_is_published_to_ros_2_and_to_foxglove(tmp_path):
    capture = recorded(tmp_path)
    subscriber = subprocess.Popen([sys.executable, "-c", _SUBSCRIBER, "/lidar_127_0_1_201/points"], stdout=subprocess.PIPE, text=True)
    command = [sys.executable, "-m", "hilsim", "publish", str(capture), "--ros2", "--domain", DOMAIN, "--foxglove", "127.0.0.1:0", "--laser-scan"]
    publisher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert subscriber.stdout.readline() == "ready\n"
        found = asyncio.run(heard(publisher.stdout.readline().strip()))
        assert set(found) == {"/tf", "/lidar_127_0_1_201/points", "/lidar_127_0_1_201/scan"}
        output, _ = subscriber.communicate(timeout=120)
        assert (subscriber.returncode, output) == (0, "lidar_127_0_1_201\n")
        publisher.send_signal(signal.SIGTERM)
        assert publisher.wait(60) == 0
    finally:
        for process in (subscriber, publisher):
            process.kill()
            process.wait()
            process.stdout.close()


def test_the_state_of_a_daemon_is_among_the_channels(daemon, rig, receiver, tmp_path):
    running = daemon(rig(sensor_table("front", receiver().port, receiver().port), CONTROL))
    command = [sys.executable, "-m", "hilsim", "publish", str(tmp_path / "control"), "--foxglove", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as publisher:
        try:
            heard_of = asyncio.run(heard(publisher.stdout.readline().strip(), fewest=2))
        finally:
            publisher.terminate()
    assert set(heard_of) == {"/tf", "/front/points", "/hilsim/state"}
    first, second = (json.loads(message) for message in heard_of["/hilsim/state"][:2])
    assert 0.0 < first["rig_s"] < second["rig_s"]
    assert second["health"]["level"] in {"healthy", "degraded"}
    assert running.stop()[0] == 0
