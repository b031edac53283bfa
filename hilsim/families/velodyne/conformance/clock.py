"""Rules for the packets' time stamps: samples of an exactly regular clock, truncated to whole microseconds."""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.protocol.models import STEP_TOLERANCE_US
from hilsim.families.velodyne.stream import CLOCK_DOUBT_RATIO, SeenTurn, StampLines, UnsettledLoss, whole_cycles
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.units import HOUR_US

RANGE = Rule(id="time.range", severity=Severity.ERROR)
CONSTANT = Rule(id="time.constant", severity=Severity.ERROR, packets=16)
CYCLE = Rule(id="time.cycle", severity=Severity.ERROR, packets=16)
STEP = Rule(id="time.step", severity=Severity.ERROR, packets=2)
JUMP = Rule(id="time.jump", severity=Severity.WARNING, packets=2)
WRAP = Rule(id="time.wrap", severity=Severity.ERROR, packets=2)
ORDER = Rule(id="time.order", severity=Severity.ERROR, packets=2)
DUPLICATE = Rule(id="time.duplicate", severity=Severity.WARNING, packets=2)
LOST = Rule(id="time.lost", severity=Severity.WARNING, packets=2)
ROUNDING = Rule(id="time.rounding", severity=Severity.ERROR, packets=200)
RESIDUAL = Rule(id="time.residual", severity=Severity.ERROR, packets=200)
DRIFT = Rule(id="time.drift", severity=Severity.WARNING, packets=200)

_MIN_STEPS = 15
_MIN_SINGLE = 0.1
_MAX_PULSE_US = 1000
_MAX_PULSE_AT_HOUR_US = 200.0  # a count that restarts at 0 is off by up to a cycle
_MAX_JUMPS = 2


