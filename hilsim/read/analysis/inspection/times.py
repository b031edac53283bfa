"""Blocks of captured packets: capture times, and relation of each packet to the former one."""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.inspection.result import Place


@dataclass(frozen=True, kw_only=True)
class CaptureTimes:
    """Capture times of a block of a flow's packets."""

    frames: Annotated[npt.NDArray[np.int64], "``int64[n]``, frame numbers."]
    host_ns: Annotated[npt.NDArray[np.int64], "``int64[n]``, capture times."]
    before_frame: Annotated[int, "Frame number of the packet before the block; without one, of the first packet."]
    before_ns: Annotated[int, "Capture time of that packet."]
    start_ns: Annotated[int, "Capture time of the capture's first datagram."]

    def step_ns(self) -> npt.NDArray[np.int64]:
        """Time since the former packet, ``int64[n]``."""
        return np.diff(self.host_ns, prepend=self.before_ns)

    def place(self, row: int) -> Place:
        """Place of packet ``row``; -1 is the packet before the block."""
        frame, stamp_ns = (self.before_frame, self.before_ns) if row < 0 else (int(self.frames[row]), int(self.host_ns[row]))
        return Place(frame=frame, at_s=(stamp_ns - self.start_ns) / 1e9)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Relation of each packet of a block to the former one, for the flow's statistics.

    Attributes:
        is_next: ``bool[n]``, whether the packet follows the former one without a pause, so that the time between them is an interval.
        is_planned: ``bool[n]``, whether the sensor itself pauses before this packet.
    """

    is_next: npt.NDArray[np.bool_]
    is_planned: npt.NDArray[np.bool_]

    @classmethod
    def even(cls, packets: int) -> Self:
        """Relation of packets without stamps that tell it: each follows the former one."""
        return cls(is_next=np.ones(packets, np.bool_), is_planned=np.zeros(packets, np.bool_))
