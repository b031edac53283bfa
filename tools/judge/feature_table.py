"""Table of features: one row for each window or patch of a capture."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class FeatureTable:
    """Features of a capture, in the order of the capture.

    Attributes:
        columns: Features by name, ``float64[n]`` each; NaN for unknown ones. The name is ``topic.feature``.
        cell: ``int64[n]``, number of a row's cell of range and byte; only rows of equal cells are compared. All 0 if nothing must match.
    """

    columns: dict[str, npt.NDArray[np.float64]]
    cell: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.cell)

    def values(self, topic: str) -> npt.NDArray[np.float64]:
        """Features of a topic, ``float64[n, features]``; of all topics if it is empty."""
        chosen = [column for name, column in self.columns.items() if not topic or name.split(".")[0] == topic]
        return np.column_stack(chosen) if chosen else np.zeros((len(self), 0))


def table_of_rows(rows: list[dict[str, float]]) -> FeatureTable:
    """Make a table of rows with equal keys; no columns without a row."""
    names = rows[0] if rows else {}
    return FeatureTable(
        columns={name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}, cell=np.zeros(len(rows), dtype=np.int64)
    )


def join_tables(tables: list[FeatureTable]) -> FeatureTable:
    """Join tables of one group, of which those without rows may lack columns."""
    filled = [table for table in tables if len(table)]
    if not filled:
        return FeatureTable(columns={}, cell=np.zeros(0, dtype=np.int64))
    return FeatureTable(
        columns={name: np.concatenate([table.columns[name] for table in filled]) for name in filled[0].columns},
        cell=np.concatenate([table.cell for table in filled]),
    )
