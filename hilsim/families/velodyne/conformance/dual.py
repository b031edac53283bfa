"""Rules for dual return packets: even blocks have the last return, odd blocks the strongest, or the second strongest if that is the last."""

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.pairs import RANGE_BIN_MM, PairCounts
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity

AZIMUTH = Rule(id="dual.azimuth", severity=Severity.ERROR)
ORDER = Rule(id="dual.order", severity=Severity.ERROR, packets=20)
COPY = Rule(id="dual.copy", severity=Severity.ERROR, packets=20)
SECOND = Rule(id="dual.second_strongest", severity=Severity.ERROR, packets=100)
SEPARATION = Rule(id="dual.separation", severity=Severity.ERROR, packets=20)
NO_RETURN = Rule(id="dual.no_return", severity=Severity.WARNING, packets=20)

_CLOSEST_MM = 1000
_MIN_PAIRS, _MIN_UNEQUAL, _MIN_EMPTY = 1000, 100, 1000


class DualTopic:
    """Pairs of returns."""

    def __init__(self) -> None:
        self._is_dual = False
        self._pairs = PairCounts()

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Judge the pairs of one block; do nothing outside dual mode."""
        if not block.is_dual:
            return
        self._is_dual = True
        raw = block.run.packets["blocks"]["azimuth"]

        def message(row: int, pair: int) -> str:
            return f"blocks {2 * pair} and {2 * pair + 1} must have one azimuth, got {raw[row, 2 * pair]} and {raw[row, 2 * pair + 1]}"

        log.report_each(AZIMUTH, raw[:, ::2] != raw[:, 1::2], message, block.place, lambda pair: 100 * (2 * pair + 1) + 2)
        self._pairs.look(block.records, block.model.distance_unit_mm)

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if not self._is_dual:
            return
        pairs = self._pairs
        one_empty, odd_farther = pairs.only_even + pairs.only_odd, pairs.different - pairs.even_farther
        close, unequal = int(pairs.separations_m.counts[: _CLOSEST_MM // RANGE_BIN_MM].sum()), pairs.empty - pairs.empty_equal
        if not log.applies((ORDER, COPY, SECOND, SEPARATION, NO_RETURN), pairs.with_return, _MIN_PAIRS, "pairs with a return"):
            return
        if odd_farther > 0.01 * pairs.different:
            log.report(
                ORDER,
                f"the even block must hold the farther return, got the odd one farther in {odd_farther} of {pairs.different} differing pairs",
            )
        if one_empty > 0.05 * pairs.with_return:
            log.report(COPY, f"both blocks must carry a single return, got {one_empty} of {pairs.with_return} pairs with one block empty")
        of_unequal = pairs.even_stronger + pairs.odd_stronger
        if log.applies(SECOND, of_unequal, _MIN_UNEQUAL, "pairs of unequal strength") and pairs.even_stronger < 0.02 * of_unequal:
            log.report(SECOND, f"the last return must be the stronger one of some pairs, got {pairs.even_stronger} of {of_unequal}")
        if close > 0.01 * pairs.different:
            log.report(
                SEPARATION,
                f"two returns must be 1 m apart, got {close} of {pairs.different} differing pairs closer, down to {pairs.separations_m.smallest:.3f} m",
            )
        if log.applies(NO_RETURN, pairs.empty, _MIN_EMPTY, "empty pairs") and unequal > 0.05 * pairs.empty:
            log.report(NO_RETURN, f"empty pairs must carry equal bytes, got {unequal} of {pairs.empty} that differ")
