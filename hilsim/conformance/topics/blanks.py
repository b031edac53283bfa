"""Packets without any return amid others that return: an emptiness that begins and ends with a packet is the sender's, not the scene's."""

import numpy as np
import numpy.typing as npt

from hilsim.conformance.blocks import DataBlock
from hilsim.conformance.findings import FindingLog, Place, Rule, Severity

PACKET = Rule(
    id="returns.blank_packet",
    severity=Severity.WARNING,
    holds="no packet is without any return between packets that return in a quarter of their firings up to its borders (filled with zeros: error)",
    packets=3,
    source="six public captures: emptiness in a scene does not begin and end with packets",
)
RULES = (PACKET,)

_BORDERING_SHARE = 0.25  # of the firings of the nearest block
_MOST_WAITING = 64
_FIRST, _LAST, _BLANK, _ZERO, _NEXT, _INDEX, _FRAME = range(7)


class BlanksTopic:
    """Shares of returns at the borders of packets."""

    def __init__(self) -> None:
        self._waiting = np.zeros((0, 7))  # packets from the last one with a return on

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Report the blank packets of one block, as far as what follows them is known."""
        share = (block.distance > 0).mean(axis=2)
        every = 2 if block.is_dual else 1
        is_blank = ~share.any(axis=1)
        is_zero = is_blank & ~block.reflectivity.any(axis=(1, 2))
        index = block.first_index + np.arange(len(share))
        rows = np.column_stack((share[:, 0], share[:, -every], is_blank, is_zero, block.is_next, index, block.frames))
        rows = np.concatenate((self._waiting, rows))
        full = np.flatnonzero(rows[:, _BLANK] == 0.0)
        for before, after in zip(full[:-1].tolist(), full[1:].tolist(), strict=True):
            if after > before + 1:
                _tell(rows[before : after + 1], log)
        self._waiting = rows[full[-1] :][:_MOST_WAITING] if len(full) else rows[:0]


def _tell(rows: npt.NDArray[np.float64], log: FindingLog) -> None:
    """Report a run of blank packets, given with the packet before and the one behind."""
    if min(rows[0, _LAST], rows[-1, _FIRST]) < _BORDERING_SHARE or not rows[1:, _NEXT].all():
        return
    for row in rows[1:-1]:
        words = ", and its records are zeros" if row[_ZERO] else ""
        place = Place(int(row[_INDEX]), int(row[_FRAME]), 4)
        log.tell(PACKET, f"a packet amid returns must have some, got none{words}", place, severity=Severity.ERROR if row[_ZERO] else None)
