"""Live channels of ``hilsim publish``, of which a WebSocket client of Foxglove's protocol takes messages; ``tests/interop/test_ros2.py`` reads its topics."""

import asyncio
import base64
import contextlib
import json
import signal
import subprocess
import sys

import pytest
from mcap.reader import make_reader

import hilsim
from hilsim.api.packet import read_capture
from hilsim.protocols.protobuf import fields
from tests.foxglove_client import FoxgloveClient
from tests.system.conftest import sensor_table
from tests.system.test_changes import CONTROL

pytestmark = [pytest.mark.system, pytest.mark.cold]
MIN_MESSAGES = 5


def recorded(tmp_path):
    capture = tmp_path / "drive.pcap"
    subprocess.run([sys.executable, "-m", "hilsim", "record", "demo", "-o", str(capture), "--duration-s", "1.5"], check=True, capture_output=True)
    return capture


async def heard(url, expected, fewest=MIN_MESSAGES):
    """Messages of each of the expected channels, until each has some; the server must have no other channels."""
    async with asyncio.timeout(120), FoxgloveClient(url) as client:
        await client.until(lambda: all(len(client.messages[topic]) >= fewest for topic in expected))
    assert set(client.channels) == set(expected)
    return client.messages


def test_a_capture_is_published_to_foxglove(tmp_path):
    command = [sys.executable, "-m", "hilsim", "publish", str(recorded(tmp_path)), "--foxglove", "127.0.0.1:0", "--laser-scan"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as publisher:
        try:
            kinds = ("points", "scan", "packets/2368", "packets/8308")
            asyncio.run(heard(publisher.stdout.readline().strip(), ["/tf", *(f"/lidar_127_0_1_201/{kind}" for kind in kinds)]))
            publisher.send_signal(signal.SIGTERM)
            assert publisher.wait(60) == 0
        finally:
            publisher.kill()


@contextlib.contextmanager
def published(control):
    """The address at which a daemon is published for Foxglove."""
    command = [sys.executable, "-m", "hilsim", "publish", str(control), "--foxglove", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as publisher:
        try:
            yield publisher.stdout.readline().strip()
        finally:
            publisher.terminate()


@pytest.mark.extended
def test_the_state_of_a_daemon_is_among_the_channels(daemon, rig, receiver, tmp_path):
    data, position = receiver().port, receiver().port
    running = daemon(rig(sensor_table("front", data, position), CONTROL))
    topics = ["/tf", "/front/points", "/hilsim/state", "/scene", f"/front/packets/{data}", f"/front/packets/{position}"]
    with published(tmp_path / "control") as url:
        heard_of = asyncio.run(heard(url, topics, fewest=2))
    first, second = (json.loads(message) for message in heard_of["/hilsim/state"][:2])
    assert 0.0 < first["rig_s"] < second["rig_s"]
    assert second["health"]["level"] in {"healthy", "degraded"}
    assert running.stop()[0] == 0


async def watched_packets(url, topics):
    async with asyncio.timeout(120), FoxgloveClient(url, only=topics) as client:
        await client.until(lambda: all(len(client.messages[topic]) >= MIN_MESSAGES for topic in topics))
    return client


@pytest.mark.extended
def test_packets_of_a_daemon_are_those_that_left_in_the_channels_of_an_mcap_file(daemon, rig, receiver, tmp_path):
    data = receiver()
    path = rig(sensor_table("front", data.port, receiver().port), CONTROL, '[record]\nfile = "left.pcap"\n')
    running, topic = daemon(path), f"/front/packets/{data.port}"
    with published(tmp_path / "control") as url:
        client = asyncio.run(watched_packets(url, {topic}))
    assert running.stop()[0] == 0
    place = {packet.frame: number for number, packet in enumerate(read_capture(tmp_path / "left.pcap"))}
    places = [place[frame] for message in client.messages[topic] for _, frame in fields(message)]
    assert places == sorted(set(places))
    subprocess.run([sys.executable, "-m", "hilsim", "export", str(path), "-o", str(tmp_path / "a.mcap"), "--duration-s", "0.1"], check=True)
    with (tmp_path / "a.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
    (recorded,) = (each for each in summary.channels.values() if each.topic.endswith(f"-{data.port}"))
    live, schema = client.channels[topic], summary.schemas[recorded.schema_id]
    assert live["topic"].rpartition("/")[0] == recorded.topic.rpartition("/")[0] == "/front/packets"
    assert (live["encoding"], live["schemaName"], base64.b64decode(live["schema"])) == (recorded.message_encoding, schema.name, schema.data)


async def edited_scene(url, control, steps):
    """Updates of the scene that follow each step."""
    found = []
    async with asyncio.timeout(120), FoxgloveClient(url, only={"/scene"}) as client:
        await client.until(lambda: any(len(update.entities) > 1 for update in client.scene()))
        found.append(client.scene())
        for change, is_seen in steps:
            count = len(client.scene())
            await asyncio.to_thread(control.change, **change)
            await client.until(lambda: any(map(is_seen, client.scene()[count:])))  # noqa: B023 - it ends before the next step
            found.append(client.scene()[count:])
    return found


@pytest.mark.extended
def test_the_scene_of_a_daemon_is_published_and_edits_over_its_control_interface_are_seen(daemon, rig, receiver, tmp_path):
    running = daemon(rig(sensor_table("front", receiver().port, receiver().port), CONTROL))
    box = {"name": "crate", "position_m": [3.0, 0.0, 0.5], "size_m": [1.0, 1.0, 1.0], "label": 9}
    steps = [
        ({"kind": "add", "box": box}, lambda update: any(entity.id == "crate" for entity in update.entities)),
        ({"kind": "remove", "name": "crate"}, lambda update: any(deletion.id == "crate" for deletion in update.deletions)),
    ]
    with published(tmp_path / "control") as url:
        first, added, _ = asyncio.run(edited_scene(url, hilsim.connect(tmp_path / "control"), steps))
        again = asyncio.run(edited_scene(url, None, []))
    assert running.stop()[0] == 0
    whole = next(update for update in first if len(update.entities) > 1)
    assert len({entity.id for entity in whole.entities}) == 7
    moving = {entity.id for update in first[first.index(whole) + 1 :] for entity in update.entities}
    assert len(moving) <= 1
    crate = next(entity for update in added for entity in update.entities if entity.id == "crate")
    assert (crate.frame_id, crate.triangles[0].pose.position.x, crate.metadata[0].value) == ("map", 3.0, "9")
    assert {entity.id for update in again[0] for entity in update.entities} == {entity.id for entity in whole.entities}
