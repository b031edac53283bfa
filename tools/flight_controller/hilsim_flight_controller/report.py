"""Collection of a controller's findings: checks, events, figures."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from hilsim_flight_controller.flight_report import RULES, Event, Fault

MAX_KEPT = 20
"""Maximum number of faults of a rule kept in words; all are counted."""


@dataclass
class Report:
    """Collects findings; ``as_dict`` is written by the program."""

    judged: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    received: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def judge(self, rule: str, holds: bool, now_us: int, name: str, value: object, must: str) -> bool:  # noqa: FBT001 - a sentence by place
        """Count a check of ``rule``, and record a violation. Returns ``holds``.

        Args:
            rule: Key of ``RULES``.
            holds: Whether the rule holds.
            now_us: Time on the controller's clock.
            name: Checked quantity.
            value: Actual value.
            must: Expected value.
        """
        if rule not in RULES:
            raise KeyError(rule)
        self.judged[rule] += 1
        if not holds:
            self.broken[rule] += 1
            if self.broken[rule] <= MAX_KEPT:
                shown = f"{value:.6g}" if isinstance(value, float) else str(value)
                self.faults.append(Fault(rule=rule, time_s=now_us * 1e-6, field=name, value=shown, must=must))
        return holds

    def note(self, now_us: int, text: str) -> None:
        """Record an event."""
        self.events.append(Event(round(now_us * 1e-6, 6), text))

    def time_of(self, text: str) -> float | None:
        """Time in seconds of an event's first occurrence, or None."""
        return next((time_s for time_s, event in self.events if event == text), None)

    def as_dict(self) -> dict[str, Any]:
        """Report for JSON."""
        return {
            "judged": dict(self.judged),
            "broken": dict(self.broken),
            "faults": [row_of(fault) for fault in self.faults],
            "received": dict(self.received),
            "events": self.events,
            "figures": self.figures,
        }


def row_of(fault: Fault) -> dict[str, Any]:
    """Fault for JSON, with its text."""
    return asdict(fault) | {"text": str(fault)}
