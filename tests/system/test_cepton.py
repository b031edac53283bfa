"""Cepton-style sensors as a process over loopback: beside a VLP-16, recorded, replayed, inspected, drawn, and changed while others stream."""

import json
import signal
import struct

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.cepton.protocol.info import read_info_packet
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, PointFlag, decode_stdv_points, point_times_us, read_stdv_header
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE
from hilsim.protocols.ethernet import HEADER_SIZE
from tests import commands
from tests.system.conftest import sensor_table
from tests.system.flying import figures, samples_of
from tests.system.reception import unsent
from tests.system.replaying import Arrivals, replay, rerouted
from tests.system.test_daemon import metrics_of, value_of
from tests.system.test_record import hilsim

pytestmark = pytest.mark.system

PACKET_NS = 18 * 64_000
LATENCY_US = 100.0
LEFT, RIGHT = "127.0.3.1", "127.0.3.2"
# A wall 170 m ahead: of what looks 45 deg to the right, points cannot say it.
SCENE = """
name = "field"
seed = 5
[[scene.box]]
position_m = [170.5, 0.0, 0.0]
size_m = [1.0, 800.0, 800.0]
material = "plaster"
[metrics]
port = 0
"""
MIRROR = "mirror = { x_hz = 10.0, x_amplitude = 0.1, z_hz = 200.0, z_amplitude = 0.1 }"
SEGMENTS = "[" + ", ".join(f"{{ image_x = {x}, image_z = 0.0 }}" for x in (-0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 1.2)) + "]"
DETECTOR = "detector = { threshold_reflectivity = 0.0 }"
FIXED = f"firing_ns = 8000, sequence_ns = 64000, range_max_m = 300.0, data_latency_us = {LATENCY_US}, {DETECTOR}"


def swept_table(name, source, port, setting="", cepton=""):
    return f"""
[[sensor]]
name = "{name}"
profile = "hr80w-like"
override = {{ {FIXED}, segments = {SEGMENTS}, {MIRROR} }}
{setting}
[sensor.cepton]
{cepton}
[sensor.network]
source = "{source}"
source_ports = "any"
data_port = {port}
"""


def told_apart(received):
    """Payloads by source address: points, information."""
    found = {}
    for payload, (source, _) in received:
        of_source = found.setdefault(source, ([], []))
        of_source[0 if payload.startswith(b"STDV") else 1].append(payload)
    return found


def sequences(payloads):
    return [read_stdv_header(payload).sequence for payload in payloads]


@pytest.mark.extended
def test_every_packet_of_a_turning_and_two_swept_sensors_arrives_from_its_own_address(daemon, rig, receiver):
    data, position, swept = receiver(), receiver(), receiver()
    running = daemon(
        rig(
            sensor_table("roof", data.port, position.port),
            swept_table("left", LEFT, swept.port, cepton="info_packets = true\nserial = 7"),
            swept_table("right", RIGHT, swept.port, setting='return_mode = "dual"'),
            scene=SCENE,
        )
    )
    received = swept.take(4000)
    metrics = metrics_of(running)
    assert {len(payload) for payload, _ in data.take(100)} == {DATA_PACKET_SIZE}
    found = told_apart(received)
    assert set(found) == {LEFT, RIGHT}
    for sensor, source in (("left", LEFT), ("right", RIGHT)):
        points = found[source][0]
        assert {len(payload) for payload in points} == {1464}
        numbers = sequences(points)
        assert numbers[-1] - numbers[0] + 1 - len(numbers) <= unsent(samples_of(metrics), sensor, "points")
        assert numbers == sorted(set(numbers))
        assert value_of(metrics, f'hilsim_sent_packets_total{{flow="points",sensor="{sensor}"}}') >= len(numbers)
        said = np.concatenate([decode_stdv_points(payload) for payload in points])
        assert (said["flags"][said["channel"] == 7] & PointFlag.NO_RETURN != 0).all()
        assert value_of(metrics, f'hilsim_unrepresentable_returns_total{{sensor="{sensor}"}}') >= (said["channel"] == 7).sum() / (
            2 if sensor == "right" else 1
        )
    assert value_of(metrics, 'hilsim_sent_packets_total{flow="info",sensor="left"}') >= len(found[LEFT][1])
    assert 'flow="info",sensor="right"' not in metrics
    assert found[RIGHT][1] == []
    assert value_of(metrics, 'hilsim_unrepresentable_returns_total{sensor="roof"}') == 0


