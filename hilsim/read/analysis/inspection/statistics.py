"""Running figures of a flow in bounded memory, independent of the capture's length."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.inspection.result import Gap, Gaps, Place, Spacing
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps

_BINS_PER_OCTAVE = 128
_BINS = 40 * _BINS_PER_OCTAVE + 1  # 1 ns to 18 minutes; bin 0 is for intervals of 0 and negative ones
_MIN_INTERVALS_MISSED = 10
_SHORTEST_GAP_NS = 50_000_000
_MILLISECOND_DOUBT_NS = 20_000
_MIN_POINTS = 16


class Spread:
    """Count, mean, standard deviation, extremes and percentiles of intervals.

    Percentiles come from a histogram with bins 0.5 % wide and are the mean of their bin, so they are exact if capture times are whole milliseconds, else
    within 0.5 %.
    """

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, dtype=np.int64)
        self._sums_ns = np.zeros(_BINS)
        self._square_sum = 0.0
        self._smallest_ns = 0
        self._largest_ns = 0
        self._whole_milliseconds = 0

    @property
    def count(self) -> int:
        """Number of intervals so far."""
        return int(self._counts.sum())

    def add(self, intervals_ns: npt.NDArray[np.int64]) -> None:
        """Add intervals in nanoseconds, ``int64[n]``."""
        if not len(intervals_ns):
            return
        smallest, largest = int(intervals_ns.min()), int(intervals_ns.max())
        is_first = not self.count
        self._smallest_ns = smallest if is_first else min(self._smallest_ns, smallest)
        self._largest_ns = largest if is_first else max(self._largest_ns, largest)
        octaves = np.log2(np.maximum(intervals_ns, 1))
        bins = np.minimum((octaves * _BINS_PER_OCTAVE).astype(np.int64) + 1, _BINS - 1)
        bins[intervals_ns <= 0] = 0
        values = intervals_ns.astype(np.float64)
        self._counts += np.bincount(bins, minlength=_BINS)
        self._sums_ns += np.bincount(bins, weights=values, minlength=_BINS)
        self._square_sum += float(values @ values)
        beside_ns = (intervals_ns + _MILLISECOND_DOUBT_NS) % 1_000_000
        self._whole_milliseconds += int((beside_ns <= 2 * _MILLISECOND_DOUBT_NS).sum())

    def percentile_ns(self, ratio: float) -> float:
        """Quantile ``ratio`` of the intervals; NaN before any interval."""
        count = self.count
        if not count:
            return float("nan")
        chosen = int(np.searchsorted(np.cumsum(self._counts), ratio * count))
        return float(self._sums_ns[chosen] / self._counts[chosen])

    @property
    def p1_us(self) -> float:
        """1st percentile in microseconds; NaN before any interval."""
        return self.percentile_ns(0.01) / 1000.0

    @property
    def p50_us(self) -> float:
        """Median in microseconds; NaN before any interval."""
        return self.percentile_ns(0.5) / 1000.0

    @property
    def p99_us(self) -> float:
        """99th percentile in microseconds; NaN before any interval."""
        return self.percentile_ns(0.99) / 1000.0

    @property
    def mean_us(self) -> float:
        """Mean in microseconds; NaN before any interval."""
        return float(self._sums_ns.sum()) / self.count / 1000.0 if self.count else float("nan")

    @property
    def sd_us(self) -> float:
        """Standard deviation in microseconds; NaN before any interval."""
        return float(np.sqrt(max(0.0, self._square_sum / 1e6 / self.count - self.mean_us**2))) if self.count else float("nan")

    def summary(self) -> Spacing | None:
        """Figures in microseconds; None before any interval."""
        if not self.count:
            return None
        return Spacing(
            intervals=self.count,
            mean_us=self.mean_us,
            sd_us=self.sd_us,
            min_us=self._smallest_ns / 1000.0,
            p1_us=self.p1_us,
            p50_us=self.p50_us,
            p99_us=self.p99_us,
            max_us=self._largest_ns / 1000.0,
            whole_millisecond_ratio=self._whole_milliseconds / self.count,
        )


class GapLog:
    """Log of gaps, with the place of the longest."""

    def __init__(self) -> None:
        self._count = 0
        self._total_ns = 0
        self._longest_ns = 0
        self._longest: Place | None = None

    def look(self, times: CaptureTimes, steps: Steps, typical_ns: float) -> None:
        """Find gaps in a block: longer than ten typical intervals and than 50 ms, without the sensor's own pauses."""
        interval_ns = times.step_ns()
        longest_fair_ns = max(_SHORTEST_GAP_NS, 0.0 if np.isnan(typical_ns) else _MIN_INTERVALS_MISSED * typical_ns)
        for row in np.flatnonzero((interval_ns > longest_fair_ns) & ~steps.is_planned).tolist():
            duration_ns = int(interval_ns[row])
            self._count += 1
            self._total_ns += duration_ns
            if duration_ns > self._longest_ns:
                self._longest_ns, self._longest = duration_ns, times.place(row - 1)

    def summary(self) -> Gaps:
        """Number, total duration and longest of the gaps."""
        longest = None if self._longest is None else Gap(duration_s=self._longest_ns / 1e9, after=self._longest)
        return Gaps(count=self._count, total_s=self._total_ns / 1e9, longest=longest)


