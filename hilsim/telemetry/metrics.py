"""Every metric hilsim exports, declared once: name, kind, unit, labels, bounds and meaning.

Names read ``hilsim_<thing>_<unit>[_total]`` in base units; label values come from the rig alone (sensor, flow, thread), or from a set the code
closes (mode, errno, model). ``tests/unit/telemetry/test_metrics.py`` walks this table, ``docs/reference/metrics.md`` is written from it.
"""

from dataclasses import dataclass
from typing import Literal

from hilsim.autopilot.session import SessionState
from hilsim.errors import require
from hilsim.telemetry.faults import Level
from hilsim.transmit.scheduling import SchedulingMode

UNITS = (
    "seconds",
    "bytes",
    "packets",
    "errors",
    "hertz",
    "passes",
    "starvations",
    "returns",
    "rays",
    "frames",
    "stalls",
    "losses",
    "changes",
    "timeouts",
    "peers",
    "contacts",
    "silences",
    "commands",
    "meters",
    "meters_per_second",
    "radians",
    "radians_per_second",
)
"""Base units a name may end with; states (``STATE`` kind) and ``_info`` carry none."""

TIMING_BOUNDS_S = (10e-6, 20e-6, 30e-6, 50e-6, 75e-6, 100e-6, 150e-6, 200e-6, 300e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3)
"""10 us to 10 ms: a real unit's jitter is 4 to 40 us, a plain Linux scheduler's tail some milliseconds. The usual defaults start at 5 ms."""

LATENCY_BOUNDS_S = (0.5e-3, 1e-3, 2e-3, 3e-3, 5e-3, 7.5e-3, 10e-3, 15e-3, 20e-3, 30e-3, 50e-3, 100e-3)
"""0.5 to 100 ms: a VLP-16 packet alone spans 1.3 ms, and one rotation of delay is what hilsim must never have."""

LINK_BOUNDS_S = (50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 4e-3, 6e-3, 10e-3, 20e-3, 50e-3, 100e-3, 300e-3)
"""50 us to 300 ms: a controller wants its sensors within 4 ms, and calls one dead after 300 ms."""

SCHEDULING_MODES = tuple(mode.value for mode in SchedulingMode)
"""Best first: SCHED_FIFO; SCHED_OTHER with a short EEVDF slice; SCHED_OTHER as it is."""

Kind = Literal["counter", "gauge", "state", "histogram", "info"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric family.

    Attributes:
        name: As exported, with ``_total`` or ``_info``.
        kind: A ``state`` is a gauge that is 0 or 1.
        help: One sentence, no full stop.
        labels: Label names.
        bounds_s: Upper bounds of a histogram's buckets, in seconds, without the infinite one.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    bounds_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require(
            (self.name.startswith("hilsim_"), f"metric name must start with hilsim_, got {self.name}"),
            (self.name.endswith("_total") == (self.kind == "counter"), f"{self.name} must end with _total if and only if it is a counter"),
            (self.name.endswith("_info") == (self.kind == "info"), f"{self.name} must end with _info if and only if it is an info"),
            (self.kind in ("state", "info") or self.unit != "", f"{self.name} must end with one of the units {', '.join(UNITS)}"),
            (self.kind != "histogram" or len(self.bounds_s) > 0, f"{self.name} must have bounds"),
            (list(self.bounds_s) == sorted(set(self.bounds_s)), f"bounds of {self.name} must rise, got {self.bounds_s}"),
            (self.help != "" and not self.help.endswith("."), f"help of {self.name} must be a sentence without its full stop"),
        )

    @property
    def unit(self) -> str:
        """The unit the name ends with, empty for states and infos."""
        name = self.name.removesuffix("_total")
        return max((unit for unit in UNITS if name.endswith(f"_{unit}")), key=len, default="")


_FLOW = ("sensor", "flow")

