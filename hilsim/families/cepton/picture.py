"""One scan of an image-scanning (Cepton-style) lidar from point packets, and its picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.picture.scales import add_range_bar, add_rings, range_limits_m, range_norm, write_picture
from hilsim.errors import CaptureError
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, POINT_UNIT_M, PointFlag, decode_stdv_points

_DIFFUSE_LIMIT = 100
_FARTHEST_M = 200.0
_VIEW_WIDTH_POINTS = 700.0
_SMALLEST_MARK, _LARGEST_MARK = 1.5, 16.0


@dataclass(frozen=True, kw_only=True)
class ImageScan:
    """Points of one scan.

    Attributes:
        points_m: ``float64[n, 3]``, positions of the returns (x right, y forward, z up).
        reflectivity: ``uint8[n]``, codes of the packet: 0 to 127 percent, above exponential.
        count: Number of points of the scan, including those without a return.
    """

    points_m: npt.NDArray[np.float64]
    reflectivity: npt.NDArray[np.uint8]
    count: int


def first_image_scan(payloads: Sequence[bytes]) -> ImageScan:
    """Find the first whole scan, from one change of the frame parity to the next.

    Args:
        payloads: STDV packets of one sensor in sending order.

    Raises:
        CaptureError: the packets contain no whole scan.
        PacketError: a payload is not an STDV packet.
    """
    points = np.concatenate([decode_stdv_points(payload) for payload in payloads])
    changes = np.flatnonzero(np.diff(points["flags"] & FRAME_PARITY)) + 1
    if changes.size < 2:
        raise CaptureError(f"a picture needs one whole scan between two changes of the frame parity, got {changes.size} in {points.size:,} points")
    scan = points[changes[0] : changes[1]]
    seen = scan[scan["flags"] & PointFlag.NO_RETURN == 0]
    return ImageScan(
        points_m=np.stack([seen[axis] * POINT_UNIT_M for axis in "xyz"], axis=-1),
        reflectivity=np.ascontiguousarray(seen["reflectivity"]),
        count=scan.size,
    )


def draw_image_scan(scan: ImageScan, path: Path, *, title: str, extent_m: float | None = None) -> None:
    """Draw a scan to a file: images of range and reflectivity, and the view from above.

    Args:
        scan: Scan to draw.
        path: PNG (or SVG, PDF) file, replaced.
        title: First line of the picture.
        extent_m: Extent of the view from above; by default that with 98 % of the returns.

    Raises:
        CaptureError: the file cannot be written.
    """
    # matplotlib takes half a second to import, so only commands that draw import it.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(12, 14), dpi=110, layout="constrained")
    figure.suptitle(f"{title}\n{scan.count:,} points, {len(scan.points_m):,} returns", fontsize=12)
    grid = figure.add_gridspec(3, 1, height_ratios=(1, 1, 1.6))
    range_m = np.linalg.norm(scan.points_m, axis=1)
    limits_m = range_limits_m(range_m)
    axes, drawn = _view(figure, grid[0], scan, range_m, cmap="viridis", norm=range_norm(limits_m))
    add_range_bar(figure, drawn, axes, limits_m)
    axes, drawn = _view(figure, grid[1], scan, scan.reflectivity, cmap="magma", vmin=0, vmax=_DIFFUSE_LIMIT)
    figure.colorbar(drawn, ax=axes, label="reflectivity (%)", pad=0.01, extend="max")
    _above(figure, grid[2], scan, extent_m)
    write_picture(figure, path)


def _view(figure: Any, cell: Any, scan: ImageScan, values: Any, **colours: Any) -> tuple[Any, Any]:
    """Draw points in the sensor's view, azimuth and elevation."""
    axes = figure.add_subplot(cell)
    axes.set_facecolor("0.85")
    x, y, z = scan.points_m.T
    azimuth_deg, elevation_deg = np.degrees(np.arctan2(x, y)), np.degrees(np.arctan2(z, np.hypot(x, y)))
    drawn = axes.scatter(azimuth_deg, elevation_deg, c=values, s=_marker_area(azimuth_deg, elevation_deg), marker="s", linewidths=0, **colours)
    axes.set_aspect("equal")
    axes.set_xlabel("azimuth (deg, right of forward; a point without a return has no direction)")
    axes.set_ylabel("elevation (deg)")
    return axes, drawn


def _marker_area(azimuth_deg: npt.NDArray[np.float64], elevation_deg: npt.NDArray[np.float64]) -> float:
    """Area of a point's mark (square typographic points) with which neighbouring marks nearly touch."""
    if azimuth_deg.size < 2:
        return _LARGEST_MARK
    spans = float(np.ptp(azimuth_deg)), float(np.ptp(elevation_deg))
    spacing_deg = (spans[0] * spans[1] / azimuth_deg.size) ** 0.5
    return float(np.clip((_VIEW_WIDTH_POINTS * spacing_deg / max(*spans, 1.0)) ** 2, _SMALLEST_MARK, _LARGEST_MARK))


def _above(figure: Any, cell: Any, scan: ImageScan, extent_m: float | None) -> None:
    axes = figure.add_subplot(cell)
    axes.set_facecolor("0.08")
    x, y, z = scan.points_m.T
    order = np.argsort(z)
    drawn = axes.scatter(
        x[order], y[order], c=np.minimum(scan.reflectivity[order], _DIFFUSE_LIMIT), s=1.6, cmap="turbo", vmin=0, vmax=_DIFFUSE_LIMIT, linewidths=0
    )
    reach = extent_m or min(float(np.quantile(y, 0.98)) * 1.1 if y.size else 10.0, _FARTHEST_M)
    add_rings(axes, reach)
    axes.plot(0, 0, marker="^", color="white", markersize=7)
    axes.set_xlim(-0.8 * reach, 0.8 * reach)
    axes.set_ylim(-0.02 * reach, reach)
    axes.set_aspect("equal")
    axes.set_xlabel("right of the sensor (m)")
    axes.set_ylabel("ahead of the sensor (m)")
    figure.colorbar(drawn, ax=axes, label="reflectivity (%; above 100: retro-reflector)", pad=0.01, extend="max")
