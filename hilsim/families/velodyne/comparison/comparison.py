"""Comparison of two streams of Velodyne sensors, and the panels of their distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.statistics import STATISTICS
from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.families.velodyne.comparison.tolerances import TOLERANCES
from hilsim.read.analysis.comparison.comparison import Comparison, Row, asked_limits, make_row
from hilsim.read.analysis.comparison.draw import COLOURS, draw_bars, draw_outline, draw_shared_panels, draw_title
from hilsim.read.analysis.comparison.histogram import wasserstein
from hilsim.read.analysis.comparison.tolerance import Tolerance

_RATES_APART_RATIO = 0.05  # settings differ by 60 rpm or more; one unit at 300 rpm was 1.4 % off on average
_SAME_RANGES_M, _SAME_EMPTY_PERCENT = 0.3, 10.0  # halves of four captures: up to 0.18 m and 5.1 %; of any two captures 0.51 m and 20 % or more
_OF_RATE = ("stream.rotation", "azimuth.", "noise.", "bytes.", "correlation.", "edges.")


@dataclass(frozen=True, kw_only=True)
class VelodyneComparison(Comparison):
    """The differences between two streams of Velodyne sensors."""

    passed_over = "data packets of another mode or model"

    def notes(self) -> list[str]:
        """Remarks that limit the meaning of distances."""
        sentences = []
        if self.a.model is not self.b.model:
            sentences.append(f"the models differ ({self.a.model.name}, {self.b.model.name}): nothing is judged")
        if self.a.return_mode is not self.b.return_mode:
            sentences.append("the return modes differ: pairs are not compared")
        if rates_differ(self.a, self.b):
            rates = ", ".join(f"{stream.azimuth.rate_rpm:.0f} rpm" for stream in (self.a, self.b))
            sentences.append(f"the rotation rates differ ({rates}): rotation, azimuth, noise and edges are not judged")
        return sentences + super().notes()


def compare(a: StreamStatistics, b: StreamStatistics, limits: Mapping[str, float], _names: tuple[str, str]) -> VelodyneComparison:
    """Compare two streams.

    Args:
        a: Statistics of the first stream.
        b: Statistics of the second stream.
        limits: Largest allowed distances by names of statistics.
    """
    of_rate, of_scene = rates_differ(a, b), not of_one_scene(a, b)
    are_dual = a.dual is not None and b.dual is not None
    rows = []
    for statistic in STATISTICS:
        if statistic.is_of_pairs and not are_dual:
            continue
        reason = "the models differ" if a.model is not b.model else ""
        if not reason and of_rate and statistic.name.startswith(_OF_RATE):
            reason = "the rotation rates differ"
        if not reason and of_scene and statistic.name.startswith("noise."):
            reason = "the scenes differ"
        known = TOLERANCES.get(statistic.name)
        rows.append(make_row(statistic, (a, b), known, reason or (_obstacle(known, a, b) if known else "")))
    return VelodyneComparison(a=a, b=b, rows=tuple(rows), limits=asked_limits(rows, limits))


def rates_differ(a: StreamStatistics, b: StreamStatistics) -> bool:
    """Whether the heads turn at different settings of the rate."""
    return abs(a.azimuth.rate_rpm - b.azimuth.rate_rpm) > _RATES_APART_RATIO * max(a.azimuth.rate_rpm, b.azimuth.rate_rpm)


def of_one_scene(a: StreamStatistics, b: StreamStatistics) -> bool:
    """Whether both sensors see the same scene; only then does range noise compare the units, and not rough surfaces."""
    if len(a.returns.empty_shares) != len(b.returns.empty_shares):
        return False
    apart_percent = 100.0 * float(np.abs(a.returns.empty_shares - b.returns.empty_shares).max())
    return wasserstein(a.returns.ranges_m, b.returns.ranges_m) <= _SAME_RANGES_M and apart_percent <= _SAME_EMPTY_PERCENT


def _obstacle(tolerance: Tolerance, a: StreamStatistics, b: StreamStatistics) -> str:
    """Reason why a tolerance does not hold for two streams; empty if it holds."""
    if tolerance.models and a.model.name not in tolerance.models:
        return f"no two units of a {a.model.name} were measured"
    if tolerance.is_of_one_mode and a.return_mode is not b.return_mode:
        return "the return modes differ"
    if min(a.azimuth.rate_rpm, b.azimuth.rate_rpm) < tolerance.slowest_rpm:
        return f"no real unit below {tolerance.slowest_rpm:g} rpm was measured"
    return ""


def draw_panels(axes: Any, streams: Sequence[StreamStatistics], rows: Mapping[str, Row]) -> None:
    """Draw the panels of two Velodyne streams to nine axes."""
    draw_bars(axes[0, 0], [stream.azimuth.increments for stream in streams])
    draw_title(axes[0, 0], "azimuth increments", rows["azimuth.total_variation"], "0.01 deg")
    _residuals(axes[0, 1], streams)
    draw_title(axes[0, 1], "stamps about straight lines", rows["stamps.residual_sd"], "us")
    _lasers(axes[1, 1], [100.0 * stream.returns.empty_shares for stream in streams])
    draw_title(axes[1, 1], "firings without a return, largest difference", rows["empty.by_laser"], "laser", "%")
    _lasers(axes[1, 2], [stream.returns.baseline for stream in streams])
    draw_title(axes[1, 2], "byte of empty records, mean difference", rows["empty.baseline"], "laser", "byte")
    draw_shared_panels(axes, streams, rows, "dual.separation_wasserstein")


def _residuals(axes: Any, streams: Sequence[StreamStatistics]) -> None:
    histograms = [stream.stamps.residuals for stream in streams]
    reach = max((max(abs(histogram.quantile(0.001)), histogram.quantile(0.999)) for histogram in histograms if histogram.total), default=1.0)
    half = int(12.0 * reach) + 1
    draw_outline(axes, histograms, 0.1 * (np.arange(-half, half + 2) - 0.5))


def _lasers(axes: Any, values: Sequence[npt.NDArray[np.float64]]) -> None:
    for place, (value, colour) in enumerate(zip(values, COLOURS, strict=True)):
        axes.bar(np.arange(len(value)) + (place - 0.5) * 0.4, np.nan_to_num(value), width=0.4, color=colour)
