"""Blocks of data packets of one sensor as arrays, the input of all statistics."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.protocol.models import Model
from hilsim.families.velodyne.stream import ModelPackets, PacketRun


@dataclass(frozen=True, kw_only=True)
class PacketBlock(ModelPackets):
    """Consecutive data packets of one model and mode, with the steps between groups.

    A *group* is a set of blocks with one azimuth: one block of the packet, or a pair of blocks in dual mode; of a VLS-128 four blocks.
    """

    is_next: Annotated[npt.NDArray[np.bool_], "``bool[n]``, whether a packet is one cycle after the former one, without a pause of firing."]
    azimuth_step: Annotated[npt.NDArray[np.int64], "``int64[n, groups]``, azimuth minus that of the former group, -18000..17999, 0.01 deg."]
    is_joined: Annotated[npt.NDArray[np.bool_], "``bool[n, groups]``, whether a group follows the former one without a pause."]


def packet_block(run: PacketRun, host_ns: npt.NDArray[np.int64], host_before_ns: int, model: Model, *, is_dual: bool) -> PacketBlock:
    """Find the steps between the packets and groups of a run.

    Args:
        run: Packets of the run.
        host_ns: ``int64[n]``, capture times.
        host_before_ns: Capture time of the former packet; at the start of the stream, of the first packet.
        model: Model of the sensor.
        is_dual: Whether blocks come in pairs of one azimuth.
    """
    steps = run.azimuth_steps(model.group_blocks(is_dual=is_dual), stamps_last=model.stamps_last_firing)
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
