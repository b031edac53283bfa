"""Rules for the columns' stamps: their order, their grid, and the period of columns."""

import numpy as np

from hilsim.families.ouster.protocol.firmware import Firmware
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.stream import LidarBlock
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.read.analysis.scatter import Scatter

STAMP_ORDER = Rule(id="ouster.stamp_order", severity=Severity.ERROR)
STAMP_GRID = Rule(id="ouster.stamp_grid", severity=Severity.ERROR)
STAMP_COARSE = Rule(id="ouster.stamp_coarse", severity=Severity.ERROR, packets=4)
COLUMN_STEP = Rule(id="ouster.column_step", severity=Severity.ERROR)
COLUMN_PERIOD = Rule(id="ouster.column_period", severity=Severity.ERROR, packets=32)
COLUMN_CONSTANT = Rule(id="ouster.column_constant", severity=Severity.ERROR, packets=4)

_INTERNAL = "TIME_FROM_INTERNAL_OSC"
_REV_6_NS, _REV_7_NS = 10, 8
_MAX_STEP_NS = 20_000
"""Largest difference of a step from the period: 16 us was seen (firmware 2.5.2)."""
_MAX_PERIOD_RATIO = 0.003
_MIN_SPREAD_NS = 300.0
"""Smallest standard deviation of steps: 1.4 us was seen."""


def grid_ns(metadata: SensorMetadata | None) -> int:
    """Nanoseconds of which stamps are multiples; 1 where that is not known: for a clock from outside, and without metadata."""
    if metadata is None or metadata.settings.get("timestamp_mode", _INTERNAL) != _INTERNAL:
        return 1
    return _REV_7_NS if metadata.firmware >= Firmware(3, 0) else _REV_6_NS


class StampsTopic:
    """Stamps of one sensor."""

    def __init__(self) -> None:
        self.grid_ns = 0
        self._double_ns = 0
        self._packets = 0
        self.steps_us = Scatter()  # of the steps within packets
        self._nominal_ns = float("nan")
        self._expected_grid_ns = 1

    def look(self, block: LidarBlock, log: FindingLog) -> None:
        """Judge a block."""
        stamp_ns, metadata = block.stamp_ns, block.metadata
        self._packets += len(stamp_ns)
        self._double_ns = int(np.spacing(float(stamp_ns.max())))
        self.grid_ns = int(np.gcd.reduce(np.append(stamp_ns.ravel(), self.grid_ns)))
        step = np.diff(stamp_ns, axis=1)
        self.steps_us.add(step.ravel() / 1000.0, np.ones(step.size, np.bool_))
        self._look_at_order(block, log)
        expected = self._expected_grid_ns = grid_ns(metadata)
        off = stamp_ns % expected != 0
        grid_text = f"stamps must be multiples of {expected} ns, got"
        log.report_each(STAMP_GRID, off, lambda row, column: f"{grid_text} {stamp_ns[row, column]} ns", block.place, block.column_byte)
        if metadata is None:
            return
        nominal_ns = self._nominal_ns = block.column_ns
        wrong = (np.abs(step - nominal_ns) > _MAX_STEP_NS) & (step > 0)
        text = f"columns must come each {nominal_ns / 1000:.3f} us within {_MAX_STEP_NS / 1000:.0f}, got"
        log.report_each(
            COLUMN_STEP,
            wrong,
            lambda row, number: f"{text} {step[row, number] / 1000:.3f} us",
            block.place,
            lambda number: block.column_byte(number + 1),
        )

    @staticmethod
    def _look_at_order(block: LidarBlock, log: FindingLog) -> None:
        stamp_ns, run = block.stamp_ns, block.run
        step = np.diff(stamp_ns, axis=1)
        log.report_each(
            STAMP_ORDER,
            step <= 0,
            lambda row, number: f"stamps must rise from column to column, got {step[row, number]} ns",
            block.place,
            lambda number: block.column_byte(number + 1),
        )
        before_ns = stamp_ns[0, 0] - 1 if block.before is None else block.before.stamp_ns
        step_ns = stamp_ns[:, 0] - np.concatenate((np.array([before_ns]), stamp_ns[:-1, -1]))
        falls = ~(run.is_late | run.is_repeated | run.is_break) & (step_ns <= 0)
        text = "stamps must rise from packet to packet, got"
        log.report_each(STAMP_ORDER, falls, lambda row: f"{text} {step_ns[row]} ns", block.place, block.column_byte(0))

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if not self._packets:
            return
        if log.applies((STAMP_COARSE, COLUMN_CONSTANT), self._packets, of="lidar packets"):
            most = max(self._expected_grid_ns, _REV_6_NS)
            if self.grid_ns > most and self.grid_ns != self._double_ns:  # some firmware passes PTP time through a double
                log.report(STAMP_COARSE, f"stamps must use a grid of {most} ns at most, got multiples of {self.grid_ns} ns only")
            sd_ns = 1000.0 * self.steps_us.sd
            if sd_ns < _MIN_SPREAD_NS:
                log.report(COLUMN_CONSTANT, f"the time between columns must scatter by {_MIN_SPREAD_NS:.0f} ns or more, got {sd_ns:.0f} ns")
        if np.isnan(self._nominal_ns) or not log.applies(COLUMN_PERIOD, self._packets, of="lidar packets"):
            return
        mean_us, nominal_us = self.steps_us.mean, self._nominal_ns / 1000.0
        if abs(mean_us / nominal_us - 1.0) > _MAX_PERIOD_RATIO:
            log.report(
                COLUMN_PERIOD,
                f"columns must come each {nominal_us:.3f} us within {100 * _MAX_PERIOD_RATIO:g} %, got {mean_us:.3f} us in the mean",
            )
