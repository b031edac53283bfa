"""Evaluation of the sensors' own time stamps: missing packets, and steps of the clock."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.inspection.result import DeviceClock, Missing, Place
from hilsim.read.analysis.inspection.statistics import ClockLine
from hilsim.read.analysis.inspection.times import CaptureTimes


class MissingLog:
    """Log of packets missing between others."""

    def __init__(self) -> None:
        self._packets = 0
        self._runs = 0
        self._longest_run = 0
        self._longest_after: Place | None = None

    def look(self, absent: npt.NDArray[np.int64], times: CaptureTimes) -> None:
        """Add the numbers of packets missing before each packet, ``int64[n]``; negative for a late packet, which cancels an earlier count."""
        self._packets += int(absent.sum())
        self._runs += int((absent > 0).sum())
        worst = int(absent.argmax())
        if absent[worst] > self._longest_run:
            self._longest_run, self._longest_after = int(absent[worst]), times.place(worst - 1)

    def summary(self, further: Sequence[tuple[int, Place]] = ()) -> Missing:
        """Figures of the missing packets, with further ones: numbers of packets, and the places of the last ones before them."""
        packets = self._packets + sum(count for count, _ in further)
        if packets <= 0:
            return Missing(packets=0, runs=0, longest_run=0, longest_after=None)
        longest, after = max([*further, (self._longest_run, self._longest_after)], key=lambda run: run[0])
        return Missing(packets=packets, runs=self._runs + len(further), longest_run=longest, longest_after=after)


class StampLog:
    """Log of the stamps of one flow."""

    def __init__(self) -> None:
        self._first_us: int | None = None
        self._last_us = 0
        self._duration_us = 0
        self._repeated = 0
        self._out_of_order = 0
        self._jumps = 0
        self._first_jump: Place | None = None
        self._line = ClockLine()

    @property
    def last_us(self) -> int | None:
        """Stamp of the last packet so far; None before any packet."""
        return None if self._first_us is None else self._last_us

    @property
    def duration_us(self) -> int:
        """Duration by the stamps, without jumps."""
        return self._duration_us

    def look(
        self,
        stamps_us: npt.NDArray[np.int64],
        step_us: npt.NDArray[np.int64],
        *,
        is_sound: npt.NDArray[np.bool_],
        is_late: npt.NDArray[np.bool_],
        is_point: npt.NDArray[np.bool_],
        times: CaptureTimes,
    ) -> None:
        """Add a block.

        Args:
            stamps_us: ``int64[n]``, stamps.
            step_us: ``int64[n]``, steps since the former packet, 0 for the flow's first.
            is_sound: ``bool[n]``, whether the step is regular.
            is_late: ``bool[n]``, whether the packet was overtaken by earlier ones; its step counts as regular.
            is_point: ``bool[n]``, whether the packet can be used to compare clocks.
            times: Capture times of the same packets.
        """
        knows = np.full(len(stamps_us), fill_value=True)
        if self._first_us is None:
            self._first_us = int(stamps_us[0])
            knows[0] = False
        self._last_us = int(stamps_us[-1])
        is_repeated = knows & (step_us == 0)
        jumps = np.flatnonzero(knows & ~is_sound & ~is_repeated)
        self._repeated += int(is_repeated.sum())
        self._out_of_order += int((knows & is_late).sum())
        self._jumps += len(jumps)
        if len(jumps) and self._first_jump is None:
            self._first_jump = times.place(int(jumps[0]))
        self._duration_us += int(step_us[knows & is_sound].sum())
        self._line.add(step_us * 1000, times.step_ns(), knows & is_sound, is_point)

    def summary(self) -> DeviceClock:
        """Figures of the clock, after at least one packet."""
        drift_ppm, error_ppm = self._line.drift_ppm()
        return DeviceClock(
            first_us=self._first_us or 0,
            last_us=self._last_us,
            duration_s=self._duration_us / 1e6,
            repeated=self._repeated,
            out_of_order=self._out_of_order,
            jumps=self._jumps,
            first_jump=self._first_jump,
            host_drift_ppm=drift_ppm,
            host_drift_error_ppm=error_ppm,
        )
