"""Rules for blank packets between packets with returns, and for copies of the former packet: both are caused by the sender, not by the scene."""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

PACKET = Rule(id="returns.blank_packet", severity=Severity.WARNING, packets=3)
COPIED = Rule(id="returns.copied", severity=Severity.ERROR, packets=2)

_BORDERING_SHARE = 0.25  # share of the firings of the nearest block
_MAX_WAITING = 64
_MIN_RETURNS = 10
_MIN_OF_BLOCK = 12
_FIRST, _LAST, _BLANK, _ZERO, _NEXT, _INDEX, _FRAME = range(7)


class ContentsTopic:
    """Shares of returns at the ends of packets, and the last packet's records."""

    def __init__(self) -> None:
        self._waiting = np.zeros((0, 7))  # packets since the last one with a return
        self._last: npt.NDArray[np.uint8] | None = None

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Report copies, and the blank packets of one block that are followed by known packets."""
        self._check_copies(block, log)
        share = (block.distance > 0).mean(axis=2)
        every = 2 if block.is_dual else 1
        is_blank = ~share.any(axis=1)
        is_zero = is_blank & ~block.reflectivity.any(axis=(1, 2))
        index = block.first_index + np.arange(len(share))
        columns = (share[:, 0], share[:, -every], is_blank, is_zero, block.is_next, index, block.frames)
        rows = np.concatenate((self._waiting, np.column_stack(columns).astype(np.float64)))
        full = np.flatnonzero(rows[:, _BLANK] == 0.0)
        for before, after in zip(full[:-1].tolist(), full[1:].tolist(), strict=True):
            if after > before + 1:
                _report(rows[before : after + 1], log)
        self._waiting = rows[full[-1] :][:_MAX_WAITING] if len(full) else rows[:0]

    def _check_copies(self, block: DataBlock, log: FindingLog) -> None:
        records = np.ascontiguousarray(block.records).view(np.uint8).reshape(len(block.frames), -1)
        before = records[:1] if self._last is None or self._last.shape[1] != records.shape[1] else self._last
        same = (np.concatenate((before, records[:-1])) == records).all(axis=1)
        is_judged = (block.distance > 0).sum(axis=(1, 2)) >= _MIN_RETURNS
        is_copy = same & is_judged & block.run.knows_step & (block.run.step_us != 0)
        self._check_block_copies(block, records, before[-1:], log)
        self._last = records[-1:].copy()
        log.report_each(COPIED, is_copy, lambda _: "a packet must be measured, got the records of the packet before", block.place, 4)

    @staticmethod
    def _check_block_copies(block: DataBlock, records: npt.NDArray[np.uint8], before: npt.NDArray[np.uint8], log: FindingLog) -> None:
        """Report the first block (in dual mode: pair) of each packet that is a copy of the former one."""
        pair = 2 if block.is_dual else 1
        groups = records.reshape(-1, records.shape[1] * pair // block.distance.shape[1])
        previous = np.concatenate((before.reshape(-1, groups.shape[1])[-1:], groups[:-1]))
        is_judged = (block.distance > 0).reshape(len(groups), -1).sum(axis=1) >= _MIN_OF_BLOCK * pair
        same = ((groups == previous).all(axis=1) & is_judged).reshape(len(records), -1)
        same[~block.run.knows_step | (block.run.step_us == 0), 0] = False

        def message(_row: int, group: int) -> str:
            return f"block {group * pair} must be measured, got the records of the block before"

        log.report_each(COPIED, same, message, block.place, lambda group: 100 * group * pair + 4)


def _report(rows: npt.NDArray[np.float64], log: FindingLog) -> None:
    """Report a run of blank packets, given with the packets before and after it."""
    if min(rows[0, _LAST], rows[-1, _FIRST]) < _BORDERING_SHARE or not rows[1:, _NEXT].all():
        return
    for row in rows[1:-1]:
        words = ", and its records are zeros" if row[_ZERO] else ""
        place = Place(int(row[_INDEX]), int(row[_FRAME]), 4)
        log.report(PACKET, f"a packet amid returns must have some, got none{words}", place, severity=Severity.ERROR if row[_ZERO] else None)
