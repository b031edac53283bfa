"""Definitions of the compared statistics: value of a stream, and distance of two streams."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from hilsim.analysis.comparison.dual import DualStatistics
from hilsim.analysis.comparison.histogram import Histogram, total_variation, wasserstein
from hilsim.analysis.comparison.noise import CLASSES
from hilsim.analysis.comparison.stream import StreamStatistics

_Number = Callable[[StreamStatistics], float]
_Count = Callable[[StreamStatistics], int]
_Distribution = Callable[[StreamStatistics], Histogram]


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """Definition of one statistic.

    Attributes:
        name: ``group.name``.
        unit: Unit of the distance, and of the value if ``shown`` does not name another.
        value: Function that gives the value of a stream; NaN if unknown.
        shown: Function that gives the value as text.
        distance: Function that gives the distance of two streams, 0 for equal ones; NaN if the statistic is unknown for either.
        depends_on: Cause of differences between two captures of one model: ``"scene"``, ``"unit"`` or ``"host"``; "" for none.
        samples: Function that gives the number of samples.
    """

    name: str
    unit: str
    value: _Number
    shown: Callable[[StreamStatistics], str]
    distance: Callable[[StreamStatistics, StreamStatistics], float]
    depends_on: str
    samples: _Count

    @property
    def is_of_pairs(self) -> bool:
        """Whether the statistic is reported for dual mode only."""
        return self.name.startswith("dual.")


def _text(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)


def _number(name: str, value: _Number, unit: str, form: str, samples: _Count, *, depends_on: str = "") -> Statistic:
    """Make a statistic of a number, whose distance is the difference."""
    return Statistic(
        name=name,
        unit=unit,
        value=value,
        shown=lambda stream: _text(value(stream), form),
        distance=lambda a, b: abs(value(a) - value(b)),
        depends_on=depends_on,
        samples=samples,
    )


def _total_variation(name: str, distribution: _Distribution, *, depends_on: str = "") -> Statistic:
    """Make a statistic of a distribution, whose distance is that of the shares and whose text is the most frequent value."""
    return Statistic(
        name=name,
        unit="TV",
        value=lambda stream: distribution(stream).mode,
        shown=lambda stream: _most_frequent(distribution(stream)),
        distance=lambda a, b: total_variation(distribution(a), distribution(b)),
        depends_on=depends_on,
        samples=lambda stream: distribution(stream).total,
    )


def _wasserstein(name: str, distribution: _Distribution, unit: str, form: str, *, depends_on: str) -> Statistic:
    """Make a statistic of a distribution, whose distance is that by which values must be moved and whose text is the mean."""
    return Statistic(
        name=name,
        unit=unit,
        value=lambda stream: distribution(stream).mean,
        shown=lambda stream: _text(distribution(stream).mean, form),
        distance=lambda a, b: wasserstein(distribution(a), distribution(b)),
        depends_on=depends_on,
        samples=lambda stream: distribution(stream).total,
    )


def _most_frequent(histogram: Histogram) -> str:
    return f"{histogram.mode:g}: {100 * histogram.shares().max():.1f} %" if histogram.total else "-"


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else float("nan")


_packets: _Count = attrgetter("spacing.packets")
_increments: _Distribution = attrgetter("azimuth.increments")
_increment_count: _Count = attrgetter("azimuth.increments.total")
_fitted: _Count = attrgetter("stamps.fitted")
_gaps: _Distribution = attrgetter("spacing.gaps")
_gap_count: _Count = attrgetter("spacing.gaps.total")
_reflectivity: _Distribution = attrgetter("returns.reflectivity")
_ranges: _Distribution = attrgetter("returns.ranges_m")
_return_count: _Count = attrgetter("returns.ranges_m.total")
_empty_count: _Count = attrgetter("returns.empty")


def _firing_count(stream: StreamStatistics) -> int:
    return int(stream.returns.firings.sum())


def _pairs(stream: StreamStatistics) -> DualStatistics:
    return stream.dual or DualStatistics()


def _of_pairs(name: str) -> Callable[[StreamStatistics], Any]:
    """Make a function that gives a figure of dual returns, for a stream without them that of no pairs."""
    read = attrgetter(name)
    return lambda stream: read(_pairs(stream))


_pairs_with_return: _Count = _of_pairs("with_return")
_different_pairs: _Count = _of_pairs("different")
_empty_pairs: _Count = _of_pairs("empty")
_separations: _Distribution = _of_pairs("separations_m")


_STREAM = (
    _number("stream.rate", lambda s: s.spacing.rate_hz, "1/s", ".2f", _packets, depends_on="host"),
    Statistic(
        name="stream.rotation",
        unit="%",
        value=lambda s: s.azimuth.rate_rpm,
        shown=lambda s: f"{_text(s.azimuth.rate_rpm, '.2f')} rpm",
        distance=lambda a, b: 200.0 * abs(a.azimuth.rate_rpm - b.azimuth.rate_rpm) / (a.azimuth.rate_rpm + b.azimuth.rate_rpm),
        depends_on="unit",
        samples=_increment_count,
    ),
)
_AZIMUTH = (
    _number("azimuth.mean", lambda s: s.azimuth.increments.mean, "", ".3f", _increment_count, depends_on="unit"),
    _number("azimuth.sd", lambda s: s.azimuth.increments.sd, "", ".3f", _increment_count),
    _number("azimuth.autocorrelation", lambda s: s.azimuth.autocorrelation, "", "+.3f", _increment_count),
    _total_variation("azimuth.total_variation", _increments),
)
_STAMPS = (
    _number("stamps.residual_sd", lambda s: s.stamps.residual_sd_us, "us", ".4f", _fitted),
    Statistic(
        name="stamps.cycle",
        unit="ppm",
        value=lambda s: s.stamps.cycle_us,
        shown=lambda s: f"{_text(s.stamps.cycle_us, '.4f')} us",
        distance=lambda a, b: abs(a.stamps.drift_ppm - b.stamps.drift_ppm),
        depends_on="unit",
        samples=_fitted,
    ),
    _total_variation("stamps.total_variation", lambda s: s.stamps.steps),
)
_SPACING = (
    _number("spacing.mean", lambda s: s.spacing.gaps.mean, "us", ".1f", _gap_count, depends_on="host"),
    _number("spacing.sd", lambda s: s.spacing.gaps.sd, "us", ".1f", _gap_count, depends_on="host"),
    _number("spacing.p1", lambda s: s.spacing.gaps.quantile(0.01), "us", ".1f", _gap_count, depends_on="host"),
    _number("spacing.p5", lambda s: s.spacing.gaps.quantile(0.05), "us", ".1f", _gap_count, depends_on="host"),
    _number("spacing.p50", lambda s: s.spacing.gaps.quantile(0.5), "us", ".1f", _gap_count, depends_on="host"),
    _number("spacing.p95", lambda s: s.spacing.gaps.quantile(0.95), "us", ".1f", _gap_count, depends_on="host"),
    _number("spacing.p99", lambda s: s.spacing.gaps.quantile(0.99), "us", ".1f", _gap_count, depends_on="host"),
    _wasserstein("spacing.wasserstein", _gaps, "us", ".1f", depends_on="host"),
)
_REFLECTIVITY = (
    _number("reflectivity.p5", lambda s: _reflectivity(s).quantile(0.05), "", ".0f", _return_count, depends_on="scene"),
    _number("reflectivity.p50", lambda s: _reflectivity(s).quantile(0.5), "", ".0f", _return_count, depends_on="scene"),
    _number("reflectivity.p95", lambda s: _reflectivity(s).quantile(0.95), "", ".0f", _return_count, depends_on="scene"),
    _number("reflectivity.at_100", lambda s: 100 * _reflectivity(s).share(100, 101), "%", ".2f", _return_count, depends_on="scene"),
    _number("reflectivity.above_100", lambda s: 100 * _reflectivity(s).share(101, 256), "%", ".2f", _return_count, depends_on="scene"),
    _total_variation("reflectivity.total_variation", _reflectivity, depends_on="scene"),
    _wasserstein("reflectivity.wasserstein", _reflectivity, "", ".1f", depends_on="scene"),
)


def _largest_laser_difference(a: StreamStatistics, b: StreamStatistics) -> float:
    """Largest difference of the empty shares of a laser in percent; NaN for different numbers of lasers."""
    share_a, share_b = a.returns.empty_shares, b.returns.empty_shares
    return 100.0 * float(np.abs(share_a - share_b).max()) if len(share_a) == len(share_b) else float("nan")


def _baseline_difference(a: StreamStatistics, b: StreamStatistics) -> float:
    """Mean difference of the baselines over the lasers known in both streams; NaN without such."""
    baseline_a, baseline_b = a.returns.baseline, b.returns.baseline
    if len(baseline_a) != len(baseline_b):
        return float("nan")
    difference = np.abs(baseline_a - baseline_b)
    known = difference[~np.isnan(difference)]
    return float(known.mean()) if len(known) else float("nan")


def _baseline_text(stream: StreamStatistics) -> str:
    known = stream.returns.baseline[~np.isnan(stream.returns.baseline)]
    return f"{known.min():.0f} to {known.max():.0f}" if len(known) else "-"


def _empty_shares_text(stream: StreamStatistics) -> str:
    shares = 100.0 * stream.returns.empty_shares
    return f"{shares.min():.1f} to {shares.max():.1f}"


_EMPTY = (
    _number("empty.share", lambda s: 100 * s.returns.empty_share, "%", ".2f", _firing_count, depends_on="scene"),
    Statistic(
        name="empty.by_laser",
        unit="%",
        value=lambda s: 100.0 * float(s.returns.empty_shares.max()),
        shown=_empty_shares_text,
        distance=_largest_laser_difference,
        depends_on="scene",
        samples=_firing_count,
    ),
    Statistic(
        name="empty.baseline",
        unit="",
        value=lambda s: float(np.nan_to_num(s.returns.baseline).max()),
        shown=_baseline_text,
        distance=_baseline_difference,
        depends_on="unit",
        samples=_empty_count,
    ),
    _number("empty.at_baseline", lambda s: 100 * s.returns.baseline_share, "%", ".1f", _empty_count, depends_on="unit"),
    _number("empty.multiples", lambda s: 100 * s.returns.multiple_share, "%", ".1f", _empty_count, depends_on="unit"),
    _number("empty.zero_bytes", lambda s: 100 * s.returns.zero_byte_share, "%", ".2f", _empty_count),
)
_RANGES = (
    _number("ranges.smallest", lambda s: _ranges(s).smallest, "m", ".3f", _return_count, depends_on="scene"),
    _number("ranges.largest", lambda s: _ranges(s).largest, "m", ".3f", _return_count, depends_on="scene"),
    _number("ranges.below_floor", lambda s: 100 * s.returns.below_floor_share, "%", ".3f", _return_count),
    _number("ranges.odd", lambda s: 100 * s.returns.odd_share, "%", ".2f", _return_count),
    _wasserstein("ranges.wasserstein", _ranges, "m", ".2f", depends_on="scene"),
)


def _noise(place: int) -> Statistic:
    start, stop = CLASSES[place]
    name = f"byte_{start}" if stop == start + 1 else f"byte_{start}_{stop - 1}"
    return _number(f"noise.{name}", lambda s: float(s.noise.sigma_mm[place]), "mm", ".1f", lambda s: int(s.noise.windows[place]), depends_on="scene")


_NOISE = tuple(_noise(place) for place in range(len(CLASSES)))
_DUAL = (
    _number("dual.empty", lambda s: _percent(_pairs(s).empty, _pairs(s).pairs), "%", ".2f", lambda s: _pairs(s).pairs, depends_on="scene"),
    _number("dual.identical", lambda s: _percent(_pairs(s).identical, _pairs(s).with_return), "%", ".2f", _pairs_with_return),
    _number("dual.different", lambda s: _percent(_pairs(s).different, _pairs(s).with_return), "%", ".2f", _pairs_with_return),
    _number("dual.only_even", lambda s: _percent(_pairs(s).only_even, _pairs(s).with_return), "%", ".2f", _pairs_with_return, depends_on="scene"),
    _number("dual.only_odd", lambda s: _percent(_pairs(s).only_odd, _pairs(s).with_return), "%", ".2f", _pairs_with_return, depends_on="scene"),
    _number("dual.even_farther", lambda s: _percent(_pairs(s).even_farther, _pairs(s).different), "%", ".2f", _different_pairs),
    _number("dual.even_stronger", lambda s: _percent(_pairs(s).even_stronger, _pairs(s).different), "%", ".1f", _different_pairs, depends_on="scene"),
    _number("dual.odd_stronger", lambda s: _percent(_pairs(s).odd_stronger, _pairs(s).different), "%", ".1f", _different_pairs, depends_on="scene"),
    _number("dual.separation_min", lambda s: _separations(s).smallest, "m", ".3f", _different_pairs),
    _number("dual.separation_p50", lambda s: _separations(s).quantile(0.5), "m", ".3f", _different_pairs, depends_on="scene"),
    _wasserstein("dual.separation_wasserstein", _separations, "m", ".2f", depends_on="scene"),
    _number("dual.empty_equal", lambda s: _percent(_pairs(s).empty_equal, _pairs(s).empty), "%", ".2f", _empty_pairs),
)
STATISTICS = (*_STREAM, *_AZIMUTH, *_STAMPS, *_SPACING, *_REFLECTIVITY, *_EMPTY, *_RANGES, *_NOISE, *_DUAL)
NAMES = tuple(statistic.name for statistic in STATISTICS)
