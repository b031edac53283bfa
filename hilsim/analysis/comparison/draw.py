"""Draw the distributions of two streams."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.comparison.comparison import Comparison, Row, Verdict
from hilsim.analysis.comparison.histogram import Histogram
from hilsim.analysis.comparison.noise import CLASSES
from hilsim.analysis.comparison.stream import StreamStatistics
from hilsim.errors import CaptureError

DrawPanels = Callable[[Any, Sequence[Any], Mapping[str, Row]], None]
"""Function of the axes ``[3, 3]``, the statistics of both streams and the rows by name."""
_COLOURS = ("tab:blue", "tab:orange")
_FEWEST_WINDOWS = 30


def draw_comparison(comparison: Comparison, names: tuple[str, str], path: Path, draw_panels: DrawPanels) -> None:
    """Draw both streams' distributions to a file, A blue and B orange, with the distances in the panels' titles.

    Args:
        comparison: Comparison to draw.
        names: Names of the two streams.
        path: PNG (or SVG, PDF) file, replaced.
        draw_panels: Function that draws the panels of the streams' family.

    Raises:
        CaptureError: the file cannot be written.
    """
    # matplotlib takes half a second to import, so only commands that draw import it.
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    streams = (comparison.a, comparison.b)
    rows = {row.statistic.name: row for row in comparison.rows}
    figure = Figure(figsize=(15, 12), dpi=100, layout="constrained")
    axes = figure.subplots(3, 3)
    labels = [f"{letter}: {name}  ({stream})" for letter, name, stream in zip("AB", names, streams, strict=True)]
    draw_panels(axes, streams, rows)
    figure.legend([Patch(color=colour) for colour in _COLOURS], labels, loc="outside upper left", fontsize=11)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: the picture cannot be written: {error}") from error


def draw_velodyne_panels(axes: Any, streams: Sequence[StreamStatistics], rows: Mapping[str, Row]) -> None:
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


def draw_title(axes: Any, what: str, row: Row | None, across: str, up: str = "share") -> None:
    """Label a panel, with the distance and verdict of its row."""
    title = what
    if row is not None and not np.isnan(row.distance):
        title += f": {row.distance:.3g} {row.statistic.unit}".rstrip() + (
            f", {row.verdict}" if row.verdict in {Verdict.ALIKE, Verdict.DIFFERS} else ""
        )
    axes.set_title(title, fontsize=11, color="tab:red" if row is not None and row.verdict is Verdict.DIFFERS else "black")
    axes.set_xlabel(across)
    axes.set_ylabel(up)


def draw_bars(axes: Any, histograms: Sequence[Histogram]) -> None:
    """Draw bars side by side for values with a share above 0.001."""
    common = np.flatnonzero(np.max([np.nan_to_num(histogram.shares()) for histogram in histograms], axis=0) > 1e-3)
    if not len(common):
        return
    bins = slice(common[0], common[-1] + 1)
    for place, (histogram, colour) in enumerate(zip(histograms, _COLOURS, strict=True)):
        width = 0.4 * histogram.width
        axes.bar(histogram.centres[bins] + (place - 0.5) * width, histogram.shares()[bins], width=width, color=colour)


def draw_outline(axes: Any, histograms: Sequence[Histogram], edges: npt.NDArray[Any]) -> None:
    """Draw outlines over coarser bins."""
    for histogram, colour in zip(histograms, _COLOURS, strict=True):
        if histogram.total:
            shares, _ = np.histogram(histogram.centres, bins=edges, weights=histogram.shares())
            axes.stairs(shares, edges, color=colour, linewidth=1.4)


def _residuals(axes: Any, streams: Sequence[StreamStatistics]) -> None:
    histograms = [stream.stamps.residuals for stream in streams]
    reach = max((max(abs(histogram.quantile(0.001)), histogram.quantile(0.999)) for histogram in histograms if histogram.total), default=1.0)
    half = int(12.0 * reach) + 1
    draw_outline(axes, histograms, 0.1 * (np.arange(-half, half + 2) - 0.5))


def draw_spacing(axes: Any, streams: Sequence[Any]) -> None:
    """Draw cumulated shares, which show a pace without jitter beside one with jitter."""
    found = [stream.spacing.gaps for stream in streams if stream.spacing.gaps.total]
    for stream, colour in zip(streams, _COLOURS, strict=True):
        gaps = stream.spacing.gaps
        if gaps.total:
            axes.step(gaps.centres, np.cumsum(gaps.shares()), where="post", color=colour, linewidth=1.4)
    if found:
        low, high = min(gaps.quantile(0.005) for gaps in found), max(gaps.quantile(0.995) for gaps in found)
        room = 0.1 * (high - low) + 1.0
        axes.set_xlim(low - room, high + room)


def _lasers(axes: Any, values: Sequence[npt.NDArray[np.float64]]) -> None:
    for place, (value, colour) in enumerate(zip(values, _COLOURS, strict=True)):
        axes.bar(np.arange(len(value)) + (place - 0.5) * 0.4, np.nan_to_num(value), width=0.4, color=colour)


def draw_ranges(axes: Any, streams: Sequence[Any]) -> None:
    """Draw the distributions of ranges over a logarithmic axis."""
    histograms = [stream.returns.ranges_m for stream in streams]
    farthest = max((histogram.largest for histogram in histograms if histogram.total), default=262.0)
    draw_outline(axes, histograms, np.geomspace(0.4, farthest * 1.1, 61))
    axes.set_xscale("log")
    ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100, 200) if tick < farthest * 1.1]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def draw_noise(axes: Any, streams: Sequence[Any]) -> None:
    """Draw range noise by class of reflectivity."""
    names = [f"{start}" if stop == start + 1 else f"{start}-{stop - 1}" for start, stop in CLASSES]
    for stream, colour in zip(streams, _COLOURS, strict=True):
        sigma = np.where(stream.noise.windows >= _FEWEST_WINDOWS, stream.noise.sigma_mm, np.nan)
        axes.plot(range(len(CLASSES)), sigma, color=colour, marker="o")
    axes.set_xticks(range(len(CLASSES)), names, rotation=45)
    axes.set_ylim(bottom=0.0)


def draw_separations(axes: Any, streams: Sequence[Any]) -> None:
    """Draw the separations of two returns, if both streams have some."""
    histograms = [stream.dual.separations_m for stream in streams if stream.dual is not None]
    if len(histograms) < len(streams):
        axes.text(0.5, 0.5, "not both in dual mode", ha="center", va="center", transform=axes.transAxes, color="0.5")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    reach = max((histogram.quantile(0.98) for histogram in histograms if histogram.total), default=1.0)
    draw_outline(axes, histograms, np.linspace(0.0, reach, 61))
