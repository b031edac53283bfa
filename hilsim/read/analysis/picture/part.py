"""What a family gives for pictures: module ``picture`` of its folder, with a ``PART``; and what all pictures share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.emulator.setting import LidarSetting
from hilsim.read.analysis.picture.scales import add_rings, write_picture

DIFFUSE_LIMIT = 100
"""Largest reflectivity of a diffuse surface."""
_MAX_M = 200.0


class PictureScan(ABC):
    """A scan to draw; its text is what the command prints."""

    @property
    @abstractmethod
    def subtitle(self) -> str:
        """Second line of the picture."""

    @property
    def remark(self) -> str:
        """What the scan lacks; empty for nothing."""
        return ""

    @property
    @abstractmethod
    def heights(self) -> tuple[float, ...]:
        """Heights of the panels in inches."""

    @abstractmethod
    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw each panel to its cell of the grid."""

    def draw(self, path: Path, *, title: str, extent_m: float | None = None) -> None:
        """Draw the scan to a file.

        Args:
            path: PNG (or SVG, PDF) file, replaced.
            title: First line of the picture.
            extent_m: Half width of the view from above; by default that with 98 % of the returns.

        Raises:
            CaptureError: the file cannot be written.
        """
        # matplotlib takes half a second to import, so only commands that draw import it.
        from matplotlib.figure import Figure  # noqa: PLC0415

        heights = self.heights
        figure = Figure(figsize=(12, sum(heights)), dpi=110, layout="constrained")
        figure.suptitle(f"{title}\n{self.subtitle}", fontsize=12)
        self.draw_panels(figure, figure.add_gridspec(len(heights), 1, height_ratios=heights), extent_m)
        write_picture(figure, path)


def draw_above(
    figure: Any,
    cell: Any,
    points_m: npt.NDArray[np.float64],
    reflectivity: npt.NDArray[np.uint8],
    extent_m: float | None,
    *,
    area: float = 1.6,
    ahead_only: bool = False,
) -> None:
    """Draw points from above, coloured by reflectivity.

    Args:
        figure: Figure of matplotlib.
        cell: Cell of the figure's grid.
        points_m: ``float64[n, 3]``, positions (x right, y forward, z up).
        reflectivity: ``uint8[n]``, reflectivities.
        extent_m: Half width of the view; None: that with 98 % of the points.
        area: Area of a mark in square typographic points.
        ahead_only: Whether the sensor looks ahead only.
    """
    axes = figure.add_subplot(cell)
    order = np.argsort(points_m[:, 2])
    shown = np.minimum(reflectivity[order], DIFFUSE_LIMIT)
    drawn = axes.scatter(points_m[order, 0], points_m[order, 1], c=shown, s=area, cmap="turbo", vmin=0, vmax=DIFFUSE_LIMIT, linewidths=0)
    frame_above(axes, extent_m, points_m[:, 1] if ahead_only else np.abs(points_m[:, :2]), ahead_only=ahead_only)
    label = "reflectivity (%; above 100: retro-reflector)" if ahead_only else "reflectivity (0-100 diffuse, above: retro-reflector)"
    figure.colorbar(drawn, ax=axes, label=label, pad=0.01, shrink=1.0 if ahead_only else 0.8, extend="max")


def frame_above(axes: Any, extent_m: float | None, distance_m: npt.NDArray[np.float64], *, ahead_only: bool = False) -> None:
    """Set the limits of a view from above, by default to 98 % of the distances; add rings, the sensor and labels."""
    reach_m = extent_m or min(float(np.quantile(distance_m, 0.98)) * 1.1 if distance_m.size else 10.0, _MAX_M)
    half_m, back_m = (0.8 * reach_m, 0.02 * reach_m) if ahead_only else (reach_m, reach_m)
    axes.set_facecolor("0.08")
    add_rings(axes, reach_m)
    axes.plot(0, 0, marker="^", color="white", markersize=7)
    axes.set_xlim(-half_m, half_m)
    axes.set_ylim(-back_m, reach_m)
    axes.set_aspect("equal")
    axes.set_xlabel("right of the sensor (m)")
    axes.set_ylabel("ahead of the sensor (m)")


class Gatherer(ABC):
    """Packets of one sensor until they contain a whole scan."""

    @abstractmethod
    def take(self, payload: bytes) -> None:
        """Add a packet of points."""

    @property
    @abstractmethod
    def is_whole(self) -> bool:
        """Whether the packets contain a whole scan."""

    @abstractmethod
    def scan(self) -> PictureScan:
        """The scan.

        Raises:
            CaptureError: the packets contain no whole scan, or cannot be read.
            PacketError: a packet is not one of the sensor.
        """


@dataclass(frozen=True, kw_only=True)
class PicturePart:
    """Pictures of scans of one family.

    Attributes:
        packets: Name of the packets of points.
        is_points: Whether a payload is a packet of points.
        unread: Reason why a payload's points cannot be drawn; empty for another payload.
        name: Function of a packet of points and the family's metadata (``given_metadata``), which gives a second name of the sensor, as its serial number.
        of_packet: Function of the first packet of a sensor, the family's metadata, the model that the user names (or "") and the sensor's name in errors.
            Raises CaptureError or ConfigError for a sensor that is not known.
        of_setting: Function of an emulated sensor's setting.
    """

    packets: str
    is_points: Callable[[bytes], bool]
    unread: Callable[[bytes], str] = lambda _payload: ""
    name: Callable[[bytes, Any], str] = lambda _payload, _metadata: ""
    of_packet: Callable[[bytes, Any, str, str], Gatherer]
    of_setting: Callable[[LidarSetting], Gatherer]
