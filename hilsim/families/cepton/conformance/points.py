"""Rules for points: returns, points without a return, and the pairs of a sensor that reports two returns."""

import numpy as np
import numpy.typing as npt

from hilsim.families.cepton.conformance.stretch import NO_RETURN, SECOND, Stretch
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, POINT_UNIT_M
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

NO_RETURN_RULE = Rule(id="points.no_return", severity=Severity.WARNING)
ZERO = Rule(id="points.zero", severity=Severity.ERROR)
CONSTANT = Rule(id="points.constant", severity=Severity.WARNING, packets=20)
COPIED = Rule(id="points.copied", severity=Severity.ERROR, packets=2)
SECOND_STEP = Rule(id="second.step", severity=Severity.ERROR)
SECOND_FIRST = Rule(id="second.first", severity=Severity.ERROR)
SECOND_LASER = Rule(id="second.laser", severity=Severity.ERROR)
SECOND_PARITY = Rule(id="second.parity", severity=Severity.ERROR)
SECOND_ALONE = Rule(id="second.alone", severity=Severity.WARNING)
SECOND_DIRECTION = Rule(id="second.direction", severity=Severity.ERROR)
SECOND_SAME = Rule(id="second.same", severity=Severity.ERROR)
SECOND_GAP = Rule(id="second.gap", severity=Severity.WARNING)

_CLOSEST_M = 0.5
_MIN_COPIED = 16  # smallest number of returns of a packet for a comparison
_ROUNDING = 0.75
"""Largest error of a coordinate in counts: half a count, plus the sensor's own rounding."""
_X, _Y, _Z, _REFLECTIVITY, _STEP, _CHANNEL, _FLAGS = 0, 2, 4, 6, 7, 8, 9


