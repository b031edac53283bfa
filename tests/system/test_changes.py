"""A real daemon whose rig is changed while packets flow: at exact rig times, without a gap, and as its script is recorded offline."""

import asyncio
import contextlib
import json
import os
import random
import socket
import time
from collections import defaultdict

import aiohttp
import dpkt
import numpy as np
import pytest
import velodyne_decoder

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from tests import commands
from tests.random_changes import random_change, random_fault, random_replay_change
from tests.support import write_rig
from tests.system.conftest import SCENE
from tests.system.flying import figures

pytestmark = [pytest.mark.extended, pytest.mark.system]

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


def sensor(name, data_port, position_port, keys="sub_rays = 1", mount="[0.0, 0.0, 0.0]", host=201):
    return FREE_CLOCK.format(name=name, data_port=data_port, position_port=position_port, keys=keys, mount=mount, host=host)


def payloads(path, port):
    """UDP payloads of a capture to a port, in their order."""
    return payloads_by_port(path)[port]


def payloads_by_port(path):
    """UDP payloads of a capture by their destination's port, in their order. Captures of minutes are read here, so fields are read at their places."""
    found = defaultdict(list)
    with path.open("rb") as file:
        for _, frame in dpkt.pcap.UniversalReader(file):
            assert (frame[12:15], frame[23]) == (b"\x08\x00\x45", dpkt.ip.IP_PROTO_UDP)  # IPv4 without options
            found[int.from_bytes(frame[36:38], "big")].append(frame[42 : 34 + int.from_bytes(frame[38:40], "big")])
    return found


def stopped_s(running, control):
    """Stop a daemon; returns a rig time beyond its last packet: on a busy machine it sends for seconds while it is being stopped."""
    lived_s, asked_s = control.state()["rig_s"], time.monotonic()
    assert running.stop()[0] == 0
    return lived_s + time.monotonic() - asked_s + 1.0


def await_payloads(path, ports, more_than):
    """Wait until a capture that grows has more than some payloads to each port: a busy machine sends a part of them."""
    deadline_s = time.monotonic() + 120.0
    while True:
        time.sleep(1.0)
        with contextlib.suppress(dpkt.NeedData):  # its last record is half written
            found = payloads_by_port(path)
            if all(len(found[port]) > more_than for port in ports):
                return
        assert time.monotonic() < deadline_s


def ask_one_by_one(path, changes):
    """The answer to each change, with the next one sent after it."""
    control = hilsim.connect(path)
    for change in changes:
        times = control.change(**change)
        yield times.at_s, times.sensors


