"""Contribution of one capture to a map, and merging of contributions: in any order and partition, with bit-identical results."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require
from hilsim.read.background.table import BEST, COLUMNS, COUNT, KEY, MAX_CELLS, Rows
from hilsim.world.scene.background import Grid

_KEY, _BEST, _COUNT, _COLUMNS = constant(KEY), constant(BEST), constant(COUNT), constant(COLUMNS)


@dataclass(frozen=True, kw_only=True, order=True)
class CaptureShare:
    """One capture of a map.

    Attributes:
        name: Name of its file, or of the stream.
        sha256: SHA-256 of the file, in hexadecimal digits; empty for a stream.
        packets: Number of packets decoded.
        first_ns: Stamp of the first packet, nanoseconds since 1970-01-01 UTC by the capturing host's clock; 0 if there are none.
        last_ns: Stamp of the last packet, likewise.
    """

    name: str
    sha256: str = ""
    packets: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, kw_only=True, eq=False)
class PartialMap:
    """Counts of distances by cell; from one capture, a part of it, or many.

    Attributes:
        grid: Grid of the cells, which are numbered column by column.
        rows: ``int64[n, 4]``, sorted by their unique keys: see ``hilsim.read.background.table``.
        returns: Number of returns counted in the rows.
        empty: Number of firings or points without a return.
        outside: Number of returns outside the grid.
        captures: Captures of the counts, in order.
    """

    grid: Grid
    rows: Rows
    returns: int = 0
    empty: int = 0
    outside: int = 0
    captures: tuple[CaptureShare, ...] = ()

    def __post_init__(self) -> None:
        check_size(self.grid)
        require((self.rows.ndim == 2 and self.rows.shape[1] == COLUMNS, f"rows must be n x {COLUMNS}, got {self.rows.shape}"))

    @property
    def packets(self) -> int:
        """Number of packets decoded in all captures."""
        return sum(capture.packets for capture in self.captures)

    def is_same(self, other: "PartialMap") -> bool:
        """Whether all counts are identical."""
        figures = ("grid", "returns", "empty", "outside", "captures")
        return np.array_equal(self.rows, other.rows) and all(getattr(self, name) == getattr(other, name) for name in figures)


def check_size(grid: Grid) -> None:
    """Raise ``ValueError`` for a grid whose cells cannot be numbered."""
    cells = grid.rows * grid.columns
    require((cells <= MAX_CELLS, f"rows x columns must be at most {MAX_CELLS}, got {cells}"))


def nothing(grid: Grid) -> PartialMap:
    """Empty counts: the neutral element of merging."""
    return PartialMap(grid=grid, rows=np.empty((0, COLUMNS), dtype=np.int64))


def merge(partials: Iterable[PartialMap]) -> PartialMap:
    """Merge all counts: associative and commutative, because counts are added and farthest distances compared, all as integers.

    Raises:
        ValueError: there are none, or their grids differ.
    """
    parts = list(partials)
    grids = [part.grid for part in parts]
    require((len(parts) > 0, "partials must be 1 or more, got none"))
    require((all(grid == grids[0] for grid in grids), "partials must have one grid, got several"))
    return PartialMap(
        grid=grids[0],
        rows=_merged_rows([part.rows for part in parts]),
        returns=sum(part.returns for part in parts),
        empty=sum(part.empty for part in parts),
        outside=sum(part.outside for part in parts),
        captures=tuple(sorted(capture for part in parts for capture in part.captures)),
    )


def _merged_rows(parts: list[Rows]) -> Rows:
    """Merge pairs of neighbours first, so that each row is copied a few times only."""
    while len(parts) > 1:
        pairs = [_merged_pair(first, other) for first, other in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _merged_pair(first: Rows, other: Rows) -> Rows:
    rows = np.empty((len(first) + len(other), COLUMNS), dtype=np.int64)
    return np.ascontiguousarray(rows[: merge_rows(first, other, rows)])


@kernel
def merge_rows(first: Rows, other: Rows, rows: Rows) -> int:
    """Write the rows of two sorted lists to ``rows``, combining rows of equal keys; returns their number."""
    a = b = n = 0
    while a < first.shape[0] or b < other.shape[0]:
        takes_one = b == other.shape[0] or (a < first.shape[0] and first[a, _KEY] <= other[b, _KEY])
        takes_other = a == first.shape[0] or (b < other.shape[0] and other[b, _KEY] <= first[a, _KEY])
        if takes_one:
            for column in range(_COLUMNS):
                rows[n, column] = first[a, column]
            a += 1
        if takes_other and takes_one:
            rows[n, _BEST] = max(rows[n, _BEST], other[b, _BEST])
            for column in range(_COUNT, _COLUMNS):
                rows[n, column] += other[b, column]
        elif takes_other:
            for column in range(_COLUMNS):
                rows[n, column] = other[b, column]
        if takes_other:
            b += 1
        n += 1
    return n
