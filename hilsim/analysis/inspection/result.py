"""Result of an inspection: figures of a capture, its sensors and their flows; NaN if not measurable."""

from dataclasses import dataclass

from hilsim.analysis.ground import Ground, Reason
from hilsim.protocols.recognise import PacketKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Place in a capture.

    Attributes:
        frame: Number of the frame, from 1 as in analysers.
        at_s: Capture time since the first datagram, as ``hilsim replay --start-s`` counts.
    """

    frame: int
    at_s: float


@dataclass(frozen=True, kw_only=True)
class Spacing:
    """Time between captured packets of a flow; for Velodyne data and STDV points between packets that are neighbours by their stamps.

    Attributes:
        intervals: Number of intervals.
        mean_us: Mean.
        sd_us: Standard deviation.
        min_us: Shortest interval; negative if capture times go backwards.
        p1_us: 1st percentile.
        p50_us: Median.
        p99_us: 99th percentile.
        max_us: Longest interval.
        whole_millisecond_ratio: Share of intervals within 20 us of whole milliseconds, the ticks of an operating system's timer.
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
        duration_s: Duration by capture times.
        after: Place of the last datagram before the gap.
    """

    duration_s: float
    after: Place


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """Pauses of a flow longer than ten of its intervals and than 50 ms, without those of a limited field of view.

    Attributes:
        count: Number of gaps.
        total_s: Total duration.
        longest: Longest gap, or None.
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
        duration_s: Duration by the stamps, without jumps.
        repeated: Number of packets with the stamp of the former one.
        out_of_order: Number of packets a few cycles earlier than the former one, as after reordering by a network.
        jumps: Number of other irregular steps: the clock was set, or several sensors share the flow.
        first_jump: Place of the first jump, or None.
        host_drift_ppm: Rate by which the sensor's clock is slower than the capturing host's.
        host_drift_error_ppm: Standard error of that rate.
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
    """Packets missing in the capture.

    Attributes:
        packets: Number of missing packets.
        runs: Number of places.
        longest_run: Largest number of packets missing in one place.
        longest_after: Place of the last packet before it, or None.
    """

    packets: int
    runs: int
    longest_run: int
    longest_after: Place | None


@dataclass(frozen=True, kw_only=True)
class VelodyneData:
    """Figures of the data packets.

    Attributes:
        model: Model by the product byte and the time between packets; None if neither is known.
        is_early_unit: Whether it is a VLP-16 with the HDL-32E's product byte, as in 2014 firmware.
        products: Product bytes seen, the most frequent first.
        return_modes: Return mode bytes seen, the most frequent first.
        cycle_us: Time between packets by which steps are judged: the model's for the most frequent mode, else as measured.
        rotation_rate_rpm: Rotation rate by azimuth and stamps.
        azimuth_sectors_deg: Recorded parts of the turn, ``(start, end)``; only (0, 360) if nothing is left out or fewer than two turns
            were recorded.
        missing: Packets missing by the stamps, because the format has no sequence number.
        clock: Clock of the stamps.
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
    """Figures of the position packets.

    Attributes:
        rate_hz: Packets a second by their stamps.
        pps_states: States seen, the most frequent first.
        sentences: Number of different consecutive NMEA sentences.
        first_sentence: First sentence as text without its line end, or None.
        last_sentence: Last sentence as text without its line end, or None.
        first_sentence_utc: Time of the first sentence, ``2016-01-21T08:18:02Z``, without the date if it has none; None without a time.
        last_sentence_utc: Time of the last sentence, in the same form.
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
    """Figures of the STDV headers.

    Attributes:
        versions: Header versions seen.
        points: Number of points.
        fewest_points: Smallest number of points in a packet.
        most_points: Largest number of points in a packet.
        frames: Number of frames by the frame parity, of which the first and last may be incomplete.
        sequence_breaks: Number of sequence numbers that go back or leap by more than 2**31, as after a restart.
        missing: Packets missing by the sequence numbers; None without numbers (header version 1).
        clock: Clock of the reference timestamps.
    """

    versions: tuple[int, ...]
    points: int
    fewest_points: int
    most_points: int
    frames: int
    sequence_breaks: int
    missing: Missing | None
    clock: DeviceClock


