"""A tenth of a second of a Livox from its point packets, and its picture: a pattern that does not repeat has no scans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError
from hilsim.families.livox.family import WINDOW_NS
from hilsim.families.livox.points import decode_livox
from hilsim.families.livox.protocol.points import stamp_of
from hilsim.families.livox.recognition import LivoxKind, recognise
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.picture.part import Gatherer, PicturePart, PictureScan, draw_above
from hilsim.read.analysis.picture.scales import add_range_bar, range_limits_m, range_norm
from hilsim.units import NS_PER_S

_MARKS = 60_000.0
_DIFFUSE_LIMIT = 150


@dataclass(frozen=True, kw_only=True)
class WindowScan(PictureScan):
    """Points of a time window."""

    points: Annotated[npt.NDArray[Any], "``POINT_DTYPE[n]``, returns."]
    window_s: Annotated[float, "Time of the window."]

    def __str__(self) -> str:
        return self.subtitle

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        return f"{self.window_s:g} s, {self.points.size:,} returns"

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
        axes, drawn = self._view(figure, grid[1], points["intensity"], cmap="magma", vmin=0, vmax=_DIFFUSE_LIMIT)
        figure.colorbar(drawn, ax=axes, label="reflectivity (0-150: 0-100 %)", pad=0.01, extend="max")
        percent = np.minimum(points["intensity"] / 1.5, 255.0).astype(np.uint8)
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


def window_scan(payloads: Sequence[bytes], window_ns: int = WINDOW_NS) -> WindowScan:
    """Points of the first ``window_ns`` of point packets.

    Raises:
        CaptureError: they take less time.
    """
    stamps = [stamp_of(payload) for payload in payloads]
    taken = [payload for payload, stamp_ns in zip(payloads, stamps, strict=True) if 0 <= stamp_ns - stamps[0] < window_ns]
    if stamps[-1] - stamps[0] < window_ns:
        raise CaptureError(f"a picture needs {window_ns / NS_PER_S:g} s of points, got {(stamps[-1] - stamps[0]) / NS_PER_S:.3f} s")
    return WindowScan(points=decode_livox(batch_of(taken)), window_s=window_ns / NS_PER_S)


class WindowGatherer(Gatherer):
    """Point packets of one sensor until they are a window."""

    def __init__(self) -> None:
        self._payloads: list[bytes] = []

    def take(self, payload: bytes) -> None:
        """Add a point packet."""
        self._payloads.append(payload)

    @property
    def is_whole(self) -> bool:
        """Whether the packets take the time of a window."""
        return len(self._payloads) > 1 and stamp_of(self._payloads[-1]) - stamp_of(self._payloads[0]) >= WINDOW_NS

    def scan(self) -> WindowScan:
        """The first window."""
        return window_scan(self._payloads)


PART = PicturePart(
    packets="Livox point packets",
    is_points=lambda payload: recognise(payload) is LivoxKind.POINTS,
    of_packet=lambda _first, _metadata, _model, _where: WindowGatherer(),
    of_setting=lambda _setting: WindowGatherer(),
)
