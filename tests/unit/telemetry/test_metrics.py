"""The declarations, and the families a registry makes of them."""

import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Annotated

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from hilsim.telemetry.collector import build_registry
from hilsim.telemetry.metrics import TIMING_BOUNDS_S, UNITS, Label, Metric, counted, counter, declared_metrics, state
from hilsim.telemetry.readings import METRICS, RecordingReading, part_metrics
from tests.unit.telemetry.conftest import LATE, SILENT

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md"


@pytest.fixture
def registry(reading):
    return build_registry(reading)


@pytest.mark.parametrize("metric", [*METRICS, *part_metrics()], ids=lambda metric: metric.name)
def test_every_name_reads_hilsim_thing_unit(metric):
    if metric.kind in ("state", "info"):
        assert re.fullmatch(r"hilsim(_[a-z]+)+", metric.name)
    else:
        assert re.fullmatch(rf"hilsim(_[a-z]+)*_({'|'.join(UNITS)})(_total)?", metric.name)


@pytest.mark.parametrize("metric", [*METRICS, *part_metrics()], ids=lambda metric: metric.name)
def test_labels_come_from_the_rig_or_from_a_closed_set(metric):
    from_rig, closed = (
        {"sensor", "flow", "thread", "station", "device", "rover", "lidar", "subject", "interface"},
        {
            "mode",
            "backend",
            "errno",
            "kind",
            "effect",
            "model",
            "return_mode",
            "state",
            "level",
            "fault",
            "reason",
            "axis",
            "angle",
            "version",
            "python",
            "numba",
        },
    )
    assert set(metric.labels) <= from_rig | closed


def test_timing_is_distinguished_from_10_us_to_10_ms():
    assert (TIMING_BOUNDS_S[0], TIMING_BOUNDS_S[-1]) == (10e-6, 10e-3)
    assert sum(bound <= 1e-3 for bound in TIMING_BOUNDS_S) >= 10


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"name": "sent_packets_total", "kind": "counter"}, "must start with hilsim_, got sent_packets_total"),
        ({"name": "hilsim_sent_packets", "kind": "counter"}, "hilsim_sent_packets must end with _total if and only if it is a counter"),
        ({"name": "hilsim_lateness_ms", "kind": "gauge"}, "hilsim_lateness_ms must end with one of the units seconds, bytes"),
        ({"name": "hilsim_lateness_seconds", "kind": "histogram"}, "hilsim_lateness_seconds must have bounds"),
        ({"name": "hilsim_x_seconds", "kind": "histogram", "bounds_s": (2.0, 1.0)}, "bounds of hilsim_x_seconds must rise"),
        ({"name": "hilsim_x_seconds", "kind": "gauge", "help": "Stops."}, "must be a sentence without its full stop"),
    ],
)
def test_a_wrong_declaration_is_refused(wrong, fault):
    with pytest.raises(ValueError, match=fault):
        Metric(**({"help": "Something"} | wrong))


def test_no_metric_is_declared_twice():
    names = [metric.name for metric in (*METRICS, *part_metrics())]
    assert len(names) == len(set(names))


def test_a_field_declares_its_metric_and_fields_of_text_its_labels():
    @dataclass(frozen=True)
    class Inner:
        part: Annotated[str, Label("part")]
        turns: Annotated[int, counter("hilsim_turns_changes_total", "Turns")]
        note: str = "no metric"

    @dataclass(frozen=True)
    class Outer:
        inner: tuple[Inner, ...]
        is_on: Annotated[bool, state("hilsim_on", "1 while it is on")]

    assert [(metric.name, metric.labels) for metric in declared_metrics(Outer)] == [("hilsim_turns_changes_total", ("part",)), ("hilsim_on", ())]


def test_a_field_that_names_a_column_takes_its_value():
    class Word(IntEnum):
        SEEN = 1

    @dataclass
    class Sight:
        name: str
        seen: Annotated[int, counter("hilsim_seen_packets_total", "Seen"), Word.SEEN]

    assert Sight(name="a", **counted(Sight, (Word, [4, 7]))).seen == 7
    with pytest.raises(KeyError):
        counted(Sight)


def test_the_registry_exports_exactly_what_is_declared(registry):
    exported = {family.name: family for family in registry.collect() if family.name.startswith("hilsim_")}
    declared = {metric.name.removesuffix("_total").removesuffix("_info"): metric for metric in (*METRICS, *part_metrics())}
    assert exported.keys() == declared.keys()
    for name, metric in declared.items():
        assert (exported[name].documentation, exported[name].unit) == (metric.help, metric.unit)


def test_every_sample_carries_the_declared_labels(registry):
    by_prefix = {metric.name: set(metric.labels) for metric in (*METRICS, *part_metrics())}
    for family in registry.collect():
        for sample in family.samples:
            name = re.sub(r"_(bucket|count|sum)$", "", sample.name)
            if name in by_prefix:
                assert set(sample.labels) - {"le"} == by_prefix[name]


