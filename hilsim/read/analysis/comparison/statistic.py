"""Definition of one compared statistic: value of a stream, and distance of two streams."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilsim.read.analysis.comparison import histogram

Number = Callable[[Any], float]
"""Function of the statistics of a stream, of the type of the sensor's family."""
Count = Callable[[Any], int]
Distribution = Callable[[Any], histogram.Histogram]


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """Definition of one statistic.

    Attributes:
        name: ``group.name``.
        unit: Unit of the distance, and of the value if ``shown`` does not name another.
        value: Function that gives the value of a stream; NaN if unknown.
        shown: Function that gives the value as text.
        distance: Function that gives the distance of two streams, 0 for equal ones; NaN if the statistic is unknown for either.
        depends_on: Cause of differences between two captures of one model: ``"scene"``, ``"unit"`` or ``"host"``; "" for none.
        samples: Function that gives the number of samples.
    """

    name: str
    unit: str
    value: Number
    shown: Callable[[Any], str]
    distance: Callable[[Any, Any], float]
    depends_on: str
    samples: Count

    @property
    def is_of_pairs(self) -> bool:
        """Whether the statistic is reported for dual mode only."""
        return self.name.startswith("dual.")


def text(value: float, form: str) -> str:
    """Format a value; ``-`` if it is unknown."""
    return "-" if np.isnan(value) else format(value, form)


def number(name: str, value: Number, unit: str, form: str, samples: Count, *, depends_on: str = "") -> Statistic:
    """Make a statistic of a number, whose distance is the difference."""
    return Statistic(
        name=name,
        unit=unit,
        value=value,
        shown=lambda stream: text(value(stream), form),
        distance=lambda a, b: abs(value(a) - value(b)),
        depends_on=depends_on,
        samples=samples,
    )


def total_variation(name: str, distribution: Distribution, *, depends_on: str = "") -> Statistic:
    """Make a statistic of a distribution, whose distance is that of the shares and whose text is the most frequent value."""
    return Statistic(
        name=name,
        unit="TV",
        value=lambda stream: distribution(stream).mode,
        shown=lambda stream: _most_frequent(distribution(stream)),
        distance=lambda a, b: histogram.total_variation(distribution(a), distribution(b)),
        depends_on=depends_on,
        samples=lambda stream: distribution(stream).total,
    )


def wasserstein(name: str, distribution: Distribution, unit: str, form: str, *, depends_on: str) -> Statistic:
    """Make a statistic of a distribution, whose distance is that by which values must be moved and whose text is the mean."""
    return Statistic(
        name=name,
        unit=unit,
        value=lambda stream: distribution(stream).mean,
        shown=lambda stream: text(distribution(stream).mean, form),
        distance=lambda a, b: histogram.wasserstein(distribution(a), distribution(b)),
        depends_on=depends_on,
        samples=lambda stream: distribution(stream).total,
    )


def _most_frequent(values: histogram.Histogram) -> str:
    return f"{values.mode:g}: {100 * values.shares().max():.1f} %" if values.total else "-"


def percent(part: float, whole: float) -> float:
    """Percentage of a part; NaN of nothing."""
    return 100.0 * part / whole if whole else float("nan")
