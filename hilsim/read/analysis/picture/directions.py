"""Picture of points by their directions: range and reflectivity in the sensor's view, and the view from above."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.picture.part import DIFFUSE_LIMIT, PictureScan, draw_above
from hilsim.read.analysis.picture.scales import add_range_bar, range_limits_m, range_norm

_MARKS = 60_000.0


@dataclass(frozen=True, kw_only=True)
class DirectedScan(PictureScan):
    """Points of a time, of a sensor whose image has no rows and columns of its own."""

    points: Annotated[npt.NDArray[Any], "``POINT_DTYPE[n]``, returns."]
    of: Annotated[str, "What they are of, for the second line of the picture."]
    diffuse_byte: Annotated[int, "Largest reflectivity byte of a diffuse surface."] = DIFFUSE_LIMIT

    def __str__(self) -> str:
        return self.subtitle

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        return f"{self.of}, {self.points.size:,} returns"

    @property
    def heights(self) -> tuple[float, ...]:
        """Heights of the panels in inches."""
        return 2.9, 2.9, 6.4

    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw images of range and reflectivity by direction, and the view from above."""
        points, range_m = self.points, self.points["range"].astype(np.float64)
        limits_m = range_limits_m(range_m)
        axes, drawn = self._view(figure, grid[0], range_m, cmap="viridis", norm=range_norm(limits_m))
        add_range_bar(figure, drawn, axes, limits_m)
        axes, drawn = self._view(figure, grid[1], points["intensity"], cmap="magma", vmin=0, vmax=self.diffuse_byte)
        figure.colorbar(drawn, ax=axes, label=f"reflectivity (0-{self.diffuse_byte}: 0-100 %)", pad=0.01, extend="max")
        percent = np.minimum(points["intensity"] * (DIFFUSE_LIMIT / self.diffuse_byte), 255.0).astype(np.uint8)
        draw_above(figure, grid[2], np.stack([points[axis] for axis in "xyz"], axis=-1).astype(np.float64), percent, extent_m)

    def _view(self, figure: Any, cell: Any, values: Any, **colours: Any) -> tuple[Any, Any]:
        """Draw points in the sensor's view, azimuth and elevation."""
        axes = figure.add_subplot(cell)
        axes.set_facecolor("0.85")
        azimuth_deg = (self.points["azimuth"] + 180.0) % 360.0 - 180.0
        elevation_deg = np.degrees(np.arcsin(np.clip(self.points["z"] / np.maximum(self.points["range"], 1e-6), -1.0, 1.0)))
        area = float(np.clip(_MARKS / max(self.points.size, 1), 0.05, 4.0))
        drawn = axes.scatter(azimuth_deg, elevation_deg, c=values, s=area, linewidths=0, **colours)
        axes.set_xlim(-180.0, 180.0)
        axes.set_xlabel("azimuth (deg, clockwise from ahead)")
        axes.set_ylabel("elevation (deg)")
        return axes, drawn