def test_counters_and_gauges_carry_the_reading(registry):
    data = {"sensor": "front", "flow": "data"}
    assert registry.get_sample_value("hilsim_sent_packets_total", data) == 753
    assert registry.get_sample_value("hilsim_sent_bytes_total", data) == 753 * 1206
    assert registry.get_sample_value("hilsim_late_packets_total", data) == 2
    assert registry.get_sample_value("hilsim_dropped_packets_total", data) == 1
    assert registry.get_sample_value("hilsim_underrun_packets_total", data) == 6
    assert registry.get_sample_value("hilsim_early_packets_total", data) == 0
    assert registry.get_sample_value("hilsim_lateness_max_seconds", data) == 0.0031
    assert registry.get_sample_value("hilsim_loop_turn_age_seconds") == 0.0004
    assert registry.get_sample_value("hilsim_send_errors_total", data | {"errno": "ENETUNREACH"}) == 4
    assert registry.get_sample_value("hilsim_ring_depth_packets", data) == 15
    assert registry.get_sample_value("hilsim_ring_capacity_packets", data) == 128
    assert registry.get_sample_value("hilsim_last_packet_age_seconds", data) == 0.0008
    assert registry.get_sample_value("hilsim_render_late_packets_total", {"sensor": "front"}) == 3
    assert registry.get_sample_value("hilsim_render_skipped_packets_total", {"sensor": "front"}) == 5
    assert registry.get_sample_value("hilsim_render_ring_full_packets_total", {"sensor": "front"}) == 8
    assert registry.get_sample_value("hilsim_device_clock_offset_seconds", {"sensor": "front"}) == -0.000125
    assert registry.get_sample_value("hilsim_rotation_rate_hertz", {"sensor": "front"}) == 10
    assert registry.get_sample_value("hilsim_sensor_info", {"sensor": "front", "model": "vlp16", "return_mode": "strongest"}) == 1
    assert registry.get_sample_value("hilsim_memory_locked") == 1
    assert registry.get_sample_value("hilsim_recording") == 1
    assert registry.get_sample_value("hilsim_recorded_packets_total") == 1490
    assert registry.get_sample_value("hilsim_unrecorded_packets_total") == 7


def test_a_failed_recording_is_zero_and_one_that_was_not_requested_is_absent(reading):
    failed = RecordingReading(running=False, recorded_packets=5, unrecorded_packets=9)
    assert build_registry(lambda: reading(recording=failed)).get_sample_value("hilsim_recording") == 0
    assert build_registry(lambda: reading(recording=None)).get_sample_value("hilsim_recording") is None


def test_the_link_of_a_vehicle_carries_the_reading(registry):
    value = registry.get_sample_value
    states = {state: value("hilsim_link_state", {"state": state}) for state in ("unplugged", "calling", "refused", "flying")}
    assert states == {"unplugged": 0, "calling": 0, "refused": 0, "flying": 1}
    assert (value("hilsim_link_changes_total"), value("hilsim_link_losses_total"), value("hilsim_link_sensor_rate_hertz")) == (3, 1, 250)
    assert (value("hilsim_link_sent_frames_total"), value("hilsim_link_sent_bytes_total")) == (5210, 390_000)
    assert (value("hilsim_link_received_frames_total"), value("hilsim_link_received_bytes_total")) == (4005, 360_000)
    assert (value("hilsim_link_garbage_bytes_total"), value("hilsim_link_sensor_frames_total")) == (17, 5000)
    assert (value("hilsim_link_actuator_frames_total"), value("hilsim_link_replaced_frames_total")) == (3900, 4)
    assert (value("hilsim_link_skipped_frames_total"), value("hilsim_link_stalls_total")) == (6, 2)
    assert (value("hilsim_link_lockstep_timeouts_total"), value("hilsim_link_unforwarded_frames_total")) == (0, 0)
    assert (value("hilsim_link_lateness_seconds_count"), value("hilsim_link_lateness_seconds_sum")) == (9, 0.0009)
    assert value("hilsim_link_lateness_seconds_bucket", {"le": "0.0002"}) == 3
    assert (value("hilsim_link_round_trip_seconds_count"), value("hilsim_link_actuator_gap_seconds_count")) == (7, 8)
    assert (value("hilsim_vehicle_armed"), value("hilsim_vehicle_crashed"), value("hilsim_vehicle_broken_rotors")) == (1, 0, 2)


def test_range_sensors_carry_the_reading(registry):
    names = ("open", "sent_frames_total", "dropped_frames_total")
    assert [registry.get_sample_value(f"hilsim_serial_device_{name}", {"device": "tfmini"}) for name in names] == [1, 512, 3]
    frames = ("obstacle", "unsent_obstacle", "refused")
    assert [registry.get_sample_value(f"hilsim_link_{name}_frames_total") for name in frames] == [35, 2, 8]


