"""Gradient boosting on feature tables, and the area under the curve that it reaches on rows which it has not seen.

The area (AUC) is the probability that a row of the second kind gets a higher score than a row of the first: 0.5 for a guess, 1 for rows that are always
distinguished. All choices are made by fixed seeds, so equal captures give equal figures.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from tools.judge.feature_table import FeatureTable

MAX_ROWS = 1000
"""Rows of either kind that are used at most, for bounded time."""
MIN_ROWS = 16
"""Rows of either kind that a fit or a test needs at least."""
_SEED = 20
_ROUNDS = 60
_LEAVES = 15
_MIN_IN_LEAF = 5


def area_under_curve(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Probability that a score of ``second`` is larger than one of ``first``, a tie counting one half (Mann-Whitney); NaN without scores."""
    if not len(first) or not len(second):
        return float("nan")
    ordered = np.sort(first)
    below, not_above = np.searchsorted(ordered, second, side="left"), np.searchsorted(ordered, second, side="right")
    return float((below + not_above).sum()) / 2.0 / len(first) / len(second)


def matched_rows(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Choose equally many rows of each cell from two tables, at most 1000 in all, at random by a fixed seed.

    Args:
        first: ``int64[n]``, cells of the first table's rows.
        second: ``int64[m]``, cells of the second table's rows.
    """
    generator = np.random.default_rng(_SEED)
    chosen: tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]] = ([], [])
    for cell in np.intersect1d(first, second):
        rows = [np.flatnonzero(cells == cell) for cells in (first, second)]
        count = min(map(len, rows))
        for place in (0, 1):
            chosen[place].append(np.sort(generator.permutation(rows[place])[:count]))
    joined = [np.concatenate(part) if part else np.zeros(0, dtype=np.int64) for part in chosen]
    if len(joined[0]) > MAX_ROWS:  # the same places of both, which keeps the cells equal
        kept = np.sort(generator.permutation(len(joined[0]))[:MAX_ROWS])
        joined = [part[kept] for part in joined]
    return joined[0], joined[1]


def trained_area(training: tuple[FeatureTable, FeatureTable], test: tuple[FeatureTable, FeatureTable], topic: str, *, is_matched: bool) -> float:
    """Train on two tables and find the area under the curve on two others.

    Args:
        training: Tables of the first and the second kind.
        test: Tables of the first and the second kind with other rows.
        topic: Topic of the features; empty for all.
        is_matched: Whether only rows of equal cells are compared; otherwise at most 1000 rows of each are taken.

    Returns:
        The area; NaN if a table has fewer than 16 rows that can be used.
    """
    kinds = [_chosen_rows(*tables, is_matched=is_matched) for tables in (training, test)]
    if min(len(rows) for pair in kinds for rows in pair) < MIN_ROWS:
        return float("nan")
    x = [[table.values(topic)[rows] for table, rows in zip(tables, pair, strict=True)] for tables, pair in zip((training, test), kinds, strict=True)]
    y = np.repeat([0, 1], [len(x[0][0]), len(x[0][1])])
    with _one_thread():
        model = _classifier().fit(np.concatenate(x[0]), y)
        return area_under_curve(*(model.predict_proba(part)[:, 1] for part in x[1]))


def _chosen_rows(first: FeatureTable, second: FeatureTable, *, is_matched: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    if is_matched:
        return matched_rows(first.cell, second.cell)
    generator = np.random.default_rng(_SEED)
    return tuple(np.sort(generator.permutation(len(table))[:MAX_ROWS]) for table in (first, second))  # type: ignore[return-value]


def _one_thread() -> Any:
    """Limit OpenMP to one thread: its threads wait actively for each other, and need eight times the processor time on tables this small."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

    return threadpool_limits(limits=1, user_api="openmp")


def _classifier() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - slow to import

    return HistGradientBoostingClassifier(
        max_iter=_ROUNDS, max_leaf_nodes=_LEAVES, min_samples_leaf=_MIN_IN_LEAF, early_stopping=False, random_state=_SEED
    )
