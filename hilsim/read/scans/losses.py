"""Packets that are missing in a stream, found by the sensor's own stamps."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

HOUR_NS = 3_600_000_000_000
_LONGEST_STEP_NS = 10_000_000_000
_SAME_PLACE_CDEG = 1000
"""Distance by which a gap may differ from turn to turn: two packets of a head at 600 rpm."""


@dataclass(kw_only=True)
class Losses:
    """Counts of one sensor.

    Attributes:
        packets: Data packets.
        lost: Data packets missing between others, by the sensor's stamps.
        gaps: Places where some are missing.
        cut_scans: Scans that were not whole, and were not stored.
        other_packets: Packets of another kind, or of a model whose lasers are unknown.
    """

    packets: int = 0
    lost: int = 0
    gaps: int = 0
    cut_scans: int = 0
    other_packets: int = 0
    _cycle_ns: float = field(default=0.0, repr=False)
    _blind: tuple[int, int] = field(default=(-1, 0), repr=False)
    """Azimuth behind the latest gap, and the packets that were counted as lost there."""

    def count(self, stamp_ns: npt.NDArray[np.int64], azimuth_cdeg: npt.NDArray[np.int64] | None) -> None:
        """Count what is missing between consecutive packets.

        A gap that comes at the same azimuth twice in succession is the part of the turn in which the sensor does not fire.

        Args:
            stamp_ns: ``int64[n]``, sensor's stamps of packets in their order.
            azimuth_cdeg: ``int64[n]``, first azimuth of each packet; None for a sensor without.
        """
        step = np.diff(stamp_ns)
        step[step < -HOUR_NS // 2] += HOUR_NS
        usual = step[(step > 0) & (step < _LONGEST_STEP_NS)]
        if not self._cycle_ns:
            if usual.size < 4:
                return
            self._cycle_ns = float(np.median(usual))
        cycles = np.rint(step / self._cycle_ns).astype(np.int64)
        for place in np.flatnonzero((cycles > 1) & (step < _LONGEST_STEP_NS)).tolist():
            missing = int(cycles[place]) - 1
            if azimuth_cdeg is not None:
                behind = int(azimuth_cdeg[place + 1])
                before, counted = self._blind
                distance = (behind - before + 18_000) % 36_000 - 18_000
                if before >= 0 and abs(distance) <= _SAME_PLACE_CDEG:
                    self.lost -= counted
                    self.gaps -= counted > 0
                    self._blind = (behind, 0)
                    continue
                self._blind = (behind, missing)
            self.lost += missing
            self.gaps += 1
