"""Statistics of reflectivity bytes, distances and empty records.

In dual mode a return that both blocks contain counts once, as decoders show it, and a firing is empty if both blocks are.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.blocks import PacketBlock
from hilsim.families.velodyne.pairs import RANGE_BIN_MM, RANGE_BINS
from hilsim.read.analysis.comparison.histogram import Histogram

_MIN_OF_LASER = 50


class ReturnStatistics:
    """Distributions over returns, and over firings without a return by laser.

    Attributes:
        reflectivity: Reflectivity bytes of the returns.
        ranges_m: Ranges of the returns, in bins of 2 mm.
        firings: ``int64[channels]``, number of firings by laser.
        empty_bytes: ``int64[channels, 256]``, counts of the bytes of firings without a return, by laser.
        odd: Number of returns with an odd distance code, half of them if all codes are used.
        below_floor: Number of returns nearer than the smallest distance that the model's firmware reports.
    """

    def __init__(self, channels: int) -> None:
        self.reflectivity = Histogram(first=0.0, width=1.0, bins=256)
        self.ranges_m = Histogram(first=0.0, width=RANGE_BIN_MM / 1000.0, bins=RANGE_BINS)
        self.firings = np.zeros(channels, dtype=np.int64)
        self.empty_bytes = np.zeros((channels, 256), dtype=np.int64)
        self.below_floor = 0
        self.odd = 0
        self._channels = channels

    def look(self, block: PacketBlock) -> None:
        """Add a block."""
        records = block.records
        if block.is_dual:
            last, other = records[:, ::2], records[:, 1::2]
            self._add_returns(block, last)
            self._add_returns(block, other[other != last])
            is_empty = (last["distance"] == 0) & (other["distance"] == 0)
            self._add_empty(last["reflectivity"], is_empty)
        else:
            self._add_returns(block, records)
            self._add_empty(records["reflectivity"], records["distance"] == 0)

    def _add_returns(self, block: PacketBlock, records: npt.NDArray[Any]) -> None:
        found = records[records["distance"] > 0]
        distance = found["distance"].astype(np.int64)
        self.reflectivity.add_places(found["reflectivity"])
        self.ranges_m.add_places(distance * (block.model.distance_unit_mm // RANGE_BIN_MM))
        self.odd += int((distance % 2).sum())
        self.below_floor += int((distance < block.model.floor_raw).sum())

    def _add_empty(self, reflectivity: npt.NDArray[np.uint8], is_empty: npt.NDArray[np.bool_]) -> None:
        # Lasers in the order of the records of consecutive blocks: two firing sequences of a VLP-16 in a block, a quarter of one of a VLS-128.
        laser = np.broadcast_to(np.arange(reflectivity[0].size).reshape(reflectivity.shape[1:]) % self._channels, reflectivity.shape)
        self.firings += np.bincount(laser.ravel(), minlength=self._channels)
        cell = laser[is_empty] * 256 + reflectivity[is_empty]
        self.empty_bytes += np.bincount(cell, minlength=self.empty_bytes.size).reshape(self.empty_bytes.shape)

    @property
    def empty(self) -> int:
        """Number of firings without a return."""
        return int(self.empty_bytes.sum())

    @property
    def fired(self) -> int:
        """Number of firings."""
        return int(self.firings.sum())

    @property
    def empty_shares(self) -> npt.NDArray[np.float64]:
        """Share of firings without a return by laser, ``float64[channels]``; NaN before any firing."""
        return np.asarray(self.empty_bytes.sum(axis=1) / np.where(self.firings > 0, self.firings, np.nan))

    @property
    def zero_byte_share(self) -> float:
        """Share of empty firings whose byte is 0; NaN without an empty firing."""
        return float(self.empty_bytes[:, 0].sum()) / self.empty if self.empty else float("nan")

    @property
    def baseline(self) -> npt.NDArray[np.float64]:
        """Most frequent byte of the empty firings of each laser, ``float64[channels]``; NaN for lasers with fewer than 50."""
        return np.where(self.empty_bytes.sum(axis=1) >= _MIN_OF_LASER, self.empty_bytes.argmax(axis=1), np.nan)

    @property
    def baseline_share(self) -> float:
        """Share of empty firings with their laser's baseline; NaN if no laser has one."""
        known = ~np.isnan(self.baseline)
        return float(self.empty_bytes.max(axis=1)[known].sum()) / float(self.empty_bytes[known].sum()) if known.any() else float("nan")

    @property
    def multiple_share(self) -> float:
        """Share of integer multiples of their laser's baseline among the empty firings' other bytes; NaN if there are none."""
        others = multiples = 0
        for counts, baseline in zip(self.empty_bytes, self.baseline.tolist(), strict=True):
            if baseline > 0:
                others += int(counts.sum() - counts[int(baseline)])
                multiples += int(counts[2 * int(baseline) :: int(baseline)].sum())
        return multiples / others if others else float("nan")

    @property
    def byte_kinds(self) -> float:
        """Mean over the lasers of the number of different bytes that their empty firings have; lasers with fewer than 50 do not count, NaN without one.

        A byte counts from a share of 1 in 500 on (at least twice), so that the figure depends little on the length of the capture.
        """
        totals = self.empty_bytes.sum(axis=1)
        known = self.empty_bytes[totals >= _MIN_OF_LASER]
        least = np.maximum(2, totals[totals >= _MIN_OF_LASER] / 500)
        return float((known >= least[:, None]).sum(axis=1).mean()) if len(known) else float("nan")
