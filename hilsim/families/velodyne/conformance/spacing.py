"""Rules for arrival at the host: one packet each cycle, no bursts."""

import numpy as np

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.conformance.head_motion import is_whole
from hilsim.read.analysis.conformance.arrival import MOST_BURSTS, Arrival
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
        self._last_host_ns: int | None = None
        self._elapsed_us = 0

    def look(self, block: DataBlock) -> None:
        """Add the gaps of one block."""
        last = block.host_stamp_ns[0] if self._last_host_ns is None else self._last_host_ns
        self._last_host_ns = int(block.host_stamp_ns[-1])
        self._scatter_us = block.model.stamp_scatter_us
        step_us, knows = block.run.step_us, block.run.knows_step & (block.run.step_us > 0)
        # steps across lost packets count, otherwise the jitter of arrivals would add up
        is_continuous = knows & (is_whole(step_us, block.cycle_us) | block.motion.is_pause)
        self._elapsed_us += int(step_us[is_continuous].sum())
        self.arrival.add(
            block.host_stamp_ns,
            np.diff(block.host_stamp_ns, prepend=last),
            step_us * 1000,
            is_continuous=is_continuous,
            is_near=block.is_next & ~block.has_leap,  # a packet with a gap waits until the head has turned through it
            cycle_us=block.cycle_us,
        )

    @property
    def drift_ppm(self) -> float:
        """Rate by which the sensor's clock is slower than the host's; NaN before enough packets."""
        return self.arrival.drift_ppm()[0]

    @property
    def _doubt_ppm(self) -> float:
        """Largest error of ``drift_ppm`` by the scatter of the stamps: six times the scatter over the time observed."""
        return 6e6 * self._scatter_us / self._elapsed_us if self._elapsed_us else 0.0

    def conclude(self, log: FindingLog, *, is_real: bool, host_waited_ns: int = 0) -> None:
        """Judge the whole stream, or report that the capture's times are not arrival times.

        Args:
            log: Log of findings.
            is_real: Whether the headers are not an exporter's, so that the times are valid.
            host_waited_ns: Time for which the listening host kept a program waiting for a processor during the stream; 0 for a capture. The packets
                due in that time may have arrived in bursts because of the host, which delayed the sender or the receiver.
        """
        arrival = self.arrival
        if arrival.count < BURST.packets:
            for rule in (BURST, TICK, JITTER, RATE):
                log.skip(rule, arrival.count, rule.packets, "gaps between packets")
            return
        spacing = arrival.spread.summary()
        if spacing is None or not is_real or not arrival.has_fractions:
            why = "capture times are whole milliseconds" if is_real else "headers were rewritten"
            log.report(REWRITTEN, f"{why}, so arrival (gaps {0.0 if spacing is None else spacing.sd_us:.0f} us sd) is not judged")
            return
        cycle_us, spread_us = arrival.cycle_us, spacing.p99_us - spacing.p1_us
        if arrival.bursts > MOST_BURSTS:
            message = f"packets must come one each {cycle_us:.0f} us, got {100 * arrival.bursts:.1f} % within a quarter of that after the one before"
            if arrival.explains(host_waited_ns):
                waited = f"this host is busy and kept a program waiting for {host_waited_ns / 1e9:.1f} s in all meanwhile, which may be the reason"
                log.report(BURST, f"{message}; {waited}", severity=Severity.WARNING)
            else:
                log.report(BURST, message)
        elif arrival.far > 0.5:
            log.report(TICK, f"packets must come every {cycle_us:.0f} us, got {100 * arrival.far:.0f} % of the gaps more than 15 % off")
        elif spread_us > max(0.5 * cycle_us, _USUAL_SPREAD_US):
            log.report(JITTER, f"gaps must be within a quarter of {cycle_us:.0f} us, got a spread of {spread_us:.0f} us between 1 % and 99 %")
        if arrival.count < RATE.packets:
            log.skip(RATE, arrival.count, RATE.packets, "gaps between packets")
        elif abs(self.drift_ppm) > 500 + self._doubt_ppm:
            severity = Severity.ERROR if abs(self.drift_ppm) > 2000 + self._doubt_ppm else Severity.WARNING
            log.report(RATE, f"packets must arrive at the pace of their stamps, got {self.drift_ppm:+.0f} ppm", severity=severity)
