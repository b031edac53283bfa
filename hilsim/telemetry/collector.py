"""Turns one reading of the daemon into Prometheus families, at the moment of a scrape and not before: counting costs the packet path nothing."""

import math
import platform
from collections.abc import Iterable, Iterator

import numba
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

import hilsim
from hilsim.geometry.frames import Vector
from hilsim.telemetry import metrics as m
from hilsim.telemetry.faults import Level
from hilsim.telemetry.readings import (
    CommandCounts,
    FlowReading,
    HistogramReading,
    MetricsSource,
    RangerReading,
    Reading,
    RecordingReading,
    ReplayReading,
    SensorReading,
    StationReading,
    VehicleReading,
)
from hilsim.transmit.kernel_drops import KernelDrops

_LE = {metric: (*map(floatToGoString, metric.bounds_s), "+Inf") for metric in m.METRICS if metric.kind == "histogram"}

_LINK_FIGURES: dict[m.Metric, str] = {
    m.LINK_CHANGES: "changes",
    m.LINK_LOSSES: "losses",
    m.LINK_SENSOR_RATE: "sensor_rate_hz",
    m.LINK_SENT: "sent_frames",
    m.LINK_SENT_BYTES: "sent_bytes",
    m.LINK_RECEIVED: "received_frames",
    m.LINK_RECEIVED_BYTES: "received_bytes",
    m.LINK_GARBAGE_BYTES: "garbage_bytes",
    m.LINK_SENSORS: "sensor_frames",
    m.LINK_ACTUATORS: "actuator_frames",
    m.LINK_REPLACED: "replaced_frames",
    m.LINK_SKIPPED: "skipped_frames",
    m.LINK_STALLS: "stalls",
    m.LINK_LOCKSTEP_TIMEOUTS: "lockstep_timeouts",
    m.LINK_UNFORWARDED: "unforwarded_frames",
    m.LINK_OBSERVATIONS: "observation_frames",
    m.VEHICLE_ARMED: "is_armed",
    m.VEHICLE_CRASHED: "is_crashed",
    m.LINK_SILENCES: "silences",
    m.VEHICLE_CONTACTS: "contacts",
    m.VEHICLE_TOUCHING: "is_touching",
    m.VEHICLE_READY: "is_ready",
}
"""Fields of ``VehicleReading`` by their metric."""

Labels = tuple[str, ...]
_ENU: Labels = ("east", "north", "up")
_BODY: Labels = ("forward", "left", "up")
_ANGLES: Labels = ("roll", "pitch", "yaw")
Row = tuple[Labels, float | None]
HistogramRow = tuple[Labels, HistogramReading | None]


class HilsimCollector(Collector):
    """Every family of ``hilsim.telemetry.metrics``, read from ``source`` at each scrape."""

    def __init__(self, source: MetricsSource) -> None:
        self._source = source

    def describe(self) -> Iterable[Family]:
        """The families without samples, so that a registry need not scrape to know their names."""
        return [_family(metric) for metric in m.METRICS]

    def collect(self) -> Iterator[Family]:
        """The families of one reading, in the order of their declaration."""
        reading = self._source()
        yield from _flow_families(reading.flows)
        yield from _sensor_families(reading.sensors)
        yield from _recording_families(reading.recording)
        yield from _command_families(reading.commands)
        yield from _replay_families(reading.replays)
        yield from _vehicle_families(reading.vehicle)
        yield from _ranger_families(reading.rangers)
        yield from _daemon_families(reading)


