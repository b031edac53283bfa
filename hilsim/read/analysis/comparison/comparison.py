"""Comparison of two streams: values, distance and verdict of each statistic, and requested limits."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from hilsim.read.analysis.comparison.statistic import Statistic
from hilsim.read.analysis.comparison.tolerance import Tolerance

_UNMEASURED = (
    ("byte and range from turn to turn", "needs a sensor and a scene that do not move"),
    ("range bias of each laser", "needs walls of known shape"),
)


class Verdict(StrEnum):
    """Verdict whether two streams could come from two real units of one model, by one statistic."""

    ALIKE = "alike"
    DIFFERS = "differs"
    UNIT = "unit"
    FEW = "few"
    OPEN = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One statistic of both streams."""

    statistic: Annotated[Statistic, "Compared statistic."]
    a: Annotated[float, "Value of the first stream, NaN if unknown."]
    b: Annotated[float, "Value of the second stream, NaN if unknown."]
    a_text: Annotated[str, "Text of ``a``."]
    b_text: Annotated[str, "Text of ``b``."]
    distance: Annotated[float, "Distance of the streams, NaN if the statistic is unknown for either."]
    tolerance: Annotated[Tolerance | None, "Tolerance for the verdict; None if unknown for two such streams."]
    verdict: Annotated[
        Verdict,
        "``OPEN`` without a tolerance or distance, ``FEW`` with too few samples for one, ``UNIT`` beyond the tolerance if the statistic names the unit, so that two real units may differ by it.",
    ]
    reason: Annotated[str, "Reason why the statistic has a tolerance but no verdict; empty if it has one, or has no tolerance for any streams."] = ""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Largest distance of a statistic that the user allows."""

    name: Annotated[str, "Name of the statistic."]
    limit: Annotated[float, "Largest allowed distance."]
    distance: Annotated[float, "Actual distance; NaN if unknown, which breaks the limit."]

    @property
    def is_kept(self) -> bool:
        """Whether the distance is known and not larger than the limit."""
        return self.distance <= self.limit


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The differences between two streams, with notes."""

    a: Annotated[Any, "Statistics of the first stream, of the type of its family."]
    b: Annotated[Any, "Statistics of the second stream, of the same type."]
    rows: Annotated[tuple[Row, ...], "One row for each statistic; those of dual mode only if both streams are dual."]
    limits: Annotated[tuple[Limit, ...], "Requested limits."]

    @property
    def passed(self) -> bool:
        """Whether every limit is kept."""
        return all(limit.is_kept for limit in self.limits)

    @property
    def differing(self) -> list[str]:
        """Names of the statistics by which the streams differ."""
        return [row.statistic.name for row in self.rows if row.verdict is Verdict.DIFFERS]

    @property
    def of_unit(self) -> list[str]:
        """Names of the statistics that two real units may not share, by which the streams are not alike."""
        return [row.statistic.name for row in self.rows if row.verdict is Verdict.UNIT]

    @property
    def alike(self) -> int:
        """Number of statistics by which the streams are alike."""
        return sum(row.verdict is Verdict.ALIKE for row in self.rows)

    @property
    def not_looked_at(self) -> list[tuple[str, str]]:
        """Name of each statistic that could have a verdict and has none, with the reason."""
        missing = [(row.statistic.name, row.reason) for row in self.rows if row.reason]
        if (self.a.dual is None) is not (self.b.dual is None):
            missing.append(("dual", "the return modes differ"))
        return missing

    @property
    def unmeasured(self) -> tuple[tuple[str, str], ...]:
        """Properties of a sensor that no statistic measures, with the reason."""
        return _UNMEASURED

    @property
    def passed_over(self) -> str:
        """Name of the data packets that are ignored."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Remarks that limit the meaning of distances."""
        sentences = []
        for letter, stream in (("A", self.a), ("B", self.b)):
            if stream.other_packets:
                sentences.append(f"{letter}: {stream.other_packets:,} {self.passed_over} were passed over")
            if stream.spacing.doubt:
                sentences.append(f"{letter}: {stream.spacing.doubt}; spacing is not the sensor's")
        return sentences


def asked_limits(rows: Iterable[Row], limits: Mapping[str, float]) -> tuple[Limit, ...]:
    """Limits that the user asks for, with the rows' distances."""
    distances = {row.statistic.name: row.distance for row in rows}
    return tuple(Limit(name=name, limit=limit, distance=distances.get(name, math.nan)) for name, limit in limits.items())


def make_row(statistic: Statistic, streams: tuple[Any, Any], known: Tolerance | None, reason: str = "") -> Row:
    """Compare two streams by a statistic.

    Args:
        statistic: The statistic.
        streams: Statistics of both streams.
        known: Tolerance of streams of their model; None if there is none.
        reason: Reason why the tolerance does not hold for these two streams; empty if it holds.
    """
    a, b = streams
    tolerance, verdict = known, Verdict.OPEN
    if known is not None and reason:
        tolerance = None
    elif known is not None:
        verdict, reason = _verdict(statistic, a, b, known)
    return Row(
        statistic=statistic,
        a=statistic.value(a),
        b=statistic.value(b),
        a_text=statistic.shown(a),
        b_text=statistic.shown(b),
        distance=statistic.distance(a, b),
        tolerance=tolerance,
        verdict=verdict,
        reason=reason if known is not None else "",
    )


def _verdict(statistic: Statistic, a: Any, b: Any, tolerance: Tolerance) -> tuple[Verdict, str]:
    """Judge one statistic; the reason is empty if there is a verdict."""
    distance = statistic.distance(a, b)
    samples = statistic.samples(a), statistic.samples(b)
    if min(samples) < tolerance.fewest:
        return Verdict.FEW, f"too few samples ({min(samples):,} of {tolerance.fewest:,})"
    if math.isnan(distance):
        return Verdict.OPEN, "unknown for either stream"
    if tolerance.allows(statistic.value(a), statistic.value(b), distance):
        return Verdict.ALIKE, ""
    return (Verdict.UNIT if statistic.depends_on == "unit" else Verdict.DIFFERS), ""
