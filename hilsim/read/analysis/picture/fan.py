"""Measurement of a lidar whose rays are a grid of angles, and its picture."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.picture.part import PictureScan, frame_above
from hilsim.read.analysis.picture.scales import add_range_bar, range_limits_m, range_norm


@dataclass(frozen=True, kw_only=True)
class FanScan(PictureScan):
    """Measurement of a lidar whose rays are a grid of angles."""

    range_m: Annotated[npt.NDArray[np.float64], "``float64[rows, columns]``, ranges, the lowest row first; infinite for a miss."]
    azimuth_rad: Annotated[npt.NDArray[np.float64], "``float64[columns]``, azimuths counter-clockwise from forward."]
    elevation_rad: Annotated[npt.NDArray[np.float64], "``float64[rows]``, elevations."]

    @property
    def returns(self) -> int:
        """Number of rays with a return."""
        return int(np.isfinite(self.range_m).sum())

    def __str__(self) -> str:
        return f"{self.range_m.size:,} rays, {self.returns:,} returns"

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        rows, columns = self.range_m.shape
        return f"{columns} x {rows} rays, {self.returns:,} returns"

    @property
    def heights(self) -> tuple[float, ...]:
        """Heights of the panels in inches."""
        return 4.06, 8.94

    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw ranges by angle, and the view from above."""
        limits_m = range_limits_m(self.range_m[np.isfinite(self.range_m)])
        (_profile if len(self.range_m) == 1 else _image)(figure, grid[0], self, limits_m)
        _above(figure, grid[1], self, limits_m, extent_m)


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
    met = np.isfinite(scan.range_m)
    level_m = np.where(met, scan.range_m, 0.0) * np.cos(scan.elevation_rad)[:, np.newaxis]
    forward_m, left_m = (level_m * np.cos(scan.azimuth_rad))[met], (level_m * np.sin(scan.azimuth_rad))[met]
    drawn = axes.scatter(-left_m, forward_m, c=scan.range_m[met], s=4.0, cmap="viridis", norm=range_norm(limits_m), linewidths=0)
    frame_above(axes, extent_m, level_m[met])
    add_range_bar(figure, drawn, axes, limits_m)
