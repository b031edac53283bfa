"""The compared statistics of streams of Ouster sensors; those of arrival, reflectivity and range noise are the same as for Velodynes."""

from typing import Any

from hilsim.families.ouster.comparison.columns import GRIDS_NS
from hilsim.families.ouster.comparison.pixels import RANGE_CLASSES_M
from hilsim.read.analysis.comparison.statistic import Statistic, number, percent, relative, share, wasserstein
from hilsim.read.analysis.comparison.statistics import NOISE, RANGES, RATE, REFLECTIVITY, SPACING


def _on_grid(place: int) -> Statistic:
    return number(
        f"columns.on_{GRIDS_NS[place]}_ns",
        lambda s: percent(s.columns.on_grid[place], s.columns.stamps),
        "%",
        ".1f",
        "columns.stamps",
        depends_on="unit",
    )


_COLUMNS = (
    relative("columns.mean", "columns.steps.mean", "us", ".4f", "columns.steps.total", depends_on="unit"),
    number("columns.sd", "columns.steps.sd", "us", ".3f", "columns.steps.total"),
    number("columns.smallest", "columns.steps.smallest", "us", ".2f", "columns.steps.total"),
    number("columns.largest", "columns.steps.largest", "us", ".2f", "columns.steps.total"),
    number("columns.autocorrelation", lambda s: s.columns.scatter.autocorrelation(), "", "+.3f", "columns.steps.total"),
    wasserstein("columns.wasserstein", "columns.steps", "us", ".3f", depends_on="unit"),
    *(_on_grid(place) for place in range(len(GRIDS_NS))),
    number("columns.missing", lambda s: 100.0 * s.missing_share, "%", ".3f", "columns.stamps", depends_on="host"),
)
_FRAMES = (
    relative("frames.mean", "frames.durations.mean", "us", ".1f", "frames.durations.total", depends_on="unit"),
    number("frames.sd", "frames.durations.sd", "us", ".1f", "frames.durations.total"),
)
_IMU = (number("imu.rate", "imu.rate_hz", "1/s", ".2f", "imu.measurements"),)
_ZERO_REFLECTIVITY = number(
    "reflectivity.at_0", lambda s: 100.0 * s.returns.reflectivity.share(0, 1), "%", ".2f", "returns.ranges_m.total", depends_on="scene"
)
_EMPTY = (
    share("empty.share", "returns.empty", "returns.pixels", depends_on="scene"),
    share("empty.suppressed", "returns.suppressed", "returns.empty", depends_on="scene"),
)
_MULTIPLES = share("ranges.multiples_of_3", "returns.of_three", "returns.ranges_m.total")


def _per_percent(place: int) -> Statistic:
    near_m, far_m = RANGE_CLASSES_M[place]
    is_last = place == len(RANGE_CLASSES_M) - 1

    def value(stream: Any) -> float:
        return float(10.0 ** stream.returns.signal[place].quantile(0.5))

    return relative(
        f"signal.from_{near_m}_m" if is_last else f"signal.from_{near_m}_to_{far_m}_m",
        value,
        "",
        ".0f",
        lambda s: int(s.returns.signal[place].total),
        depends_on="unit" if is_last else "scene",
    )


_SIGNAL = (
    *(_per_percent(place) for place in range(len(RANGE_CLASSES_M))),
    number("signal.empty_p50", lambda s: s.returns.empty_signal.quantile(0.5), "", ".1f", "returns.empty_signal.total"),
    number("signal.empty_p99", lambda s: s.returns.empty_signal.quantile(0.99), "", ".1f", "returns.empty_signal.total"),
)
_NEAR_IR = (
    number("near_ir.zero", lambda s: 100.0 * s.returns.near_ir.share(0, 1), "%", ".2f", "returns.near_ir.total"),
    number("near_ir.p50", lambda s: s.returns.near_ir.quantile(0.5), "", ".0f", "returns.near_ir.total", depends_on="scene"),
    number("near_ir.empty_p50", lambda s: s.returns.empty_near_ir.quantile(0.5), "", ".0f", "returns.empty_near_ir.total", depends_on="scene"),
    number("near_ir.empty_p1", lambda s: s.returns.empty_near_ir.quantile(0.01), "", ".0f", "returns.empty_near_ir.total", depends_on="scene"),
)


_DUAL = (
    share("dual.both", "dual.both", "dual.with_return", depends_on="scene"),
    share("dual.only_second", "dual.only_second", "dual.with_return"),
    share("dual.second_farther", "dual.second_farther", "dual.both", ".1f", depends_on="scene"),
    number("dual.separation_min", "dual.separations_m.smallest", "m", ".3f", "dual.both"),
    number("dual.separation_p50", lambda s: s.dual.separations_m.quantile(0.5), "m", ".3f", "dual.both", depends_on="scene"),
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
