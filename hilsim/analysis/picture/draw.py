"""Draw a picture of one scan, which shows at a glance whether it is right."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.picture.scales import add_range_bar, add_rings, range_limits_m, range_norm, write_picture
from hilsim.analysis.picture.scan import Scan

_DIFFUSE_LIMIT = 100
_FARTHEST_M = 200.0
_MOST_COLUMNS = 1800
_NEIGHBOUR_STEPS = 1.5
_STRIP_INCHES = 1.4
_STRIP_INCHES_A_LASER = 0.014
_ROWS_MARKED = 5


def draw_scan(scan: Scan, path: Path, *, title: str, extent_m: float | None = None) -> None:
    """Draw a scan to a file: range image, reflectivity image, and the view from above coloured by reflectivity.

    Args:
        scan: Scan to draw.
        path: PNG (or SVG, PDF) file, replaced.
        title: First line of the picture.
        extent_m: Half width of the view from above; by default that with 98 % of the returns.

    Raises:
        CaptureError: the file cannot be written.
    """
    # matplotlib takes half a second to import, so only commands that draw import it.
    from matplotlib.figure import Figure  # noqa: PLC0415

    strip_inches = _STRIP_INCHES + _STRIP_INCHES_A_LASER * scan.elevation_deg.size
    figure = Figure(figsize=(12, 10.8 + 2 * strip_inches), dpi=110, layout="constrained")
    figure.suptitle(f"{title}\n{scan.model}, {scan.rate_rpm:.0f} rpm, {scan.range_m.size:,} firings, {scan.returns:,} returns", fontsize=12)
    grid = figure.add_gridspec(3, 1, height_ratios=(strip_inches, strip_inches, 10.8))
    firing = nearest_firings(scan)
    limits_m = range_limits_m(scan.range_m[scan.range_m > 0])
    axes, drawn = _strip(figure, grid[0], scan, scan.range_m, firing, cmap="viridis", norm=range_norm(limits_m))
    add_range_bar(figure, drawn, axes, limits_m)
    axes, drawn = _strip(figure, grid[1], scan, scan.reflectivity, firing, cmap="magma", vmin=0, vmax=_DIFFUSE_LIMIT)
    axes.set_xlabel("azimuth (deg, clockwise from forward; grey: no return, white: not fired)")
    figure.colorbar(drawn, ax=axes, label="reflectivity", pad=0.01, extend="max")
    _above(figure, grid[2], scan, extent_m)
    write_picture(figure, path)


def nearest_firings(scan: Scan) -> npt.NDArray[np.int64]:
    """Find the firing of each channel nearest to each column's azimuth (-180 to 180 deg), ``int64[c, columns]``; -1 without a firing there.

    The number of columns is that of firings in a turn, at most 1800, at any rate.
    """
    turn = round(360.0 / scan.step_deg)
    columns = min(turn, _MOST_COLUMNS)
    centre_deg = (np.arange(columns) + 0.5) * 360.0 / columns - 180.0
    chosen = np.full((scan.elevation_deg.size, columns), -1, dtype=np.int64)
    for channel in range(scan.elevation_deg.size):
        azimuth_deg = (scan.azimuth_deg[:, channel] + 180.0) % 360.0 - 180.0
        order = np.argsort(azimuth_deg)
        row = np.concatenate((order[-1:], order, order[:1]))
        around_deg = azimuth_deg[row] + np.concatenate(([-360.0], np.zeros(order.size), [360.0]))
        after = np.searchsorted(around_deg, centre_deg)
        is_before = centre_deg - around_deg[after - 1] < around_deg[after] - centre_deg
        nearest = after - is_before
        is_near = np.abs(around_deg[nearest] - centre_deg) <= _NEIGHBOUR_STEPS * max(scan.step_deg, 360.0 / columns)
        chosen[channel] = np.where(is_near, row[nearest], -1)
    return chosen


def _strip(figure: Any, cell: Any, scan: Scan, values: npt.NDArray[Any], firing: npt.NDArray[np.int64], **colours: Any) -> tuple[Any, Any]:
    """Draw the scan as an image: channels by elevation over azimuth."""
    order = np.argsort(-scan.elevation_deg)
    channel = np.arange(order.size)[:, None]
    is_return = (scan.range_m[firing, channel] > 0) & (firing >= 0)
    image = np.where(is_return, values[firing, channel].astype(float), np.nan)[order]
    axes = figure.add_subplot(cell)
    axes.set_facecolor("white")
    empty = np.where((firing >= 0) & ~is_return, 0.85, np.nan)[order]
    placed: dict[str, Any] = {"aspect": "auto", "extent": (-180, 180, order.size, 0), "interpolation": "nearest"}
    axes.imshow(empty, cmap="gray", vmin=0, vmax=1, **placed)
    drawn = axes.imshow(image, **colours, **placed)
    marked = np.unique(np.linspace(0, order.size - 1, _ROWS_MARKED).round().astype(int))
    axes.set_yticks(marked + 0.5, [f"{scan.elevation_deg[order[row]]:+.0f}°" for row in marked])
    axes.set_xticks(range(-180, 181, 45))
    return axes, drawn


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
    add_rings(axes, half)
    axes.plot(0, 0, marker="^", color="white", markersize=7)
    axes.set_xlim(-half, half)
    axes.set_ylim(-half, half)
    axes.set_aspect("equal")
    axes.set_xlabel("right of the sensor (m)")
    axes.set_ylabel("ahead of the sensor (m)")
    figure.colorbar(drawn, ax=axes, label="reflectivity (0-100 diffuse, above: retro-reflector)", pad=0.01, shrink=0.8, extend="max")
