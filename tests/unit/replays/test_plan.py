"""What is found out about a capture before it is played."""

import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.errors import CaptureError
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.parts.replays.flows import FlowRule
from hilsim.parts.replays.recorded.plan import LARGEST_BYTES, look_over, parts_notes, plan_cut
from hilsim.parts.replays.recorded.seam import CLOSE_CDEG
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.recognise import OtherKind
from tests.unit.replays.streams import BASE_NS, CAMERA, CYCLE_NS, OTHER_SENSOR, POSITION, SENSOR, Recording, position_packet

MS = 1_000_000


def spec_of(**settings):
    return ReplaySpec(**{"name": "recorded", "file": "recorded.pcap"} | settings)


@pytest.fixture
def two_sensors(tmp_path):
    """Two seconds of a sensor, one of another, and a camera."""
    recording = Recording().add_turning(1507).add_turning(754, flow=OTHER_SENSOR, begin_ns=500 * MS)
    for number in range(20):
        recording.add(number * 100 * MS + 50 * MS, CAMERA, b"frame")
        recording.add(number * 100 * MS + 51 * MS, POSITION, position_packet(number))
    return recording.write(tmp_path / "two.pcap")


def test_the_flows_that_are_replayed_are_known_with_kinds_rates_and_first_packets(two_sensors):
    overview = look_over(two_sensors, spec_of(flow=(FlowRule(match="192.168.1.201"), FlowRule(match=":5000"))))
    assert {flow: dict(kinds) for flow, kinds in overview.kinds.items()} == {
        SENSOR: {VelodyneKind.DATA: 1507},
        POSITION: {VelodyneKind.POSITION: 20},
        CAMERA: {OtherKind.OTHER: 20},
    }
    assert overview.first_ns == BASE_NS + CYCLE_NS + 100_000
    assert overview.rate_hz[SENSOR] == pytest.approx(1e9 / CYCLE_NS)
    assert overview.rate_hz[CAMERA] == pytest.approx(10.0)
    assert overview.firsts[CAMERA].payload == b"frame"
    assert overview.sources == ("192.168.1.201", "192.168.1.50")
    assert overview.duration_s == pytest.approx(1506 * CYCLE_NS / 1e9, abs=1e-6)


def test_the_sensor_that_decides_the_cut_is_the_busiest_or_the_requested_one(two_sensors):
    overview = look_over(two_sensors, spec_of())
    assert overview.find_master("") == ("192.168.1.201", VelodyneKind.DATA)
    assert overview.find_master("192.168.1.202") == ("192.168.1.202", VelodyneKind.DATA)
    assert overview.find_master("192.168.1.50") == ("", None)
    assert look_over(two_sensors, spec_of(flow=(FlowRule(match=":5000"),))).find_master("") == ("", None)


@pytest.mark.parametrize(("size", "capacity"), [(1, 2048), (2048, 2048), (2049, LARGEST_BYTES)])
def test_room_is_made_for_what_the_capture_holds(tmp_path, size, capacity):
    path = Recording().add(0, CAMERA, b"x").add(1, CAMERA, bytes(size)).write(tmp_path / "sizes.pcap")
    assert look_over(path, spec_of()).capacity == capacity


def test_a_filter_that_matches_nothing_names_itself_and_what_the_capture_holds(two_sensors):
    rules = (FlowRule(match="10.0.0.1"), FlowRule(match=">:9999"))
    with pytest.raises(
        CaptureError,
        match=r'two\.pcap: a flow must match "10\.0\.0\.1", ">:9999", got none; '
        r"the capture holds 192\.168\.1\.201:2368>192\.168\.1\.77:2368 \(1507\), 192\.168\.1\.202:2368>192\.168\.1\.77:2369 \(754\), ",
    ):
        look_over(two_sensors, spec_of(flow=rules))


def test_a_flow_that_begins_late_is_found_however_far_it_is(tmp_path):
    recording = Recording()
    for number in range(6000):
        recording.add(number * MS, CAMERA, b"x")
    recording.add(6_000 * MS, SENSOR, b"y")
    overview = look_over(recording.write(tmp_path / "late.pcap"), spec_of(flow=(FlowRule(match="192.168.1.201"),)))
    assert list(overview.kinds) == [SENSOR]


def test_parts_of_one_capture_that_begin_together_are_noted(tmp_path):
    def overview(begin_ns, flow=SENSOR):
        return look_over(Recording().add_turning(200, flow=flow, begin_ns=begin_ns).write(tmp_path / "part.pcap"), spec_of())

    first, second, later, other = overview(0), overview(200 * CYCLE_NS), overview(5_000 * MS), overview(200 * CYCLE_NS, OTHER_SENSOR)
    a, b = spec_of(name="a"), spec_of(name="b")
    assert [(name, note.split(",")[0]) for name, note in parts_notes([(a, first), (b, second)])] == [("b", "it goes on where a ends")]
    assert [name for name, _ in parts_notes([(a, second), (b, first)])] == ["a"]
    for neither in (first, later, other):
        assert parts_notes([(a, first), (b, neither)]) == ()
    assert parts_notes([(spec_of(name="a", align="capture"), first), (spec_of(name="b", align="capture"), second)]) == ()


def test_a_capture_without_datagrams_is_refused(tmp_path):
    with pytest.raises(CaptureError, match=r"none\.pcap: must hold UDP datagrams, got none"):
        look_over(Recording().write(tmp_path / "none.pcap"), spec_of())


def azimuth_of(path, frame):

    return next(int.from_bytes(datagram.payload[2:4], "little") for datagram in CaptureFile(path) if datagram.frame == frame)


@pytest.mark.parametrize(("source", "farthest_cdeg"), [("192.168.1.201", CLOSE_CDEG), ("192.168.1.202", 60)])
def test_a_cut_joins_two_packets_of_the_chosen_sensor_that_point_the_same_way(two_sensors, source, farthest_cdeg):
    cut = plan_cut(two_sensors, spec_of(), look_over(two_sensors, spec_of()).first_ns, source, VelodyneKind.DATA)
    apart = azimuth_of(two_sensors, cut.stop_frame) - azimuth_of(two_sensors, cut.start_frame)
    assert abs((apart + 18_000) % 36_000 - 18_000) == cut.mismatch <= farthest_cdeg


def test_a_cut_stays_within_the_part_that_is_replayed(two_sensors):
    settings = {"start_s": 0.6, "duration_s": 0.7}
    first_ns = look_over(two_sensors, spec_of()).first_ns
    cut = plan_cut(two_sensors, spec_of(**settings), first_ns, "192.168.1.201", VelodyneKind.DATA)

    stamps = {datagram.frame: (datagram.host_stamp_ns - first_ns) / 1e9 for datagram in CaptureFile(two_sensors)}
    assert 0.6 <= stamps[cut.start_frame] < stamps[cut.stop_frame] < 1.3


def test_a_part_shorter_than_a_turn_has_no_cut(two_sensors):
    first_ns = look_over(two_sensors, spec_of()).first_ns
    assert plan_cut(two_sensors, spec_of(start_s=0.2, duration_s=0.08), first_ns, "192.168.1.201", VelodyneKind.DATA) is None


@pytest.mark.parametrize("name", ["vlp16_strongest_1200rpm.pcap", "hdl32e_strongest.pcap"])
def test_real_captures_can_be_cut_closely(any_capture, name):
    path = any_capture(name)
    overview = look_over(path, spec_of())
    source, kind = overview.find_master("")
    cut = plan_cut(path, spec_of(), overview.first_ns, source, kind)
    assert cut is not None
    assert cut.mismatch <= CLOSE_CDEG
