"""Inspection of Velodyne streams made to be one thing each."""

import numpy as np
import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.velodyne.inspection import VelodyneData, VelodynePosition
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.read.analysis.inspection.inspector import Inspector, inspect
from tests.unit.families.velodyne.conformance.streams import position_packets, vlp16
from tests.unit.inspection.datagrams import START_NS, datagram

FIELDS = ("host_stamp_ns", "source", "source_port", "destination", "destination_port", "payload", "link", "is_ethernet", "frame")


def changed(original, **fields):
    return CapturedDatagram(**{name: getattr(original, name) for name in FIELDS} | fields)


def only_data(datagrams):
    """The data packets, numbered from 1."""
    chosen = [entry for entry in datagrams if len(entry.payload) == 1206]
    return [changed(entry, frame=frame) for frame, entry in enumerate(chosen, start=1)]


def data_flow(datagrams):
    """The one flow of Velodyne data in these datagrams."""
    (flow,) = [flow for sensor in inspect(datagrams).sensors for flow in sensor.flows if flow.kind is VelodyneKind.DATA]
    assert isinstance(flow.details, VelodyneData)
    return flow


@pytest.fixture(scope="module")
def stream():
    """A faultless VLP-16 with 700 data packets and position packets."""
    return vlp16()


@pytest.fixture
def packets(stream):
    """Its data packets."""
    return only_data(stream.datagrams())


def test_a_faultless_stream_has_model_mode_rotation_and_nothing_to_complain_of(stream):
    summary = inspect(stream.datagrams())
    (sensor,) = summary.sensors
    data, position = sensor.flows
    assert (sensor.source, summary.other_flows, summary.unlisted_datagrams) == ("192.168.1.201", (), 0)
    assert (data.details.model, data.details.return_modes, data.details.products) == ("VLP-16", (0x37,), (0x22,))
    assert data.details.rotation_rate_rpm == pytest.approx(600, abs=0.2)
    assert data.details.azimuth_sectors_deg == ((0.0, 360.0),)
    assert data.details.missing.packets == data.details.clock.jumps == data.gaps.count == data.backward_capture_times == 0
    assert data.packets == 700
    assert data.payload_bytes == 700 * 1206
    assert data.rate_hz == pytest.approx(1e6 / 1327.104, rel=1e-3)
    assert data.details.clock.duration_s == pytest.approx(699 * 1327.104e-6, abs=2e-6)
    assert isinstance(position.details, VelodynePosition)
    assert position.details.pps_states == (2,)
    assert position.details.first_sentence_utc == position.details.last_sentence_utc == "2016-01-21T08:18:02Z"


def test_packets_left_out_are_found_missing_and_the_worst_place_named(packets):
    kept = [entry for entry in packets if entry.frame not in {*range(101, 104), *range(301, 313)}]
    missing = data_flow(kept).details.missing
    assert (missing.packets, missing.runs, missing.longest_run, missing.longest_after.frame) == (15, 2, 12, 300)
    assert missing.longest_after.at_s == pytest.approx(299 * 1327.104e-6, abs=1e-4)


def test_a_packet_overtaken_by_others_is_out_of_order_and_not_missing(packets):
    late = packets.pop(200)
    packets.insert(203, changed(late, host_stamp_ns=packets[202].host_stamp_ns + 1000))
    details = data_flow(packets).details
    assert (details.missing.packets, details.clock.out_of_order, details.clock.jumps) == (0, 1, 0)


def test_a_packet_that_comes_twice_is_a_repeated_stamp(packets):
    details = data_flow([*packets[:50], packets[49], *packets[50:]]).details
    assert (details.clock.repeated, details.missing.packets, details.clock.jumps) == (1, 0, 0)


def test_a_pause_of_the_capture_is_a_gap_with_its_place_and_its_packets_are_missing(packets):
    flow = data_flow(packets[:304] + packets[454:])
    assert flow.gaps.count == 1
    assert flow.gaps.longest.after.frame == 304
    assert flow.gaps.longest.duration_s == pytest.approx(151 * 1327.104e-6, abs=1e-4)
    assert flow.details.missing.packets == 150


def test_a_pause_in_which_the_stamps_stood_still_is_a_gap_without_missing_packets(packets):
    pause_ns = 2_000_000_000
    flow = data_flow(packets[:304] + [changed(entry, host_stamp_ns=entry.host_stamp_ns + pause_ns) for entry in packets[304:]])
    assert flow.gaps.count == 1
    assert flow.gaps.longest.duration_s == pytest.approx(2.0 + 1327.104e-6, abs=1e-4)
    assert flow.details.missing.packets == 0


def test_a_clock_that_was_set_is_a_jump_with_its_place_and_no_loss(stream):
    data = stream.data.copy()
    data["stamp"][400:] += 10_000_300
    details = data_flow(only_data(stream.change(data=data).datagrams())).details
    assert (details.clock.jumps, details.clock.first_jump.frame, details.missing.packets) == (1, 401, 0)
    assert details.clock.duration_s == pytest.approx(698 * 1327.104e-6, abs=2e-6)


