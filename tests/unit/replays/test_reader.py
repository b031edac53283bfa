"""From a capture file to cues: which packets, in which order, when, and how passes follow each other."""

from itertools import islice, pairwise

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.parts.replays.flows import FlowRule
from hilsim.parts.replays.recorded.plan import look_over, plan_cut
from hilsim.parts.replays.recorded.reader import CaptureReader
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.units import HOUR_US
from tests.unit.replays.streams import (
    CAMERA,
    CEPTON,
    CYCLE_NS,
    OTHER_SENSOR,
    POSITION,
    SENSOR,
    Recording,
    data_packet,
    position_packet,
    stamp_us_of,
    stdv_packet,
)

MS = 1_000_000
HDL_CYCLE_NS = 552_960


def reader_of(path, *, goes_on=lambda: True, **settings):
    """A reader that knows from the beginning where to cut, as for every smaller file."""
    spec = ReplaySpec(name="recorded", file=path.name, **settings)
    overview = look_over(path, spec)
    master, kind = overview.find_master(spec.loop_sensor)
    cut = plan_cut(path, spec, overview.first_ns, master, kind, overview.names) if spec.loop == "seamless" and kind else None

    def find_cut(*, wait):  # noqa: ARG001 - known from the beginning
        return cut

    return CaptureReader(CaptureFile(path), spec, overview.first_ns, find_cut, master, goes_on, overview.names)


def cues_of(reader, *arguments, passes=None):
    """Everything that a reader gives (of its first passes): (pass, track, due_ns, stamp_ns, position_ns, payload)."""
    rows = []
    for cues in reader.runs(*arguments):
        if passes is not None and cues.passes >= passes:
            break
        columns = (column.tolist() for column in (cues.track, cues.due_ns, cues.stamp_ns, cues.position_ns))
        rows += [(cues.passes, *row) for row in zip(*columns, cues.payloads, strict=True)]
    return rows


def test_two_sensors_behind_one_address_keep_the_clock_of_each(tmp_path):
    second = SENSOR._replace(destination_port=2369)
    recording = Recording().add_turning(600).add_turning(600, flow=second, begin_ns=400_000, shows_us=700_000_000)
    reader = reader_of(recording.write(tmp_path / "two.pcap"), loop="plain", loops=2)
    rows = cues_of(reader)
    assert reader.irregularities == {}
    for track in (0, 1):
        for number in (0, 1):
            steps_ns = np.diff(due_ns([row for row in rows if row[0] == number], track))
            np.testing.assert_allclose(steps_ns, CYCLE_NS, atol=2000)


def payloads_of(rows, track=None):
    return [row[5] for row in rows if track in {None, row[1]}]


def column(rows, number, track=None):
    return np.array([row[number] for row in rows if track in {None, row[1]}], np.int64)


def pass_number(rows, track=None):
    return column(rows, 0, track)


def due_ns(rows, track=None):
    return column(rows, 2, track)


def shown_ns(rows, track=None):
    return column(rows, 3, track)


def track_of(reader, flow, kind=None):
    return next(number for number, track in enumerate(reader.tracks) if track.recorded == flow and kind in {None, track.kind})


@pytest.fixture
def turning(tmp_path):
    """Three seconds of a sensor: thirty turns."""
    return Recording().add_turning(2261).write(tmp_path / "turning.pcap")


# -- a single pass ----------------------------------------------------------------------------------------------------------------------


