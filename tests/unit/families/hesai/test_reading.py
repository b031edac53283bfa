"""Captures of a Hesai inspected, and replayed with new dates and numbers."""

import numpy as np
import pytest

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.families.hesai.protocol.points import read_packet, utc_ns
from hilsim.families.hesai.recognition import HesaiKind
from hilsim.parts.replays.flows import LoopbackSources
from hilsim.parts.replays.offline import OfflineReplay
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.read.analysis.inspection.inspector import inspect
from hilsim.read.analysis.picture.gathering import Gathered
from tests.compiled import compiled_only

pytestmark = compiled_only
UTC_NS = 1_798_761_599_900_000_000
"""A tenth of a second before the year 2027."""
RIG = {
    "name": "rig",
    "scene": {"box": [{"position_m": [0.0, 0.0, 0.0], "size_m": [14.0, 10.0, 6.0]}]},
    "sensor": [{"name": "top", "profile": "xt16", "sub_rays": 1}],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("hesai") / "x.pcap"
    hilsim.record(hilsim.load_rig(RIG), found, duration_s=0.6)
    return found


def replayed(path, **settings):
    """Payloads of a whole replay."""
    replay = OfflineReplay(ReplaySpec(name="front", file=str(path), **settings), path, LoopbackSources(), utc_epoch_ns=UTC_NS)
    return [
        frame[HEADER_SIZE:size].tobytes() for batch in replay.span(1 << 61) for size, frame in zip(batch.size.tolist(), batch.payload, strict=True)
    ]


def times_of(payloads):
    return utc_ns(np.array([read_packet(payload)["tail"] for payload in payloads]))


def test_a_replay_has_new_dates_and_no_other_byte(path):
    recorded, sent = [each.payload for each in CaptureFile(path)], replayed(path, retime="utc")
    tail = len(recorded[0]) - 28
    assert [payload[: tail + 13] + payload[tail + 23 :] for payload in sent] == [payload[: tail + 13] + payload[tail + 23 :] for payload in recorded]
    steps = np.diff(times_of(sent)) - np.diff(times_of(recorded))
    assert np.abs(steps).max() <= 1000
    first, last = (read_packet(payload)["tail"]["utc"].tolist() for payload in (sent[0], sent[-1]))
    assert (first, last[:5]) == ([126, 12, 31, 23, 59, 59], [127, 1, 1, 0, 0])


def test_a_replay_by_the_device_clock_begins_at_the_sensors_date(path):
    sent = [read_packet(payload)["tail"]["utc"].tolist() for payload in replayed(path, retime="device")]
    assert sent[0][:3] == [119, 7, 25]


def test_a_replay_in_a_loop_is_numbered_on(path):
    numbers = [int(read_packet(payload)["tail"]["sequence"]) for payload in replayed(path, loop="plain", loops=2, retime="utc")]
    assert len(numbers) > 2900
    assert set(np.diff(numbers).tolist()) == {1}


def test_a_loop_is_cut_where_the_head_comes_round(path):
    sent = [read_packet(payload) for payload in replayed(path, loop="seamless", loops=2, retime="utc")]
    azimuth = np.concatenate([packet["blocks"]["azimuth"] for packet in sent]).astype(int)
    assert set((np.diff(azimuth) % 36_000).tolist()) == {18}


def test_a_recording_of_a_real_unit_is_replayed(capture):
    sent = times_of(replayed(capture("hesai/hesai_xt16_dual_600rpm.pcap"), retime="utc"))
    assert sent.size == 1626
    assert set((np.diff(sent) // 1000).tolist()) <= {198, 199, 200, 201, 202}
    assert 0 <= sent[0] - UTC_NS < 1_000_000_000


def flow_of(path):
    ((flow,),) = (sensor.flows for sensor in inspect(CaptureFile(path)).sensors)
    assert flow.kind is HesaiKind.POINTS
    return flow


def test_a_flow_is_told_with_its_model_rotation_and_clock(path):
    flow = flow_of(path)
    found = flow.details
    assert (flow.packets, found.title, found.speed_rpm[1], found.steps_cdeg) == (1499, "XT16, strongest", 600, (18,))
    assert (found.missing.packets, found.clock.jumps) == (0, 0)
    assert "steps of 0.18 degrees" in "\n".join(line.text for line in found.lines(flow))


def test_a_recording_of_a_pandar40p_is_replayed_and_inspected(capture):
    path = capture("hesai/hesai_pandar40p_dual_600rpm.pcap")
    sent = [read_packet(payload) for payload in replayed(path, retime="utc")]
    assert (len(sent), sent[0]["tail"]["utc"].tolist()[:3]) == (1439, [26, 12, 31])
    found = flow_of(path).details
    assert (found.title, found.speed_rpm, found.steps_cdeg) == ("Pandar40P, last and strongest", (598, 602), (18, 19, 20, 21, 22))
    assert (found.missing.packets, found.clock.jumps) == (0, 0)
    points = hilsim.decode(path)
    assert points["range"].min() == pytest.approx(0.3)
    assert {2, 39} <= set(points["ring"].tolist()) <= set(range(40))


@pytest.mark.parametrize(("model", "packets", "last_speed"), [("xt32", 2000, 600), ("xt16", 1626, 600)])
def test_recordings_of_real_units_are_inspected(model, packets, last_speed, capture):
    flow = flow_of(capture(f"hesai/hesai_{model}_dual_600rpm.pcap"))
    found = flow.details
    assert (flow.packets, found.title, found.speed_rpm, found.steps_cdeg) == (
        packets,
        f"{model.upper()}, last and strongest",
        (599, last_speed),
        (18,),
    )
    assert (found.missing.packets, found.clock.jumps) == (0, 0)


@pytest.mark.parametrize(("name", "packets"), [("xt16", 500), ("pandar40p", 360)])
def test_a_picture_is_a_turn(name, packets, capture, tmp_path):
    gathered = Gathered("")
    for datagram in CaptureFile(capture(f"hesai/hesai_{name}_dual_600rpm.pcap")):
        gathered.take(datagram)
        if gathered.is_enough():
            break
    scan = gathered.scan("x")
    assert abs(int(str(scan).split()[3]) - packets) <= 1
    scan.draw(tmp_path / "x.png", title="recording")
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_what_is_missing_is_told(path, tmp_path):
    data = path.read_bytes()
    gone = [each.payload for each in CaptureFile(path)][300]
    record = len(gone) + 42 + 16  # its headers, and those of the record
    at = data.index(gone) - 42 - 16
    (tmp_path / "y.pcap").write_bytes(data[:at] + data[at + record :])
    assert flow_of(tmp_path / "y.pcap").details.missing.packets == 1
