"""Health over time: invented readings, an invented clock, a list of log records."""

from dataclasses import replace

import pytest
import structlog
from structlog.testing import capture_logs

from hilsim.daemon.health import HealthMonitor, HealthReporter
from hilsim.telemetry.faults import Fault, Level
from hilsim.telemetry.readings import Reading
from hilsim.units import NS_PER_S
from tests.unit.telemetry.conftest import make_flow, make_sensor

RATE = 377  # packets of a VLP-16 in half a second


class Manager:
    """A service manager that stores its messages."""

    def __init__(self):
        self.said = []

    def status(self, text):
        self.said.append(text)


class Bench:
    """A daemon with one sensor, looked at twice a second."""

    def __init__(self):
        self.monitor, self.manager = HealthMonitor(), Manager()
        self.reporter = HealthReporter(self.monitor, self.manager, structlog.get_logger("hilsim"), lambda: "1 sensor(s) streaming")
        self.now_ns = 1_000 * NS_PER_S
        self.flow = make_flow("front", sent_packets=0, late_packets=0, dropped_packets=0, underrun_packets=0, send_errors={})
        self.sensor = make_sensor("front", render_late_packets=0, render_skipped_packets=0, render_ring_full_packets=0)

    def run(self, seconds, faults=lambda _second: (), notes=(), **per_step):
        """Look twice a second while counters of the flow grow by ``per_step`` each time; returns the last reading."""
        reading = None
        for step in range(round(2 * seconds)):
            self.now_ns += NS_PER_S // 2
            growth = {"sent_packets": RATE} | per_step
            self.flow = replace(self.flow, **{name: getattr(self.flow, name) + more for name, more in growth.items()})
            reading = Reading(flows=(self.flow,), sensors=(self.sensor,), faults=faults(step / 2))
            reading = self.reporter.step(self.monitor.complete(reading, self.now_ns), self.now_ns, notes)
        return reading


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def log():
    with capture_logs() as records:
        yield records


def events(log):
    return [record["event"] for record in log]


def test_a_stream_that_is_well_says_nothing(bench, log):
    reading = bench.run(120)
    assert (reading.level, reading.faults, log, bench.manager.said) == (Level.HEALTHY, (), [], [])


def test_a_loss_begins_once_and_ends_once_ten_seconds_later_with_its_duration(bench, log):
    bench.run(30)
    bench.run(3, dropped_packets=2, late_packets=2)
    assert bench.run(5).level is Level.DEGRADED
    assert bench.run(60).level is Level.HEALTHY
    assert events(log) == ["health.fault_began", "health.counters_recorded", "health.fault_ended", "health.restored"]
    began, _, ended, _ = log
    assert began == {
        "event": "health.fault_began",
        "log_level": "warning",
        "fault": "packets_missed",
        "subject": "front",
        "fault_level": "degraded",
        "text": "2 of 7542 packets missing: 2 too late to be sent in the last 10 s",
    }
    assert (ended["fault"], ended["subject"], ended["duration_s"]) == ("packets_missed", "front", 12.5)


def test_a_silence_whose_text_counts_seconds_is_logged_once(bench, log):
    def silent(second):
        return (Fault(key="sensor_silent", subject="front", text=f"no data packet for {1 + second:.1f} s"),)

    assert bench.run(60, silent).level is Level.UNHEALTHY
    bench.run(1)
    assert events(log) == ["health.fault_began", "health.counters_recorded", "health.fault_ended", "health.restored"]
    assert log[0]["log_level"] == "error"
    assert (log[2]["duration_s"], log[2]["text"]) == (60.0, "no data packet for 60.5 s")
    assert bench.manager.said[0] == "front: no data packet for 1.0 s"
    assert bench.manager.said[-1] == "1 sensor(s) streaming"
    assert len(bench.manager.said) == 7, "the service manager gets new figures each ten seconds"


