"""The compared statistics of a stream's pace, clock, returns and pairs; those of the signal are in ``signal_statistics``."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from hilsim.families.velodyne.comparison.signal_statistics import SIGNAL
from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.families.velodyne.pairs import PairCounts
from hilsim.read.analysis.comparison.statistic import Count, Distribution, Statistic, number, percent, text, total_variation, wasserstein
from hilsim.read.analysis.comparison.statistics import NOISE, RANGES, RATE, REFLECTIVITY, SPACING

_increments: Distribution = attrgetter("azimuth.increments")
_increment_count: Count = attrgetter("azimuth.increments.total")
_fitted: Count = attrgetter("stamps.fitted")
_return_count: Count = attrgetter("returns.ranges_m.total")
_empty_count: Count = attrgetter("returns.empty")


def _firing_count(stream: StreamStatistics) -> int:
    return int(stream.returns.firings.sum())


def _pairs(stream: StreamStatistics) -> PairCounts:
    return stream.dual or PairCounts()


def _of_pairs(name: str) -> Callable[[StreamStatistics], Any]:
    """Make a function that gives a figure of dual returns, for a stream without them that of no pairs."""
    read = attrgetter(name)
    return lambda stream: read(_pairs(stream))


_pairs_with_return: Count = _of_pairs("with_return")
_different_pairs: Count = _of_pairs("different")
_empty_pairs: Count = _of_pairs("empty")
_separations: Distribution = _of_pairs("separations_m")


_STREAM = (
    RATE,
    Statistic(
        name="stream.rotation",
        unit="%",
        value=lambda s: s.azimuth.rate_rpm,
        shown=lambda s: f"{text(s.azimuth.rate_rpm, '.2f')} rpm",
        distance=lambda a, b: 200.0 * abs(a.azimuth.rate_rpm - b.azimuth.rate_rpm) / (a.azimuth.rate_rpm + b.azimuth.rate_rpm),
        depends_on="unit",
        samples=_increment_count,
    ),
)
_AZIMUTH = (
    number("azimuth.mean", lambda s: s.azimuth.increments.mean, "", ".3f", _increment_count, depends_on="unit"),
    number("azimuth.sd", lambda s: s.azimuth.increments.sd, "", ".3f", _increment_count),
    number("azimuth.autocorrelation", lambda s: s.azimuth.scatter.autocorrelation(), "", "+.3f", _increment_count),
    number("azimuth.autocorrelation_2", lambda s: s.azimuth.scatter.autocorrelation(2), "", "+.3f", _increment_count),
    number("azimuth.autocorrelation_3", lambda s: s.azimuth.scatter.autocorrelation(3), "", "+.3f", _increment_count),
    number("azimuth.mod_5_rarest", lambda s: 100 * s.azimuth.rarest_class_share, "%", ".2f", _increment_count),
    number("azimuth.mod_5_commonest", lambda s: 100 * s.azimuth.commonest_class_share, "%", ".2f", _increment_count),
    total_variation("azimuth.total_variation", _increments),
)
_STAMPS = (
    number("stamps.residual_sd", lambda s: s.stamps.residual_sd_us, "us", ".4f", _fitted),
    Statistic(
        name="stamps.cycle",
        unit="ppm",
        value=lambda s: s.stamps.cycle_us,
        shown=lambda s: f"{text(s.stamps.cycle_us, '.4f')} us",
        distance=lambda a, b: abs(a.stamps.drift_ppm - b.stamps.drift_ppm),
        depends_on="unit",
        samples=_fitted,
    ),
    total_variation("stamps.total_variation", lambda s: s.stamps.steps, depends_on="unit"),
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


_AT_100 = number("reflectivity.at_100", lambda s: 100 * s.returns.reflectivity.share(100, 101), "%", ".2f", _return_count, depends_on="scene")
_BELOW_FLOOR = number("ranges.below_floor", lambda s: 100 * s.returns.below_floor_share, "%", ".3f", _return_count)
_EMPTY = (
    number("empty.share", lambda s: 100 * s.returns.empty_share, "%", ".2f", _firing_count, depends_on="scene"),
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
    number("empty.at_baseline", lambda s: 100 * s.returns.baseline_share, "%", ".2f", _empty_count),
    number("empty.byte_kinds", lambda s: s.returns.byte_kinds, "", ".1f", _empty_count),
    number("empty.multiples", lambda s: 100 * s.returns.multiple_share, "%", ".1f", _empty_count, depends_on="unit"),
    number("empty.zero_bytes", lambda s: 100 * s.returns.zero_byte_share, "%", ".2f", _empty_count),
)
_DUAL = (
    number("dual.empty", lambda s: percent(_pairs(s).empty, _pairs(s).pairs), "%", ".2f", lambda s: _pairs(s).pairs, depends_on="scene"),
    number("dual.identical", lambda s: percent(_pairs(s).identical, _pairs(s).with_return), "%", ".2f", _pairs_with_return),
    number("dual.different", lambda s: percent(_pairs(s).different, _pairs(s).with_return), "%", ".2f", _pairs_with_return),
    number("dual.only_even", lambda s: percent(_pairs(s).only_even, _pairs(s).with_return), "%", ".2f", _pairs_with_return),
    number("dual.only_odd", lambda s: percent(_pairs(s).only_odd, _pairs(s).with_return), "%", ".2f", _pairs_with_return),
    number("dual.even_farther", lambda s: percent(_pairs(s).even_farther, _pairs(s).different), "%", ".2f", _different_pairs),
    number("dual.near_byte", lambda s: _pairs(s).near_bytes.quantile(0.5), "", ".1f", _different_pairs),
    number("dual.far_byte", lambda s: _pairs(s).far_bytes.quantile(0.5), "", ".1f", _different_pairs),
    number("dual.even_stronger", lambda s: percent(_pairs(s).even_stronger, _pairs(s).different), "%", ".1f", _different_pairs, depends_on="scene"),
    number("dual.odd_stronger", lambda s: percent(_pairs(s).odd_stronger, _pairs(s).different), "%", ".1f", _different_pairs, depends_on="scene"),
    number("dual.separation_min", lambda s: _separations(s).smallest, "m", ".3f", _different_pairs),
    number("dual.separation_p50", lambda s: _separations(s).quantile(0.5), "m", ".3f", _different_pairs, depends_on="scene"),
    wasserstein("dual.separation_wasserstein", _separations, "m", ".2f", depends_on="scene"),
    number("dual.empty_equal", lambda s: percent(_pairs(s).empty_equal, _pairs(s).empty), "%", ".2f", _empty_pairs),
)
STATISTICS = (
    *_STREAM,
    *_AZIMUTH,
    *_STAMPS,
    *SPACING,
    *REFLECTIVITY[:3],
    _AT_100,
    *REFLECTIVITY[3:],
    *_EMPTY,
    *RANGES[:2],
    _BELOW_FLOOR,
    *RANGES[2:],
    *NOISE,
    *SIGNAL,
    *_DUAL,
)
