"""A daemon with rovers, and a client that checks every byte: ports, order, commands, damaged files, and what else may come."""

import json
import os
import re
import signal
import socket
import struct
import time
import urllib.request
from collections import defaultdict
from contextlib import ExitStack
from itertools import pairwise

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from tests import commands
from tests.cables import await_bytes
from tests.system.flying import figures
from tests.system.reception import receiving_socket

pytestmark = pytest.mark.system

BASES = {"pose": 9000, "lidar": 10_000, "telemetry": 11_000}
SCANS = 12
SO_TIMESTAMPNS, SO_MEMINFO = 35, 55  # asm-generic/socket.h


def scan_text(number, scan, points):
    cloud = np.arange(3 * points).reshape(-1, 3) * 0.25 + 1000 * number + scan
    return f"{number},{scan},-3.5,0,90.25,0; " + "; ".join(",".join(map(str, row)) for row in cloud)


def expected(number, scan, points):
    return np.array([number, scan, -3.5, 0, 90.25, 0], "<f4"), (np.arange(3 * points).reshape(-1, 3) * 0.25 + 1000 * number + scan).astype("<f4")


class Station:
    """A receiver of rovers' packets, and their commander."""

    def __init__(self, stack, address, numbers):
        self.address = address
        self.sockets = {}
        for number in numbers:
            for kind, base in BASES.items():
                made = stack.enter_context(receiving_socket(address, base + number))
                made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                made.settimeout(60)
                self.sockets[kind, number] = made
        self.commander = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def command(self, number, datagram):
        self.commander.sendto(datagram, (self.address, 8000 + number))

    def take(self, kind, number):
        return self.sockets[kind, number].recv(65_536)

    def take_of(self, pose, kind, number):
        """The next packet of a pose's cycle; those of an earlier one, of which it has no pose, are left."""
        while (payload := self.take(kind, number))[:8] != pose[:8]:
            assert struct.unpack_from("<d", payload) < struct.unpack_from("<d", pose)
        return payload

    def scan(self, number):
        """The next whole cycle: time stamp, pose, points, buttons."""
        pose = self.take("pose", number)
        assert len(pose) == 32
        points, chunk, chunks = [], -1, 1
        while chunk < chunks - 1:
            payload = self.take_of(pose, "lidar", number)
            chunk, chunks, count = struct.unpack_from("<III", payload, 8)
            assert chunk == len(points)
            assert len(payload) == 20 + 12 * count
            assert count == 100 or chunk == chunks - 1
            points.append(np.frombuffer(payload, "<f4", offset=20).reshape(-1, 3))
        telemetry = self.take_of(pose, "telemetry", number)
        assert len(telemetry) == 9
        return struct.unpack_from("<d", pose)[0], np.frombuffer(pose, "<f4", offset=8), np.concatenate(points), telemetry[8]

    def drain(self):
        for made in self.sockets.values():
            made.settimeout(0)
            try:
                while True:
                    made.recv(65_536)
            except BlockingIOError:
                made.settimeout(60)


@pytest.fixture
def address(worker_number):
    return f"127.0.{90 + worker_number}.1"


@pytest.fixture
def worker_number():
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture
def station(address):
    with ExitStack() as stack:
        yield lambda *numbers: Station(stack, address, numbers)


@pytest.fixture
def rovers(tmp_path, address):
    """A rig of rovers; ``points`` of each rover's scans by its number. Most tests ask what is sent, not when: by default late packets are sent too."""

    def write(points, *, noise=False, rate_hz=10.0, lines=None, late_policy="send"):
        text = f'name = "rovers"\nseed = 5\n[metrics]\nport = 0\n[transmit]\nlate_policy = "{late_policy}"\n'
        for number, count in points.items():
            file = tmp_path / f"rover{number}.dat"
            rows = lines if lines is not None else [scan_text(number, scan, count) for scan in range(SCANS)]
            file.write_text("\n".join(rows) + "\n")
            text += f'[[rover]]\nnumber = {number}\nfile = "{file.name}"\nrate_hz = {rate_hz}\n'
            text += f'network = {{ source = "{address}", destination = "{address}" }}\n'
            text += "" if noise else "noise = { position_m = 0, rotation_deg = 0, point_m = 0 }\n"
        path = tmp_path / "rovers.toml"
        path.write_text(text)
        return path

    return write


