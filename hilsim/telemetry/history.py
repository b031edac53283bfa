"""The last minute of counters: how much each grew over a window, and in which part of the minute; time is an argument."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.units import NS_PER_S

KEPT_NS = 60 * NS_PER_S


class Count(NamedTuple):
    """Which counter.

    Attributes:
        subject: Whose: a sensor's, a replay's, an interface's.
        name: Of what.
    """

    subject: str
    name: str


class CounterHistory:
    """Snapshots of counters that only grow.

    A counter that falls has begun anew (a reload zeroes a sensor's): it then grew by its value. One of our own that is new grew by its value too, so that what was lost
    before the first look counts; what a counter of the kernel had before it is not ours.
    """

    def __init__(self) -> None:
        self._places: dict[Count, int] = {}
        self._last: dict[Count, int] = {}
        self._grown = np.zeros(0, np.int64)
        self._snapshots: deque[tuple[int, npt.NDArray[np.int64]]] = deque()

    def note(self, now_ns: int, counters: Mapping[Count, int], foreign: Mapping[Count, int] | None = None) -> None:
        """Add a snapshot at ``now_ns``, which must not fall; those older than a minute go.

        Args:
            now_ns: CLOCK_MONOTONIC.
            counters: Began at zero with this process.
            foreign: Began before.
        """
        if not self._snapshots:
            self._snapshots.append((now_ns, self._grown))
        for count, value in (foreign or {}).items():
            self._last.setdefault(count, value)
        counters = {**counters, **(foreign or {})}
        grown = np.zeros(len(self._places.keys() | counters.keys()), np.int64)
        grown[: self._grown.size] = self._grown
        for count, value in counters.items():
            before = self._last.get(count, 0)
            place = self._places.setdefault(count, len(self._places))
            grown[place] += value - before if value >= before else value
            self._last[count] = value
        self._grown = grown
        self._snapshots.append((now_ns, grown))
        while len(self._snapshots) > 2 and self._snapshots[1][0] <= now_ns - KEPT_NS:
            self._snapshots.popleft()

    def grown(self, window_ns: int) -> dict[Count, int]:
        """By how much each counter grew over the window that ends with the newest snapshot; all of it where there is no older one."""
        snapshots, places = tuple(self._snapshots), dict(self._places)  # each in one go: another thread may add one meanwhile
        if not snapshots:
            return {}
        now_ns, newest = snapshots[-1]
        growth = newest - _padded(_at(snapshots, now_ns - window_ns), newest.size)
        return {count: int(growth[place]) for count, place in places.items() if place < growth.size}

    def series(self, step_ns: int) -> dict[Count, list[int]]:
        """How much each counter grew in each step of the last minute, oldest first; counters that did not grow are left out."""
        snapshots, places = tuple(self._snapshots), dict(self._places)
        if not snapshots:
            return {}
        now_ns, newest = snapshots[-1]
        steps = min(max(-(-(now_ns - snapshots[0][0]) // step_ns), 1), KEPT_NS // step_ns)
        edges = [_padded(_at(snapshots, now_ns - back * step_ns), newest.size) for back in range(steps, -1, -1)]
        growth = np.diff(np.stack(edges), axis=0)
        return {count: growth[:, place].tolist() for count, place in places.items() if place < newest.size and growth[:, place].any()}


def _at(snapshots: tuple[tuple[int, npt.NDArray[np.int64]], ...], time_ns: int) -> npt.NDArray[np.int64]:
    """The newest snapshot that is not later than ``time_ns``; the oldest one where there is none."""
    return next((grown for taken_ns, grown in reversed(snapshots) if taken_ns <= time_ns), snapshots[0][1])


def _padded(grown: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """With zeros for counters that were not known yet."""
    return np.concatenate((grown, np.zeros(size - grown.size, np.int64)))
