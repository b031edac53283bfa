"""Figures that were learned, and those that were not."""

from dataclasses import dataclass, field
from typing import Annotated, Any


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a unit."""

    name: Annotated[str, "Key in the unit's file, such as ``laser.range_bias_m``."]
    text: Annotated[str, "Value with its unit for people; empty: not learned."] = ""
    samples: Annotated[int, "Number of samples that it was learned from."] = 0
    reason: Annotated[str, "Why it was not learned; empty: it was."] = ""
    note: Annotated[str, "Remark on the value; empty: none."] = ""

    @property
    def is_learned(self) -> bool:
        """Whether there is a value."""
        return not self.reason


@dataclass(kw_only=True)
class Learned:
    """Keys of a unit's file that were learned, and the figures of a report.

    Attributes:
        keys: Keys of the unit.
        lasers: Keys of each laser, in firing order.
        figures: Figures in the order of the report.
    """

    keys: dict[str, Any] = field(default_factory=dict)
    lasers: list[dict[str, Any]] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, text: str, samples: int, *, note: str = "") -> None:
        """Add a figure that was learned."""
        self.figures.append(Figure(name=name, text=text, samples=int(samples), note=note))

    def lack(self, name: str, reason: str, samples: int = 0) -> None:
        """Add a figure that was not learned."""
        self.figures.append(Figure(name=name, reason=reason, samples=int(samples)))
