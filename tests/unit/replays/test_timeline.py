"""Two clocks laid along each other: when each recorded packet is due, and which instant its stamp names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.emulator.replaying import retiming_of
from hilsim.emulator.schedule import data_deadline_ns, packet_start_ns
from hilsim.errors import CaptureError
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.parts.replays.recorded.timeline import LEAD_IN_NS, NO_STAMP, Recorded, Timeline, whole_cycles_ns
from hilsim.protocols.recognise import OtherKind
from tests.depth import examples
from tests.unit.emulator.test_segments import lidar
from tests.unit.replays.streams import (
    BASE_NS,
    CAMERA,
    CEPTON,
    CYCLE_NS,
    HOUR_NS,
    LATENCY_NS,
    OTHER_SENSOR,
    POSITION,
    SENSOR,
    Stream,
    in_file_order,
    placed_by,
    stream,
    with_pause,
)

DATA, OTHER = VelodyneKind.DATA, OtherKind.OTHER
AS_REGULAR_AS_STAMPS_NS = 2000
MS = 1_000_000


def add_flow(timeline, recorded, kind):
    timeline.add_flow(recorded, kind, retiming_of(kind, b""))


def placed(recording, pace="device", *, flow=SENSOR, kind=DATA, **runs):
    """Time line, due times and stamps of a recording of one flow."""
    timeline = Timeline(pace)
    add_flow(timeline, flow, kind)
    due, stamp = placed_by(timeline, alone(recording), **runs)
    return timeline, due, stamp


def alone(recording):
    """A recording of one flow in the order of its packets."""
    return Recorded(recording.host_ns, np.zeros(recording.host_ns.size, np.int64), recording.stamp_ns)


def irregularity_ns(due, recording):
    """How much the intervals differ from the true ones."""
    return np.abs(np.diff(due) - np.diff(recording.true_ns))


def behind_host_ns(due, recording):
    """How much later the host noted each packet than it is due, counted from the first one's place."""
    return recording.host_ns - BASE_NS - LATENCY_NS - (due - LATENCY_NS)


# -- pace device ------------------------------------------------------------------------------------------------------------------------


def test_packets_are_as_regular_as_their_stamps_and_not_as_the_host_noted_them():
    recording = stream(4000, drift=20e-6)
    _, due, stamp = placed(recording)
    assert irregularity_ns(recording.host_ns, recording).max() > 100 * AS_REGULAR_AS_STAMPS_NS
    assert irregularity_ns(due, recording).max() < AS_REGULAR_AS_STAMPS_NS
    assert irregularity_ns(stamp, recording).max() < AS_REGULAR_AS_STAMPS_NS


@pytest.mark.parametrize("drift", [50e-6, -50e-6])
def test_over_an_hour_the_hosts_rate_is_kept_and_no_offset_grows(drift):
    recording = stream(360_000, cycle_ns=10 * MS, drift=drift)
    timeline, due, _ = placed(recording)
    behind_ns = recording.host_ns - recording.host_ns[0] - (due - due[0])
    late_in_the_hour = [np.median(part) for part in np.array_split(behind_ns, 12)[2:]]
    assert np.ptp(late_in_the_hour) < 100_000
    assert max(map(abs, late_in_the_hour)) < 2 * MS
    assert irregularity_ns(due, recording).max() < AS_REGULAR_AS_STAMPS_NS
    assert timeline.clock_leaps == 0


def test_a_sensor_of_one_packet_a_second_is_followed_without_swinging():
    recording = stream(4000, cycle_ns=1000 * MS, drift=0.0)
    _, due, _ = placed(recording)
    assert np.abs(np.diff(due) - 1000 * MS).max() < AS_REGULAR_AS_STAMPS_NS


