"""Options of ``hilsim run`` that change the rig hold through reloads; a file tells scripts that packets flow."""

import json
import signal
import socket

import pytest

from tests import commands
from tests.system.conftest import START_TIMEOUT_S, sensor_table

pytestmark = pytest.mark.system


def test_options_direct_a_rig_and_a_reload_keeps_them(rig, daemon, receiver):
    wanted = receiver()
    path = rig(sensor_table("roof", 2368, 8308))
    running = daemon(path, "--to", f"localhost:{wanted.port}", "--set", "sensor.roof.rotation_rate_rpm=1200")
    running.await_log(r'"event": "host\.resolved"')
    wanted.take(20)
    path.write_text(path.read_text().replace("seed = 5", "seed = 6"))
    before = len(running.text())
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r'"event": "host\.resolved"', after=before)
    wanted.drain()
    packets = [payload for payload, _ in wanted.take(200)]
    azimuths = [int.from_bytes(payload[offset + 2 : offset + 4], "little") for payload in packets for offset in (0, 1100)]
    steps = [(later - earlier) % 36_000 for earlier, later in zip(azimuths[::2], azimuths[1::2], strict=True)]
    assert (
        2.0 * 11 * 39.8 - 5 <= sum(steps) / len(steps) <= 2.0 * 11 * 39.8 + 5
    )  # 11 blocks of two sequences (0.398 degrees at 1200 rpm: 0.796 a block)


def test_a_wrong_option_ends_the_command_before_anything_is_sent(rig, daemon, receiver):
    wanted = receiver()
    running = daemon(rig(sensor_table("roof", wanted.port, 8308)), "--set", "sensor.roof.sub_rays=5", wait=False)
    assert running.process.wait(60) == 1
    assert "sensor[0].sub_rays must be one of 1, 7, 19, got 5 (--set sensor.roof.sub_rays=5)" in running.text()
    assert wanted.drain() == []


def test_the_ready_file_says_what_flows_and_is_gone_at_the_end(rig, daemon, receiver, tmp_path):
    wanted, ready = receiver(), tmp_path / "ready.json"
    ready.write_text("of an earlier daemon")
    running = daemon(rig(sensor_table("roof", wanted.port, 8308)), "--ready-file", str(ready), wait=False)
    running.await_log(r'"event": "daemon\.preparing"')
    assert not ready.exists() or json.loads(ready.read_text())["pid"] == running.process.pid
    running.await_log(r'"event": "daemon\.started"')
    while not ready.exists():
        assert running.process.poll() is None
    assert wanted.drain()
    told = json.loads(ready.read_text())
    assert told["pid"] == running.process.pid
    assert told["sensors"] == [
        {"name": "roof", "model": "VLP-16", "source": "127.0.1.201", "destination": "127.0.0.1", "ports": {"data": wanted.port, "position": 8308}}
    ]
    host, _, port = told["metrics"].removeprefix("http://").removesuffix("/metrics").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60):
        pass
    assert running.stop()[0] == 0
    assert [path.name for path in tmp_path.iterdir() if "ready" in path.name] == []


def test_the_ready_file_follows_a_reload(rig, daemon, receiver, tmp_path):
    first, second, ready = receiver(), receiver(), tmp_path / "ready.json"
    path = rig(sensor_table("roof", first.port, 8308))
    running = daemon(path, "--ready-file", str(ready))
    path.write_text(path.read_text().replace(f"data_port = {first.port}", f"data_port = {second.port}"))
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r'"event": "rig\.reloaded"')
    while not ready.exists() or json.loads(ready.read_text())["sensors"][0]["ports"]["data"] != second.port:
        assert running.process.poll() is None


def test_a_ready_file_that_cannot_be_written_is_reported_before_anything_else(rig, daemon):
    running = daemon(rig(sensor_table("roof", 2368, 8308)), "--ready-file", "/nowhere/ready.json", wait=False)
    assert running.process.wait(60) == 1
    assert "error: --ready-file must be a file that can be written, got /nowhere/ready.json: No such file or directory" in running.text()


def test_quiet_says_nothing_while_all_is_well(rig, daemon, receiver):
    wanted = receiver()
    running = daemon(rig(sensor_table("roof", wanted.port, 8308)), "--quiet", wait=False)
    wanted.take(10, timeout_s=START_TIMEOUT_S)
    running.stop()
    assert [line for line in running.text().splitlines() if '"level": "info"' in line] == []


def test_a_recording_takes_the_options_too(rig, tmp_path):
    capture = tmp_path / "a.pcap"
    path = rig(sensor_table("roof", 2368, 8308))
    done = commands.run("record", path, "-o", capture, "--duration-s", 0.1, "--json", "--to", "10.0.0.77:2370")
    assert json.loads(done.stdout)["packets"] > 50
    first = capture.read_bytes()[24 + 16 :]
    assert (socket.inet_ntoa(first[30:34]), int.from_bytes(first[36:38], "big")) == ("10.0.0.77", 2370)


def test_a_replay_without_its_capture_says_only_that():
    done = commands.run("replay", "nope.pcap")
    assert (done.returncode, done.stderr) == (1, "error: nope.pcap: must be a capture, got no such file\n")


def test_commands_come_by_datagram(rig, daemon, receiver):
    wanted = receiver()
    running = daemon(rig(sensor_table("roof", wanted.port, 8308)), "--set", "control.listen=127.0.0.1:0")
    address = running.await_log(r'"address": "(udp:127\.0\.0\.1:\d+)"')[1]
    assert json.loads(commands.run("control", address, "health").stdout)["level"] in {"healthy", "degraded", "unhealthy"}
    refused = commands.run("control", address, "dance")
    assert (refused.returncode, refused.stderr.startswith("error: a command must be pause [NAME]")) == (1, True)
    host, _, port = address.removeprefix("udp:").rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
        program.sendto(b"dance", (host, int(port)))
    running.await_log(r'"event": "control\.datagram_refused"')