SENT = Metric(name="hilsim_sent_packets_total", kind="counter", labels=_FLOW, help="Datagrams handed to the kernel")
SENT_BYTES = Metric(name="hilsim_sent_bytes_total", kind="counter", labels=_FLOW, help="UDP payload of the datagrams handed to the kernel")
LATE = Metric(
    name="hilsim_late_packets_total",
    kind="counter",
    labels=_FLOW,
    help="Datagrams that missed their deadline by more than the sending loop's limit, sent or not",
)
DROPPED = Metric(
    name="hilsim_dropped_packets_total",
    kind="counter",
    labels=_FLOW,
    help="Late datagrams that were not sent, for no burst may catch up",
)
UNDERRUN = Metric(
    name="hilsim_underrun_packets_total",
    kind="counter",
    labels=_FLOW,
    help="Datagrams that came into an empty ring after their deadline: their feeder was too slow",
)
EARLY = Metric(
    name="hilsim_early_packets_total", kind="counter", labels=_FLOW, help="Datagrams sent before their deadline: always 0, counted to show it"
)
SEND_ERRORS = Metric(
    name="hilsim_send_errors_total", kind="counter", labels=(*_FLOW, "errno"), help="Datagrams the kernel refused, by the name of the errno"
)
LATENESS = Metric(
    name="hilsim_lateness_seconds", kind="histogram", labels=_FLOW, bounds_s=TIMING_BOUNDS_S, help="Time a datagram was sent minus its deadline"
)
LATENESS_MAX = Metric(name="hilsim_lateness_max_seconds", kind="gauge", labels=_FLOW, help="The largest lateness since start")
INTERVAL_ERROR = Metric(
    name="hilsim_interval_error_seconds",
    kind="histogram",
    labels=_FLOW,
    bounds_s=TIMING_BOUNDS_S,
    help="Absolute difference between the interval of two datagrams and that of their deadlines",
)
POSE_TO_WIRE = Metric(
    name="hilsim_pose_to_wire_seconds",
    kind="histogram",
    labels=_FLOW,
    bounds_s=LATENCY_BOUNDS_S,
    help="Time a datagram was sent minus the time of the newest pose rendered into it",
)
RING_DEPTH = Metric(name="hilsim_ring_depth_packets", kind="gauge", labels=_FLOW, help="Datagrams rendered ahead and waiting in the ring")
RING_CAPACITY = Metric(name="hilsim_ring_capacity_packets", kind="gauge", labels=_FLOW, help="Datagrams the ring can hold")
LAST_PACKET_AGE = Metric(name="hilsim_last_packet_age_seconds", kind="gauge", labels=_FLOW, help="Time since the last datagram left")
RENDER = Metric(
    name="hilsim_render_seconds",
    kind="histogram",
    labels=("sensor",),
    bounds_s=TIMING_BOUNDS_S,
    help="Time the feeder took to render and encode what it then pushed into the ring",
)
FEEDER_LATE = Metric(
    name="hilsim_feeder_late_packets_total", kind="counter", labels=("sensor",), help="Datagrams the feeder finished after their deadline"
)
FEEDER_SKIPPED = Metric(
    name="hilsim_feeder_skipped_packets_total",
    kind="counter",
    labels=("sensor",),
    help="Datagrams never rendered, because they could not be in time",
)
FEEDER_UNQUEUED = Metric(
    name="hilsim_feeder_unqueued_packets_total", kind="counter", labels=("sensor",), help="Datagrams the ring had no room for until they were due"
)
FEEDER_LEAD = Metric(
    name="hilsim_feeder_lead_seconds", kind="gauge", labels=("sensor",), help="How long before its deadline a data packet is rendered"
)
RAYS_PER_BEAM = Metric(name="hilsim_beam_rays", kind="gauge", labels=("sensor",), help="Rays that sample the footprint of a beam now")
RAYS_PER_BEAM_WANTED = Metric(
    name="hilsim_beam_wanted_rays",
    kind="gauge",
    labels=("sensor",),
    help="Rays a beam that the rig asks for; more than hilsim_beam_rays where the machine cannot render them in time",
)
UNSAID_RETURNS = Metric(
    name="hilsim_unsaid_returns_total",
    kind="counter",
    labels=("sensor",),
    help="Returns sent as no return, because the packet format cannot say where they are",
)
DEVICE_CLOCK_OFFSET = Metric(
    name="hilsim_device_clock_offset_seconds", kind="gauge", labels=("sensor",), help="The sensor's own clock minus the rig's time"
)
ROTATION_RATE = Metric(name="hilsim_rotation_rate_hertz", kind="gauge", labels=("sensor",), help="Rotations a second of the sensor's head")
SENSOR_INFO = Metric(
    name="hilsim_sensor_info", kind="info", labels=("sensor", "model", "return_mode"), help="What each sensor stands in for, and how it reports"
)
_REPLAY = ("sensor",)
REPLAY_POSITION = Metric(
    name="hilsim_replay_position_seconds", kind="gauge", labels=_REPLAY, help="Capture time of what is played, from the capture's first packet"
)
REPLAY_PASSES = Metric(name="hilsim_replay_passes_total", kind="counter", labels=_REPLAY, help="Passes through the capture completed")
REPLAY_PLAYED = Metric(
    name="hilsim_replay_played_packets_total", kind="counter", labels=_REPLAY, help="Datagrams of the capture handed on to be sent"
)
REPLAY_LATE = Metric(
    name="hilsim_replay_late_packets_total", kind="counter", labels=_REPLAY, help="Datagrams of the capture read too late to be sent in time"
)
REPLAY_LOOKAHEAD = Metric(name="hilsim_replay_lookahead_packets", kind="gauge", labels=_REPLAY, help="Datagrams of the capture read ahead")
REPLAY_STARVATIONS = Metric(
    name="hilsim_replay_starvations_total", kind="counter", labels=_REPLAY, help="How often nothing was read ahead when it was needed"
)
REPLAY_POSTPONED = Metric(
    name="hilsim_replay_postponed_seconds",
    kind="gauge",
    labels=_REPLAY,
    help="By how much the replay is later than it was to be, because the host stood still or reading was too slow",
)
REPLAY_PAUSED = Metric(name="hilsim_replay_paused", kind="state", labels=_REPLAY, help="1 while the replay is held back")
SESSION_STATES = tuple(state.name.lower() for state in SessionState)
LINK_STATE = Metric(
    name="hilsim_link_state", kind="state", labels=("state",), help="1 for what the session with the flight controller is in, 0 for the others"
)
LINK_CHANGES = Metric(
    name="hilsim_link_changes_total", kind="counter", help="Changes of the session with the flight controller; the log has their reasons"
)
LINK_LOSSES = Metric(name="hilsim_link_losses_total", kind="counter", help="Times that the link was unplugged or closed by its other end")
LINK_SENSOR_RATE = Metric(
    name="hilsim_link_sensor_rate_hertz",
    kind="gauge",
    help="Sensor frames a second: as asked for, or what the line carries; 0 where it is too slow for any",
)
LINK_SENT = Metric(name="hilsim_link_sent_frames_total", kind="counter", help="Frames handed to the controller's link")
LINK_SENT_BYTES = Metric(name="hilsim_link_sent_bytes_total", kind="counter", help="Bytes handed to the controller's link")
LINK_RECEIVED = Metric(name="hilsim_link_received_frames_total", kind="counter", help="Frames that the controller sent")
LINK_RECEIVED_BYTES = Metric(name="hilsim_link_received_bytes_total", kind="counter", help="Bytes that the controller sent")
LINK_GARBAGE_BYTES = Metric(
    name="hilsim_link_garbage_bytes_total", kind="counter", help="Bytes that came and belong to no frame: noise, or pieces of frames"
)
LINK_SENSORS = Metric(name="hilsim_link_sensor_frames_total", kind="counter", help="HIL_SENSOR frames sent")
LINK_ACTUATORS = Metric(name="hilsim_link_actuator_frames_total", kind="counter", help="Motor commands received")
LINK_REPLACED = Metric(
    name="hilsim_link_replaced_frames_total", kind="counter", help="Sensor frames not sent, because the line was full until a newer one came"
)
LINK_SKIPPED = Metric(name="hilsim_link_skipped_frames_total", kind="counter", help="Sensor frames never made, because the machine stood still")
LINK_STALLS = Metric(name="hilsim_link_stalls_total", kind="counter", help="Times that the machine stood still and the vehicle with it")
LINK_LOCKSTEP_TIMEOUTS = Metric(
    name="hilsim_link_lockstep_timeouts_total", kind="counter", help="Times that a controller in lockstep did not answer within a second"
)
LINK_UNFORWARDED = Metric(
    name="hilsim_link_unforwarded_frames_total", kind="counter", help="Frames of the controller that no ground station got: the daemon was too slow"
)
LINK_OBSERVATIONS = Metric(
    name="hilsim_link_observation_frames_total", kind="counter", help="OBSTACLE_DISTANCE and DISTANCE_SENSOR frames passed to the controller's link"
)
LINK_LATENESS = Metric(
    name="hilsim_link_lateness_seconds", kind="histogram", bounds_s=LINK_BOUNDS_S, help="Time a sensor frame was written minus the time it was due"
)
LINK_ROUND_TRIP = Metric(
    name="hilsim_link_round_trip_seconds", kind="histogram", bounds_s=LINK_BOUNDS_S, help="From a sensor frame to the next motor command"
)
LINK_ACTUATOR_GAP = Metric(name="hilsim_link_actuator_gap_seconds", kind="histogram", bounds_s=LINK_BOUNDS_S, help="Between two motor commands")
VEHICLE_ARMED = Metric(name="hilsim_vehicle_armed", kind="state", help="1 while the controller has armed the motors")
VEHICLE_CRASHED = Metric(name="hilsim_vehicle_crashed", kind="state", help="1 when the vehicle has hit something and lies where it fell")
LINK_SILENCES = Metric(
    name="hilsim_link_silences_total", kind="counter", help="Times that motor commands stopped for 0.2 s, and the vehicle and its sensors with them"
)
LINK_ACTUATOR_AGE = Metric(name="hilsim_link_actuator_age_seconds", kind="gauge", help="Since the latest motor command; absent before the first")
VEHICLE_CONTACTS = Metric(
    name="hilsim_vehicle_contacts_total", kind="counter", help="Times that the vehicle has touched something beyond standing on its legs"
)
VEHICLE_TOUCHING = Metric(name="hilsim_vehicle_touching", kind="state", help="1 while such a contact goes on")
VEHICLE_READY = Metric(
    name="hilsim_vehicle_ready", kind="state", help="1 when the autopilot's estimator and home are as it wants them before it arms"
)
VEHICLE_HEIGHT = Metric(name="hilsim_vehicle_height_meters", kind="gauge", help="Of the true centre of mass above the ground under it")
VEHICLE_TILT = Metric(name="hilsim_vehicle_tilt_radians", kind="gauge", help="Between the vehicle's true up and the world's")
VEHICLE_POSITION = Metric(name="hilsim_vehicle_position_meters", kind="gauge", labels=("axis",), help="True position in the world: east, north, up")
VEHICLE_VELOCITY = Metric(
    name="hilsim_vehicle_velocity_meters_per_second", kind="gauge", labels=("axis",), help="True velocity in the world: east, north, up"
)
VEHICLE_ATTITUDE = Metric(
    name="hilsim_vehicle_attitude_radians", kind="gauge", labels=("angle",), help="True roll, pitch and yaw, as an autopilot says them"
)
VEHICLE_RATES = Metric(
    name="hilsim_vehicle_rates_radians_per_second", kind="gauge", labels=("axis",), help="True rates of the body: forward, left, up"
)
ESTIMATE_POSITION = Metric(
    name="hilsim_estimate_position_error_meters",
    kind="gauge",
    labels=("axis",),
    help="The autopilot's GLOBAL_POSITION_INT minus the truth when it came: east, north, up; absent before the first",
)
ESTIMATE_VELOCITY = Metric(
    name="hilsim_estimate_velocity_error_meters_per_second",
    kind="gauge",
    labels=("axis",),
    help="The autopilot's LOCAL_POSITION_NED minus the truth when it came: east, north, up; absent before the first",
)
ESTIMATE_ATTITUDE = Metric(
    name="hilsim_estimate_attitude_error_radians",
    kind="gauge",
    labels=("angle",),
    help="The autopilot's ATTITUDE minus the truth when it came: roll, pitch, yaw; absent before the first",
)
_STATION = ("station",)
STATION_PEERS = Metric(name="hilsim_station_peers", kind="gauge", labels=_STATION, help="Programs that use the port for ground stations now")
STATION_SENT = Metric(
    name="hilsim_station_sent_frames_total", kind="counter", labels=_STATION, help="Frames of the controller handed to ground stations"
)
STATION_DROPPED = Metric(
    name="hilsim_station_dropped_frames_total", kind="counter", labels=_STATION, help="Frames that a ground station did not take in time"
)
STATION_RECEIVED = Metric(name="hilsim_station_received_frames_total", kind="counter", labels=_STATION, help="Frames that ground stations sent")
STATION_REFUSED = Metric(
    name="hilsim_station_refused_frames_total", kind="counter", labels=_STATION, help="Frames that the network did not take: nobody listens there"
)
STATION_UNSENT = Metric(
    name="hilsim_station_unsent_frames_total",
    kind="counter",
    labels=_STATION,
    help="Frames of ground stations that came faster than the link takes them",
)
_RANGER = ("ranger",)
RANGER_OPEN = Metric(name="hilsim_ranger_open", kind="state", labels=_RANGER, help="1 while the range sensor has its serial port")
RANGER_SENT = Metric(name="hilsim_ranger_sent_frames_total", kind="counter", labels=_RANGER, help="Frames of the range sensor written to its port")
RANGER_DROPPED = Metric(
    name="hilsim_ranger_dropped_frames_total",
    kind="counter",
    labels=_RANGER,
    help="Frames of the range sensor left out, because its line or the daemon was behind",
)
SCHEDULING_MODE = Metric(
    name="hilsim_scheduling_mode",
    kind="state",
    labels=("thread", "mode"),
    help="1 for the scheduling mode the thread actually obtained, 0 for the others",
)
LOOP_TURN_AGE = Metric(
    name="hilsim_loop_turn_age_seconds", kind="gauge", help="Time since the sending loop's last turn: some milliseconds while it runs"
)
MEMORY_LOCKED = Metric(name="hilsim_memory_locked", kind="state", help="1 when the packet path's memory cannot be paged out")
RECORDING = Metric(
    name="hilsim_recording", kind="state", help="1 while what is sent is recorded, 0 when that has failed; absent where it was not asked for"
)
RECORDED = Metric(name="hilsim_recorded_packets_total", kind="counter", help="Datagrams written to the recording")
UNRECORDED = Metric(
    name="hilsim_unrecorded_packets_total",
    kind="counter",
    help="Datagrams sent, but missing from the recording: the disk was too slow, full or broken",
)
CONTROL_OBEYED = Metric(name="hilsim_control_commands_total", kind="counter", help="Commands that came by datagram and were done")
CONTROL_REFUSED = Metric(
    name="hilsim_control_refused_commands_total",
    kind="counter",
    labels=("reason",),
    help="Datagrams at the control port that were not obeyed: from a stranger, too many, too long, or not a command",
)
UDP_REFUSED = Metric(
    name="hilsim_udp_refused_packets_total",
    kind="counter",
    help="Datagrams of all programs for which the kernel had no room, in a socket's buffer or in a queue, since the host is up (SndbufErrors)",
)
_INTERFACE = ("interface",)
QUEUE_DROPPED = Metric(
    name="hilsim_queue_dropped_packets_total",
    kind="counter",
    labels=_INTERFACE,
    help="Packets of all programs that the queue of an interface dropped, of the interfaces that packets leave through",
)
DRIVER_DROPPED = Metric(
    name="hilsim_driver_dropped_packets_total", kind="counter", labels=_INTERFACE, help="Packets of all programs that an interface's driver dropped"
)
UTC_OFFSET = Metric(
    name="hilsim_utc_offset_seconds",
    kind="gauge",
    help="UTC by the host's clock minus the UTC that packets carry: 0 until the host's clock is stepped",
)
HEALTHY = Metric(name="hilsim_healthy", kind="state", help="1 while nothing is at fault")
LEVELS = tuple(level.value for level in Level)
HEALTH_LEVEL = Metric(
    name="hilsim_health_level",
    kind="state",
    labels=("level",),
    help="1 for how the daemon is, 0 for the others; /healthz answers 503 when it is unhealthy",
)
FAULT_ACTIVE = Metric(
    name="hilsim_fault_active",
    kind="state",
    labels=("fault", "subject", "level"),
    help="1 at its level for each fault there is, 0 at the other one; the subject is a sensor, a replay, an interface, or daemon",
)
BUILD_INFO = Metric(
    name="hilsim_build_info", kind="info", labels=("version", "python", "numba"), help="Versions of hilsim and of what its kernels run on"
)