def test_stamps_that_stand_still_are_repeated_ones(stream):
    data = stream.data.copy()
    data["stamp"] = 7
    details = data_flow(only_data(stream.change(data=data).datagrams())).details
    assert details.clock.repeated == 699
    assert np.isnan(details.rotation_rate_rpm)


def test_the_top_of_the_hour_is_no_jump():
    details = data_flow(only_data(vlp16(start_us=3_600_000_000 - 400_000).datagrams())).details
    assert (details.clock.jumps, details.missing.packets) == (0, 0)
    assert details.clock.duration_s == pytest.approx(699 * 1327.104e-6, abs=2e-6)
    assert details.clock.last_us < details.clock.first_us


@pytest.mark.parametrize("ppm", [-120.0, 0.0, 50.0])
def test_the_hosts_clock_is_compared_with_the_sensors(packets, ppm):
    first_ns = packets[0].host_stamp_ns
    drifted = [changed(entry, host_stamp_ns=first_ns + round((entry.host_stamp_ns - first_ns) * (1 + ppm * 1e-6))) for entry in packets]
    clock = data_flow(drifted).details.clock
    assert 0.1 < clock.host_drift_error_ppm < 5.0
    assert clock.host_drift_ppm == pytest.approx(ppm, abs=4 * clock.host_drift_error_ppm)


def test_capture_times_of_whole_milliseconds_are_reported(packets):
    ticking = [changed(entry, host_stamp_ns=entry.host_stamp_ns // 1_000_000 * 1_000_000) for entry in packets]
    flow = data_flow(ticking)
    assert flow.capture_step_ns == 1_000_000
    assert flow.spacing.whole_millisecond_ratio == 1.0
    assert {flow.spacing.p1_us, flow.spacing.p99_us} == {1000.0, 2000.0}
    assert data_flow(packets).spacing.whole_millisecond_ratio < 0.05


def test_capture_times_that_go_backwards_are_counted(packets):
    packets[100] = changed(packets[100], host_stamp_ns=packets[100].host_stamp_ns - 5_000_000)
    assert data_flow(packets).backward_capture_times == 1


def test_a_change_of_return_mode_is_followed_without_loss():
    single, dual = vlp16(300), vlp16(300, dual=True, start_us=1_082_000_000 + round(300 * 1327.104))
    second = [changed(entry, host_stamp_ns=entry.host_stamp_ns + (300 * 1_327_104)) for entry in only_data(dual.datagrams())]
    details = data_flow([*only_data(single.datagrams()), *second]).details
    assert set(details.return_modes) == {0x37, 0x39}
    assert details.missing.packets == 0
    assert details.rotation_rate_rpm == pytest.approx(600, abs=0.5)


def test_a_model_without_a_description_is_named_and_judged_by_its_own_cycle(stream):
    data = stream.data.copy()
    data["product"] = 0xA1
    details = data_flow(only_data(stream.change(data=data).datagrams())).details
    assert (details.model, details.missing.packets, details.clock.jumps) == ("VLS-128", 0, 0)
    data["product"] = 0x77
    assert data_flow(only_data(stream.change(data=data).datagrams())).details.model is None


def test_sensors_are_distinguished_by_their_addresses(packets):
    second = [changed(entry, source="192.168.1.202", host_stamp_ns=entry.host_stamp_ns + 400_000) for entry in packets[:600]]
    both = sorted(packets + second, key=lambda entry: entry.host_stamp_ns)
    first, other = inspect(both).sensors
    assert [(sensor.source, sensor.flows[0].packets) for sensor in (first, other)] == [("192.168.1.201", 700), ("192.168.1.202", 600)]
    assert first.flows[0].details.missing.packets == other.flows[0].details.missing.packets == 0


def test_two_sensors_behind_one_address_show_as_stamps_that_jump_all_the_time(packets):
    other = only_data(vlp16(start_us=2_000_000_000).datagrams())
    both = sorted([*packets, *(changed(entry, host_stamp_ns=entry.host_stamp_ns + 400_000) for entry in other)], key=lambda e: e.host_stamp_ns)
    assert data_flow(both).details.clock.jumps > 1000


def test_an_intermediate_summary_changes_no_result(packets):
    kept = [entry for entry in packets if not 200 <= entry.frame < 205]
    inspector = Inspector()
    for entry in kept:
        inspector.add(entry)
        if entry.frame % 90 == 0:
            inspector.summary()
    (flow,), whole = inspector.summary().sensors[0].flows, data_flow(kept)
    assert flow.details.missing == whole.details.missing
    assert flow.details.clock.host_drift_ppm == pytest.approx(whole.details.clock.host_drift_ppm)
    assert flow.spacing.p99_us == pytest.approx(whole.spacing.p99_us)
    assert flow.gaps == whole.gaps


def test_one_sentence_over_many_packets_is_one_sentence():
    packets = position_packets(1_082_000_000 + np.arange(1300) * 7000)
    entries = [datagram(packet.tobytes(), port=8308, at_ns=START_NS + k * 7_000_000, frame=k + 1) for k, packet in enumerate(packets)]
    (sensor,) = inspect(entries).sensors
    assert sensor.flows[0].details.sentences == 1
    assert sensor.flows[0].details.rate_hz == pytest.approx(1e6 / 7000)
