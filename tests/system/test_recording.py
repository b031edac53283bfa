"""``hilsim run --record``: the file holds what the receivers got, whatever happens to the file nothing happens to the stream."""

import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, decode_data_packets
from hilsim.read.analysis.conformance.checker import StreamChecker
from tests.system.conftest import SCENE, sensor_table
from tests.system.flying import samples_of
from tests.system.reception import receiving_socket, unsent
from tests.system.test_daemon import STOP_WITHIN_S, lost, metrics_of, value_of

pytestmark = pytest.mark.system

LONGEST_REST_S = 5.0
"""How long a listener reads what waits in its socket, even where the sender was not stopped."""

EARLIEST_NS = 1_327_104 + 100_000 - 1_000
"""From a VLP-16 packet's stamp to its deadline: its firing sequences and the profile's latency, less the microsecond the stamp is rounded to."""


class Listener(threading.Thread):
    """Keeps every payload that arrives at a socket of its own."""

    def __init__(self):
        super().__init__(daemon=True)
        self.payloads = []
        self.sock = receiving_socket()
        self.sock.settimeout(0.2)
        self.port = self.sock.getsockname()[1]
        self._ending = threading.Event()

    def run(self):
        ended_s = None
        while ended_s is None or time.monotonic() < ended_s + LONGEST_REST_S:
            try:
                self.payloads.append(self.sock.recv(2000))
            except TimeoutError:
                if self._ending.is_set():
                    return
            if self._ending.is_set() and ended_s is None:
                ended_s = time.monotonic()

    def await_packets(self, count):
        wanted = len(self.payloads) + count
        deadline = time.monotonic() + 30
        while len(self.payloads) < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def end(self):
        self._ending.set()
        self.join()
        self.sock.close()
        return self.payloads


@pytest.fixture
def listeners():
    """Makes a listener; every one is ended."""
    made = []

    def make():
        made.append(Listener())
        made[-1].start()
        return made[-1]

    yield make
    for listener in made:
        if listener.is_alive():
            listener.end()


def recorded(*paths):
    """Datagrams of capture files, by destination port."""
    found = {}
    for path in paths:
        for datagram in CaptureFile(path):
            found.setdefault(datagram.destination_port, []).append(datagram)
    return found


def payloads(datagrams):
    return [bytes(datagram.payload) for datagram in datagrams]


def device_stamps_ns(data):
    packets = decode_data_packets(np.frombuffer(b"".join(data), np.uint8).reshape(-1, DATA_PACKET_SIZE))
    return packets["timestamp"].astype(np.int64) * 1000


def test_the_file_holds_what_the_receivers_got_to_the_last_packet_before_sigterm(daemon, rig, listeners, tmp_path):
    data, position, second = listeners(), listeners(), listeners()
    path = rig(
        sensor_table("front", data.port, position.port),
        sensor_table("rear", second.port, position.port, network='destination = "127.0.0.1"').replace("127.0.1.201", "127.0.1.202"),
    )
    file = tmp_path / "drive.pcap"
    begun_ns = time.time_ns()
    running = daemon(path, "--record", str(file))
    data.await_packets(1500)
    metrics = metrics_of(running)
    code, used_s = running.stop()
    ended_ns = time.time_ns()
    assert (code, used_s < STOP_WITHIN_S) == (0, True)

    found = recorded(file)
    assert payloads(found[data.port]) == data.end()
    assert payloads(found[second.port]) == second.end()
    assert payloads(found[position.port]) == position.end()
    assert {(datagram.source, datagram.source_port) for datagram in found[data.port]} == {("127.0.1.201", 2368)}
    assert {datagram.source for datagram in found[position.port]} == {"127.0.1.201", "127.0.1.202"}

    stamps_ns = np.array([datagram.host_stamp_ns for datagram in CaptureFile(file)])
    assert np.all(np.diff(stamps_ns) >= 0)
    assert begun_ns < stamps_ns[0]
    assert stamps_ns[-1] < ended_ns
    for flow in (data.port, second.port):
        sent_ns = np.array([datagram.host_stamp_ns for datagram in found[flow]])
        after_stamp_ns = (sent_ns - device_stamps_ns(payloads(found[flow]))) % 3_600_000_000_000
        assert after_stamp_ns.min() >= EARLIEST_NS

    assert value_of(metrics, "hilsim_recording") == 1
    assert value_of(metrics, "hilsim_recorded_packets_total") > 0
    assert value_of(metrics, "hilsim_unrecorded_packets_total") == 0
    summary = json.loads(next(line for line in running.text().splitlines() if "recording.ended" in line))
    assert (summary["level"], summary["packets"], summary["unrecorded_packets"]) == ("info", len(stamps_ns), 0)


def test_a_recording_passes_the_checker_with_the_sensors_own_headers(daemon, rig, listeners, tmp_path):
    data, position = listeners(), listeners()
    path = rig(sensor_table("roof", data.port, position.port))
    running = daemon(path, "--record", str(tmp_path / "drive.pcap"))
    data.await_packets(2500)
    running.stop()
    checker = StreamChecker()
    checker.feed(CaptureFile(tmp_path / "drive.pcap"))
    (sensor,) = checker.result().sensors
    # This machine may be too busy to be on time: what is judged here are bytes and headers, so rules about arrival are left to the bench.
    broken = [finding for finding in sensor.findings if finding.severity.value == "error" and not finding.rule.startswith("spacing.")]
    assert not broken
    assert (sensor.summary.model, sensor.summary.headers) == ("VLP-16", "sensor")


