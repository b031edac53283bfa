"""Draw the distributions of two streams."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.comparison.comparison import Comparison, Row, Verdict
from hilsim.read.analysis.comparison.histogram import Histogram
from hilsim.read.analysis.comparison.noise import CLASSES
from hilsim.read.analysis.comparison.streams import comparison_parts
from hilsim.read.analysis.picture.scales import write_picture

COLOURS = ("tab:blue", "tab:orange")
"""Colours of the streams A and B."""
_MIN_WINDOWS = 30


def draw_comparison(comparison: Comparison, names: tuple[str, str], path: Path) -> None:
    """Draw both streams' distributions to a file, A blue and B orange, with the distances in the panels' titles.

    Args:
        comparison: Comparison to draw.
        names: Names of the two streams.
        path: PNG (or SVG, PDF) file, replaced.

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
    comparison_parts()[comparison.a.family].draw_panels(axes, streams, rows)
    figure.legend([Patch(color=colour) for colour in COLOURS], labels, loc="outside upper left", fontsize=11)
    write_picture(figure, path)


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
    for place, (histogram, colour) in enumerate(zip(histograms, COLOURS, strict=True)):
        width = 0.4 * histogram.width
        axes.bar(histogram.centres[bins] + (place - 0.5) * width, histogram.shares()[bins], width=width, color=colour)


def draw_outline(axes: Any, histograms: Sequence[Histogram], edges: npt.NDArray[Any]) -> None:
    """Draw outlines over coarser bins."""
    for histogram, colour in zip(histograms, COLOURS, strict=True):
        if histogram.total:
            shares, _ = np.histogram(histogram.centres, bins=edges, weights=histogram.shares())
            axes.stairs(shares, edges, color=colour, linewidth=1.4)


def draw_shared_panels(axes: Any, streams: Sequence[Any], rows: Mapping[str, Row], separation: str) -> None:
    """Draw the panels that all families share to five of the axes ``[3, 3]``; ``separation`` is the row of the separations."""
    _draw_spacing(axes[0, 2], streams)
    draw_title(axes[0, 2], "spacing at the host", rows["spacing.wasserstein"], "us", "cumulated share")
    draw_outline(axes[1, 0], [stream.returns.reflectivity for stream in streams], np.arange(-0.5, 256))
    axes[1, 0].set_yscale("log")
    draw_title(axes[1, 0], "reflectivity of returns", rows["reflectivity.total_variation"], "byte (to 100 diffuse)")
    _draw_ranges(axes[2, 0], streams)
    draw_title(axes[2, 0], "ranges", rows["ranges.wasserstein"], "m")
    _draw_noise(axes[2, 1], streams)
    draw_title(axes[2, 1], "range noise", None, "reflectivity byte", "mm")
    _draw_separations(axes[2, 2], streams)
    draw_title(axes[2, 2], "separation of two returns", rows.get(separation), "m")


def _draw_spacing(axes: Any, streams: Sequence[Any]) -> None:
    """Draw cumulated shares, which show a pace without jitter beside one with jitter."""
    found = [stream.spacing.gaps for stream in streams if stream.spacing.gaps.total]
    for stream, colour in zip(streams, COLOURS, strict=True):
        gaps = stream.spacing.gaps
        if gaps.total:
            axes.step(gaps.centres, np.cumsum(gaps.shares()), where="post", color=colour, linewidth=1.4)
    if found:
        low, high = min(gaps.quantile(0.005) for gaps in found), max(gaps.quantile(0.995) for gaps in found)
        room = 0.1 * (high - low) + 1.0
        axes.set_xlim(low - room, high + room)


def _draw_ranges(axes: Any, streams: Sequence[Any]) -> None:
    """Draw the distributions of ranges over a logarithmic axis."""
    histograms = [stream.returns.ranges_m for stream in streams]
    farthest = max((histogram.largest for histogram in histograms if histogram.total), default=262.0)
    draw_outline(axes, histograms, np.geomspace(0.4, farthest * 1.1, 61))
    axes.set_xscale("log")
    ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100, 200) if tick < farthest * 1.1]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def _draw_noise(axes: Any, streams: Sequence[Any]) -> None:
    """Draw range noise by class of reflectivity."""
    names = [f"{start}" if stop == start + 1 else f"{start}-{stop - 1}" for start, stop in CLASSES]
    for stream, colour in zip(streams, COLOURS, strict=True):
        sigma = np.where(stream.noise.windows >= _MIN_WINDOWS, stream.noise.sigma_mm, np.nan)
        axes.plot(range(len(CLASSES)), sigma, color=colour, marker="o")
    axes.set_xticks(range(len(CLASSES)), names, rotation=45)
    axes.set_ylim(bottom=0.0)


def _draw_separations(axes: Any, streams: Sequence[Any]) -> None:
    """Draw the separations of two returns, if both streams have some."""
    histograms = [stream.dual.separations_m for stream in streams if stream.dual is not None]
    if len(histograms) < len(streams):
        axes.text(0.5, 0.5, "not both in dual mode", ha="center", va="center", transform=axes.transAxes, color="0.5")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    reach = max((histogram.quantile(0.98) for histogram in histograms if histogram.total), default=1.0)
    draw_outline(axes, histograms, np.linspace(0.0, reach, 61))
