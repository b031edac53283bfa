"""A real daemon whose platform and objects are moved by datagrams, and the replay of what its sensors saw."""

import json
import math
import random
import signal
import socket
import threading
import time

import numpy as np
import pytest

import hilsim
from hilsim.errors import HilsimError
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from hilsim.parts.external.messages import OBJECT_DTYPE, MessageKind, Shape, encode, poses_of
from tests.support import write_rig
from tests.system.conftest import SCENE
from tests.system.test_changes import payloads, payloads_by_port, sensor, stopped_s

pytestmark = pytest.mark.system

MOVED = """
[platform]
kind = "external"
position_m = [0.5, 0.0, 0.2]
[external]
listen = "{listen}"
{keys}
[[external.object]]
id = 7
box = {{ name = "cart", size_m = [0.6, 0.6, 1.0] }}
[[external.object]]
id = 8
sphere = {{ name = "ball", radius_m = 0.3 }}
"""
CONTROL = '[control]\nsocket = "control"\n'


class Sender(threading.Thread):
    """Sends poses of the platform at 200 Hz and of two objects at 60 Hz, with jitter and loss."""

    def __init__(self, address, seed=3):
        super().__init__()
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.address, self.link, self.ends = address, socket.socket(family, socket.SOCK_DGRAM), threading.Event()
        self.random = random.Random(seed)  # noqa: S311 - no secret

    def run(self):
        begun_ns, number, waiting = time.monotonic_ns(), 0, []
        while not self.ends.wait(0.001):
            now_ns = time.monotonic_ns()
            while begun_ns + number * 5_000_000 <= now_ns:
                stamp_ns = begun_ns + number * 5_000_000
                ids = [0] if number % 3 else [0, 7, 8]
                if self.random.random() > 0.03:
                    waiting.append((stamp_ns + round(5e6 * self.random.random()), number, self.message(ids, stamp_ns, number)))
                number += 1
            due = sorted(each for each in waiting if each[0] <= now_ns)
            waiting = [each for each in waiting if each[0] > now_ns]
            for _, _, payload in due:
                self.link.sendto(payload, self.address)
        self.link.close()

    @staticmethod
    def message(ids, stamp_ns, number):
        """Everything on circles."""
        t = 1e-9 * (stamp_ns % 10**12)
        places = [
            (0.5 * math.cos(t + each), 0.5 * math.sin(t + each), 0.2) if each == 0 else (1.5 * math.cos(t + each), 1.5 * math.sin(t + each), 0.0)
            for each in ids
        ]
        poses = poses_of(ids, places, [(math.cos(0.5 * t), 0.0, 0.0, math.sin(0.5 * t))] * len(ids))
        return encode(MessageKind.POSES, poses, time_ns=stamp_ns, sender=5, sequence=number)

    def stop(self):
        self.ends.set()
        self.join()


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(condition, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["udp", "unix"])
def test_a_session_that_was_followed_live_and_its_recording_give_the_same_packets(daemon, tmp_path, receiver, kind):
    port = free_port()
    listen, address = (f"udp:127.0.0.1:{port}", ("127.0.0.1", port)) if kind == "udp" else ("unix:poses", str(tmp_path / "poses"))
    front, rear = receiver(), receiver()
    sensors = sensor("front", front.port, receiver().port) + sensor("rear", rear.port, receiver().port, "", "[-0.2, 0.1, 0.2]", 202)
    path = write_rig(tmp_path, SCENE + MOVED.format(listen=listen, keys='record = "keys"') + sensors + CONTROL)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    sender, control = Sender(address), hilsim.connect(tmp_path / "control")
    sender.start()
    until(lambda: control.state()["external"]["state"] == "following")
    until(lambda: control.state()["external"]["poses"] > 1000)
    state = control.state()["external"]
    sender.stop()
    until(lambda: control.state()["external"]["state"] == "silent")
    time.sleep(0.5)
    stalls = control.state()["external"]["stalls"]
    lived_s = stopped_s(running, control)
    assert state["poses"] > 400
    assert state["lost_messages"] > 0
    for event in ("external.following", "external.silent"):
        assert event in running.text()
    replayed = write_rig(tmp_path, SCENE + MOVED.format(listen=listen, keys='time = "replay"\nfile = "keys"') + sensors, "replayed.toml")
    hilsim.record(replayed, tmp_path / "played.pcap", duration_s=lived_s)
    all_lived, all_played = payloads_by_port(tmp_path / "lived.pcap"), payloads_by_port(tmp_path / "played.pcap")
    different = 0
    for of in (front.port, rear.port):
        lived, played = all_lived[of], all_played[of]
        stamps = np.frombuffer(b"".join(lived), DATA_PACKET_DTYPE)["timestamp"]
        is_gapless = (np.diff(stamps.astype(np.int64)) % 3_600_000_000 < 1400).all()
        assert len(lived) > 1000
        if stalls == 0:  # a machine that stands still may render beyond the newest key, which is counted
            assert lived == played[: len(lived)] if is_gapless else set(lived) <= set(played)
        different += len(set(lived) - set(played))
    assert different <= 10 * stalls


