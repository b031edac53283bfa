"""Panels of the distributions of two streams of Velodyne sensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.read.analysis.comparison.comparison import Row
from hilsim.read.analysis.comparison.draw import COLOURS, draw_bars, draw_outline, draw_shared_panels, draw_title


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
