"""Time from outside at the GPS inputs of a real daemon's sensors: real serial lines, datagrams and connections."""

import functools
import os
import pty
import socket
import threading
import time
import tty
from datetime import UTC, datetime

import numpy as np
import pytest

import hilsim
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from hilsim.families.velodyne.protocol.position import decode_position_packets
from tests.support import write_rig
from tests.system.conftest import SCENE
from tests.system.test_changes import CONTROL, sensor
from tests.system.test_sensor_web import Client, until

pytestmark = [pytest.mark.extended, pytest.mark.system]

WEB = "[sensor.web]\nport = 0\n"


def utc_now_s():
    """UTC by this computer's clock, in s since 1970."""
    return time.time_ns() / 1e9


def sentence(utc_s, status="A"):
    text = datetime.fromtimestamp(utc_s, UTC).strftime(f"GPRMC,%H%M%S.00,{status},3648.00,N,00224.00,W,0.0,0.0,%d%m%y,,,A")
    checksum = functools.reduce(lambda one, other: one ^ other, text.encode())
    return f"${text}*{checksum:02X}\r\n".encode()


class Receiver:
    """A receiver that names each second of this computer's clock, ahead by some seconds, until it is stopped."""

    def __init__(self, send, ahead_s=0):
        self.send, self.ahead_s, self.is_on = send, ahead_s, True
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while self.is_on:
            now_s = utc_now_s()
            second = int(now_s)
            if now_s - second < 0.1:
                self.send(sentence(second + self.ahead_s))
                time.sleep(0.5)
            time.sleep(0.02)

    def stop(self):
        self.is_on = False
        self._thread.join()


@pytest.fixture
def bench(daemon, tmp_path, receiver):
    """A daemon whose sensor has a time input, with the sensor's page, its streams and its control."""

    def start(table, more=""):
        data, position = receiver(), receiver()
        rig = SCENE.replace("seed = 5", "seed = 5\nlead_ms = 8.0") + sensor("lidar", data.port, position.port, keys=more) + WEB
        path = write_rig(tmp_path, rig + f"[sensor.time_input]\n{table}" + CONTROL)
        running = daemon(path)
        page = Client(running.await_log(r'"event": "sensor\.web".*"address": "(http://[^"]+)"')[1])
        return running, page, data, position, hilsim.connect(tmp_path / "control")

    return start


def pps(page):
    return page.json("status.json")["gps"]["pps_state"]


def newest(position):
    """The newest position packet."""
    position.drain()
    return decode_position_packets(np.frombuffer(position.take(3)[-1][0], np.uint8)[np.newaxis].copy())[0]


def ahead_s(position, utc_ahead_s=0.0):
    """Lead of the sensor's stamps over this computer's clock, to the nearer side of the hour."""
    stamp_s = int(newest(position)["timestamp"]) / 1e6
    return (stamp_s - utc_now_s() - utc_ahead_s + 1800.0) % 3600.0 - 1800.0


def test_a_serial_receiver_gives_the_second_and_the_systems_clock_the_pulse(bench, tmp_path):
    controller, device = pty.openpty()
    tty.setraw(device)
    name = tmp_path / "receiver"
    name.symlink_to(os.ttyname(device))
    os.close(device)
    running, page, _, position, control = bench(f'nmea = "{name}"\npps = "system"\n')
    running.await_log(r'"event": "time_input\.pps".*"pps": "locked"')
    assert pps(page) == "Locked"
    source = Receiver(lambda data: os.write(controller, data), ahead_s=1000)  # a receiver of another time zone of its own
    try:
        until(lambda: abs(ahead_s(position, 1000.0)) < 0.2)
        assert page.json("status.json")["gps"]["position"] == "36 48.00N 002 24.00W"
        shown = newest(position)
        assert shown["pps"] == 2
        assert bytes(shown["nmea"]).rstrip(b"\0") in {sentence(int(utc_now_s()) + 1000 - late) for late in (0, 1, 2)}
        os.write(controller, b"$GPRMC,garbage\r\n" + b"\xff" * 5000 + b"\r\n" + sentence(77_777)[:-4] + b"0\r\n")
        assert abs(ahead_s(position, 1000.0)) < 0.2
    finally:
        source.stop()
    os.close(controller)  # the cable is unplugged: seconds count on by the pulse
    running.await_log(r'"event": "time_input\.closed"')
    assert abs(ahead_s(position, 1000.0)) < 0.2
    name.unlink()
    controller, device = pty.openpty()
    tty.setraw(device)
    name.symlink_to(os.ttyname(device))
    os.close(device)
    source = Receiver(lambda data: os.write(controller, data), ahead_s=-500)  # another receiver is plugged in
    try:
        until(lambda: abs(ahead_s(position, -500.0)) < 0.2)
    finally:
        source.stop()
        os.close(controller)
    kinds = [change["kind"] for change in control.script()]
    assert set(kinds) == {"clock"}
    assert len(kinds) >= 3


