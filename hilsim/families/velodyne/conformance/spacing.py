"""Rules for arrival at the host: one packet each cycle, no bursts."""

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.conformance.head_motion import is_whole
from hilsim.read.analysis.conformance.arrival import GAPS, Arrival
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity

REWRITTEN = Rule(id="spacing.rewritten", severity=Severity.NOTE)
BURST = Rule(id="spacing.burst", severity=Severity.ERROR, packets=100)
TICK = Rule(id="spacing.tick", severity=Severity.ERROR, packets=100)
JITTER = Rule(id="spacing.jitter", severity=Severity.WARNING, packets=100)
RATE = Rule(id="spacing.rate", severity=Severity.ERROR, packets=500)

_FAR_RATIO = 0.15
_USUAL_SPREAD_US = 200.0  # usual on capturing hosts: 158 us between 1 % and 99 % of the gaps of one VLP-16


class SpacingTopic:
    """Gaps between neighbouring data packets, and host time against sensor time."""

    def __init__(self) -> None:
        self.arrival = Arrival(_FAR_RATIO)
        self._scatter_us = 0.0
        self._elapsed_us = 0

    def look(self, block: DataBlock) -> None:
        """Add the gaps of one block."""
        self._scatter_us = block.model.stamp_scatter_us
        step_us, knows = block.run.step_us, block.run.knows_step & (block.run.step_us > 0)
        # steps across lost packets count, otherwise the jitter of arrivals would add up
        is_continuous = knows & (is_whole(step_us, block.cycle_us) | block.motion.is_pause)
        self._elapsed_us += int(step_us[is_continuous].sum())
        self.arrival.add(
            block.host_ns,
            block.host_step_ns,
            step_us * 1000,
            is_continuous=is_continuous,
            is_near=block.is_next & ~block.has_leap,  # a packet with a gap waits until the head has turned through it
            cycle_us=block.cycle_us,
        )

    @property
    def _doubt_ppm(self) -> float:
        """Largest error of the clocks' rates by the scatter of the stamps: six times the scatter over the time observed."""
        return 6e6 * self._scatter_us / self._elapsed_us if self._elapsed_us else 0.0

    def conclude(self, log: FindingLog, *, is_real: bool, host_waited_ns: int = 0) -> None:
        """Judge the whole stream, or report that the capture's times are not arrival times.

        Args:
            log: Log of findings.
            is_real: Whether the headers are not an exporter's, so that the times are valid.
            host_waited_ns: As for ``Arrival.judge``.
        """
        arrival, spread = self.arrival, self.arrival.spread
        if not log.applies((BURST, TICK, JITTER, RATE), arrival.count, of=GAPS):
            return
        if not is_real or not arrival.has_fractions:
            why = "capture times are whole milliseconds" if is_real else "headers were rewritten"
            log.report(REWRITTEN, f"{why}, so arrival (gaps {spread.sd_us:.0f} us sd) is not judged")
            return
        is_even = arrival.judge(log, BURST, TICK, RATE, doubt_ppm=self._doubt_ppm, host_waited_ns=host_waited_ns)
        cycle_us, spread_us = arrival.cycle_us, spread.p99_us - spread.p1_us
        if is_even and spread_us > max(0.5 * cycle_us, _USUAL_SPREAD_US):
            log.report(JITTER, f"gaps must be within a quarter of {cycle_us:.0f} us, got a spread of {spread_us:.0f} us between 1 % and 99 %")
