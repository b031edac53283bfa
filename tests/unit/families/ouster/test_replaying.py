"""Replays of Ouster captures: new times, frames that continue over loops, and streams that the checker takes for a sensor's."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.cli.convert.command import convert
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.ouster.stream import cut_head, read_heads
from hilsim.parts.replays.flows import LoopbackSources
from hilsim.parts.replays.offline import OfflineReplay
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from tests.ouster_sensors import sensor
from tests.ouster_streams import stream, write_capture

UTC_NS = 1_800_000_000_000_000_000
SINGLE = sensor(channels=16, mode="512x10")
FUSA = sensor("FUSA_RNG15_RFL8_NIR8_DUAL", 16, mode="512x10")
LEGACY = sensor("LEGACY", 16, version="2.3.0", mode="512x10")
OWN_COUNTERS = "ouster.identification"
"""Rule that frames of a replay break: each flow has an IPv4 counter of its own there, and a sensor has one for both streams."""
SEAM = "ouster.place"
"""Rule that a plain loop breaks at its visible seam."""


def replayed(path, **settings):
    """Datagrams of a whole replay, in the order of their deadlines."""
    replay = OfflineReplay(ReplaySpec(name="front", file=str(path), **settings), path, LoopbackSources(), utc_epoch_ns=UTC_NS)
    found = []
    for batch in replay.span(1 << 61):
        for due_ns, size, frame in zip(batch.deadline_ns.tolist(), batch.size.tolist(), batch.payload, strict=True):
            flow = batch.flow
            payload, link = frame[HEADER_SIZE:size].tobytes(), frame[:HEADER_SIZE].tobytes()
            ends = flow.source, flow.source_port, flow.destination, flow.destination_port
            found.append(CapturedDatagram(UTC_NS + due_ns, *ends, payload, link, is_ethernet=True, frame=0))
    found.sort(key=lambda each: each.host_stamp_ns)
    return [replace(each, frame=number + 1) for number, each in enumerate(found)]


def verdict(datagrams, *metadata, but=()):
    """Rules of the errors."""
    checker = StreamChecker({"ouster": OusterMetadata(metadata)})
    checker.feed(datagrams)
    result = checker.result()
    return {each.rule for found in result.sensors for each in found.findings if each.severity is Severity.ERROR} - set(but)


def heads_of(datagrams, metadata):
    cut = [cut_head(each.payload) for each in datagrams if recognise(each.payload) is OusterKind.LIDAR]
    return read_heads(cut, metadata.profile.header)


@pytest.mark.extended
@pytest.mark.parametrize("metadata", [SINGLE, FUSA, LEGACY], ids=["single", "FUSA", "LEGACY"])
@pytest.mark.parametrize("retime", ["utc", "device"])
def test_a_seamless_loop_is_one_stream_of_one_sensor(tmp_path, metadata, retime):
    path = write_capture(tmp_path / "x.pcap", stream(metadata, 4, first_frame=65_534)[7:], metadata)
    sent = replayed(path, loop="seamless", loops=3, retime=retime)
    heads = heads_of(sent, metadata)
    stamps = heads.columns["timestamp_ns"].astype(np.int64).ravel()
    assert (np.diff(stamps) > 0).all()
    assert abs(int(stamps[0]) - (UTC_NS if retime == "utc" else 0)) < 50_000_000
    frames = heads.headers["frame_id"].astype(np.int64)
    steps = np.unique(np.diff(frames) % (1 << 16))
    assert set(steps.tolist()) == {0, 1}
    if metadata is not LEGACY:
        assert set(heads.headers["serial"].tolist()) == {int(metadata.serial)}
        assert set(heads.headers["init_id"].tolist()) == {metadata.initialization_id}
    assert verdict(sent, metadata, but={OWN_COUNTERS}) == set()


def test_a_plain_loop_begins_the_next_frame_at_its_seam(tmp_path):
    path = write_capture(tmp_path / "x.pcap", stream(SINGLE, 2), SINGLE)
    sent = replayed(path, loop="plain", loops=3)
    frames = heads_of(sent, SINGLE).headers["frame_id"]
    assert np.unique(frames).tolist() == list(range(4711, 4711 + 6))
    assert np.bincount(frames - 4711).tolist() == [32] * 6


def test_bytes_are_as_recorded_without_new_times(tmp_path):
    datagrams = stream(SINGLE, 2)
    path = write_capture(tmp_path / "x.pcap", datagrams, SINGLE)
    sent = replayed(path, retime="none")
    assert sorted(each.payload for each in sent) == sorted(each.payload for each in datagrams)


def test_only_times_frame_ids_and_the_crc_differ_from_the_recording(tmp_path):
    datagrams = stream(SINGLE, 2)
    sent = replayed(write_capture(tmp_path / "x.pcap", datagrams, SINGLE))
    recorded = {each.payload[:4] + each.payload[40:42]: each.payload for each in datagrams if each.destination_port == 7502}
    lidar = [each.payload for each in sent if recognise(each.payload) is OusterKind.LIDAR]
    assert len(lidar) == len(recorded)
    may_differ = np.zeros(3328, bool)
    for column in range(16):
        may_differ[32 + 204 * column : 40 + 204 * column] = True
    may_differ[-8:] = True
    for payload in lidar:
        before = np.frombuffer(recorded[payload[:4] + payload[40:42]], np.uint8)
        assert not (before != np.frombuffer(payload, np.uint8))[~may_differ].any()


def test_packets_are_sent_evenly_by_the_sensors_stamps_though_the_host_recorded_them_in_bursts(tmp_path):
    datagrams = stream(SINGLE, 8)
    begin_ns = datagrams[0].host_stamp_ns
    late = [replace(each, host_stamp_ns=begin_ns + -(-(each.host_stamp_ns - begin_ns) // 20_000_000) * 20_000_000) for each in datagrams]
    sent = [each for each in replayed(write_capture(tmp_path / "x.pcap", late, SINGLE)) if each.destination_port == 7502]
    gaps_us = np.diff([each.host_stamp_ns for each in sent]) / 1000.0
    assert abs(float(np.median(gaps_us)) - 3125.0) < 5.0
    assert float(gaps_us.min()) > 3000.0


def test_imu_packets_keep_their_places_between_lidar_packets_that_leave_late(tmp_path):
    datagrams = [replace(each, host_stamp_ns=each.host_stamp_ns + 15_000_000 * (each.destination_port == 7502)) for each in stream(SINGLE, 6)]
    datagrams.sort(key=lambda each: each.host_stamp_ns)
    begin_ns = datagrams[0].host_stamp_ns
    sent = replayed(write_capture(tmp_path / "x.pcap", datagrams, SINGLE))
    recorded_ns = np.array([each.host_stamp_ns - begin_ns for each in datagrams])
    sent_ns = np.array([each.host_stamp_ns - sent[0].host_stamp_ns for each in sent])
    assert [each.destination_port for each in sent][5:] == [each.destination_port for each in datagrams][5:]
    assert np.abs(sent_ns - recorded_ns).max() < 500_000


@pytest.mark.parametrize("name", ["OS-2-128-U1_v2.3.0_1024x10", "OS-0-32-U1_v2.2.0_1024x10", "same_ports_nonlegacy"])
def test_captures_of_real_units_are_replayed_to_streams_without_an_error(capture, name):
    path = capture(f"ouster/{name}.pcap")
    metadata = OusterMetadata(capture=path).sensors
    passes = 1 if name.startswith("same") else 2  # that one is too short for a loop
    sent = replayed(path, loop="plain" if passes == 2 else "none", loops=passes)
    assert len(sent) == passes * len(list(CaptureFile(path)))
    assert verdict(sent, *metadata, but={SEAM}) == set()


@pytest.mark.parametrize("name", ["OS-2-128-U1_v2.3.0_1024x10", "same_ports_nonlegacy"])
def test_converted_captures_hold_the_same_payloads(capture, name, tmp_path):
    path, copy = capture(f"ouster/{name}.pcap"), tmp_path / "copy.pcap"
    shown = CliRunner().invoke(convert, [str(path), str(copy)])
    assert shown.exit_code == 0, shown.output
    assert [(each.host_stamp_ns, each.flow, each.payload) for each in CaptureFile(copy)] == [
        (each.host_stamp_ns, each.flow, each.payload) for each in CaptureFile(path)
    ]
