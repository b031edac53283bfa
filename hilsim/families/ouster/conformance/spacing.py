"""Rules for arrival: packets come one by one at the pace of their stamps, never in bursts."""

from hilsim.families.ouster.stream import LidarBlock
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
        step_ns = block.step_ns
        is_continuous, is_near = (step_ns > 0) & ~block.run.is_break, (step_ns > 0) & block.run.is_next
        self.arrival.add(block.host_ns, block.host_step_ns, step_ns, is_continuous=is_continuous, is_near=is_near)

    def conclude(self, log: FindingLog, *, host_waited_ns: int) -> None:
        """Judge the whole stream; bursts within ``host_waited_ns``, in which the listening host kept a program waiting, are a warning."""
        arrival = self.arrival
        if log.applies((BURST, TICK, RATE), arrival.count, of=GAPS) and arrival.has_fractions:
            arrival.judge(log, BURST, TICK, RATE, doubt_ppm=6.0 * arrival.drift_error_ppm, host_waited_ns=host_waited_ns)
