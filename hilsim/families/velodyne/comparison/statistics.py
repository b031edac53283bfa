"""The compared statistics of a stream: pace, clock, returns, signal and pairs."""

from collections.abc import Callable

import numpy as np

from hilsim.families.velodyne.comparison.signal import CLASSES, PATCH_FIRINGS
from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.read.analysis.comparison.statistic import Statistic, figure, number, percent, relative, share, text, total_variation, wasserstein
from hilsim.read.analysis.comparison.statistics import NOISE, RANGES, RATE, REFLECTIVITY, SPACING

_STREAM = (
    RATE,
    relative("stream.rotation", "azimuth.rate_rpm", "rpm", ".2f", "azimuth.increments.total", depends_on="unit"),
)
_AZIMUTH = (
    number("azimuth.mean", "azimuth.increments.mean", "", ".3f", "azimuth.increments.total", depends_on="unit"),
    number("azimuth.sd", "azimuth.increments.sd", "", ".3f", "azimuth.increments.total"),
    number("azimuth.autocorrelation", lambda s: s.azimuth.scatter.autocorrelation(), "", "+.3f", "azimuth.increments.total"),
    number("azimuth.autocorrelation_2", lambda s: s.azimuth.scatter.autocorrelation(2), "", "+.3f", "azimuth.increments.total"),
    number("azimuth.autocorrelation_3", lambda s: s.azimuth.scatter.autocorrelation(3), "", "+.3f", "azimuth.increments.total"),
    number("azimuth.mod_5_rarest", lambda s: percent(s.azimuth.of_class.min(), s.azimuth.of_class.sum()), "%", ".2f", "azimuth.increments.total"),
    number("azimuth.mod_5_commonest", lambda s: percent(s.azimuth.of_class.max(), s.azimuth.of_class.sum()), "%", ".2f", "azimuth.increments.total"),
    total_variation("azimuth.total_variation", "azimuth.increments"),
)
_STAMPS = (
    number("stamps.residual_sd", "stamps.residual_us", "us", ".4f", "stamps.fitted"),
    Statistic(
        name="stamps.cycle",
        unit="ppm",
        value=lambda s: s.stamps.cycle_us,
        shown=lambda s: f"{text(s.stamps.cycle_us, '.4f')} us",
        distance=lambda a, b: abs(a.stamps.drift_ppm - b.stamps.drift_ppm),
        depends_on="unit",
        samples=figure("stamps.fitted"),
    ),
    total_variation("stamps.total_variation", "stamps.steps", depends_on="unit"),
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


_AT_100 = number(
    "reflectivity.at_100", lambda s: 100 * s.returns.reflectivity.share(100, 101), "%", ".2f", "returns.ranges_m.total", depends_on="scene"
)
_BELOW_FLOOR = share("ranges.below_floor", "returns.below_floor", "returns.ranges_m.total", ".3f")
_EMPTY = (
    share("empty.share", "returns.empty", "returns.fired", depends_on="scene"),
    Statistic(
        name="empty.by_laser",
        unit="%",
        value=lambda s: 100.0 * float(s.returns.empty_shares.max()),
        shown=_empty_shares_text,
        distance=_largest_laser_difference,
        depends_on="scene",
        samples=figure("returns.fired"),
    ),
    Statistic(
        name="empty.baseline",
        unit="",
        value=lambda s: float(np.nan_to_num(s.returns.baseline).max()),
        shown=_baseline_text,
        distance=_baseline_difference,
        depends_on="unit",
        samples=figure("returns.empty"),
    ),
    number("empty.at_baseline", lambda s: 100 * s.returns.baseline_share, "%", ".2f", "returns.empty"),
    number("empty.byte_kinds", "returns.byte_kinds", "", ".1f", "returns.empty"),
    number("empty.multiples", lambda s: 100 * s.returns.multiple_share, "%", ".1f", "returns.empty", depends_on="unit"),
    number("empty.zero_bytes", lambda s: 100 * s.returns.zero_byte_share, "%", ".2f", "returns.empty"),
)


def _of_class(place: int, name: str, value: Callable[[StreamStatistics], float], unit: str, form: str) -> Statistic:
    """Make a statistic of the patches of a class of bytes."""
    start, stop = CLASSES[place]
    return number(f"{name}_{start}_{stop - 1}", value, unit, form, lambda stream: stream.patches.count(place))


def _byte_sd(place: int) -> Statistic:
    return _of_class(place, "bytes.sd", lambda s: s.patches.byte_sd[place].quantile(0.5), "", ".2f")


def _constant(place: int) -> Statistic:
    return _of_class(place, "bytes.constant", lambda s: 100.0 * s.patches.constant_share(place), "%", ".2f")


def _autocorrelation(place: int) -> Statistic:
    return _of_class(place, "correlation.byte", lambda s: s.patches.autocorrelation(place), "", "+.3f")


_SIGNAL = (
    share("grid.odd", "grid.odd", "grid.steps"),
    share("grid.odd_equal_bytes", "grid.odd_equal", "grid.equal"),
    number("grid.parity", lambda s: 100.0 * s.grid.predicted_share, "%", ".1f", "edges.returns"),
    share("bytes.equal", "grid.diffuse_equal", "grid.diffuse"),
    *(_byte_sd(place) for place in range(len(CLASSES))),
    *(_constant(place) for place in range(len(CLASSES))),
    *(_autocorrelation(place) for place in range(len(CLASSES))),
    share("edges.with_empty", "edges.with_empty", "edges.edges", ".1f"),
    share("edges.near_mixed", "edges.near_mixed", "edges.near", ".1f"),
    share("edges.far_mixed", "edges.far_mixed", "edges.far", ".1f"),
    share("edges.single_empty", "edges.single", "edges.returns", ".3f"),
    share("edges.isolated", "edges.isolated", "edges.returns", ".3f"),
)
"""Statistics of neighbouring firings of one laser; those of bytes and correlation are of patches of 12 firings."""
if PATCH_FIRINGS != 12:
    raise AssertionError("the reports say that a patch has 12 firings")
_PAIRS, _DIFFERENT = "dual.with_return", "dual.different"
_DUAL = (
    share("dual.empty", "dual.empty", "dual.pairs", depends_on="scene"),
    share("dual.identical", "dual.identical", _PAIRS),
    share("dual.different", _DIFFERENT, _PAIRS),
    share("dual.only_even", "dual.only_even", _PAIRS),
    share("dual.only_odd", "dual.only_odd", _PAIRS),
    share("dual.even_farther", "dual.even_farther", _DIFFERENT),
    number("dual.near_byte", lambda s: s.dual.near_bytes.quantile(0.5), "", ".1f", _DIFFERENT),
    number("dual.far_byte", lambda s: s.dual.far_bytes.quantile(0.5), "", ".1f", _DIFFERENT),
    share("dual.even_stronger", "dual.even_stronger", _DIFFERENT, ".1f", depends_on="scene"),
    share("dual.odd_stronger", "dual.odd_stronger", _DIFFERENT, ".1f", depends_on="scene"),
    number("dual.separation_min", "dual.separations_m.smallest", "m", ".3f", _DIFFERENT),
    number("dual.separation_p50", lambda s: s.dual.separations_m.quantile(0.5), "m", ".3f", _DIFFERENT, depends_on="scene"),
    wasserstein("dual.separation_wasserstein", "dual.separations_m", "m", ".2f", depends_on="scene"),
    share("dual.empty_equal", "dual.empty_equal", "dual.empty"),
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
    *_SIGNAL,
    *_DUAL,
)
