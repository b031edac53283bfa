"""Number of the scan of each point, from the azimuths of a turning head."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.units import TURN_CDEG

_BACK_CDEG = 100
"""Largest step back by the noise of an encoder; no head turns by almost a whole turn between packets."""
_OFFSET_CDEG = 2000
"""Azimuth by which a laser may point behind the azimuth of its block: the largest is 7 degrees."""
_BEHIND_CDEG = 1000
"""Azimuth behind the end of a turn at which no more firings of it come."""
_BEGUN_CDEG = 500
"""Azimuth up to which a turn that begins a stream is whole."""


class Numbered(NamedTuple):
    """Turns of some packets.

    Attributes:
        point_turn: ``int64[n]``, turn of each point.
        packet_turn: ``int64[m]``, turn in which each packet begins.
        complete: Turns before this one are complete.
    """

    point_turn: npt.NDArray[np.int64]
    packet_turn: npt.NDArray[np.int64]
    complete: int


class HeadTurns:
    """Turns of a head, which begin at azimuth 0.

    Attributes:
        whole_from: First turn that was seen from its beginning.
    """

    def __init__(self) -> None:
        self.whole_from = 0
        self._turned_cdeg: int | None = None
        self._azimuth_cdeg = 0

    def begin_again(self) -> None:
        """Continue with another turn behind a gap of time."""
        if self._turned_cdeg is not None:
            self.whole_from = self._turned_cdeg // TURN_CDEG + 1
            self._turned_cdeg, self._azimuth_cdeg = self.whole_from * TURN_CDEG, -1

    def number(self, azimuth_cdeg: npt.NDArray[np.int64], packet: npt.NDArray[np.int64], points: npt.NDArray[Any]) -> Numbered:
        """Number the next packets and their points.

        Args:
            azimuth_cdeg: ``int64[m]``, azimuth of each packet's first block, m at least 1.
            packet: ``int64[n]``, packet of each point, 0 to m - 1.
            points: Decoded points ``[n]`` of the packets.
        """
        first = int(azimuth_cdeg[0])
        if self._turned_cdeg is None or self._azimuth_cdeg < 0:
            base = 0 if self._turned_cdeg is None else self._turned_cdeg
            self._turned_cdeg = base + first
            self.whole_from = base // TURN_CDEG + (first > _BEGUN_CDEG)
        else:
            self._turned_cdeg += int(_forward(np.array([first - self._azimuth_cdeg]))[0])
        turned = self._turned_cdeg + np.concatenate([[0], np.cumsum(_forward(np.diff(azimuth_cdeg)))]).astype(np.int64)
        within = _forward(points["azimuth"].astype(np.float64) * 100.0 - azimuth_cdeg[packet], _OFFSET_CDEG)
        self._turned_cdeg, self._azimuth_cdeg = int(turned[-1]), int(azimuth_cdeg[-1])
        point_turn = np.floor((turned[packet] + within) / TURN_CDEG).astype(np.int64)
        return Numbered(point_turn, turned // TURN_CDEG, int((turned[-1] - _BEHIND_CDEG) // TURN_CDEG))


def _forward(step_cdeg: npt.NDArray[Any], back_cdeg: int = _BACK_CDEG) -> npt.NDArray[Any]:
    """Steps forwards, or backwards by less than ``back_cdeg``."""
    step = np.mod(step_cdeg, TURN_CDEG)
    return np.asarray(np.where(step > TURN_CDEG - back_cdeg, step - TURN_CDEG, step))
