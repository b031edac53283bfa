"""Result of a check."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from hilsim.analysis.conformance.findings import Finding, NotApplied, Severity


@dataclass(frozen=True, kw_only=True)
class SensorSummary(ABC):
    """Figures of one sensor's stream; NaN or None for those that are not known."""

    @abstractmethod
    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""


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
    summary: SensorSummary
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


def known(value: float, form: str) -> str:
    """Format a figure; ``-`` if it is unknown."""
    return "-" if math.isnan(value) else format(value, form)
