"""Result of an inspection: figures of a capture, its sensors and their flows; NaN if not measurable."""

from dataclasses import dataclass
from typing import Annotated, Any

from hilsim.protocols.recognise import PacketKind
from hilsim.read.analysis.ground import Ground, Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Place in a capture."""

    frame: Annotated[int, "Number of the frame, from 1 as in analysers."]
    at_s: Annotated[float, "Capture time since the first datagram, as ``hilsim replay --start-s`` counts."]


@dataclass(frozen=True, kw_only=True)
class Spacing:
    """Time between captured packets of a flow; of packets with stamps or numbers between those that are neighbours by them."""

    intervals: Annotated[int, "Number of intervals."]
    mean_us: Annotated[float, "Mean."]
    sd_us: Annotated[float, "Standard deviation."]
    min_us: Annotated[float, "Shortest interval; negative if capture times go backwards."]
    p1_us: Annotated[float, "1st percentile."]
    p50_us: Annotated[float, "Median."]
    p99_us: Annotated[float, "99th percentile."]
    max_us: Annotated[float, "Longest interval."]
    whole_millisecond_ratio: Annotated[float, "Share of intervals within 20 us of whole milliseconds, the ticks of an operating system's timer."]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A pause in a flow."""

    duration_s: Annotated[float, "Duration by capture times."]
    after: Annotated[Place, "Place of the last datagram before the gap."]


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """Pauses of a flow longer than ten of its intervals and than 50 ms, without those of a limited field of view."""

    count: Annotated[int, "Number of gaps."]
    total_s: Annotated[float, "Total duration."]
    longest: Annotated[Gap | None, "Longest gap, or None."]


@dataclass(frozen=True, kw_only=True)
class DeviceClock:
    """The sensor's own time stamps."""

    first_us: Annotated[int, "First stamp (past the hour, or since the sensor started)."]
    last_us: Annotated[int, "Last stamp."]
    duration_s: Annotated[float, "Duration by the stamps, without jumps."]
    repeated: Annotated[int, "Number of packets with the stamp of the former one."]
    out_of_order: Annotated[int, "Number of packets a few cycles earlier than the former one, as after reordering by a network."]
    jumps: Annotated[int, "Number of other irregular steps: the clock was set, or several sensors share the flow."]
    first_jump: Annotated[Place | None, "Place of the first jump, or None."]
    host_drift_ppm: Annotated[float, "Rate by which the sensor's clock is slower than the capturing host's."]
    host_drift_error_ppm: Annotated[float, "Standard error of that rate."]


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Packets missing in the capture."""

    packets: Annotated[int, "Number of missing packets."]
    runs: Annotated[int, "Number of places."]
    longest_run: Annotated[int, "Largest number of packets missing in one place."]
    longest_after: Annotated[Place | None, "Place of the last packet before it, or None."]


@dataclass(frozen=True, kw_only=True)
class FlowSummary:
    """Datagrams of one kind from one address and port to another."""

    source: Annotated[str, "Source IPv4 address."]
    source_port: Annotated[int, "Source UDP port."]
    destination: Annotated[str, "Destination IPv4 address."]
    destination_port: Annotated[int, "Destination UDP port."]
    kind: Annotated[PacketKind, "Recognised kind of the packets."]
    packets: Annotated[int, "Number of packets."]
    payload_bytes: Annotated[int, "Total size of the payloads."]
    smallest_bytes: Annotated[int, "Size of the smallest payload."]
    largest_bytes: Annotated[int, "Size of the largest payload."]
    first_bytes: Annotated[str, "Beginning of the first payload, hexadecimal."]
    first: Annotated[Place, "Place of the first datagram."]
    first_ns: Annotated[int, "Capture time of the first datagram since 1970-01-01 UTC."]
    last_ns: Annotated[int, "Capture time of the last datagram."]
    duration_s: Annotated[float, "Time between the first and the last datagram."]
    rate_hz: Annotated[float, "Mean rate by capture times."]
    spacing: Annotated[Spacing | None, "Time between captured packets, or None."]
    capture_step_ns: Annotated[int, "Largest step of which all capture times are multiples, counted from the first; 0 for a single time."]
    backward_capture_times: Annotated[int, "Number of datagrams captured earlier than the former one."]
    gaps: Annotated[Gaps, "Pauses of the flow."]
    details: Annotated[Any, "Figures of the payloads, a ``FlowDetails`` of the family; None for an unknown format."]

    @property
    def clock(self) -> DeviceClock | None:
        """Clock of the stamps; None without stamps."""
        return getattr(self.details, "clock", None)


@dataclass(frozen=True, kw_only=True)
class SensorInspection:
    """All datagrams of an address that sent at least one sensor's packet."""

    source: Annotated[str, "IPv4 address."]
    flows: Annotated[tuple[FlowSummary, ...], "Flows in order of appearance."]
    ground: Annotated[
        Ground | Reason | None, "Ground below the sensor, or the reason why none was found; None if none of its packets can be decoded."
    ] = None


@dataclass(frozen=True, kw_only=True)
class CaptureSummary:
    """Summary of a capture."""

    datagrams: Annotated[int, "Number of UDP datagrams."]
    payload_bytes: Annotated[int, "Total size of the payloads."]
    first_ns: Annotated[int, "Earliest capture time since 1970-01-01 UTC; 0 without datagrams."]
    last_ns: Annotated[int, "Latest capture time."]
    duration_s: Annotated[float, "Time between these."]
    sensors: Annotated[tuple[SensorInspection, ...], "Sensors by address, in order of appearance."]
    other_flows: Annotated[tuple[FlowSummary, ...], "Flows of addresses that sent nothing recognised."]
    unlisted_datagrams: Annotated[int, "Number of datagrams of flows that are only counted."]
