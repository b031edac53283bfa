"""What of ten seconds is a fault, by invented growth."""

import pytest

from hilsim.parts.gazebo.reading import GazeboReading
from hilsim.parts.rovers.reading import RoverReading
from hilsim.telemetry.faults import FAULTS, Fault, Level, worst_level
from hilsim.telemetry.history import Count
from hilsim.telemetry.losses import JUDGED, judge, kernel_counters, own_counters
from hilsim.telemetry.readings import PacketStreamReading, Reading, RecordingReading, StreamLoss
from tests.unit.telemetry.conftest import LATE, SILENT, make_reading, make_vehicle

QUIET = Reading()


def judged(reading=QUIET, **growth):
    """Faults of a sensor ``front`` that sent 7530 packets, and of what else grew: ``{"sent": …}``, or ``{("eth0", "queue dropped"): …}``."""
    counts = {Count("front", name.replace("_", " ")): value for name, value in ({"sent": 7530} | growth).items()}
    return judge(counts, reading)


def found(*more, reading=QUIET, **growth):
    counts = {Count("front", name.replace("_", " ")): value for name, value in ({"sent": 7530} | growth).items()}
    counts |= {Count(subject, name): value for subject, name, value in more}
    return {(fault.key, fault.subject): (fault.level.value, fault.text) for fault in judge(counts, reading)}


def test_a_stream_that_lost_nothing_has_no_fault():
    assert found() == {}


def test_a_single_packet_lost_is_degraded_and_says_how():
    text = "1 of 7531 packets missing: 1 too late to be sent in the last 10 s"
    assert found(dropped=1, late=1) == {("packets_missed", "front"): ("degraded", text)}


def test_more_than_a_hundredth_lost_is_unhealthy():
    level, text = found(dropped=30, late=30, skipped=50, ring_full=4)["packets_missed", "front"]
    assert level == "unhealthy"
    assert text == "84 of 7614 packets missing: 50 not rendered in time, 30 too late to be sent, 4 without room in the ring in the last 10 s"


@pytest.mark.parametrize(("skipped", "level"), [(75, "degraded"), (77, "unhealthy")])
def test_the_hundredth_is_of_all_that_were_due(skipped, level):
    assert found(sent=7600 - skipped, skipped=skipped)["packets_missed", "front"][0] == level


def test_few_packets_of_a_slow_stream_are_no_share():
    assert found(sent=2, dropped=5, late=5)["packets_missed", "front"][0] == "degraded"


def test_packets_that_the_kernel_refused_are_reported_by_error_with_a_hint():
    found_now = found(**{"sent": 1130, "refused EAGAIN": 6400, "refused EPERM": 2})
    text = "6402 of 7532 packets refused by the kernel: 6400 EAGAIN, the link is slower than the stream, 2 EPERM in the last 10 s"
    assert found_now == {("send_refused", "front"): ("unhealthy", text)}


def test_packets_sent_after_the_late_limit_are_degraded_however_many():
    assert found(late=7000) == {
        ("packets_late", "front"): ("degraded", "of 7530 packets 7000 sent after the late limit in the last 10 s"),
    }


@pytest.mark.parametrize(("behind", "faults"), [(7, set()), (8, {("packets_late", "front")})])
def test_packets_rendered_after_they_were_due_are_a_fault_above_a_thousandth(behind, faults):
    assert found(underrun=behind, rendered_late=behind).keys() == faults


def test_late_and_missing_packets_together_are_one_fault():
    assert found(dropped=9, late=9, underrun=900).keys() == {("packets_missed", "front")}


def test_a_full_queue_is_a_fault_of_its_interface_and_not_reported_twice():
    assert found(("eth0", "queue sent", 840), ("eth0", "queue dropped", 6700), ("daemon", "UDP refused", 6700), ("daemon", "UDP sent", 800)) == {
        ("queue_dropped", "eth0"): ("unhealthy", "6700 of 7540 packets of all programs dropped: 6700 by the queue, 0 by the driver in the last 10 s")
    }


