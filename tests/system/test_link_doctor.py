"""``hilsim doctor --link`` as a process, at a real pseudo-terminal: the scripted controller, silence, noise, a busy port, echoes. Outcomes alone are asserted: no figure of time."""

import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import tty
from pathlib import Path

import pytest
from pymavlink.dialects.v20 import common

from tests import commands
from tests.mavlink import packer

pytestmark = [pytest.mark.alone, pytest.mark.system]  # it listens for seconds, and a far end that gets no processor is a silent one
_ROOT = Path(__file__).resolve().parent.parent.parent
_HOLD = "import os, sys; held = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY); print('held', flush=True); sys.stdin.read()"


def doctor(link, *arguments, seconds=3):
    return commands.run("doctor", "--link", link, "--seconds", seconds, *arguments, cwd=_ROOT)


def report_of(link, *arguments, **more):
    """What ``--json`` says, with the exit status and the findings by subject."""
    result = doctor(link, "--json", *arguments, **more)
    assert result.stderr == ""
    report = json.loads(result.stdout)
    return report | {"status": result.returncode, "by": {finding["subject"]: finding for finding in report["findings"]}}


@pytest.fixture
def controller(tmp_path):
    """Starts the scripted controller at a pty of its own; returns the port and a function that ends it and gives its report."""
    started = []

    def begin(*arguments):
        board, path = tmp_path / "board", tmp_path / "report.json"
        command = [sys.executable, "-m", "hilsim_flight_controller", "--pty", board, "--for", 100, "--report", path, *arguments]
        started.append(subprocess.Popen([str(word) for word in command], cwd=_ROOT, stderr=subprocess.DEVNULL))
        while not board.exists():
            assert started[-1].poll() is None

        def ended():
            started[-1].terminate()
            started[-1].wait(timeout=20)
            return json.loads(path.read_text())

        return board, ended

    yield begin
    for process in started:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
def port():
    """A pty whose far end says what ``respond(data)`` returns to what came."""
    running, threads = threading.Event(), []
    running.set()

    def plug(respond):
        ours, theirs = os.openpty()
        tty.setraw(theirs)
        os.set_blocking(ours, False)

        def serve():
            while running.is_set():
                select.select([ours], [], [], 0.02)
                with contextlib.suppress(BlockingIOError):
                    os.write(ours, respond(os.read(ours, 1000)))
            os.close(ours)
            os.close(theirs)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return os.ttyname(theirs)

    yield plug
    running.clear()
    for thread in threads:
        thread.join(10)


def test_a_controller_in_the_loop_can_begin_and_got_no_more_than_heartbeats_and_questions(controller):
    board, ended = controller()
    report = report_of(board)
    assert (report["status"], report["can_begin"]) == (0, True)
    assert {finding["verdict"] for finding in report["findings"]} == {"good"}
    assert (report["controller"]["base_mode"], report["controller"]["has_hil"], report["link"]["line"]) == (113, True, "usb")
    assert report["parameters"]["SYS_HITL"] == 1
    assert report["parameters"]["EKF2_REQ_GPS_H"] == 10.0
    assert {"HEARTBEAT", "HIL_ACTUATOR_CONTROLS", "TIMESYNC"} <= {stream["name"] for stream in report["streams"]}
    judged = ended()
    assert set(judged["received"]) == {"HEARTBEAT", "PARAM_REQUEST_READ"}
    assert "before_heartbeat" not in judged["broken"]


def test_a_person_reads_what_to_set(controller):
    board, _ = controller("--no-hil", "--parameter", "SYS_HITL=0", "--parameter", "CAL_MAG0_ID=396825")
    result = doctor(board)
    assert (result.returncode, result.stderr) == (1, "")
    assert re.search(r"^bad +HIL flag +base_mode 81 lacks it \(32\)", result.stdout, re.MULTILINE)
    assert re.search(
        r"^ +-> set SYS_HITL = 1 and SYS_AUTOSTART = 1001 \(HIL Quadcopter X\)\n +-> restart the controller$", result.stdout, re.MULTILINE
    )
    assert re.search(r"^good +CAL_MAG0_ID +396825: not the simulated sensor, which PX4 does not check", result.stdout, re.MULTILINE)
    assert re.search(r"^good +CAL_ACC0_ID", result.stdout, re.MULTILINE)


def test_a_flag_that_only_lacks_a_restart(controller):
    board, _ = controller("--no-hil")
    report = report_of(board)
    assert report["status"] == 1
    assert report["by"]["HIL flag"]["advice"] == "restart the controller: SYS_HITL is read at its start"