def test_sensor_information_comes_first_and_then_twice_a_second_of_the_stream(daemon, rig, receiver):
    swept = receiver()
    running = daemon(rig(swept_table("left", LEFT, swept.port, cepton="info_packets = true\nserial = 7"), scene=SCENE))
    payloads = [payload for payload, _ in swept.take(1400)]
    said = figures(running)
    lost = unsent(said, "left", "points")
    places = [place for place, payload in enumerate(payloads) if payload.startswith(b"INFZ")]
    if not unsent(said, "left", "info"):
        assert places[0] == 0
    for place in places:
        (number,) = sequences([next(payload for payload in payloads[place:] if payload.startswith(b"STDV"))])
        half_seconds = round(number * PACKET_NS / 500e6)
        due = -(-half_seconds * 500_000_000 // PACKET_NS) - 1  # the first packet that is due with it or later
        assert max(due, 0) <= number <= max(due, 0) + lost
    assert 3 <= len(places) <= 4
    said = read_info_packet(payloads[places[-1]])
    assert (said.serial, said.returns) == (7, 1)


def test_sighup_changes_one_swept_sensor_and_the_others_lose_no_packet(daemon, rig, receiver):
    steady, changing, moved, data, position = (receiver() for _ in range(5))
    kept = (sensor_table("roof", data.port, position.port), swept_table("steady", LEFT, steady.port))
    running = daemon(rig(*kept, swept_table("changing", RIGHT, changing.port), scene=SCENE))
    before = steady.take(50)
    changing.take(50)
    rig(
        *kept,
        swept_table("changing", RIGHT, moved.port, setting='return_mode = "dual"', cepton="header_version = 1\ninfo_packets = true"),
        scene=SCENE,
    )
    running.process.send_signal(signal.SIGHUP)
    anew = moved.take(300)
    text = running.text()
    assert "steady: unchanged" in text
    assert "roof: unchanged" in text
    after = [payload for payload, _ in before + steady.take(500)]
    numbers = sequences(after)
    assert numbers[-1] - numbers[0] + 1 - len(numbers) <= unsent(figures(running), "steady", "points")
    points, _ = told_apart(anew)[RIGHT]
    headers = [read_stdv_header(payload) for payload in points]
    assert {(header.version, header.points) for header in headers} == {(1, 128)}
    assert {len(payload) for payload in points} == {1300}


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """Recorded offline: a rig of one sensor with information packets, and its capture."""
    directory = tmp_path_factory.mktemp("offline")
    rig = directory / "rig.toml"
    rig.write_text(SCENE + swept_table("left", LEFT, 8808, cepton="info_packets = true"))
    capture = directory / "left.pcap"
    done = hilsim("record", rig, "-o", capture, "--duration-s", "1.3", "--json")
    assert done.returncode == 0, done.stderr
    return rig, capture


def recorded(capture):
    return [datagram.payload for datagram in CaptureFile(capture)]


def test_sent_packets_equal_the_offline_recording(daemon, rig, receiver, offline):
    swept = receiver()
    daemon(rig(swept_table("left", LEFT, swept.port, cepton="info_packets = true"), scene=SCENE))
    by_number = {read_stdv_header(payload).sequence: payload for payload in recorded(offline[1]) if payload.startswith(b"STDV")}
    live = [payload for payload, _ in swept.take(600) if payload.startswith(b"STDV")]
    compared = [payload for payload in live if read_stdv_header(payload).sequence in by_number]
    assert len(compared) > 400
    assert all(payload == by_number[read_stdv_header(payload).sequence] for payload in compared)


@pytest.mark.extended
@pytest.mark.parametrize(("threads", "batch_ms"), [(1, 7), (3, 100)])
def test_batches_and_threads_do_not_change_a_byte(offline, tmp_path, threads, batch_ms):
    again = tmp_path / "again.pcap"
    done = hilsim("record", offline[0], "-o", again, "--duration-s", "1.3", "--threads", threads, "--batch-ms", batch_ms)
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == offline[1].read_bytes()


def test_the_ground_truth_of_a_recording_has_a_row_for_each_point_that_is_a_return(offline, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    truth, again = tmp_path / "left.parquet", tmp_path / "left.pcap"
    done = hilsim("record", offline[0], "-o", again, "--duration-s", "1.3", "--truth", truth)
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == offline[1].read_bytes()
    table = parquet.read_table(truth)
    points = np.stack([decode_stdv_points(payload) for payload in recorded(again) if payload.startswith(b"STDV")])
    packet, record = np.nonzero(points["flags"] & PointFlag.NO_RETURN == 0)
    np.testing.assert_array_equal(table["packet"].to_numpy(), packet)
    np.testing.assert_array_equal(table["record"].to_numpy(), record)
    np.testing.assert_array_equal(table["reflectivity"].to_numpy(), points["reflectivity"][packet, record])


def test_inspect_names_points_information_and_clock(offline):
    done = hilsim("inspect", offline[1], "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    flows = {flow["kind"]: flow for flow in found["sensors"][0]["flows"]}
    assert set(flows) == {"Cepton STDV points", "Cepton INFZ"}
    assert flows["Cepton INFZ"]["packets"] == 3
    details = flows["Cepton STDV points"]["details"]
    assert (details["fewest_points"], details["most_points"], details["frames"], details["sequence_breaks"]) == (144, 144, 27, 0)
    assert details["missing"]["packets"] == 0


def test_verify_checks_what_was_recorded_by_the_rules_for_cepton_streams(offline):
    done = hilsim("verify", offline[1])
    assert done.returncode == 0, done.stdout
    assert "  packets   1128 points (STDV), 3 information (INFZ), 0 other, 0 lost" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("passed: 0 errors, 0 warnings, ")


@pytest.mark.parametrize("what", [0, 1], ids=["rig", "capture"])
def test_a_picture_can_be_drawn_of_a_rig_and_of_a_capture(offline, tmp_path, what):
    image = tmp_path / "scan.png"
    done = hilsim("picture", offline[what], "-o", image)
    assert done.returncode == 0, done.stderr
    assert image.read_bytes().startswith(b"\x89PNG")
    # A pass of 50 ms is 6250 firings of 8 us, 781 of them of the laser whose returns cannot be represented.
    assert done.stdout.endswith("scan.png: 6,250 points, 5,469 returns\n")


def test_a_picture_can_be_drawn_of_a_live_stream(daemon, rig, receiver, tmp_path):
    taken = receiver()
    port = taken.port
    taken.sock.close()
    daemon(rig(swept_table("left", LEFT, port, setting='return_mode = "dual"', cepton="info_packets = true"), scene=SCENE))
    done = hilsim("picture", "--listen", f"127.0.0.1:{port}", "-o", tmp_path / "scan.png", "--timeout-s", "20")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scan.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.extended
def test_our_own_recording_replays_re_timed_and_looped_as_one_stream(offline):
    heard = Arrivals(1)
    summary = replay(offline[1], "--loop", "seamless", "--loops", "3", *rerouted((8808,), heard.ports))
    datagrams = heard.close()
    assert summary["replays"][0]["passes"] == 3
    points = [datagram for datagram in datagrams if datagram.payload.startswith(b"STDV")]
    numbers = sequences([datagram.payload for datagram in points])
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) > 2500
    stamps = np.array([read_stdv_header(datagram.payload).stamp_us for datagram in points])
    assert set(np.diff(stamps)[1:].tolist()) <= {1151, 1152, 1153}
    for datagram in points:
        stamp_us = int(point_times_us(decode_stdv_points(datagram.payload), read_stdv_header(datagram.payload).stamp_us)[-1])
        assert 0 < datagram.host_stamp_ns // 1000 - stamp_us < 500_000
    parity = np.concatenate([decode_stdv_points(datagram.payload)["flags"] & FRAME_PARITY for datagram in points])
    lengths = np.diff(np.flatnonzero(np.diff(parity)))
    assert abs(lengths - 6250).max() <= 144
    informed = [datagram.payload for datagram in datagrams if datagram.payload.startswith(b"INFZ")]
    assert len(informed) >= 6
    assert {read_info_packet(payload).sync_offset_us for payload in informed} == {0}  # stamps are UTC
    assert read_info_packet(recorded(offline[1])[0]).sync_offset_us != 0


def test_faults_of_a_cepton_style_sensor_are_named_without_a_traceback(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(SCENE + swept_table("left", LEFT, 8808, setting="rotation_rate_rpm = 600\nphase_deg = -1.0"))
    done = commands.run("run", path)
    assert done.returncode == 1
    assert "sensor[0].rotation_rate_rpm must not be given" in done.stderr
    assert "sensor[0].phase_deg must be 0 to less than 360, got -1.0" in done.stderr
    assert "Traceback" not in done.stderr


def test_frames_have_the_headers_of_a_cepton_sensor(offline):
    raw = offline[1].read_bytes()
    frame = raw[24 + 16 :][: HEADER_SIZE + 88]
    assert frame[HEADER_SIZE:].startswith(b"INFZ")
    assert frame[6:9].hex(":") == "18:12:12"
    source_port, destination_port = struct.unpack_from(">HH", frame, 34)
    assert (source_port, destination_port) == (8808, 8808)
