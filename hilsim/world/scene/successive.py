"""Worlds that follow one another at rig times, for what looks at one instant after the other from Python."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hilsim.world.scene.world import World

_KEPT_NS = 10_000_000_000
"""Time for which a world that has been replaced is kept: no reader looks farther back."""


class SuccessiveWorlds:
    """A world, and those that replace it. One thread adds, any thread reads."""

    def __init__(self, world: World) -> None:
        """Begin with ``world``."""
        self._begun: tuple[tuple[int, World], ...] = ((0, world),)

    def add(self, from_ns: int, world: World) -> int:
        """Let another world begin at a rig time, not before the last one; returns the rig time at which it begins."""
        begun = self._begun
        passed = sum(begin_ns <= from_ns - _KEPT_NS for begin_ns, _ in begun)
        from_ns = max(from_ns, begun[-1][0])
        self._begun = (*begun[max(passed - 1, 0) :], (from_ns, world))
        return from_ns

    def at(self, time_ns: int) -> World:
        """World at a rig time."""
        begun = self._begun
        return next((world for from_ns, world in reversed(begun) if from_ns <= time_ns), begun[0][1])

    def parts(self, time_ns: npt.NDArray[np.int64]) -> Iterator[tuple[World, npt.NDArray[np.intp]]]:
        """Each world at some of the rig times ``int64[n]``, with the indices of these times."""
        begun = self._begun
        number = np.maximum(np.searchsorted([from_ns for from_ns, _ in begun], time_ns, side="right") - 1, 0)
        for each in np.unique(number).tolist():
            yield begun[each][1], np.flatnonzero(number == each)
