"""Panels of the distributions of two streams of Velodyne sensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.read.analysis.comparison.comparison import Row
from hilsim.read.analysis.comparison.draw import COLOURS, draw_bars, draw_noise, draw_outline, draw_ranges, draw_separations, draw_spacing, draw_title


def draw_panels(axes: Any, streams: Sequence[StreamStatistics], rows: Mapping[str, Row]) -> None:
    """Draw the panels of two Velodyne streams to nine axes."""
    draw_bars(axes[0, 0], [stream.azimuth.increments for stream in streams])
    draw_title(axes[0, 0], "azimuth increments", rows["azimuth.total_variation"], "0.01 deg")
    _residuals(axes[0, 1], streams)
    draw_title(axes[0, 1], "stamps about straight lines", rows["stamps.residual_sd"], "us")
    draw_spacing(axes[0, 2], streams)
    draw_title(axes[0, 2], "spacing at the host", rows["spacing.wasserstein"], "us", "cumulated share")
    draw_outline(axes[1, 0], [stream.returns.reflectivity for stream in streams], np.arange(-0.5, 256))
    axes[1, 0].set_yscale("log")
    draw_title(axes[1, 0], "reflectivity of returns", rows["reflectivity.total_variation"], "byte (to 100 diffuse)")
    _lasers(axes[1, 1], [100.0 * stream.returns.empty_shares for stream in streams])
    draw_title(axes[1, 1], "firings without a return, largest difference", rows["empty.by_laser"], "laser", "%")
    _lasers(axes[1, 2], [stream.returns.baseline for stream in streams])
    draw_title(axes[1, 2], "byte of empty records, mean difference", rows["empty.baseline"], "laser", "byte")
    draw_ranges(axes[2, 0], streams)
    draw_title(axes[2, 0], "ranges", rows["ranges.wasserstein"], "m")
    draw_noise(axes[2, 1], streams)
    draw_title(axes[2, 1], "range noise", None, "reflectivity byte", "mm")
    draw_separations(axes[2, 2], streams)
    draw_title(axes[2, 2], "separation of dual returns", rows.get("dual.separation_wasserstein"), "m")


def _residuals(axes: Any, streams: Sequence[StreamStatistics]) -> None:
    histograms = [stream.stamps.residuals for stream in streams]
    reach = max((max(abs(histogram.quantile(0.001)), histogram.quantile(0.999)) for histogram in histograms if histogram.total), default=1.0)
    half = int(12.0 * reach) + 1
    draw_outline(axes, histograms, 0.1 * (np.arange(-half, half + 2) - 0.5))


def _lasers(axes: Any, values: Sequence[npt.NDArray[np.float64]]) -> None:
    for place, (value, colour) in enumerate(zip(values, COLOURS, strict=True)):
        axes.bar(np.arange(len(value)) + (place - 0.5) * 0.4, np.nan_to_num(value), width=0.4, color=colour)
