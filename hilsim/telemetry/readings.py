"""What a scrape needs to know of the running daemon: plain values, made by whoever runs the threads, read by the collector.

The seam that keeps the collector free of the daemon: a test hands over invented readings, the daemon those of its sending loop and feeders.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from hilsim.autopilot.passing_state import Errors, Truth
from hilsim.telemetry.faults import Fault, Level, worst_level
from hilsim.transmit.kernel_drops import KernelDrops

NO_ERRORS = Errors()


class HistogramReading(NamedTuple):
    """A histogram at one instant.

    Attributes:
        cumulative: Number of observations at or below each bound the metric declares, then of all observations; never falling.
        sum_s: Sum of all observations, in seconds.
    """

    cumulative: tuple[int, ...]
    sum_s: float


@dataclass(frozen=True, kw_only=True)
class FlowReading:
    """One flow of one sensor, as the sending loop counted it since start.

    Attributes:
        sensor: Name of the sensor in the rig.
        flow: ``data`` or ``position``.
        sent_packets: Datagrams handed to the kernel.
        sent_bytes: Their UDP payload.
        late_packets: Missed their deadline by more than the loop's limit, sent or not.
        dropped_packets: Of these, the ones not sent.
        underrun_packets: Came into an empty ring after their deadline.
        early_packets: Sent before their deadline; never, and counted to show it.
        send_errors: Refused by the kernel, by the symbolic name of the errno.
        ring_depth_packets: Waiting in the ring now.
        ring_capacity_packets: What the ring holds.
        last_sent_age_s: Time since the last datagram left; None before the first.
        lateness_max_s: The largest lateness since start.
        lateness: Send time minus deadline; bounds ``hilsim.telemetry.metrics.LATENESS``.
        interval_error: Spread of intervals about nominal, absolute.
        pose_to_wire: Send time minus the time of the newest pose rendered into the datagram; None for flows without a pose.
    """

    sensor: str
    flow: str
    sent_packets: int
    sent_bytes: int
    late_packets: int
    dropped_packets: int
    underrun_packets: int
    early_packets: int
    send_errors: Mapping[str, int]
    ring_depth_packets: int
    ring_capacity_packets: int
    last_sent_age_s: float | None
    lateness_max_s: float
    lateness: HistogramReading
    interval_error: HistogramReading
    pose_to_wire: HistogramReading | None = None


@dataclass(frozen=True, kw_only=True)
class SensorReading:
    """One sensor and the feeder thread that renders for it.

    Attributes:
        sensor: Name of the sensor in the rig.
        model: Profile it was made from.
        return_mode: ``strongest``, ``last`` or ``dual``.
        rotation_rate_hz: Rate of its head; None without one.
        device_clock_offset_s: Its own clock minus rig time.
        feeder_late_packets: Rendered, but pushed into the ring after their deadline.
        feeder_skipped_packets: Never rendered, because they could not be in time.
        feeder_unqueued_packets: The ring had no room for them until they were due.
        unsaid_returns: Sent as no return, because the packet format cannot say where they are.
        render: Time to render and encode one chunk; None where another renderer keeps no account.
        feeder_lead_s: How long before its deadline a packet is rendered.
        rays_per_beam: Rays that sample a beam's footprint now.
        wanted_rays_per_beam: That the rig asks for; more than there are where the machine cannot render them.
    """

    sensor: str
    model: str
    return_mode: str
    rotation_rate_hz: float | None
    device_clock_offset_s: float
    feeder_late_packets: int
    feeder_skipped_packets: int
    feeder_unqueued_packets: int = 0
    unsaid_returns: int = 0
    render: HistogramReading | None = None
    feeder_lead_s: float = 0.0
    rays_per_beam: int = 1
    wanted_rays_per_beam: int = 1


@dataclass(frozen=True, kw_only=True)
class RecordingReading:
    """The recording of what is sent.

    Attributes:
        running: False once it has failed.
        recorded_packets: Written.
        unrecorded_packets: Sent, but missing.
    """

    running: bool
    recorded_packets: int
    unrecorded_packets: int


class Refusal(Enum):
    """Why a datagram with a command was not obeyed."""

    STRANGER = "stranger"
    TOO_MANY = "too_many"
    TOO_LONG = "too_long"
    NOT_A_COMMAND = "not_a_command"


@dataclass(kw_only=True, eq=False)
class CommandCounts:
    """Datagrams with commands.

    Attributes:
        obeyed: Done.
        refused: Not done, by the reason.
    """

    obeyed: int = 0
    refused: dict[Refusal, int] = field(default_factory=lambda: dict.fromkeys(Refusal, 0))


@dataclass(frozen=True, kw_only=True)
class ReplayReading:
    """One capture that is replayed.

    Attributes:
        replay: Its name in the rig.
        position_s: Capture time of what is played now, from the capture's first packet.
        passes: Completed.
        played_packets: Handed on to be sent.
        waiting_packets: Read ahead.
        starvations: How often nothing was read ahead when it was needed.
        late_packets: Read too late to be sent in time.
        is_paused: Held back.
        has_ended: Everything was played.
        ratio: How far this pass is, 0 to 1.
        postponed_s: By how much it is later than it was to be.
    """

    replay: str
    position_s: float
    passes: int
    played_packets: int
    waiting_packets: int
    starvations: int
    late_packets: int
    is_paused: bool
    has_ended: bool
    ratio: float
    postponed_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StationReading:
    """A port for ground stations.

    Attributes:
        station: ``protocol address:port``.
        peers: Programs that use it now.
        sent_frames: Handed to the network.
        dropped_frames: Not taken by a peer in time.
        refused_frames: Not taken by the network.
        received_frames: Came whole.
        unsent_frames: Came faster than the link takes them.
    """

    station: str
    peers: int
    sent_frames: int
    dropped_frames: int
    refused_frames: int
    received_frames: int
    unsent_frames: int


@dataclass(frozen=True, kw_only=True)
class RangerReading:
    """A range sensor on a serial port.

    Attributes:
        ranger: Its kind, numbered where there are several.
        is_open: It has its port.
        sent_frames: Written.
        dropped_frames: Left out, because the line or the daemon was behind.
    """

    ranger: str
    is_open: bool
    sent_frames: int
    dropped_frames: int


@dataclass(frozen=True, kw_only=True)
class VehicleReading:
    """What flies, and the link to who steers it.

    Attributes:
        state: Of the session; empty where there is no controller.
        changes: Of the session.
        losses: Of the link.
        sensor_rate_hz: Sensor frames a second.
        sent_frames: On the link.
        sent_bytes: On the link.
        received_frames: On the link.
        received_bytes: On the link.
        garbage_bytes: Belong to no frame.
        sensor_frames: Sent.
        actuator_frames: Received.
        replaced_frames: Sensor frames not sent, because a newer one came first.
        skipped_frames: Sensor frames never made.
        stalls: Times the machine stood still.
        lockstep_timeouts: Answers not waited for any more.
        unforwarded_frames: That no ground station got.
        observation_frames: Of obstacles and distances, handed to the controller's link.
        lateness: Of sensor frames.
        round_trip: From a sensor frame to the next motor command.
        actuator_gap: Between motor commands.
        is_armed: By the controller.
        is_crashed: The vehicle has hit something.
        height_m: Of its centre of mass above the ground under it.
        silences: Times that motor commands stopped.
        actuator_age_s: Since the latest motor command; None before the first.
        contacts: That have begun, beyond standing on its legs.
        is_touching: One goes on.
        truth: Where it is; None: not known.
        errors: Of the autopilot's estimate.
        is_ready: The autopilot could be armed, as far as it can be told.
        obstacle: What keeps it from that.
        estimator_flags: Of the autopilot; None: it has not said.
        warning: The autopilot's last.
        stations: Ports for ground stations.
    """

    state: str
    changes: int
    losses: int
    sensor_rate_hz: float
    sent_frames: int
    sent_bytes: int
    received_frames: int
    received_bytes: int
    garbage_bytes: int
    sensor_frames: int
    actuator_frames: int
    replaced_frames: int
    skipped_frames: int
    stalls: int
    lockstep_timeouts: int
    unforwarded_frames: int
    observation_frames: int = 0
    lateness: HistogramReading
    round_trip: HistogramReading
    actuator_gap: HistogramReading
    is_armed: bool
    is_crashed: bool
    height_m: float
    silences: int = 0
    actuator_age_s: float | None = None
    contacts: int = 0
    is_touching: bool = False
    truth: Truth | None = None
    errors: Errors = NO_ERRORS
    is_ready: bool = False
    obstacle: str = ""
    estimator_flags: int | None = None
    warning: str = ""
    stations: tuple[StationReading, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The daemon at one instant.

    Attributes:
        flows: Every flow of the rig.
        sensors: Every sensor of the rig.
        replays: Every capture that the rig replays.
        scheduling: Mode actually obtained, by thread: ``{"transmit": "fifo"}``.
        loop_turn_age_s: Time since the sending loop's last turn; None before its first.
        memory_locked: Whether pages of the packet path cannot be swapped out.
        recording: None where nothing is to be recorded.
        commands: By datagram; None where none are listened for.
        rangers: Range sensors on serial ports.
        vehicle: None where nothing flies.
        drops: What the kernel lost, of all programs; None where nobody has asked it.
        utc_offset_s: UTC by the host's clock minus the UTC that packets carry; None before packets flow.
        faults: What is not as it should be; empty when the daemon is healthy.
    """

    flows: tuple[FlowReading, ...] = ()
    sensors: tuple[SensorReading, ...] = ()
    replays: tuple[ReplayReading, ...] = ()
    scheduling: Mapping[str, str] = field(default_factory=dict)
    loop_turn_age_s: float | None = None
    memory_locked: bool = False
    recording: RecordingReading | None = None
    commands: CommandCounts | None = None
    vehicle: VehicleReading | None = None
    rangers: tuple[RangerReading, ...] = ()
    drops: KernelDrops | None = None
    utc_offset_s: float | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def level(self) -> Level:
        """As bad as the worst fault."""
        return worst_level(self.faults)


MetricsSource = Callable[[], Reading]
"""Called once a scrape, from a worker thread: it must only read arrays and attributes, and must not wait."""
