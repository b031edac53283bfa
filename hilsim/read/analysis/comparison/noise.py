"""Range noise by reflectivity byte, from neighbouring firings of one laser.

A third difference of ranges along azimuth cancels straight and evenly curved surfaces; white noise of deviation sigma gives it the variance 20 sigma^2
(1 + 9 + 9 + 1). So ``sigma = 1.4826 median(|third difference|) / sqrt(20)``, over four neighbouring returns that span less than 0.25 m. It is an upper
bound: rough surfaces count as noise, so two units are judged by it only if they see the same scene. The median lies on the distance code's grid, so sigma
has steps of 0.66 mm (2 mm code) or 1.33 mm (4 mm).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

CLASSES = ((0, 3), (3, 6), (6, 10), (10, 20), (20, 40), (40, 70), (70, 100), (100, 101), (101, 256))
"""Classes of the mean byte of the four returns: from the first to before the second number."""
_WINDOW = 4
_LARGEST_SPAN_MM = 250
_DIFFERENCES = 512  # values of |third difference| of codes that span less than 125
_SIGMA_RATIO = 1.4826 / np.sqrt(20.0)  # deviation over median magnitude for a normal distribution


class NoiseStatistics:
    """Magnitudes of third differences by class of reflectivity."""

    def __init__(self, channels: int, unit_mm: int) -> None:
        """Begin; ``unit_mm`` is the unit of the distance codes."""
        self._counts = np.zeros((len(CLASSES), _DIFFERENCES), dtype=np.int64)
        self._channels = channels
        self._unit_mm = unit_mm
        self._distance = np.zeros((0, channels), dtype=np.int64)
        self._byte = np.zeros((0, channels), dtype=np.int64)
        self._joined = np.zeros(0, dtype=np.bool_)

    def add(self, codes: npt.NDArray[Any], reflectivity: npt.NDArray[Any], joined: npt.NDArray[np.bool_]) -> None:
        """Add neighbouring firings of all lasers.

        Args:
            codes: Distance codes ``[n, channels]``, 0 without a return.
            reflectivity: Reflectivity bytes ``[n, channels]``.
            joined: ``bool[n]``, whether a firing follows the former one without a pause.
        """
        distance = np.concatenate((self._distance, codes))
        byte = np.concatenate((self._byte, reflectivity))
        follows = np.concatenate((self._joined, joined))
        self._distance, self._byte, self._joined = distance[1 - _WINDOW :], byte[1 - _WINDOW :], follows[1 - _WINDOW :]
        if len(distance) >= _WINDOW:
            self._add(distance, byte, follows)

    def _add(self, distance: npt.NDArray[np.int64], byte: npt.NDArray[np.int64], follows: npt.NDArray[np.bool_]) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(distance, _WINDOW, axis=0)
        low, high = windows.min(axis=-1), windows.max(axis=-1)
        is_fit = (low > 0) & ((high - low) * self._unit_mm < _LARGEST_SPAN_MM)
        is_fit &= (follows[1:-2] & follows[2:-1] & follows[3:])[:, None]
        chosen = windows[is_fit]
        third = np.abs(chosen @ np.array([-1, 3, -3, 1]))
        mean = np.lib.stride_tricks.sliding_window_view(byte, _WINDOW, axis=0)[is_fit].mean(axis=-1)
        place = np.searchsorted([start for start, _ in CLASSES], mean, side="right") - 1
        cells = place * _DIFFERENCES + np.minimum(third, _DIFFERENCES - 1)
        self._counts += np.bincount(cells, minlength=self._counts.size).reshape(self._counts.shape)

    @property
    def windows(self) -> npt.NDArray[np.int64]:
        """Number of fours of returns in each class, ``int64[classes]``."""
        return np.asarray(self._counts.sum(axis=1))

    @property
    def sigma_mm(self) -> npt.NDArray[np.float64]:
        """Standard deviation of range, ``float64[classes]``; NaN for a class without returns."""
        cumulated = np.cumsum(self._counts, axis=1)
        count = cumulated[:, -1]
        # the mean of the two middle ones, as in NumPy's median
        middle = [[np.searchsorted(row, rank, side="right") for rank in ((n - 1) // 2, n // 2)] for row, n in zip(cumulated, count, strict=True)]
        return np.where(count > 0, np.mean(middle, axis=1) * self._unit_mm * _SIGMA_RATIO, np.nan)
