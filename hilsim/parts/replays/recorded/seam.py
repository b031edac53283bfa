"""Find where to cut a recording so that its end continues into its beginning. Only the cut is chosen; no packet is blended or invented."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.replaying import replaying_part
from hilsim.protocols.recognise import PacketKind
from hilsim.units import TURN_CDEG

CLOSE_CDEG = 12
"""Phase difference up to which ends fit: some 0.3 of a VLP-16's step between blocks at 600 rpm; the noise of readings alone is 2."""
_MAX_OF_A_STEP = 0.75
"""Largest phase difference of the ends in packet steps. A whole turn has a packet within half a step, so only a shorter recording exceeds it."""
MAX_CANDIDATES = 3000
"""Largest number of candidates at either end."""


class CutPacket(NamedTuple):
    """A point packet at which a recording may be cut.

    Attributes:
        frame: Number of the frame in the file.
        phase: Phase of the sensor's cycle, as its family gives it: azimuth in 0.01 deg of a head that turns.
        group: Group within which packets fit each other.
    """

    frame: int
    phase: int
    group: int


class Cut(NamedTuple):
    """A loop of the frames from ``start_frame`` to before ``stop_frame``.

    Attributes:
        start_frame: First frame of every pass but the first.
        stop_frame: Frame that the next pass's first frame replaces.
        mismatch: Difference of the phases of these two frames: in the unit of the phase.
    """

    start_frame: int
    stop_frame: int
    mismatch: int


class CutCandidates:
    """Collector of the latest ``MAX_CANDIDATES`` packets at which the recording of one sensor may be cut."""

    def __init__(self, kind: PacketKind) -> None:
        self.packets: deque[CutPacket] = deque(maxlen=MAX_CANDIDATES)
        self._places = replaying_part(kind).cut_places()

    def look(self, frame: int, payload: bytes) -> None:
        """Add the sensor's next point packet, if the recording may be cut there."""
        self.packets.extend(CutPacket(frame, *place) for place in self._places(payload))


def find_cut(kind: PacketKind, first: Sequence[CutPacket], last: Sequence[CutPacket]) -> Cut | None:
    """Find the longest loop whose ends fit, or else the loop whose ends fit best.

    Args:
        kind: Kind of the packets.
        first: Packets at the recording's beginning.
        last: Packets at its end; may overlap ``first`` in a short recording. A loop must be at least 0.45 of the span from the first to the last, so
            one turn of two is enough.

    Returns:
        The loop, or None if no two packets can replace each other.
    """
    if not first or not last:
        return None
    start, stop = _columns(first), _columns(last)
    span = stop[-1, 0] - start[0, 0]
    best: Cut | None = None
    for frame, phase, group in start.tolist():  # row by row, because all pairs at once would take 300 MB
        length = stop[:, 0] - frame
        fitting = np.flatnonzero((stop[:, 2] == group) & (length > 0) & (20 * length >= 9 * span))
        if fitting.size:
            mismatch = _apart(stop[fitting, 1], phase)
            farthest = np.flatnonzero(mismatch <= max(int(mismatch.min()), CLOSE_CDEG))[-1]
            cut = Cut(frame, int(stop[fitting[farthest], 0]), int(mismatch[farthest]))
            best = cut if best is None or _rank(cut) < _rank(best) else best
    is_steady = replaying_part(kind).cycle_ns is not None
    if best is not None and is_steady and best.mismatch > max(_MAX_OF_A_STEP * _typical_step(start[:, 1]), CLOSE_CDEG):
        return None
    return best


def seam_note(kind: PacketKind, cut: Cut | None) -> str:
    """Remark for the operator if a loop cannot be cut seamlessly, or how far it leaps at the seam; empty if its ends fit."""
    if cut is None:
        return "no two places of it fit each other (a whole turn is needed), so it is looped with a visible seam"
    if cut.mismatch <= CLOSE_CDEG:
        return ""
    return f"its best seam leaps by {replaying_part(kind).leap(cut.mismatch)} (a longer recording has better ones)"


def _rank(cut: Cut) -> tuple[int, int]:
    return max(cut.mismatch, CLOSE_CDEG), cut.start_frame - cut.stop_frame


def _apart(phase: npt.NDArray[np.int64], other: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
    return np.asarray(np.abs((phase - other + TURN_CDEG // 2) % TURN_CDEG - TURN_CDEG // 2), dtype=np.int64)


def _typical_step(phase: npt.NDArray[np.int64]) -> float:
    return float(np.median(_apart(phase[1:], phase[:-1]))) if phase.size > 1 else 0.0


def _columns(packets: Sequence[CutPacket]) -> npt.NDArray[np.int64]:
    return np.array([(packet.frame, packet.phase, packet.group) for packet in packets], dtype=np.int64)
