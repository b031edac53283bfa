"""Rules for lasers: order and intervals of firing, and whether each laser works."""

import numpy as np
import numpy.typing as npt

from hilsim.families.cepton.conformance.stretch import Stretch
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

CYCLE = Rule(id="lasers.cycle", severity=Severity.WARNING, packets=4)
STEP = Rule(id="lasers.step", severity=Severity.WARNING, packets=4)
COUNT = Rule(id="lasers.count", severity=Severity.ERROR)
SILENT = Rule(id="lasers.silent", severity=Severity.NOTE, packets=200)
CONSTANT = Rule(id="lasers.constant", severity=Severity.ERROR, packets=200)

CHANNELS = {22: 64, 24: 64, 28: 64, 31: 64, 25: 48, 30: 48, 32: 32, 33: 192}
"""Number of lasers by model code, as in SDK 3 3.0.17; models with more than 256 are absent, because no byte is too large for them."""
_LASERS = 256
_UNKNOWN = -1
_STEP_TOLERANCE_US = 2
_MIN_TO_LEARN = 300
_NAMED = 16
_MIN_RETURNS = 200


class LasersTopic:
    """Lasers of one sensor."""

    def __init__(self) -> None:
        self.firings = np.zeros(_LASERS, np.int64)
        self.returns = np.zeros(_LASERS, np.int64)
        self._lowest = np.full((_LASERS, 3), np.iinfo(np.int64).max)  # x, y and z of each laser's returns
        self._highest = np.full((_LASERS, 3), np.iinfo(np.int64).min)
        self._next: npt.NDArray[np.int64] | None = None
        self._step_us = np.zeros(_LASERS)
        self._gave_up = False

    @property
    def count(self) -> int:
        """Number of lasers that fired."""
        return int(np.count_nonzero(self.firings))

    @property
    def cycle_us(self) -> float:
        """Time in which every laser fires once; NaN if no order is known."""
        return float(self._step_us[self._next != _UNKNOWN].sum()) if self._next is not None else float("nan")

    def look(self, stretch: Stretch, model: int | None, log: FindingLog) -> None:
        """Judge a stretch; ``model`` is the code of the latest information packet."""
        channel = stretch.points["channel"].astype(np.int64)
        self.firings += np.bincount(channel[~stretch.is_second], minlength=_LASERS)
        self.returns += np.bincount(channel[stretch.is_return], minlength=_LASERS)
        seen = stretch.points[stretch.is_return]
        for axis, name in enumerate("xyz"):
            np.minimum.at(self._lowest[:, axis], channel[stretch.is_return], seen[name].astype(np.int64))
            np.maximum.at(self._highest[:, axis], channel[stretch.is_return], seen[name].astype(np.int64))
        most = CHANNELS.get(model if model is not None else _UNKNOWN)
        if most is not None:
            message = f"laser must be 0 to {most - 1} for model {model}, got"
            log.report_each(COUNT, channel >= most, lambda row: f"{message} {channel[row]}", stretch.place, 8)
        self._look_at_order(stretch, channel, log)

    def _look_at_order(self, stretch: Stretch, channel: npt.NDArray[np.int64], log: FindingLog) -> None:
        """Judge first returns: each laser must fire after the one it always follows, at the same interval."""
        rows = np.flatnonzero(~stretch.is_second)
        if rows.size < 2:
            return
        here, there = channel[rows[:-1]], channel[rows[1:]]
        broken = np.zeros(stretch.points.size, dtype=np.int64)  # number of packets up to each point that do not follow the former one
        broken[stretch.start] = ~stretch.follows
        broken[0] = 0
        breaks = np.cumsum(broken)
        adjoining = breaks[rows[:-1]] == breaks[rows[1:]]
        step_us = stretch.points["step_us"][rows[1:]].astype(np.int64)
        if self._next is None and not self._gave_up and adjoining.sum() >= _MIN_TO_LEARN:
            self._learn(here[adjoining], there[adjoining], step_us[adjoining])
        if self._next is None:
            return
        expected, expected_us = self._next[here], self._step_us[here]

        def step_message(row: int) -> str:
            return f"laser {there[row]} must fire {expected_us[row]:g} us behind laser {here[row]}, got {step_us[row]}"

        def place(row: int, byte: int) -> Place:
            return stretch.place(int(rows[row + 1]), byte)

        is_wrong, is_off = expected != there, np.abs(step_us - expected_us) > _STEP_TOLERANCE_US
        message = "laser {} must fire behind laser {}, got {}"
        log.report_each(CYCLE, adjoining & is_wrong, lambda row: message.format(expected[row], here[row], there[row]), place, 8)
        log.report_each(STEP, adjoining & ~is_wrong & is_off, step_message, place, 7)

    def _learn(self, here: npt.NDArray[np.int64], there: npt.NDArray[np.int64], step_us: npt.NDArray[np.int64]) -> None:
        """Find the successor of each laser that has nearly always the same one."""
        pairs = np.zeros((_LASERS, _LASERS), np.int64)
        np.add.at(pairs, (here, there), 1)
        fired = pairs.sum(axis=1)
        most = pairs.max(axis=1)
        if most.sum() < 0.9 * fired.sum():
            self._gave_up = True
            return
        self._next = np.where(fired > 0, pairs.argmax(axis=1), _UNKNOWN)
        for laser in np.flatnonzero(fired):
            self._step_us[laser] = np.median(step_us[here == laser])

    def conclude(self, packets: int, log: FindingLog) -> None:
        """Judge the whole stream."""
        if self._gave_up and packets >= CYCLE.packets:
            log.report(CYCLE, f"lasers must fire in one order, got none among {self.count}")
        if packets < SILENT.packets or not self.returns.any():
            return
        stuck = np.flatnonzero((self.returns >= _MIN_RETURNS) & (self._lowest == self._highest).all(axis=1)).tolist()
        for laser in stuck if len(stuck) < self.count else []:  # another rule reports all of them
            log.report(CONSTANT, f"laser {laser} must return from different places, got one place for all {int(self.returns[laser])} returns")
        silent = np.flatnonzero((self.firings > 0) & (self.returns == 0)).tolist()
        if silent:
            more = f" and {len(silent) - _NAMED} more" if len(silent) > _NAMED else ""
            log.report(SILENT, f"no return of laser {', '.join(map(str, silent[:_NAMED]))}{more} in {int(self.firings[silent[0]])} firings each")
