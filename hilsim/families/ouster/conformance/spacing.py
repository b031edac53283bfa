"""Rules for arrival: packets come one by one at the pace of their stamps, never in bursts."""

import numpy as np

from hilsim.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.analysis.inspection.statistics import ClockLine, Spread
from hilsim.families.ouster.conformance.block import LidarBlock
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET

BURST = Rule(id="ouster.burst", severity=Severity.ERROR, packets=100)
TICK = Rule(id="ouster.tick", severity=Severity.ERROR, packets=100)
RATE = Rule(id="ouster.rate", severity=Severity.ERROR, packets=500)

_BURST_RATIO, _MOST_BURSTS = 0.25, 0.02
_FAR_RATIO, _MOST_FAR = 0.3, 0.5
_WARNING_PPM, _ERROR_PPM = 500.0, 2000.0


class SpacingTopic:
    """Times between neighbouring lidar packets, and the host's time against the sensor's."""

    def __init__(self) -> None:
        self.spread = Spread()
        self._line = ClockLine()
        self._bursts = self._far = self._count = 0
        self._period_ns = float("nan")
        self._has_fractions = False

    def look(self, block: LidarBlock) -> None:
        """Add a block."""
        host_ns = np.array([datagram.host_stamp_ns for datagram in block.datagrams], np.int64)
        stamp_ns = block.stamp_ns[:, -1]
        before = block.before
        gap_ns = np.diff(host_ns, prepend=host_ns[0] if before is None else before.host_ns)
        step_ns = np.diff(stamp_ns, prepend=stamp_ns[0] if before is None else before.stamp_ns)
        is_next = block.run.is_next & (step_ns > 0)
        if before is None:
            is_next[0] = False
        self._has_fractions |= bool((host_ns % 1_000_000).any())
        self._line.add(step_ns, gap_ns, (step_ns > 0) & ~block.run.is_break, is_next)
        near_ns = gap_ns[is_next]
        if not near_ns.size:
            return
        self._period_ns = float(np.median(step_ns[is_next]))
        self.spread.add(near_ns)
        self._count += near_ns.size
        self._bursts += int((near_ns < _BURST_RATIO * self._period_ns).sum())
        self._far += int((np.abs(near_ns - self._period_ns) > _FAR_RATIO * self._period_ns).sum())

    @property
    def drift_ppm(self) -> float:
        """Rate by which the sensor's clock is slower than the host's; NaN before enough packets."""
        return self._line.drift_ppm()[0]

    def conclude(self, log: FindingLog, *, host_waited_ns: int) -> None:
        """Judge the whole stream; bursts within ``host_waited_ns``, in which the listening host kept a program waiting, are a warning."""
        if self._count < BURST.packets:
            for rule in (BURST, TICK, RATE):
                log.skip(rule, self._count, rule.packets, "times between lidar packets")
            return
        if not self._has_fractions:
            return
        period_us = self._period_ns / 1000.0
        bursts, far = self._bursts / self._count, self._far / self._count
        if bursts > _MOST_BURSTS:
            is_host = bursts - host_waited_ns / (self._period_ns * self._count) <= _MOST_BURSTS
            why = f"; this host kept a program waiting for {host_waited_ns / 1e9:.1f} s in all, which may be the reason" if is_host else ""
            message = f"packets of {COLUMNS_PER_PACKET} columns must come one each {period_us:.0f} us, got {100 * bursts:.1f} % right after the one before{why}"
            log.report(BURST, message, severity=Severity.WARNING if is_host else None)
        elif far > _MOST_FAR:
            log.report(TICK, f"packets must come each {period_us:.0f} us, got {100 * far:.0f} % of the times more than {100 * _FAR_RATIO:.0f} % off")
        drift_ppm, error_ppm = self._line.drift_ppm()
        if self._count < RATE.packets or np.isnan(drift_ppm):
            log.skip(RATE, self._count, RATE.packets, "times between lidar packets")
        elif abs(drift_ppm) > _WARNING_PPM + 6.0 * error_ppm:
            severity = None if abs(drift_ppm) > _ERROR_PPM + 6.0 * error_ppm else Severity.WARNING
            log.report(RATE, f"packets must arrive at the pace of their stamps, got {drift_ppm:+.0f} ppm", severity=severity)
