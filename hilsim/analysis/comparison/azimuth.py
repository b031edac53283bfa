"""Statistics of the azimuth steps between firing groups: real encoders read a noisy angle, not a rounded ramp."""

import numpy as np

from hilsim.analysis.comparison.blocks import PacketBlock
from hilsim.analysis.comparison.histogram import Histogram
from hilsim.protocols.velodyne.steps import GAP_CDEG
from hilsim.units import TURN_CDEG


class AzimuthStatistics:
    """Increments of azimuth between neighbouring firing groups.

    Attributes:
        increments: Increments in 0.01 deg.
    """

    def __init__(self) -> None:
        self.increments = Histogram(first=-GAP_CDEG, width=1.0, bins=2 * GAP_CDEG + 1)
        self._pairs = np.zeros(4, dtype=np.int64)  # number of pairs, sum of the earlier, sum of the later, sum of products
        self._last: int | None = None
        self._group_us = float("nan")

    def look(self, block: PacketBlock) -> None:
        """Add a block."""
        step, joined = block.azimuth_step.ravel(), block.is_joined.ravel()
        self._group_us = block.cycle_us / block.azimuth_step.shape[1]
        self.increments.add_places(step[joined] + GAP_CDEG)
        earlier = np.concatenate(([self._last or 0], step[:-1]))
        both = joined & np.concatenate(([self._last is not None], joined[:-1]))
        self._pairs += (both.sum(), earlier[both].sum(), step[both].sum(), (earlier[both] * step[both]).sum())
        self._last = int(step[-1]) if joined[-1] else None

    @property
    def rate_rpm(self) -> float:
        """Rotation rate by azimuth and the model's firing times; NaN before any increment."""
        return self.increments.mean / TURN_CDEG / self._group_us * 60e6

    @property
    def autocorrelation(self) -> float:
        """Correlation of neighbouring increments: white noise of the angle gives -0.5, noise of the rate positive values; NaN if nothing varies."""
        count, earlier, later, products = self._pairs.tolist()
        variance = self.increments.sd**2
        if not count or not variance > 0.0:
            return float("nan")
        mean = self.increments.mean
        return float((products - mean * (earlier + later) + count * mean * mean) / count / variance)
