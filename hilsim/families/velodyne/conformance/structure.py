"""Rules for sizes and flags, by which a packet is a Velodyne packet."""

import numpy as np

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_SIZE
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

STREAM_OTHER = Rule(id="stream.other", severity=Severity.NOTE)
DATA_SIZE = Rule(id="data.size", severity=Severity.ERROR)
DATA_FLAG = Rule(id="data.flag", severity=Severity.ERROR)
POSITION_SIZE = Rule(id="position.size", severity=Severity.ERROR)


def report_size(log: FindingLog, size: int, place: Place, *, is_data: bool) -> None:
    """Report a datagram of the wrong size on a data or position port."""
    if is_data:
        log.report(DATA_SIZE, f"a data packet must be {DATA_PACKET_SIZE} bytes, got {size}", place)
    else:
        log.report(POSITION_SIZE, f"a position packet must be {POSITION_PACKET_SIZE} bytes, got {size}", place)


class StructureTopic:
    """Block flags."""

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Report every packet with a wrong flag at its first wrong block."""
        flags = block.run.packets["blocks"]["flag"]
        due = np.zeros(BLOCKS, dtype=np.int64)  # of padding
        used = block.model.used_blocks(is_dual=block.is_dual)
        due[:used] = np.resize(np.repeat(block.model.flags, 2 if block.is_dual else 1), used)
        wrong = flags != due

        def message(row: int, number: int) -> str:
            got = f"got 0x{flags[row, number]:04x} ({wrong[row].sum()} of {BLOCKS} blocks)"
            return f"data block {number} must start with flag 0x{due[number]:04x}, {got}"

        log.report_each(DATA_FLAG, wrong, message, block.place, lambda number: 100 * number)

    def conclude(self, log: FindingLog) -> None:
        """Do nothing: no rule needs the whole stream."""
