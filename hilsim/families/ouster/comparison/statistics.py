"""The compared statistics of streams of Ouster sensors; those of arrival, reflectivity and range noise are the same as for Velodynes."""

from operator import attrgetter
from typing import Any

from hilsim.families.ouster.comparison.columns import GRIDS_NS
from hilsim.families.ouster.comparison.pixels import RANGE_CLASSES_M, PairStatistics
from hilsim.read.analysis.comparison.statistic import Count, Distribution, Statistic, number, percent, text, wasserstein
from hilsim.read.analysis.comparison.statistics import NOISE, RANGES, RATE, REFLECTIVITY, SPACING

_steps: Distribution = attrgetter("columns.steps")
_step_count: Count = attrgetter("columns.steps.total")
_stamp_count: Count = attrgetter("columns.stamps")
_durations: Distribution = attrgetter("frames.durations")
_duration_count: Count = attrgetter("frames.durations.total")
_return_count: Count = attrgetter("returns.ranges_m.total")
_pixel_count: Count = attrgetter("returns.pixels")
_empty_count: Count = attrgetter("returns.empty")
_empty_signal: Distribution = attrgetter("returns.empty_signal")
_near_ir: Distribution = attrgetter("returns.near_ir")
_empty_near_ir: Distribution = attrgetter("returns.empty_near_ir")


def _of_mean(name: str, distribution: Distribution, form: str) -> Statistic:
    """Make a statistic of a period, whose distance is in percent."""
    return Statistic(
        name=name,
        unit="%",
        value=lambda s: distribution(s).mean,
        shown=lambda s: f"{text(distribution(s).mean, form)} us",
        distance=lambda a, b: 200.0 * abs(distribution(a).mean - distribution(b).mean) / (distribution(a).mean + distribution(b).mean),
        depends_on="unit",
        samples=lambda s: distribution(s).total,
    )


def _on_grid(place: int) -> Statistic:
    return number(
        f"columns.on_{GRIDS_NS[place]}_ns", lambda s: percent(s.columns.on_grid[place], s.columns.stamps), "%", ".1f", _stamp_count, depends_on="unit"
    )


_COLUMNS = (
    _of_mean("columns.mean", _steps, ".4f"),
    number("columns.sd", lambda s: _steps(s).sd, "us", ".3f", _step_count),
    number("columns.smallest", lambda s: _steps(s).smallest, "us", ".2f", _step_count),
    number("columns.largest", lambda s: _steps(s).largest, "us", ".2f", _step_count),
    number("columns.autocorrelation", lambda s: s.columns.scatter.autocorrelation(), "", "+.3f", _step_count),
    wasserstein("columns.wasserstein", _steps, "us", ".3f", depends_on="unit"),
    *(_on_grid(place) for place in range(len(GRIDS_NS))),
    number("columns.missing", lambda s: 100.0 * s.missing_share, "%", ".3f", _stamp_count, depends_on="host"),
)
_FRAMES = (
    _of_mean("frames.mean", _durations, ".1f"),
    number("frames.sd", lambda s: _durations(s).sd, "us", ".1f", _duration_count),
)
_IMU = (number("imu.rate", lambda s: s.imu.rate_hz, "1/s", ".2f", attrgetter("imu.measurements")),)
_ZERO_REFLECTIVITY = number("reflectivity.at_0", lambda s: 100.0 * s.returns.reflectivity.share(0, 1), "%", ".2f", _return_count, depends_on="scene")
_EMPTY = (
    number("empty.share", lambda s: percent(s.returns.empty, s.returns.pixels), "%", ".2f", _pixel_count, depends_on="scene"),
    number("empty.suppressed", lambda s: percent(s.returns.suppressed, s.returns.empty), "%", ".2f", _empty_count, depends_on="scene"),
)
_MULTIPLES = number("ranges.multiples_of_3", lambda s: 100.0 * s.returns.of_three_share, "%", ".2f", _return_count)


def _per_percent(place: int) -> Statistic:
    near_m, far_m = RANGE_CLASSES_M[place]
    is_last = place == len(RANGE_CLASSES_M) - 1

    def value(stream: Any) -> float:
        return float(10.0 ** stream.returns.signal[place].quantile(0.5))

    return Statistic(
        name=f"signal.from_{near_m}_m" if is_last else f"signal.from_{near_m}_to_{far_m}_m",
        unit="%",
        value=value,
        shown=lambda s: text(value(s), ".0f"),
        distance=lambda a, b: 200.0 * abs(value(a) - value(b)) / (value(a) + value(b)),
        depends_on="unit" if is_last else "scene",
        samples=lambda s: int(s.returns.signal[place].total),
    )


_SIGNAL = (
    *(_per_percent(place) for place in range(len(RANGE_CLASSES_M))),
    number("signal.empty_p50", lambda s: _empty_signal(s).quantile(0.5), "", ".1f", lambda s: _empty_signal(s).total),
    number("signal.empty_p99", lambda s: _empty_signal(s).quantile(0.99), "", ".1f", lambda s: _empty_signal(s).total),
)
_NEAR_IR = (
    number("near_ir.zero", lambda s: 100.0 * _near_ir(s).share(0, 1), "%", ".2f", lambda s: _near_ir(s).total),
    number("near_ir.p50", lambda s: _near_ir(s).quantile(0.5), "", ".0f", lambda s: _near_ir(s).total, depends_on="scene"),
    number("near_ir.empty_p50", lambda s: _empty_near_ir(s).quantile(0.5), "", ".0f", lambda s: _empty_near_ir(s).total, depends_on="scene"),
    number("near_ir.empty_p1", lambda s: _empty_near_ir(s).quantile(0.01), "", ".0f", lambda s: _empty_near_ir(s).total, depends_on="scene"),
)


def _pairs(stream: Any) -> PairStatistics:
    return stream.dual or PairStatistics()


_with_return: Count = lambda s: _pairs(s).with_return  # noqa: E731
_both: Count = lambda s: _pairs(s).both  # noqa: E731
_DUAL = (
    number("dual.both", lambda s: percent(_pairs(s).both, _pairs(s).with_return), "%", ".2f", _with_return, depends_on="scene"),
    number("dual.only_second", lambda s: percent(_pairs(s).only_second, _pairs(s).with_return), "%", ".2f", _with_return),
    number("dual.second_farther", lambda s: percent(_pairs(s).second_farther, _pairs(s).both), "%", ".1f", _both, depends_on="scene"),
    number("dual.separation_min", lambda s: _pairs(s).separations_m.smallest, "m", ".3f", _both),
    number("dual.separation_p50", lambda s: _pairs(s).separations_m.quantile(0.5), "m", ".3f", _both, depends_on="scene"),
)
STATISTICS = (
    RATE,
    *_COLUMNS,
    *_FRAMES,
    *SPACING,
    *_IMU,
    *REFLECTIVITY,
    _ZERO_REFLECTIVITY,
    *_EMPTY,
    *RANGES,
    _MULTIPLES,
    *NOISE,
    *_SIGNAL,
    *_NEAR_IR,
    *_DUAL,
)
