"""What a check ends in."""

from dataclasses import dataclass, field

from hilsim.analysis.conformance.findings import Finding, NotApplied, Severity


@dataclass(frozen=True, kw_only=True)
class SensorSummary:
    """Figures of one sensor's stream; NaN for those that had too few packets.

    Attributes:
        data_packets: Whole data packets.
        position_packets: Whole position packets.
        other_datagrams: Datagrams of the same address that are neither.
        model: What it was checked as.
        return_mode: The factory byte.
        product: The factory byte.
        is_dual: Blocks come in pairs of one azimuth.
        rate_rpm: Revolutions a minute by azimuth and firing clock.
        cycle_us: Fitted time between packets.
        cycle_drift_ppm: How much longer that is than the model's.
        stamp_residual_us: Root mean square distance of the stamps from the fit.
        lost_packets: Missing by the stamps.
        azimuth_increment_cdeg: Mean from block to block.
        azimuth_increment_sd_cdeg: Standard deviation of that.
        azimuth_autocorrelation: Correlation of neighbouring increments.
        field_of_view_gaps: Jumps of azimuth inside packets.
        no_return_ratio: Share of records without a return.
        position_rate_hz: Position packets a second by their stamps.
        nmea_sentences: Different sentences.
        pps_states: PPS bytes seen.
        headers: Whose headers the data packets carry.
        gap_p1_us: Host time between neighbouring data packets, 1st percentile; and median, 99th percentile, standard deviation.
        gap_p50_us: See ``gap_p1_us``.
        gap_p99_us: See ``gap_p1_us``.
        gap_sd_us: See ``gap_p1_us``.
        host_drift_ppm: How much slower the sensor's clock runs than the host's.
    """

    data_packets: int
    position_packets: int
    other_datagrams: int
    model: str | None
    return_mode: int | None
    product: int | None
    is_dual: bool
    rate_rpm: float
    cycle_us: float
    cycle_drift_ppm: float
    stamp_residual_us: float
    lost_packets: int
    azimuth_increment_cdeg: float
    azimuth_increment_sd_cdeg: float
    azimuth_autocorrelation: float
    field_of_view_gaps: int
    no_return_ratio: float
    position_rate_hz: float
    nmea_sentences: int
    pps_states: tuple[int, ...]
    headers: str
    gap_p1_us: float
    gap_p50_us: float
    gap_p99_us: float
    gap_sd_us: float
    host_drift_ppm: float


@dataclass(frozen=True, kw_only=True)
class OtherSummary:
    """Figures of a stream that is no Velodyne's."""

    def lines(self) -> list[str]:
        """They themselves, for a person."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SensorResult:
    """What was found of one sensor.

    Attributes:
        source: Its address.
        summary: Figures.
        findings: Of each rule the first few.
        counts: Findings in all, by rule id.
        not_applied: Rules that there was too little of the stream for.
    """

    source: str
    summary: SensorSummary | OtherSummary
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    not_applied: tuple[NotApplied, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What was found of a stream.

    Attributes:
        sensors: One entry an address, in order of appearance.
        findings: Of the stream as a whole.
        datagrams: Datagrams looked at.
        strangers: Datagrams of addresses that sent nothing like a Velodyne packet.
    """

    sensors: tuple[SensorResult, ...]
    findings: tuple[Finding, ...] = field(default=())
    datagrams: int
    strangers: int

    def count(self, severity: Severity) -> int:
        """Findings in full of one severity."""
        findings = [*self.findings, *(finding for sensor in self.sensors for finding in sensor.findings)]
        return sum(finding.severity is severity for finding in findings)

    @property
    def passed(self) -> bool:
        """No error was found."""
        return self.count(Severity.ERROR) == 0
