"""Rules for the blocks' azimuth: a turning head read by a noisy encoder, never an exact ramp."""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.protocol.steps import wrapped_cdeg
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.read.analysis.scatter import Scatter
from hilsim.units import TURN_CDEG

RANGE = Rule(id="azimuth.range", severity=Severity.ERROR)
CONSTANT = Rule(id="azimuth.constant", severity=Severity.ERROR, packets=8)
RAMP = Rule(id="azimuth.ramp", severity=Severity.ERROR, packets=50)
NOISE = Rule(id="azimuth.noise", severity=Severity.WARNING, packets=50)
GRID = Rule(id="azimuth.grid", severity=Severity.ERROR, packets=20)
START = Rule(id="azimuth.start", severity=Severity.ERROR, packets=300)
TURN = Rule(id="azimuth.turn", severity=Severity.ERROR, packets=600)
RATE = Rule(id="azimuth.rate", severity=Severity.WARNING, packets=20)

_MAX_WRAPS = 4096
_MIN_INCREMENTS = 200
_MIN_GROUPS = 6
_MIN_WRAPS_FOR_START = 4
_MIN_WRAPS_FOR_TURN = 8


class AzimuthTopic:
    """Increments of azimuth inside packets and across their borders."""

    def __init__(self) -> None:
        self.packets = 0
        self.increments = 0
        self._groups = _MIN_GROUPS
        self._pauses, self._is_open = 0, False
        self.longest_pause_us = 0
        self._outside = 0
        self._equal, self._steps = 0, 0
        self.scatter = Scatter()  # of the increments inside packets
        self._divisor = 0
        self._period_s = 0.0
        self._wraps: list[tuple[int, int, int]] = []  # packet, block, first azimuth of a turn
        self._early_firmware: tuple[int, Place] | None = None

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Judge the azimuths of one block."""
        azimuth = block.azimuth
        self._groups = azimuth.shape[1]
        self.packets += len(azimuth)
        self._check_range(block, log)
        self._divisor = int(np.gcd.reduce(np.append(azimuth.ravel(), self._divisor)))
        inside = wrapped_cdeg(np.diff(azimuth if self._groups > 1 else _followed(block), axis=1))
        is_leap = block.motion.is_leap if self._groups > 1 else np.zeros(inside.shape, dtype=np.bool_)
        self._pauses += int(block.motion.is_pause.sum())
        self.longest_pause_us = max(self.longest_pause_us, int(block.run.step_us[block.motion.is_pause].max(initial=0)))
        self._is_open = bool(block.has_leap[-1])
        self._equal += int((inside == 0).sum())
        self._steps += inside.size
        self._gather(inside[~is_leap.any(axis=1) & (inside > 0).all(axis=1)])
        self._gather_wraps(block)
        self._period_s = block.cycle_us * 1e-6 / azimuth.shape[1]

    def _check_range(self, block: DataBlock, log: FindingLog) -> None:
        raw = block.run.packets["blocks"]["azimuth"]

        def message(row: int, number: int) -> str:
            return f"the azimuth of block {number} must be 0 to 35999, got {raw[row, number]}"

        log.report_each(RANGE, raw > TURN_CDEG, message, block.place, lambda number: 100 * number + 2)
        exact = np.argwhere(raw == TURN_CDEG)
        if len(exact):
            count, place = self._early_firmware or (0, block.place(int(exact[0, 0]), 100 * int(exact[0, 1]) + 2))
            self._early_firmware = (count + len(exact), place)

    def _gather(self, inside: npt.NDArray[np.int64]) -> None:
        """Add the increments of packets without gaps, ``int64[n, m - 1]``."""
        if not inside.size:
            return
        self.increments += inside.size
        apart = np.pad(inside, ((0, 0), (1, 0)))
        self.scatter.add(apart.ravel(), np.broadcast_to(np.arange(apart.shape[1]) > 0, apart.shape).ravel())
        mean = inside.mean(axis=1, keepdims=True)
        self._outside += int(((inside < np.floor(mean)) | (inside > np.ceil(mean))).sum())

    def _gather_wraps(self, block: DataBlock) -> None:
        if len(self._wraps) >= _MAX_WRAPS:
            return
        azimuth = block.azimuth
        steps = np.diff(azimuth, axis=1)
        crossing = (steps < 0) & (wrapped_cdeg(steps) > 0) & ~block.motion.is_leap
        within = [(int(row), int(column) + 1) for row, column in np.argwhere(crossing)]
        goes_on = block.is_next[1:] & ~block.motion.is_wrong[1:] & ~block.has_leap[:-1]
        between = np.flatnonzero((azimuth[1:, 0] < azimuth[:-1, -1]) & goes_on) + 1
        all_wraps = sorted(within + [(int(row), 0) for row in between])
        self._wraps.extend((block.first_index + row, column, int(azimuth[row, column])) for row, column in all_wraps)

    @property
    def gaps(self) -> int:
        """Number of parts of the turn without firings, including the one at the end of the stream."""
        return self._pauses + self._is_open

    @property
    def rate_rpm(self) -> float:
        """Revolutions a minute by azimuth and nominal firing clock; NaN before any increment."""
        return self.scatter.mean / TURN_CDEG / self._period_s * 60.0 if self._period_s else float("nan")

    def conclude(self, log: FindingLog, first_pass: int | None = None) -> None:
        """Judge the whole stream.

        Args:
            log: Log of findings.
            first_pass: Number of packets before the stream repeats itself; later turns contain nothing new.
        """
        if self._early_firmware is not None:
            count, place = self._early_firmware
            log.report(RANGE, f"azimuth 36000 occurs {count} times, as in firmware of 2012-2014", place, severity=Severity.WARNING)
        if log.applies(CONSTANT, self.packets) and self._equal > 0.5 * self._steps:
            log.report(CONSTANT, f"azimuth must grow, got the same as in the block before {self._equal} times")
            return
        if log.applies(GRID, self.packets) and self._divisor > 1:
            log.report(GRID, f"azimuth must use every hundredth of a degree, got multiples of {self._divisor} only")
        # two steps a packet do not show whether their noise is white
        if self._groups >= _MIN_GROUPS and log.applies((RAMP, NOISE), self.packets):
            self._conclude_noise(log)
        self._conclude_wraps(log, first_pass)
        rate_rpm = self.rate_rpm
        if log.applies(RATE, self.packets) and (rate_rpm < 294.0 or rate_rpm > 1206.0):
            log.report(RATE, f"the head must turn 300 to 1200 times a minute, got {rate_rpm:.1f}")

    def _conclude_noise(self, log: FindingLog) -> None:
        if not log.applies((RAMP, NOISE), self.increments, _MIN_INCREMENTS, "increments of azimuth"):
            return
        outside = self._outside / self.increments
        if outside < 0.003:
            log.report(
                RAMP,
                f"azimuth must carry the encoder's noise, got an exact ramp: {100 * outside:.2f} % of the increments differ from the two values"
                f" next to their mean of {self.scatter.mean:.2f}",
            )
        elif not self.scatter.autocorrelation() < -0.2:
            log.report(NOISE, f"neighbouring increments must be correlated by about -0.5, got {self.scatter.autocorrelation():+.2f}")

    def _conclude_wraps(self, log: FindingLog, first_pass: int | None) -> None:
        wraps = [(column, value) for index, column, value in self._wraps if first_pass is None or index < first_pass]
        of = "turns" if first_pass is None else "turns before the recording repeats"
        first = {value for _, value in wraps}
        if log.applies(START, len(wraps), _MIN_WRAPS_FOR_START, of) and len(first) == 1:
            log.report(START, f"the first azimuth of a turn must vary, got {first.pop()} in all of {len(wraps)} turns")
        columns = {column for column, _ in wraps}
        if log.applies(TURN, len(wraps), _MIN_WRAPS_FOR_TURN, of) and len(columns) == 1 and self._groups > 1:
            log.report(TURN, f"a turn's end must drift through the packet, got block {columns.pop()} in all of {len(wraps)} turns")


def _followed(block: DataBlock) -> npt.NDArray[np.int64]:
    """Azimuths of packets with one azimuth each, beside those of the packets that follow them by one cycle, ``int64[k, 2]``."""
    azimuth = block.azimuth[:, 0]
    return np.stack([azimuth[:-1], azimuth[1:]], axis=1)[block.is_next[1:] & ~block.motion.is_pause[1:]]
