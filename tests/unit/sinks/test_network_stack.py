"""Frames of a sensor with an ordinary network stack in captures: one identification counts all its datagrams, and large ones are fragments."""

import hashlib
import json
import struct
import subprocess

import numpy as np
import pytest

from hilsim.capture.metadata import given_metadata
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.capture.sinks.network_stack import NetworkStacks
from hilsim.capture.sinks.pcap import PcapSeriesSink, RecordSpec
from hilsim.config.rig import load_rig
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.families.ouster.recognition import OUSTER_IMU_STYLE, OUSTER_LIDAR_STYLE
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE
from hilsim.offline.record import record
from hilsim.protocols.ethernet import build_framing, write_headers
from hilsim.protocols.flow_key import FlowKey
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from tests.interop.ouster_judge import PYTHON, fault
from tests.support import write_rig

SECOND = 1_000_000_000
UTC_NS = 1_800_000_000 * SECOND
FLOWS = {
    0: SinkFlow(number=0, name="roof/lidar", stack="roof"),
    1: SinkFlow(number=1, name="roof/imu", stack="roof"),
    2: SinkFlow(number=2, name="mast/lidar", stack="mast"),
    3: SinkFlow(number=3, name="puck/data"),
}
STYLES = (OUSTER_LIDAR_STYLE, OUSTER_IMU_STYLE, OUSTER_LIDAR_STYLE, VELODYNE_DATA_STYLE)
SENT = [(0, 8448), (3, 1206), (1, 48), (2, 12_608), (0, 24_896), (0, 1480), (1, 48), (0, 1472), (2, 1481), (0, 16_640)]
FRAGMENTS = [6, 1, 1, 9, 17, 2, 1, 1, 2, 12]
IDENTIFICATIONS = [1, 0, 2, 1, 3, 4, 5, 6, 2, 7]

RIG = """
name = "wire"

[scene]
generator = "street"

[[sensor]]
name = "roof"
profile = "os1-32"
unit = "ideal"
sub_rays = 1
network = { source = "192.168.1.201", destination = "192.168.1.77" }
ouster = { lidar_mode = "512x10", udp_profile_lidar = "RNG19_RFL8_SIG16_NIR16_DUAL" }
"""


def batch_of(sent, first=0):
    """Datagrams of (flow, payload size), a millisecond apart."""
    frames, size = np.zeros((len(sent), 42 + max(size for _, size in sent)), np.uint8), np.zeros(len(sent), np.int32)
    for row, (number, payload_size) in enumerate(sent):
        key = FlowKey(f"192.168.1.{number // 2 + 1}", 7502 + number, "192.168.1.77", 7502 + number)
        framing = build_framing(STYLES[number], key, source_mac="bc:0f:a7:10:00:01", destination_mac="02:00:00:00:00:01")
        frames[row, 42 : 42 + payload_size] = np.random.default_rng(first + row).integers(0, 256, payload_size)
        size[row] = write_headers(framing.template, 0, framing.udp_checksum, frames[row], payload_size)
    stamp_ns = UTC_NS + np.arange(first, first + len(sent)) * 1_000_000
    return SentBatch(stamp_ns, stamp_ns, np.array([number for number, _ in sent]), frames, size, FLOWS)


def field(frame, at):
    return int.from_bytes(bytes(frame[at : at + 2]), "big")


def test_identifications_count_all_datagrams_of_a_sensor_and_large_ones_become_fragments_of_1480_bytes():
    batch = batch_of(SENT)
    sent = NetworkStacks().send(batch)
    assert np.diff(sent.first).tolist() == FRAGMENTS
    for row, (number, payload_size) in enumerate(SENT):
        rows = range(sent.first[row], sent.first[row + 1])
        assert {field(sent.frames[each], 18) for each in rows} == {IDENTIFICATIONS[row]}
        assert {int(sent.stamp_ns[each]) for each in rows} == {int(batch.stamp_ns[row])}
        wanted = [(0x2000 if each < len(rows) - 1 else 0) | 185 * each for each in range(len(rows))] if number in {0, 2} else [0x4000]
        assert [field(sent.frames[each], 20) for each in rows] == wanted
        assert [field(sent.frames[each], 16) + 14 for each in rows] == [int(sent.size[each]) for each in rows]
        assert all(sum(struct.unpack(">10H", bytes(sent.frames[each, 14:34]))) % 0xFFFF == 0 for each in rows)
        data = b"".join(bytes(sent.frames[each, 34 : sent.size[each]]) for each in rows)
        assert data == bytes(batch.frames[row, 34 : 42 + payload_size])
    assert bytes(sent.frames[sent.first[1], : 42 + 1206]) == bytes(batch.frames[1, : 42 + 1206])


