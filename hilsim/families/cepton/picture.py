"""One scan of an image-scanning (Cepton-style) lidar from point packets, and its picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError
from hilsim.families.cepton.protocol.stdv import (
    FRAME_PARITY,
    POINT_UNIT_M,
    STDV_SIGNATURE,
    PointFlag,
    decode_stdv_points,
    frame_parities,
    read_stdv_header,
)
from hilsim.read.analysis.picture.part import DIFFUSE_LIMIT, Gatherer, PicturePart, PictureScan, draw_above
from hilsim.read.analysis.picture.scales import add_range_bar, range_limits_m, range_norm

_PARITIES_OF_A_SCAN = 3
_VIEW_WIDTH_POINTS = 700.0
_SMALLEST_MARK, _LARGEST_MARK = 1.5, 16.0


@dataclass(frozen=True, kw_only=True)
class ImageScan(PictureScan):
    """Points of one scan."""

    points_m: Annotated[npt.NDArray[np.float64], "``float64[n, 3]``, positions of the returns (x right, y forward, z up)."]
    reflectivity: Annotated[npt.NDArray[np.uint8], "``uint8[n]``, codes of the packet: 0 to 127 percent, above exponential."]
    count: Annotated[int, "Number of points of the scan, including those without a return."]

    def __str__(self) -> str:
        return self.subtitle

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        return f"{self.count:,} points, {len(self.points_m):,} returns"

    @property
    def heights(self) -> tuple[float, ...]:
        """Heights of the panels in inches."""
        return 3.9, 3.9, 6.2

    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw images of range and reflectivity, and the view from above."""
        range_m = np.linalg.norm(self.points_m, axis=1)
        limits_m = range_limits_m(range_m)
        axes, drawn = _view(figure, grid[0], self, range_m, cmap="viridis", norm=range_norm(limits_m))
        add_range_bar(figure, drawn, axes, limits_m)
        axes, drawn = _view(figure, grid[1], self, self.reflectivity, cmap="magma", vmin=0, vmax=DIFFUSE_LIMIT)
        figure.colorbar(drawn, ax=axes, label="reflectivity (%)", pad=0.01, extend="max")
        draw_above(figure, grid[2], self.points_m, self.reflectivity, extent_m, ahead_only=True)


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


class ScanGatherer(Gatherer):
    """STDV packets of one sensor until they contain a whole scan."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self._parities: list[int] = []

    def take(self, payload: bytes) -> None:
        """Add an STDV packet."""
        self.payloads.append(payload)
        header = read_stdv_header(payload)
        for parity in frame_parities(payload, header) if header else b"":
            if not self._parities or parity != self._parities[-1]:
                self._parities.append(parity)

    @property
    def is_whole(self) -> bool:
        """Whether the packets contain a whole scan, with the packets before and after it."""
        return len(self._parities) >= _PARITIES_OF_A_SCAN

    def scan(self) -> ImageScan:
        """The first whole scan, as ``first_image_scan`` finds it."""
        return first_image_scan(self.payloads)


PART = PicturePart(
    packets="Cepton STDV",
    is_points=lambda payload: payload.startswith(STDV_SIGNATURE),
    unread=lambda payload: "its Cepton STDT points are of an older generation, whose format is not public" if payload.startswith(b"STDT") else "",
    of_packet=lambda _first, _metadata, _model, _where: ScanGatherer(),
    of_setting=lambda _setting: ScanGatherer(),
)
