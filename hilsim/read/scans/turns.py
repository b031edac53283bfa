"""Number of the scan of each point, from the azimuths of a turning head."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.lidar import LidarEmulator
from hilsim.sensor.clock import rig_from_device
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


Columns = Callable[[LidarEmulator, int, npt.NDArray[np.uint8]], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""Azimuths, 0.01 degrees, of what fires together in packets of an emulated lidar from an index on, and its device times in nanoseconds, ``int64[n]`` each."""


class TurnStarts:
    """Finder of turns of an emulated lidar, which begin at azimuth 0, interpolated between azimuths as for firings."""

    def __init__(self, lidar: LidarEmulator, columns: Columns) -> None:
        """Find turns by what ``columns`` reads of packets."""
        self._lidar, self._columns = lidar, columns
        self._before: tuple[int, int, int] | None = None
        """Device time and total angle at the last column, and the largest angle until then, so that a step back by noise passes no azimuth twice."""

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        """As ``hilsim.read.scans.part.ScanStarts.find``."""
        azimuth, column_ns = self._columns(self._lidar, first_packet, payloads)
        found: list[int] = []
        if self._before is None:
            turned = np.cumsum(np.concatenate([azimuth[:1], _forward(np.diff(azimuth))]))
            if first_packet == 0 and azimuth.size > 1 and azimuth[0] <= turned[1] - turned[0]:
                found.append(self._rig_ns(0.0))  # it was switched on at azimuth 0: the turn is complete
        else:
            before_ns, turned_before, _ = self._before
            steps = _forward(np.diff(azimuth, prepend=turned_before % TURN_CDEG))
            turned = np.cumsum(np.concatenate([[turned_before], steps]))
            column_ns = np.concatenate([[before_ns], column_ns])
        farthest = np.maximum.accumulate(turned)
        if self._before is not None:
            farthest = np.maximum(farthest, self._before[2])
        for column in np.flatnonzero(np.diff(farthest // TURN_CDEG)) + 1:
            passed = farthest[column] // TURN_CDEG * TURN_CDEG
            share = (passed - turned[column - 1]) / (turned[column] - turned[column - 1])
            found.append(self._rig_ns(column_ns[column - 1] + share * (column_ns[column] - column_ns[column - 1])))
        self._before = int(column_ns[-1]), int(turned[-1]), int(farthest[-1])
        return found

    def _rig_ns(self, device_ns: float) -> int:
        return int(rig_from_device(self._lidar.plan.clock, round(device_ns)))


def _forward(step_cdeg: npt.NDArray[Any], back_cdeg: int = _BACK_CDEG) -> npt.NDArray[Any]:
    """Steps forwards, or backwards by less than ``back_cdeg``."""
    step = np.mod(step_cdeg, TURN_CDEG)
    return np.asarray(np.where(step > TURN_CDEG - back_cdeg, step - TURN_CDEG, step))
