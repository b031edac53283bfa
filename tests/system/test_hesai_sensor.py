"""The control interface of a real daemon's Hesai: what clients set acts on its stream, is kept, and is undone by a reload."""

import contextlib
import signal
import struct
import time

import pytest

import hilsim
from hilsim.families.hesai.protocol.points import read_packet
from hilsim.families.hesai.protocol.ptc import Command, ReturnCode, encode_frame
from tests.hesai_units import Client
from tests.support import write_rig
from tests.system.test_ouster_sensor import arrived, drain, take, until

pytestmark = pytest.mark.system
SENSOR = "127.0.90.2"
OK = (ReturnCode.OK, b"")
RIG = """
name = "rig"
seed = 5

[control]
socket = "control"

[[scene.box]]
position_m = [0.0, 0.0, 0.0]
size_m = [14.0, 10.0, 6.0]

[[sensor]]
name = "top"
profile = "xt32"
sub_rays = 1
[sensor.network]
source = "{source}"
data_port = {data_port}
position_port = {position_port}
[sensor.web]
port = 0
commands_port = 0
boot_s = 1.0
destinations = ["127.0.0.0/8"]
saved_file = "saved.json"
"""


class Bench:
    """A daemon with one sensor, and a client of it."""

    def __init__(self, daemon, receiver, folder):
        self.points, self.folder = receiver(), folder
        self._daemon, gps = daemon, receiver()
        self._path = write_rig(folder, RIG.format(source=SENSOR, data_port=self.points.port, position_port=gps.port))

    def start(self):
        running = self._daemon(self._path)
        found = running.await_log(r'"event": "sensor\.hesai".*"commands_port": (\d+)')
        self.ptc = SENSOR, int(found[1])
        return running

    def tail(self):
        drain(self.points)
        return read_packet(take(self.points, 30)[-1])["tail"]

    def mode(self):
        return int(self.tail()["mode"])

    def is_silent(self):
        time.sleep(0.1)
        drain(self.points)
        time.sleep(0.1)
        return not arrived(self.points)


@pytest.fixture
def bench(daemon, receiver, tmp_path):
    return Bench(daemon, receiver, tmp_path)


def test_what_a_client_sets_acts_on_the_stream_is_a_timed_change_and_outlasts_the_daemon(bench, receiver):
    running = bench.start()
    with Client(bench.ptc) as client:
        assert bench.mode() == 0x37
        for code, mode in ((0, 0x38), (2, 0x39), (3, 0x33), (4, 0x3B), (5, 0x3C)):
            assert client.ask(Command.RETURN_MODE, bytes([code])) == OK
            assert bench.mode() == mode
        assert client.ask(Command.SYNC_ANGLE, b"\1\0\x5a") == OK
        assert client.ask(Command.CLOCK_SOURCE, b"\1") == OK
        assert client.ask(Command.SPIN_RATE, struct.pack(">H", 1200)) == OK
        script = [change for change in hilsim.connect(bench.folder / "control").script() if change["kind"] == "sensor"]
        assert [change.get("rotation_rate_rpm") for change in script][-1] == 1200
        assert script[1]["return_mode"] == "dual"
        until(lambda: bench.tail()["speed_rpm"] > 700)
        assert client.ask(Command.STANDBY, b"\1") == OK
        assert bench.is_silent()
        other = receiver()
        assert client.ask(Command.DESTINATION, bytes((127, 0, 0, 1)) + struct.pack(">HH", other.port, 10_110)) == OK
        assert client.ask(Command.STANDBY, b"\0") == OK
        take(other, 30)
        assert bench.is_silent()
        assert client.ask(Command.DESTINATION, bytes((10, 9, 9, 9, 9, 64, 39, 126))) == (ReturnCode.OTHER, b"")
        kept = client.ask(Command.CONFIG)
    running.process.send_signal(signal.SIGTERM)
    running.process.wait(30)

    running = bench.start()
    running.await_log(r'"event": "sensor\.hesai\.saved_used"')
    with Client(bench.ptc) as client:
        assert client.ask(Command.CONFIG) == kept
        take(other, 30)
        running.process.send_signal(signal.SIGHUP)
        running.await_log(r'"event": "rig\.reloaded"')
        until(lambda: client.ask(Command.CONFIG) != kept)
        until(lambda: bench.mode() == 0x37)


def test_a_script_changes_what_clients_read_and_a_reboot_and_a_loss_of_power_keep_it(bench):
    bench.start()
    with Client(bench.ptc) as client:
        bench.mode()
        hilsim.connect(bench.folder / "control").change("sensor", sensor="top", return_mode="dual")
        assert client.ask(Command.CONFIG)[1][32] == 2
        assert client.ask(Command.REBOOT) == OK
        assert bench.is_silent()
    until(lambda: bench.mode() == 0x39)
    assert starts_of(bench.ptc) == 2
    hilsim.connect(bench.folder / "control").fault("brown_out", "top", off_ms=200.0, down_ms=600.0)
    until(lambda: starts_of(bench.ptc) == 3)
    assert bench.mode() == 0x39


def starts_of(place):
    """Number of starts; 0 while the sensor closes connections."""
    with Client(place) as client, contextlib.suppress(ConnectionError):
        client.socket.sendall(encode_frame(Command.STATUS, b""))
        answer = client.take()
        return int.from_bytes(answer[2][40:44], "big") if answer else 0
    return 0
