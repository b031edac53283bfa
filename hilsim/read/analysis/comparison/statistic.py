"""Definition of one compared statistic: value of a stream, and distance of two streams."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from hilsim.read.analysis.comparison import histogram

Figure = Callable[[Any], Any]
"""Function of the statistics of a stream, of the type of the sensor's family; the path of an attribute gives one, as in ``"stamps.fitted"``."""


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
    value: Callable[[Any], float]
    shown: Callable[[Any], str]
    distance: Callable[[Any, Any], float]
    depends_on: str
    samples: Callable[[Any], int]

    @property
    def is_of_pairs(self) -> bool:
        """Whether the statistic is reported for dual mode only."""
        return self.name.startswith("dual.")


def text(value: float, form: str) -> str:
    """Format a value; ``-`` if it is unknown."""
    return "-" if np.isnan(value) else format(value, form)


def figure(given: Figure | str) -> Figure:
    """A function, or that of a path."""
    return attrgetter(given) if isinstance(given, str) else given


def number(name: str, value: Figure | str, unit: str, form: str, samples: Figure | str, *, depends_on: str = "") -> Statistic:
    """Make a statistic of a number, whose distance is the difference."""
    get = figure(value)
    return Statistic(
        name=name,
        unit=unit,
        value=get,
        shown=lambda stream: text(get(stream), form),
        distance=lambda a, b: abs(get(a) - get(b)),
        depends_on=depends_on,
        samples=figure(samples),
    )


def share(name: str, part: str, whole: str, form: str = ".2f", *, depends_on: str = "") -> Statistic:
    """Make a statistic of a share in percent, from the paths of two counts."""
    get_part, get_whole = attrgetter(part), attrgetter(whole)
    return number(name, lambda stream: percent(get_part(stream), get_whole(stream)), "%", form, get_whole, depends_on=depends_on)


def relative(name: str, value: Figure | str, unit: str, form: str, samples: Figure | str, *, depends_on: str) -> Statistic:
    """Make a statistic of a number with a unit, whose distance is the difference in percent of the mean."""
    get = figure(value)
    return Statistic(
        name=name,
        unit="%",
        value=get,
        shown=lambda stream: f"{text(get(stream), form)} {unit}".rstrip(),
        distance=lambda a, b: 200.0 * abs(get(a) - get(b)) / (get(a) + get(b)),
        depends_on=depends_on,
        samples=figure(samples),
    )


def total_variation(name: str, distribution: str, *, depends_on: str = "") -> Statistic:
    """Make a statistic of a distribution, whose distance is that of the shares and whose text is the most frequent value."""
    get = attrgetter(distribution)
    return Statistic(
        name=name,
        unit="TV",
        value=attrgetter(f"{distribution}.mode"),
        shown=lambda stream: _most_frequent(get(stream)),
        distance=lambda a, b: histogram.total_variation(get(a), get(b)),
        depends_on=depends_on,
        samples=attrgetter(f"{distribution}.total"),
    )


def wasserstein(name: str, distribution: str, unit: str, form: str, *, depends_on: str) -> Statistic:
    """Make a statistic of a distribution, whose distance is that by which values must be moved and whose text is the mean."""
    get, mean = attrgetter(distribution), attrgetter(f"{distribution}.mean")
    return Statistic(
        name=name,
        unit=unit,
        value=mean,
        shown=lambda stream: text(mean(stream), form),
        distance=lambda a, b: histogram.wasserstein(get(a), get(b)),
        depends_on=depends_on,
        samples=attrgetter(f"{distribution}.total"),
    )


def _most_frequent(values: histogram.Histogram) -> str:
    return f"{values.mode:g}: {100 * values.shares().max():.1f} %" if values.total else "-"


def percent(part: float, whole: float) -> float:
    """Percentage of a part; NaN of nothing."""
    return 100.0 * part / whole if whole else float("nan")