def test_every_packet_comes_out_once_as_it_was_recorded_and_in_file_order(tmp_path):
    recording = Recording().add_turning(3000).add_turning(2000, flow=OTHER_SENSOR, begin_ns=400_000_000, shows_us=3_599_000_000)
    for number in range(100):
        recording.add(number * 37 * MS, CAMERA, b"frame %d" % number)
        recording.add(number * 14 * CYCLE_NS + 200_000, POSITION, position_packet(59_000_000 + number * 14 * CYCLE_NS // 1000))
    reader = reader_of(recording.write(tmp_path / "all.pcap"), retime="none")
    rows = cues_of(reader)
    assert len(rows) == len(recording.packets)
    for flow in (SENSOR, OTHER_SENSOR, POSITION, CAMERA):
        assert payloads_of(rows, track_of(reader, flow)) == recording.payloads(flow)


def test_ignored_flows_are_counted_and_nothing_of_them_is_sent(tmp_path):
    recording = Recording().add_turning(700)
    for number in range(300):
        recording.add(number * MS, CAMERA._replace(source_port=1024 + number), b"x")
    reader = reader_of(recording.write(tmp_path / "mixed.pcap"), flow=(FlowRule(match="192.168.1.201"),))
    rows = cues_of(reader)
    assert payloads_of(rows) == recording.payloads()
    assert reader.skipped_datagrams == 300
    assert [track.recorded for track in reader.tracks] == [SENSOR]


def test_ignored_flows_without_end_are_not_all_stored(tmp_path):
    recording = Recording().add_turning(10)
    for number in range(9000):
        recording.add(number * 1000, CAMERA._replace(source_port=1024 + number), b"x")
    reader = reader_of(recording.write(tmp_path / "busy.pcap"), flow=(FlowRule(match="192.168.1.201"),))
    assert len(cues_of(reader)) == 10
    assert len(reader._unwanted) <= 4096


def test_start_and_duration_choose_by_capture_time(turning):
    whole = cues_of(reader_of(turning))
    part = cues_of(reader_of(turning, start_s=0.5, duration_s=1.25))
    chosen = [row for row in whole if 500 * MS <= row[4] < 1750 * MS]
    assert payloads_of(part) == payloads_of(chosen)
    assert part[0][2] < 2 * MS


def test_seeking_to_a_position_is_reading_from_there(turning):
    whole = cues_of(reader_of(turning))
    sought = cues_of(reader_of(turning), 1_234_567_890, lambda: 77_000 * MS, 0)
    expected = [row for row in whole if row[4] >= 1_234_567_890]
    assert payloads_of(sought) == payloads_of(expected)
    assert sought[0][2] - 77_000 * MS < 2 * MS
    assert np.abs(np.diff(due_ns(sought)) - np.diff(due_ns(expected))).max() <= 2000


def test_a_reader_that_was_interrupted_can_be_sent_elsewhere(turning):
    reader = reader_of(turning)
    runs = reader.runs()
    next(runs)
    runs.close()
    rows = cues_of(reader, 2_000 * MS, lambda: 9_000 * MS, 0)
    assert payloads_of(rows) == payloads_of([row for row in cues_of(reader_of(turning)) if row[4] >= 2_000 * MS])


def test_it_stops_soon_when_nothing_of_what_it_reads_is_requested(tmp_path):
    recording = Recording().add_turning(5)
    for number in range(20_000):
        recording.add(10 * MS + number * 1000, CAMERA, b"x")
    asked = []
    reader = reader_of(
        recording.write(tmp_path / "rare.pcap"), flow=(FlowRule(match="192.168.1.201"),), goes_on=lambda: asked.append(None) or len(asked) < 3
    )
    assert cues_of(reader) == []
    assert reader.skipped_datagrams < 4000


def test_packets_come_in_order_of_time_though_the_host_noted_some_of_them_late(tmp_path):
    """A pause of the host moves what has no stamp of its own, and no sensor's packet shall wait behind it."""
    recording = Recording().add_turning(4000)
    for number in range(500):
        recording.add(number * 10 * MS, CAMERA, b"frame %d" % number)
    paused = Recording()
    for host_ns, flow, payload, link in sorted(recording.packets, key=lambda packet: packet[0]):
        waits = 2_000 * MS <= host_ns < 2_400 * MS
        paused.add(2_400 * MS if waits else host_ns, flow, payload, **link)
    rows = cues_of(reader_of(paused.write(tmp_path / "paused.pcap")))
    assert len(rows) == 4500
    assert np.diff(due_ns(rows)).min() >= 0


def test_rare_packets_do_not_wait_until_many_were_read(tmp_path):
    recording = Recording()
    for number in range(60):
        recording.add(number * 1000 * MS, CAMERA, b"%d" % number)
    first = next(reader_of(recording.write(tmp_path / "rare.pcap")).runs())
    assert 1 <= len(first.payloads) <= 6


def test_absurd_stamps_of_packets_are_no_stamps(tmp_path):
    recording = Recording()
    for number in range(20):
        stamp_us = (-1 if number % 2 else (1 << 63) - 1) if number in {3, 8, 9} else 1_600_000_000_000_000 + number * 1000
        recording.add(number * MS, CEPTON, stdv_packet(stamp_us))
    rows = cues_of(reader_of(recording.write(tmp_path / "absurd.pcap")))
    assert payloads_of(rows) == recording.payloads(CEPTON)
    assert np.diff(due_ns(rows)).max() < 3 * MS


def test_irregularities_of_times_are_reported(tmp_path):
    recording = Recording().add_turning(800)
    recording.packets = [
        (host_ns - (5_000 * MS if number >= 400 else 0), flow, payload, link)
        for number, (host_ns, flow, payload, link) in enumerate(recording.packets)
    ]
    reader = reader_of(recording.write(tmp_path / "back.pcap", sort=False))
    rows = cues_of(reader)
    assert payloads_of(rows) == [packet[2] for packet in recording.packets]
    assert {what.split(";")[0]: count for what, count in reader.irregularities.items()} == {"the capture's times go back by more than 0.1 s": 1}


# -- loops ------------------------------------------------------------------------------------------------------------------------------


def test_a_plain_loop_follows_at_the_mean_interval_of_the_busiest_track(turning):
    rows = cues_of(reader_of(turning, loop="plain", loops=4))
    assert pass_number(rows).tolist() == sorted(list(range(4)) * 2261)
    assert payloads_of(rows) == payloads_of(rows)[:2261] * 4
    assert np.abs(np.diff(due_ns(rows)) - CYCLE_NS).max() < 2000


def test_a_seamless_loop_is_one_stream_of_packets_as_regular_as_the_sensors(turning):
    rows = cues_of(reader_of(turning, loop="seamless"), passes=10)
    azimuth = np.array([int.from_bytes(payload[2:4], "little") for payload in payloads_of(rows)])
    turn = (np.diff(azimuth) + 18_000) % 36_000 - 18_000
    seams = np.flatnonzero(np.diff(pass_number(rows)))
    assert seams.size == 9
    assert np.abs(turn[seams] - 478).max() <= 12
    assert np.abs(np.diff(due_ns(rows)) - CYCLE_NS).max() < 2000
    assert np.abs(np.diff(shown_ns(rows)) - CYCLE_NS).max() < 2000


@pytest.mark.extended
def test_nothing_accumulates_over_a_thousand_passes(tmp_path):
    """The period of a loop is exactly a difference of the sensor's own stamps."""
    path = Recording().add_turning(200).write(tmp_path / "short.pcap")
    reader = reader_of(path, loop="seamless")
    starts = {}
    for cues in reader.runs():
        if cues.passes > 1000:
            break
        starts.setdefault(cues.passes, (int(cues.due_ns[0]), int(cues.stamp_ns[0]), cues.payloads[0]))
    period_ns = (starts[2][1] - starts[1][1], starts[1000][1] - starts[1][1])
    assert starts[1][2] == starts[1000][2]
    assert period_ns[0] % 1000 == 0
    assert period_ns[1] == 999 * period_ns[0]
    assert starts[1000][0] - starts[1][0] == period_ns[1]


@pytest.mark.extended
@pytest.mark.parametrize("other_cycle_ns", [CYCLE_NS, round(CYCLE_NS * (1 + 30e-6)), HDL_CYCLE_NS, 663_552])
@pytest.mark.parametrize("begin_ns", [100_000, 1_200_000])
def test_stamps_of_every_sensor_go_on_by_whole_cycles_and_no_sensor_runs_away_from_the_other(tmp_path, other_cycle_ns, begin_ns):
    recording = Recording().add_turning(700)
    others = 700 * CYCLE_NS // other_cycle_ns
    recording.add_turning(others, flow=OTHER_SENSOR, cycle_ns=other_cycle_ns, begin_ns=begin_ns, shows_us=1_800_000_000, azimuth_cdeg=123.0)
    path = recording.write(tmp_path / "two.pcap")
    reader = reader_of(path, loop="seamless", loop_sensor=SENSOR.source)
    rows = cues_of(reader, passes=20)
    master, other = track_of(reader, SENSOR), track_of(reader, OTHER_SENSOR)
    for track, cycle_ns in ((master, CYCLE_NS), (other, other_cycle_ns)):
        step_ns = np.diff(shown_ns(rows, track))
        cycles = np.rint(step_ns / cycle_ns)
        assert cycles.min() == 1
        assert cycles.max() <= 2
        assert np.abs(step_ns - cycles * cycle_ns).max() < 2500
    for number in range(20):
        # Each pass begins with both sensors where they stood in the recording, within a cycle.
        first = [shown_ns(rows, track)[np.searchsorted(pass_number(rows, track), number)] for track in (master, other)]
        assert abs(first[1] - first[0]) < 2 * max(CYCLE_NS, other_cycle_ns)
    assert np.diff(due_ns(rows)).min() > -2 * CYCLE_NS


def test_without_re_timing_payloads_are_as_recorded_in_every_pass(tmp_path):
    recording = Recording()
    for number in range(900):
        recording.add(number * MS, CEPTON, stdv_packet(1_600_000_000_000_000 + number * 1000, ((number // 50) % 2,) * 4, sequence=70 + number))
    rows = cues_of(reader_of(recording.write(tmp_path / "cepton.pcap"), loop="seamless", loops=3, retime="none"))
    places = [recording.payloads(CEPTON).index(payload) for payload in payloads_of(rows)]
    steps = np.diff(places)
    assert (steps < 0).sum() == 2
    assert set(steps[steps > 0].tolist()) == {1}


def test_sequence_numbers_and_frame_parities_of_cepton_run_on(tmp_path):
    recording = Recording()
    first = (1 << 32) - 1500
    for number in range(1000):
        parities = [((4 * number + point) // 202) % 2 for point in range(4)]
        recording.add(number * MS, CEPTON, stdv_packet(1_600_000_000_000_000 + number * 1000, parities, sequence=first + number))
    rows = cues_of(reader_of(recording.write(tmp_path / "cepton.pcap"), loop="seamless", loops=5))
    numbers = [int.from_bytes(payload[20:24], "little") for payload in payloads_of(rows)]
    assert {(after - before) % (1 << 32) for before, after in pairwise(numbers)} == {1}
    parity = np.array([payload[24 + 10 * point + 9] >> 2 for payload in payloads_of(rows) for point in range(4)])
    frames = np.diff(np.flatnonzero(np.diff(parity)))
    assert set(frames.tolist()) == {202}
    assert np.abs(np.diff(shown_ns(rows)) - MS).max() < 2000
    assert np.diff(due_ns(rows)).min() > 0


def test_due_times_never_fall_within_a_flow_over_many_passes(tmp_path):
    recording = Recording().add_turning(900)
    recording.add_turning(1500, flow=OTHER_SENSOR, cycle_ns=HDL_CYCLE_NS, begin_ns=300_000_000, shows_us=3_599_900_000)
    generator = np.random.default_rng(8)
    for number in range(60):
        recording.add(number * 20 * MS + int(generator.uniform(0, 8e6)), CAMERA, b"frame %d" % number)
    for loop in ("plain", "seamless"):
        reader = reader_of(recording.write(tmp_path / "many.pcap"), loop=loop)
        rows = cues_of(reader, passes=12)
        for track in range(3):
            falls = np.diff(due_ns(rows, track))
            at_seams = np.diff(pass_number(rows, track)) > 0
            assert falls[~at_seams].min() >= 0
            assert falls.min() > -10 * MS  # at a seam what has no stamps comes as it can; the player keeps it in order


def test_passes_are_counted_and_end_after_the_last(turning):
    assert {*pass_number(cues_of(reader_of(turning, loop="plain", loops=3))).tolist()} == {0, 1, 2}
    assert {*pass_number(cues_of(reader_of(turning))).tolist()} == {0}


def test_after_a_seek_the_next_pass_follows_what_was_played_and_not_what_was_read_ahead(turning):
    reader = reader_of(turning, loop="plain")
    for _ in islice(reader.runs(), 40):  # many seconds ahead of what is played
        pass
    rows = cues_of(reader, 2_900 * MS, lambda: 1_000 * MS, 0, passes=2)
    assert np.diff(due_ns(rows)).max() < 2 * CYCLE_NS


def test_after_a_seek_no_sensor_is_held_back_to_where_it_was_read_ahead(tmp_path):
    recording = Recording().add_turning(700)
    recording.add_turning(100, flow=OTHER_SENSOR, begin_ns=50_000, shows_us=1_000)
    reader = reader_of(recording.write(tmp_path / "two.pcap"), loop="seamless")
    for _ in islice(reader.runs(), 60):
        pass
    rows = cues_of(reader, 500 * MS, lambda: 1_000 * MS, 0, passes=3)
    other = track_of(reader, OTHER_SENSOR)
    first_of_pass = due_ns([row for row in rows if row[0] == 1])[0]
    assert due_ns(rows, other)[0] - first_of_pass < 5 * MS


def test_a_seek_beyond_the_end_of_a_loop_goes_on_with_the_next_pass(turning):
    rows = cues_of(reader_of(turning, loop="plain"), 99_000 * MS, lambda: 5_000 * MS, 3, passes=5)
    assert {*pass_number(rows).tolist()} == {4}
    assert payloads_of(rows) == Recording().add_turning(2261).payloads()
    assert due_ns(rows)[0] - 5_000 * MS == pytest.approx(2 * MS, abs=0.1 * MS)


@pytest.mark.parametrize("flow", [SENSOR, CAMERA])
def test_a_recording_that_takes_no_time_is_not_repeated_without_end(tmp_path, flow):
    recording = Recording().add(5 * MS, flow, data_packet(0, 59_000_000) if flow == SENSOR else b"x")
    assert 1 <= len(list(islice(reader_of(recording.write(tmp_path / "one.pcap"), loop="plain").runs(), 100))) <= 2


def test_stamps_that_wrap_within_the_loop_run_on(tmp_path):
    path = Recording().add_turning(1500, shows_us=HOUR_US - 1_000_000).write(tmp_path / "wrap.pcap")
    rows = cues_of(reader_of(path, loop="seamless"), passes=4)
    assert min(stamp_us_of(payload) for payload in payloads_of(rows)) < 1_000_000
    assert np.abs(np.diff(shown_ns(rows)) - CYCLE_NS).max() < 2000


def test_a_real_capture_plays_every_payload_once_and_in_order(any_capture):
    path = any_capture("vlp16_strongest_gps.pcap")
    recorded = [datagram.payload for datagram in CaptureFile(path) if datagram.destination_port == 2368]
    reader = reader_of(path)
    rows = cues_of(reader)
    assert [payload for payload in payloads_of(rows) if len(payload) == 1206] == recorded
    assert {track.kind for track in reader.tracks} == {VelodyneKind.DATA, VelodyneKind.POSITION}