def test_an_armed_controller_is_asked_nothing(controller):
    board, ended = controller("--armed")
    report = report_of(board)
    assert report["status"] == 1
    assert list(report["by"]) == ["port", "controller", "armed"]
    assert set(ended()["received"]) <= {"HEARTBEAT"}


def test_ardupilot_is_distinguished_from_px4(controller):
    board, ended = controller("--autopilot", 3)
    report = report_of(board)
    assert report["status"] == 1
    assert 'kind = "ardupilot"' in report["by"]["controller"]["advice"]
    assert set(ended()["received"]) <= {"HEARTBEAT"}


def test_a_slow_uart_is_advised_the_rate_that_fits(controller):
    board, _ = controller()
    report = report_of(board, "--uart", "--baud", 115_200)
    assert (report["status"], report["by"]["budget"]["verdict"]) == (0, "fair")
    assert report["by"]["budget"]["fact"].startswith("at most 119 Hz of sensors fit into 115200 baud")


def test_57600_baud_are_refused(controller):
    board, _ = controller()
    report = report_of(board, "--uart", "--baud", 57_600)
    assert (report["status"], report["by"]["budget"]["verdict"]) == (1, "bad")


def test_px4s_own_rate_of_telemetry_1_is_found(controller):
    settings = ["MAV_0_CONFIG=101", "MAV_0_RATE=1200", "SER_TEL1_BAUD=921600"]
    board, _ = controller(*[word for setting in settings for word in ("--parameter", setting)])
    report = report_of(board, "--uart")
    assert (report["status"], report["by"]["budget"]["advice"]) == (1, "set MAV_0_RATE = 0; restart the controller")


def test_a_silent_port_says_what_to_look_at(port):
    report = report_of(port(lambda _data: b""), seconds=1)
    assert (report["status"], report["controller"]) == (1, None)
    assert report["by"]["controller"]["fact"].startswith("no byte in 1.")
    assert report["by"]["controller"]["advice"].startswith("1. the cable: it must carry data")


def test_bytes_without_frames_point_at_the_baud_rate(port):
    noise = bytes(byte | 0x80 for byte in range(60)) * 3  # as of a line that is read too fast
    report = report_of(port(lambda data: noise if data else b""), "--uart", seconds=1)
    assert report["status"] == 1
    assert "but no MAVLink frame" in report["by"]["controller"]["fact"]
    assert report["by"]["controller"]["advice"].startswith("1. the baud rate of both ends")


def test_a_console_is_reported_as_a_console(port):
    report = report_of(port(lambda data: b"nsh: unknown command\r\nnsh> " if data else b""), seconds=1)
    assert "a console or a sensor, not MAVLink" in report["by"]["controller"]["fact"]


def test_an_echo_is_reported_as_one(port):
    report = report_of(port(lambda data: data), seconds=1)
    assert "only hilsim's own heartbeats are received" in report["by"]["controller"]["fact"]


def test_a_camera_alone_is_no_controller(port):
    camera = bytes(common.MAVLink_heartbeat_message(30, 8, 0, 0, 4, 3).pack(packer(1, 100)))
    report = report_of(port(lambda data: camera if data else b""), seconds=1)
    assert report["status"] == 1
    assert report["by"]["controller"]["fact"].endswith("but no flight controller's heartbeat, only system 1 component 100")


def test_a_busy_port_names_who_holds_it(port):
    device = port(lambda _data: b"")
    with subprocess.Popen([sys.executable, "-c", _HOLD, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        result = doctor(device)
        holder.communicate()
    assert (result.returncode, result.stdout) == (1, "")
    assert re.fullmatch(rf"error: {device}: the port must be free, got it in use by python\S* \(pid {holder.pid}\): end it, .*\n", result.stderr)


def test_a_missing_port_is_reported():
    result = doctor("/dev/ttyACM_none")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error: /dev/ttyACM_none: the port must open, got No such file or directory: plug the device in")


def test_a_simulation_over_tcp_is_heard(tmp_path):
    path = tmp_path / "report.json"
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "hilsim_flight_controller", "--tcp", address, "--for", "60", "--report", str(path)]
    with subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            report = report_of(f"tcp:{address}", seconds=6)
        finally:
            process.terminate()
    assert (report["status"], report["link"]["line"]) == (0, "network")
    assert [finding["subject"] for finding in report["findings"]] == ["port", "controller", "budget", "motors", "streams"]