@pytest.mark.parametrize("pause_ms", [30, 200, 600, 2000])
@pytest.mark.parametrize("first", [100, 3000])
def test_a_pause_of_the_capturing_host_leaves_no_trace(pause_ms, first):
    recording = stream(12_000)
    recording = recording._replace(host_ns=with_pause(recording.host_ns, first, pause_ms * MS))
    timeline, due, _ = placed(recording)
    if first > 512 or pause_ms < 600:  # what the first run shows is all that is known of it
        assert irregularity_ns(due, recording).max() < AS_REGULAR_AS_STAMPS_NS
        assert timeline.clock_leaps == 0
    assert irregularity_ns(due[4000:], recording.only(slice(4000, None))).max() < AS_REGULAR_AS_STAMPS_NS


def test_packets_lost_at_the_end_of_a_pause_are_a_gap_and_no_leap_of_the_sensors_clock():
    recording = stream(12_000)
    keep = np.ones(12_000, np.bool_)
    keep[3040:3150] = False
    recording = recording._replace(host_ns=with_pause(recording.host_ns, 3000, 200 * MS)).only(keep)
    timeline, due, _ = placed(recording)
    assert irregularity_ns(due, recording).max() < AS_REGULAR_AS_STAMPS_NS
    assert timeline.clock_leaps == 0


def test_lost_packets_leave_their_gaps():
    recording = stream(8000).only(np.random.default_rng(3).random(8000) > 0.1)
    _, due, _ = placed(recording)
    assert np.diff(due).max() > 2 * CYCLE_NS
    assert irregularity_ns(due, recording).max() < AS_REGULAR_AS_STAMPS_NS


def test_a_gap_of_seconds_is_kept():
    recording = stream(16_000).only(np.r_[0:4000, 12_000:16_000])
    timeline, due, _ = placed(recording)
    assert abs(np.diff(due)[3999] - 8001 * CYCLE_NS) < 100_000
    assert timeline.clock_leaps == 0