@pytest.mark.extended
@pytest.mark.parametrize("clock", ["sender", "monotonic"])
def test_a_recording_is_whole_with_a_sender_that_runs_before_the_rig_starts_and_after_it_ends(daemon, tmp_path, receiver, clock):
    port, front = free_port(), receiver()
    sensors = sensor("front", front.port, receiver().port)
    moved = MOVED.format(listen=f"udp:127.0.0.1:{port}", keys=f'record = "keys"\nclock = "{clock}"')
    sender = Sender(("127.0.0.1", port))
    sender.start()
    running = daemon(write_rig(tmp_path, SCENE + moved + sensors + CONTROL), "--record", str(tmp_path / "lived.pcap"))
    control = hilsim.connect(tmp_path / "control")
    until(lambda: control.state()["external"]["state"] == "following")
    until(lambda: control.state()["rig_s"] > 1.5)
    state = control.state()
    assert running.stop()[0] == 0
    sender.stop()
    replayed = write_rig(
        tmp_path, SCENE + MOVED.format(listen="udp:127.0.0.1:2400", keys='time = "replay"\nfile = "keys"') + sensors, "replayed.toml"
    )
    hilsim.record(replayed, tmp_path / "played.pcap", duration_s=state["rig_s"] + 1.0)
    lived, played = payloads(tmp_path / "lived.pcap", front.port), payloads(tmp_path / "played.pcap", front.port)
    assert len(lived) > 500
    assert len(set(lived) - set(played)) <= 10 * state["external"]["stalls"]


def test_sensors_without_power_send_nothing_until_poses_come_again(daemon, tmp_path, receiver):
    port, front, other = free_port(), receiver(), receiver()
    moved = MOVED.format(listen=f"udp:127.0.0.1:{port}", keys='on_silence = "power_off"\nclock = "monotonic"')
    path = write_rig(tmp_path, SCENE + moved + sensor("front", front.port, other.port) + CONTROL)
    running, control = daemon(path), hilsim.connect(tmp_path / "control")

    def of_front(state):
        return state["sensors"]["front"]["flows"]["data"]

    front.take(50)  # before the first pose they have power
    sender = Sender(("127.0.0.1", port))
    sender.start()
    until(lambda: control.state()["external"]["state"] == "following")
    sender.stop()
    until(lambda: of_front(control.state())["silenced_packets"] > 200)
    sent = of_front(control.state())["sent_packets"]
    front.drain()
    until(lambda: of_front(control.state())["silenced_packets"] > 1000)
    assert of_front(control.state())["sent_packets"] == sent
    assert front.drain() == []
    assert "poses_silent" in [fault.fault for fault in control.health().faults]
    assert "sensor_silent" not in [fault.fault for fault in control.health().faults]
    sender = Sender(("127.0.0.1", port), seed=4)
    sender.start()
    front.take(500)
    silenced = of_front(control.state())["silenced_packets"]
    front.take(100)
    assert of_front(control.state())["silenced_packets"] == silenced
    sender.stop()
    assert running.stop()[0] == 0


def test_a_lead_cannot_become_longer_than_keys_are_committed_ahead(daemon, tmp_path, receiver):
    moved, front = MOVED.format(listen=f"udp:127.0.0.1:{free_port()}", keys=""), sensor("front", receiver().port, receiver().port)
    path = write_rig(tmp_path, SCENE + moved + front)
    running = daemon(path)
    write_rig(tmp_path, "lead_ms = 40.0\n" + path.read_text())
    running.process.send_signal(signal.SIGHUP)
    running.await_log("lead_ms cannot become longer", timeout_s=20)