class PointsTopic:
    """Points of one sensor, judged one by one and in pairs."""

    def __init__(self) -> None:
        self.points = 0
        self.returns = 0
        self.seconds = 0
        self.second_returns = 0
        self._lowest = np.full(4, np.iinfo(np.int64).max)
        self._highest = np.full(4, np.iinfo(np.int64).min)
        self._last_places = np.zeros((0, 3), dtype=np.int64)

    @property
    def return_ratio(self) -> float:
        """Share of the firings' points that are returns; NaN before any."""
        return (self.returns - self.second_returns) / (self.points - self.seconds) if self.points > self.seconds else float("nan")

    @property
    def second_ratio(self) -> float:
        """Share of the points flagged as second returns that are returns; NaN before any."""
        return self.second_returns / self.seconds if self.seconds else float("nan")

    def look(self, stretch: Stretch, log: FindingLog) -> None:
        """Judge a stretch."""
        points, is_return, is_second = stretch.points, stretch.is_return, stretch.is_second
        self.points += points.size
        self.returns += int(is_return.sum())
        self.seconds += int(is_second.sum())
        self.second_returns += int((is_second & is_return).sum())
        filled = (points["x"] != 0) | (points["y"] != 0) | (points["z"] != 0) | (points["reflectivity"] != 0)
        text = "a point without a return must be 0, got x {}, y {}, z {}, reflectivity {}"
        log.report_each(NO_RETURN_RULE, ~is_return & filled, lambda row: text.format(*points[row].tolist()[:4]), stretch.place)
        zero_text = "a return must have y above 0, got x {}, y {}, z {}"
        log.report_each(ZERO, is_return & (points["y"] == 0), lambda row: zero_text.format(*points[row].tolist()[:3]), stretch.place, _Y)
        self._note_extent(stretch)
        self._look_at_copies(stretch, log)
        if is_second.any():
            self._look_at_seconds(stretch, log)

    def _look_at_copies(self, stretch: Stretch, log: FindingLog) -> None:
        """Report packets with the same places and number of points as the former packet."""
        places = np.stack([stretch.points[axis] for axis in "xyz"], axis=1, dtype=np.int64)
        packets = np.split(places, stretch.start[1:])
        returns = np.add.reduceat(stretch.is_return, stretch.start, dtype=np.int64)
        before = [self._last_places, *packets[:-1]]  # before the first packet: no places, which equal none
        self._last_places = packets[-1]
        for row in np.flatnonzero(returns >= _MIN_COPIED).tolist():
            if np.array_equal(before[row], packets[row]):
                log.report(COPIED, "a packet must be measured, got the places of the packet before", stretch.place(int(stretch.start[row])))

    def _note_extent(self, stretch: Stretch) -> None:
        seen = stretch.points[stretch.is_return]
        if not seen.size:
            return
        columns = [seen[name].astype(np.int64) for name in ("x", "y", "z", "reflectivity")]
        self._lowest = np.minimum(self._lowest, [int(column.min()) for column in columns])
        self._highest = np.maximum(self._highest, [int(column.max()) for column in columns])

    def _look_at_seconds(self, stretch: Stretch, log: FindingLog) -> None:
        points, first = stretch.points, stretch.previous_points()
        second = stretch.is_second
        known = second & stretch.has_previous
        step_us, laser, laser_before = points["step_us"], points["channel"], first["channel"]
        paired = known & ((first["flags"] & SECOND) == 0)
        seen = paired & stretch.is_return
        for rule, wrong, byte, message in (
            (SECOND_STEP, second & (step_us != 0), _STEP, lambda row: f"a second return's step must be 0 us, got {step_us[row]}"),
            (SECOND_FIRST, known & ~paired, _FLAGS, lambda _: "a second return must follow a first, got one that follows a second"),
            (
                SECOND_LASER,
                paired & (laser != laser_before),
                _CHANNEL,
                lambda row: f"a second return must name laser {laser_before[row]} as its first, got {laser[row]}",
            ),
            (
                SECOND_PARITY,
                paired & (((points["flags"] ^ first["flags"]) & FRAME_PARITY) != 0),
                _FLAGS,
                lambda _: "a second return must have its first's frame parity, got the other",
            ),
            (
                SECOND_ALONE,
                seen & ((first["flags"] & NO_RETURN) != 0),
                _FLAGS,
                lambda _: "a second return must have a first one, got one behind a point without a return",
            ),
        ):
            log.report_each(rule, wrong, message, stretch.place, byte)
        self._look_at_both(stretch, np.flatnonzero(seen & ((first["flags"] & NO_RETURN) == 0)), log)

    def _look_at_both(self, stretch: Stretch, rows: npt.NDArray[np.int64], log: FindingLog) -> None:
        """Judge pairs of two returns: their separation, and whether they have one direction."""
        previous = np.stack([stretch.previous_points()[rows][axis].astype(np.float64) for axis in "xyz"])
        current = np.stack([stretch.points[rows][axis].astype(np.float64) for axis in "xyz"])
        apart_m = np.linalg.norm(previous - current, axis=0) * POINT_UNIT_M

        def place(row: int) -> Place:
            return stretch.place(int(rows[row]))

        for rule, wrong in ((SECOND_SAME, apart_m == 0.0), (SECOND_GAP, (apart_m > 0.0) & (apart_m < _CLOSEST_M))):
            log.report_each(rule, wrong, lambda row: f"two returns must be {_CLOSEST_M} m apart or more, got {apart_m[row]:.3f} m", place)
        nearest_y = np.maximum(np.minimum(previous[1], current[1]), 1.0)
        for axis, name in ((0, "x"), (2, "z")):
            slope, other = (each[axis] / np.maximum(each[1], 1.0) for each in (previous, current))
            text = f"two returns must have one {name}/y, got {{:.4f}} and {{:.4f}}"
            message = lambda row, text=text, slope=slope, other=other: text.format(slope[row], other[row])  # noqa: E731
            is_off = np.abs(slope - other) > 2.0 * _ROUNDING * (1.0 + np.abs(slope)) / nearest_y
            log.report_each(SECOND_DIRECTION, is_off, message, place)

    def conclude(self, packets: int, log: FindingLog) -> None:
        """Judge the whole stream."""
        if packets < CONSTANT.packets or self.returns < 2:
            return
        same = self._lowest == self._highest
        if same[:3].all():
            log.report(CONSTANT, f"returns must lie in different places, got one place for all {self.returns}")
        elif same[:3].any():
            axis = int(same[:3].argmax())
            log.report(CONSTANT, f"returns must differ in {'xyz'[axis]}, got {int(self._lowest[axis])} for all {self.returns}")
        elif same[3]:
            log.report(CONSTANT, f"returns must differ in reflectivity, got {int(self._lowest[3])} for all {self.returns}")
