"""Arrival of a sensor's packets at the host: gaps between neighbouring packets, and the host's time against the sensor's."""

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.inspection.statistics import ClockLine, Spread

BURST_RATIO = 0.25
"""A packet comes in a burst if it comes within this share of a cycle after the one before."""
MOST_BURSTS = 0.02


class Arrival:
    """Gaps and clocks of a stream, for the rules of arrival.

    Attributes:
        spread: Gaps between neighbouring packets.
        count: Number of those gaps.
        cycle_us: Expected gap; NaN before any.
        has_fractions: Whether a capture time is no whole millisecond.
    """

    def __init__(self, far_ratio: float) -> None:
        """Begin; a gap that differs from the cycle by more than the share ``far_ratio`` of it is a far one."""
        self.spread = Spread()
        self.count = 0
        self.cycle_us = float("nan")
        self.has_fractions = False
        self._line = ClockLine()
        self._far_ratio = far_ratio
        self._bursts = self._far = 0

    def add(
        self,
        host_ns: npt.NDArray[np.int64],
        gap_ns: npt.NDArray[np.int64],
        step_ns: npt.NDArray[np.int64],
        *,
        is_continuous: npt.NDArray[np.bool_],
        is_near: npt.NDArray[np.bool_],
        cycle_us: float | None = None,
    ) -> None:
        """Add a block.

        Args:
            host_ns: ``int64[n]``, capture times.
            gap_ns: ``int64[n]``, capture time since the former packet.
            step_ns: ``int64[n]``, time since the former packet by the stamps.
            is_continuous: ``bool[n]``, whether that time is valid.
            is_near: ``bool[n]``, whether a packet is the next one after the former, without a pause.
            cycle_us: Expected gap; None: the median of the steps of such packets.
        """
        self.has_fractions |= bool((host_ns % 1_000_000).any())
        self._line.add(step_ns, gap_ns, is_continuous, is_near)
        near_ns = gap_ns[is_near]
        if near_ns.size:
            cycle_ns = float(np.median(step_ns[is_near])) if cycle_us is None else 1000.0 * cycle_us
            self.cycle_us = cycle_ns / 1000.0
            self.spread.add(near_ns)
            self.count += near_ns.size
            self._bursts += int((near_ns < BURST_RATIO * cycle_ns).sum())
            self._far += int((np.abs(near_ns - cycle_ns) > self._far_ratio * cycle_ns).sum())

    @property
    def bursts(self) -> float:
        """Share of the gaps within bursts."""
        return self._bursts / self.count

    @property
    def far(self) -> float:
        """Share of the far gaps."""
        return self._far / self.count

    def explains(self, host_waited_ns: int) -> bool:
        """Whether the time for which the listening host kept a program waiting may be the reason of the bursts: packets due in it come together."""
        return self.bursts - host_waited_ns / (1000.0 * self.cycle_us * self.count) <= MOST_BURSTS

    def drift_ppm(self) -> tuple[float, float]:
        """Rate by which the sensor's clock is slower than the host's, and its standard error; NaN before enough packets."""
        return self._line.drift_ppm()