class ClockLine:
    """Least squares line of the host's time over the sensor's, by updating means (Chan, Golub and LeVeque 1979).

    A new stretch begins where the sensor's clock was set or the capture was joined; all stretches have one slope, and each has its own offset.
    """

    def __init__(self) -> None:
        self._stretches = 0
        self._points = 0
        self._pooled = np.zeros(3)  # sums xx, xy, yy about each stretch's means, over the former stretches
        self._begin()

    def _begin(self) -> None:
        self._count = 0
        self._mean = np.zeros(2)
        self._moments = np.zeros(3)
        self._sensor_ns = 0
        self._host_ns = 0

    def add(
        self,
        sensor_step_ns: npt.NDArray[np.int64],
        host_step_ns: npt.NDArray[np.int64],
        is_continuous: npt.NDArray[np.bool_],
        is_point: npt.NDArray[np.bool_],
    ) -> None:
        """Add a block of steps.

        Args:
            sensor_step_ns: ``int64[n]``, time since the former packet by the stamps.
            host_step_ns: ``int64[n]``, time since the former packet by capture times.
            is_continuous: ``bool[n]``, False for the first packet of a stretch.
            is_point: ``bool[n]``, whether the packet can be compared.
        """
        borders = [0, *np.flatnonzero(~is_continuous).tolist(), len(is_continuous)]
        last = len(borders) - 2
        for number, (start, stop) in enumerate(pairwise(borders)):
            if 0 < number < last and stop - start < _MIN_POINTS:
                continue
            if number:
                self._pool()
            rows = slice(start, stop)
            self._extend(np.where(is_continuous, sensor_step_ns, 0)[rows], np.where(is_continuous, host_step_ns, 0)[rows], is_point[rows])

    def _pool(self) -> None:
        """End the stretch."""
        if self._count:
            self._stretches += 1
            self._points += self._count
            self._pooled += self._moments
        self._begin()

    def _extend(self, sensor_step_ns: npt.NDArray[np.int64], host_step_ns: npt.NDArray[np.int64], is_point: npt.NDArray[np.bool_]) -> None:
        sensor = self._sensor_ns + np.cumsum(sensor_step_ns)
        host = self._host_ns + np.cumsum(host_step_ns)
        if len(sensor):
            self._sensor_ns, self._host_ns = int(sensor[-1]), int(host[-1])
        chosen = np.flatnonzero(is_point)
        if not len(chosen):
            return
        points = np.stack((sensor[chosen] * 1e-9, (host - sensor)[chosen] * 1e-9))
        mean = points.mean(axis=1)
        x, y = points - mean[:, None]
        both = self._count + len(chosen)
        weight = self._count * len(chosen) / both
        away_x, away_y = mean - self._mean
        self._moments += (x @ x + weight * away_x**2, x @ y + weight * away_x * away_y, y @ y + weight * away_y**2)
        self._mean += (mean - self._mean) * len(chosen) / both
        self._count = both

    def drift_ppm(self) -> tuple[float, float]:
        """Rate by which the sensor's clock is slower than the host's, and its standard error; NaN for fewer than 16 packets."""
        spread, product, square = self._pooled + self._moments
        free = self._points + self._count - self._stretches - 2
        if free < _MIN_POINTS - 2 or not spread:
            return float("nan"), float("nan")
        slope = product / spread
        residual = max(0.0, square - slope * product) / free
        return 1e6 * float(slope), 1e6 * float(np.sqrt(residual / spread))
