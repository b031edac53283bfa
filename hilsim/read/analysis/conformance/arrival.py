"""Arrival of a sensor's packets at the host: gaps between neighbouring packets, and the host's time against the sensor's."""

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.read.analysis.inspection.statistics import ClockLine, Spread

BURST_RATIO = 0.25
"""A packet comes in a burst if it comes within this share of a cycle after the one before."""
_MAX_BURSTS = 0.02
_MAX_FAR = 0.5
_WARNING_PPM, _ERROR_PPM = 500.0, 2000.0
GAPS = "gaps between packets"
"""Name of the samples of rules of arrival."""


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

    @property
    def drift_ppm(self) -> float:
        """Rate by which the sensor's clock is slower than the host's; NaN before enough packets."""
        return self._line.drift_ppm()[0]

    @property
    def drift_error_ppm(self) -> float:
        """Standard error of that rate."""
        return self._line.drift_ppm()[1]

    def judge(self, log: FindingLog, burst: Rule, tick: Rule, rate: Rule, *, doubt_ppm: float, host_waited_ns: int) -> bool:
        """Judge a stream with gaps enough for all but the rule of the rate; returns whether packets come one by one.

        Args:
            log: Log of findings.
            burst: Rule that packets do not come together.
            tick: Rule that they come in the cycle of their stamps.
            rate: Rule that both clocks have one pace.
            doubt_ppm: Largest error of ``drift_ppm``.
            host_waited_ns: Time for which the listening host kept a program waiting for a processor during the stream; 0 for a capture. The packets
                due in that time may have arrived in bursts because of the host, which delayed the sender or the receiver.
        """
        cycle_us = self.cycle_us
        if self.bursts > _MAX_BURSTS:
            message = f"packets must come one each {cycle_us:.0f} us, got {100 * self.bursts:.1f} % within a quarter of that after the one before"
            if self.bursts - host_waited_ns / (1000.0 * cycle_us * self.count) <= _MAX_BURSTS:
                waited = f"this host is busy and kept a program waiting for {host_waited_ns / 1e9:.1f} s in all meanwhile, which may be the reason"
                log.report(burst, f"{message}; {waited}", severity=Severity.WARNING)
            else:
                log.report(burst, message)
        elif self.far > _MAX_FAR:
            off = f"got {100 * self.far:.0f} % of the gaps more than {100 * self._far_ratio:.0f} % off"
            log.report(tick, f"packets must come every {cycle_us:.0f} us, {off}")
        if log.applies(rate, self.count, of=GAPS) and abs(self.drift_ppm) > _WARNING_PPM + doubt_ppm:
            severity = Severity.ERROR if abs(self.drift_ppm) > _ERROR_PPM + doubt_ppm else Severity.WARNING
            log.report(rate, f"packets must arrive at the pace of their stamps, got {self.drift_ppm:+.0f} ppm", severity=severity)
        return self.bursts <= _MAX_BURSTS and self.far <= _MAX_FAR