class ClockTopic:
    """Steps of the stamps, and straight lines through them.

    Args:
        seen: Degrees of the turn at which the sensor has fired, as the head's motion notes them.
    """

    def __init__(self, seen: SeenTurn) -> None:
        self._seen = seen
        self.packets = 0
        self.steps = 0
        self._lost = 0
        self._unsettled: list[UnsettledLoss] = []
        self.jumps = 0
        self.pulses = 0
        self.backward = 0
        self.duplicates = 0
        self.stray = 0
        self.wrong_cycle_us: float | None = None
        self.lines = StampLines()
        self._cycle_us, self._scatter_us = 0.0, 0.0

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Judge the steps of one block."""
        self.packets += len(block.run.stamp_us)
        self._cycle_us, self._scatter_us = block.cycle_us, block.model.stamp_scatter_us
        stamp_us = block.run.stamp_us
        log.report_each(RANGE, stamp_us >= HOUR_US, lambda row: f"the stamp must be below {HOUR_US:,}, got {stamp_us[row]:,}", block.place, 1200)
        step = block.run.step_us[block.run.knows_step]
        if not len(step):
            return
        cycle_us, doubt_us = self._settle_cycle(block, block.run.step_us[block.run.knows_step & block.motion.is_clear])
        cycles, off_us = whole_cycles(block.run.step_us, cycle_us)
        is_whole = off_us <= block.model.step_tolerance_us + doubt_us * np.abs(cycles)
        is_pause = block.motion.is_pause
        is_bad = block.run.knows_step & ~is_whole & ~is_pause
        self.steps += len(step)
        self.duplicates += int((step == 0).sum())
        self.backward += int((step < -STEP_TOLERANCE_US).sum())
        self._count_lost(block, np.where(block.run.knows_step & is_whole & (cycles > 1) & ~is_pause, cycles - 1, 0))
        self._judge_bad(block, np.flatnonzero(is_bad), cycle_us, log)
        # the cycle of stamps that scatter is too uncertain to count the cycles of a pause
        is_countable = ~(is_pause | block.motion.may_be_pause) | (self._scatter_us == 0.0)
        goes_on = block.run.knows_step & is_whole & (cycles >= 1) & is_countable
        self.lines.add(cycles, block.run.step_us, goes_on, block.cycle_us)

    def _count_lost(self, block: DataBlock, absent: npt.NDArray[np.int64]) -> None:
        """Add the numbers of packets missing before each, ``int64[n]``."""
        is_unsettled = block.motion.may_be_pause & (absent > 0)
        self._lost += int(absent[~is_unsettled].sum())
        self._unsettled += [
            UnsettledLoss(packets=int(absent[row]), from_cdeg=int(block.motion.end_before_cdeg[row]), to_cdeg=int(block.azimuth[row, 0]))
            for row in np.flatnonzero(is_unsettled).tolist()
        ]

    @property
    def lost(self) -> int:
        """Number of packets missing, without those of the part of the turn without firings."""
        return self._lost + sum(loss.packets for loss in self._unsettled if loss.is_lost(self._seen))

    def _settle_cycle(self, block: DataBlock, step: npt.NDArray[np.int64]) -> tuple[float, float]:
        """Cycle by which steps are judged, and its uncertainty: the model's, or that of the block's own steps."""
        if len(step) < _MIN_STEPS:
            return block.cycle_us, CLOCK_DOUBT_RATIO * block.cycle_us
        single = np.abs(step - block.cycle_us) <= STEP_TOLERANCE_US
        # if every other packet or so is lost, the most frequent step is two cycles, but single cycles occur
        median_us = float(np.median(step[single] if single.mean() > _MIN_SINGLE else step))
        typical = step[np.abs(step - median_us) < 3.0]
        if len(typical) < _MIN_STEPS or median_us < 50.0:
            return block.cycle_us, CLOCK_DOUBT_RATIO * block.cycle_us
        if abs(median_us - block.cycle_us) > max(STEP_TOLERANCE_US, 5e-4 * block.cycle_us):
            self.wrong_cycle_us = median_us
        return float(np.mean(typical)), 2e-5 * block.cycle_us + 1.0 / len(typical)

    def _judge_bad(self, block: DataBlock, rows: npt.NDArray[np.int64], cycle_us: float, log: FindingLog) -> None:
        """Report a single wrong stamp, a clock that was set, or a wrong roll-over at the hour."""
        bad = set(rows.tolist())
        for row in rows.tolist():
            step_us = int(block.run.step_us[row])
            passes_hour = step_us > 0 and block.run.stamp_us[row] - step_us < 0
            if passes_hour and (block.run.stamp_us[row] < 2 or abs(step_us - cycle_us) > _MAX_PULSE_AT_HOUR_US):
                log.report(
                    WRAP, f"the stamp must be {cycle_us:.1f} us after the one before across the hour, got {step_us} us", block.place(row, 1200)
                )
            elif row - 1 in bad or row + 1 in bad:
                self.stray += 1
                if len(rows) <= 0.2 * len(block.run.stamp_us):
                    log.report(
                        STEP, f"the stamp must be a whole number of {cycle_us:.3f} us after the one before, got {step_us} us", block.place(row, 1200)
                    )
            elif _is_pulse(int(block.run.stamp_us[row]), step_us, cycle_us):
                self.pulses += 1
            else:
                self.jumps += 1

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if not log.applies((STEP, ORDER, LOST), self.packets):
            return
        if self.duplicates > 0.5 * self.steps and self.steps >= _MIN_STEPS:
            log.report(CONSTANT, f"stamps must advance, got the same stamp as before in {self.duplicates} of {self.steps} packets")
            return
        self._conclude_steps(log)
        log.applies(CYCLE, self.steps + 1)
        if log.applies((ROUNDING, RESIDUAL, DRIFT), self.lines.fitted, of="packets of unbroken time"):
            self._conclude_fit(log)

    def _conclude_steps(self, log: FindingLog) -> None:
        if self.wrong_cycle_us is not None:
            log.report(CYCLE, f"packets must come every {self._cycle_us:.3f} us by their stamps, got {self.wrong_cycle_us:.1f} us")
        irregular = self.stray + self.jumps
        if irregular > 0.2 * self.steps:
            log.report(STEP, f"stamps must be those of a regular clock, got {irregular} of {self.steps} steps that are not whole cycles")
        elif self.jumps > _MAX_JUMPS:
            log.report(STEP, f"stamps must differ by whole cycles, got {self.jumps} steps that do not")
        elif self.jumps:
            log.report(JUMP, f"the clock stepped {self.jumps} times")
        if self.pulses:
            log.report(JUMP, f"the clock was set {self.pulses} times where a whole second began, as by a pulse per second", severity=Severity.NOTE)
        if self.backward:
            severity = Severity.WARNING if self.backward <= max(2, 0.01 * self.steps) else Severity.ERROR
            log.report(ORDER, f"stamps must grow, got {self.backward} of {self.steps} steps backwards", severity=severity)
        if self.duplicates:
            log.report(DUPLICATE, f"{self.duplicates} packets repeat the stamp before")
        if self.lost:
            log.report(LOST, f"{self.lost} packets are missing between {self.steps + 1}")

    def _conclude_fit(self, log: FindingLog) -> None:
        ppm, residual_us, fitted_us = self.lines.drift_ppm, self.lines.residual_us, self.lines.cycle_us
        if self._scatter_us:
            if residual_us > 3.0 * self._scatter_us:
                log.report(RESIDUAL, f"stamps must follow a regular clock within {self._scatter_us} us rms, got {residual_us:.2f} us")
            return
        if residual_us < 0.1:
            log.report(
                ROUNDING,
                f"stamps must be cut from an exact clock (residual about 0.29 us), got steps of {fitted_us:.3f} us with a residual"
                f" of {residual_us:.3f} us: rounded steps were added up",
            )
        elif residual_us > 0.45:
            severity = Severity.ERROR if residual_us > 1.5 else Severity.WARNING
            log.report(RESIDUAL, f"stamps must follow a regular clock within 0.29 us rms, got {residual_us:.2f} us", severity=severity)
        if abs(ppm) > 500 and self.wrong_cycle_us is None:
            log.report(CYCLE, f"packets must come every {self._cycle_us:.3f} us by their stamps, got {fitted_us:.3f} us ({ppm:+.0f} ppm)")
        elif 50 < abs(ppm) <= 500:
            log.report(DRIFT, f"the packets' cycle is {ppm:+.1f} ppm off its nominal {self._cycle_us:.3f} us")


def _is_pulse(stamp_us: int, step_us: int, cycle_us: float) -> bool:
    """Whether a step that is no whole number of cycles is caused by a pulse per second that sets a clock up to 1000 ppm off."""
    passes_second = (stamp_us + _MAX_PULSE_US) // 1_000_000 != (stamp_us - step_us - _MAX_PULSE_US) // 1_000_000
    return passes_second and abs(step_us - cycle_us) <= _MAX_PULSE_US + STEP_TOLERANCE_US