@dataclass(frozen=True, kw_only=True)
class OusterLidar:
    """Figures of the lidar packets of one Ouster sensor.

    Attributes:
        serial: Serial number in the packets; 0 in packets without packet header.
        header: Kind of the packet header: ``NONE``, ``STANDARD`` or ``FUSA``.
        model: Product line by the metadata, as ``OS-1-128``; None without metadata, as the next four.
        firmware: Version of the firmware.
        profile: Lidar profile.
        lidar_mode: Columns a turn and turns a second of the setting, as ``1024x10``.
        column_window: First and last measurement id that is sent.
        channels: Beams; 0 if the metadata are missing and the packets' size allows several.
        fits: Profiles and channels that the packets' size allows, as text; empty with metadata.
        mismatch: Disagreement of packets and metadata; empty for none.
        init_ids: Initialisation ids seen, the most frequent first.
        first_frame_id: Frame id of the first packet.
        last_frame_id: Frame id of the last packet.
        frames: Number of frames, of which the first and last may be incomplete.
        frame_breaks: Number of times that frame ids began anew.
        columns_per_frame: Columns a turn, by the metadata, else those of the smallest mode with the measurement ids seen.
        columns: Number of columns in the packets.
        invalid_columns: Number of those with status 0, as outside the azimuth window.
        frame_rate_hz: Turns a second by the columns' stamps.
        column_period_us: Mean time from a column to the next one.
        column_period_sd_us: Standard deviation of that time.
        stamp_grid_ns: Largest number of nanoseconds of which all stamps are multiples.
        alert_flags: Values of the alert flags seen, the most frequent first.
        missing: Packets missing by frame ids and measurement ids.
        clock: Clock of the stamps of the packets' last columns.
    """

    serial: int
    header: str
    model: str | None
    firmware: str | None
    profile: str | None
    lidar_mode: str | None
    column_window: tuple[int, int] | None
    channels: int
    fits: str
    mismatch: str
    init_ids: tuple[int, ...]
    first_frame_id: int
    last_frame_id: int
    frames: int
    frame_breaks: int
    columns_per_frame: int
    columns: int
    invalid_columns: int
    frame_rate_hz: float
    column_period_us: float
    column_period_sd_us: float
    stamp_grid_ns: int
    alert_flags: tuple[int, ...]
    missing: Missing
    clock: DeviceClock


@dataclass(frozen=True, kw_only=True)
class OusterImu:
    """Figures of IMU packets.

    Attributes:
        form: ``LEGACY`` (48 bytes) or ``ACCEL32_GYRO32_NMEA``.
        rate_hz: Measurements a second by their stamps.
        measurements_per_packet: Measurements a packet.
        acceleration_g: Mean norm of the acceleration.
        sentence: NMEA sentence seen last; None without one.
    """

    form: str
    rate_hz: float
    measurements_per_packet: int
    acceleration_g: float
    sentence: str | None


Details = VelodyneData | VelodynePosition | StdvPoints | OusterLidar | OusterImu


@dataclass(frozen=True, kw_only=True)
class FlowSummary:
    """Datagrams of one kind from one address and port to another.

    Attributes:
        source: Source IPv4 address.
        source_port: Source UDP port.
        destination: Destination IPv4 address.
        destination_port: Destination UDP port.
        kind: Recognised kind of the packets.
        packets: Number of packets.
        payload_bytes: Total size of the payloads.
        smallest_bytes: Size of the smallest payload.
        largest_bytes: Size of the largest payload.
        first_bytes: Beginning of the first payload, hexadecimal.
        first: Place of the first datagram.
        first_ns: Capture time of the first datagram since 1970-01-01 UTC.
        last_ns: Capture time of the last datagram.
        duration_s: Time between the first and the last datagram.
        rate_hz: Mean rate by capture times.
        spacing: Time between captured packets, or None.
        capture_step_ns: Largest step of which all capture times are multiples, counted from the first; 0 for a single time.
        backward_capture_times: Number of datagrams captured earlier than the former one.
        gaps: Pauses of the flow.
        details: Figures of the payloads; None for an unknown format.
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
    """All datagrams of an address that sent at least one sensor's packet.

    Attributes:
        source: IPv4 address.
        flows: Flows in order of appearance.
        ground: Ground below the sensor, or the reason why none was found; None if none of its packets can be decoded.
    """

    source: str
    flows: tuple[FlowSummary, ...]
    ground: Ground | Reason | None = None


@dataclass(frozen=True, kw_only=True)
class CaptureSummary:
    """Summary of a capture.

    Attributes:
        datagrams: Number of UDP datagrams.
        payload_bytes: Total size of the payloads.
        first_ns: Earliest capture time since 1970-01-01 UTC; 0 without datagrams.
        last_ns: Latest capture time.
        duration_s: Time between these.
        sensors: Sensors by address, in order of appearance.
        other_flows: Flows of addresses that sent nothing recognised.
        unlisted_datagrams: Number of datagrams of flows that are only counted.
    """

    datagrams: int
    payload_bytes: int
    first_ns: int
    last_ns: int
    duration_s: float
    sensors: tuple[SensorSummary, ...]
    other_flows: tuple[FlowSummary, ...]
    unlisted_datagrams: int