def ask_at_once(path, changes):
    """The answer to each change, with all sent before the first answer is read."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        lines = client.makefile("rw")
        lines.write("".join(json.dumps({"id": number, "do": "change", "change": change}) + "\n" for number, change in enumerate(changes)))
        lines.flush()
        for number in range(len(changes)):
            answer = json.loads(lines.readline())
            assert (answer["id"], answer["ok"]) == (number, True), answer
            yield answer["at_s"], answer["sensors"]


@pytest.mark.parametrize(
    ("seed", "ask", "share"), [(17, ask_one_by_one, 0.0), (18, ask_at_once, 0.0), (19, ask_one_by_one, 1.0), (20, ask_at_once, 0.5)]
)
def test_a_lived_session_and_its_script_give_the_same_packets(daemon, tmp_path, receiver, seed, ask, share):
    front, rear = receiver(), receiver()
    ports = [front.port, rear.port]
    sensors = sensor("front", ports[0], receiver().port) + sensor("rear", ports[1], receiver().port, "sub_rays = 7", "[-1.0, 0.5, 0.2]", 202)
    path = write_rig(tmp_path, SCENE + sensors + CONTROL)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    rng, names = random.Random(seed), []  # noqa: S311 - no secret
    both = ["front", "rear"]
    changes = [random_fault(rng, both) if rng.random() < share else random_change(rng, names, both) for _ in range(40)]
    begun = list(ask(tmp_path / "control", changes))
    assert all(begun_s >= at_s for at_s, times in begun for begun_s in times.values())
    made, control = len(begun), hilsim.connect(tmp_path / "control")
    script = control.script()
    assert len(script) == made == control.state()["changes"]
    lived_s = stopped_s(running, control)
    lines = tmp_path / "script.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in script))
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s, script=lines)
    all_lived, all_played = payloads_by_port(tmp_path / "lived.pcap"), payloads_by_port(tmp_path / "played.pcap")
    for name, port in zip(both, ports, strict=True):
        if f'"rays.given_up", "sensor": "{name}"' in running.text():
            continue  # a machine that is too busy renders fewer rays a beam, and says so
        lived, played = all_lived[port], all_played[port]
        stamps = np.frombuffer(b"".join(lived), DATA_PACKET_DTYPE)["timestamp"]
        is_gapless = (np.diff(stamps.astype(np.int64)) % 3_600_000_000 < 1400).all()
        assert len(lived) > 100
        if is_gapless:  # a machine that stands still may leave packets out; those that were sent are the script's all the same
            assert lived == played[: len(lived)]
        else:
            assert set(lived) <= set(played)


ROVERS = """
name = "rovers"
seed = 5
[metrics]
port = 0
[transmit]
late_policy = "send"
[[scene.plane]]
size_m = [60.0, 60.0]
[[scene.box]]
name = "gate"
size_m = [0.2, 4.0, 2.0]
position_m = [7.0, 0.0, 1.0]
[[rover]]
number = 1
network = {{ source = "{address}", destination = "{address}" }}
drive = {{ waypoints_m = [[4.0, 0.0], [0.0, 4.0]], columns = 60 }}
[[rover]]
number = 2
network = {{ source = "{address}", destination = "{address}" }}
drive = {{ steered_by = "buttons", position_m = [0.0, -4.0, 0.0], lidar = {{ profile = "vlp16", sub_rays = 1 }} }}
"""


@pytest.mark.parametrize("with_sensor", [False, True])
def test_a_lived_session_of_driving_rovers_and_its_script_give_the_same_packets(daemon, tmp_path, receiver, with_sensor):
    address = f"127.0.{95 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}.1"
    sensors = sensor("front", receiver().port, receiver().port) if with_sensor else ""
    path = write_rig(tmp_path, ROVERS.format(address=address) + sensors + CONTROL)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    rng, names = random.Random(23), ["gate"]  # noqa: S311 - no secret
    control, answers = hilsim.connect(tmp_path / "control"), []
    while len(answers) < 25:
        change = random_change(rng, names, ["front"])
        if change["kind"] != "sensor":
            answers.append((change["kind"], control.change(**change)))
            time.sleep(rng.uniform(0.0, 0.1))
    for kind, times in answers:
        assert (set(times.sensors) >= {"rover-1", "rover-2"}) == (kind != "weather")
        assert all(begun_s >= times.at_s for begun_s in times.sensors.values())
    script = control.script()
    ports = (9001, 10_001, 11_001, 9002, 10_002, 11_002)
    await_payloads(tmp_path / "lived.pcap", ports, 15)
    lived_s = stopped_s(running, control)
    assert any(name.startswith("rover") for change in script for name in change.get("late_s", {}))
    lines = tmp_path / "script.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in script))
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s, script=lines)
    hilsim.record(path, tmp_path / "unchanged.pcap", duration_s=lived_s)
    captures = [payloads_by_port(tmp_path / f"{name}.pcap") for name in ("lived", "played", "unchanged")]
    for port in ports:
        lived, played, unchanged = (capture[port] for capture in captures)
        assert len(lived) > 15
        assert set(lived) <= set(played)
        assert (set(lived) <= set(unchanged)) == (port not in {10_001, 10_002})


OVERLAY = """
name = "overlay"
seed = 5
[metrics]
port = 0
[[scene.box]]
name = "gate"
size_m = [0.2, 2.0, 2.0]
position_m = [3.0, 0.0, 0.0]
[[replay]]
name = "recorded"
file = "recorded.pcap"
overlay = true
retime = "none"
loop = "plain"
late_policy = "keep"
[[replay.flow]]
match = ">:2368"
send = ">127.0.0.1:{port}"
"""


def test_changes_in_recorded_points_are_those_of_their_script(daemon, tmp_path, receiver):
    hilsim.record(write_rig(tmp_path), tmp_path / "recorded.pcap", duration_s=2.0)
    port = receiver().port
    path = write_rig(tmp_path, OVERLAY.format(port=port) + CONTROL)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    control, rng, names = hilsim.connect(tmp_path / "control"), random.Random(4), ["gate"]  # noqa: S311 - no secret
    for _ in range(40):
        change = random_change(rng, names, ["recorded"])
        while change["kind"] in {"sensor", "weather", "clock"}:
            change = random_change(rng, names, ["recorded"]) if rng.random() < 0.6 else random_replay_change(rng, ["recorded"], 1.8)
        assert set(control.change(**change).sensors) == {"recorded"}
    control.change("replay", at_s=control.state()["rig_s"] + 0.3, pause=False)  # also where the rig's own time stood still in a pause
    script = control.script()
    assert {change["kind"] for change in script} >= {"replay", "add", "move"}
    lived_s = stopped_s(running, control)
    lines = tmp_path / "script.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in script))
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s, script=lines)
    lived, played = payloads(tmp_path / "lived.pcap", port), payloads(tmp_path / "played.pcap", port)
    recorded = set(payloads(tmp_path / "recorded.pcap", 2368))
    assert len(lived) > 100
    assert sum(payload not in recorded for payload in lived) > 20
    later = iter(played)
    assert all(payload in later for payload in lived)  # in their order; a machine that stands still may leave packets out


REPLAY = """
[[replay]]
name = "{name}"
file = "recorded.pcap"
retime = "{retime}"
loop = "plain"
late_policy = "keep"
[[replay.flow]]
match = ">:2368"
send = ">127.0.0.1:{port}"
"""


def stamped(path, port):
    """Deadlines and UDP payloads of a recording to a port, in their order."""
    return [(datagram.host_stamp_ns, datagram.payload) for datagram in CaptureFile(path) if datagram.destination_port == port]


@pytest.mark.alone
def test_pauses_and_seeks_of_replays_are_those_of_their_script(daemon, tmp_path, receiver):
    hilsim.record(write_rig(tmp_path), tmp_path / "recorded.pcap", duration_s=2.0)
    ports = [receiver().port, receiver().port]
    tables = REPLAY.format(name="one", retime="none", port=ports[0]) + REPLAY.format(name="two", retime="device", port=ports[1])
    late = '[transmit]\nlate_policy = "send"\n'  # what a machine that stood still is late with is sent all the same
    path = write_rig(tmp_path, 'name = "replays"\n[metrics]\nport = 0\n' + late + tables + CONTROL)
    script = tmp_path / "script.toml"
    script.write_text(
        '[[change]]\nat_s = 1.0\nkind = "replay"\npause = true\n[[change]]\nat_s = 1.5000007\nkind = "replay"\npause = false\n'
        '[[change]]\nat_s = 1.8\nkind = "replay"\nreplay = "two"\nseek_s = 0.25\n'
    )
    running = daemon(path, "--script", str(script), "--record", str(tmp_path / "lived.pcap"))
    running.await_log(r'"event": "rig.changed", "kind": "replay", "at_s": 1.8')
    control = hilsim.connect(tmp_path / "control")
    control.change("replay", replay="one", seek_s=1.5)
    assert set(control.change("replay", pause=True).sensors) == {"one", "two"}
    assert [replay["is_paused"] for replay in control.state()["replays"]] == [True, True]
    control.change("replay", seek_s=0.75)
    control.change("replay", replay="two", pause=False, seek_s=0.1)
    assert [replay["is_paused"] for replay in control.state()["replays"]] == [True, False]
    control.change("replay", replay="one", pause=False)
    control.change("replay", replay="two", seek_s=1.0)
    with pytest.raises(hilsim.ConfigError, match=r'replay must be a replay of the rig \(one, two\), got "three"'):
        control.change("replay", replay="three", pause=True)
    with pytest.raises(hilsim.ConfigError, match=r"a rig must have a \[\[sensor\]\]"):
        control.change("weather", weather={"fog_visibility_m": 30.0})
    made = control.script()
    lived_s = stopped_s(running, control)
    assert [change["kind"] for change in made] == ["replay"] * 9
    lines = tmp_path / "made.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in made))
    hilsim.record(path, tmp_path / "played.pcap", duration_s=lived_s, script=lines)
    for port in ports:
        lived, played = stamped(tmp_path / "lived.pcap", port), stamped(tmp_path / "played.pcap", port)
        assert len(lived) > 900
        assert [payload for _, payload in lived] == [payload for _, payload in played[: len(lived)]]
    assert all(change["at_s"] >= at_s for change, at_s in zip(made, (1.0, 1.5000007, 1.8), strict=False))  # later only where the machine stood still


FLYING = """
[platform]
kind = "vehicle"
[vehicle]
position_m = [0.0, 0.0, 0.0]
yaw_deg = 0.0
[[vehicle.waypoint]]
time_s = 0.0
position_m = [0.0, 0.0, 1.5]
[[scene.plane]]
name = "floor"
size_m = [60.0, 60.0]
"""


def test_a_vehicle_is_put_elsewhere_blown_and_reset_at_rig_times(daemon, tmp_path, receiver):
    path = write_rig(tmp_path, SCENE + FLYING + sensor("belly", receiver().port, receiver().port) + CONTROL)
    running = daemon(path)
    control = hilsim.connect(tmp_path / "control")

    def place_m():
        return control.state()["vehicle"]["truth"]["position_m"]

    def await_place(condition):
        until_s = time.monotonic() + 60.0
        while not condition(place_m()):
            assert time.monotonic() < until_s, place_m()
            time.sleep(0.02)

    await_place(lambda place: place[2] > 1.0)
    at_s = control.state()["rig_s"] + 2.0
    put = control.change("vehicle", at_s=at_s, position_m=[-3.0, 2.0, 1.5], rotation_deg=[0.0, 0.0, 90.0])
    assert set(put.sensors) == {"vehicle"}
    assert at_s <= put.sensors["vehicle"]
    x, y, _ = place_m()
    assert (x, y) == pytest.approx((-3.0, 2.0), abs=0.5)
    await_place(lambda place: abs(place[0]) < 0.3 and abs(place[1]) < 0.3)  # the position hold flies back
    control.change("vehicle", wind={"speed_mps": 14.0, "from_deg": 270.0, "turbulence_ratio": 0.1})
    await_place(lambda place: place[0] > 0.4)
    control.change("vehicle", wind={})
    table = {"name": "table", "size_m": [3.0, 3.0, 2.2], "position_m": [0.0, 0.0, 1.1]}
    added = control.change("add", box=table)
    control.change("vehicle", at_s=added.at_s + 2.0, position_m=[0.0, 0.0, 2.25])
    time.sleep(1.0)
    assert place_m()[2] > 2.2  # the hold is for less, but it stands on the table
    control.change("remove", name="table")
    await_place(lambda place: place[2] < 1.9)
    control.change("vehicle", reset=True)
    await_place(lambda place: place[2] < 0.6)
    made, lived_s = control.script(), control.state()["rig_s"]
    with pytest.raises(hilsim.ConfigError, match=r"replay must be a replay of the rig \(it has none\)"):
        control.change("replay", pause=True)
    assert running.stop()[0] == 0
    assert [change["kind"] for change in made] == ["vehicle"] * 3 + ["add", "vehicle", "remove", "vehicle"]
    lines = tmp_path / "script.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in made))
    whole, other = (hilsim.Emulator(path, script=lines) for _ in range(2))
    leaps = [number for number, change in enumerate(made) if "position_m" in change or "reset" in change]
    assert leaps == [0, 4, 6]
    for number, change in enumerate(made):
        begin_s = change.get("late_s", {}).get("vehicle", change["at_s"])  # later where the machine stood still
        before, after = (whole.sensor_pose(begin_s + by_s).position_m for by_s in (-0.001, 0.001))
        assert (sum(abs(there - here) for there, here in zip(after, before, strict=True)) > 0.2) == (number in leaps)
    on_table_s = (made[4]["at_s"] + made[5]["at_s"]) / 2
    assert whole.sensor_pose(on_table_s).position_m[2] > 2.2
    assert other.sensor_pose(lived_s) == whole.sensor_pose(lived_s)
    begin_s = made[0]["at_s"] - 0.05
    assert list(other.packets(begin_s, begin_s + 0.1)) == list(whole.packets(begin_s, begin_s + 0.1))


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
    assert json.loads(asked.stdout) == {"id": 3, "ok": True, "changes": list(control.script()), "scripted": []}
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
    "a replay to change that is not there": ('{"do": "change", "change": {"kind": "replay", "pause": true}}', "a replay of the rig (it has none)"),
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


def test_a_fault_that_was_asked_for_is_seen_and_the_daemon_stays_healthy(daemon, tmp_path, receiver):
    port = receiver().port
    path = write_rig(tmp_path, SCENE + sensor("front", port, receiver().port) + CONTROL)
    running = daemon(path)
    control = hilsim.connect(tmp_path / "control")
    control.fault("jamming", on="fr*", name="jammer", azimuth_deg=[0.0, 90.0])
    control.fault("dead_channel", channels=[3], for_s=2.0, at_s=control.state()["rig_s"] + 1.0)
    assert {(each["name"], each["acts"]) for each in control.faults()} == {("jammer", True), ("dead_channel", False)}
    deadline_s = time.monotonic() + 60.0
    while len(control.faults()) > 1 or "fault.ended" not in running.text():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
    metrics = figures(running)
    assert metrics['hilsim_injected_fault_active{kind="jamming"}'] == 1.0
    assert metrics['hilsim_faulted_firings_total{sensor="front"}'] > 1000
    assert control.health().level == "healthy"
    control.clear("jammer")
    assert control.faults() == ()
    assert [change["kind"] for change in control.script()] == ["fault", "fault", "clear"]
    events = [line for line in running.text().splitlines() if "fault." in line]
    assert any("fault.began" in line and "jammer" in line for line in events)
