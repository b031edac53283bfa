"""Result of an inspection: figures of a capture, its sensors and their flows. NaN: could not be measured."""

from dataclasses import dataclass

from hilsim.analysis.ground import Ground, Reason
from hilsim.protocols.recognise import PacketKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where something is in a capture.

    Attributes:
        frame: Number of the frame, from 1 as analysers count.
        at_s: Capture time since the first datagram, as ``hilsim replay --start-s`` counts.
    """

    frame: int
    at_s: float


@dataclass(frozen=True, kw_only=True)
class Spacing:
    """Time between captured packets of a flow; for Velodyne data and STDV points between packets that follow each other by their stamps.

    Attributes:
        intervals: How many.
        mean_us: Mean.
        sd_us: Standard deviation.
        min_us: Shortest; negative where capture times go backwards.
        p1_us: 1st percentile.
        p50_us: Median.
        p99_us: 99th percentile.
        max_us: Longest.
        whole_millisecond_ratio: Share of them within 20 us of whole milliseconds, the ticks of an operating system's timer.
    """

    intervals: int
    mean_us: float
    sd_us: float
    min_us: float
    p1_us: float
    p50_us: float
    p99_us: float
    max_us: float
    whole_millisecond_ratio: float


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A pause in a flow.

    Attributes:
        duration_s: By capture times.
        after: The last datagram before it.
    """

    duration_s: float
    after: Place


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """Pauses of a flow longer than ten of its intervals and than 50 ms, those of a limited field of view left out.

    Attributes:
        count: How many.
        total_s: All together.
        longest: The longest, or None.
    """

    count: int
    total_s: float
    longest: Gap | None


