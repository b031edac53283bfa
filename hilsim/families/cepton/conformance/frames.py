"""Rules for frames, the points between two changes of the frame parity."""

import numpy as np

from hilsim.families.cepton.conformance.stretch import Stretch
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

NONE = Rule(id="frames.none", severity=Severity.ERROR, packets=2)
LENGTH = Rule(id="frames.length", severity=Severity.WARNING, packets=2)
SMALL = Rule(id="frames.small", severity=Severity.NOTE, packets=2)

_LONGEST_WITHOUT_US = 1_000_000
_SMALLEST_POINTS = 6144
_LEARNT = 64
_MIN_TO_JUDGE = 4
_LARGEST_DEVIATION = 0.1


class FramesTopic:
    """Frames of one sensor; frames with a gap, and those cut by the ends of the stream, are not judged."""

    def __init__(self) -> None:
        self.whole = 0
        self.changes = 0
        self._durations_us: list[int] = []
        self._sizes: list[int] = []
        self._begin: tuple[int, int] | None = None  # time and count of points at the beginning of the present frame
        self._points = 0
        self._unbroken_since_us: int | None = None
        self._longest_us = 0

    @property
    def duration_s(self) -> float:
        """Median duration of the first frames; NaN without frames."""
        return float(np.median(self._durations_us)) / 1e6 if self._durations_us else float("nan")

    @property
    def points(self) -> float:
        """Median number of points of the first frames; NaN without frames."""
        return float(np.median(self._sizes)) if self._sizes else float("nan")

    def look(self, stretch: Stretch, log: FindingLog) -> None:
        """Judge a stretch."""
        parity = stretch.flags & FRAME_PARITY
        before = parity[0] if stretch.before is None else stretch.before.point["flags"][0] & FRAME_PARITY
        changed = stretch.has_previous & (parity != stretch.previous(parity, before))
        breaks = stretch.start[~stretch.follows]
        events = sorted([(int(at), True) for at in breaks] + [(int(at), False) for at in np.flatnonzero(changed)])
        for at, is_break in events:
            time_us = int(stretch.time_us[at])
            if is_break:
                self._begin, self._unbroken_since_us = None, time_us
                continue
            self.changes += 1
            if self._unbroken_since_us is not None:
                self._longest_us = max(self._longest_us, time_us - self._unbroken_since_us)
            if self._begin is not None:
                self._end_frame(time_us - self._begin[0], self._points + at - self._begin[1], stretch.place(at, 9), log)
            self._begin, self._unbroken_since_us = (time_us, self._points + at), time_us
        if self._unbroken_since_us is not None:
            self._longest_us = max(self._longest_us, int(stretch.time_us[-1]) - self._unbroken_since_us)
        self._points += stretch.points.size

    def _end_frame(self, duration_us: int, points: int, place: Place, log: FindingLog) -> None:
        self.whole += 1
        if len(self._durations_us) >= _MIN_TO_JUDGE:
            typical_us = 1e6 * self.duration_s
            if abs(duration_us - typical_us) > _LARGEST_DEVIATION * typical_us:
                text = f"a frame must take {typical_us:.0f} us as those before, got {duration_us} us and {points} points"
                log.report(LENGTH, text, place, severity=Severity.ERROR if duration_us < typical_us / 2 else None)
        if len(self._durations_us) < _LEARNT:
            self._durations_us.append(duration_us)
            self._sizes.append(points)

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if self._longest_us > _LONGEST_WITHOUT_US:
            log.report(NONE, f"the parity must change, got the same for {self._longest_us / 1e6:.1f} s")
        if self._sizes and self.points < _SMALLEST_POINTS:
            log.report(SMALL, f"frames have {self.points:.0f} points")
