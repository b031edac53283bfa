"""What a scrape needs to know of the running daemon: plain values, made by whoever runs the threads, read by the collector.

The seam that keeps the collector free of the daemon: a test hands over invented readings, the daemon those of its sending loop and render threads.
A number that is exported declares its metric beside it, and is defined by the metric's help; nothing else names it. Fields are in the order of
``docs/reference/metrics.md``, which is written from them.
"""

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import numba

from hilsim.emulator.workspace import EmulatorCount
from hilsim.streaming.render_state import RenderCounter
from hilsim.telemetry.faults import Fault, Level, worst_level
from hilsim.telemetry.metrics import (
    LATENCY_BOUNDS_S,
    TIMING_BOUNDS_S,
    HistogramReading,
    Label,
    Metric,
    counter,
    declared_metrics,
    gauge,
    histogram,
    info,
    state,
)
from hilsim.telemetry.samples import (
    by_backend,
    by_fault,
    by_interface,
    by_key,
    by_level,
    by_mode,
    by_reason,
    is_healthy,
    udp_refused,
)
from hilsim.telemetry.vehicle_readings import SerialDeviceReading, VehicleReading
from hilsim.transmit.kernel_drops import KernelDrops
from hilsim.transmit.statistics import Counter
from hilsim.version import __version__


@dataclass(frozen=True, kw_only=True)
class FlowReading:
    """One flow of one sensor, as the sending loop counted it since start.

    Attributes:
        sensor: Name of the sensor in the rig.
        flow: ``data`` or ``position``.
        send_errors: By the symbolic name of the errno.
        pose_to_wire: None for flows without a pose.
        last_sent_age_s: None before the first.
    """

    sensor: Annotated[str, Label("sensor")]
    flow: Annotated[str, Label("flow")]
    sent_packets: Annotated[int, counter("hilsim_sent_packets_total", "Datagrams handed to the kernel"), Counter.PACKETS]
    sent_bytes: Annotated[int, counter("hilsim_sent_bytes_total", "UDP payload of the datagrams handed to the kernel"), Counter.BYTES]
    late_packets: Annotated[
        int,
        counter("hilsim_late_packets_total", "Datagrams that missed their deadline by more than the sending loop's limit, sent or not"),
        Counter.LATE,
    ]
    dropped_packets: Annotated[
        int, counter("hilsim_dropped_packets_total", "Late datagrams that were not sent, for no burst may catch up"), Counter.DROPPED
    ]
    underrun_packets: Annotated[
        int,
        counter("hilsim_underrun_packets_total", "Datagrams that came into an empty ring after their deadline: their render thread was too slow"),
        Counter.UNDERRUN,
    ]
    early_packets: Annotated[
        int, counter("hilsim_early_packets_total", "Datagrams sent before their deadline: always 0, counted to show it"), Counter.EARLY
    ]
    send_errors: Annotated[
        Mapping[str, int],
        counter("hilsim_send_errors_total", "Datagrams the kernel refused, by the name of the errno", labels=("errno",), samples=by_key),
    ]
    lateness: Annotated[HistogramReading, histogram("hilsim_lateness_seconds", TIMING_BOUNDS_S, "Time a datagram was sent minus its deadline")]
    lateness_max_s: Annotated[float, gauge("hilsim_lateness_max_seconds", "The largest lateness since start")]
    interval_error: Annotated[
        HistogramReading,
        histogram(
            "hilsim_interval_error_seconds", TIMING_BOUNDS_S, "Absolute difference between the interval of two datagrams and that of their deadlines"
        ),
    ]
    pose_to_wire: Annotated[
        HistogramReading | None,
        histogram("hilsim_pose_to_wire_seconds", LATENCY_BOUNDS_S, "Time a datagram was sent minus the time of the newest pose rendered into it"),
    ] = None
    ring_depth_packets: Annotated[int, gauge("hilsim_ring_depth_packets", "Datagrams rendered ahead and waiting in the ring")]
    ring_capacity_packets: Annotated[int, gauge("hilsim_ring_capacity_packets", "Datagrams the ring can hold")]
    last_sent_age_s: Annotated[float | None, gauge("hilsim_last_packet_age_seconds", "Time since the last datagram left")]