def test_drops_where_no_queue_was_seen_are_udps():
    assert found(("daemon", "UDP refused", 6700), ("daemon", "UDP sent", 830)) == {
        ("udp_dropped", "daemon"): ("unhealthy", "6700 of 7530 datagrams of all programs dropped by a full queue in the last 10 s")
    }


def test_refusals_that_sockets_reported_are_not_reported_again():
    assert found(("daemon", "UDP refused", 6403), ("daemon", "UDP sent", 1130), **{"sent": 1130, "refused EAGAIN": 6400}).keys() == {
        ("send_refused", "front")
    }


def test_a_queue_that_was_replaced_takes_its_last_counts_with_it_and_that_is_no_fault_of_its_own():
    assert found(("eth0", "queue sent", 97), ("eth0", "queue dropped", 400), ("daemon", "UDP refused", 427), ("daemon", "UDP sent", 97)).keys() == {
        ("queue_dropped", "eth0")
    }


def test_errors_that_the_kernel_also_counts_as_udps_are_not_reported_twice():
    assert found(("daemon", "UDP refused", 2693), ("daemon", "UDP sent", 6460), **{"refused ENETUNREACH": 2692}).keys() == {("send_refused", "front")}


def test_a_few_refusals_do_not_hide_the_drops_of_a_queue_that_is_not_seen():
    assert found(("daemon", "UDP refused", 6700), ("daemon", "UDP sent", 830), **{"refused EPERM": 3}).keys() == {
        ("send_refused", "front"),
        ("udp_dropped", "daemon"),
    }


@pytest.mark.parametrize(("drops", "levels"), [(5, []), (20, ["degraded"]), (200, ["unhealthy"])])
def test_drops_of_a_busy_interface_count_against_all_that_went_through_it(drops, levels):
    assert [level for level, _ in found(("eth0", "queue sent", 10_000), ("eth0", "queue dropped", drops)).values()] == levels


def test_drops_of_a_driver_count_too():
    assert found(("eth0", "queue sent", 10_000), ("eth0", "driver dropped", 20))["queue_dropped", "eth0"][0] == "degraded"


def test_packets_missing_from_a_recording_that_runs_are_degraded():
    running, ended = (Reading(recording=RecordingReading(running=running, recorded_packets=100, unrecorded_packets=4)) for running in (True, False))
    assert found(("daemon", "unrecorded", 4), reading=running) == {
        ("recording_incomplete", "daemon"): ("degraded", "4 packets are missing from the recording in the last 10 s")
    }
    assert found(("daemon", "unrecorded", 4), reading=ended) == {}


def test_packets_that_a_slow_follower_lost_are_degraded():
    reading = Reading(packet_streams=PacketStreamReading(sent_packets=90, lost_packets={StreamLoss.SLOW_CLIENT: 8, StreamLoss.QUEUE_FULL: 2}))
    text = "programs that follow the packets, such as a view, did not get 10 of 100: they read too slowly in the last 10 s"
    assert [(fault.key, fault.level, fault.text) for fault in judge(own_counters(reading), reading)] == [("follower_slow", Level.DEGRADED, text)]


@pytest.mark.parametrize(("offset_s", "keys"), [(0.0, []), (0.0009, []), (-0.5, ["clock_stepped"]), (3600.0, ["clock_stepped"])])
def test_utc_that_was_stepped_is_degraded(offset_s, keys):
    faults = judged(Reading(utc_offset_s=offset_s))
    assert [fault.key for fault in faults] == keys
    assert all(f"{offset_s:+.3f} s" in fault.text and fault.level is Level.DEGRADED for fault in faults)


def test_counters_are_taken_from_a_reading():
    reading = make_reading(("front", "rear"))
    own, kernel = own_counters(reading), kernel_counters(reading)
    assert own[Count("front", "sent")] == 2 * 753
    assert own[Count("rear", "refused ENETUNREACH")] == 8
    assert (own[Count("front", "skipped")], own[Count("front", "ring full")], own[Count("front", "rendered late")]) == (5, 8, 3)
    assert own[Count("daemon", "unrecorded")] == 7
    assert kernel == {
        Count("daemon", "UDP sent"): 2000,
        Count("daemon", "UDP refused"): 7,
        Count("eth0", "queue sent"): 1506,
        Count("eth0", "queue dropped"): 11,
        Count("eth0", "driver dropped"): 2,
    }
    assert kernel_counters(Reading()) == {}


