"""Rules for arrival at the host: one packet each cycle, no bursts."""

import numpy as np
import numpy.typing as npt

from hilsim.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.conformance.head_motion import is_whole

REWRITTEN = Rule(id="spacing.rewritten", severity=Severity.NOTE)
BURST = Rule(id="spacing.burst", severity=Severity.ERROR, packets=100)
TICK = Rule(id="spacing.tick", severity=Severity.ERROR, packets=100)
JITTER = Rule(id="spacing.jitter", severity=Severity.WARNING, packets=100)
RATE = Rule(id="spacing.rate", severity=Severity.ERROR, packets=500)

_BIN_NS = 1000
_BINS = 16384
_USUAL_SPREAD_US = 200.0  # usual on capturing hosts: 158 us between 1 % and 99 % of the gaps of one VLP-16


class SpacingTopic:
    """Gaps between neighbouring data packets, as a histogram, and host time against sensor time."""

    def __init__(self) -> None:
        self._gaps = np.zeros(_BINS, dtype=np.int64)
        self._count = 0
        self._sum_ns, self._square_sum = 0.0, 0.0
        self._has_fractions = False
        self._bursts = 0
        self._far = 0
        self._cycle_us, self._scatter_us = float("nan"), 0.0
        self._last_host_ns: int | None = None
        self._sensor_ns, self._host_ns = 0, 0
        self._line = np.zeros(5)  # n, mean of sensor time, mean of host excess, spread, product (running, in s)

    def look(self, block: DataBlock) -> None:
        """Add the gaps of one block."""
        last = block.host_stamp_ns[0] if self._last_host_ns is None else self._last_host_ns
        gap = np.diff(block.host_stamp_ns, prepend=last)
        self._last_host_ns = int(block.host_stamp_ns[-1])
        self._cycle_us, self._scatter_us = block.cycle_us, block.model.stamp_scatter_us
        is_near = block.is_next & ~block.has_leap  # a packet with a gap waits until the head has turned through it
        # steps across lost packets count, otherwise the jitter of arrivals would add up
        is_whole_step = block.run.knows_step & (block.run.step_us > 0) & is_whole(block.run.step_us, block.cycle_us)
        self._follow_clock(block, gap, is_whole_step & ~block.has_leap & ~block.motion.is_pause)
        self._has_fractions |= bool((block.host_stamp_ns % 1_000_000).any())
        near = gap[is_near]
        if not len(near):
            return
        self._gaps += np.bincount(np.clip(near // _BIN_NS, 0, _BINS - 1), minlength=_BINS)
        self._count += len(near)
        self._sum_ns += float(near.sum())
        self._square_sum += float((near.astype(np.float64) ** 2).sum())
        self._bursts += int((near < 250.0 * block.cycle_us).sum())
        self._far += int((np.abs(near - 1000.0 * block.cycle_us) > 150.0 * block.cycle_us).sum())

    def _follow_clock(self, block: DataBlock, gap: npt.NDArray[np.int64], is_steady: npt.NDArray[np.bool_]) -> None:
        """Regress the host's time on the sensor's over packets whole cycles apart, block by block (Chan, Golub and LeVeque's updating of means)."""
        sensor = self._sensor_ns + np.cumsum(np.where(is_steady, block.run.step_us * 1000, 0))
        host = self._host_ns + np.cumsum(np.where(is_steady, gap, 0))
        self._sensor_ns, self._host_ns = int(sensor[-1]), int(host[-1])
        x, y = sensor * 1e-9, (host - sensor) * 1e-9
        count, mean_x, mean_y, spread, product = self._line
        n, new_x, new_y = len(x), float(x.mean()), float(y.mean())
        both = count + n
        weight = count * n / both
        spread += float(((x - new_x) ** 2).sum()) + weight * (new_x - mean_x) ** 2
        product += float(((x - new_x) * (y - new_y)).sum()) + weight * (new_x - mean_x) * (new_y - mean_y)
        self._line[:] = both, mean_x + (new_x - mean_x) * n / both, mean_y + (new_y - mean_y) * n / both, spread, product

    def percentile_us(self, ratio: float) -> float:
        """Quantile ``ratio`` of the gaps, to 1 us; NaN before any gap."""
        if not self._count:
            return float("nan")
        return float(np.searchsorted(np.cumsum(self._gaps), ratio * self._count)) + 0.5

    @property
    def gap_sd_us(self) -> float:
        """Standard deviation of the gaps; NaN before any."""
        if not self._count:
            return float("nan")
        mean = self._sum_ns / self._count
        return float(np.sqrt(max(0.0, self._square_sum / self._count - mean * mean))) / 1000.0

    @property
    def drift_ppm(self) -> float:
        """Rate by which the sensor's clock is slower than the host's; NaN before two packets."""
        return 1e6 * float(self._line[4] / self._line[3]) if self._line[3] else float("nan")

    @property
    def _doubt_ppm(self) -> float:
        """Largest error of ``drift_ppm`` by the scatter of the stamps: six times the scatter over the time observed."""
        return 6e6 * self._scatter_us / (self._sensor_ns / 1000.0) if self._sensor_ns else 0.0

    def conclude(self, log: FindingLog, *, is_real: bool, host_waited_ns: int = 0) -> None:
        """Judge the whole stream, or report that the capture's times are not arrival times.

        Args:
            log: Log of findings.
            is_real: Whether the headers are not an exporter's, so that the times are valid.
            host_waited_ns: Time for which the listening host kept a program waiting for a processor during the stream; 0 for a capture. The packets
                due in that time may have arrived in bursts because of the host, which delayed the sender or the receiver.
        """
        if self._count < BURST.packets:
            for rule in (BURST, TICK, JITTER, RATE):
                log.skip(rule, self._count, rule.packets, "gaps between packets")
            return
        bursts, far = self._bursts / self._count, self._far / self._count
        spread_us = self.percentile_us(0.99) - self.percentile_us(0.01)
        if not is_real or not self._has_fractions:
            why = "capture times are whole milliseconds" if is_real else "headers were rewritten"
            log.report(REWRITTEN, f"{why}, so arrival (gaps {self.gap_sd_us:.0f} us sd) is not judged")
            return
        if bursts > 0.02:
            message = f"packets must come one each {self._cycle_us:.0f} us, got {100 * bursts:.1f} % within a quarter of that after the one before"
            if bursts - host_waited_ns / (1000.0 * self._cycle_us * self._count) > 0.02:
                log.report(BURST, message)
            else:
                waited = f"this host is busy and kept a program waiting for {host_waited_ns / 1e9:.1f} s in all meanwhile, which may be the reason"
                log.report(BURST, f"{message}; {waited}", severity=Severity.WARNING)
        elif far > 0.5:
            log.report(TICK, f"packets must come every {self._cycle_us:.0f} us, got {100 * far:.0f} % of the gaps more than 15 % off")
        elif spread_us > max(0.5 * self._cycle_us, _USUAL_SPREAD_US):
            log.report(JITTER, f"gaps must be within a quarter of {self._cycle_us:.0f} us, got a spread of {spread_us:.0f} us between 1 % and 99 %")
        if self._count < RATE.packets:
            log.skip(RATE, self._count, RATE.packets, "gaps between packets")
        elif abs(self.drift_ppm) > 500 + self._doubt_ppm:
            severity = Severity.ERROR if abs(self.drift_ppm) > 2000 + self._doubt_ppm else Severity.WARNING
            log.report(RATE, f"packets must arrive at the pace of their stamps, got {self.drift_ppm:+.0f} ppm", severity=severity)
