"""Blocks of data packets of one sensor, as arrays: what the topics look at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.protocols.velodyne.models import STEP_TOLERANCE_US, Model
from hilsim.units import HOUR_US, TURN_CDEG

GAP_CDEG = 400  # more than four times the step of a firing group at the highest rate, 1200 rpm


@dataclass(frozen=True, kw_only=True)
class Predecessor:
    """What is kept of the packet before a block."""

    stamp_us: int
    host_ns: int
    azimuth: int
    has_gap: bool


@dataclass(frozen=True, kw_only=True)
class PacketBlock:
    """Data packets that follow each other, all of one model and mode.

    A *group* is what shares one azimuth: a block of the packet, or a pair of blocks in dual mode.

    Attributes:
        model: Of the sensor.
        is_dual: Blocks come in pairs of one azimuth.
        packets: ``DATA_PACKET_DTYPE[n]``.
        host_ns: ``int64[n]``, capture times.
        step_us: ``int64[n]``, stamp minus the stamp before; 0 for the stream's first packet.
        host_step_ns: ``int64[n]``, capture time minus the one before; 0 for the stream's first packet.
        knows_step: ``bool[n]``; False for the stream's first packet.
        is_next: ``bool[n]``: one cycle after the packet before, with no pause of firing between.
        azimuth_step: ``int64[n, groups]``, azimuth minus that of the group before, -18000..17999, 0.01 deg.
        is_joined: ``bool[n, groups]``: the group follows the one before without a pause.
    """

    model: Model
    is_dual: bool
    packets: npt.NDArray[Any]
    host_ns: npt.NDArray[np.int64]
    step_us: npt.NDArray[np.int64]
    host_step_ns: npt.NDArray[np.int64]
    knows_step: npt.NDArray[np.bool_]
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
        return np.asarray(self.packets["blocks"]["channels"])

    def predecessor(self) -> Predecessor:
        """What the next block must know of this one's last packet."""
        packet = self.packets[-1]
        return Predecessor(
            stamp_us=int(packet["timestamp"]),
            host_ns=int(self.host_ns[-1]),
            azimuth=int(packet["blocks"]["azimuth"][-1]),
            has_gap=bool((~self.is_joined[-1, 1:]).any()),
        )


def packet_block(
    packets: npt.NDArray[Any], host_ns: npt.NDArray[np.int64], model: Model, before: Predecessor | None, *, is_dual: bool
) -> PacketBlock:
    """Work out how packets follow each other.

    Args:
        packets: ``DATA_PACKET_DTYPE[n]``, n at least 1.
        host_ns: ``int64[n]``, capture times.
        model: Of the sensor.
        before: The packet before them, or None at the start of the stream.
        is_dual: Blocks come in pairs of one azimuth.
    """
    azimuth = packets["blocks"]["azimuth"].astype(np.int64)[:, :: 2 if is_dual else 1]
    stamp_us = packets["timestamp"].astype(np.int64)
    first = before or Predecessor(stamp_us=int(stamp_us[0]), host_ns=int(host_ns[0]), azimuth=int(azimuth[0, 0]), has_gap=True)
    step_us = (np.diff(stamp_us, prepend=first.stamp_us) + HOUR_US // 2) % HOUR_US - HOUR_US // 2
    azimuth_step = np.diff(azimuth.ravel(), prepend=first.azimuth).reshape(azimuth.shape)
    azimuth_step = (azimuth_step + TURN_CDEG // 2) % TURN_CDEG - TURN_CDEG // 2
    knows_step = np.full(len(packets), fill_value=True)
    knows_step[0] = before is not None
    is_joined = np.abs(azimuth_step) <= GAP_CDEG
    after_gap = np.full(len(packets), first.has_gap)
    after_gap[1:] = (~is_joined[:-1, 1:]).any(axis=1)
    is_next = knows_step & ~after_gap & (np.abs(step_us - model.cycle_us(is_dual=is_dual)) <= STEP_TOLERANCE_US)
    is_joined[:, 0] &= is_next
    return PacketBlock(
        model=model,
        is_dual=is_dual,
        packets=packets,
        host_ns=host_ns,
        step_us=step_us,
        host_step_ns=np.diff(host_ns, prepend=first.host_ns),
        knows_step=knows_step,
        is_next=is_next,
        azimuth_step=azimuth_step,
        is_joined=is_joined,
    )
