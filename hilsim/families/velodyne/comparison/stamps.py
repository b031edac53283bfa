"""Statistics of time stamps about straight lines: real stamps are an exactly regular clock truncated to whole microseconds."""

from itertools import pairwise

import numpy as np

from hilsim.families.velodyne.comparison.blocks import PacketBlock
from hilsim.families.velodyne.protocol.models import STEP_TOLERANCE_US
from hilsim.families.velodyne.stream import CLOCK_DOUBT_RATIO, whole_cycles
from hilsim.read.analysis.comparison.histogram import Histogram

_SHORTEST_STRETCH = 32
_MOST_CYCLES = 100  # beyond that, a clock error of 300 ppm is indistinguishable from a wrong number of cycles
_BIN_US = 0.02


class StampStatistics:
    """Straight lines through the stamps of every unbroken stretch of at most one block (1024 packets).

    A stretch continues across lost packets (whole cycles) and ends where the clock was set or the sensor paused.

    Attributes:
        residuals: Residuals of the stamps about their line, us.
        steps: Differences of neighbouring packets' stamps, us.
    """

    def __init__(self) -> None:
        self.residuals = Histogram(first=-4.0, width=_BIN_US, bins=401)
        self.steps = Histogram(first=0.0, width=1.0, bins=2048)
        self._nominal_us = float("nan")
        self._square_sum = 0.0
        self._fitted = 0
        self._spread = 0.0
        self._slopes = 0.0

    def look(self, block: PacketBlock) -> None:
        """Add a block."""
        self._nominal_us = block.cycle_us
        step_us = block.run.step_us
        self.steps.add_places(step_us[block.is_next])
        cycles, off_us = whole_cycles(step_us, block.cycle_us)
        goes_on = block.run.knows_step & (cycles >= 1) & (cycles <= _MOST_CYCLES)
        goes_on &= off_us <= STEP_TOLERANCE_US + CLOCK_DOUBT_RATIO * block.cycle_us * (cycles - 1)
        for start, stop in pairwise([0, *(np.flatnonzero(~goes_on[1:]) + 1).tolist(), len(cycles)]):
            if stop - start >= _SHORTEST_STRETCH:
                self._fit(np.cumsum(cycles[start + 1 : stop]), np.cumsum(step_us[start + 1 : stop]))

    def _fit(self, cycles: np.ndarray, elapsed_us: np.ndarray) -> None:
        """Fit a line to a stretch, given without its first packet, which is at 0."""
        x = np.concatenate(([0.0], cycles))
        y = np.concatenate(([0.0], elapsed_us - cycles * self._nominal_us))
        x -= x.mean()
        y -= y.mean()
        spread, product = float(x @ x), float(x @ y)
        residual = y - product / spread * x
        self.residuals.add(residual)
        self._square_sum += float(residual @ residual)
        self._fitted += len(x)
        self._spread += spread
        self._slopes += product

    @property
    def fitted(self) -> int:
        """Number of packets in fitted stretches."""
        return self._fitted

    @property
    def residual_sd_us(self) -> float:
        """Standard deviation about the lines; NaN before a fit. A clock truncated to microseconds has 1/sqrt(12)."""
        return float(np.sqrt(self._square_sum / self._fitted)) if self._fitted else float("nan")

    @property
    def drift_ppm(self) -> float:
        """Relative excess of the fitted cycle over the model's; NaN before a fit."""
        return 1e6 * self._slopes / self._spread / self._nominal_us if self._spread else float("nan")

    @property
    def cycle_us(self) -> float:
        """Fitted time between packets; NaN before a fit."""
        return self._nominal_us * (1.0 + 1e-6 * self.drift_ppm)
