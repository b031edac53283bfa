"""Captures of a Livox: inspected, drawn by a time window, and replayed with new stamps and checksums to a stream that the checker takes for a sensor's."""

import re
from dataclasses import replace

import numpy as np
import pytest

import hilsim
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.errors import CaptureError
from hilsim.families.livox.picture import window_scan
from hilsim.families.livox.protocol.points import has_valid_crc, read_header
from hilsim.families.livox.recognition import LivoxKind
from hilsim.parts.replays.flows import LoopbackSources
from hilsim.parts.replays.offline import OfflineReplay
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.read.analysis.conformance.checker import check
from hilsim.read.analysis.inspection.inspector import inspect
from hilsim.read.analysis.picture.gathering import Gathered
from tests.compiled import compiled_only

pytestmark = compiled_only
UTC_NS = 1_800_000_000_000_000_000
RIG = {
    "name": "rig",
    "scene": {"box": [{"position_m": [0.0, 0.0, 0.0], "size_m": [14.0, 10.0, 6.0]}]},
    "sensor": [{"name": "top", "profile": "mid360", "sub_rays": 1, "network": {"source": "127.0.0.11"}}],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("livox") / "x.pcap"
    hilsim.record(hilsim.load_rig(RIG), found, duration_s=0.6)
    return found


@pytest.mark.extended
def test_a_recorded_minute_by_the_profile_s_noise_and_beams_has_no_finding(tmp_path):
    rig = {**RIG, "sensor": [{"name": "top", "profile": "mid360"}]}
    hilsim.record(hilsim.load_rig(rig), tmp_path / "x.pcap", duration_s=60.0)
    [sensor] = check(CaptureFile(tmp_path / "x.pcap")).sensors
    assert sensor.findings == ()
    assert (sensor.summary.point_packets, sensor.summary.imu_packets, sensor.summary.lost_packets) == (124_999, 12_000, 0)


def points_of(path):
    return [each.payload for each in CaptureFile(path) if each.source_port == 56_300]


def test_flows_are_told_with_their_types_numbers_and_clock(path):
    imu, points = (flow for sensor in inspect(CaptureFile(path)).sensors for flow in sensor.flows)
    assert (imu.kind, imu.packets, imu.details.data_types, imu.details.points) == (LivoxKind.IMU, 120, (0,), 120)
    assert imu.details.acceleration_g == pytest.approx(1.0, abs=1e-3)
    assert (points.kind, points.packets, points.details.points, points.details.interval_us) == (LivoxKind.POINTS, 1249, 1249 * 96, 475.0)
    assert (points.details.wrong_crcs, points.details.missing.packets, points.clock.jumps, points.clock.first_us) == (0, 0, 0, 0)
    text = "\n".join(line.text for line in points.details.lines(points))
    assert "119,904 of type 1, 475.0 us from a packet's first to its last" in text


def test_what_is_missing_or_wrong_is_told(path, tmp_path):
    data = bytearray(path.read_bytes())
    first = data.index(points_of(path)[300])
    data[first + 100] ^= 1
    (tmp_path / "y.pcap").write_bytes(data)
    details = next(
        flow.details for sensor in inspect(CaptureFile(tmp_path / "y.pcap")).sensors for flow in sensor.flows if flow.kind is LivoxKind.POINTS
    )
    assert details.wrong_crcs == 1


def test_a_picture_is_a_tenth_of_a_second_from_its_first_packet(path, tmp_path):
    gathered = Gathered("")
    for datagram in CaptureFile(path):
        gathered.take(datagram)
        if gathered.is_enough():
            break
    scan = gathered.scan("x")
    assert str(scan) == f"0.1 s, {209 * 96:,} returns"
    scan.draw(tmp_path / "x.png", title="room")
    assert (tmp_path / "x.png").stat().st_size > 10_000
    assert window_scan(points_of(path), 500_000_000).points.size == 1042 * 96
    with pytest.raises(CaptureError, match=re.escape("a picture needs 0.1 s of points, got 0.048 s")):
        window_scan(points_of(path)[:101])


def replayed(path, **settings):
    """Datagrams of a whole replay, in the order of their deadlines."""
    replay = OfflineReplay(ReplaySpec(name="front", file=str(path), **settings), path, LoopbackSources(), utc_epoch_ns=UTC_NS)
    found = []
    for batch in replay.span(1 << 61):
        for due_ns, size, frame in zip(batch.deadline_ns.tolist(), batch.size.tolist(), batch.payload, strict=True):
            flow = batch.flow
            ends = flow.source, flow.source_port, flow.destination, flow.destination_port
            found.append(CapturedDatagram(UTC_NS + due_ns, *ends, frame[HEADER_SIZE:size].tobytes(), None, is_ethernet=False, frame=0))
    found.sort(key=lambda each: each.host_stamp_ns)
    return [replace(each, frame=number + 1) for number, each in enumerate(found)]


@pytest.mark.parametrize("retime", ["utc", "device"])
def test_a_replay_has_new_stamps_and_their_checksums_and_no_other_byte(path, retime):
    sent = [each.payload for each in replayed(path, retime=retime) if each.source_port == 56_300]
    recorded = points_of(path)
    assert len(sent) == len(recorded)
    assert all(has_valid_crc(payload) for payload in sent)
    assert [payload[:24] + payload[36:] for payload in sent] == [payload[:24] + payload[36:] for payload in recorded]
    stamps = np.array([read_header(payload).stamp_ns for payload in sent])
    assert set(np.diff(stamps).tolist()) == {480_000}
    assert abs(int(stamps[0]) - (UTC_NS if retime == "utc" else 0)) < 1_000_000_000


def test_a_replay_in_a_loop_is_numbered_on_and_breaks_the_pattern_alone(path):
    sent = replayed(path, loop="plain", loops=2, retime="device")
    numbers = np.array([read_header(each.payload).number for each in sent if each.source_port == 56_300])
    assert set(np.diff(numbers).tolist()) == {1}
    rules = {finding.rule for sensor in check(sent).sensors for finding in sensor.findings}
    assert rules <= {"livox.repeats", "livox.step"}
