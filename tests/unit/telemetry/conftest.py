"""Invented readings: numbers a person can check by eye."""

import pytest

from hilsim.telemetry.metrics import LATENCY_BOUNDS_S, TIMING_BOUNDS_S
from hilsim.telemetry.readings import FlowReading, HistogramReading, Reading, RecordingReading, SensorReading


def rising(bounds_s, count, sum_s):
    """A histogram whose ``count`` observations all lie at or below the last finite bound, one more in every bucket."""
    return HistogramReading(cumulative=(*(min(index + 1, count) for index in range(len(bounds_s))), count), sum_s=sum_s)


def make_flow(sensor, flow="data", **changes):
    values = {
        "sent_packets": 753,
        "sent_bytes": 753 * 1206,
        "late_packets": 2,
        "dropped_packets": 1,
        "underrun_packets": 6,
        "early_packets": 0,
        "lateness_max_s": 0.0031,
        "send_errors": {"ENETUNREACH": 4},
        "ring_depth_packets": 15,
        "ring_capacity_packets": 128,
        "last_sent_age_s": 0.0008,
        "lateness": rising(TIMING_BOUNDS_S, 9, 0.00025),
        "interval_error": rising(TIMING_BOUNDS_S, 8, 0.00012),
        "pose_to_wire": rising(LATENCY_BOUNDS_S, 9, 0.0152),
    }
    return FlowReading(sensor=sensor, flow=flow, **(values | changes))


def make_sensor(sensor, **changes):
    values = {
        "model": "vlp16",
        "return_mode": "strongest",
        "rotation_rate_hz": 10.0,
        "device_clock_offset_s": -0.000125,
        "feeder_late_packets": 3,
        "feeder_skipped_packets": 5,
        "feeder_unqueued_packets": 8,
        "render": rising(TIMING_BOUNDS_S, 7, 0.0021),
    }
    return SensorReading(sensor=sensor, **(values | changes))


def make_reading(sensors=("front",), **changes):
    """What a rig of healthy sensors, each with a data and a position flow, would tell."""
    values = {
        "flows": tuple(
            flow
            for sensor in sensors
            for flow in (make_flow(sensor), make_flow(sensor, "position", sent_bytes=753 * 512, last_sent_age_s=None, pose_to_wire=None))
        ),
        "sensors": tuple(make_sensor(sensor) for sensor in sensors),
        "scheduling": {"transmit": "fifo", "feeder": "plain"},
        "loop_turn_age_s": 0.0004,
        "memory_locked": True,
        "recording": RecordingReading(running=True, recorded_packets=1490, unrecorded_packets=7),
    }
    return Reading(**(values | changes))


@pytest.fixture
def reading():
    """The maker of readings."""
    return make_reading
