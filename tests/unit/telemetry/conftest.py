"""Invented readings: numbers a person can check by eye."""

import pytest

from hilsim.parts.vehicle.reading import StationReading, VehicleReading
from hilsim.telemetry.faults import Fault, Level
from hilsim.telemetry.metrics import LATENCY_BOUNDS_S, LINK_BOUNDS_S, TIMING_BOUNDS_S, HistogramReading
from hilsim.telemetry.readings import FlowReading, Reading, RecordingReading, SensorReading, SerialDeviceReading
from hilsim.transmit.kernel_drops import InterfaceCounters, KernelDrops

SILENT = Fault(key="sensor_silent", subject="front", text="no data packet for 2.0 s")
LATE = Fault(key="packets_late", subject="front", text="of 7530 packets 9 sent after the late limit in the last 10 s", level=Level.DEGRADED)


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
        "silenced_packets": 0,
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
        "render_late_packets": 3,
        "render_skipped_packets": 5,
        "render_ring_full_packets": 8,
        "render": rising(TIMING_BOUNDS_S, 7, 0.0021),
    }
    return SensorReading(sensor=sensor, **(values | changes))


def make_vehicle(**changes):
    values = {
        "state": "flying",
        "changes": 3,
        "losses": 1,
        "sensor_rate_hz": 250.0,
        "sent_frames": 5210,
        "sent_bytes": 390_000,
        "received_frames": 4005,
        "received_bytes": 360_000,
        "garbage_bytes": 17,
        "sensor_frames": 5000,
        "actuator_frames": 3900,
        "replaced_frames": 4,
        "skipped_frames": 6,
        "stalls": 2,
        "lockstep_timeouts": 0,
        "unforwarded_frames": 0,
        "refused_frames": 8,
        "obstacle_frames": 35,
        "unsent_obstacle_frames": 2,
        "untaken_obstacle_frames": 1,
        "lateness": rising(LINK_BOUNDS_S, 9, 0.0009),
        "round_trip": rising(LINK_BOUNDS_S, 7, 0.014),
        "actuator_gap": rising(LINK_BOUNDS_S, 8, 0.04),
        "is_armed": True,
        "is_crashed": False,
        "broken_rotors": 2,
        "height_m": 5.0,
        "stations": (
            StationReading(
                station="udp 127.0.0.1:14550",
                peers=1,
                sent_frames=105,
                dropped_frames=2,
                refused_frames=3,
                received_frames=44,
                unsent_frames=5,
            ),
        ),
    }
    return VehicleReading(**(values | changes))


def make_reading(sensors=("front",), **changes):
    """What a rig of healthy sensors, each with a data and a position flow, would tell."""
    values = {
        "flows": tuple(
            flow
            for sensor in sensors
            for flow in (make_flow(sensor), make_flow(sensor, "position", sent_bytes=753 * 512, last_sent_age_s=None, pose_to_wire=None))
        ),
        "sensors": tuple(make_sensor(sensor) for sensor in sensors),
        "scheduling": {"transmit": "fifo", "render thread": "plain"},
        "loop_turn_age_s": 0.0004,
        "memory_locked": True,
        "recording": RecordingReading(running=True, recorded_packets=1490, unrecorded_packets=7),
        "parts": {"vehicle": (make_vehicle(),)},
        "drops": KernelDrops(
            udp_sent=2000,
            udp_refused=7,
            interfaces=(InterfaceCounters(interface="eth0", queue_packets=1506, queue_drops=11, driver_drops=2),),
        ),
        "utc_offset_s": 0.25,
        "serial_devices": (SerialDeviceReading(device="tfmini", is_open=True, sent_frames=512, dropped_frames=3),),
    }
    return Reading(**(values | changes))


@pytest.fixture
def reading():
    """The maker of readings."""
    return make_reading
