"""A start holds only if the first packets stood ready in time; a reload that meets an error of the program is refused."""

import asyncio
import json
import socket
import threading
import time

import numpy as np
import pytest
import structlog

from hilsim.capture.pcap import CaptureFile
from hilsim.config.rig import load_rig
from hilsim.daemon import running_rig, service
from hilsim.daemon.notify import ServiceManager
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.sinks import follower, part
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.errors import TransmitError
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.parts.replays.recorded import plan
from hilsim.streaming.render_state import RenderCounter
from tests.support import ROOM, write_rig
from tests.unit.replays.streams import Recording

NETWORK = """
[sensor.network]
source_ports = "any"
data_port = {data}
position_port = {position}
[transmit]
late_policy = "send"
scheduling = "plain"
lock_memory = false
[metrics]
enabled = false
"""


@pytest.fixture
def listener():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
        data.bind(("127.0.0.1", 0))
        data.settimeout(30)
        yield data


@pytest.fixture
def room(tmp_path, listener):
    text = ROOM + NETWORK.format(data=listener.getsockname()[1], position=listener.getsockname()[1] - 1 or 9)
    made = RunningRig(rig=load_rig(write_rig(tmp_path, text)))
    made.build()
    made.open()
    yield made
    made.stop()


def test_rings_that_are_not_full_in_time_make_the_start_later_and_cost_no_packet(room, listener, monkeypatch):
    monkeypatch.setattr(running_rig, "_MARGIN_NS", running_rig._START_UP_NS - 1_000_000)  # a millisecond is left to fill them at the first try
    tries = []
    sensors = room.part(Sensors)
    prime = sensors.prime

    def counted(clock, until_ns):
        tries.append((clock.epoch_ns, prime(clock, until_ns)))
        return tries[-1][1]

    monkeypatch.setattr(sensors, "prime", counted)
    room.start()
    assert [held for _, held in tries] == [False] * (len(tries) - 1) + [True]
    assert len(tries) >= 2
    assert room.clock.epoch_ns == tries[-1][0]
    received = [listener.recv(2000) for _ in range(40)]
    stamps_us = decode_data_packets(np.frombuffer(b"".join(received), np.uint8).reshape(-1, 1206))["timestamp"].astype(np.int64)
    assert set((np.diff(stamps_us) % 3_600_000_000).tolist()) <= {1327, 1328}
    first_us = room.clock.utc_epoch_ns // 1000 % 3_600_000_000
    assert (int(stamps_us[0]) - first_us) % 3_600_000_000 <= 1
    assert room.streams["lidar"].render_thread.state.counters[RenderCounter.SKIPPED] == 0


def test_nothing_is_sent_before_the_rings_are_full(room, listener, monkeypatch):
    monkeypatch.setattr(running_rig, "_MARGIN_NS", 10**12)
    monkeypatch.setattr(running_rig, "_LONGEST_START_UP_NS", 300_000_000)
    with pytest.raises(TransmitError, match="the first packets must be ready within 0 s, got too few"):
        room.start()
    listener.settimeout(0.3)
    with pytest.raises(TimeoutError):
        listener.recv(2000)


def replay(name, port, **keys):
    told = {"name": name, "file": "turning.pcap", "loop": "plain", "destination_port": port} | keys
    return "[[replay]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items())


def test_a_reload_with_a_socket_that_cannot_be_opened_changes_no_part(tmp_path, listener):
    port = listener.getsockname()[1]
    Recording().add_turning(300).write(tmp_path / "turning.pcap")
    text = ROOM + NETWORK.format(data=port, position=port - 1 or 9) + replay("front", port)
    changed = text.replace('name = "lidar"', 'name = "lidar"\nphase_deg = 90.0')
    running = RunningRig(rig=load_rig(write_rig(tmp_path, text)))
    running.build()
    running.open()
    try:
        running.start()
        before, flows, played = running.streams["lidar"], running.transmitter.flows, running.played()
        with pytest.raises(TransmitError, match=r"203\.0\.113\.7"):
            running.change(load_rig(write_rig(tmp_path, changed + replay("rear", port, source="203.0.113.7"))))
        assert (running.streams["lidar"], running.transmitter.flows, running.played()) == (before, flows, played)
        assert before.render_thread.alive
        assert listener.recv(2000)
        done = running.change(load_rig(write_rig(tmp_path, changed)))
        assert done == ("lidar: goes on with its new settings", "front: unchanged")
    finally:
        running.stop()