def test_five_rovers_send_every_number_of_their_files_in_order_again_and_again(rovers, daemon, station):
    points = {1: 1000, 2: 2400, 3: 1, 4: 100, 5: 250}
    heard = station(*points)
    daemon(rovers(points))
    stamps = {number: [] for number in points}
    for cycle in range(2 * SCANS + 3):
        for number, count in points.items():
            stamp, pose, cloud, buttons = heard.scan(number)
            wanted_pose, wanted_cloud = expected(number, cycle % SCANS, count)
            assert np.array_equal(pose, wanted_pose)
            assert np.array_equal(cloud, wanted_cloud)
            assert buttons == 0
            stamps[number].append(round(stamp * 10))
            assert stamp == stamps[number][-1] * 100_000_000 / 1e9
    for numbers in stamps.values():
        assert all(later > earlier for earlier, later in pairwise(numbers))  # also where the file begins again


def held_by_a_default_buffer(size):
    """Datagrams of ``size`` bytes that a UDP socket holds with the default buffer, by what the kernel charges for one (sock_diag(7): SO_MEMINFO)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.bind(("127.0.0.1", 0))
        sender.sendto(bytes(size), receiver.getsockname())
        await_bytes(receiver, size)
        charged, limit = struct.unpack_from("II", receiver.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36))
        return limit // charged


@pytest.mark.extended
def test_a_receiver_with_the_default_buffer_gets_every_chunk_of_a_large_scan(rovers, daemon, station):
    heard = station(1)
    running = daemon(rovers({1: 28_800}, late_policy="skip"))
    chunks, sent_ns = defaultdict(dict), []
    for _ in range(SCANS * 288):
        payload, stamps, _, _ = heard.sockets["lidar", 1].recvmsg(2000, 64)
        stamp, number, count, points = struct.unpack_from("<dIII", payload)
        assert (count, points, len(payload)) == (288, 100, 1220)
        chunks[stamp][number] = payload[20:]
        sent_ns.append(struct.unpack("<qq", stamps[0][2])[0] * 1_000_000_000 + struct.unpack("<qq", stamps[0][2])[1])
    del chunks[max(chunks)]  # not all of it has come
    missing = sum(288 - len(numbers) for numbers in chunks.values())
    assert missing <= figures(running)['hilsim_dropped_packets_total{flow="lidar",sensor="rover-1"}']
    clouds = {expected(1, scan, 28_800)[1].tobytes() for scan in range(SCANS)}
    whole = [numbers for numbers in chunks.values() if len(numbers) == 288]
    assert all(b"".join(numbers[number] for number in range(288)) in clouds for numbers in whole)
    assert len(whole) > SCANS / 2
    # The loop never sends what is 20 ms late: 72 chunks may come at once. Of all that comes within 3 ms a default buffer loses nothing.
    within = np.searchsorted(sent_ns, np.array(sent_ns) + 3_000_000) - np.arange(len(sent_ns))
    assert within.max() <= held_by_a_default_buffer(1220)


def test_a_command_shows_in_the_telemetry_and_hostile_ones_do_no_harm(rovers, daemon, station):
    heard = station(1, 2)
    running = daemon(rovers({1: 10, 2: 10}, rate_hz=50.0))
    heard.scan(1)
    for datagram, shown in ((b"\x0a", 0x0A), (b"", 0x0A), (b"\xff\x01\x02", 0xFF), (b"\x05" + bytes(60_000), 0x05), (b"\0", 0)):
        heard.command(1, datagram)
        until = time.monotonic() + 30
        while heard.scan(1)[3] != shown:
            assert time.monotonic() < until
    assert heard.scan(2)[3] == 0
    for number in range(3000):
        heard.command(1, bytes([number % 256]) * (number % 7))
    heard.drain()
    for _ in range(20):
        heard.scan(1)
    metrics = urllib.request.urlopen(running.await_log(r'"metrics": "(http://[^"]+)"')[1]).read().decode()  # noqa: S310 - our own daemon
    assert float(re.search(r'hilsim_rover_commands_total\{rover="rover-1"\} (\S+)', metrics)[1]) >= 5
    assert re.search(r'hilsim_rover_cycles_total\{rover="rover-2"\} [1-9]', metrics)
    assert running.stop()[0] == 0


@pytest.mark.extended
def test_noise_moves_every_point_by_half_a_metre_and_nothing_else(rovers, daemon, station):
    heard = station(1)
    daemon(rovers({1: 2400}, noise=True))
    differences = []
    for _ in range(SCANS):
        stamp, _, cloud, _ = heard.scan(1)
        differences.append(cloud - expected(1, (round(stamp * 10) - 1) % SCANS, 2400)[1])
    assert np.std(differences) == pytest.approx(0.5, rel=0.01)
    assert abs(np.mean(differences)) < 0.01


def test_damaged_lines_are_left_out_and_named_in_the_log_with_the_number_of_good_ones(rovers, daemon, station):
    heard = station(1)
    lines = [scan_text(1, 0, 5), "what is this", scan_text(1, 1, 5), "", "1,2,3; 4,5,6", scan_text(1, 2, 5) + ";"]
    running = daemon(rovers({1: 0}, lines=lines))
    told = running.await_log(r'"event": "rover\.scans_read".*')[0]
    assert [heard.scan(1)[1][1] for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    line = next(line for line in running.text().splitlines() if "rover.scans_read" in line)
    assert '"good": 3' in line
    assert '"damaged": 2' in line
    assert "line 2: a pose must have 6 numbers, got 1" in line
    assert "line 5: a pose must have 6 numbers, got 3" in line
    assert told


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("number = 2", "number = 1"), "number of rovers must differ, got 1 more than once"),
        (lambda text: text.replace("rover2.dat", "nowhere.dat"), "nowhere.dat: must be a file that can be read, got No such file or directory"),
        (lambda text: text.replace("rover2.dat", "rovers.toml"), "rovers.toml: must hold a scan"),
        (lambda text: text.replace("rate_hz = 10.0", "rate_hz = 0"), "rover[0].rate_hz must be 0.1 to 100, got 0"),
    ],
)
def test_a_missing_resource_is_reported_before_anything_is_sent(rovers, daemon, station, change, message):
    heard = station(1, 2)
    path = rovers({1: 10, 2: 10})
    path.write_text(change(path.read_text()))
    running = daemon(path, wait=False)
    assert running.process.wait(120) == 1
    assert message in running.text()
    heard.sockets["pose", 1].settimeout(0)
    with pytest.raises(BlockingIOError):
        heard.take("pose", 1)


@pytest.mark.extended
def test_a_port_for_commands_that_is_taken_is_named(rovers, daemon, address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((address, 8002))
        running = daemon(rovers({1: 10, 2: 10}), wait=False)
        assert running.process.wait(120) == 1
    assert re.search(rf"udp port {re.escape(address)}:8002: the port must be free, got it in use by ", running.text())


def test_the_shipped_rovers_drive_and_number_5_obeys_its_commands(daemon, station, address):
    heard = station(1, 5)
    network = [word for number in range(5) for word in ("--set", f'rover[{number}].network={{source="{address}",destination="{address}"}}')]
    daemon("rovers", *network, "--no-noise", "--set", "metrics.port=0")
    begun, pose, cloud, _ = heard.scan(1)
    assert len(cloud) > 600
    assert np.abs(cloud[:, 1]).min() < 1e-3  # the ground: y is up
    while (now := heard.scan(1))[0] < begun + 2.0:
        pass
    assert np.linalg.norm(now[1][:3] - pose[:3]) == pytest.approx(2.0 * (now[0] - begun), abs=0.3)
    heard.drain()
    _, before, _, _ = heard.scan(5)
    heard.command(5, b"\x01")
    until = time.monotonic() + 30
    while (moved := heard.scan(5)[1])[0] < before[0] + 1.0:
        assert time.monotonic() < until
    assert moved[1:3].tolist() == before[1:3].tolist()
    heard.command(5, b"\x00")


@pytest.mark.extended
def test_a_reload_changes_neither_rovers_nor_the_scene_they_drive_through(daemon, station, tmp_path, address):
    heard, path = station(1), tmp_path / "driving.toml"
    network = f'network = {{ source = "{address}", destination = "{address}" }}'
    rig = f"""
        name = "driving"
        metrics = {{ port = 0 }}
        [[scene.plane]]
        size_m = [50.0, 50.0]
        [[rover]]
        number = 1
        {network}
        drive = {{ steered_by = "buttons" }}
    """
    path.write_text(rig)
    running = daemon(path)
    heard.scan(1)
    for change in (("[50.0, 50.0]", "[60.0, 60.0]"), ("number = 1", "number = 2")):
        path.write_text(rig.replace(*change))
        before = len(running.text())
        running.process.send_signal(signal.SIGHUP)
        running.await_log(r'"event": "rig\.reload_refused"', after=before)
    path.write_text(rig)
    before = len(running.text())
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r'"event": "rig\.reloaded"', after=before)
    heard.drain()
    assert len(heard.scan(1)[2]) > 400


def by_port(datagrams):
    """Payloads of each port by their time stamps, in order."""
    found = {}
    for datagram in datagrams:
        found.setdefault((datagram.destination_port, datagram.payload[:8]), []).append(datagram.payload)
    return found


def record_offline(path, file, *more):
    done = commands.run("record", path, "-o", file, *more)
    assert done.returncode == 0, done.stderr
    return list(CaptureFile(file))


@pytest.mark.extended
def test_rovers_are_recorded_as_they_send_and_offline_are_the_same_bytes(rovers, daemon, station, tmp_path, address):
    heard, path, ready = station(1), rovers({1: 250}, noise=True), tmp_path / "ready.json"
    offline = record_offline(path, tmp_path / "offline.pcap", "--duration-s", "8")
    running = daemon(path, "--record", str(tmp_path / "sent.pcap"), "--ready-file", str(ready))
    for _ in range(5):
        heard.scan(1)
    assert json.loads(ready.read_text())["rovers"] == [{"number": 1, "source": address, "destination": address}]
    assert running.stop()[0] == 0
    sent = list(CaptureFile(tmp_path / "sent.pcap"))
    of_lidar = [datagram for datagram in sent if datagram.destination_port == 10_001]
    assert {len(datagram.payload) for datagram in of_lidar} == {1220, 620}
    assert {datagram.destination_port for datagram in sent} == {9001, 10_001, 11_001}
    assert (offline[0].source, offline[0].destination) == (sent[0].source, sent[0].destination)
    live, made = by_port(sent), by_port(offline)
    whole = [key for key, payloads in live.items() if key[0] != 10_001 or len(payloads) == 3]
    assert len(whole) > 12
    assert all(live[key] == made[key] for key in whole)
    stamps = [datagram.host_stamp_ns for datagram in offline]
    assert stamps == sorted(stamps)
    poses = [datagram.host_stamp_ns for datagram in offline if datagram.destination_port == 9001]
    assert len(poses) == 79
    assert set(np.diff(poses)) == {100_000_000}


def test_a_rover_that_drives_is_recorded_beside_a_lidar_whatever_is_made_at_a_time(tmp_path):
    rig = tmp_path / "rig.toml"
    rig.write_text(
        """
        name = "yard"
        [[scene.plane]]
        size_m = [80.0, 80.0]
        [[scene.box]]
        position_m = [6.0, 0.0, 1.0]
        size_m = [2.0, 6.0, 2.0]
        [[sensor]]
        name = "roof"
        profile = "vlp16"
        mount_position_m = [0.0, 0.0, 2.0]
        [[rover]]
        number = 7
        noise = { position_m = 0.0, rotation_deg = 0.0, point_m = 0.0 }
        drive = { heading_deg = 90.0, waypoints_m = [[0.0, 9.0]], speed_mps = 2.0 }
        """
    )
    found = record_offline(rig, tmp_path / "one.pcap", "--duration-s", "2")
    ports = [datagram.destination_port for datagram in found]
    assert ports.count(9007) == 19
    assert ports.count(2368) == pytest.approx(2 * 754, abs=2)
    record_offline(rig, tmp_path / "other.pcap", "--duration-s", "2", "--batch-ms", "7")
    assert (tmp_path / "one.pcap").read_bytes() == (tmp_path / "other.pcap").read_bytes()
    last = [datagram.payload for datagram in found if datagram.destination_port == 9007][-1]
    time_s, east, up, south, _, heading_deg, _ = struct.unpack("<d3f3f", last)
    assert (time_s, east, up) == (pytest.approx(1.9), pytest.approx(0.0, abs=0.2), pytest.approx(0.0, abs=1e-4))
    assert -south == pytest.approx(2.0 * 1.9, abs=0.5)
    assert heading_deg == pytest.approx(90.0, abs=3.0)


def test_a_replay_that_is_called_as_a_rover_is_recorded_beside_it(rovers, tmp_path):
    path = rovers({1: 10})
    once = record_offline(path, tmp_path / "drive.pcap", "--duration-s", "1")
    path.write_text(path.read_text() + '[[replay]]\nname = "rover-1"\nfile = "drive.pcap"\n')
    assert len(record_offline(path, tmp_path / "both.pcap", "--duration-s", "3")) > 3.5 * len(once)  # three times as many, and those of the replay


@pytest.mark.extended
def test_a_rover_with_a_sensors_lidar_sends_what_is_recorded_offline(daemon, station, tmp_path, address):
    rig = tmp_path / "rig.toml"
    rig.write_text(
        f"""
        name = "yard"
        seed = 3
        [metrics]
        port = 0
        [[scene.plane]]
        size_m = [80.0, 80.0]
        [[scene.box]]
        position_m = [10.5, 0.0, 2.0]
        size_m = [1.0, 40.0, 8.0]
        [[rover]]
        number = 4
        rate_hz = 4.0
        network = {{ source = "{address}", destination = "{address}" }}
        drift = {{ position_m = 1.0, time_s = 2.0 }}
        [rover.drive]
        waypoints_m = [[5.0, 0.0], [0.0, 0.0]]
        [rover.drive.lidar]
        profile = "vlp16"
        decimation = {{ beam_step = 4 }}
        """
    )
    offline = by_port(record_offline(rig, tmp_path / "offline.pcap", "--duration-s", "20"))
    heard, running = station(4), daemon(rig)
    seen = 0
    while seen < 3:
        pose = heard.take("pose", 4)
        if (9004, pose[:8]) not in offline:
            late_s = struct.unpack_from("<d", pose)[0]
            break
        assert offline[9004, pose[:8]] == [pose]
        chunk = heard.take_of(pose, "lidar", 4)
        assert chunk in offline[10_004, pose[:8]]
        assert len(offline[10_004, pose[:8]]) > 50
        seen += 1
    assert seen == 3, f"packet of {late_s} s, which is not among the 20 s that were recorded: the machine was too slow to begin with them"
    rig.write_text(rig.read_text() + "\n[weather]\nfog_visibility_m = 20.0\n")
    running.process.send_signal(signal.SIGHUP)
    running.await_log(r'"event": "rig\.reload_refused".*weather')


def test_a_rover_whose_file_has_no_scan_is_not_recorded(rovers, tmp_path):
    path = rovers({1: 10})
    next(tmp_path.glob("**/rover1*")).write_bytes(b"no scan\n")
    done = commands.run("record", path, "-o", tmp_path / "none.pcap")
    assert done.returncode == 1
    assert "must hold a scan" in done.stderr
    assert not (tmp_path / "none.pcap").exists()
