"""Measurement of a lidar whose rays are a grid of angles, and its picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.picture.scales import add_range_bar, add_rings, range_limits_m, range_norm, write_picture

_FARTHEST_M = 200.0


@dataclass(frozen=True, kw_only=True)
class FanScan:
    """Measurement of a lidar whose rays are a grid of angles.

    Attributes:
        range_m: ``float64[rows, columns]``, ranges, the lowest row first; infinite for a miss.
        azimuth_rad: ``float64[columns]``, azimuths counter-clockwise from forward.
        elevation_rad: ``float64[rows]``, elevations.
    """

    range_m: npt.NDArray[np.float64]
    azimuth_rad: npt.NDArray[np.float64]
    elevation_rad: npt.NDArray[np.float64]

    @property
    def returns(self) -> int:
        """Number of rays with a return."""
        return int(np.isfinite(self.range_m).sum())


def draw_fan(scan: FanScan, path: Path, *, title: str, extent_m: float | None = None) -> None:
    """Draw a measurement to a file: ranges by angle, and the view from above.

    Args:
        scan: Measurement to draw.
        path: PNG (or SVG, PDF) file, replaced.
        title: First line of the picture.
        extent_m: Half width of the view from above; by default that with 98 % of the returns.

    Raises:
        CaptureError: the file cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes half a second, so only commands that draw import it

    rows, columns = scan.range_m.shape
    figure = Figure(figsize=(12, 13), dpi=110, layout="constrained")
    figure.suptitle(f"{title}\n{columns} x {rows} rays, {scan.returns:,} returns", fontsize=12)
    grid = figure.add_gridspec(2, 1, height_ratios=(1, 2.2))
    met = np.isfinite(scan.range_m)
    limits_m = range_limits_m(scan.range_m[met])
    (_profile if rows == 1 else _image)(figure, grid[0], scan, limits_m)
    _above(figure, grid[1], scan, limits_m, extent_m)
    write_picture(figure, path)


def _profile(figure: Any, cell: Any, scan: FanScan, _limits_m: Any) -> None:
    """Draw the ranges of one row over azimuth."""
    axes = figure.add_subplot(cell)
    axes.plot(np.degrees(scan.azimuth_rad), np.where(np.isfinite(scan.range_m[0]), scan.range_m[0], np.nan), ".", markersize=3)
    axes.set_xlim(np.degrees(scan.azimuth_rad[-1]), np.degrees(scan.azimuth_rad[0]))
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("azimuth (deg, left of forward)")
    axes.set_ylabel("range (m)")
    axes.grid(alpha=0.3)


def _image(figure: Any, cell: Any, scan: FanScan, limits_m: Any) -> None:
    """Draw the ranges of several rows as an image."""
    axes = figure.add_subplot(cell)
    axes.set_facecolor("0.85")
    seen = np.ma.masked_invalid(scan.range_m)
    drawn = axes.pcolormesh(np.degrees(scan.azimuth_rad), np.degrees(scan.elevation_rad), seen, cmap="viridis", norm=range_norm(limits_m))
    axes.invert_xaxis()
    axes.set_xlabel("azimuth (deg, left of forward)")
    axes.set_ylabel("elevation (deg)")
    add_range_bar(figure, drawn, axes, limits_m)


def _above(figure: Any, cell: Any, scan: FanScan, limits_m: Any, extent_m: float | None) -> None:
    axes = figure.add_subplot(cell)
    axes.set_facecolor("0.08")
    met = np.isfinite(scan.range_m)
    level_m = np.where(met, scan.range_m, 0.0) * np.cos(scan.elevation_rad)[:, np.newaxis]
    forward_m, left_m = (level_m * np.cos(scan.azimuth_rad))[met], (level_m * np.sin(scan.azimuth_rad))[met]
    drawn = axes.scatter(-left_m, forward_m, c=scan.range_m[met], s=4.0, cmap="viridis", norm=range_norm(limits_m), linewidths=0)
    reach = extent_m or min(float(np.quantile(level_m[met], 0.98)) * 1.1 if met.any() else 10.0, _FARTHEST_M)
    add_rings(axes, reach)
    axes.plot(0, 0, marker="^", color="white", markersize=7)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
    axes.set_xlabel("right of the sensor (m)")
    axes.set_ylabel("ahead of the sensor (m)")
    add_range_bar(figure, drawn, axes, limits_m)
