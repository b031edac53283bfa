"""The scripted controller as a process: at a pty of its own, at a device, over TCP, with a ground station over UDP. Outcomes alone are asserted: no figure of time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiled import compiled_only
from tests.controllers.aircraft import Aircraft
from tests.controllers.bridge import Bridge
from tests.controllers.desk import Desk, Serial, Server
from tests.controllers.puppet import Puppet
from tests.controllers.wrongs import WRONGS
from tests.system.flying import PROGRAMS

pytestmark = [pytest.mark.extended, pytest.mark.system]
_ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def start():
    """Starts a flight controller (``px4``) or a ground station; what still runs at the end is ended."""
    started = []

    def begin(module, *arguments):
        command = [sys.executable, "-m", PROGRAMS[module], *map(str, arguments)]
        started.append(subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.terminate()
        process.communicate(timeout=20)


def finished(process, path):
    """The report of a process that ends, with its exit status."""
    process.wait(timeout=30)
    return json.loads(path.read_text()) | {"status": process.returncode}


def flies(report):
    return [text for _, text in report["events"]][-5:] == ["land", "touchdown", "manual", "disarmed", "done"]


def test_a_right_bridge_breaks_no_rule_of_order_over_a_pty(start, tmp_path):
    path = tmp_path / "report.json"
    process = start("px4", "--pty", tmp_path / "board", "--for", 5, "--report", path)
    Desk(Bridge(Puppet()), Serial(tmp_path / "board")).run(lambda: process.poll() is not None)
    report = finished(process, path)
    assert set(report["broken"]) <= {"rate", "gap", "burst", "gps_time", "stamps"}  # a busy machine may be late
    assert report["received"]["HIL_SENSOR"] > 100
    assert report["done"]


@pytest.mark.parametrize("name", ["pressure in Pa", "sensors before the heartbeat", "the true state on a serial line", "frames without numbers"])
def test_a_wrong_bridge_is_found_over_a_pty(start, tmp_path, name):
    path = tmp_path / "report.json"
    process = start("px4", "--pty", tmp_path / "board", "--for", 3, "--heartbeat-after", 0.5, "--report", path)
    bridge = Bridge(Puppet())
    WRONGS[name].change(bridge)
    Desk(bridge, Serial(tmp_path / "board")).run(lambda: process.poll() is not None)
    report = finished(process, path)
    assert set(report["broken"]) >= WRONGS[name].rules
    assert report["status"] == 1


def test_sensors_to_a_controller_without_the_hil_flag_are_found_over_a_device(start, tmp_path):
    path = tmp_path / "report.json"
    ours, theirs = os.openpty()
    process = start("px4", "--port", os.ttyname(theirs), "--no-hil", "--for", 3, "--report", path)
    bridge = Bridge(Puppet())
    WRONGS["sensors without the HIL flag"].change(bridge)
    line = Serial(os.ttyname(theirs))
    line.fd = ours
    os.set_blocking(ours, False)
    Desk(bridge, line).run(lambda: process.poll() is not None)
    os.close(theirs)
    assert "hil_flag" in finished(process, path)["broken"]


def test_a_board_that_reboots_babbles_and_loses_its_cable_is_spoken_to_again(start, tmp_path):
    path = tmp_path / "report.json"
    happens = ["--reboot-at", 2, "--garbage-at", 4.5, "--cable-out-at", 5, "--out-for", 0.5]
    process = start("px4", "--pty", tmp_path / "board", *happens, "--for", 8, "--report", path)
    Desk(Bridge(Puppet()), Serial(tmp_path / "board")).run(lambda: process.poll() is not None)
    report = finished(process, path)
    first = {"reboot", "babble", "unplugged", "plugged", "speaking"}
    told = [text for _, text in report["events"] if text in first]
    assert told == ["speaking", "reboot", "unplugged", "plugged", "speaking", "babble", "unplugged", "plugged", "speaking"]
    assert "before_heartbeat" not in report["broken"]
    assert report["events"][-1][0] < 7.9


@compiled_only
def test_a_flight_over_tcp_in_lockstep_breaks_no_rule(start, tmp_path):
    path = tmp_path / "report.json"
    server = Server()
    process = start("px4", "--tcp", server.address, "--lockstep", "--script", "hover", "--report", path)
    bridge = Bridge(Aircraft("iris"), serial=False, lockstep=True)
    Desk(bridge, server, paced=False).run(lambda: process.poll() is not None)
    report = finished(process, path)
    assert report["faults"] == []
    assert flies(report)
    assert report["status"] == 0


@compiled_only
def test_a_ground_station_flies_over_a_pty_and_every_byte_passes(start, tmp_path):
    board, path, ground_path = tmp_path / "board", tmp_path / "report.json", tmp_path / "ground.json"
    ground = start("ground", "--port", 0, "--script", "fly", "--hover", 0.5, "--report", ground_path)
    port = int(ground.stdout.readline())
    process = start("px4", "--pty", board, "--for", 90, "--report", path)
    bridge = Bridge(Aircraft("iris"))
    Desk(bridge, Serial(board), [("127.0.0.1", port)]).run(lambda: ground.poll() is not None)
    process.terminate()
    heard = finished(ground, ground_path)
    report = finished(process, path)
    assert heard["done"]
    assert [ack for ack in heard["acks"] if ack[1] == 0] == [[176, 0], [400, 0], [22, 0], [21, 0]]
    assert [raw for raw in heard["sent"] if raw in set(report["from_ground"])] == report["from_ground"]
    actuators = "5d0000"
    came = [raw for raw in heard["came"] if raw[14:20] != actuators]
    begin = report["sent"].index(came[0])
    assert came == report["sent"][begin : begin + len(came)]
    assert heard["garbage_bytes"] == 0