def test_cycles_that_a_rover_left_out_are_counted_against_all_that_were_due():
    reading = Reading(
        parts={
            "rover": (
                RoverReading(
                    name="digger",
                    cycles=98,
                    late_cycles=1,
                    empty_cycles=1,
                    obeyed_commands=0,
                    refused_commands=0,
                    waiting_scans=3,
                    passes=0,
                    damaged_lines=0,
                ),
            )
        }
    )
    [fault] = judge(own_counters(reading), reading)
    assert (fault.key, fault.subject, fault.level) == ("cycles_missed", "digger", Level.DEGRADED)
    assert fault.text == "2 of 100 cycles missing: 1 begun too late, 1 without a scan in the last 10 s"


@pytest.mark.parametrize(
    ("scans", "skipped", "told"), [(200, 0, []), (199, 1, [("scans_missed", "degraded")]), (150, 50, [("scans_missed", "unhealthy")]), (0, 9, [])]
)
def test_scans_that_gazebos_subscribers_did_not_get_are_reported_while_there_are_any(scans, skipped, told):
    reading = Reading(parts={"gazebo": (GazeboReading(name="cart::base::top", scans=scans, messages=2 * scans, skipped_scans=skipped),)})
    assert [(fault.key, fault.level) for fault in judge(own_counters(reading), reading)] == told


FLIGHT_LINK_TEXTS = {
    "sensor_frames_skipped": "6 of 2500 sensor frames skipped, because the machine stalled in the last 10 s",
    "frames_unforwarded": "1 frames of the flight controller not forwarded to ground stations in the last 10 s",
    "controller_silent": "motor commands stopped for 0.2 s or longer, 2 times in the last 10 s",
}


@pytest.mark.parametrize(
    ("grown", "keys"),
    [
        ({}, []),
        ({"skipped_frames": 5}, []),
        ({"skipped_frames": 6}, ["sensor_frames_skipped"]),
        ({"unforwarded_frames": 1}, ["frames_unforwarded"]),
        ({"silences": 2}, ["controller_silent"]),
        ({"skipped_frames": 6, "silences": 2, "state": ""}, []),
    ],
)
def test_a_flight_controller_that_is_badly_served_or_silent_is_degraded_and_a_vehicle_that_flies_itself_is_not(grown, keys):
    counters = {"skipped_frames": 0, "unforwarded_frames": 0, "silences": 0, "sensor_frames": 2494}
    reading = Reading(parts={"vehicle": (make_vehicle(**(counters | grown)),)})
    faults = judge(own_counters(reading), reading)
    assert [(fault.key, fault.subject, fault.level, fault.text) for fault in faults] == [
        (key, "vehicle", Level.DEGRADED, FLIGHT_LINK_TEXTS[key]) for key in keys
    ]


def test_keys_that_are_judged_are_known():
    assert set(FAULTS) >= JUDGED


def test_the_worst_fault_is_the_level():
    assert (worst_level(()), worst_level((LATE,)), worst_level((SILENT, LATE))) == (Level.HEALTHY, Level.DEGRADED, Level.UNHEALTHY)


def test_a_fault_is_reported_with_its_subject_unless_that_is_the_daemon():
    assert SILENT.sentence == "front: no data packet for 2.0 s"
    assert Fault(key="loop_ended", text="the sending loop has ended").sentence == "the sending loop has ended"


@pytest.mark.parametrize(
    ("wrong", "message"), [({"key": "tired"}, "fault key must be one of"), ({"level": Level.HEALTHY}, "must be degraded or unhealthy, got healthy")]
)
def test_a_fault_that_is_none_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Fault(**({"key": "loop_ended", "text": "x"} | wrong))
