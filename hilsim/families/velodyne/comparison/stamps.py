"""Statistics of time stamps about straight lines, and of their steps."""

from hilsim.families.velodyne.comparison.blocks import PacketBlock
from hilsim.families.velodyne.protocol.models import STEP_TOLERANCE_US
from hilsim.families.velodyne.stream import CLOCK_DOUBT_RATIO, StampLines, whole_cycles
from hilsim.read.analysis.comparison.histogram import Histogram

_MOST_CYCLES = 100  # beyond that, a clock error of 300 ppm is indistinguishable from a wrong number of cycles


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
        goes_on = block.run.knows_step & (cycles >= 1) & (cycles <= _MOST_CYCLES)
        goes_on &= off_us <= STEP_TOLERANCE_US + CLOCK_DOUBT_RATIO * block.cycle_us * (cycles - 1)
        self.add(cycles, step_us, goes_on, block.cycle_us)