def test_files_of_a_rotation_by_size_follow_each_other_without_a_gap(daemon, rig, listeners, tmp_path):
    data, position = listeners(), listeners()
    running = daemon(rig(sensor_table("roof", data.port, position.port)), "--record", str(tmp_path / "drive.pcap"), "--record-rotate-mb", "0.25")
    data.await_packets(1000)
    running.stop()
    files = sorted(tmp_path.glob("drive-*.pcap"))
    assert [file.name for file in files[:3]] == ["drive-0001.pcap", "drive-0002.pcap", "drive-0003.pcap"]
    assert len(files) >= 5
    assert max(file.stat().st_size for file in files) <= 250_000
    assert min(file.stat().st_size for file in files[:-1]) > 250_000 - 1264
    assert payloads(recorded(*files)[data.port]) == data.end()


@pytest.mark.extended
def test_a_rotation_by_time_keeps_the_newest_files_and_goes_on_in_the_next_run(daemon, rig, listeners, tmp_path):
    data, position = listeners(), listeners()
    scene = SCENE + '\n[record]\nfile = "drive.pcap"\nrotate_s = 0.5\nkeep = 3\n'
    path = rig(sensor_table("roof", data.port, position.port), scene=scene)
    running = daemon(path)
    running.await_log('"event": "recording.started", "file": ".*drive-0001.pcap"')
    data.await_packets(2000)
    running.stop()
    files = sorted(tmp_path.glob("drive*.pcap"))
    assert len(files) == 3
    assert files[0].name > "drive-0003.pcap"
    for file in files[:-1]:
        stamps_ns = [datagram.host_stamp_ns for datagram in CaptureFile(file)]
        assert stamps_ns[-1] - stamps_ns[0] < 500_000_000
    kept, received = payloads(recorded(*files)[data.port]), data.end()
    assert received[-len(kept) :] == kept

    again = daemon(path)
    started = again.await_log(r'"event": "recording.started", "file": ".*drive-(\d+).pcap"')
    assert int(started[1]) == int(files[-1].stem[-4:]) + 1
    again.stop()


def small_disk(directory):
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "hilsim-test", str(directory)], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    return directory


@pytest.fixture
def disk(tmp_path):
    """An empty disk of 512 KiB."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small disk")
    directory = small_disk(tmp_path / "disk")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.extended
def test_a_full_disk_stops_the_recording_with_an_error_and_not_the_stream(daemon, rig, listeners, disk):
    data, position = listeners(), listeners()
    running = daemon(rig(sensor_table("roof", data.port, position.port)), "--record", str(disk / "drive.pcap"))
    event = json.loads(running.await_log(r'\{[^\n]*"event": "recording\.ended"[^\n]*\}')[0])
    assert event["level"] == "error"
    assert "No space left on device" in event["reason"]
    running.await_log(r"health\.fault_began.*the recording has ended")
    address = running.await_log(r'"metrics": "(http://[^"]+)/metrics"')[1]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address}/healthz", timeout=10)  # noqa: S310 - the daemon's own loopback address
    with refused.value as answer:
        assert answer.code == 503
        assert "the recording has ended" in answer.read().decode()

    data.await_packets(700)
    metrics = metrics_of(running)
    assert value_of(metrics, "hilsim_recording") == 0
    recorded_packets = value_of(metrics, "hilsim_recorded_packets_total")
    assert value_of(metrics, "hilsim_unrecorded_packets_total") > 700
    left_out = unsent(samples_of(metrics), "roof")
    assert running.stop()[0] == 0
    received = data.end()
    assert lost([(payload, None) for payload in received]) <= left_out
    found = recorded(disk / "drive.pcap")
    assert sum(map(len, found.values())) == recorded_packets
    assert len(running.text().split("recording.ended")) == 2
    kept = payloads(found[data.port])
    assert received[: len(kept)] == kept


@pytest.mark.extended
def test_a_sensor_started_anew_is_recorded_under_its_new_ports_and_the_recording_itself_cannot_change(daemon, rig, listeners, tmp_path):
    data, position, moved = listeners(), listeners(), listeners()
    path = rig(sensor_table("roof", data.port, position.port))
    running = daemon(path, "--record", str(tmp_path / "drive.pcap"))
    data.await_packets(200)
    rig(sensor_table("roof", moved.port, position.port, extra="rotation_rate_rpm = 1200"))
    running.process.send_signal(signal.SIGHUP)
    moved.await_packets(200)
    rig(sensor_table("roof", moved.port, position.port, extra="rotation_rate_rpm = 1200"), scene=SCENE + "\n[record]\nrotate_s = 5.0\n")
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r"rig\.reload_refused.*\[record\].* cannot change while packets flow")
    moved.await_packets(200)
    running.stop()
    found = recorded(tmp_path / "drive.pcap")
    assert payloads(found[data.port]) == data.end()
    assert payloads(found[moved.port]) == moved.end()
    assert payloads(found[position.port]) == position.end()


def test_a_missing_directory_is_an_error_before_anything_is_sent(daemon, rig, listeners, tmp_path):
    data, position = listeners(), listeners()
    running = daemon(rig(sensor_table("roof", data.port, position.port)), "--record", str(tmp_path / "nowhere" / "drive.pcap"), wait=False)
    assert running.process.wait(60) == 1
    assert "the directory of a recording must exist" in running.text()
    assert "Traceback" not in running.text()
    assert data.end() == []
