"""Rules, findings, and the log that keeps findings from drowning the reader."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

KEPT_PER_RULE = 5


class Severity(StrEnum):
    """How much a finding weighs.

    An error is something no real sensor does. A warning is unusual, or was seen on single real units only. A note is worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One thing that is checked; ``docs/reference/conformance-rules.md`` states what holds for a real sensor, and where that is known from.

    Attributes:
        id: ``topic.name``, stable: scripts look for it.
        severity: Default severity of its findings.
        packets: Packets needed before the rule applies; 1 for rules about a single packet.
    """

    id: str
    severity: Severity
    packets: int = 1


class Place(NamedTuple):
    """Where a finding was made.

    Attributes:
        packet_index: Which data (or position) packet of this sensor, from 0.
        frame: Number of its frame in the capture, from 1.
        byte_offset: Byte of the UDP payload, or None.
    """

    packet_index: int
    frame: int
    byte_offset: int | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found.

    Attributes:
        rule: Id of the rule.
        severity: How much it weighs.
        message: What was expected and what was got.
        place: Where, or None for a finding about the stream as a whole.
    """

    rule: str
    severity: Severity
    message: str
    place: Place | None = None


@dataclass(frozen=True, kw_only=True)
class NotApplied:
    """A rule that could not be judged, as the stream is too short for it.

    Attributes:
        rule: Id of the rule.
        got: How many there were.
        needs: How many it needs.
        of: What is counted.
    """

    rule: str
    got: int
    needs: int
    of: str


class FindingLog:
    """Findings in the order they were made; of each rule the first few in full and all in number. And what could not be judged."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: dict[str, int] = {}
        self.not_applied: list[NotApplied] = []

    def skip(self, rule: Rule, got: int, needs: int, of: str = "packets") -> None:
        """Record that there was too little to judge a rule, or a part of it."""
        self.not_applied.append(NotApplied(rule=rule.id, got=got, needs=needs, of=of))

    def report(self, rule: Rule, message: str, place: Place | None = None, *, severity: Severity | None = None) -> None:
        """Record one finding; ``severity`` overrides the rule's in the cases that the rule's text names."""
        self.counts[rule.id] = self.counts.get(rule.id, 0) + 1
        if self.counts[rule.id] <= KEPT_PER_RULE:
            self.findings.append(Finding(rule=rule.id, severity=severity or rule.severity, message=message, place=place))

    def report_each(self, rule: Rule, indices: Iterable[int], message: Callable[[int], str], place: Callable[[int], Place]) -> None:
        """Record a finding for each index; messages are only made for the few that are kept."""
        waiting = list(indices)
        room = max(0, KEPT_PER_RULE - self.counts.get(rule.id, 0))
        for index in waiting[:room]:
            self.report(rule, message(index), place(index))
        self.counts[rule.id] = self.counts.get(rule.id, 0) + max(0, len(waiting) - room)
        if not self.counts[rule.id]:
            del self.counts[rule.id]