def test_a_live_rig_is_refused_where_nothing_runs_in_real_time(tmp_path):
    path = write_rig(tmp_path, SCENE + MOVED.format(listen="udp:127.0.0.1:2400", keys="") + sensor("front", 2368, 8308))
    with pytest.raises(HilsimError, match=r'external\.time must be "replay" or "lockstep" where nothing runs in real time, got "live"'):
        hilsim.record(path, tmp_path / "a.pcap", duration_s=1.0)


def test_an_external_port_that_is_in_use_is_named(daemon, tmp_path, receiver):
    taken = receiver()
    path = write_rig(tmp_path, SCENE + MOVED.format(listen=f"udp:127.0.0.1:{taken.port}", keys="") + sensor("front", 2368, 8308))
    running = daemon(path, wait=False)
    assert running.process.wait(200) == 1
    assert f"udp port 127.0.0.1:{taken.port}: the port must be free" in json.dumps(running.text())


@pytest.mark.extended
def test_objects_are_declared_and_removed_by_messages_and_their_script_gives_the_same_packets(daemon, tmp_path, receiver):
    port, front = free_port(), receiver()
    lidar = sensor("front", front.port, receiver().port)
    path = write_rig(tmp_path, SCENE + MOVED.format(listen=f"udp:127.0.0.1:{port}", keys='record = "keys"\nclock = "monotonic"') + lidar + CONTROL)
    running = daemon(path, "--record", str(tmp_path / "lived.pcap"))
    control, link = hilsim.connect(tmp_path / "control"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect(("127.0.0.1", port))
    things = np.zeros(3, OBJECT_DTYPE)
    things["id"], things["shape"], things["size_m"] = (
        [20, 21, 22],
        [Shape.BOX, Shape.SPHERE, Shape.MODEL],
        [(0.8, 0.8, 0.8), (0.6, 0.6, 0.6), (0.0, 0.0, 0.0)],
    )
    things["name"], things["model"] = [b"crate", b"", b"second cart"], [b"", b"", b"cart"]
    link.send(encode(MessageKind.OBJECTS, things, time_ns=0, sender=1))
    until(lambda: {"crate", "object 21", "second cart"} <= set(control.state()["objects"]))
    in_time, number = 0, 0
    while in_time < 900:  # three seconds of all three that came before their keys were due, however many do not on a busy machine
        places = [(1.5, 0.004 * number, 0.0), (-1.5, 0.0, 0.0), (0.0, 1.5, 0.0)]
        poses = poses_of([20, 21, 22], places, [(1.0, 0.0, 0.0, 0.0)] * 3)
        link.send(encode(MessageKind.POSES, poses, time_ns=time.monotonic_ns(), sender=1, sequence=number + 1))
        time.sleep(0.01)
        number += 1
        if number % 50 == 0:
            external = control.state()["external"]
            in_time = external["poses"] - external["refused_poses"]["late"]
    link.send(encode(MessageKind.REMOVE, things[:1], time_ns=0, sender=1, sequence=number + 1))
    until(lambda: "crate" not in control.state()["objects"])
    state, script = control.state(), control.script()
    link.close()
    assert running.stop()[0] == 0
    assert state["external"]["refused_poses"]["unknown"] == 0
    assert [(change["kind"], change.get("external_id", 0)) for change in script] == [("add", 20), ("add", 21), ("add", 22), ("remove", 0)]
    lines = tmp_path / "script.jsonl"
    lines.write_text("".join(json.dumps(change) + "\n" for change in script))
    replayed = write_rig(tmp_path, SCENE + MOVED.format(listen="udp:127.0.0.1:1", keys='time = "replay"\nfile = "keys"') + lidar, "replayed.toml")
    plain = tmp_path / "plain.pcap"
    hilsim.record(replayed, tmp_path / "played.pcap", duration_s=state["rig_s"] + 3.0, script=lines)
    hilsim.record(replayed, plain, duration_s=state["rig_s"] + 3.0)
    lived, played = payloads(tmp_path / "lived.pcap", front.port), payloads(tmp_path / "played.pcap", front.port)
    assert len(set(lived) - set(payloads(plain, front.port))) > 500  # sensors saw the objects
    if state["external"]["stalls"] == 0:
        assert set(lived) <= set(played)
