"""Rules, findings, and a log that stores only the first findings of each rule."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

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

    def at(self, byte_offset: int) -> "Place":
        """Place of a byte of the same packet."""
        return self._replace(byte_offset=byte_offset)


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

    def applies(self, rules: Rule | tuple[Rule, ...], got: int, needs: int = 0, of: str = "packets") -> bool:
        """Whether there are samples enough for rules, or a part of them; else record that they were not judged.

        Args:
            rules: The rules.
            got: Actual number of samples.
            needs: Required number of samples; 0 for the rules' own numbers, of which the first one's decides.
            of: Name of the samples.
        """
        of_all = (rules,) if isinstance(rules, Rule) else rules
        if got >= (needs or of_all[0].packets):
            return True
        self.not_applied += [NotApplied(rule=rule.id, got=got, needs=needs or rule.packets, of=of) for rule in of_all]
        return False

    def report(self, rule: Rule, message: str, place: Place | None = None, *, severity: Severity | None = None) -> None:
        """Record one finding; ``severity`` overrides the rule's in the cases that the reference names."""
        self.counts[rule.id] = self.counts.get(rule.id, 0) + 1
        if self.counts[rule.id] <= KEPT_PER_RULE:
            self.findings.append(Finding(rule=rule.id, severity=severity or rule.severity, message=message, place=place))

    def report_each(
        self,
        rule: Rule,
        wrong: npt.NDArray[np.bool_],
        message: Callable[..., str],
        place: Callable[..., Place],
        byte: int | Callable[..., int] | None = None,
    ) -> None:
        """Record a finding for each row with a True value; messages are made only for the first few.

        Args:
            rule: The rule.
            wrong: ``bool[n, ...]`` by row, and by the parts of a row, of which the first True one counts.
            message: Function of the row and the indices of that part.
            place: Function of the row, and of the byte if there is one.
            byte: Byte offset, or a function of the indices of the part.
        """
        rows = np.flatnonzero(wrong.any(axis=tuple(range(1, wrong.ndim)))).tolist()
        room = max(0, KEPT_PER_RULE - self.counts.get(rule.id, 0))
        for row in rows[:room]:
            part = np.argwhere(wrong[row])[0].tolist()
            at = byte(*part) if callable(byte) else byte
            self.report(rule, message(row, *part), place(row) if at is None else place(row, at))
        self.add(rule, len(rows[room:]))

    def add(self, rule: Rule, count: int) -> None:
        """Count findings without their messages."""
        if count:
            self.counts[rule.id] = self.counts.get(rule.id, 0) + count
