"""Statistics of arrival at the capturing host: the sensor's pace, and the jitter of network and host."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.comparison.histogram import Histogram

_BIN_NS = 100
_BINS = 163_840  # up to 16.4 ms
_MILLISECOND_NS = 1_000_000
_MILLISECOND_DOUBT_NS = 20_000
_TICKING_RATIO = 0.8  # share of the gaps of half a millisecond and more
_MIN_LONG_RATIO = 0.3
_BURST_RATIO = 0.1


class Arrivals(Protocol):
    """Arrival of consecutive packets of a sensor of any family."""

    @property
    def host_ns(self) -> npt.NDArray[np.int64]:
        """Capture times, ``int64[n]``."""
        ...

    @property
    def host_step_ns(self) -> npt.NDArray[np.int64]:
        """Capture time minus that of the former packet, ``int64[n]``."""
        ...

    @property
    def is_next(self) -> npt.NDArray[np.bool_]:
        """Whether a packet directly follows the former one, ``bool[n]``."""
        ...

    @property
    def cycle_us(self) -> float:
        """Nominal time between packets."""
        ...


class SpacingStatistics:
    """Gaps between the capture times of packets that are neighbours by their stamps, without lost packets and pauses of the sensor.

    Attributes:
        gaps: Gaps in us, in bins of 0.1 us; gaps above 16.4 ms count as 16.4 ms.
    """

    def __init__(self) -> None:
        self.gaps = Histogram(first=0.0, width=_BIN_NS / 1000.0, bins=_BINS)
        self.packets = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._long = 0
        self._ticking = 0
        self._cycle_us = float("nan")

    def look(self, block: Arrivals) -> None:
        """Add a block."""
        self.packets += len(block.host_ns)
        self._cycle_us = block.cycle_us
        if self._first_ns is None:
            self._first_ns = int(block.host_ns[0])
        self._last_ns = int(block.host_ns[-1])
        near_ns = block.host_step_ns[block.is_next]
        self.gaps.add_places((near_ns + _BIN_NS // 2) // _BIN_NS)
        long_ns = near_ns[near_ns >= _MILLISECOND_NS // 2]
        self._long += len(long_ns)
        self._ticking += int(((long_ns + _MILLISECOND_DOUBT_NS) % _MILLISECOND_NS <= 2 * _MILLISECOND_DOUBT_NS).sum())

    @property
    def duration_s(self) -> float:
        """Time from the first capture time to the last; 0 before any packet."""
        return 0.0 if self._first_ns is None else (self._last_ns - self._first_ns) / 1e9

    @property
    def rate_hz(self) -> float:
        """Packets a second of capture time; NaN if the duration is 0."""
        return (self.packets - 1) / self.duration_s if self.duration_s > 0.0 else float("nan")

    @property
    def doubt(self) -> str | None:
        """Reason why capture times are not arrival times, or None if they may be."""
        if not self.gaps.total:
            return None
        if self._long > _MIN_LONG_RATIO * self.gaps.total and self._ticking > _TICKING_RATIO * self._long:
            return "capture times are whole milliseconds"
        if self.gaps.share(-1.0, 0.25 * self._cycle_us) > _BURST_RATIO:
            return "packets come in bursts: capture times made from messages, or a host that reads late"
        return None