def test_sentences_by_udp_alone_move_no_stamp_and_are_carried(bench):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    _, page, _, position, control = bench(f'nmea = "udp:127.0.0.1:{port}"\n', more="clock = { offset_s = 1234.0 }\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        source = Receiver(lambda data: sender.sendto(data, ("127.0.0.1", port)))
        try:
            until(lambda: bytes(newest(position)["nmea"]).startswith(b"$GPRMC"))
            assert int(newest(position)["timestamp"]) / 1e6 == pytest.approx(1234.0 + control.state()["rig_s"], abs=1.0)
            assert pps(page) == "Absent"
        finally:
            source.stop()
    assert not control.script()


def test_a_pulse_device_locks_the_phase_of_the_head_and_its_loss_lets_it_run_free(bench, tmp_path):
    asserted = tmp_path / "assert"
    asserted.write_text("0.000000000#0\n")
    is_on, count = threading.Event(), [0]

    def pulse():
        while not is_on.wait(0.005):
            second = int(utc_now_s())
            if second > count[0]:
                count[0] = second
                aside = tmp_path / "aside"
                aside.write_text(f"{second}.000000000#{second}\n")
                aside.rename(asserted)

    thread = threading.Thread(target=pulse)
    thread.start()
    try:
        running, page, data, _, control = bench(f'pps = "{asserted}"\n')
        running.await_log(r'"event": "time_input\.pps".*"pps": "locked"')
        assert page.post("/cgi/setting/phaselock", enabled="on", offset=9000)[0] == 204
        settings = page.json("settings.json")["phaselock"]
        assert settings == {"enabled": "On", "offset": "9000"}
        assert page.json("status.json")["motor"]["lock"] == "On"
        locked_s = control.state()["rig_s"]
        until(lambda: control.state()["rig_s"] > locked_s + 10.5)  # in which the head finds its angle
        data.drain()
        found = np.frombuffer(b"".join(payload for payload, _ in data.take(1500)), DATA_PACKET_DTYPE)
        us = (found["timestamp"].astype(np.int64)[:, np.newaxis] + np.arange(12) * 110.592).reshape(-1)
        turned_cdeg = np.unwrap(found["blocks"]["azimuth"].astype(float).reshape(-1), period=36_000)
        pulses_us = np.arange(np.ceil(us[0] / 1e6), np.floor(us[-1] / 1e6) + 1) * 1e6
        assert pulses_us.size >= 1
        error_cdeg = (np.interp(pulses_us, us, turned_cdeg) - 9000 + 18_000) % 36_000 - 18_000
        assert np.abs(error_cdeg).max() < 120
    finally:
        is_on.set()
        thread.join()
    running.await_log(r'"event": "time_input\.pps".*"pps": "absent"')
    assert (pps(page), page.json("status.json")["motor"]["lock"]) == ("Absent", "Off")
    assert [change["kind"] for change in control.script()].count("sensor") == 1


def test_conditions_of_the_page_hold_back_a_pulse_without_a_valid_receiver(bench):
    running, page, *_ = bench('pps = "system"\n')
    running.await_log(r'"event": "time_input\.pps".*"pps": "locked"')
    assert page.post("/cgi/setting/ppsctl", gpsrxv="on", ppslck="on", delay=3)[0] == 204
    assert page.json("settings.json")["ppsctl"] == {"gpsrxv": "On", "ppslck": "On", "delay": "3"}
    until(lambda: pps(page) == "Synchronizing")
    assert page.post("/cgi/setting/ppsctl", gpsrxv="off")[0] == 204
    until(lambda: pps(page) == "Locked")
    status, text = page.post("/cgi/setting/ppsctl", delay=99_999)
    assert (status, "delay must be 0 to 65535" in text) == (400, True)
