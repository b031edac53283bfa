"""Reports of one kind at a limited rate: a fault that comes with each datagram is reported once in a while, with the number of those left out."""

PAUSE_S = 60.0
"""Interval between two reports of a kind."""


class Rarely:
    """Permission to report, at most once in ``PAUSE_S``.

    Attributes:
        suppressed: Faults since the last report that were not reported.
    """

    def __init__(self) -> None:
        self._reported_s: float | None = None
        self._waiting = self.suppressed = 0

    def may_report(self, now_s: float) -> bool:
        """Note a fault at a monotonic time; returns whether it is to be reported, with ``suppressed``."""
        if self._reported_s is not None and now_s - self._reported_s < PAUSE_S:
            self._waiting += 1
            return False
        self._reported_s, self.suppressed, self._waiting = now_s, self._waiting, 0
        return True
