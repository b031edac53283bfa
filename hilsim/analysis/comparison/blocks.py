"""Blocks of data packets of one sensor, as arrays: what the topics look at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.velodyne_stream import PacketRun
from hilsim.protocols.velodyne.models import Model


@dataclass(frozen=True, kw_only=True)
class PacketBlock:
    """Data packets that follow each other, all of one model and mode.

    A *group* is what shares one azimuth: a block of the packet, or a pair of blocks in dual mode.

    Attributes:
        model: Of the sensor.
        is_dual: Blocks come in pairs of one azimuth.
        run: The packets, and how they follow each other.
        host_ns: ``int64[n]``, capture times.
        host_step_ns: ``int64[n]``, capture time minus the one before; 0 for the stream's first packet.
        is_next: ``bool[n]``: one cycle after the packet before, with no pause of firing between.
        azimuth_step: ``int64[n, groups]``, azimuth minus that of the group before, -18000..17999, 0.01 deg.
        is_joined: ``bool[n, groups]``: the group follows the one before without a pause.
    """

    model: Model
    is_dual: bool
    run: PacketRun
    host_ns: npt.NDArray[np.int64]
    host_step_ns: npt.NDArray[np.int64]
    is_next: npt.NDArray[np.bool_]
    azimuth_step: npt.NDArray[np.int64]
    is_joined: npt.NDArray[np.bool_]

    @property
    def cycle_us(self) -> float:
        """The model's time between packets."""
        return self.model.cycle_us(is_dual=self.is_dual)

    @property
    def records(self) -> npt.NDArray[Any]:
        """``CHANNEL_DTYPE[n, 12, 32]``."""
        return np.asarray(self.run.packets["blocks"]["channels"])


def packet_block(run: PacketRun, host_ns: npt.NDArray[np.int64], host_before_ns: int, model: Model, *, is_dual: bool) -> PacketBlock:
    """What follows what in a run.

    Args:
        run: The packets.
        host_ns: ``int64[n]``, capture times.
        host_before_ns: Capture time of the packet before; of the first one at the start of the stream.
        model: Of the sensor.
        is_dual: Blocks come in pairs of one azimuth.
    """
    steps = run.azimuth_steps(2 if is_dual else 1)
    is_next = run.is_next(model.cycle_us(is_dual=is_dual)) & ~steps.after_gap
    is_joined = ~steps.is_gap
    is_joined[:, 0] &= is_next
    return PacketBlock(
        model=model,
        is_dual=is_dual,
        run=run,
        host_ns=host_ns,
        host_step_ns=np.diff(host_ns, prepend=host_before_ns),
        is_next=is_next,
        azimuth_step=steps.step_cdeg,
        is_joined=is_joined,
    )
