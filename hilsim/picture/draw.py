"""A picture of one scan, so that a person sees at a glance that it is right."""

from pathlib import Path
from typing import Any

import numpy as np

from hilsim.errors import CaptureError
from hilsim.picture.scan import Scan

_DIFFUSE_LIMIT = 100
_FARTHEST_M = 200.0
_AZIMUTH_COLUMNS = 1500


def draw_scan(scan: Scan, path: Path, *, title: str, extent_m: float | None = None) -> None:
    """Write a picture of a scan: range image, reflectivity image, and the view from above coloured by reflectivity.

    Args:
        scan: The scan.
        path: PNG (or SVG, PDF) file, replaced.
        title: First line of the picture.
        extent_m: Half width of the view from above; by default what holds 98 % of the returns.

    Raises:
        CaptureError: the file cannot be written.
    """
    # matplotlib takes half a second to import: only commands that draw pay for it.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(12, 14), dpi=110, layout="constrained")
    figure.suptitle(f"{title}\n{scan.model}, {scan.range_m.size} firings, {scan.returns} returns", fontsize=12)
    grid = figure.add_gridspec(3, 1, height_ratios=(1, 1, 7.5))
    _strip(figure, grid[0], scan, np.where(scan.range_m > 0, scan.range_m, np.nan), "range (m)", "viridis", None)
    shown = np.where(scan.range_m > 0, scan.reflectivity.astype(float), np.nan)
    _strip(figure, grid[1], scan, shown, "reflectivity", "magma", _DIFFUSE_LIMIT)
    _above(figure, grid[2], scan, extent_m)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: the picture cannot be written: {error}") from error


def _strip(figure: Any, cell: Any, scan: Scan, values: Any, label: str, colours: str, limit: float | None) -> None:
    """Channels by elevation over azimuth: the scan as an image."""
    order = np.argsort(-scan.elevation_deg)
    image = np.full((order.size, _AZIMUTH_COLUMNS), np.nan)
    column = ((scan.azimuth_deg + 180.0) % 360.0 / 360.0 * _AZIMUTH_COLUMNS).astype(int) % _AZIMUTH_COLUMNS
    for row, channel in enumerate(order):
        image[row, column[:, channel]] = values[:, channel]
    axes = figure.add_subplot(cell)
    axes.set_facecolor("0.85")
    drawn = axes.imshow(image, aspect="auto", cmap=colours, extent=(-180, 180, order.size, 0), interpolation="nearest", vmin=0, vmax=limit)
    marked = range(0, order.size, max(order.size // 4, 1))
    axes.set_yticks([row + 0.5 for row in marked], [f"{scan.elevation_deg[order[row]]:+.0f}°" for row in marked])
    axes.set_xticks(range(-180, 181, 45))
    axes.set_xlabel("azimuth (deg, clockwise from forward; grey = no return)")
    figure.colorbar(drawn, ax=axes, label=label, pad=0.01)


def _above(figure: Any, cell: Any, scan: Scan, extent_m: float | None) -> None:
    points, reflectivity = scan.points_m()
    axes = figure.add_subplot(cell)
    axes.set_facecolor("0.08")
    order = np.argsort(points[:, 2])
    drawn = axes.scatter(
        points[order, 0],
        points[order, 1],
        c=np.minimum(reflectivity[order], _DIFFUSE_LIMIT),
        s=1.6,
        cmap="turbo",
        vmin=0,
        vmax=_DIFFUSE_LIMIT,
        linewidths=0,
    )
    half = extent_m or min(float(np.quantile(np.abs(points[:, :2]), 0.98)) * 1.1 if points.size else 10.0, _FARTHEST_M)
    for radius in (5, 10, 20, 50, 100):
        if radius < half * 1.4:
            angle = np.linspace(0, 2 * np.pi, 181)
            axes.plot(radius * np.sin(angle), radius * np.cos(angle), color="0.35", linewidth=0.6)
            axes.annotate(f"{radius} m", (0, radius), color="0.6", fontsize=7, ha="center", clip_on=True)
    axes.plot(0, 0, marker="^", color="white", markersize=7)
    axes.set_xlim(-half, half)
    axes.set_ylim(-half, half)
    axes.set_aspect("equal")
    axes.set_xlabel("right of the sensor (m)")
    axes.set_ylabel("ahead of the sensor (m)")
    figure.colorbar(drawn, ax=axes, label="reflectivity (0-100 diffuse, above: retro-reflector)", pad=0.01, shrink=0.8)
