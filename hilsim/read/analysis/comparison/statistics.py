"""The statistics that streams of all families have: arrival, reflectivity, ranges and their noise."""

from hilsim.read.analysis.comparison.noise import CLASSES
from hilsim.read.analysis.comparison.statistic import Statistic, number, share, total_variation, wasserstein

_GAPS, _RETURNS = "spacing.gaps.total", "returns.ranges_m.total"
RATE = number("stream.rate", "spacing.rate_hz", "1/s", ".2f", "spacing.packets", depends_on="host")
SPACING = (
    number("spacing.mean", "spacing.gaps.mean", "us", ".1f", _GAPS, depends_on="host"),
    number("spacing.sd", "spacing.gaps.sd", "us", ".1f", _GAPS, depends_on="host"),
    number("spacing.p1", lambda s: s.spacing.gaps.quantile(0.01), "us", ".1f", _GAPS, depends_on="host"),
    number("spacing.p5", lambda s: s.spacing.gaps.quantile(0.05), "us", ".1f", _GAPS, depends_on="host"),
    number("spacing.p50", lambda s: s.spacing.gaps.quantile(0.5), "us", ".1f", _GAPS, depends_on="host"),
    number("spacing.p95", lambda s: s.spacing.gaps.quantile(0.95), "us", ".1f", _GAPS, depends_on="host"),
    number("spacing.p99", lambda s: s.spacing.gaps.quantile(0.99), "us", ".1f", _GAPS, depends_on="host"),
    wasserstein("spacing.wasserstein", "spacing.gaps", "us", ".1f", depends_on="host"),
)
REFLECTIVITY = (
    number("reflectivity.p5", lambda s: s.returns.reflectivity.quantile(0.05), "", ".0f", _RETURNS, depends_on="scene"),
    number("reflectivity.p50", lambda s: s.returns.reflectivity.quantile(0.5), "", ".0f", _RETURNS, depends_on="scene"),
    number("reflectivity.p95", lambda s: s.returns.reflectivity.quantile(0.95), "", ".0f", _RETURNS, depends_on="scene"),
    number("reflectivity.above_100", lambda s: 100 * s.returns.reflectivity.share(101, 256), "%", ".2f", _RETURNS, depends_on="scene"),
    total_variation("reflectivity.total_variation", "returns.reflectivity", depends_on="scene"),
    wasserstein("reflectivity.wasserstein", "returns.reflectivity", "", ".1f", depends_on="scene"),
)
RANGES = (
    number("ranges.smallest", "returns.ranges_m.smallest", "m", ".3f", _RETURNS, depends_on="scene"),
    number("ranges.largest", "returns.ranges_m.largest", "m", ".3f", _RETURNS, depends_on="scene"),
    share("ranges.odd", "returns.odd", _RETURNS),
    wasserstein("ranges.wasserstein", "returns.ranges_m", "m", ".2f", depends_on="scene"),
)


def _noise(place: int) -> Statistic:
    start, stop = CLASSES[place]
    name = f"byte_{start}" if stop == start + 1 else f"byte_{start}_{stop - 1}"
    return number(f"noise.{name}", lambda s: float(s.noise.sigma_mm[place]), "mm", ".1f", lambda s: int(s.noise.windows[place]), depends_on="scene")


NOISE = tuple(_noise(place) for place in range(len(CLASSES)))
