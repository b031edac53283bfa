"""Panels of the distributions of two streams of Ouster sensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hilsim.families.ouster.comparison.stream import OusterStatistics
from hilsim.read.analysis.comparison.comparison import Row
from hilsim.read.analysis.comparison.draw import draw_outline, draw_shared_panels, draw_title
from hilsim.read.analysis.comparison.histogram import Histogram

_BINS = 60


def draw_panels(axes: Any, streams: Sequence[OusterStatistics], rows: Mapping[str, Row]) -> None:
    """Draw the panels of two streams of Ouster sensors to nine axes."""
    _draw_middle(axes[0, 0], [stream.columns.steps for stream in streams])
    draw_title(axes[0, 0], "steps between columns", rows["columns.sd"], "us")
    _draw_middle(axes[0, 1], [stream.frames.durations for stream in streams])
    draw_title(axes[0, 1], "time from turn to turn", rows["frames.mean"], "us")
    _draw_middle(axes[1, 1], [stream.returns.signal[-1] for stream in streams])
    draw_title(axes[1, 1], "far photons by range and reflectivity", rows["signal.from_40_m"], "log10 of photons m2 / %")
    _draw_middle(axes[1, 2], [stream.returns.near_ir for stream in streams])
    draw_title(axes[1, 2], "photons of ambient light", rows["near_ir.p50"], "photons")
    draw_shared_panels(axes, streams, rows, "dual.separation_p50")


def _draw_middle(axes: Any, histograms: Sequence[Histogram]) -> None:
    """Draw outlines from the 0.1 to the 99.9 percent quantile; nothing without values."""
    filled = [histogram for histogram in histograms if histogram.total]
    if not filled:
        return
    low, high = min(histogram.quantile(0.001) for histogram in filled), max(histogram.quantile(0.999) for histogram in filled)
    width = filled[0].width
    step = width * max(1, round((high - low) / (_BINS * width)))
    draw_outline(axes, histograms, np.arange(low - 1.5 * width, high + step + width, step))
