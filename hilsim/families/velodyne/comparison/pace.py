"""Statistics of the azimuth steps between firing groups, and of time stamps: real encoders read a noisy angle, not a rounded ramp."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.blocks import PacketBlock
from hilsim.families.velodyne.protocol.data import BLOCKS
from hilsim.families.velodyne.protocol.models import STEP_TOLERANCE_US
from hilsim.families.velodyne.protocol.steps import GAP_CDEG
from hilsim.families.velodyne.stream import CLOCK_DOUBT_RATIO, StampLines, whole_cycles
from hilsim.read.analysis.comparison.histogram import Histogram
from hilsim.read.analysis.scatter import Scatter
from hilsim.units import TURN_CDEG

LARGEST_LAG = 3
_CLASSES = 5


class AzimuthStatistics:
    """Increments of azimuth between neighbouring firing groups, and the azimuths modulo 5.

    Attributes:
        increments: Increments in 0.01 deg.
        scatter: Scatter of the increments: white noise of the angle correlates neighbours by -0.5, noise of the rate by positive values.
        slowest: Smallest mean increment of a turn, 0.01 deg; infinite before any.
        fastest: Largest mean increment of a turn, 0.01 deg; 0 before any.
        of_class: ``int64[5]``, number of groups whose azimuth, in 0.01 deg, has each remainder of a division by 5.
    """

    def __init__(self) -> None:
        self.increments = Histogram(first=-GAP_CDEG, width=1.0, bins=2 * GAP_CDEG + 1)
        self.of_class = np.zeros(_CLASSES, dtype=np.int64)
        self.scatter = Scatter(LARGEST_LAG)
        self._group_us = float("nan")
        self._turning = np.zeros(0, dtype=np.int64)  # increments of a turn that is not complete
        self.slowest = float("inf")
        self.fastest = 0.0

    def look(self, block: PacketBlock) -> None:
        """Add a block."""
        groups = block.azimuth_step.shape[1]
        self._group_us = block.cycle_us / groups
        self.increments.add_places(block.azimuth_step[block.is_joined] + GAP_CDEG)
        self.of_class += np.bincount((block.run.azimuth[:, :: BLOCKS // groups] % _CLASSES).ravel(), minlength=_CLASSES)
        self._note_rates(block.azimuth_step[block.is_joined])
        self.scatter.add(block.azimuth_step.ravel(), block.is_joined.ravel())

    def _note_rates(self, increments: npt.NDArray[np.int64]) -> None:
        """Find the mean of every whole turn; within a turn some units at 300 rpm swing by 5 %."""
        turning = np.concatenate((self._turning, increments))
        turned = np.cumsum(turning)
        turns = int(turned[-1]) // int(TURN_CDEG) if len(turned) else 0
        ends = [0, *(np.searchsorted(turned, TURN_CDEG * np.arange(1, turns + 1)) + 1).tolist()]
        for begin, end in pairwise(ends):
            mean = float(turning[begin:end].mean())
            self.slowest, self.fastest = min(self.slowest, mean), max(self.fastest, mean)
        self._turning = turning[ends[-1] :]

    @property
    def rate_rpm(self) -> float:
        """Rotation rate by azimuth and the model's firing times; NaN before any increment."""
        return self.increments.mean / TURN_CDEG / self._group_us * 60e6

    @property
    def slowest_rpm(self) -> float:
        """Rotation rate of the slowest turn; infinite before any."""
        return self.slowest / TURN_CDEG / self._group_us * 60e6

    @property
    def fastest_rpm(self) -> float:
        """Rotation rate of the fastest turn; 0 before any."""
        return self.fastest / TURN_CDEG / self._group_us * 60e6


_MAX_CYCLES = 100  # beyond that, a clock error of 300 ppm is indistinguishable from a wrong number of cycles


class StampStatistics(StampLines):
    """Straight lines through the stamps of every unbroken stretch of at most one block (1024 packets).

    A stretch continues across lost packets (whole cycles) and ends where the clock was set or the sensor paused.

    Attributes:
        steps: Differences of neighbouring packets' stamps, us.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps = Histogram(first=0.0, width=1.0, bins=2048)

    def look(self, block: PacketBlock) -> None:
        """Add a block."""
        step_us = block.run.step_us
        self.steps.add_places(step_us[block.is_next])
        cycles, off_us = whole_cycles(step_us, block.cycle_us)
        goes_on = block.run.knows_step & (cycles >= 1) & (cycles <= _MAX_CYCLES)
        goes_on &= off_us <= STEP_TOLERANCE_US + CLOCK_DOUBT_RATIO * block.cycle_us * (cycles - 1)
        self.add(cycles, step_us, goes_on, block.cycle_us)
