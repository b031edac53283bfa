"""Figures that were learned, and those that were not; and rows of arrays from which they are learned."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt


class Rows:
    """Arrays of one length, the fields of a dataclass."""

    def chosen(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Self:
        """Some of the rows."""
        return type(self)(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})  # type: ignore[arg-type] # a dataclass

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Rows of several parts, one after the other."""
        return cls(**{each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)})  # type: ignore[arg-type] # a dataclass


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

    def lack(self, names: str | tuple[str, ...], reason: str, samples: int = 0) -> None:
        """Add figures that were not learned for one reason."""
        self.figures += [Figure(name=name, reason=reason, samples=int(samples)) for name in ((names,) if isinstance(names, str) else names)]