METRICS: tuple[Metric, ...] = (
    SENT,
    SENT_BYTES,
    LATE,
    DROPPED,
    UNDERRUN,
    EARLY,
    SEND_ERRORS,
    LATENESS,
    LATENESS_MAX,
    INTERVAL_ERROR,
    POSE_TO_WIRE,
    RING_DEPTH,
    RING_CAPACITY,
    LAST_PACKET_AGE,
    RENDER,
    FEEDER_LATE,
    FEEDER_SKIPPED,
    FEEDER_UNQUEUED,
    FEEDER_LEAD,
    RAYS_PER_BEAM,
    RAYS_PER_BEAM_WANTED,
    UNSAID_RETURNS,
    DEVICE_CLOCK_OFFSET,
    ROTATION_RATE,
    SENSOR_INFO,
    REPLAY_POSITION,
    REPLAY_PASSES,
    REPLAY_PLAYED,
    REPLAY_LATE,
    REPLAY_LOOKAHEAD,
    REPLAY_STARVATIONS,
    REPLAY_POSTPONED,
    REPLAY_PAUSED,
    LINK_STATE,
    LINK_CHANGES,
    LINK_LOSSES,
    LINK_SENSOR_RATE,
    LINK_SENT,
    LINK_SENT_BYTES,
    LINK_RECEIVED,
    LINK_RECEIVED_BYTES,
    LINK_GARBAGE_BYTES,
    LINK_SENSORS,
    LINK_ACTUATORS,
    LINK_REPLACED,
    LINK_SKIPPED,
    LINK_STALLS,
    LINK_LOCKSTEP_TIMEOUTS,
    LINK_UNFORWARDED,
    LINK_OBSERVATIONS,
    LINK_LATENESS,
    LINK_ROUND_TRIP,
    LINK_ACTUATOR_GAP,
    VEHICLE_ARMED,
    VEHICLE_CRASHED,
    LINK_SILENCES,
    LINK_ACTUATOR_AGE,
    VEHICLE_CONTACTS,
    VEHICLE_TOUCHING,
    VEHICLE_READY,
    VEHICLE_HEIGHT,
    VEHICLE_TILT,
    VEHICLE_POSITION,
    VEHICLE_VELOCITY,
    VEHICLE_ATTITUDE,
    VEHICLE_RATES,
    ESTIMATE_POSITION,
    ESTIMATE_VELOCITY,
    ESTIMATE_ATTITUDE,
    STATION_PEERS,
    STATION_SENT,
    STATION_DROPPED,
    STATION_RECEIVED,
    STATION_REFUSED,
    STATION_UNSENT,
    RANGER_OPEN,
    RANGER_SENT,
    RANGER_DROPPED,
    SCHEDULING_MODE,
    LOOP_TURN_AGE,
    MEMORY_LOCKED,
    RECORDING,
    RECORDED,
    UNRECORDED,
    CONTROL_OBEYED,
    CONTROL_REFUSED,
    UDP_REFUSED,
    QUEUE_DROPPED,
    DRIVER_DROPPED,
    UTC_OFFSET,
    HEALTHY,
    HEALTH_LEVEL,
    FAULT_ACTIVE,
    BUILD_INFO,
)