def test_batches_do_not_change_the_frames():
    whole, stacks = NetworkStacks().send(batch_of(SENT)), NetworkStacks()
    parts = [stacks.send(batch_of(SENT[row : row + 3], row)) for row in range(0, len(SENT), 3)]
    frames = [bytes(part.frames[row, : part.size[row]]) for part in parts for row in range(part.size.size)]
    assert frames == [bytes(whole.frames[row, : whole.size[row]]) for row in range(whole.size.size)]


def test_frames_without_a_network_stack_are_not_copied():
    batch = batch_of([(3, 1206), (3, 20_000)])
    assert NetworkStacks().send(batch).frames is batch.frames


def test_a_rotation_keeps_the_fragments_of_a_datagram_in_one_file_and_counts_on(tmp_path):
    sink = PcapSeriesSink(RecordSpec(file="drive.pcap", rotate_mb=0.02), tmp_path)
    sink.open(())
    sink.write(batch_of(SENT))
    sink.close()
    assert sink.written == len(SENT)
    files = sorted(tmp_path.iterdir())
    found = [datagram for path in files for datagram in CaptureFile(path)]
    assert len(files) > 2
    assert [(field(datagram.link, 18), len(datagram.payload)) for datagram in found] == [
        (identification, size) for identification, (_, size) in zip(IDENTIFICATIONS, SENT, strict=True)
    ]


def recorded(rig, path, threads, batch_ms):
    record(rig, path, duration_ns=SECOND // 4, utc_epoch_ns=UTC_NS, batch_ms=batch_ms, threads=threads, progress=lambda _: None)
    return hashlib.sha256(path.read_bytes()).digest()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ouster")
    rig = load_rig(write_rig(folder, RIG))
    path = folder / "drive.pcap"
    digest = recorded(rig, path, 1, 100)
    lidar = rig.lidars[0]
    metadata = lidar.family.metadata(lidar.stream, destination="192.168.1.77", data_port=None, position_port=None)
    path.with_suffix(".json").write_text(json.dumps(metadata_document(metadata)))
    return rig, path, digest


@pytest.mark.extended
def test_threads_and_batches_do_not_change_a_byte_of_a_recording(recording, tmp_path):
    rig, _, digest = recording
    assert recorded(rig, tmp_path / "again.pcap", 3, 7) == digest


@pytest.mark.extended
def test_a_recording_passes_the_checker_with_one_counter_and_fragments(recording):
    datagrams = list(CaptureFile(recording[1]))
    checker = StreamChecker(given_metadata((recording[1].with_suffix(".json"),)))
    checker.feed(datagrams)
    result = checker.result()
    assert [finding for finding in result.sensors[0].findings if finding.severity is not Severity.NOTE] == []
    assert (len(result.sensors), result.strangers, result.sensors[0].summary.headers) == (1, 0, "sensor")
    identifications = [field(datagram.link, 18) for datagram in datagrams]
    assert identifications == list(range(1, len(identifications) + 1))


def test_ouster_cli_reads_whole_frames_from_a_recording(recording):
    if fault() is not None:
        pytest.skip(f"the vendor's ouster-sdk does not load here: {fault()}")
    command = [PYTHON.parent / "ouster-cli", "source", recording[1], "slice", "0:2", "stats"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    found = {line.strip() for line in run.stdout.split("\n")}
    assert {"Count: 2", "Packet Count: 64"} <= found
    assert "0 missing lidar packets, 0 missing lidar columns" in run.stdout