def test_a_reload_adds_the_first_replay_removes_it_and_adds_it_again(room, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "_SMALL_BYTES", 1206)  # the rings of a Velodyne alone have no room for more
    Recording().add_turning(300).write(tmp_path / "turning.pcap")
    text = room.rig.path.read_text(encoding="utf-8")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(30)
        with_replay = text + replay("front", receiver.getsockname()[1])
        room.start()
        for _ in range(2):
            assert "front: started with its new settings" in room.change(load_rig(write_rig(tmp_path, with_replay)))
            assert [reading.replay for reading in room.reading().parts["replay"]] == ["front"]
            assert receiver.recv(2000)
            assert "front: removed" in room.change(load_rig(write_rig(tmp_path, text)))
            assert room.played() == {}


class Counted:
    """A sink that counts, and one that never takes its first batch when it is set to hang."""

    target = "memory"

    def __init__(self, *, hangs):
        self.written = 0
        self.flows = set()
        self.release_link = threading.Event()
        if not hangs:
            self.release_link.set()

    def check(self):
        """Always."""

    def open(self, flows):
        self.announced = [flow.name for flow in flows]

    def write(self, batch):
        self.release_link.wait()
        self.written += batch.size.size
        self.flows |= {batch.flows[number].name for number in batch.flow.tolist()}

    def close(self):
        """Nothing to close."""


def test_a_rig_has_as_many_sinks_as_are_registered_and_one_that_hangs_holds_up_nothing(tmp_path, listener, monkeypatch):
    counted, hanging = Counted(hangs=False), Counted(hangs=True)
    monkeypatch.setattr(part, "KINDS", (*part.KINDS, part.SinkKind("record", lambda _rig: iter([("counted", counted), ("hanging", hanging)]))))
    monkeypatch.setattr(follower, "_LONGEST_END_S", 0.2)
    text = ROOM + '[record]\nfile = "drive.pcap"\n' + NETWORK.format(data=listener.getsockname()[1], position=listener.getsockname()[1] - 1 or 9)
    running = RunningRig(rig=load_rig(write_rig(tmp_path, text)))
    running.build()
    running.open()
    try:
        running.start()
        for _ in range(200):
            assert listener.recv(2000)
    finally:
        totals = running.stop()
    hanging.release_link.set()
    recorded = sum(1 for _ in CaptureFile(tmp_path / "drive.pcap"))
    assert counted.announced == ["lidar/data", "lidar/position"]
    assert recorded == counted.written == totals["sent_packets"]
    assert counted.flows == {"lidar/data", "lidar/position"}


class Source:
    """A rig source that meets an error of this program."""

    def load(self):
        return {}["no such key"]


def test_a_reload_that_meets_an_error_of_the_program_is_refused_with_its_traceback(room):
    room.start()

    async def run():
        reload = asyncio.Event()
        task = asyncio.create_task(service._reload_when_told(room, Source(), ServiceManager(address=None), reload))
        reload.set()
        until = time.monotonic() + 30
        while reload.is_set() or not said:
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        is_alive = not task.done()
        task.cancel()
        return is_alive

    with structlog.testing.capture_logs() as said:
        assert asyncio.run(run())
    assert [(event["event"], event["exc_info"]) for event in said] == [("rig.reload_refused", True)]
    assert "KeyError" in said[0]["reasons"][0]
    assert room.streams["lidar"].render_thread.alive
