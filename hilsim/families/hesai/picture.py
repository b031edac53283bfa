"""A turn of a Hesai from its point packets, and its picture."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError
from hilsim.families.hesai.points import decode_hesai
from hilsim.families.hesai.protocol.points import read_packet
from hilsim.families.hesai.recognition import HesaiKind, recognise
from hilsim.read.analysis.decode import batch_of
from hilsim.read.analysis.picture.part import DIFFUSE_LIMIT, Gatherer, PicturePart, PictureScan, draw_above
from hilsim.read.analysis.picture.scales import add_range_bar, range_limits_m, range_norm


@dataclass(frozen=True, kw_only=True)
class TurnScan(PictureScan):
    """Points of a turn."""

    points: Annotated[npt.NDArray[Any], "``POINT_DTYPE[n]``, returns."]
    packets: Annotated[int, "Packets that they are of."]

    def __str__(self) -> str:
        return self.subtitle

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        return f"a turn of {self.packets} packets, {self.points.size:,} returns"

    @property
    def heights(self) -> tuple[float, ...]:
        """Heights of the panels in inches."""
        return 2.6, 2.6, 6.4

    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw images of range and reflectivity by azimuth and laser, and the view from above."""
        points, range_m = self.points, self.points["range"].astype(np.float64)
        limits_m = range_limits_m(range_m)
        axes, drawn = self._view(figure, grid[0], range_m, cmap="viridis", norm=range_norm(limits_m))
        add_range_bar(figure, drawn, axes, limits_m)
        axes, drawn = self._view(figure, grid[1], points["intensity"], cmap="magma", vmin=0, vmax=DIFFUSE_LIMIT)
        figure.colorbar(drawn, ax=axes, label="reflectivity", pad=0.01, extend="max")
        draw_above(figure, grid[2], np.stack([points[axis] for axis in "xyz"], axis=-1).astype(np.float64), points["intensity"], extent_m)

    def _view(self, figure: Any, cell: Any, values: Any, **colours: Any) -> tuple[Any, Any]:
        axes = figure.add_subplot(cell)
        axes.set_facecolor("0.85")
        drawn = axes.scatter((self.points["azimuth"] + 180.0) % 360.0 - 180.0, self.points["ring"], c=values, s=1.0, linewidths=0, **colours)
        axes.set_xlim(-180.0, 180.0)
        axes.set_xlabel("azimuth (deg, clockwise from ahead)")
        axes.set_ylabel("laser, from the lowest")
        return axes, drawn


class TurnGatherer(Gatherer):
    """Point packets of one sensor from the begin of a turn until its end."""

    def __init__(self) -> None:
        self._payloads: list[bytes] = []
        self._last_cdeg, self._turns = -1, 0

    def take(self, payload: bytes) -> None:
        """Add a point packet."""
        azimuth_cdeg = int(read_packet(payload)["blocks"]["azimuth"][-1])
        self._turns += azimuth_cdeg < self._last_cdeg
        self._last_cdeg = azimuth_cdeg
        if self._turns == 1:
            self._payloads.append(payload)

    @property
    def is_whole(self) -> bool:
        """Whether there is a turn."""
        return self._turns > 1

    def scan(self) -> TurnScan:
        """The turn."""
        if not self.is_whole:
            raise CaptureError("a picture needs a whole turn of a Hesai from azimuth 0 on")
        return TurnScan(points=decode_hesai(batch_of(self._payloads)), packets=len(self._payloads))


PART = PicturePart(
    packets="Hesai point packets",
    is_points=lambda payload: recognise(payload) is HesaiKind.POINTS,
    of_packet=lambda _first, _metadata, _model, _where: TurnGatherer(),
    of_setting=lambda _setting: TurnGatherer(),
)
