"""A real daemon whose rig is changed while packets flow: at exact rig times, without a gap, and as its script is recorded offline."""

import asyncio
import json
import random
import socket
from collections import defaultdict

import aiohttp
import dpkt
import numpy as np
import pytest
import velodyne_decoder

import hilsim
from hilsim.protocols.velodyne.data import DATA_PACKET_DTYPE
from tests import commands
from tests.support import write_rig
from tests.system.conftest import SCENE

pytestmark = pytest.mark.system

FREE_CLOCK = """
[[sensor]]
name = "{name}"
{keys}
mount_position_m = {mount}
[sensor.network]
source = "127.0.1.{host}"
source_ports = "any"
data_port = {data_port}
position_port = {position_port}
"""
CONTROL = '[control]\nsocket = "control"\n'


def sensor(name, data_port, position_port, keys="", mount="[0.0, 0.0, 0.0]", host=201):
    return FREE_CLOCK.format(name=name, data_port=data_port, position_port=position_port, keys=keys, mount=mount, host=host)


def payloads(path, port):
    """UDP payloads of a capture to a port, in their order."""
    found = defaultdict(list)
    with path.open("rb") as file:
        for _, frame in dpkt.pcap.UniversalReader(file):
            datagram = dpkt.ethernet.Ethernet(frame).data.data
            found[datagram.dport].append(bytes(datagram.data))
    return found[port]


def random_change(rng, names, sensors):
    """A change that can be made of a rig with these objects and sensors."""
    place = [rng.uniform(-8.0, 8.0), rng.uniform(-5.0, 5.0), rng.uniform(-0.5, 2.0)]
    kind = rng.choice(["add", "move", "move", "travel", "remove", "weather", "sensor"])
    match kind:
        case "add":
            names.append(f"object {len(names)} {rng.random()}")
            shape = {"name": names[-1], "position_m": place, "material": rng.choice(["brick", "glass", "metal"]), "label": rng.randrange(200)}
            return {
                "kind": "add",
                **rng.choice([{"box": {**shape, "size_m": [0.5, 1.0, 1.5]}}, {"sphere": {**shape, "radius_m": 0.6, "tolerance_m": 0.02}}]),
            }
        case "move" if names:
            return {"kind": "move", "name": rng.choice(names), "position_m": place, "rotation_deg": [0.0, 0.0, rng.uniform(-180.0, 180.0)]}
        case "travel" if names:
            waypoints = [{"time_s": float(second), "position_m": [rng.uniform(-8.0, 8.0), place[1], place[2]]} for second in range(0, 30, 3)]
            return {"kind": "travel", "name": rng.choice(names), "motion": {"waypoints": waypoints}}
        case "remove" if len(names) > 2:
            return {"kind": "remove", "name": names.pop(rng.randrange(len(names)))}
        case "weather":
            return {"kind": "weather", "weather": {"fog_visibility_m": rng.uniform(10.0, 200.0)}}
    setting = rng.choice(
        [
            {"return_mode": rng.choice(["strongest", "last", "dual"])},
            {"laser": rng.random() < 0.5},
            {"rotation_rate_rpm": rng.choice([300, 600, 1200])},
            {"window": {"soiling_transmission": rng.uniform(0.3, 1.0)}},
        ]
    )
    return {"kind": "sensor", "sensor": rng.choice(sensors), **setting}


def test_a_lived_session_and_its_script_give_the_same_packets(daemon, tmp_path, receiver):
    front, rear = receiver(), receiver()
    ports = [front.port, rear.port]
    sensors = sensor("front", ports[0], receiver().port) + sensor("rear", ports[1], receiver().port, "sub_rays = 7", "[-1.0, 0.5, 0.2]", 202)
    path = write_rig(tmp_path, SCENE + sensors + CONTROL)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    control, rng, names = hilsim.connect(tmp_path / "control"), random.Random(17), []  # noqa: S311 - no secret
    made = 0
    for _ in range(60):
        change = random_change(rng, names, ["front", "rear"])
        times = control.change(**change)
        assert all(begun_s >= times.at_s for begun_s in times.sensors.values())
        made += 1
    script = control.script()
    assert len(script) == made == control.state()["changes"]
    lived_s = control.state()["rig_s"]
    assert running.stop()[0] == 0
    lines = tmp_path / "script.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in script))
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s + 3.0, script=lines)
    for port in ports:
        lived, played = payloads(tmp_path / "lived.pcap", port), payloads(tmp_path / "played.pcap", port)
        stamps = np.frombuffer(b"".join(lived), DATA_PACKET_DTYPE)["timestamp"]
        is_gapless = (np.diff(stamps.astype(np.int64)) % 3_600_000_000 < 1400).all()
        assert len(lived) > 100
        if is_gapless:  # a machine that stands still may leave packets out; those that were sent are the script's all the same
            assert lived == played[: len(lived)]
        else:
            assert set(lived) <= set(played)