@dataclass(frozen=True, kw_only=True)
class SensorReading:
    """One sensor and the render thread that renders for it.

    Attributes:
        sensor: Name of the sensor in the rig.
        model: Profile it was made from.
        render: Of one chunk; None where another renderer keeps no account.
        rotation_rate_hz: None without a head.
        return_mode: ``strongest``, ``last`` or ``dual``.
    """

    sensor: Annotated[str, Label("sensor")]
    model: str
    render: Annotated[
        HistogramReading | None,
        histogram("hilsim_render_seconds", TIMING_BOUNDS_S, "Time the render thread took to render and encode what it then pushed into the ring"),
    ] = None
    render_late_packets: Annotated[
        int, counter("hilsim_render_late_packets_total", "Datagrams the render thread finished after their deadline"), RenderCounter.LATE
    ]
    render_skipped_packets: Annotated[
        int, counter("hilsim_render_skipped_packets_total", "Datagrams never rendered, because they could not be in time")
    ]
    render_ring_full_packets: Annotated[
        int, counter("hilsim_render_ring_full_packets_total", "Datagrams the ring had no room for until they were due"), RenderCounter.RING_FULL
    ] = 0
    render_lead_s: Annotated[float, gauge("hilsim_render_lead_seconds", "How long before its deadline a data packet is rendered")] = 0.0
    rays_per_beam: Annotated[int, gauge("hilsim_beam_rays", "Rays that sample the footprint of a beam now")] = 1
    wanted_rays_per_beam: Annotated[
        int,
        gauge(
            "hilsim_beam_wanted_rays", "Rays a beam that the rig asks for; more than hilsim_beam_rays where the machine cannot render them in time"
        ),
    ] = 1
    render_backend: Annotated[
        str, state("hilsim_render_backend", "1 for what casts the sensor's rays, 0 for the other", labels=("backend",), samples=by_backend)
    ] = "cpu"
    unrepresentable_returns: Annotated[
        int,
        counter("hilsim_unrepresentable_returns_total", "Returns sent as no return, because the packet format cannot represent where they are"),
        EmulatorCount.UNREPRESENTABLE,
    ] = 0
    device_clock_offset_s: Annotated[float, gauge("hilsim_device_clock_offset_seconds", "The sensor's own clock minus the rig's time")]
    rotation_rate_hz: Annotated[float | None, gauge("hilsim_rotation_rate_hertz", "Rotations a second of the sensor's head")]
    return_mode: Annotated[str, info("hilsim_sensor_info", "What each sensor stands in for, and how it reports", labels=("model", "return_mode"))]


@dataclass(frozen=True, kw_only=True)
class RecordingReading:
    """The recording of what is sent; it runs no more once it has failed."""

    running: Annotated[bool, state("hilsim_recording", "1 while what is sent is recorded, 0 when that has failed; absent where it was not asked for")]
    recorded_packets: Annotated[int, counter("hilsim_recorded_packets_total", "Datagrams written to the recording")]
    unrecorded_packets: Annotated[
        int, counter("hilsim_unrecorded_packets_total", "Datagrams sent, but missing from the recording: the disk was too slow, full or broken")
    ]


class Refusal(Enum):
    """Why a datagram with a command was not obeyed."""

    STRANGER = "stranger"
    TOO_MANY = "too_many"
    TOO_LONG = "too_long"
    NOT_A_COMMAND = "not_a_command"


