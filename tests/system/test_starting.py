"""Starting and stopping: nothing is lost, nothing leaves before everything is held, and a signal is obeyed at any moment."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, decode_data_packets
from tests.compiled import compiled_only
from tests.support import write_rig
from tests.system.conftest import SCENE, sensor_table
from tests.system.flying import vehicle_rig
from tests.system.sitl import Sitl

pytestmark = [pytest.mark.system, pytest.mark.cold]

OBEYED_S = 10.0
"""A second is promised; a test's machine may be busy. What this tells apart is a start that is waited for: minutes."""


def cold(tmp_path):
    """An environment without compiled kernels."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cold"), "NUMBA_CACHE_DIR": "", "CACHE_DIRECTORY": ""}


def events_of(running):
    return [json.loads(line) for line in running.text().splitlines() if line.startswith("{")]


def descendants(process):
    """Process ids of children, by the kernel's word."""
    return [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def await_that(condition, timeout_s=60.0):
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_start_that_compiles_with_its_code_and_its_children(daemon, rig, receiver, tmp_path, number):
    data, position = receiver(), receiver()
    running = daemon(rig(sensor_table("roof", data.port, position.port)), environment=cold(tmp_path), wait=False)
    running.await_log(r'"event": "kernels\.compiling"')
    await_that(lambda: descendants(running.process))
    children = descendants(running.process)
    code, took_s = running.stop(number, timeout_s=60)
    assert code == 128 + number
    assert took_s < OBEYED_S
    assert not any(is_alive(child) for child in children)
    assert events_of(running)[-1]["event"] == "daemon.stopped"
    assert "Traceback" not in running.text()
    assert not data.drain()


@pytest.mark.extended
def test_children_that_compile_end_with_their_parent_however_it_ends(daemon, rig, receiver, tmp_path):
    data, position = receiver(), receiver()
    running = daemon(rig(sensor_table("roof", data.port, position.port)), environment=cold(tmp_path), wait=False)
    running.await_log(r'"event": "kernels\.compiling"')
    await_that(lambda: len(descendants(running.process)) == 2)
    children = descendants(running.process)
    running.process.kill()
    running.process.wait()
    await_that(lambda: not any(is_alive(child) for child in children))


def telling_what_it_compiles(path):
    """A program that runs a rig and says what Numba compiles in its process."""
    return (
        "import sys; from numba.core import event\n"
        "class Teller(event.Listener):\n"
        "    def on_start(self, event): pass\n"
        "    def on_end(self, event): print('compiled', event.data['dispatcher'], file=sys.stderr)\n"
        "event.register('numba:compile', Teller())\n"
        f"sys.argv = ['hilsim', 'run', {str(path)!r}]\n"
        "from hilsim.cli import main; main()\n"
    )


@pytest.mark.extended
def test_the_daemon_itself_compiles_nothing(daemon, rig, receiver):
    data, position = receiver(), receiver()
    running = daemon(rig(sensor_table("roof", data.port, position.port)), program=telling_what_it_compiles)
    data.take(500)
    assert running.stop()[0] == 0
    assert [line for line in running.text().splitlines() if line.startswith("compiled")] == []


@pytest.mark.extended
@compiled_only
def test_nothing_is_compiled_when_ardupilot_sends_its_first_frame(daemon, rig, free_port):
    port = free_port()
    running = daemon(rig(scene=vehicle_rig(f'kind = "ardupilot"\naddress = "127.0.0.1:{port}"')), program=telling_what_it_compiles)
    with closing(Sitl(port)) as sitl:
        sitl.fly(0.1, lambda _time_s: 1.0)
    assert running.stop()[0] == 0
    assert [line for line in running.text().splitlines() if line.startswith("compiled")] == []


def test_no_packet_leaves_when_the_metrics_port_is_taken(daemon, tmp_path, receiver):
    data, position = receiver(), receiver()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = write_rig(tmp_path, SCENE.replace("port = 0", f"port = {port}") + sensor_table("roof", data.port, position.port))
        running = daemon(path, wait=False)
        assert running.process.wait(300) == 1
    assert f"metrics address must be free and local, got 127.0.0.1:{port}" in running.text()
    assert not data.drain()
    assert not position.drain()


def test_the_first_packets_are_the_sensors_first_and_none_is_missing(daemon, rig, receiver):
    data, position = receiver(), receiver()
    transmit = '[transmit]\nlate_policy = "send"\n'  # what a busy machine sends late is not missing
    running = daemon(rig(sensor_table("roof", data.port, position.port), scene=SCENE + transmit), "--duration-s", "1")
    running.process.wait(60)
    ended = events_of(running)[-1]
    arrived = data.drain()
    sent = len(arrived) + len(position.drain())
    assert (sent, ended["skipped_packets"]) == (ended["sent_packets"], 0)
    if ended["dropped_packets"] == 0:
        packets = np.frombuffer(b"".join(payload for payload, _ in arrived), np.uint8).reshape(-1, DATA_PACKET_SIZE)
        steps_us = np.diff(decode_data_packets(packets)["timestamp"].astype(np.int64)) % 3_600_000_000
        assert set(steps_us.tolist()) <= {1327, 1328}


@pytest.mark.extended
def test_the_service_manager_is_asked_for_time_and_its_watchdog_left_alone_until_ready(daemon, rig, receiver, tmp_path):
    data, position = receiver(), receiver()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
        running = daemon(rig(sensor_table("roof", data.port, position.port)), environment=environment, wait=False)
        heard = []
        while not any("WATCHDOG=1" in text for text in heard):
            heard.append(manager.recv(4096).decode())
        running.stop()
    ready = next(number for number, text in enumerate(heard) if "READY=1" in text)
    assert not any("WATCHDOG=1" in text for text in heard[: ready + 1])
    assert any(text.startswith("EXTEND_TIMEOUT_USEC=") for text in heard[:ready])


@pytest.mark.extended
def test_a_run_that_has_streamed_ends_with_0(daemon, rig, receiver):
    data, position = receiver(), receiver()
    running = daemon(rig(sensor_table("roof", data.port, position.port)))
    assert running.stop()[0] == 0


@pytest.mark.extended
def test_warm_says_when_there_is_nothing_to_compile(rig, receiver):
    data, position = receiver(), receiver()
    path = rig(sensor_table("roof", data.port, position.port))
    command = [sys.executable, "-m", "hilsim", "warm", str(path)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=280, check=False).returncode == 0
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (again.returncode, again.stdout) == (0, f"{path}: its kernels are already compiled\n")


@pytest.mark.extended
def test_warm_says_when_kernels_cannot_be_kept(rig, receiver):
    data, position = receiver(), receiver()
    path = rig(sensor_table("roof", data.port, position.port))
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "CACHE_DIRECTORY"), "/proc/nowhere")
    done = subprocess.run(
        [sys.executable, "-m", "hilsim", "warm", str(path)], env=os.environ | nowhere, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "kernels are not kept in /proc/nowhere" in done.stderr
