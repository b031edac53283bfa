"""The statistics that streams of all families have: arrival, reflectivity, ranges and their noise."""

from operator import attrgetter

from hilsim.read.analysis.comparison.noise import CLASSES
from hilsim.read.analysis.comparison.statistic import Count, Distribution, Statistic, number, total_variation, wasserstein

_packets: Count = attrgetter("spacing.packets")
_gaps: Distribution = attrgetter("spacing.gaps")
_gap_count: Count = attrgetter("spacing.gaps.total")
_reflectivity: Distribution = attrgetter("returns.reflectivity")
_ranges: Distribution = attrgetter("returns.ranges_m")
_return_count: Count = attrgetter("returns.ranges_m.total")

RATE = number("stream.rate", lambda s: s.spacing.rate_hz, "1/s", ".2f", _packets, depends_on="host")
SPACING = (
    number("spacing.mean", lambda s: s.spacing.gaps.mean, "us", ".1f", _gap_count, depends_on="host"),
    number("spacing.sd", lambda s: s.spacing.gaps.sd, "us", ".1f", _gap_count, depends_on="host"),
    number("spacing.p1", lambda s: s.spacing.gaps.quantile(0.01), "us", ".1f", _gap_count, depends_on="host"),
    number("spacing.p5", lambda s: s.spacing.gaps.quantile(0.05), "us", ".1f", _gap_count, depends_on="host"),
    number("spacing.p50", lambda s: s.spacing.gaps.quantile(0.5), "us", ".1f", _gap_count, depends_on="host"),
    number("spacing.p95", lambda s: s.spacing.gaps.quantile(0.95), "us", ".1f", _gap_count, depends_on="host"),
    number("spacing.p99", lambda s: s.spacing.gaps.quantile(0.99), "us", ".1f", _gap_count, depends_on="host"),
    wasserstein("spacing.wasserstein", _gaps, "us", ".1f", depends_on="host"),
)
REFLECTIVITY = (
    number("reflectivity.p5", lambda s: _reflectivity(s).quantile(0.05), "", ".0f", _return_count, depends_on="scene"),
    number("reflectivity.p50", lambda s: _reflectivity(s).quantile(0.5), "", ".0f", _return_count, depends_on="scene"),
    number("reflectivity.p95", lambda s: _reflectivity(s).quantile(0.95), "", ".0f", _return_count, depends_on="scene"),
    number("reflectivity.above_100", lambda s: 100 * _reflectivity(s).share(101, 256), "%", ".2f", _return_count, depends_on="scene"),
    total_variation("reflectivity.total_variation", _reflectivity, depends_on="scene"),
    wasserstein("reflectivity.wasserstein", _reflectivity, "", ".1f", depends_on="scene"),
)
RANGES = (
    number("ranges.smallest", lambda s: _ranges(s).smallest, "m", ".3f", _return_count, depends_on="scene"),
    number("ranges.largest", lambda s: _ranges(s).largest, "m", ".3f", _return_count, depends_on="scene"),
    number("ranges.odd", lambda s: 100 * s.returns.odd_share, "%", ".2f", _return_count),
    wasserstein("ranges.wasserstein", _ranges, "m", ".2f", depends_on="scene"),
)


def _noise(place: int) -> Statistic:
    start, stop = CLASSES[place]
    name = f"byte_{start}" if stop == start + 1 else f"byte_{start}_{stop - 1}"
    return number(f"noise.{name}", lambda s: float(s.noise.sigma_mm[place]), "mm", ".1f", lambda s: int(s.noise.windows[place]), depends_on="scene")


NOISE = tuple(_noise(place) for place in range(len(CLASSES)))
