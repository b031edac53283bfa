"""Readings of the running daemon for a scrape: plain values, made by the owners of the threads, read by the collector.

They keep the collector independent of the daemon: a test passes invented readings, the daemon those of its sending loop and render threads.
An exported number declares its metric beside it and is defined by the metric's help, nowhere else. Fields are in the order of
``docs/reference/metrics.md``, which is generated from them.
"""

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

import numba

from hilsim.capture.sinks.pcap_streams import ClientReading
from hilsim.config.part_tables import known_kinds
from hilsim.emulator.workspace import EmulatorCount
from hilsim.streaming.render_state import RenderCounter
from hilsim.telemetry.faults import Fault, InjectedFault, Level, worst_level
from hilsim.telemetry.metrics import (
    LATENCY_BOUNDS_S,
    TIMING_BOUNDS_S,
    HistogramReading,
    Label,
    Metric,
    Sample,
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
    by_injected,
    by_interface,
    by_key,
    by_level,
    by_mode,
    by_reason,
    is_healthy,
    udp_refused,
)
from hilsim.transmit.kernel_drops import KernelDrops
from hilsim.transmit.statistics import Counter
from hilsim.version import __version__


@dataclass(frozen=True, kw_only=True)
class FlowReading:
    """Counters of one flow of one sensor since start.

    Attributes:
        sensor: Name of the sensor in the rig.
        flow: ``data`` or ``position``.
        send_errors: Counts by the symbolic name of the errno.
        pose_to_wire: Histogram; None for flows without a pose.
        last_sent_age_s: Age of the last datagram; None before the first.
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
        int, counter("hilsim_dropped_packets_total", "Late datagrams that were not sent, because bursts are never sent"), Counter.DROPPED
    ]
    silenced_packets: Annotated[
        int,
        counter(
            "hilsim_silenced_packets_total", "Datagrams that were not sent, because sensors are without power while poses from outside are silent"
        ),
        Counter.SILENCED,
    ]
    underrun_packets: Annotated[
        int,
        counter("hilsim_underrun_packets_total", "Datagrams put into an empty ring after their deadline: their render thread was too slow"),
        Counter.UNDERRUN,
    ]
    early_packets: Annotated[
        int, counter("hilsim_early_packets_total", "Datagrams sent before their deadline: always 0, counted as proof"), Counter.EARLY
    ]
    send_errors: Annotated[
        Mapping[str, int],
        counter("hilsim_send_errors_total", "Datagrams the kernel refused, by the name of the errno", labels=("errno",), samples=by_key),
    ]
    network_faults: Annotated[
        Mapping[str, int],
        counter(
            "hilsim_network_faults_total",
            "Datagrams that faults of the network befell on command, by what befell them; they are no losses of the daemon",
            labels=("effect",),
            samples=by_key,
        ),
    ] = field(default_factory=dict)
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
    """One sensor and its render thread.

    Attributes:
        sensor: Name of the sensor in the rig.
        model: Profile of the sensor.
        render: Histogram of the render time of a chunk; None where another renderer does not measure it.
        rotation_rate_hz: Rotation rate; None without a head.
        return_mode: ``strongest``, ``last`` or ``dual``.
    """

    sensor: Annotated[str, Label("sensor")]
    model: str
    render: Annotated[
        HistogramReading | None,
        histogram(
            "hilsim_render_seconds", TIMING_BOUNDS_S, "Time the render thread took to render and encode the datagrams of one push into the ring"
        ),
    ] = None
    render_late_packets: Annotated[
        int, counter("hilsim_render_late_packets_total", "Datagrams the render thread finished after their deadline"), RenderCounter.LATE
    ]
    render_skipped_packets: Annotated[
        int, counter("hilsim_render_skipped_packets_total", "Datagrams never rendered, because their deadline had passed")
    ]
    render_ring_full_packets: Annotated[
        int, counter("hilsim_render_ring_full_packets_total", "Datagrams for which the ring had no room until they were due"), RenderCounter.RING_FULL
    ] = 0
    render_lead_s: Annotated[float, gauge("hilsim_render_lead_seconds", "How long before its deadline a data packet is rendered")] = 0.0
    rays_per_beam: Annotated[int, gauge("hilsim_beam_rays", "Rays that currently sample the footprint of a beam")] = 1
    wanted_rays_per_beam: Annotated[
        int,
        gauge("hilsim_beam_wanted_rays", "Configured rays per beam; more than hilsim_beam_rays where the machine cannot render them in time"),
    ] = 1
    render_backend: Annotated[
        str,
        state("hilsim_render_backend", "1 for the backend that casts the sensor's rays, 0 for the other", labels=("backend",), samples=by_backend),
    ] = "cpu"
    unrepresentable_returns: Annotated[
        int,
        counter("hilsim_unrepresentable_returns_total", "Returns sent as no return, because the packet format cannot represent their position"),
        EmulatorCount.UNREPRESENTABLE,
    ] = 0
    faulted_firings: Annotated[
        int, counter("hilsim_faulted_firings_total", "Firings that faults on command of the optics befell"), EmulatorCount.FAULTED
    ] = 0
    device_clock_offset_s: Annotated[float, gauge("hilsim_device_clock_offset_seconds", "The sensor's own clock minus the rig's time")]
    rotation_rate_hz: Annotated[float | None, gauge("hilsim_rotation_rate_hertz", "Rotations a second of the sensor's head")]
    return_mode: Annotated[str, info("hilsim_sensor_info", "Model and return mode of each sensor", labels=("model", "return_mode"))]


@dataclass(frozen=True, kw_only=True)
class RecordingReading:
    """Recording of sent packets; it stops permanently after a failure."""

    running: Annotated[bool, state("hilsim_recording", "1 while sent packets are recorded, 0 after a failure; absent without a recording")]
    recorded_packets: Annotated[int, counter("hilsim_recorded_packets_total", "Datagrams written to the recording")]
    unrecorded_packets: Annotated[
        int, counter("hilsim_unrecorded_packets_total", "Datagrams sent, but missing from the recording: the disk was too slow, full or broken")
    ]


class StreamLoss(Enum):
    """Reason that a client of the sent packets lost some."""

    SLOW_CLIENT = "slow_client"
    QUEUE_FULL = "queue_full"


def _count_clients(clients: tuple[ClientReading, ...]) -> Iterator[Sample]:
    yield (), len(clients)


@dataclass(frozen=True, kw_only=True)
class PacketStreamReading:
    """Streams of sent packets to clients."""

    clients: Annotated[
        tuple[ClientReading, ...],
        gauge("hilsim_packet_stream_clients", "Clients that follow the sent packets (packets, /v1/packets)", samples=_count_clients),
    ] = ()
    sent_packets: Annotated[
        int, counter("hilsim_packet_stream_packets_total", "Datagrams passed to clients that follow packets, counted once for each client")
    ] = 0
    lost_packets: Annotated[
        Mapping[StreamLoss, int],
        counter(
            "hilsim_packet_stream_lost_packets_total",
            "Datagrams missed by clients that follow packets: a client read too slowly (counted once for each client), or the queue of all clients was full",
            labels=("reason",),
            samples=by_reason,
        ),
    ] = field(default_factory=lambda: dict.fromkeys(StreamLoss, 0))


class Refusal(Enum):
    """Reason that a datagram with a command was rejected."""

    STRANGER = "stranger"
    TOO_MANY = "too_many"
    TOO_LONG = "too_long"
    NOT_A_COMMAND = "not_a_command"


@dataclass(kw_only=True, eq=False)
class CommandCounts:
    """Counts of datagrams with commands."""

    obeyed: Annotated[int, counter("hilsim_control_commands_total", "Commands received by datagram and executed")] = 0
    refused: Annotated[
        dict[Refusal, int],
        counter(
            "hilsim_control_refused_commands_total",
            "Datagrams at the control port that were rejected: from an unknown sender, too many, too long, or not a command",
            labels=("reason",),
            samples=by_reason,
        ),
    ] = field(default_factory=lambda: dict.fromkeys(Refusal, 0))


class HttpRefusal(Enum):
    """Reason that a request over HTTP or WebSocket was rejected."""

    FOREIGN = "foreign"
    UNAUTHORISED = "unauthorised"
    TOO_MANY = "too_many"
    TOO_LONG = "too_long"
    TOO_SLOW = "too_slow"
    NOT_A_REQUEST = "not_a_request"


@dataclass(kw_only=True, eq=False)
class HttpCounts:
    """Counts of requests over HTTP and WebSocket."""

    answered: Annotated[int, counter("hilsim_control_http_commands_total", "Requests over HTTP and WebSocket answered, including failed ones")] = 0
    refused: Annotated[
        dict[HttpRefusal, int],
        counter(
            "hilsim_control_http_refused_commands_total",
            "Requests over HTTP and WebSocket rejected: a foreign Host or Origin, no token, too many, too long, too slow, or not a request",
            labels=("reason",),
            samples=by_reason,
        ),
    ] = field(default_factory=lambda: dict.fromkeys(HttpRefusal, 0))


@dataclass(frozen=True, kw_only=True)
class SerialDeviceReading:
    """An emulated device on a serial port.

    Attributes:
        device: Kind of the device, numbered where there are several.
    """

    device: Annotated[str, Label("device")]
    is_open: Annotated[bool, state("hilsim_serial_device_open", "1 while the device's serial port is open")]
    sent_frames: Annotated[int, counter("hilsim_serial_device_sent_frames_total", "Frames of the device written to its port")]
    dropped_frames: Annotated[
        int, counter("hilsim_serial_device_dropped_frames_total", "Frames of the device dropped, because its line or the daemon was too slow")
    ]


@dataclass(frozen=True, kw_only=True)
class BuildReading:
    """Versions of hilsim and its runtime."""

    version: str
    python: str
    numba: Annotated[str, info("hilsim_build_info", "Versions of hilsim and of its runtime", labels=("version", "python", "numba"))]


BUILD = BuildReading(version=__version__, python=platform.python_version(), numba=numba.__version__)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """State of the daemon at one instant.

    Attributes:
        flows: All flows of the rig.
        sensors: All sensors of the rig.
        serial_devices: Devices on serial ports.
        parts: Readings of parts by the names of their tables, each of its kind's class.
        scheduling: Mode obtained, by thread: ``{"transmit": "fifo"}``.
        loop_turn_age_s: Age of the sending loop's last turn; None before its first.
        recording: Reading of the recording; None without one.
        commands: Counts of commands by datagram; None without a control port.
        http: Counts of requests over HTTP and WebSocket; None without that server.
        drops: Losses in the kernel, of all programs; None if not read.
        utc_offset_s: Offset of UTC; None before packets flow.
        faults: Current faults; empty when the daemon is healthy.
        build: Versions of this process.
    """

    flows: tuple[FlowReading, ...] = ()
    sensors: tuple[SensorReading, ...] = ()
    serial_devices: tuple[SerialDeviceReading, ...] = ()
    parts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    scheduling: Annotated[
        Mapping[str, str],
        state(
            "hilsim_scheduling_mode",
            "1 for the scheduling mode that the thread obtained, 0 for the others",
            labels=("thread", "mode"),
            samples=by_mode,
        ),
    ] = field(default_factory=dict)
    loop_turn_age_s: Annotated[
        float | None, gauge("hilsim_loop_turn_age_seconds", "Time since the sending loop's last turn: some milliseconds while it runs")
    ] = None
    memory_locked: Annotated[bool, state("hilsim_memory_locked", "1 when the packet path's memory cannot be paged out")] = False
    recording: RecordingReading | None = None
    packet_streams: PacketStreamReading | None = None
    commands: CommandCounts | None = None
    http: HttpCounts | None = None
    drops: Annotated[
        KernelDrops | None,
        counter(
            "hilsim_udp_refused_packets_total",
            "Datagrams of all programs for which the kernel had no room, in a socket's buffer or in a queue, since the host's start (SndbufErrors)",
            samples=udp_refused,
        ),
        counter(
            "hilsim_queue_dropped_packets_total",
            "Packets of all programs that the queue of an interface dropped; only interfaces that packets leave through",
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
        gauge("hilsim_utc_offset_seconds", "UTC of the host's clock minus UTC in packets: 0 until the host's clock is stepped"),
    ] = None
    faults: Annotated[
        tuple[Fault, ...],
        state("hilsim_healthy", "1 without faults", samples=is_healthy),
        state(
            "hilsim_health_level",
            "1 for the daemon's level of health, 0 for the others; /healthz answers 503 when it is unhealthy",
            labels=("level",),
            samples=by_level,
        ),
        state(
            "hilsim_fault_active",
            "1 for each current fault at its level, 0 at the other level; the subject is a sensor, a replay, an interface, or daemon",
            labels=("fault", "subject", "level"),
            samples=by_fault,
        ),
    ] = ()
    injected: Annotated[
        tuple[InjectedFault, ...],
        state(
            "hilsim_injected_fault_active",
            "1 for each kind of fault on command of which one acts, 0 for one that will; it is no fault of the daemon",
            labels=("kind",),
            samples=by_injected,
        ),
    ] = ()
    build: BuildReading = BUILD

    @property
    def level(self) -> Level:
        """Level of the worst fault."""
        return worst_level(self.faults)


METRICS: tuple[Metric, ...] = declared_metrics(Reading)
"""All metrics of the core."""


def part_metrics() -> tuple[Metric, ...]:
    """Metrics of hilsim's own parts, and of those that a rig of this process has."""
    return tuple(metric for kind in known_kinds() if kind.reading is not None for metric in declared_metrics(kind.reading))


MetricsSource = Callable[[], Reading]
"""Called once per scrape, from a worker thread: it must only read arrays and attributes, and must not wait."""