@pytest.mark.parametrize(("rate_rpm", "view"), [(300, (320, 41)), (600, (350, 10)), (600, (315, 45))])
def test_a_packet_with_firings_before_and_after_the_gap_of_the_view_is_no_leap(rate_rpm, view):
    plan = lidar(rotation_rate_rpm=rate_rpm, field_of_view_deg=view).plan
    packets = range(1000)
    start_ns, sent_ns = (np.array([of(plan, packet) for packet in packets]) for of in (packet_start_ns, data_deadline_ns))
    assert np.diff(start_ns).max() > 70 * MS
    at_ns = np.arange(0, int(sent_ns[-1]), 6_824_000)
    data = Stream(sent_ns, BASE_NS + sent_ns, start_ns // 1000 * 1000 % HOUR_NS)
    others = Stream(at_ns, BASE_NS + at_ns + LATENCY_NS, at_ns // 1000 * 1000 % HOUR_NS)
    recorded, _ = in_file_order(data, others)
    timeline = Timeline("device")
    add_flow(timeline, SENSOR, DATA)
    add_flow(timeline, POSITION, VelodyneKind.POSITION)
    due, stamp = placed_by(timeline, recorded)
    own = recorded.flow == 0
    assert timeline.clock_leaps == 0
    assert np.abs(np.diff(stamp[own]) - np.diff(data.stamp_ns)).max() < AS_REGULAR_AS_STAMPS_NS
    behind_ns = due[own] - sent_ns
    assert np.ptp(behind_ns) < MS


def test_stamps_run_on_through_the_end_of_the_hour():
    recording = stream(6000, shows_ns=HOUR_NS - 3_000_000_000)
    assert (np.diff(recording.stamp_ns) < 0).sum() == 1
    timeline, due, stamp = placed(recording)
    assert irregularity_ns(due, recording).max() < AS_REGULAR_AS_STAMPS_NS
    assert irregularity_ns(stamp, recording).max() < AS_REGULAR_AS_STAMPS_NS
    assert timeline.clock_leaps == 0


@pytest.mark.parametrize("leap_ms", [70, 7000, 1_800_000, -25, -7000, -1_700_000])
def test_a_sensors_clock_that_leaps_is_taken_to_go_on_and_counted(leap_ms):
    recording = stream(8000)
    leapt = np.where(np.arange(8000) < 4100, recording.stamp_ns, (recording.stamp_ns + leap_ms * MS) % HOUR_NS)
    timeline, due, stamp = placed(recording._replace(stamp_ns=leapt))
    interval_ns = np.diff(due)
    assert abs(interval_ns[4099] - CYCLE_NS) < 2 * MS  # of this one step only the host's time is known
    assert np.abs(np.delete(irregularity_ns(due, recording), 4099)).max() < AS_REGULAR_AS_STAMPS_NS
    assert np.abs(np.delete(irregularity_ns(stamp, recording), 4099)).max() < AS_REGULAR_AS_STAMPS_NS
    assert timeline.clock_leaps == 1


def test_a_sensors_clock_that_stands_still_is_replaced_by_the_hosts():
    recording = stream(4000, shows_ns=0)
    timeline, due, _ = placed(recording._replace(stamp_ns=np.zeros(4000, np.int64)))
    assert np.array_equal(np.diff(due), np.diff(recording.host_ns))
    assert timeline.standing_packets == 4000


def test_a_packet_is_due_when_its_last_firing_is_done():
    recording = stream(600, jitter_ns=0.0, outliers=0.0)
    _, due, stamp = placed(recording)
    assert np.abs(due - stamp - LATENCY_NS).max() <= 1
    assert abs(stamp[0] - (LEAD_IN_NS - LATENCY_NS)) < 1000


@pytest.mark.parametrize("pace", ["device", "capture", "nominal"])
def test_nothing_is_due_before_the_beginning_though_the_host_paused_just_then(pace):
    recording = stream(2000)
    recording = recording._replace(host_ns=with_pause(recording.host_ns, 0, 400 * MS))
    _, due, _ = placed(recording, pace)
    assert due.min() >= 0


# -- the host's times -------------------------------------------------------------------------------------------------------------------


def test_hosts_times_that_go_back_by_hours_are_taken_to_go_on():
    recording = stream(6000)
    host_ns = recording.host_ns.copy()
    host_ns[3100:] -= 3 * HOUR_NS
    for pace in ("device", "capture"):
        timeline, due, _ = placed(recording._replace(host_ns=host_ns), pace)
        assert timeline.host_leaps == 1
        assert np.diff(due).min() >= 0
        assert np.diff(due).max() < 5 * MS


@pytest.mark.parametrize("wrong_ns", [0, BASE_NS - 60 * HOUR_NS])
def test_one_packet_with_an_absurd_time_costs_no_pause_when_the_times_return(wrong_ns):
    recording = stream(6000)
    host_ns = recording.host_ns.copy()
    host_ns[3100] = wrong_ns
    for pace in ("device", "capture"):
        timeline, due, _ = placed(recording._replace(host_ns=host_ns), pace)
        assert timeline.host_leaps == 1
        assert np.diff(due).max() < 5 * MS


def test_small_steps_back_are_counted_and_change_nothing_but_those_packets():
    recording = stream(3000)
    host_ns = recording.host_ns.copy()
    host_ns[[700, 1900]] -= 3 * MS
    timeline, due, _ = placed(recording._replace(host_ns=host_ns), "capture")
    assert timeline.host_steps_back == 2
    ordinary = np.setdiff1d(np.arange(3000), [700, 1900])
    assert np.array_equal(np.diff(due[ordinary]), np.diff(recording.host_ns[ordinary]))
    assert due[700] == due[699]


def test_pace_capture_gives_exactly_the_hosts_intervals_while_stamps_stay_regular():
    recording = stream(3000)
    _, due, stamp = placed(recording, "capture")
    assert np.array_equal(np.diff(due), np.diff(recording.host_ns))
    assert irregularity_ns(stamp, recording).max() < AS_REGULAR_AS_STAMPS_NS


def test_packets_without_stamps_leave_by_the_hosts_times_at_every_pace_but_nominal():
    recording = stream(2000)._replace(stamp_ns=np.full(2000, NO_STAMP))
    for pace in ("device", "capture"):
        _, due, stamp = placed(recording, pace, kind=OTHER, flow=CAMERA)
        assert np.array_equal(np.diff(due), np.diff(recording.host_ns))
        assert np.array_equal(stamp, due)


# -- several flows ----------------------------------------------------------------------------------------------------------------------


def test_two_sensors_with_unrelated_clocks_keep_their_relation():
    left, right = stream(6000), stream(6000, begin_ns=500_000, shows_ns=3_000_000_000_000, seed=2)
    recorded, _ = in_file_order(left, right)
    timeline = Timeline("device")
    add_flow(timeline, SENSOR, DATA)
    add_flow(timeline, OTHER_SENSOR, DATA)
    due, _ = placed_by(timeline, recorded)
    left_ns, right_ns = due[recorded.flow == 0], due[recorded.flow == 1]
    assert irregularity_ns(left_ns, left).max() < AS_REGULAR_AS_STAMPS_NS
    assert irregularity_ns(right_ns, right).max() < AS_REGULAR_AS_STAMPS_NS
    assert np.abs(right_ns - left_ns - 500_000).max() < 100_000


def test_position_packets_stay_between_the_data_packets_on_the_same_clock():
    data = stream(5000)
    position = stream(350, cycle_ns=14 * CYCLE_NS, begin_ns=CYCLE_NS // 3, seed=4)
    position = position._replace(
        host_ns=BASE_NS + position.true_ns + 150_000 + np.abs(np.random.default_rng(5).normal(0, 14_000, 350)).astype(np.int64)
    )
    recorded, _ = in_file_order(data, position)
    timeline = Timeline("device")
    add_flow(timeline, SENSOR, DATA)
    add_flow(timeline, POSITION, VelodyneKind.POSITION)
    due, stamp = placed_by(timeline, recorded)
    of_data, of_position = recorded.flow == 0, recorded.flow == 1
    assert irregularity_ns(due[of_data], data).max() < AS_REGULAR_AS_STAMPS_NS
    assert irregularity_ns(due[of_position], position).max() < AS_REGULAR_AS_STAMPS_NS
    assert np.abs(stamp[of_position] - stamp[of_data][: 14 * 350 : 14] - CYCLE_NS // 3).max() <= 1000
    assert 100_000 < (due - stamp)[of_position].mean() < 200_000
    assert timeline.clock_leaps == 0


def test_packets_without_stamps_keep_their_place_in_their_flow_though_the_host_noted_them_late():
    points = stream(3000)
    points = points._replace(stamp_ns=points.stamp_ns + 1_600_000_000_000_000_000 // HOUR_NS * HOUR_NS)
    information = Stream(*(column[::100] for column in stream(3000, begin_ns=400_000, seed=7)))._replace(stamp_ns=np.full(30, NO_STAMP))
    recorded, _ = in_file_order(points, information)
    recorded = recorded._replace(capture_ns=with_pause(recorded.capture_ns, 1000, 150 * MS))
    timeline = Timeline("device")
    add_flow(timeline, CEPTON, CeptonKind.STDV)
    add_flow(timeline, CEPTON, CeptonKind.INFO)
    due, _ = placed_by(timeline, recorded)
    assert np.diff(due).min() >= 0
    assert irregularity_ns(due[recorded.flow == 0], points).max() < 50_000  # at the end of a run the next point packet is not known yet


# -- pace nominal -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured_ns", "nominal_ns"), [(1_327_230, 1_327_104.0), (663_500, 663_552.0), (553_000, 552_960.0), (2_000_000, 2_000_000.0)]
)
def test_pace_nominal_gives_the_models_cycle(measured_ns, nominal_ns):
    recording = stream(3000, cycle_ns=measured_ns)
    _, due, stamp = placed(recording, "nominal")
    expected_ns = np.arange(3000) * nominal_ns
    assert np.abs(due - due[0] - expected_ns).max() <= (1 if measured_ns != nominal_ns else 2000)
    assert np.abs(stamp - stamp[0] - expected_ns).max() <= (1 if measured_ns != nominal_ns else 2000)


def test_pace_nominal_closes_the_gaps_of_a_lone_sensor():
    recording = stream(4000).only(np.r_[0:1000, 2000:4000])
    _, due, _ = placed(recording, "nominal")
    assert np.abs(np.diff(due) - CYCLE_NS).max() <= 1


def test_at_pace_nominal_a_sensor_that_loses_packets_or_begins_late_stays_in_step_with_the_others():
    whole = stream(12_000)
    lossy = stream(8000, begin_ns=4000 * CYCLE_NS, seed=2)
    lossy = lossy.only(np.random.default_rng(6).random(8000) > 0.05)
    recorded, numbers = in_file_order(whole, lossy)
    timeline = Timeline("nominal")
    add_flow(timeline, SENSOR, DATA)
    add_flow(timeline, OTHER_SENSOR, DATA)
    due, _ = placed_by(timeline, recorded)
    latest_ns = np.maximum.accumulate(due)
    assert (latest_ns - due).max() < 110 * MS
    assert np.abs(np.diff(due[recorded.flow == 0]) - CYCLE_NS).max() <= 1
    assert numbers[recorded.flow == 0].size == 12_000


def test_pace_nominal_needs_a_rate_for_what_has_no_nominal_one():
    recording = stream(10)._replace(stamp_ns=np.full(10, NO_STAMP))
    with pytest.raises(CaptureError, match=r'pace "nominal" needs rate_hz: the rate of packets of 192\.168\.1\.50 \(not recognised\) is not known'):
        placed(recording, "nominal", kind=OTHER, flow=CAMERA)
    timeline = Timeline("nominal", 250.0)
    add_flow(timeline, CAMERA, OTHER)
    due, _ = placed_by(timeline, alone(recording))
    assert due.tolist() == [4 * MS * number for number in range(10)]


def test_at_pace_nominal_stamps_that_stand_still_ask_for_a_rate_too():
    recording = stream(600)._replace(stamp_ns=np.zeros(600, np.int64))
    with pytest.raises(CaptureError, match="needs rate_hz"):
        placed(recording, "nominal")


# -- whatever comes ---------------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-(10**6), 10**7), st.integers(-(10**12), 10**12)),
            st.integers(0, 3),
            st.one_of(st.just(NO_STAMP), st.integers(0, 4_294_967_295).map(lambda us: 1000 * us)),
        ),
        min_size=1,
        max_size=80,
    ),
    st.sampled_from(["device", "capture", "nominal"]),
    st.integers(1, 40),
)
def test_whatever_the_times_are_nothing_falls_within_a_flow_and_nothing_is_lost(packets, pace, run):
    timeline = Timeline(pace, 1000.0)
    flows = [(SENSOR, DATA), (POSITION, VelodyneKind.POSITION), (CAMERA, OTHER), (OTHER_SENSOR, DATA)]
    for recorded, kind in flows:
        add_flow(timeline, recorded, kind)
    flow = np.array([number for _, number, _ in packets], np.int64)
    stamp_ns = np.where(flow == 2, NO_STAMP, np.maximum([stamp for _, _, stamp in packets], 0))
    recorded = Recorded(BASE_NS + np.cumsum([step for step, _, _ in packets]), flow, stamp_ns)
    due, stamp = placed_by(timeline, recorded, first=run, run=run)
    assert due.size == stamp.size == len(packets)
    for number in range(4):
        assert (np.diff(due[flow == number]) >= 0).all()


@given(st.integers(0, 10**10), st.floats(500_000.0, 3_000_000.0))
def test_a_step_is_rounded_to_whole_cycles_and_never_to_none(step_ns, cycle_ns):
    whole_ns = whole_cycles_ns(step_ns, cycle_ns)
    assert whole_ns >= round(cycle_ns)
    assert abs(whole_ns / cycle_ns - round(whole_ns / cycle_ns)) < 1e-6
    if step_ns > cycle_ns / 2:
        assert abs(whole_ns - step_ns) <= cycle_ns / 2 + 1
