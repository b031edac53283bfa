"""Blocks of captured packets: when the host saw them, and how each follows on the one before."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilsim.analysis.inspection.result import Place


@dataclass(frozen=True, kw_only=True)
class CaptureTimes:
    """A block of a flow's captured packets, as the host saw them.

    Attributes:
        frames: ``int64[n]``, frame numbers.
        host_ns: ``int64[n]``, capture times.
        before_frame: Frame number of the packet before the block; of the first packet where there is none.
        before_ns: Its capture time.
        start_ns: Capture time of the capture's first datagram.
    """

    frames: npt.NDArray[np.int64]
    host_ns: npt.NDArray[np.int64]
    before_frame: int
    before_ns: int
    start_ns: int

    def step_ns(self) -> npt.NDArray[np.int64]:
        """``int64[n]`` since the packet before."""
        return np.diff(self.host_ns, prepend=self.before_ns)

    def place(self, row: int) -> Place:
        """Where packet ``row`` is; -1 is the packet before the block."""
        frame, stamp_ns = (self.before_frame, self.before_ns) if row < 0 else (int(self.frames[row]), int(self.host_ns[row]))
        return Place(frame=frame, at_s=(stamp_ns - self.start_ns) / 1e9)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What a block of packets is to the packets before, for the flow's own statistics.

    Attributes:
        is_next: ``bool[n]``: the packet follows the one before without a pause, so the time between them is an interval of arrival.
        is_planned: ``bool[n]``: the sensor pauses before this packet by itself.
    """

    is_next: npt.NDArray[np.bool_]
    is_planned: npt.NDArray[np.bool_]
