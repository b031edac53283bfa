"""Clients that follow the packets of a daemon: they get what a recording has, and the wire does not notice them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib

import pytest

from hilsim.api.daemon import Daemon
from hilsim.capture.pcap import CaptureFile, pcap_file_header
from hilsim.daemon.control.client import Client as Control
from hilsim.errors import ConfigError
from hilsim.limits import PACKET_STREAM_BYTES, PACKET_STREAMS
from tests.system.conftest import SCENE, sensor_table
from tests.system.test_ouster_sensor import sensor as ouster
from tests.system.test_sensor_web import WEB, Client

pytestmark = pytest.mark.system
FILE_HEADER = 24


@pytest.fixture
def bench(receiver, tmp_path):
    """Makes a daemon with a recording and both kinds of control."""

    def make(extra="", more=""):
        data, position = receiver(), receiver()
        table = tomllib.loads(SCENE + sensor_table("roof", data.port, position.port, extra) + more)
        table["transmit"] = {**table.get("transmit", {}), "late_policy": "send"}  # what a busy machine is late with is sent all the same
        table["lead_ms"] = 200.0
        table["record"] = {"file": str(tmp_path / "drive.pcap")}
        table["control"] = {"socket": str(tmp_path / "control"), "http": "127.0.0.1:0", "token_file": str(tmp_path / "token")}
        return Daemon(table, log=tmp_path / "log")

    return make


def packets(path):
    """Stamp, frame and payload of each packet, without the IP identification, which a stream counts from its first packet, and its checksum."""
    found = []
    for each in CaptureFile(path):
        head = bytearray(each.link)
        head[18:20] = head[24:26] = b"  "
        found.append((each.host_stamp_ns, bytes(head), bytes(each.payload)))
    return found


def assert_within(part, whole):
    begin = whole.index(part[0])
    assert whole[begin : begin + len(part)] == part


def read_for(source, duration_s):
    until_s, found = time.monotonic() + duration_s, b""
    while time.monotonic() < until_s:
        found += source.read(0.1) or b""
    return found


def await_true(check):
    deadline = time.monotonic() + 30
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def streams(daemon):
    return daemon.control.state()["packet_streams"]


def assert_none_lost(daemon):
    metrics = daemon.metrics()
    for name in ("dropped", "render_skipped"):
        assert metrics.total(f"hilsim_{name}_packets_total") == 0


def http_address(log):
    await_true(lambda: "control.listening" in log.read_text())
    line = next(line for line in log.read_text().splitlines() if "control.listening" in line)
    return "http://127.0.0.1:" + line.partition("http://127.0.0.1:")[2][:5].strip('"/, }')


def test_the_stream_has_the_bytes_of_the_recording_over_both_transports(bench, tmp_path):
    with bench() as daemon:
        address = http_address(tmp_path / "log")
        with Control(tmp_path / "control").packets() as first, Control(address, token_file=tmp_path / "token").packets() as second:
            assert (first.answer["client"], second.answer["client"]) == (1, 2)
            found = [read_for(first, 1.0), read_for(second, 0.5)]
            found = [found[0] + read_for(first, 0.3), found[1]]
            assert [client["client"] for client in streams(daemon)["clients"]] == [1, 2]
        await_true(lambda: not streams(daemon)["clients"])
        assert_none_lost(daemon)
    recorded = (tmp_path / "drive.pcap").read_bytes()
    for capture in found:
        assert capture[:FILE_HEADER] == recorded[:FILE_HEADER] == pcap_file_header()
        (tmp_path / "now.pcap").write_bytes(capture)
        part = packets(tmp_path / "now.pcap")
        assert len(part) > 300
        assert_within(part, packets(tmp_path / "drive.pcap"))


def test_frames_are_whole_across_changes_of_destination(bench, tmp_path, receiver):
    ports, log = [receiver().port for _ in range(8)], tmp_path / "log"
    limit = 'destinations = ["127.0.0.0/30"]\n'
    os1 = ouster(*ports[:2], limit).replace("roof", "os")
    with bench(more=WEB + limit + os1), Control(tmp_path / "control").packets() as follower:
        velodyne, page = (re.search(rf'"event": "sensor\.{kind}".*"address": "(http://[^"]+)"', log.read_text())[1] for kind in ("web", "ouster"))
        whole = read_for(follower, 0.2)
        for change in range(50):
            first, second, third, fourth = ports[change % 2 * 4 :][:4]
            assert Client(velodyne).post("/cgi/setting/host", addr="127.0.0.1", dport=first, tport=second) == (204, "")
            body = json.dumps({"udp_port_lidar": third, "udp_port_imu": fourth}).encode()
            assert Client(page).post("/api/v1/sensor/config?reinit=False&persist=False", body=body) == (204, "")
            whole += read_for(follower, 0.02)
        refused = "must be in 127.0.0.0/30 (sensor.web.destinations of the rig), got 127.0.0.9"
        assert Client(velodyne).post("/cgi/setting/host", addr="127.0.0.9") == (400, f"host {refused}\n")
        status, answer = Client(page).post("/api/v1/sensor/config?persist=false", body=b'{"udp_dest": "127.0.0.9"}')
        assert (status, f"udp_dest {refused}" in answer) == (400, True)
    (tmp_path / "whole.pcap").write_bytes(whole)
    recorded, followed = (list(CaptureFile(tmp_path / name)) for name in ("drive.pcap", "whole.pcap"))
    assert len(recorded) == int(re.search(r'"recording\.ended".*"packets": (\d+), "unrecorded_packets": 0', log.read_text())[1])
    sizes = {("127.0.1.201", 1206), ("127.0.1.201", 512), ("127.0.0.9", 6400), ("127.0.0.9", 48)}
    set_to = {(port, size) for place, size in enumerate((1206, 512, 6400, 48)) for port in ports[place::4]}
    for found in (recorded, followed):
        assert {(each.flow.source, len(each.payload)) for each in found} == sizes
        assert {(each.flow.destination_port, len(each.payload)) for each in found} > set_to


@pytest.mark.extended
def test_a_client_that_stands_still_loses_whole_packets_and_no_other_notices(bench, tmp_path):
    with bench('rotation_rate_rpm = 600\nreturn_mode = "dual"') as daemon:
        with Control(tmp_path / "control").packets() as slow, Control(tmp_path / "control").packets() as fast:
            whole = b""
            until_s = time.monotonic() + 40
            while streams(daemon)["clients"][0]["lost_packets"] == 0:
                assert time.monotonic() < until_s
                whole += read_for(fast, 0.2)
            waiting = streams(daemon)["clients"][0]["waiting_bytes"]
            assert PACKET_STREAM_BYTES.bound - 2000 <= waiting <= PACKET_STREAM_BYTES.bound
            cut = read_for(slow, 1.5)
            whole += read_for(fast, 1.0)
            assert streams(daemon)["clients"][1]["lost_packets"] == 0
        assert daemon.metrics().total("hilsim_packet_stream_lost_packets_total", reason="slow_client") > 0
        assert daemon.metrics().total("hilsim_packet_stream_lost_packets_total", reason="queue_full") == 0
        assert_none_lost(daemon)
    files = [tmp_path / name for name in ("whole.pcap", "cut.pcap", "drive.pcap")]
    files[0].write_bytes(whole)
    files[1].write_bytes(cut)
    whole, cut, recorded = map(packets, files)
    assert_within(whole, recorded)
    assert len(cut) < len(whole)
    assert set(cut) <= set(recorded)


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_follower_that_ends_in_any_way_changes_nothing(bench, tmp_path, number):
    with bench() as daemon, (tmp_path / "now.pcap").open("wb") as file:
        command = [sys.executable, "-m", "hilsim", "control", str(tmp_path / "control"), "packets"]
        follower = subprocess.Popen(command, stdout=file)
        await_true(lambda: os.fstat(file.fileno()).st_size > 300_000)
        follower.send_signal(number)
        assert follower.wait(30) == {signal.SIGKILL: -9, signal.SIGTERM: -15, signal.SIGINT: 0}[number]
        await_true(lambda: not streams(daemon)["clients"])
        assert_none_lost(daemon)
    assert_within(packets(tmp_path / "now.pcap"), packets(tmp_path / "drive.pcap"))


@pytest.mark.extended
def test_the_reader_of_a_pipe_may_end(bench, tmp_path):
    with bench():
        command = f"{sys.executable} -m hilsim control {tmp_path / 'control'} packets"
        done = subprocess.run(["sh", "-c", f"{command} | head -c 100000 | wc -c"], check=False, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("100000", "")


@pytest.mark.extended
def test_a_client_beyond_the_bound_is_refused(bench, tmp_path):
    with bench() as daemon:
        address = http_address(tmp_path / "log")
        sources = [Control(tmp_path / "control").packets() for _ in range(PACKET_STREAMS.bound)]
        for transport in ({"address": str(tmp_path / "control")}, {"address": address, "token_file": tmp_path / "token"}):
            with pytest.raises(ConfigError, match="at most 8, got 9"):
                Control(**transport).packets()
        for source in sources:
            source.close()
        await_true(lambda: not streams(daemon)["clients"])
        assert_none_lost(daemon)
    assert daemon.exit_code == 0


@pytest.mark.extended
def test_a_stream_ends_with_its_daemon(bench, tmp_path):
    with bench() as daemon:
        address = http_address(tmp_path / "log")
        sources = [Control(tmp_path / "control").packets(), Control(address, token_file=tmp_path / "token").packets()]
    for source in sources:
        with source:
            await_true(lambda source=source: source.read(0.1) == b"")
    assert daemon.exit_code == 0


@pytest.mark.extended
def test_another_process_can_build_the_rig_that_runs(bench):
    with bench() as daemon:
        daemon.control.change("weather", weather={"fog_visibility_m": 200.0})
        rig = daemon.control._requested({"do": "rig"})
    assert rig["table"]["sensor"][0]["name"] == "roof"
    assert [change["kind"] for change in rig["changes"]] == ["weather"]
    assert 0 <= time.time_ns() - rig["utc_epoch_ns"] < 300_000_000_000
