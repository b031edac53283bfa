"""Rules for dual return packets: even blocks have the last return, odd blocks the strongest, or the second strongest if that is the last."""

import numpy as np

from hilsim.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.families.velodyne.conformance.blocks import DataBlock

AZIMUTH = Rule(id="dual.azimuth", severity=Severity.ERROR)
ORDER = Rule(id="dual.order", severity=Severity.ERROR, packets=20)
COPY = Rule(id="dual.copy", severity=Severity.ERROR, packets=20)
SECOND = Rule(id="dual.second_strongest", severity=Severity.ERROR, packets=100)
SEPARATION = Rule(id="dual.separation", severity=Severity.ERROR, packets=20)
NO_RETURN = Rule(id="dual.no_return", severity=Severity.WARNING, packets=20)

_CLOSEST_MM = 1000
_FEWEST_PAIRS, _FEWEST_UNEQUAL, _FEWEST_EMPTY = 1000, 100, 1000


class DualTopic:
    """Pairs of returns."""

    def __init__(self) -> None:
        self._is_dual = False
        self.pairs_with_return = 0
        self.differing = 0
        self._odd_farther = 0
        self._one_empty = 0
        self._even_stronger = 0
        self._odd_stronger = 0
        self._close = 0
        self._closest_mm = 1 << 30
        self._empty = 0
        self._empty_unequal = 0

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Judge the pairs of one block; do nothing outside dual mode."""
        if not block.is_dual:
            return
        self._is_dual = True
        raw = block.run.packets["blocks"]["azimuth"]
        unequal = raw[:, ::2] != raw[:, 1::2]
        first = unequal.argmax(axis=1)
        log.report_each(
            AZIMUTH,
            np.flatnonzero(unequal.any(axis=1)).tolist(),
            lambda row: (
                f"blocks {2 * first[row]} and {2 * first[row] + 1} must have one azimuth,"
                f" got {raw[row, 2 * first[row]]} and {raw[row, 2 * first[row] + 1]}"
            ),
            lambda row: block.place(row, 100 * (2 * int(first[row]) + 1) + 2),
        )
        self._gather(block)

    def _gather(self, block: DataBlock) -> None:
        even = block.distance[:, ::2].astype(np.int32)
        odd = block.distance[:, 1::2].astype(np.int32)
        even_byte, odd_byte = block.reflectivity[:, ::2], block.reflectivity[:, 1::2]
        has_even, has_odd = even > 0, odd > 0
        both = has_even & has_odd
        differ = both & (even != odd)
        self.pairs_with_return += int((has_even | has_odd).sum())
        self.differing += int(differ.sum())
        self._one_empty += int((has_even ^ has_odd).sum())
        self._odd_farther += int((differ & (odd > even)).sum())
        self._even_stronger += int((differ & (even_byte > odd_byte)).sum())
        self._odd_stronger += int((differ & (even_byte < odd_byte)).sum())
        apart_mm = np.abs(even - odd)[differ] * block.model.distance_unit_mm
        if len(apart_mm):
            self._close += int((apart_mm < _CLOSEST_MM).sum())
            self._closest_mm = min(self._closest_mm, int(apart_mm.min()))
        empty = ~has_even & ~has_odd
        self._empty += int(empty.sum())
        self._empty_unequal += int((empty & (even_byte != odd_byte)).sum())

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if not self._is_dual:
            return
        if self.pairs_with_return < _FEWEST_PAIRS:
            for rule in (ORDER, COPY, SECOND, SEPARATION, NO_RETURN):
                log.skip(rule, self.pairs_with_return, _FEWEST_PAIRS, "pairs with a return")
            return
        if self._odd_farther > 0.01 * self.differing:
            log.report(
                ORDER,
                f"the even block must hold the farther return, got the odd one farther in {self._odd_farther} of {self.differing} differing pairs",
            )
        if self._one_empty > 0.05 * self.pairs_with_return:
            log.report(COPY, f"both blocks must carry a single return, got {self._one_empty} of {self.pairs_with_return} pairs with one block empty")
        self._conclude_strength(log)
        if self._close > 0.01 * self.differing:
            log.report(
                SEPARATION,
                f"two returns must be 1 m apart, got {self._close} of {self.differing} differing pairs closer, down to {self._closest_mm / 1000:.3f} m",
            )
        if self._empty < _FEWEST_EMPTY:
            log.skip(NO_RETURN, self._empty, _FEWEST_EMPTY, "empty pairs")
        elif self._empty_unequal > 0.05 * self._empty:
            log.report(NO_RETURN, f"empty pairs must carry equal bytes, got {self._empty_unequal} of {self._empty} that differ")

    def _conclude_strength(self, log: FindingLog) -> None:
        unequal = self._even_stronger + self._odd_stronger
        if unequal < _FEWEST_UNEQUAL:
            log.skip(SECOND, unequal, _FEWEST_UNEQUAL, "pairs of unequal strength")
        elif self._even_stronger < 0.02 * unequal:
            log.report(SECOND, f"the last return must be the stronger one of some pairs, got {self._even_stronger} of {unequal}")
