"""Mean, standard deviation and autocorrelation of values that follow each other, in memory that does not grow with their number."""

import numpy as np
import numpy.typing as npt


class Scatter:
    """Running sums of values and of pairs of values some places apart."""

    def __init__(self, lags: int = 1) -> None:
        """Begin, with pairs of values up to ``lags`` places apart."""
        self._moments = np.zeros(3)  # number of values, sum, sum of squares
        self._pairs = np.zeros((lags, 4))  # by lag: number of pairs, sums of the earlier, of the later and of the products
        self._values, self._follows = np.zeros(0), np.zeros(0, dtype=np.bool_)

    def add(self, values: npt.NDArray[np.float64] | npt.NDArray[np.int64], follows: npt.NDArray[np.bool_]) -> None:
        """Add values ``[n]``; those that do not follow the former one, ``bool[n]``, do not count, and no pair is across them."""
        chosen = values[follows].astype(np.float64)
        self._moments += (chosen.size, float(chosen.sum()), float(chosen @ chosen))
        known, lags = self._values.size, len(self._pairs)
        value, joined = np.concatenate((self._values, values.astype(np.float64))), np.concatenate((self._follows, follows))
        for lag in range(1, min(lags, value.size - 1) + 1):
            both = np.array(np.lib.stride_tricks.sliding_window_view(joined, lag + 1).all(axis=-1))
            both[: max(known - lag, 0)] = False  # pairs of former values
            earlier, later = value[:-lag][both], value[lag:][both]
            self._pairs[lag - 1] += (later.size, float(earlier.sum()), float(later.sum()), float(earlier @ later))
        self._values, self._follows = value[-lags:], joined[-lags:]

    @property
    def count(self) -> int:
        """Number of values."""
        return int(self._moments[0])

    @property
    def mean(self) -> float:
        """Mean; NaN before any value."""
        return float(self._moments[1] / self._moments[0]) if self.count else float("nan")

    @property
    def sd(self) -> float:
        """Standard deviation; NaN before any value."""
        return float(np.sqrt(max(0.0, self._moments[2] / self._moments[0] - self.mean**2))) if self.count else float("nan")

    def autocorrelation(self, lag: int = 1) -> float:
        """Correlation of values some places apart; NaN if nothing varies."""
        count, earlier, later, products = self._pairs[lag - 1].tolist()
        variance, mean = self.sd**2, self.mean
        return float((products - mean * (earlier + later)) / count + mean * mean) / variance if count and variance > 0.0 else float("nan")
