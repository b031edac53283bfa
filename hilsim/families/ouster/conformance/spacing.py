"""Rules for arrival: packets come one by one at the pace of their stamps, never in bursts."""

import numpy as np

from hilsim.families.ouster.conformance.block import LidarBlock
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET
from hilsim.read.analysis.conformance.arrival import MOST_BURSTS, Arrival
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity

BURST = Rule(id="ouster.burst", severity=Severity.ERROR, packets=100)
TICK = Rule(id="ouster.tick", severity=Severity.ERROR, packets=100)
RATE = Rule(id="ouster.rate", severity=Severity.ERROR, packets=500)

_FAR_RATIO, _MOST_FAR = 0.3, 0.5
_WARNING_PPM, _ERROR_PPM = 500.0, 2000.0


class SpacingTopic:
    """Times between neighbouring lidar packets, and the host's time against the sensor's."""

    def __init__(self) -> None:
        self.arrival = Arrival(_FAR_RATIO)

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
        self.arrival.add(host_ns, gap_ns, step_ns, is_continuous=(step_ns > 0) & ~block.run.is_break, is_near=is_next)

    def conclude(self, log: FindingLog, *, host_waited_ns: int) -> None:
        """Judge the whole stream; bursts within ``host_waited_ns``, in which the listening host kept a program waiting, are a warning."""
        arrival = self.arrival
        if arrival.count < BURST.packets:
            for rule in (BURST, TICK, RATE):
                log.skip(rule, arrival.count, rule.packets, "times between lidar packets")
            return
        if not arrival.has_fractions:
            return
        cycle_us = arrival.cycle_us
        if arrival.bursts > MOST_BURSTS:
            is_host = arrival.explains(host_waited_ns)
            why = f"; this host kept a program waiting for {host_waited_ns / 1e9:.1f} s in all, which may be the reason" if is_host else ""
            came = f"got {100 * arrival.bursts:.1f} % right after the one before{why}"
            log.report(
                BURST,
                f"packets of {COLUMNS_PER_PACKET} columns must come one each {cycle_us:.0f} us, {came}",
                severity=Severity.WARNING if is_host else None,
            )
        elif arrival.far > _MOST_FAR:
            came = f"got {100 * arrival.far:.0f} % of the times more than {100 * _FAR_RATIO:.0f} % off"
            log.report(TICK, f"packets must come each {cycle_us:.0f} us, {came}")
        drift_ppm, error_ppm = arrival.drift_ppm()
        if arrival.count < RATE.packets or np.isnan(drift_ppm):
            log.skip(RATE, arrival.count, RATE.packets, "times between lidar packets")
        elif abs(drift_ppm) > _WARNING_PPM + 6.0 * error_ppm:
            severity = None if abs(drift_ppm) > _ERROR_PPM + 6.0 * error_ppm else Severity.WARNING
            log.report(RATE, f"packets must arrive at the pace of their stamps, got {drift_ppm:+.0f} ppm", severity=severity)