def test_a_fault_that_gets_worse_says_so_once(bench, log):
    bench.run(10)
    bench.run(2, dropped_packets=1, late_packets=1)
    for _ in range(4):
        bench.run(2, dropped_packets=100, late_packets=100)
        bench.run(9)
    assert events(log).count("health.fault_worsened") == 1
    worsened = log[events(log).index("health.fault_worsened")]
    assert (worsened["fault"], worsened["fault_level"], worsened["log_level"]) == ("packets_missed", "unhealthy", "error")


def test_two_faults_begin_and_end_by_themselves(bench, log):
    silent = Fault(key="sensor_silent", subject="rear", text="no data packet for 1.5 s")
    bench.run(1)
    bench.run(2, lambda _second: (silent,), dropped_packets=1, late_packets=1)
    bench.run(20)
    told = [(record["event"], record["fault"]) for record in log if "fault" in record]
    assert told == [
        ("health.fault_began", "sensor_silent"),
        ("health.fault_began", "packets_missed"),
        ("health.fault_ended", "sensor_silent"),
        ("health.fault_ended", "packets_missed"),
    ]
    assert events(log).count("health.restored") == 1


def test_losses_before_the_first_reading_count(bench):
    assert bench.run(0.5, dropped_packets=1, late_packets=1).level is Level.DEGRADED


def test_a_reload_that_zeroes_counters_is_no_loss(bench, log):
    bench.run(20, underrun_packets=0)
    bench.flow = replace(bench.flow, sent_packets=0)
    assert bench.run(20).level is Level.HEALTHY
    assert log == []


def test_the_last_minute_is_recorded_when_a_fault_begins_and_can_be_read_later(bench, log):
    bench.run(120)
    bench.run(0.5, dropped_packets=9, late_packets=9)
    recorded = log[1]
    assert (recorded["event"], recorded["step_s"]) == ("health.counters_recorded", 5)
    assert recorded["counters"] == {"front sent": [3770] * 12, "front late": [0] * 11 + [9], "front dropped": [0] * 11 + [9]}
    bench.run(60)
    report = bench.monitor.report(bench.now_ns)
    assert report["counters"] == {"front sent": [3770] * 12}
    assert [(record["ago_s"], record["counters"]["front dropped"][-1]) for record in report["recorded"]] == [(60.0, 9)]
    assert report["recorded"][0]["faults"] == ["front: 9 of 7549 packets missing: 9 too late to be sent in the last 10 s"]


def test_faults_that_come_and_go_do_not_flood_the_log_with_records(bench, log):
    flickering = Fault(key="sensor_silent", subject="front", text="no data packet for 1.1 s")
    bench.run(60, lambda second: (flickering,) if second % 2 < 1 else ())
    assert events(log).count("health.counters_recorded") <= 6


def test_a_reading_contains_the_beginning_of_each_fault(bench):
    bench.run(10)
    bench.run(0.5, dropped_packets=1, late_packets=1)
    began_ns = bench.now_ns
    assert [fault.since_ns for fault in bench.run(5).faults] == [began_ns]


def test_a_monitor_that_is_no_longer_called_is_a_fault_itself(bench):
    bench.run(10)
    assert bench.monitor.complete(Reading(), bench.now_ns + 4 * NS_PER_S).faults == ()
    (fault,) = bench.monitor.complete(Reading(), bench.now_ns + 8 * NS_PER_S).faults
    assert (fault.key, fault.level, fault.text) == ("health_unwatched", Level.UNHEALTHY, "the counters were last checked 8 s ago")


def test_a_monitor_that_was_never_called_has_no_opinion():
    assert HealthMonitor().complete(Reading(), 10 * NS_PER_S).faults == ()


def test_a_note_is_logged_once_however_its_numbers_change(bench, log):
    bench.run(1, notes=(("drive", "3 packets read late"),))
    bench.run(1, notes=(("drive", "4 packets read late"), ("drive", "a gap")))
    assert [(record["event"], record["note"]) for record in log] == [("replay.noted", "3 packets read late"), ("replay.noted", "a gap")]