def test_a_moved_object_is_where_the_numbers_say_in_packets_that_leave_soon_after(daemon, tmp_path, receiver):
    stream = receiver()
    rig_text = SCENE.replace("seed = 5", "seed = 5\nlead_ms = 8.0") + sensor("lidar", stream.port, receiver().port) + CONTROL
    running = daemon(write_rig(tmp_path, rig_text))
    control = hilsim.connect(tmp_path / "control")
    control.change("add", box={"name": "crate", "size_m": [0.2, 3.0, 3.0], "position_m": [6.0, 0.0, 0.0], "material": "plaster"})
    for distance_m in (4.0, 7.0, 3.0):
        stream.drain()
        times = control.change("move", name="crate", position_m=[distance_m, 0.0, 0.0])
        received = [payload for payload, _ in stream.take(420)]
        decoder = velodyne_decoder.StreamDecoder(velodyne_decoder.Config(model=velodyne_decoder.Model.VLP16))
        scans = [scan for at, payload in enumerate(received) if (scan := decoder.decode(1000.0 + at * 0.001327, payload)) is not None]
        points = np.asarray(scans[-1][1])
        ahead = points[(np.abs(points[:, 1]) < 0.5) & (points[:, 0] > 1.0)]
        level = ahead[np.abs(ahead[:, 2]) < 1.0]
        assert abs(np.median(level[:, 0]) - (distance_m - 0.1)) < 0.03
        assert set(times.sensors) == {"lidar"}
    running.stop()


def test_a_script_is_played_at_its_times(daemon, tmp_path, receiver):
    stream = receiver()
    path = write_rig(tmp_path, SCENE + sensor("lidar", stream.port, receiver().port) + CONTROL)
    script = tmp_path / "script.toml"
    script.write_text(
        '[[change]]\nat_s = 1.5\nkind = "add"\nsphere = { name = "ball", radius_m = 1.0, position_m = [4.0, 0.0, 0.0], tolerance_m = 0.01 }\n'
        '[[change]]\nat_s = 1.9000123\nkind = "sensor"\nsensor = "lidar"\nlaser = false\n'
    )
    running = daemon(path, "--script", str(script), "--record", str(tmp_path / "lived.pcap"))
    running.await_log(r'"event": "rig.changed", "kind": "sensor"')
    stream.drain()
    stream.take(300)
    made = hilsim.connect(tmp_path / "control").script()
    running.stop()
    assert [change["kind"] for change in made] == ["add", "sensor"]
    assert all(change["at_s"] >= at_s for change, at_s in zip(made, (1.5, 1.9000123), strict=True))  # later only where the machine stood still
    lines = tmp_path / "made.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in made))
    hilsim.record(path, tmp_path / "played.pcap", duration_s=4.0, script=lines)
    lived, played = payloads(tmp_path / "lived.pcap", stream.port), payloads(tmp_path / "played.pcap", stream.port)
    assert set(lived) <= set(played)
    last = np.frombuffer(lived[-1], DATA_PACKET_DTYPE)["blocks"]["channels"]["distance"]
    assert not last.any()


def test_a_script_that_cannot_be_played_is_refused_before_anything_is_sent(daemon, tmp_path, receiver):
    path = write_rig(tmp_path, SCENE + sensor("lidar", receiver().port, receiver().port))
    script = tmp_path / "script.jsonl"
    script.write_text('{"at_s": 1.0, "kind": "remove", "name": "gate"}\n')
    running = daemon(path, "--script", str(script), wait=False)
    assert running.process.wait(300) == 1
    assert "change 0 at 1 s: name must be one object's, got" in running.text()


def test_a_reload_begins_with_the_rigs_file_again(daemon, tmp_path, receiver):
    stream = receiver()
    path = write_rig(tmp_path, SCENE + sensor("lidar", stream.port, receiver().port) + CONTROL)
    running = daemon(path)
    control = hilsim.connect(tmp_path / "control")
    control.change("add", box={"name": "crate", "size_m": [1.0, 1.0, 1.0], "position_m": [3.0, 0.0, 0.0]})
    assert "crate" in control.state()["objects"]
    running.process.send_signal(1)
    running.await_log(r'"event": "rig.reloaded"')
    state = control.state()
    assert "crate" not in state["objects"]
    assert state["changes"] == 0
    control.change("add", box={"name": "crate", "size_m": [1.0, 1.0, 1.0], "position_m": [3.0, 0.0, 0.0]})
    assert control.state()["healthy"] in (True, False)