def test_ports_for_ground_stations_carry_the_reading(registry):
    names = ("peers", "sent_frames_total", "dropped_frames_total", "refused_frames_total", "received_frames_total", "unsent_frames_total")
    found = [registry.get_sample_value(f"hilsim_ground_station_{name}", {"station": "udp 127.0.0.1:14550"}) for name in names]
    assert found == [1, 105, 2, 3, 44, 5]


def test_a_rig_without_a_vehicle_says_nothing_of_one_and_one_that_steers_itself_nothing_of_a_session(reading):
    without = build_registry(lambda: reading(parts={}))
    assert without.get_sample_value("hilsim_link_losses_total") is None
    assert without.get_sample_value("hilsim_link_lateness_seconds_count") is None
    held = build_registry(lambda: reading(parts={"vehicle": (replace(reading().parts["vehicle"][0], state=""),)}))
    assert held.get_sample_value("hilsim_link_state", {"state": "unplugged"}) is None


def test_a_histogram_carries_cumulative_buckets_count_and_sum(registry):
    data = {"sensor": "front", "flow": "data"}
    assert registry.get_sample_value("hilsim_lateness_seconds_bucket", data | {"le": "1e-05"}) == 1
    assert registry.get_sample_value("hilsim_lateness_seconds_bucket", data | {"le": "5e-05"}) == 4
    assert registry.get_sample_value("hilsim_lateness_seconds_bucket", data | {"le": "+Inf"}) == 9
    assert registry.get_sample_value("hilsim_lateness_seconds_count", data) == 9
    assert registry.get_sample_value("hilsim_lateness_seconds_sum", data) == 0.00025


def test_a_metric_without_a_value_is_omitted_and_not_zero(registry):
    position = {"sensor": "front", "flow": "position"}
    assert registry.get_sample_value("hilsim_last_packet_age_seconds", position) is None
    assert registry.get_sample_value("hilsim_pose_to_wire_seconds_count", position) is None
    assert registry.get_sample_value("hilsim_sent_packets_total", position) == 753


def test_the_scheduling_mode_obtained_is_the_only_one_set(registry):
    modes = {mode: registry.get_sample_value("hilsim_scheduling_mode", {"thread": "transmit", "mode": mode}) for mode in ("fifo", "slice", "plain")}
    assert modes == {"fifo": 1, "slice": 0, "plain": 0}


@pytest.mark.parametrize(
    ("faults", "healthy", "level"), [((), 1, "healthy"), ((LATE,), 0, "degraded"), ((LATE, SILENT), 0, "unhealthy")], ids=["none", "late", "silent"]
)
def test_health_is_the_worst_fault(reading, faults, healthy, level):
    value = build_registry(lambda: reading(faults=faults)).get_sample_value
    assert value("hilsim_healthy") == healthy
    assert {name: value("hilsim_health_level", {"level": name}) for name in ("healthy", "degraded", "unhealthy")} == {
        name: float(name == level) for name in ("healthy", "degraded", "unhealthy")
    }


def test_each_fault_is_one_at_its_level_and_zero_at_the_other(reading):
    value = build_registry(lambda: reading(faults=(LATE,))).get_sample_value
    late = {"fault": "packets_late", "subject": "front"}
    assert [value("hilsim_fault_active", late | {"level": level}) for level in ("degraded", "unhealthy")] == [1, 0]
    assert value("hilsim_fault_active", {"fault": "sensor_silent", "subject": "front", "level": "unhealthy"}) is None


def test_what_the_kernel_lost_and_the_step_of_utc_carry_the_reading(registry):
    assert registry.get_sample_value("hilsim_udp_refused_packets_total") == 7
    assert registry.get_sample_value("hilsim_queue_dropped_packets_total", {"interface": "eth0"}) == 11
    assert registry.get_sample_value("hilsim_driver_dropped_packets_total", {"interface": "eth0"}) == 2
    assert registry.get_sample_value("hilsim_utc_offset_seconds") == 0.25


def test_a_registry_can_be_given_and_keeps_its_own_metrics(reading):
    mine = CollectorRegistry()
    assert build_registry(reading, registry=mine) is mine


def test_a_rig_is_not_read_before_the_first_scrape():
    def source():
        pytest.fail("read before a scrape")

    build_registry(source)


def test_the_process_is_described_too(registry):
    assert registry.get_sample_value("process_open_fds") > 0


def test_output_is_valid_openmetrics(registry):
    families = {family.name: family for family in parse_openmetrics(generate_openmetrics(registry).decode())}
    assert families["hilsim_lateness_seconds"].unit == "seconds"
    assert families["hilsim_build"].type == "info"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")
def test_promtool_finds_no_fault_in_the_output(registry):
    checked = subprocess.run(["promtool", "check", "metrics"], input=generate_latest(registry), capture_output=True, timeout=30, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