@dataclass(kw_only=True, eq=False)
class CommandCounts:
    """Datagrams with commands."""

    obeyed: Annotated[int, counter("hilsim_control_commands_total", "Commands that came by datagram and were done")] = 0
    refused: Annotated[
        dict[Refusal, int],
        counter(
            "hilsim_control_refused_commands_total",
            "Datagrams at the control port that were not obeyed: from a stranger, too many, too long, or not a command",
            labels=("reason",),
            samples=by_reason,
        ),
    ] = field(default_factory=lambda: dict.fromkeys(Refusal, 0))


@dataclass(frozen=True, kw_only=True)
class ReplayReading:
    """One capture that is replayed.

    Attributes:
        replay: Its name in the rig.
        has_ended: Everything was played.
        ratio: How far this pass is, 0 to 1.
    """

    replay: Annotated[str, Label("sensor")]
    position_s: Annotated[float, gauge("hilsim_replay_position_seconds", "Capture time of what is played, from the capture's first packet")]
    passes: Annotated[int, counter("hilsim_replay_passes_total", "Passes through the capture completed")]
    played_packets: Annotated[int, counter("hilsim_replay_played_packets_total", "Datagrams of the capture handed on to be sent")]
    late_packets: Annotated[int, counter("hilsim_replay_late_packets_total", "Datagrams of the capture read too late to be sent in time")]
    waiting_packets: Annotated[int, gauge("hilsim_replay_lookahead_packets", "Datagrams of the capture read ahead")]
    underruns: Annotated[int, counter("hilsim_replay_underruns_total", "How often nothing was read ahead when it was needed")]
    postponed_s: Annotated[
        float,
        gauge(
            "hilsim_replay_postponed_seconds",
            "By how much the replay is later than it was to be, because the host stood still or reading was too slow",
        ),
    ] = 0.0
    is_paused: Annotated[bool, state("hilsim_replay_paused", "1 while the replay is held back")]
    has_ended: bool
    ratio: float


@dataclass(frozen=True, kw_only=True)
class RoverReading:
    """One rover.

    Attributes:
        rover: Its name in the rig.
    """

    rover: Annotated[str, Label("rover")]
    cycles: Annotated[int, counter("hilsim_rover_cycles_total", "Cycles of a rover handed on to be sent")]
    late_cycles: Annotated[int, counter("hilsim_rover_late_cycles_total", "Cycles left out because they could not be begun in time")]
    empty_cycles: Annotated[int, counter("hilsim_rover_empty_cycles_total", "Cycles left out because no scan had been read for them")]
    obeyed_commands: Annotated[int, counter("hilsim_rover_commands_total", "Commands that came to a rover's telemetry")]
    refused_commands: Annotated[int, counter("hilsim_rover_refused_commands_total", "Commands left out because a thousand waited, one a cycle")]
    waiting_scans: Annotated[int, gauge("hilsim_rover_lookahead_scans", "Scans read ahead")]
    passes: Annotated[int, counter("hilsim_rover_passes_total", "Passes through the file of scans completed")]
    damaged_lines: Annotated[int, gauge("hilsim_rover_damaged_lines", "Lines of the file that were left out in the first pass")]


@dataclass(frozen=True, kw_only=True)
class GazeboReading:
    """One lidar that is published to Gazebo's subscribers.

    Attributes:
        lidar: Its name in the SDF file, ``model::link::sensor``.
    """

    lidar: Annotated[str, Label("lidar")]
    scans: Annotated[int, counter("hilsim_gazebo_scans_total", "Measurements of a lidar with a subscriber")]
    messages: Annotated[int, counter("hilsim_gazebo_messages_total", "Messages of a lidar handed to Gazebo's transport")]
    skipped_scans: Annotated[int, counter("hilsim_gazebo_skipped_scans_total", "Measurements left out because those before took too long")]


@dataclass(frozen=True, kw_only=True)
class BuildReading:
    """Versions."""

    version: str
    python: str
    numba: Annotated[str, info("hilsim_build_info", "Versions of hilsim and of what its kernels run on", labels=("version", "python", "numba"))]


