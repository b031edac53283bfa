"""Comparison of two streams: values, distance and verdict of each statistic, and requested limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hilsim.analysis.comparison.histogram import wasserstein
from hilsim.analysis.comparison.statistics import STATISTICS, Statistic
from hilsim.analysis.comparison.stream import StreamStatistics
from hilsim.analysis.comparison.tolerances import TOLERANCES, Tolerance

_ROUNDING = 1e-9
_RATES_APART_RATIO = 0.05  # settings differ by 60 rpm or more; one unit at 300 rpm was 1.4 % off on average
_SAME_RANGES_M, _SAME_EMPTY_PERCENT = 0.3, 10.0  # halves of four captures: up to 0.18 m and 5.1 %; of any two captures 0.51 m and 20 % or more
_OF_RATE = ("stream.rotation", "azimuth.", "noise.")


class Verdict(StrEnum):
    """Verdict whether two streams could come from two real units of one model, by one statistic."""

    ALIKE = "alike"
    DIFFERS = "differs"
    FEW = "few"
    OPEN = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One statistic of both streams.

    Attributes:
        statistic: Compared statistic.
        a: Value of the first stream, NaN if unknown.
        b: Value of the second stream, NaN if unknown.
        a_text: Text of ``a``.
        b_text: Text of ``b``.
        distance: Distance of the streams, NaN if the statistic is unknown for either.
        tolerance: Tolerance for the verdict; None if unknown for two such streams.
        verdict: ``OPEN`` without a tolerance or distance, ``FEW`` with too few samples for one.
    """

    statistic: Statistic
    a: float
    b: float
    a_text: str
    b_text: str
    distance: float
    tolerance: Tolerance | None
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Largest distance of a statistic that the user allows.

    Attributes:
        name: Name of the statistic.
        limit: Largest allowed distance.
        distance: Actual distance; NaN if unknown, which breaks the limit.
    """

    name: str
    limit: float
    distance: float

    @property
    def is_kept(self) -> bool:
        """Whether the distance is known and not larger than the limit."""
        return self.distance <= self.limit


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The differences between two streams, with notes.

    Attributes:
        a: Statistics of the first stream.
        b: Statistics of the second stream.
        rows: One row for each statistic; those of dual mode only if both streams are dual.
        limits: Requested limits.
    """

    a: StreamStatistics
    b: StreamStatistics
    rows: tuple[Row, ...]
    limits: tuple[Limit, ...]

    @property
    def passed(self) -> bool:
        """Whether every limit is kept."""
        return all(limit.is_kept for limit in self.limits)

    def notes(self) -> list[str]:
        """Remarks that limit the meaning of distances."""
        sentences = []
        if self.a.model is not self.b.model:
            sentences.append(f"the models differ ({self.a.model.name}, {self.b.model.name}): nothing is judged")
        if self.a.return_mode is not self.b.return_mode:
            sentences.append("the return modes differ: pairs are not compared")
        if rates_differ(self.a, self.b):
            rates = ", ".join(f"{stream.azimuth.rate_rpm:.0f} rpm" for stream in (self.a, self.b))
            sentences.append(f"the rotation rates differ ({rates}): rotation, azimuth and range noise are not judged")
        for letter, stream in (("A", self.a), ("B", self.b)):
            if stream.other_packets:
                sentences.append(f"{letter}: {stream.other_packets:,} data packets of another mode or model were passed over")
            if stream.spacing.doubt:
                sentences.append(f"{letter}: {stream.spacing.doubt}; spacing is not the sensor's")
        return sentences


def compare(a: StreamStatistics, b: StreamStatistics, limits: Mapping[str, float] | None = None) -> Comparison:
    """Compare two streams.

    Args:
        a: Statistics of the first stream.
        b: Statistics of the second stream.
        limits: Largest allowed distances by names of statistics.
    """
    unjudged = ((*_OF_RATE,) if rates_differ(a, b) else ()) + (() if of_one_scene(a, b) else ("noise.",))
    are_dual = a.dual is not None and b.dual is not None
    rows = tuple(
        _row(statistic, a, b, is_judged=not statistic.name.startswith(unjudged)) for statistic in STATISTICS if are_dual or not statistic.is_of_pairs
    )
    distances = {row.statistic.name: row.distance for row in rows}
    asked = tuple(Limit(name=name, limit=limit, distance=distances.get(name, math.nan)) for name, limit in (limits or {}).items())
    return Comparison(a=a, b=b, rows=rows, limits=asked)


def rates_differ(a: StreamStatistics, b: StreamStatistics) -> bool:
    """Whether the heads turn at different settings of the rate."""
    return abs(a.azimuth.rate_rpm - b.azimuth.rate_rpm) > _RATES_APART_RATIO * max(a.azimuth.rate_rpm, b.azimuth.rate_rpm)


def of_one_scene(a: StreamStatistics, b: StreamStatistics) -> bool:
    """Whether both sensors see the same scene; only then does range noise compare the units, and not rough surfaces."""
    if len(a.returns.empty_shares) != len(b.returns.empty_shares):
        return False
    apart_percent = 100.0 * float(np.abs(a.returns.empty_shares - b.returns.empty_shares).max())
    return wasserstein(a.returns.ranges_m, b.returns.ranges_m) <= _SAME_RANGES_M and apart_percent <= _SAME_EMPTY_PERCENT


def _row(statistic: Statistic, a: StreamStatistics, b: StreamStatistics, *, is_judged: bool) -> Row:
    distance = statistic.distance(a, b)
    tolerance = TOLERANCES.get(statistic.name) if a.model is b.model and is_judged else None
    if tolerance is not None and tolerance.is_of_one_mode and a.return_mode is not b.return_mode:
        tolerance = None
    return Row(
        statistic=statistic,
        a=statistic.value(a),
        b=statistic.value(b),
        a_text=statistic.shown(a),
        b_text=statistic.shown(b),
        distance=distance,
        tolerance=tolerance,
        verdict=_verdict(distance, tolerance, min(statistic.samples(a), statistic.samples(b))),
    )


def _verdict(distance: float, tolerance: Tolerance | None, samples: int) -> Verdict:
    if tolerance is None or math.isnan(distance):
        return Verdict.OPEN
    if samples < tolerance.fewest:
        return Verdict.FEW
    return Verdict.ALIKE if distance <= tolerance.limit + _ROUNDING else Verdict.DIFFERS
