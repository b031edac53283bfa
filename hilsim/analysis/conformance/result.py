"""Result of a check."""

from dataclasses import dataclass, field

from hilsim.analysis.conformance.findings import Finding, NotApplied, Severity


@dataclass(frozen=True, kw_only=True)
class SensorSummary:
    """Figures of one sensor's stream; NaN for those with too few packets.

    Attributes:
        data_packets: Number of whole data packets.
        position_packets: Number of whole position packets.
        other_datagrams: Number of other datagrams of the same address.
        model: Model by whose rules the stream was checked.
        return_mode: Return mode byte.
        product: Product byte.
        is_dual: Whether blocks come in pairs of one azimuth.
        rate_rpm: Revolutions a minute by azimuth and firing clock.
        cycle_us: Fitted time between packets.
        cycle_drift_ppm: Relative excess of ``cycle_us`` over the model's.
        stamp_residual_us: Root mean square distance of the stamps from the fit.
        lost_packets: Number of packets missing by the stamps.
        azimuth_increment_cdeg: Mean increment from block to block.
        azimuth_increment_sd_cdeg: Standard deviation of the increments.
        azimuth_autocorrelation: Correlation of neighbouring increments.
        field_of_view_gaps: Number of jumps of azimuth inside packets.
        no_return_ratio: Share of records without a return.
        position_rate_hz: Position packets a second by their stamps.
        nmea_sentences: Number of different sentences.
        pps_states: PPS bytes seen.
        headers: Origin of the data packets' headers.
        gap_p1_us: 1st percentile of the host time between neighbouring data packets.
        gap_p50_us: Median of the host time between neighbouring data packets.
        gap_p99_us: 99th percentile of the host time between neighbouring data packets.
        gap_sd_us: Standard deviation of the host time between neighbouring data packets.
        host_drift_ppm: Rate by which the sensor's clock is slower than the host's.
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
    """Figures of a stream of another family than Velodyne."""

    def lines(self) -> list[str]:
        """Figures as lines of text."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SensorResult:
    """Findings and figures of one sensor.

    Attributes:
        source: Address of the sensor.
        summary: Figures of the stream.
        findings: First few findings of each rule.
        counts: Number of all findings, by rule id.
        not_applied: Rules for which the stream is too short.
    """

    source: str
    summary: SensorSummary | OtherSummary
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    not_applied: tuple[NotApplied, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """Findings and figures of a stream.

    Attributes:
        sensors: One entry for each address, in order of appearance.
        findings: Findings on the stream as a whole.
        datagrams: Number of datagrams checked.
        strangers: Number of datagrams of addresses that sent nothing like a sensor's packet.
    """

    sensors: tuple[SensorResult, ...]
    findings: tuple[Finding, ...] = field(default=())
    datagrams: int
    strangers: int

    def count(self, severity: Severity) -> int:
        """Number of reported findings of one severity."""
        findings = [*self.findings, *(finding for sensor in self.sensors for finding in sensor.findings)]
        return sum(finding.severity is severity for finding in findings)

    @property
    def passed(self) -> bool:
        """Whether no error was found."""
        return self.count(Severity.ERROR) == 0
