"""Rules for repeated packets, such as those of a recording that is played in a loop."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.conformance.contents import COPIED
from hilsim.families.velodyne.protocol.data import BLOCKS
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

LOOP = Rule(id="stream.loop", severity=Severity.WARNING, packets=32)

_MAX_KEPT = 32_768  # largest number of compared packets of a stream: 43 s of a VLP-16
_SHORTEST = 8
_MIN_RETURNS = 16  # smallest number of returns of a packet whose records are compared
_BLOCKS_SIZE = 100 * BLOCKS
_WEIGHTS = np.random.default_rng(1206).integers(1, 1 << 63, _BLOCKS_SIZE // 8, dtype=np.uint64) | np.uint64(1)


@dataclass(frozen=True)
class _Loop:
    """A loop of packets.

    Attributes:
        period: Number of packets of one pass.
        begin: Index of the first packet of the second pass.
    """

    period: int
    begin: int


class RepeatsTopic:
    """Fingerprints of the packets' contents."""

    def __init__(self) -> None:
        self._prints = np.zeros(0, dtype=np.uint64)
        self._records = np.zeros(0, dtype=np.uint64)
        self._frames = np.zeros(0, dtype=np.int64)

    def look(self, block: DataBlock) -> None:
        """Add the fingerprints of one block."""
        room = _MAX_KEPT - len(self._prints)
        if room <= 0:
            return
        packets = np.ascontiguousarray(block.run.packets[:room])
        words = packets.view(np.uint8).reshape(len(packets), -1)[:, :_BLOCKS_SIZE].copy().view(np.uint64)
        self._prints = np.concatenate((self._prints, (words * _WEIGHTS).sum(axis=1, dtype=np.uint64)))
        measured = np.ascontiguousarray(packets["blocks"]["channels"]).view(np.uint8).reshape(len(packets), -1).view(np.uint64)
        prints = (measured * _WEIGHTS[: measured.shape[1]]).sum(axis=1, dtype=np.uint64)
        few = (packets["blocks"]["channels"]["distance"] > 0).sum(axis=(1, 2)) < _MIN_RETURNS
        self._records = np.concatenate((self._records, np.where(few, 0, prints)))
        self._frames = np.concatenate((self._frames, block.frames[:room]))
        self.__dict__.pop("_loop", None)

    @cached_property
    def _loop(self) -> _Loop | None:
        prints = self._prints
        if len(prints) < LOOP.packets:
            return None
        order = np.argsort(prints, kind="stable")
        apart = np.diff(order)[prints[order][1:] == prints[order][:-1]]
        apart = apart[apart >= _SHORTEST]
        if not len(apart):
            return None
        period = int(np.bincount(apart).argmax())
        again = prints[period:] == prints[:-period]
        if again.sum() < _SHORTEST or again.mean() < 0.5:
            return None
        steady = _runs_of(again, _SHORTEST)
        return _Loop(period, period + int(steady.argmax())) if steady.any() else None

    def is_seam(self, index: int) -> bool:
        """Whether a packet is the first of a pass of a loop."""
        loop = self._loop
        return loop is not None and loop.begin <= index < len(self._prints) and bool(self._prints[index] == self._prints[loop.begin])

    @property
    def first_pass(self) -> int | None:
        """Number of packets before the second pass of a loop, or None without a loop."""
        return None if self._loop is None else self._loop.begin

    def conclude(self, log: FindingLog, seam_leap_cdeg: float) -> None:
        """Report a loop.

        Args:
            log: Log of findings.
            seam_leap_cdeg: Size of the head's leap at the seam, or 0.
        """
        if log.applies(LOOP, len(self._prints)) and self._loop is not None:
            leap = f", and its seam leaps by {seam_leap_cdeg / 100:.2f} degrees" if seam_leap_cdeg else ""
            log.report(LOOP, f"packets must not come again, got the same {self._loop.period} packets over and over: a recording in a loop{leap}")
        for again, earlier in zip(*self._measured_again(), strict=True):
            place = Place(int(again), int(self._frames[again]), 4)
            log.report(COPIED, f"a packet must be measured, got the records of packet {earlier} under other azimuths", place)

    def _measured_again(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Packets with the records, but not the azimuths, of an earlier packet other than the former one, and that packet."""
        order = np.argsort(self._records, kind="stable")
        earlier, later = order[:-1], order[1:]
        same = (self._records[later] == self._records[earlier]) & (self._records[later] != 0)
        found = np.flatnonzero(same & (self._prints[later] != self._prints[earlier]) & (later - earlier > 1))
        return later[found], earlier[found]


def _runs_of(flags: npt.NDArray[np.bool_], length: int) -> npt.NDArray[np.bool_]:
    """Whether a run of this number of True values begins at each place."""
    if len(flags) < length:
        return np.zeros(1, dtype=np.bool_)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(flags, length).all(axis=1))
