"""Rules, findings, and a log that stores only the first findings of each rule."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

KEPT_PER_RULE = 5


class Severity(StrEnum):
    """Severity of a finding.

    An error occurs on no real sensor. A warning is unusual, or occurs on single real units only. A note is information.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule; ``docs/reference/conformance-rules.md`` states what real sensors do, and the source."""

    id: Annotated[str, "Stable id ``topic.name``, which scripts use."]
    severity: Annotated[Severity, "Default severity of the findings."]
    packets: Annotated[int, "Number of packets needed for the rule; 1 for rules about a single packet."] = 1


class Place(NamedTuple):
    """Place of a finding.

    Attributes:
        packet_index: Index of the data (or position) packet of this sensor, from 0.
        frame: Number of the frame in the capture, from 1.
        byte_offset: Offset in the UDP payload, or None.
    """

    packet_index: int
    frame: int
    byte_offset: int | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding."""

    rule: Annotated[str, "Id of the rule."]
    severity: Annotated[Severity, "Severity of the finding."]
    message: Annotated[str, "Expected and actual values."]
    place: Annotated[Place | None, "Place of the finding, or None for the stream as a whole."] = None


@dataclass(frozen=True, kw_only=True)
class NotApplied:
    """A rule that was not judged, because the stream is too short."""

    rule: Annotated[str, "Id of the rule."]
    got: Annotated[int, "Actual number of samples."]
    needs: Annotated[int, "Required number of samples."]
    of: Annotated[str, "Name of the samples."]


class FindingLog:
    """Log of findings in their order: the first few of each rule, the number of all, and the rules that were not judged."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: dict[str, int] = {}
        self.not_applied: list[NotApplied] = []

    def skip(self, rule: Rule, got: int, needs: int, of: str = "packets") -> None:
        """Record that a rule, or a part of it, was not judged for lack of samples."""
        self.not_applied.append(NotApplied(rule=rule.id, got=got, needs=needs, of=of))

    def report(self, rule: Rule, message: str, place: Place | None = None, *, severity: Severity | None = None) -> None:
        """Record one finding; ``severity`` overrides the rule's in the cases that the reference names."""
        self.counts[rule.id] = self.counts.get(rule.id, 0) + 1
        if self.counts[rule.id] <= KEPT_PER_RULE:
            self.findings.append(Finding(rule=rule.id, severity=severity or rule.severity, message=message, place=place))

    def report_each(self, rule: Rule, indices: Iterable[int], message: Callable[[int], str], place: Callable[[int], Place]) -> None:
        """Record a finding for each index; messages are made only for the first few."""
        waiting = list(indices)
        room = max(0, KEPT_PER_RULE - self.counts.get(rule.id, 0))
        for index in waiting[:room]:
            self.report(rule, message(index), place(index))
        self.counts[rule.id] = self.counts.get(rule.id, 0) + max(0, len(waiting) - room)
        if not self.counts[rule.id]:
            del self.counts[rule.id]
