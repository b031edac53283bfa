"""Rules for the columns' stamps: their order, their grid, and the period of columns."""

import numpy as np

from hilsim.families.ouster.conformance.block import LidarBlock
from hilsim.families.ouster.protocol.firmware import Firmware
from hilsim.families.ouster.protocol.metadata import SensorMetadata
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
_MOST_STEP_NS = 20_000
"""Largest difference of a step from the period: 16 us was seen (firmware 2.5.2)."""
_MOST_PERIOD_RATIO = 0.003
_LEAST_SPREAD_NS = 300.0
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
        self.steps = Scatter()  # of the steps within packets, ns
        self._nominal_ns = float("nan")
        self._expected_grid_ns = 1

    def look(self, block: LidarBlock, log: FindingLog) -> None:
        """Judge a block."""
        stamp_ns, metadata = block.stamp_ns, block.metadata
        self._packets += len(stamp_ns)
        self._double_ns = int(np.spacing(float(stamp_ns.max())))
        self.grid_ns = int(np.gcd.reduce(np.append(stamp_ns.ravel(), self.grid_ns)))
        step = np.diff(stamp_ns, axis=1)
        self.steps.add(step.ravel(), np.ones(step.size, np.bool_))
        self._look_at_order(block, log)
        expected = self._expected_grid_ns = grid_ns(metadata)
        off = stamp_ns % expected != 0
        log.report_each(
            STAMP_GRID,
            np.flatnonzero(off.any(axis=1)).tolist(),
            lambda row: f"stamps must be multiples of {expected} ns, got {stamp_ns[row][off[row]][0]} ns",
            lambda row: block.place(row, block.column_byte(int(np.flatnonzero(off[row])[0]))),
        )
        if metadata is None:
            return
        nominal_ns = self._nominal_ns = 1e9 / (metadata.columns_per_frame * metadata.rate_hz)
        wrong = (np.abs(step - nominal_ns) > _MOST_STEP_NS) & (step > 0)
        log.report_each(
            COLUMN_STEP,
            np.flatnonzero(wrong.any(axis=1)).tolist(),
            lambda row: (
                f"columns must come each {nominal_ns / 1000:.3f} us within {_MOST_STEP_NS / 1000:.0f}, got {step[row][wrong[row]][0] / 1000:.3f} us"
            ),
            lambda row: block.place(row, block.column_byte(1 + int(np.flatnonzero(wrong[row])[0]))),
        )

    @staticmethod
    def _look_at_order(block: LidarBlock, log: FindingLog) -> None:
        stamp_ns, run = block.stamp_ns, block.run
        falls = np.diff(stamp_ns, axis=1) <= 0
        log.report_each(
            STAMP_ORDER,
            np.flatnonzero(falls.any(axis=1)).tolist(),
            lambda row: f"stamps must rise from column to column, got {np.diff(stamp_ns[row])[falls[row]][0]} ns",
            lambda row: block.place(row, block.column_byte(1 + int(np.flatnonzero(falls[row])[0]))),
        )
        before_ns = stamp_ns[0, 0] - 1 if block.before is None else block.before.stamp_ns
        last_ns = np.concatenate((np.array([before_ns]), stamp_ns[:-1, -1]))
        follows = ~(run.is_late | run.is_repeated | run.is_break)
        log.report_each(
            STAMP_ORDER,
            np.flatnonzero(follows & (stamp_ns[:, 0] <= last_ns)).tolist(),
            lambda row: f"stamps must rise from packet to packet, got {stamp_ns[row, 0] - last_ns[row]} ns",
            lambda row: block.place(row, block.column_byte(0)),
        )

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if not self._packets:
            return
        if self._packets < STAMP_COARSE.packets:
            log.skip(STAMP_COARSE, self._packets, STAMP_COARSE.packets, "lidar packets")
            log.skip(COLUMN_CONSTANT, self._packets, COLUMN_CONSTANT.packets, "lidar packets")
        else:
            most = max(self._expected_grid_ns, _REV_6_NS)
            if self.grid_ns > most and self.grid_ns != self._double_ns:  # some firmware passes PTP time through a double
                log.report(STAMP_COARSE, f"stamps must use a grid of {most} ns at most, got multiples of {self.grid_ns} ns only")
            if self.steps.sd < _LEAST_SPREAD_NS:
                log.report(COLUMN_CONSTANT, f"the time between columns must scatter by {_LEAST_SPREAD_NS:.0f} ns or more, got {self.steps.sd:.0f} ns")
        if np.isnan(self._nominal_ns):
            return
        if self._packets < COLUMN_PERIOD.packets:
            log.skip(COLUMN_PERIOD, self._packets, COLUMN_PERIOD.packets, "lidar packets")
        elif abs(self.steps.mean / self._nominal_ns - 1.0) > _MOST_PERIOD_RATIO:
            log.report(
                COLUMN_PERIOD,
                f"columns must come each {self._nominal_ns / 1000:.3f} us within {100 * _MOST_PERIOD_RATIO:g} %, got {self.steps.mean / 1000:.3f} us in the mean",
            )
