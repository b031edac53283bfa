"""Result of a check."""

import math
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, Self, get_type_hints

from hilsim.read.analysis.conformance.findings import Finding, NotApplied, Severity


@dataclass(frozen=True, kw_only=True)
class SensorSummary(ABC):
    """Figures of one sensor's stream; NaN or None for those that are not known."""

    @classmethod
    def of(cls, check: Any) -> Self:
        """Figures of a check: each at the path of attributes or methods that is the second word of its annotation, else at its name.

        A figure is None where an object on its path is.
        """
        hints = get_type_hints(cls, include_extras=True)
        paths = {
            figure.name: (*getattr(hints[figure.name], "__metadata__", ())[1:], figure.name)[0] for figure in fields(cls) if figure.default is MISSING
        }
        return cls(**{name: _figure_at(check, path) for name, path in paths.items()})

    @abstractmethod
    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""


@dataclass(frozen=True, kw_only=True)
class SensorResult:
    """Findings and figures of one sensor."""

    source: Annotated[str, "Address of the sensor."]
    summary: Annotated[SensorSummary, "Figures of the stream."]
    findings: Annotated[tuple[Finding, ...], "First few findings of each rule."]
    counts: Annotated[dict[str, int], "Number of all findings, by rule id."]
    not_applied: Annotated[tuple[NotApplied, ...], "Rules for which the stream is too short."] = ()


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """Findings and figures of a stream."""

    sensors: Annotated[tuple[SensorResult, ...], "One entry for each address, in order of appearance."]
    findings: Annotated[tuple[Finding, ...], "Findings on the stream as a whole."] = field(default=())
    datagrams: Annotated[int, "Number of datagrams checked."]
    strangers: Annotated[int, "Number of datagrams of addresses that sent nothing like a sensor's packet."]

    def count(self, severity: Severity) -> int:
        """Number of reported findings of one severity."""
        findings = [*self.findings, *(finding for sensor in self.sensors for finding in sensor.findings)]
        return sum(finding.severity is severity for finding in findings)

    @property
    def passed(self) -> bool:
        """Whether no error was found."""
        return self.count(Severity.ERROR) == 0


def _figure_at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
        value = value() if callable(value) else value
    return value


def known(value: float, form: str) -> str:
    """Format a figure; ``-`` if it is unknown."""
    return "-" if math.isnan(value) else format(value, form)
