"""Histograms with bins of equal width: statistics of a distribution, and the distance between two."""

from typing import Any

import numpy as np
import numpy.typing as npt


class Histogram:
    """Counts of values in bins of equal width; values outside the grid are counted in its end bins.

    Attributes:
        first: Centre of the first bin.
        width: Width of a bin, in the values' unit.
        counts: ``int64[bins]``, number of values in each bin.
    """

    def __init__(self, *, first: float, width: float, bins: int) -> None:
        self.first = first
        self.width = width
        self.counts = np.zeros(bins, dtype=np.int64)

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add an array of values of any shape, in the grid's unit."""
        self.add_places(np.rint((values - self.first) / self.width).astype(np.int64))

    def add_places(self, places: npt.NDArray[Any]) -> None:
        """Add an array of bin numbers of any shape; faster than ``add`` if values are whole numbers of bins."""
        self.counts += np.bincount(np.clip(places, 0, len(self.counts) - 1).ravel(), minlength=len(self.counts))

    @property
    def total(self) -> int:
        """Number of values so far."""
        return int(self.counts.sum())

    @property
    def centres(self) -> npt.NDArray[np.float64]:
        """``float64[bins]``."""
        return self.first + self.width * np.arange(len(self.counts), dtype=np.float64)

    @property
    def mean(self) -> float:
        """Mean of the bins' centres; NaN before any value."""
        return float(self.counts @ self.centres) / self.total if self.total else float("nan")

    @property
    def sd(self) -> float:
        """Standard deviation of the bins' centres; NaN before any value."""
        return float(np.sqrt(self.counts @ (self.centres - self.mean) ** 2 / self.total)) if self.total else float("nan")

    @property
    def smallest(self) -> float:
        """Centre of the first bin with a value; NaN before any."""
        return float(self.centres[self.counts.nonzero()[0][0]]) if self.total else float("nan")

    @property
    def largest(self) -> float:
        """Centre of the last bin with a value; NaN before any."""
        return float(self.centres[self.counts.nonzero()[0][-1]]) if self.total else float("nan")

    @property
    def mode(self) -> float:
        """Centre of the fullest bin; NaN before any value."""
        return float(self.centres[self.counts.argmax()]) if self.total else float("nan")

    def quantile(self, ratio: float) -> float:
        """Quantile of the values, with linear interpolation between two of them (as in NumPy); NaN before any value."""
        if not self.total:
            return float("nan")
        rank = ratio * (self.total - 1)
        below = int(rank)
        cumulated = np.cumsum(self.counts)
        low, high = (int(np.searchsorted(cumulated, min(place, self.total - 1), side="right")) for place in (below, below + 1))
        return self.first + self.width * (low + (rank - below) * (high - low))

    def share(self, start: float, stop: float) -> float:
        """Share of values from ``start`` to less than ``stop``; NaN before any."""
        low, high = (int(np.clip(np.ceil((limit - self.first) / self.width - 1e-9), 0, len(self.counts))) for limit in (start, stop))
        return float(self.counts[low:high].sum()) / self.total if self.total else float("nan")

    def shares(self) -> npt.NDArray[np.float64]:
        """Shares of the bins, ``float64[bins]`` with sum 1; NaN before any value."""
        return self.counts / self.total if self.total else np.full(len(self.counts), np.nan)

    def to_json(self) -> dict[str, list[float]]:
        """Non-empty bins for JSON."""
        filled = np.flatnonzero(self.counts)
        return {"values": [round(value, 6) for value in self.centres[filled].tolist()], "counts": self.counts[filled].tolist()}


def total_variation(first: Histogram, other: Histogram) -> float:
    """Half the sum of the differences of shares, 0 (equal) to 1 (disjoint), of histograms with one grid; NaN if either is empty."""
    return 0.5 * float(np.abs(first.shares() - other.shares()).sum())


def wasserstein(first: Histogram, other: Histogram) -> float:
    """Mean distance by which values must be moved to convert one histogram to the other, in the unit of their common grid; NaN if either is empty."""
    return first.width * float(np.abs(np.cumsum(first.shares() - other.shares())).sum())
