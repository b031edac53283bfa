"""Rules for arrival: packets come one by one at the pace of their stamps, never in bursts."""

import numpy as np

from hilsim.families.ouster.conformance.block import LidarBlock
from hilsim.read.analysis.conformance.arrival import GAPS, Arrival
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity

BURST = Rule(id="ouster.burst", severity=Severity.ERROR, packets=100)
TICK = Rule(id="ouster.tick", severity=Severity.ERROR, packets=100)
RATE = Rule(id="ouster.rate", severity=Severity.ERROR, packets=500)

_FAR_RATIO = 0.3


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
        if log.applies((BURST, TICK, RATE), arrival.count, of=GAPS) and arrival.has_fractions:
            arrival.judge(log, BURST, TICK, RATE, doubt_ppm=6.0 * arrival.drift_error_ppm, host_waited_ns=host_waited_ns)