BUILD = BuildReading(version=__version__, python=platform.python_version(), numba=numba.__version__)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The daemon at one instant.

    Attributes:
        flows: Every flow of the rig.
        sensors: Every sensor of the rig.
        replays: Every capture that the rig replays.
        vehicle: None where nothing flies.
        serial_devices: Devices on serial ports.
        rovers: Every rover of the rig.
        gazebo: Every lidar that is published to Gazebo's subscribers.
        scheduling: Mode actually obtained, by thread: ``{"transmit": "fifo"}``.
        loop_turn_age_s: None before its first.
        recording: None where nothing is to be recorded.
        commands: By datagram; None where none are listened for.
        drops: What the kernel lost, of all programs; None if it was not queried.
        utc_offset_s: None before packets flow.
        faults: What is not as it should be; empty when the daemon is healthy.
        build: Of this process.
    """

    flows: tuple[FlowReading, ...] = ()
    sensors: tuple[SensorReading, ...] = ()
    replays: tuple[ReplayReading, ...] = ()
    vehicle: VehicleReading | None = None
    serial_devices: tuple[SerialDeviceReading, ...] = ()
    rovers: tuple[RoverReading, ...] = ()
    gazebo: tuple[GazeboReading, ...] = ()
    scheduling: Annotated[
        Mapping[str, str],
        state(
            "hilsim_scheduling_mode",
            "1 for the scheduling mode the thread actually obtained, 0 for the others",
            labels=("thread", "mode"),
            samples=by_mode,
        ),
    ] = field(default_factory=dict)
    loop_turn_age_s: Annotated[
        float | None, gauge("hilsim_loop_turn_age_seconds", "Time since the sending loop's last turn: some milliseconds while it runs")
    ] = None
    memory_locked: Annotated[bool, state("hilsim_memory_locked", "1 when the packet path's memory cannot be paged out")] = False
    recording: RecordingReading | None = None
    commands: CommandCounts | None = None
    drops: Annotated[
        KernelDrops | None,
        counter(
            "hilsim_udp_refused_packets_total",
            "Datagrams of all programs for which the kernel had no room, in a socket's buffer or in a queue, since the host is up (SndbufErrors)",
            samples=udp_refused,
        ),
        counter(
            "hilsim_queue_dropped_packets_total",
            "Packets of all programs that the queue of an interface dropped, of the interfaces that packets leave through",
            labels=("interface",),
            samples=by_interface("queue_drops"),
        ),
        counter(
            "hilsim_driver_dropped_packets_total",
            "Packets of all programs that an interface's driver dropped",
            labels=("interface",),
            samples=by_interface("driver_drops"),
        ),
    ] = None
    utc_offset_s: Annotated[
        float | None,
        gauge("hilsim_utc_offset_seconds", "UTC by the host's clock minus the UTC that packets carry: 0 until the host's clock is stepped"),
    ] = None
    faults: Annotated[
        tuple[Fault, ...],
        state("hilsim_healthy", "1 while nothing is at fault", samples=is_healthy),
        state(
            "hilsim_health_level",
            "1 for how the daemon is, 0 for the others; /healthz answers 503 when it is unhealthy",
            labels=("level",),
            samples=by_level,
        ),
        state(
            "hilsim_fault_active",
            "1 at its level for each fault there is, 0 at the other one; the subject is a sensor, a replay, an interface, or daemon",
            labels=("fault", "subject", "level"),
            samples=by_fault,
        ),
    ] = ()
    build: BuildReading = BUILD

    @property
    def level(self) -> Level:
        """As bad as the worst fault."""
        return worst_level(self.faults)


METRICS: tuple[Metric, ...] = declared_metrics(Reading)
"""Every metric that hilsim exports."""

MetricsSource = Callable[[], Reading]
"""Called once a scrape, from a worker thread: it must only read arrays and attributes, and must not wait."""