@dataclass(frozen=True, kw_only=True)
class DeviceClock:
    """The sensor's own time stamps.

    Attributes:
        first_us: First stamp (Velodyne: past the hour; Cepton: since the sensor started).
        last_us: Last stamp.
        duration_s: Time that passed by them, jumps left out.
        repeated: Packets with the stamp of the one before.
        out_of_order: Packets a few cycles earlier than the one before, as a network reorders them.
        jumps: Other steps that do not follow from the stamp before: the clock was set, or several sensors share the flow.
        first_jump: Where the first is, or None.
        host_drift_ppm: How much slower the sensor's clock runs than the capturing host's.
        host_drift_error_ppm: Standard error of that.
    """

    first_us: int
    last_us: int
    duration_s: float
    repeated: int
    out_of_order: int
    jumps: int
    first_jump: Place | None
    host_drift_ppm: float
    host_drift_error_ppm: float


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Packets that are not in the capture.

    Attributes:
        packets: How many.
        runs: In how many places.
        longest_run: Packets missing in the worst place.
        longest_after: The last packet before it, or None.
    """

    packets: int
    runs: int
    longest_run: int
    longest_after: Place | None


@dataclass(frozen=True, kw_only=True)
class VelodyneData:
    """Figures from the data packets.

    Attributes:
        model: By the product byte and the time between packets; None where neither is known.
        is_early_unit: A VLP-16 that sends the HDL-32E's product byte, as 2014 firmware does.
        products: Product bytes seen, the most frequent first.
        return_modes: Return mode bytes seen, the most frequent first.
        cycle_us: Time between packets that steps are judged by: the model's for the most frequent mode, else as measured.
        rotation_rate_rpm: By azimuth and stamps.
        azimuth_sectors_deg: Parts of the turn that were seen, ``(start, end)``; one of (0, 360) where nothing is left out or less than two turns
            were recorded.
        missing: By the stamps, as the format has no sequence number.
        clock: The stamps.
    """

    model: str | None
    is_early_unit: bool
    products: tuple[int, ...]
    return_modes: tuple[int, ...]
    cycle_us: float
    rotation_rate_rpm: float
    azimuth_sectors_deg: tuple[tuple[float, float], ...]
    missing: Missing
    clock: DeviceClock


@dataclass(frozen=True, kw_only=True)
class VelodynePosition:
    """Figures from the position packets.

    Attributes:
        rate_hz: By their stamps.
        pps_states: States seen, the most frequent first.
        sentences: Different NMEA sentences in a row.
        first_sentence: As text without its line end, or None.
        last_sentence: As text without its line end, or None.
        first_sentence_utc: Its time, ``2016-01-21T08:18:02Z`` or without the date where it has none; None where it names no time.
        last_sentence_utc: As ``first_sentence_utc``.
    """

    rate_hz: float
    pps_states: tuple[int, ...]
    sentences: int
    first_sentence: str | None
    last_sentence: str | None
    first_sentence_utc: str | None
    last_sentence_utc: str | None


@dataclass(frozen=True, kw_only=True)
class StdvPoints:
    """Figures from the STDV headers.

    Attributes:
        versions: Header versions seen.
        points: Points in all.
        fewest_points: In a packet.
        most_points: In a packet.
        frames: By the frame parity, the first and last maybe not whole.
        sequence_breaks: Sequence numbers that go back or leap by more than 2**31, as after a restart.
        missing: By the sequence numbers; None where the headers have none (version 1).
        clock: The reference timestamps.
    """

    versions: tuple[int, ...]
    points: int
    fewest_points: int
    most_points: int
    frames: int
    sequence_breaks: int
    missing: Missing | None
    clock: DeviceClock


Details = VelodyneData | VelodynePosition | StdvPoints


@dataclass(frozen=True, kw_only=True)
class FlowSummary:
    """Datagrams of one kind from one address and port to another.

    Attributes:
        source: IPv4 address.
        source_port: UDP port.
        destination: IPv4 address.
        destination_port: UDP port.
        kind: What they were recognised as.
        packets: How many.
        payload_bytes: All together.
        smallest_bytes: Smallest payload.
        largest_bytes: Largest payload.
        first_bytes: Start of the first payload, hexadecimal.
        first: The first datagram.
        first_ns: Its capture time since 1970-01-01 UTC.
        last_ns: Capture time of the last.
        duration_s: Between them.
        rate_hz: Mean, by capture times.
        spacing: Between captured packets, or None.
        capture_step_ns: Largest step that all capture times are multiples of, counted from the first; 0 for a single time.
        backward_capture_times: Datagrams captured earlier than the one before.
        gaps: Pauses.
        details: Figures from the payloads; None for an unknown format.
    """

    source: str
    source_port: int
    destination: str
    destination_port: int
    kind: PacketKind
    packets: int
    payload_bytes: int
    smallest_bytes: int
    largest_bytes: int
    first_bytes: str
    first: Place
    first_ns: int
    last_ns: int
    duration_s: float
    rate_hz: float
    spacing: Spacing | None
    capture_step_ns: int
    backward_capture_times: int
    gaps: Gaps
    details: Details | None


@dataclass(frozen=True, kw_only=True)
class SensorSummary:
    """Everything an address sent that sent at least one sensor's packet.

    Attributes:
        source: IPv4 address.
        flows: In order of appearance.
        ground: The ground below the sensor, or why it was not found; None where none of its packets can be decoded.
    """

    source: str
    flows: tuple[FlowSummary, ...]
    ground: Ground | Reason | None = None


@dataclass(frozen=True, kw_only=True)
class CaptureSummary:
    """What is in a capture.

    Attributes:
        datagrams: UDP datagrams.
        payload_bytes: All together.
        first_ns: Earliest capture time since 1970-01-01 UTC; 0 without datagrams.
        last_ns: Latest capture time.
        duration_s: Between them.
        sensors: By address, in order of appearance.
        other_flows: Flows of addresses that sent nothing recognised.
        unlisted_datagrams: Datagrams of flows beyond the number that is kept apart.
    """

    datagrams: int
    payload_bytes: int
    first_ns: int
    last_ns: int
    duration_s: float
    sensors: tuple[SensorSummary, ...]
    other_flows: tuple[FlowSummary, ...]
    unlisted_datagrams: int
