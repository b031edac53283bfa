"""An emulated Ouster of a real daemon behind its control interface: what clients request, and what its packets show then."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import hilsim
from hilsim.config.script import load_script
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets, lidar_layout
from hilsim.families.ouster.protocol.metadata_reading import read_metadata
from tests.interop.ouster_judge import PYTHON, fault
from tests.system.conftest import SCENE
from tests.system.test_changes import CONTROL

pytestmark = pytest.mark.system

ADDRESS = "127.0.0.9"
KEPT = {"user_data": "kept", "keeps_user_data": True, "static_address": None, "ptp_profile": "default"}


def sensor(lidar_port, imu_port, web=""):
    return f"""
[[sensor]]
name = "roof"
profile = "os1-32"
unit = "ideal"
sub_rays = 1

[sensor.network]
source = "{ADDRESS}"
source_ports = "any"
data_port = {lidar_port}
position_port = {imu_port}

[sensor.ouster]
lidar_mode = "512x10"

[sensor.web]
port = 0
commands_port = 0
boot_s = 0.1
{web}
"""


class Unit:
    """Requests to the sensor, and its packets as its metadata say."""

    def __init__(self, daemon, lidar):
        found = daemon.await_log(r'"event": "sensor\.ouster".*"address": "(http://[^"]+)", "commands_port": (\d+)')
        self.address, self.commands_port, self.lidar = found[1], int(found[2]), lidar

    def ask(self, method, path, document=None):
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self.address}/api/v1/{path}", body, method=method)  # noqa: S310 - of the daemon that the test starts
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def get(self, path):
        status, document = self.ask("GET", path)
        assert status == 200
        return document

    def set(self, document, query="?persist=false"):
        status, answer = self.ask("POST", f"sensor/config{query}", document)
        assert (status, answer) == (204, None)
        self.await_status("RUNNING", "STANDBY")

    def await_status(self, *words):
        deadline = time.monotonic() + 20.0
        while self.get("sensor/metadata/sensor_info")["status"] not in words:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def packets(self, count=40):
        """Packets that come now; they are those of the metadata of now, or decoding fails."""
        metadata = read_metadata(json.dumps(self.get("sensor/metadata")))
        layout = lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)
        drain(self.lidar)
        payloads = take(self.lidar, count)
        assert {len(payload) for payload in payloads} == {layout.size}
        return metadata, decode_lidar_packets(np.stack([np.frombuffer(each, np.uint8) for each in payloads]), metadata.profile, layout)


def take(receiver, count, timeout_s=20.0):
    receiver.sock.settimeout(timeout_s)
    return [receiver.sock.recv(65_535) for _ in range(count)]


def drain(receiver):
    receiver.sock.settimeout(0.0)
    try:
        while True:
            receiver.sock.recv(65_535)
    except BlockingIOError:
        pass


def arrived(receiver):
    """Whether a packet waits."""
    receiver.sock.settimeout(0.0)
    try:
        return bool(receiver.sock.recv(65_535))
    except BlockingIOError:
        return False


def silenced_packets(directory):
    """Packets of both flows that were not sent because the sensor is silent."""
    flows = hilsim.connect(directory / "control").state()["sensors"]["roof"]["flows"]
    return [flow["silenced_packets"] for flow in flows.values()]


def until(condition, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def bench(daemon, rig, receiver):
    lidar, imu = receiver(), receiver()
    running = daemon(rig(sensor(lidar.port, imu.port, 'saved_file = "saved.json"'), scene=SCENE + CONTROL))
    return running, Unit(running, lidar), imu


def test_after_a_brown_out_the_sensor_is_initialized_with_what_was_saved(bench, tmp_path):
    _, unit, _ = bench
    first_id = unit.packets()[0].initialization_id
    unit.set({"lidar_mode": "1024x10"})
    hilsim.connect(tmp_path / "control").fault("brown_out", "roof", off_ms=500.0, down_ms=1000.0)
    with pytest.raises(OSError, match=r"closed|reset|Remote end"):
        until(lambda: not unit.get("sensor/metadata"))
    until(lambda: answers(unit))
    unit.await_status("RUNNING")
    metadata, packets = unit.packets()
    assert (metadata.columns_per_frame, metadata.initialization_id) == (512, first_id + 2)
    assert packets.columns["timestamp_ns"].max() < 30_000_000_000


def test_without_its_master_the_sensor_listens_and_its_clock_runs_free(bench, tmp_path):
    _, unit, _ = bench
    control = hilsim.connect(tmp_path / "control")
    with pytest.raises(hilsim.HilsimError, match="must follow time from the network"):
        control.fault("ptp_lost", "roof")
    unit.set({"timestamp_mode": "TIME_FROM_PTP_1588"})

    def port_state():
        return unit.get("time/ptp")["port_data_set"]["port_state"]

    assert port_state() == "SLAVE"
    control.fault("ptp_lost", "roof", drift_ppm=200_000.0)
    until(lambda: port_state() == "LISTENING")
    until(lambda: pace(unit) == pytest.approx(1.2, abs=0.01))
    control.clear("ptp_lost")
    until(lambda: port_state() == "SLAVE")
    until(lambda: pace(unit) == pytest.approx(1.0, abs=0.01))


def pace(unit):
    """Time by stamps over time by columns, of packets that come now."""
    _, packets = unit.packets()
    stamps, columns = (packets.columns[name].ravel().astype(float) for name in ("timestamp_ns", "measurement_id"))
    return (stamps[-1] - stamps[0]) / ((np.diff(columns) % 512).sum() * 1e8 / 512)


def answers(unit):
    try:
        return bool(unit.get("sensor/metadata"))
    except OSError:
        return False


def test_packets_follow_what_clients_set_while_they_flow(bench, receiver, tmp_path):
    _, unit, imu = bench
    metadata, packets = unit.packets()
    first_id = metadata.initialization_id
    assert (metadata.columns_per_frame, set(packets.headers["init_id"].tolist())) == (512, {first_id})
    assert set(packets.headers["serial"].tolist()) == {int(metadata.serial)}

    unit.set({"lidar_mode": "1024x20", "udp_profile_lidar": "RNG19_RFL8_SIG16_NIR16_DUAL"}, "?persist=true")
    metadata, packets = unit.packets()
    assert (metadata.columns_per_frame, set(packets.headers["init_id"].tolist())) == (1024, {first_id + 1})
    assert packets.headers["frame_id"].max() < 200  # turns count from 0 again
    assert json.loads((tmp_path / "saved.json").read_text())["config_params"]["lidar_mode"] == "1024x20"

    other = receiver()
    unit.set({"udp_port_lidar": other.port}, "?reinit=false&persist=false")
    drain(other)
    assert len(take(other, 5)[0]) == len(take(other, 1)[0])
    status, answer = unit.ask("POST", "sensor/config", {"header_type": "FUSA"})
    assert (status, answer["error"]["faults"]) == (400, ["header_type must be a key that firmware 3.1.0 has, got an unknown one"])

    unit.lidar = other
    unit.set({"operating_mode": "STANDBY"})
    assert unit.ask("GET", "sensor/metadata/lidar_data_format")[0] == 503
    silenced = silenced_packets(tmp_path)
    drain(other)
    drain(imu)
    until(lambda: min(np.subtract(silenced_packets(tmp_path), silenced)) > 20)
    assert [arrived(each) for each in (other, imu)] == [False, False]
    unit.set({"operating_mode": "NORMAL", "udp_profile_lidar": "LEGACY", "azimuth_window": [90_000, 270_000]})
    metadata, packets = unit.packets()
    assert set((packets.columns["measurement_id"][:, 0] // 16).tolist()) <= set(range(16, 49))
    script = hilsim.connect(tmp_path / "control").script()
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(change) + "\n" for change in script))
    assert [change.ouster.udp_profile_lidar for change in load_script(tmp_path / "script.jsonl").changes][-1] == "LEGACY"
    assert [change["ouster"]["initialization_id"] for change in script] == [first_id + 1, first_id + 2, first_id + 3]
    with socket.create_connection((ADDRESS, unit.commands_port), 20) as client:
        client.sendall(b"get_config_param active udp_profile_lidar\n")
        assert client.makefile("rb").readline() == b'"LEGACY"\n'


def test_saved_settings_outlast_the_daemon_and_a_reload_undoes_what_was_set(daemon, rig, receiver, tmp_path):
    lidar, imu = receiver(), receiver()
    (tmp_path / "saved.json").write_text(json.dumps({"config_params": {"lidar_mode": "1024x10"}, **KEPT}))
    path = rig(sensor(lidar.port, imu.port, 'saved_file = "saved.json"'))
    running = daemon(path)
    unit = Unit(running, lidar)
    running.await_log(r'"event": "sensor\.ouster\.saved_used"')
    unit.await_status("RUNNING")
    assert unit.packets()[0].columns_per_frame == 1024
    assert unit.get("user/data") == "kept"

    unit.set({"operating_mode": "STANDBY"})
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r'"event": "rig\.reloaded"')
    unit.await_status("RUNNING")
    assert unit.packets()[0].columns_per_frame == 512


@pytest.mark.parametrize("text", ["{", '{"config_params": {"lidar_mode": "1x1"}}'])
def test_a_saved_file_that_cannot_be_used_is_reported_and_the_sensor_runs_as_the_rig_says(text, daemon, rig, receiver, tmp_path):
    lidar, imu = receiver(), receiver()
    (tmp_path / "saved.json").write_text(text)
    running = daemon(rig(sensor(lidar.port, imu.port, 'saved_file = "saved.json"')))
    found = running.await_log(r'"event": "sensor\.ouster\.saved_not_used".*"reason": "([^"]+)"')
    assert "saved.json: must be settings that this sensor has saved" in found[1]
    assert Unit(running, lidar).packets()[0].columns_per_frame == 512


def test_ouster_cli_reads_whole_frames_and_changes_the_mode(bench):
    if fault() is not None:
        pytest.skip(f"the vendor's ouster-sdk does not load here: {fault()}")
    _, unit, imu = bench
    for receiver in (unit.lidar, imu):
        receiver.sock.close()  # the client opens their ports
    assert frames(unit) == ["Count: 20", "Packet Count: 640", "Sizes: 512x32", "0 missing"]
    cli(unit, "config", "lidar_mode", "1024x10")
    unit.await_status("RUNNING")
    assert frames(unit) == ["Count: 20", "Packet Count: 1280", "Sizes: 1024x32", "0 missing"]


def frames(unit):
    """What the statistics of 20 frames say."""
    text = cli(unit, "slice", "0:20", "stats")
    found = [line.strip() for line in text.split("\n") if line.strip().startswith(("Count:", "Packet Count:", "Sizes:"))]
    return [*found, "0 missing" if "Incomplete Frames: 0" in text and "0 missing lidar packets, 0 missing lidar columns" in text else text]


def cli(unit, *arguments):
    """Output of ``ouster-cli source``; the unit's port is its proxy, as an ordinary user cannot open port 80."""
    command = [PYTHON.parent / "ouster-cli", "source", ADDRESS, *arguments]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "http_proxy": unit.address}
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout
