"""What an inspection finds in streams made to be one thing each."""

import struct
import tracemalloc
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.cepton.inspection import StdvPoints
from hilsim.families.velodyne.inspection import VelodyneData, VelodynePosition
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.protocols.recognise import OtherKind
from hilsim.read.analysis.inspection.inspector import Inspector, inspect
from hilsim.read.analysis.inspection.statistics import ClockLine, Spread
from tests.unit.conformance.streams import position_packets, vlp16

FIELDS = ("host_stamp_ns", "source", "source_port", "destination", "destination_port", "payload", "link", "is_ethernet", "frame")
START_NS = 1_700_000_000_000_000_000


def datagram(payload, *, at_ns=START_NS, source="192.168.1.201", port=2368, frame=1):
    return CapturedDatagram(
        host_stamp_ns=at_ns,
        source=source,
        source_port=port,
        destination="255.255.255.255",
        destination_port=port,
        payload=payload,
        link=None,
        is_ethernet=False,
        frame=frame,
    )


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


def test_unrecognised_packets_are_reported_by_size_and_first_bytes():
    lines = [datagram(b"\x01\x02hello" + bytes(number), port=5353, at_ns=START_NS + number * 10**9, frame=number + 1) for number in range(4)]
    summary = inspect(lines)
    (flow,) = summary.other_flows
    assert summary.sensors == ()
    assert (flow.kind, flow.smallest_bytes, flow.largest_bytes, flow.details) == (OtherKind.OTHER, 7, 10, None)
    assert flow.first_bytes == "01 02 68 65 6c 6c 6f"


def test_other_traffic_of_a_sensor_is_listed_with_the_sensor(packets):
    (sensor,) = inspect([*packets, datagram(b"status", port=9000)]).sensors
    assert [flow.kind for flow in sensor.flows] == [VelodyneKind.DATA, OtherKind.OTHER]


def test_beyond_many_flows_datagrams_are_only_counted_and_sensors_still_found(packets):
    strangers = [datagram(b"?", source=f"10.0.{number // 250}.{number % 250}", frame=number + 1) for number in range(1000)]
    summary = inspect([*strangers, *packets])
    assert len(summary.other_flows) + summary.unlisted_datagrams == 1000
    assert len(summary.other_flows) == 128
    assert summary.sensors[0].flows[0].packets == 700


def test_a_slow_flow_has_a_gap_only_beyond_ten_of_its_own_intervals():
    seconds = [0, 1, 2, 3, 4, 5, 13, 14, 15, 35, 36]
    beats = [datagram(b"INFO" + bytes(8), at_ns=START_NS + second * 10**9, frame=number) for number, second in enumerate(seconds, start=1)]
    (sensor,) = inspect(beats).sensors
    assert (sensor.flows[0].gaps.count, sensor.flows[0].gaps.longest.after.frame) == (1, 9)
    assert sensor.flows[0].gaps.longest.duration_s == pytest.approx(20)


def test_an_empty_stream_gives_an_empty_summary():
    summary = inspect([])
    assert (summary.datagrams, summary.sensors, summary.other_flows, summary.duration_s) == (0, (), (), 0.0)


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


def test_memory_does_not_grow_with_the_capture(packets):
    inspector = Inspector()

    def feed(rounds):
        for _ in range(rounds):
            for entry in packets:
                inspector.add(entry)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = feed(4)
        assert feed(36) - before < 1_000_000  # up to a block of packets waits; 25,000 stamps alone would take more
    finally:
        tracemalloc.stop()


def stdv(sequence, *, parity=0, stamp_us=0, points=144, version=2):
    """An STDV payload by the published header."""
    size = 24 if version == 2 else 20
    header = struct.pack("<4sBBHqBBH", b"STDV", version, size, 0, stamp_us, 0, 10, points)
    point = bytes(9) + bytes((0x04 if parity else 0,))
    return header + (struct.pack("<I", sequence) if version == 2 else b"") + point * points


def stdv_flow(payloads, interval_us=400):
    (sensor,) = inspect(
        datagram(payload, port=8808, at_ns=START_NS + k * interval_us * 1000, frame=k + 1) for k, payload in enumerate(payloads)
    ).sensors
    assert isinstance(sensor.flows[0].details, StdvPoints)
    return sensor.flows[0]


def test_stdv_points_and_frames_are_counted_across_blocks():
    flow = stdv_flow([stdv(k, parity=k // 64 % 2, stamp_us=400 * k) for k in range(1500)])
    points = flow.details
    assert (points.points, points.fewest_points, points.most_points, points.frames) == (1500 * 144, 144, 144, 24)
    assert (points.missing.packets, points.sequence_breaks, points.clock.jumps, points.versions) == (0, 0, 0, (2,))
    assert points.clock.duration_s == pytest.approx(1499 * 400e-6)
    assert points.clock.host_drift_ppm == pytest.approx(0, abs=1e-6)


def test_stdv_loss_and_restart_show_in_the_sequence_numbers():
    numbers = [*range(2**32 - 100, 2**32), *range(20), *range(25, 100), *range(5)]
    points = stdv_flow([stdv(number, stamp_us=1000 + 400 * k) for k, number in enumerate(numbers)]).details
    assert (points.missing.packets, points.missing.longest_after.frame, points.sequence_breaks) == (5, 120, 1)


def test_stdv_numbers_that_leap_far_ahead_are_another_sensors_and_no_loss():
    numbers = [*range(50), *range(2**25, 2**25 + 50)]
    points = stdv_flow([stdv(number, stamp_us=400 * k) for k, number in enumerate(numbers)]).details
    assert (points.missing.packets, points.sequence_breaks) == (0, 1)


def test_stdv_of_version_1_has_no_sequence_numbers_to_miss_packets_by():
    points = stdv_flow([stdv(0, version=1, points=143, stamp_us=400 * k) for k in range(40)]).details
    assert points.missing is None
    assert points.points == 40 * 143


def test_percentiles_mean_and_extremes_are_those_of_the_values():
    generator = np.random.default_rng(5)
    values = np.abs(generator.normal(1_327_104, 40_000, 5000)).astype(np.int64)
    spread = Spread()
    for start, stop in pairwise([0, 1, 700, 5000]):
        spread.add(values[start:stop])
    found = spread.summary()
    assert (found.min_us, found.max_us) == (values.min() / 1000, values.max() / 1000)
    assert found.mean_us == pytest.approx(values.mean() / 1000)
    assert found.sd_us == pytest.approx(values.std() / 1000)
    for ratio, figure in ((1, found.p1_us), (50, found.p50_us), (99, found.p99_us)):
        assert figure == pytest.approx(np.percentile(values, ratio) / 1000, rel=0.005)


def test_the_clock_line_is_the_least_squares_line():
    generator = np.random.default_rng(6)
    sensor = np.full(900, 1_000_000, dtype=np.int64)
    host = sensor + 40 + generator.normal(0, 3000, 900).astype(np.int64)
    line, every, cuts = ClockLine(), np.full(900, fill_value=True), (0, 17, 500, 900)
    for start, stop in pairwise(cuts):
        line.add(sensor[start:stop], host[start:stop], every[start:stop], every[start:stop])
    slope = np.polyfit(np.cumsum(sensor) * 1e-9, np.cumsum(host - sensor) * 1e-9, 1)[0]
    assert line.drift_ppm()[0] == pytest.approx(slope * 1e6)


def test_stretches_between_leaps_of_a_clock_share_a_slope_and_nothing_else():
    stretches, each = 12, 100
    jitter = np.tile(np.where(np.arange(each) == each - 1, 100_000, 0), stretches)  # each stretch's last packet was captured late
    sensor = np.arange(stretches * each) * 1_000_000
    host = sensor + jitter + np.arange(stretches * each) * 25 + np.repeat(np.arange(stretches) ** 3, each) * 10**9
    continuous = np.arange(stretches * each) % each != 0
    line = ClockLine()
    steps = np.diff(sensor, prepend=0), np.diff(host, prepend=0), continuous, np.full(len(sensor), fill_value=True)
    for start, stop in pairwise((0, 250, 600, 601, 650, 1200)):
        line.add(*(values[start:stop] for values in steps))
    offsets = np.repeat(np.eye(stretches), each, axis=0)
    table = np.column_stack((sensor, offsets))
    slope = np.linalg.lstsq(table * [1e-9, *[1] * stretches], (host - sensor) * 1e-9, rcond=None)[0][0]
    assert line.drift_ppm()[0] == pytest.approx(slope * 1e6, rel=1e-6)
    assert line.drift_ppm()[1] > 1.0


def test_one_sentence_over_many_packets_is_one_sentence():
    packets = position_packets(1_082_000_000 + np.arange(1300) * 7000)
    entries = [datagram(packet.tobytes(), port=8308, at_ns=START_NS + k * 7_000_000, frame=k + 1) for k, packet in enumerate(packets)]
    (sensor,) = inspect(entries).sensors
    assert sensor.flows[0].details.sentences == 1
    assert sensor.flows[0].details.rate_hz == pytest.approx(1e6 / 7000)


def test_every_figure_has_its_unit_in_its_name(stream):
    units = ("_ns", "_us", "_s", "_hz", "_ppm", "_rpm", "_deg", "_bytes", "_ratio")
    floats = set()

    def walk(value):
        if isinstance(value, dict):
            floats.update(key for key, entry in value.items() if isinstance(entry, float))
            value = list(value.values())
        for entry in value if isinstance(value, (list, tuple)) else ():
            walk(entry)

    walk(asdict(inspect(stream.datagrams())))
    assert len(floats) > 10
    assert {name for name in floats if not name.endswith(units)} == set()