def test_a_rig_is_changed_over_http_and_a_stream_shows_it(daemon, tmp_path, receiver):
    stream = receiver()
    running = daemon(write_rig(tmp_path, SCENE + sensor("lidar", stream.port, receiver().port) + '[control]\nhttp = "127.0.0.1:0"\n'))
    address = running.await_log(r'"address": "(http://[^"]+)"')[1]
    crate = {"name": "crate", "size_m": [1.0, 1.0, 1.0], "position_m": [3.0, 0.0, 0.0]}
    control = hilsim.connect(address, token_file=tmp_path / "control.token")
    assert set(control.change("add", box=crate).sensors) == {"lidar"}
    assert "crate" in control.state()["objects"]

    async def change_and_watch():
        headers = {"Authorization": f"Bearer {(tmp_path / 'control.token').read_text().strip()}"}
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{address}/v1/stream", headers=headers) as events:
            await events.send_json({"id": 1, "do": "subscribe", "every_s": 0.05})
            assert await events.receive_json() == {"id": 1, "ok": True}
            before = await events.receive_json()
            await events.send_json({"id": 2, "do": "change", "change": {"kind": "remove", "name": "crate"}})
            answer, after = {}, before
            while not answer or "crate" in after["objects"]:
                message = await events.receive_json()
                answer, after = (message, after) if "id" in message else (answer, message)
            return before, answer, after

    before, answer, after = asyncio.run(asyncio.wait_for(change_and_watch(), 60))
    assert (before["event"], before["changes"], "crate" in before["objects"]) == ("state", 1, True)
    assert (answer["id"], answer["ok"]) == (2, True)
    assert (after["event"], after["changes"]) == ("state", 2)
    assert [change["kind"] for change in control.script()] == ["add", "remove"]
    asked = commands.run("control", address, '{"id": 3, "do": "script"}', "--token-file", str(tmp_path / "control.token"))
    assert json.loads(asked.stdout) == {"id": 3, "ok": True, "changes": list(control.script())}
    assert commands.run("control", address, "status", "--token-file", str(tmp_path / "control.token")).stdout == '{"replays": []}\n'
    assert commands.run("control", address, "status").returncode == 2
    with pytest.raises(hilsim.ConfigError, match="a request must have the token of the daemon"):
        hilsim.connect(address, token="x" * 43).state()
    assert running.stop()[0] == 0
    assert '"level": "error"' not in running.text()


REFUSED = {
    "no JSON": ('{"do": ', "a request must be a JSON object, got"),
    "a number JSON does not allow": ('{"do": "seek", "position_s": NaN}', "the number NaN, which JSON does not allow"),
    "nested without end": ('{"do":' * 5000, "a request must be a JSON object, got"),
    "no request": ('{"id": 1}', "do must be one of help, change,"),
    "an unknown one": ('{"do": "explode"}', 'got "explode"'),
    "a list as a name": ('{"do": ["change"]}', "do must be one of"),
    "an unknown key": ('{"do": "help", "hlep": 1}', "hlep: unknown key"),
    "a change that is none": ('{"do": "change", "change": [1]}', "change must be an object with a kind, got [1]"),
    "a change without a kind": ('{"do": "change", "change": {}}', "kind must be given"),
    "a time that has passed": ('{"do": "change", "change": {"kind": "weather", "weather": {}, "at_s": 0.0}}', "at_s must be"),
    "an object that is not there": ('{"do": "change", "change": {"kind": "remove", "name": "gate"}}', 'got "gate", which no objects have'),
    "a sensor that is not there": (
        '{"do": "change", "change": {"kind": "sensor", "sensor": "x", "laser": false}}',
        "must be a sensor of the rig (lidar)",
    ),
    "a rate that it has not": ('{"do": "change", "change": {"kind": "sensor", "sensor": "lidar", "rotation_rate_rpm": 610}}', "got 610"),
    "a file that is not there": ('{"do": "change", "change": {"kind": "add", "mesh": {"name": "a", "file": "gone.obj"}}}', "gone.obj"),
    "a replay that is not there": ('{"do": "pause", "replay": "x"}', "replay"),
}


def test_hostile_requests_are_refused_and_the_stream_goes_on(daemon, tmp_path, receiver):
    stream = receiver()
    running = daemon(write_rig(tmp_path, SCENE + sensor("lidar", stream.port, receiver().port) + CONTROL))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "control"))
        lines = client.makefile("rw")
        for request, reason in REFUSED.values():
            lines.write(request + "\n")
            lines.flush()
            answer = json.loads(lines.readline())
            assert answer["ok"] is False
            assert reason in answer["error"]
    rng = random.Random(3)  # noqa: S311 - no secret
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "control"))
            client.sendall(rng.randbytes(rng.randrange(1, 300_000)))  # too much, no line, no text; half of them are gone before an answer comes
    before = hilsim.connect(tmp_path / "control").state()["sensors"]["lidar"]["flows"]["data"]["sent_packets"]
    stream.drain()
    assert len(stream.take(50)) == 50
    assert hilsim.connect(tmp_path / "control").state()["sensors"]["lidar"]["flows"]["data"]["sent_packets"] > before
    assert '"level": "error"' not in running.text()
