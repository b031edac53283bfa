"""Judgement of emulated captures: the areas under the curve of classifiers by group, beside those of real units against each other.

Three figures belong to each group of features:

* *real*: two real captures, trained on one half of each, tested on the other half, both ways; the mean over the pairs is the yardstick.
* *near*: an emulated capture against a real one in the same way. It finds what is particular in this one capture, the scene and the unit too.
* *far*: an emulated capture against a real one, trained on all *other* captures. It finds what all emulated captures have in common and no real one has.

A group *tells apart* if its far figure is more than 0.05 above the yardstick. Pairs have equal rotation rates, and equal return modes where there are such;
the real pairs of a group that does not depend on the return mode may have different ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from hilsim.errors import CaptureError
from hilsim.families.velodyne.comparison.statistics import STATISTICS
from hilsim.families.velodyne.comparison.tolerances import TOLERANCES
from tools.judge.capture_sample import CaptureSample
from tools.judge.classifier import trained_area
from tools.judge.feature_table import FeatureTable, join_tables
from tools.judge.groups import GROUPS, Group, Topic

MARGIN = 0.05
"""Excess over the yardstick up to which a group does not tell apart (the error of a mean over a few captures)."""
MIN_FILES = 2
_MAX_PAIRS = 9
_SCALAR_GROUPS = ("grid", "bytes", "correlation", "edges", "azimuth", "empty", "dual")
_NO_SCALARS = ("azimuth.sd", "azimuth.total_variation", "empty.zero_bytes")
Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Areas:
    """Areas under the curve over the pairs of captures.

    Attributes:
        values: One for each pair of which enough rows could be compared.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the pairs; NaN without one."""
        return float(np.mean(self.values)) if self.values else float("nan")


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """Result of a group, or of a topic within one.

    Attributes:
        group: Group of the features.
        topic: Topic; None for the whole group.
        real: Areas of pairs of real captures.
        near: Areas of emulated captures against real ones, trained on the other half of both.
        far: Areas of emulated captures against real ones, trained on all other captures.
    """

    group: Group
    topic: Topic | None
    real: Areas
    near: Areas
    far: Areas

    @property
    def is_judged(self) -> bool:
        """Whether the figures decide on the result."""
        return self.group.is_judged and self.topic is None

    @property
    def is_known(self) -> bool:
        """Whether both the yardstick and the far figure could be found."""
        return bool(self.real.values and self.far.values)

    @property
    def tells_apart(self) -> bool:
        """Whether emulated captures are distinguished better than real units are."""
        return self.is_known and self.far.mean > self.real.mean + MARGIN


@dataclass(frozen=True, kw_only=True)
class ScalarResult:
    """One figure of every capture with enough samples for it.

    Attributes:
        name: Name of the statistic of ``hilsim compare``.
        unit: Unit of the values.
        real: Values of the real captures.
        emulated: Values of the emulated captures.
    """

    name: str
    unit: str
    real: tuple[float, ...]
    emulated: tuple[float, ...]

    @property
    def outside(self) -> int:
        """Number of emulated captures whose value lies outside the range of the real ones."""
        return sum(not min(self.real) <= value <= max(self.real) for value in self.emulated) if self.real else 0


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Result of all groups.

    Attributes:
        real: Samples of the real captures.
        emulated: Samples of the emulated captures.
        results: Results of groups, each followed by those of its topics.
        scalars: Single figures.
        notes: Remarks that limit the meaning.
    """

    real: tuple[CaptureSample, ...]
    emulated: tuple[CaptureSample, ...]
    results: tuple[GroupResult, ...]
    scalars: tuple[ScalarResult, ...]
    notes: tuple[str, ...]

    @property
    def telling(self) -> list[str]:
        """Names of the judged groups that tell emulated captures from real ones."""
        return [result.group.name for result in self.results if result.is_judged and result.tells_apart]

    @property
    def unknown(self) -> list[str]:
        """Names of the judged groups of which too few rows could be compared."""
        return [result.group.name for result in self.results if result.is_judged and not result.is_known]

    @property
    def known(self) -> int:
        """Number of judged groups with a result."""
        return sum(result.is_judged and result.is_known for result in self.results)

    @property
    def passed(self) -> bool:
        """Whether some judged group has a result and none tells apart."""
        return self.known > 0 and not self.telling


def judge(real: Sequence[CaptureSample], emulated: Sequence[CaptureSample]) -> Judgement:
    """Judge emulated captures beside real ones.

    Args:
        real: Samples of real captures, of two files at least.
        emulated: Samples of emulated captures, of two files at least, of the same model and settings.

    Raises:
        CaptureError: there are too few captures, or models, rotation rates or return modes do not agree.
    """
    _check(real, emulated)
    of_setting, of_rate = _real_pairs(real)
    mixed_pairs = _spread([(i, k) for i, k in product(range(len(real)), range(len(emulated))) if real[i].setting == emulated[k].setting])
    results: list[GroupResult] = []
    for group in GROUPS:
        tables = [group.features(capture) for capture in real], [group.features(capture) for capture in emulated]
        for topic in (None, *group.topics):
            if topic is not None and topic.is_of_one_mode:
                pairs = _spread(of_setting)
            else:
                pairs = _spread((of_setting or of_rate) if group.is_of_one_mode else of_rate)
            results.append(_result(group, topic, tables, pairs, mixed_pairs))
    notes = [] if of_setting else ["no two real captures have one rate and one return mode: real pairs are of one rate only"]
    return Judgement(real=tuple(real), emulated=tuple(emulated), results=tuple(results), scalars=_scalars(real, emulated), notes=tuple(notes))


