"""Counters of the last minute: growth of each over a window, and in each step of the minute; time is an argument."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.units import NS_PER_S

KEPT_NS = 60 * NS_PER_S


class Count(NamedTuple):
    """Identity of a counter.

    Attributes:
        subject: Name of the sensor, replay or interface.
        name: Name of the counted quantity.
    """

    subject: str
    name: str


class CounterHistory:
    """Snapshots of counters that only increase.

    A counter that decreases was reset (a reload resets a sensor's): its growth is then its value. The growth of a new counter of hilsim is its value too, so that losses
    before the first snapshot count; a counter of the kernel started before hilsim, so its first value does not.
    """

    def __init__(self) -> None:
        self._places: dict[Count, int] = {}
        self._last: dict[Count, int] = {}
        self._grown = np.zeros(0, np.int64)
        self._snapshots: deque[tuple[int, npt.NDArray[np.int64]]] = deque()

    def note(self, now_ns: int, counters: Mapping[Count, int], foreign: Mapping[Count, int] | None = None) -> None:
        """Add a snapshot at ``now_ns``, which must not decrease; those older than a minute are removed.

        Args:
            now_ns: CLOCK_MONOTONIC time.
            counters: Counters that started at zero with this process.
            foreign: Counters that started earlier.
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
        """Growth of each counter over the window that ends with the newest snapshot; its full value if there is no older snapshot."""
        snapshots, places = tuple(self._snapshots), dict(self._places)  # each copied at once: another thread may add one meanwhile
        if not snapshots:
            return {}
        now_ns, newest = snapshots[-1]
        growth = newest - _padded(_at(snapshots, now_ns - window_ns), newest.size)
        return {count: int(growth[place]) for count, place in places.items() if place < growth.size}

    def series(self, step_ns: int) -> dict[Count, list[int]]:
        """Growth of each counter in each step of the last minute, oldest first; counters without growth are omitted."""
        snapshots, places = tuple(self._snapshots), dict(self._places)
        if not snapshots:
            return {}
        now_ns, newest = snapshots[-1]
        steps = min(max(-(-(now_ns - snapshots[0][0]) // step_ns), 1), KEPT_NS // step_ns)
        edges = [_padded(_at(snapshots, now_ns - back * step_ns), newest.size) for back in range(steps, -1, -1)]
        growth = np.diff(np.stack(edges), axis=0)
        return {count: growth[:, place].tolist() for count, place in places.items() if place < newest.size and growth[:, place].any()}


def _at(snapshots: tuple[tuple[int, npt.NDArray[np.int64]], ...], time_ns: int) -> npt.NDArray[np.int64]:
    """Newest snapshot at or before ``time_ns``; the oldest one if there is none."""
    return next((grown for taken_ns, grown in reversed(snapshots) if taken_ns <= time_ns), snapshots[0][1])


def _padded(grown: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Growth extended with zeros for counters that were unknown then."""
    return np.concatenate((grown, np.zeros(size - grown.size, np.int64)))