def build_registry(source: MetricsSource, *, registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """A registry with hilsim's families and those of the process (CPU, memory, open files); a new one unless given."""
    target = CollectorRegistry() if registry is None else registry
    target.register(HilsimCollector(source))
    ProcessCollector(registry=target)
    return target


def _flow_families(flows: tuple[FlowReading, ...]) -> Iterator[Family]:
    keys = [(flow.sensor, flow.flow) for flow in flows]
    yield _plain(m.SENT, zip(keys, [flow.sent_packets for flow in flows], strict=True))
    yield _plain(m.SENT_BYTES, zip(keys, [flow.sent_bytes for flow in flows], strict=True))
    yield _plain(m.LATE, zip(keys, [flow.late_packets for flow in flows], strict=True))
    yield _plain(m.DROPPED, zip(keys, [flow.dropped_packets for flow in flows], strict=True))
    yield _plain(m.UNDERRUN, zip(keys, [flow.underrun_packets for flow in flows], strict=True))
    yield _plain(m.EARLY, zip(keys, [flow.early_packets for flow in flows], strict=True))
    yield _plain(m.SEND_ERRORS, [((*key, errno), count) for key, flow in zip(keys, flows, strict=True) for errno, count in flow.send_errors.items()])
    yield _histogram(m.LATENESS, zip(keys, [flow.lateness for flow in flows], strict=True))
    yield _plain(m.LATENESS_MAX, zip(keys, [flow.lateness_max_s for flow in flows], strict=True))
    yield _histogram(m.INTERVAL_ERROR, zip(keys, [flow.interval_error for flow in flows], strict=True))
    yield _histogram(m.POSE_TO_WIRE, zip(keys, [flow.pose_to_wire for flow in flows], strict=True))
    yield _plain(m.RING_DEPTH, zip(keys, [flow.ring_depth_packets for flow in flows], strict=True))
    yield _plain(m.RING_CAPACITY, zip(keys, [flow.ring_capacity_packets for flow in flows], strict=True))
    yield _plain(m.LAST_PACKET_AGE, zip(keys, [flow.last_sent_age_s for flow in flows], strict=True))


def _sensor_families(sensors: tuple[SensorReading, ...]) -> Iterator[Family]:
    keys = [(sensor.sensor,) for sensor in sensors]
    yield _histogram(m.RENDER, zip(keys, [sensor.render for sensor in sensors], strict=True))
    yield _plain(m.FEEDER_LATE, zip(keys, [sensor.feeder_late_packets for sensor in sensors], strict=True))
    yield _plain(m.FEEDER_SKIPPED, zip(keys, [sensor.feeder_skipped_packets for sensor in sensors], strict=True))
    yield _plain(m.FEEDER_UNQUEUED, zip(keys, [sensor.feeder_unqueued_packets for sensor in sensors], strict=True))
    yield _plain(m.FEEDER_LEAD, zip(keys, [sensor.feeder_lead_s for sensor in sensors], strict=True))
    yield _plain(m.RAYS_PER_BEAM, zip(keys, [sensor.rays_per_beam for sensor in sensors], strict=True))
    yield _plain(m.RAYS_PER_BEAM_WANTED, zip(keys, [sensor.wanted_rays_per_beam for sensor in sensors], strict=True))
    yield _plain(m.DEVICE_CLOCK_OFFSET, zip(keys, [sensor.device_clock_offset_s for sensor in sensors], strict=True))
    yield _plain(m.UNSAID_RETURNS, zip(keys, [sensor.unsaid_returns for sensor in sensors], strict=True))
    yield _plain(m.ROTATION_RATE, zip(keys, [sensor.rotation_rate_hz for sensor in sensors], strict=True))
    yield _info(m.SENSOR_INFO, [(sensor.sensor, sensor.model, sensor.return_mode) for sensor in sensors])


def _recording_families(recording: RecordingReading | None) -> Iterator[Family]:
    yield _plain(m.RECORDING, [((), float(recording.running) if recording else None)])
    yield _plain(m.RECORDED, [((), recording.recorded_packets if recording else None)])
    yield _plain(m.UNRECORDED, [((), recording.unrecorded_packets if recording else None)])


def _replay_families(replays: tuple[ReplayReading, ...]) -> Iterator[Family]:
    keys = [(replay.replay,) for replay in replays]
    yield _plain(m.REPLAY_POSITION, zip(keys, [replay.position_s for replay in replays], strict=True))
    yield _plain(m.REPLAY_PASSES, zip(keys, [replay.passes for replay in replays], strict=True))
    yield _plain(m.REPLAY_PLAYED, zip(keys, [replay.played_packets for replay in replays], strict=True))
    yield _plain(m.REPLAY_LATE, zip(keys, [replay.late_packets for replay in replays], strict=True))
    yield _plain(m.REPLAY_LOOKAHEAD, zip(keys, [replay.waiting_packets for replay in replays], strict=True))
    yield _plain(m.REPLAY_STARVATIONS, zip(keys, [replay.starvations for replay in replays], strict=True))
    yield _plain(m.REPLAY_POSTPONED, zip(keys, [replay.postponed_s for replay in replays], strict=True))
    yield _plain(m.REPLAY_PAUSED, zip(keys, [float(replay.is_paused) for replay in replays], strict=True))


def _vehicle_families(vehicle: VehicleReading | None) -> Iterator[Family]:
    found = [vehicle] if vehicle else []
    yield _plain(m.LINK_STATE, [((state,), float(state == one.state)) for one in found if one.state for state in m.SESSION_STATES])
    for metric, name in _LINK_FIGURES.items():
        yield _plain(metric, [((), float(getattr(one, name))) for one in found])
    yield _histogram(m.LINK_LATENESS, [((), one.lateness) for one in found])
    yield _histogram(m.LINK_ROUND_TRIP, [((), one.round_trip) for one in found])
    yield _histogram(m.LINK_ACTUATOR_GAP, [((), one.actuator_gap) for one in found])
    yield from _truth_families(found)
    yield from _station_families(vehicle.stations if vehicle else ())


def _truth_families(found: list[VehicleReading]) -> Iterator[Family]:
    """Where the vehicle is, and how far off its autopilot."""
    known = [(one, one.truth) for one in found if one.truth is not None]
    yield _plain(m.LINK_ACTUATOR_AGE, [((), one.actuator_age_s) for one in found])
    yield _plain(m.VEHICLE_HEIGHT, [((), one.height_m) for one in found if math.isfinite(one.height_m)])
    yield _plain(m.VEHICLE_TILT, [((), math.radians(truth.tilt_deg)) for _, truth in known])
    yield _vector(m.VEHICLE_POSITION, _ENU, [truth.position_m for _, truth in known])
    yield _vector(m.VEHICLE_VELOCITY, _ENU, [truth.velocity_mps for _, truth in known])
    yield _vector(m.VEHICLE_ATTITUDE, _ANGLES, [_radians(truth.roll_pitch_yaw_deg) for _, truth in known])
    yield _vector(m.VEHICLE_RATES, _BODY, [truth.rates_radps for _, truth in known])
    errors = [one.errors for one in found]
    yield _vector(m.ESTIMATE_POSITION, _ENU, [one.position_m for one in errors if one.position_m])
    yield _vector(m.ESTIMATE_VELOCITY, _ENU, [one.velocity_mps for one in errors if one.velocity_mps])
    yield _vector(m.ESTIMATE_ATTITUDE, _ANGLES, [_radians(one.attitude_deg) for one in errors if one.attitude_deg])


def _radians(angles_deg: Vector) -> Vector:
    roll, pitch, yaw = (math.radians(angle) for angle in angles_deg)
    return roll, pitch, yaw


def _vector(metric: m.Metric, names: Labels, vectors: Iterable[Vector]) -> Family:
    """A sample a part."""
    return _plain(metric, [((name,), part) for vector in vectors for name, part in zip(names, vector, strict=True)])


def _station_families(stations: tuple[StationReading, ...]) -> Iterator[Family]:
    keys = [(station.station,) for station in stations]
    yield _plain(m.STATION_PEERS, zip(keys, [station.peers for station in stations], strict=True))
    yield _plain(m.STATION_SENT, zip(keys, [station.sent_frames for station in stations], strict=True))
    yield _plain(m.STATION_DROPPED, zip(keys, [station.dropped_frames for station in stations], strict=True))
    yield _plain(m.STATION_RECEIVED, zip(keys, [station.received_frames for station in stations], strict=True))
    yield _plain(m.STATION_REFUSED, zip(keys, [station.refused_frames for station in stations], strict=True))
    yield _plain(m.STATION_UNSENT, zip(keys, [station.unsent_frames for station in stations], strict=True))


def _ranger_families(rangers: tuple[RangerReading, ...]) -> Iterator[Family]:
    keys = [(ranger.ranger,) for ranger in rangers]
    yield _plain(m.RANGER_OPEN, zip(keys, [float(ranger.is_open) for ranger in rangers], strict=True))
    yield _plain(m.RANGER_SENT, zip(keys, [ranger.sent_frames for ranger in rangers], strict=True))
    yield _plain(m.RANGER_DROPPED, zip(keys, [ranger.dropped_frames for ranger in rangers], strict=True))


def _command_families(commands: CommandCounts | None) -> Iterator[Family]:
    yield _plain(m.CONTROL_OBEYED, [((), commands.obeyed if commands else None)])
    yield _plain(m.CONTROL_REFUSED, [((reason.value,), count) for reason, count in commands.refused.items()] if commands else [])


def _daemon_families(reading: Reading) -> Iterator[Family]:
    modes = [
        ((thread, mode), float(mode == obtained))
        for thread, obtained in reading.scheduling.items()
        for mode in dict.fromkeys((*m.SCHEDULING_MODES, obtained))
    ]
    yield _plain(m.SCHEDULING_MODE, modes)
    yield _plain(m.LOOP_TURN_AGE, [((), reading.loop_turn_age_s)])
    yield _plain(m.MEMORY_LOCKED, [((), float(reading.memory_locked))])
    yield _plain(m.UTC_OFFSET, [((), reading.utc_offset_s)])
    yield from _drop_families(reading.drops)
    yield from _health_families(reading)
    yield _info(m.BUILD_INFO, [(hilsim.__version__, platform.python_version(), numba.__version__)])


def _drop_families(drops: KernelDrops | None) -> Iterator[Family]:
    interfaces = drops.interfaces if drops else ()
    keys = [(one.interface,) for one in interfaces]
    yield _plain(m.UDP_REFUSED, [((), drops.udp_refused if drops else None)])
    yield _plain(m.QUEUE_DROPPED, zip(keys, [one.queue_drops for one in interfaces], strict=True))
    yield _plain(m.DRIVER_DROPPED, zip(keys, [one.driver_drops for one in interfaces], strict=True))


def _health_families(reading: Reading) -> Iterator[Family]:
    yield _plain(m.HEALTHY, [((), float(reading.level is Level.HEALTHY))])
    yield _plain(m.HEALTH_LEVEL, [((level,), float(level == reading.level)) for level in m.LEVELS])
    active = [((*fault.identity, level), float(level == fault.level)) for fault in reading.faults for level in m.LEVELS[1:]]
    yield _plain(m.FAULT_ACTIVE, active)


def _family(metric: m.Metric) -> Family:
    kind = "gauge" if metric.kind == "state" else metric.kind
    return Family(metric.name.removesuffix("_total").removesuffix("_info"), metric.help, kind, metric.unit)


def _plain(metric: m.Metric, rows: Iterable[Row]) -> Family:
    """One sample a row; rows without a value are left out."""
    family = _family(metric)
    for labels, value in rows:
        if value is not None:
            family.add_sample(metric.name, dict(zip(metric.labels, labels, strict=True)), value)
    return family


def _info(metric: m.Metric, rows: Iterable[Labels]) -> Family:
    return _plain(metric, [(labels, 1.0) for labels in rows])


def _histogram(metric: m.Metric, rows: Iterable[HistogramRow]) -> Family:
    """Buckets, count and sum a row; rows without a histogram are left out.

    ``HistogramMetricFamily.add_metric`` zips each label set anew for every bucket.
    """
    family = _family(metric)
    bounds = _LE[metric]
    for labels, histogram in rows:
        if histogram is None:
            continue
        named = dict(zip(metric.labels, labels, strict=True))
        for bound, count in zip(bounds, histogram.cumulative, strict=True):
            family.add_sample(f"{metric.name}_bucket", {**named, "le": bound}, count)
        family.add_sample(f"{metric.name}_count", named, histogram.cumulative[-1])
        family.add_sample(f"{metric.name}_sum", named, histogram.sum_s)
    return family