def _check(real: Sequence[CaptureSample], emulated: Sequence[CaptureSample]) -> None:
    for kind, captures in (("real", real), ("emulated", emulated)):
        if len(captures) < MIN_FILES:
            raise CaptureError(f"{MIN_FILES} {kind} captures are needed at least, got {len(captures)}: each is judged by what the others show")
    models = sorted({capture.statistics.model.name for capture in (*real, *emulated)})
    if len(models) > 1:
        raise CaptureError(f"the captures must be of one model, got {', '.join(models)}")
    settings = [{str(capture.setting) for capture in captures} for captures in (real, emulated)]
    if settings[0] != settings[1]:
        shown = [", ".join(sorted(names)) for names in settings]
        raise CaptureError(
            f"rotation rates and return modes of the real and the emulated captures must be the same, got {shown[0]} and {shown[1]}: "
            "a classifier would find the setting, not the sensor"
        )


def _real_pairs(real: Sequence[CaptureSample]) -> tuple[list[Pair], list[Pair]]:
    """Pairs of real captures of one setting, of which there may be none, and of one rotation rate."""
    pairs = list(combinations(range(len(real)), 2))
    of_rate = [(i, k) for i, k in pairs if real[i].setting.rate_rpm == real[k].setting.rate_rpm]
    if not of_rate:
        rates = ", ".join(f"{capture.name}: {capture.setting}" for capture in real)
        raise CaptureError(f"two real captures of one rotation rate are needed as the yardstick, got {rates}")
    return [(i, k) for i, k in of_rate if real[i].setting == real[k].setting], of_rate


def _spread(pairs: list[Pair]) -> list[Pair]:
    """At most 9 pairs, spread evenly over all."""
    if len(pairs) <= _MAX_PAIRS:
        return pairs
    return [pairs[place * len(pairs) // _MAX_PAIRS] for place in range(_MAX_PAIRS)]


def _result(
    group: Group, topic: Topic | None, tables: tuple[list[FeatureTable], list[FeatureTable]], real_pairs: list[Pair], mixed_pairs: list[Pair]
) -> GroupResult:
    name = "" if topic is None else topic.name
    real, emulated = ([_without(table, group.left_out) for table in part] if topic is None else part for part in tables)
    near = [_halves_area(real[i], emulated[k], name, group) for i, k in mixed_pairs]
    far = [_left_out_area(real, emulated, pair, name, group) for pair in mixed_pairs]
    return GroupResult(
        group=group,
        topic=topic,
        real=_areas([_halves_area(real[i], real[k], name, group) for i, k in real_pairs]),
        near=_areas(near),
        far=_areas(far),
    )


def _without(table: FeatureTable, topics: tuple[str, ...]) -> FeatureTable:
    columns = {name: column for name, column in table.columns.items() if name.split(".")[0] not in topics}
    return FeatureTable(columns=columns, cell=table.cell)


def _areas(values: list[float]) -> Areas:
    return Areas(values=tuple(value for value in values if not np.isnan(value)))


def _part(table: FeatureTable, rows: slice) -> FeatureTable:
    return FeatureTable(columns={name: column[rows] for name, column in table.columns.items()}, cell=table.cell[rows])


def _halves_area(first: FeatureTable, second: FeatureTable, topic: str, group: Group) -> float:
    """Mean area of two tables: trained on the first halves and tested on the second, and the other way round."""
    halves = [(_part(table, slice(len(table) // 2)), _part(table, slice(len(table) // 2, len(table)))) for table in (first, second)]
    early, late = ((halves[0][place], halves[1][place]) for place in (0, 1))
    areas = [trained_area(*order, topic, is_matched=group.is_matched) for order in ((early, late), (late, early))]
    return float(np.mean(areas))


def _left_out_area(real: list[FeatureTable], emulated: list[FeatureTable], pair: Pair, topic: str, group: Group) -> float:
    """Area on a pair of captures, trained on all others."""
    others = tuple(
        join_tables([table for place, table in enumerate(tables) if place != left]) for tables, left in zip((real, emulated), pair, strict=True)
    )
    return trained_area((others[0], others[1]), (real[pair[0]], emulated[pair[1]]), topic, is_matched=group.is_matched)


def _scalars(real: Sequence[CaptureSample], emulated: Sequence[CaptureSample]) -> tuple[ScalarResult, ...]:
    results = []
    for statistic in STATISTICS:
        tolerance = TOLERANCES.get(statistic.name)
        if tolerance is None or statistic.name.split(".")[0] not in _SCALAR_GROUPS or statistic.name in _NO_SCALARS or statistic.depends_on:
            continue
        streams = [
            [capture.statistics for capture in captures if capture.statistics.dual is not None or not statistic.is_of_pairs]
            for captures in (real, emulated)
        ]
        values = [
            tuple(statistic.value(stream) for stream in of_kind if statistic.samples(stream) >= max(tolerance.fewest, 1)) for of_kind in streams
        ]
        if values[0] and values[1]:
            results.append(ScalarResult(name=statistic.name, unit=statistic.unit, real=values[0], emulated=values[1]))
    return tuple(results)
