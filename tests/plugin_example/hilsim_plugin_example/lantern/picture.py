"""Picture of a Lantern's turn, from above."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilsim.plugins import Gatherer, PicturePart, PictureScan, draw_above
from hilsim_plugin_example.lantern.points import decode
from hilsim_plugin_example.lantern.protocol import COLUMN_NS, COLUMNS, RATE_HZ
from hilsim_plugin_example.lantern.recognition import recognise

_PACKETS = 1_000_000_000 // (RATE_HZ * COLUMN_NS * COLUMNS)


@dataclass(frozen=True, kw_only=True)
class LanternScan(PictureScan):
    """Points of one turn."""

    points: Any
    heights = (8.0,)

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        return f"{self.points.size:,} returns"

    def __str__(self) -> str:
        return self.subtitle

    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw the view from above."""
        draw_above(figure, grid[0], np.stack([self.points[axis] for axis in "xyz"], axis=-1), self.points["intensity"], extent_m)


class LanternGatherer(Gatherer):
    """Packets until they are a turn."""

    def __init__(self) -> None:
        self._payloads: list[bytes] = []

    def take(self, payload: bytes) -> None:
        """Add a packet."""
        self._payloads.append(payload)

    @property
    def is_whole(self) -> bool:
        """Whether they are a turn."""
        return len(self._payloads) >= _PACKETS

    def scan(self) -> LanternScan:
        """The turn."""
        return LanternScan(points=decode(self._payloads[:_PACKETS]))


PART = PicturePart(
    packets="Lantern",
    is_points=lambda payload: recognise(payload) is not None,
    of_packet=lambda _first, _metadata, _model, _where: LanternGatherer(),
    of_setting=lambda _setting: LanternGatherer(),
)
