"""How Velodyne data packets of one sensor follow each other: what every reader of a stream asks first.

The data packet has no sequence number. Missing packets are found by the stamps: neighbours are one cycle apart, whose
length depends on model and return mode. A step of azimuth farther than the head turns from block to block is a gap, in which nothing was fired.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.protocols.velodyne.data import DATA_PACKET_DTYPE
from hilsim.protocols.velodyne.models import STEP_TOLERANCE_US
from hilsim.protocols.velodyne.steps import GAP_CDEG, wrapped_cdeg, wrapped_us

CLOCK_DOUBT_RATIO = 3e-4
"""How far a sensor's cycle may be from its model's: twice the worst clock in public captures (141 ppm)."""


def stacked_packets(payloads: Iterable[bytes]) -> npt.NDArray[Any]:
    """``DATA_PACKET_DTYPE[n]`` of payloads of 1206 bytes each; their flags are not looked at."""
    return np.frombuffer(b"".join(payloads), dtype=DATA_PACKET_DTYPE)


def stamp_steps_us(stamp_us: npt.NDArray[np.int64], before_us: int | None) -> npt.NDArray[np.int64]:
    """``int64[n]``: each stamp past the hour minus the one before, in -half an hour .. half an hour; 0 where there is none before."""
    return wrapped_us(np.diff(stamp_us, prepend=stamp_us[0] if before_us is None else before_us))


def whole_cycles(
    step_us: npt.NDArray[np.int64] | npt.NDArray[np.float64], cycle_us: float | npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The nearest whole number of cycles to each step, ``int64[n]`` (0 and less too), and how far each step is from it, ``float64[n]``, us."""
    cycles = np.rint(step_us / cycle_us).astype(np.int64)
    return cycles, np.abs(step_us - cycles * cycle_us)


@dataclass(frozen=True, kw_only=True)
class LastPacket:
    """What the next run must know of the packet before it.

    Attributes:
        stamp_us: Its stamp.
        azimuth: ``int64[12]`` of its blocks, 0.01 deg.
    """

    stamp_us: int
    azimuth: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class AzimuthSteps:
    """How azimuth goes on through a run, by *groups*: what shares one azimuth, a block or several.

    Attributes:
        azimuth: ``int64[n, m]`` of each group, 0.01 deg.
        step_cdeg: ``int64[n, m]`` since the group before, -18000 .. 17999; 0 for a stream's first.
        turned_cdeg: ``int64[n]`` since the first group of the packet before, likewise.
        after_gap: ``bool[n]``: the packet before has a gap inside.
    """

    azimuth: npt.NDArray[np.int64]
    step_cdeg: npt.NDArray[np.int64]
    turned_cdeg: npt.NDArray[np.int64]
    after_gap: npt.NDArray[np.bool_]

    @property
    def is_gap(self) -> npt.NDArray[np.bool_]:
        """``bool[n, m]``: the group does not go on from the one before."""
        return np.abs(self.step_cdeg) > GAP_CDEG

    @property
    def has_gap(self) -> npt.NDArray[np.bool_]:
        """``bool[n]``: there is a gap inside the packet, as across what a field of view leaves out."""
        return np.asarray(self.is_gap[:, 1:].any(axis=1))


@dataclass(frozen=True, kw_only=True)
class PacketRun:
    """Data packets of one sensor in the order of their arrival, and how each follows on the one before; build with ``packet_run``.

    Attributes:
        packets: ``DATA_PACKET_DTYPE[n]``.
        azimuth: ``int64[n, 12]`` of each block, 0.01 deg.
        stamp_us: ``int64[n]``, as in the packets: since the full hour.
        step_us: ``int64[n]`` since the packet before, or 0 where ``knows_step`` is False.
        knows_step: ``bool[n]``; False for a stream's first packet.
        before: The packet before the run, or None at a stream's start.
    """

    packets: npt.NDArray[Any]
    azimuth: npt.NDArray[np.int64]
    stamp_us: npt.NDArray[np.int64]
    step_us: npt.NDArray[np.int64]
    knows_step: npt.NDArray[np.bool_]
    before: LastPacket | None

    def last(self) -> LastPacket:
        """What the next run must know."""
        return LastPacket(stamp_us=int(self.stamp_us[-1]), azimuth=self.azimuth[-1])

    def is_next(self, cycle_us: float) -> npt.NDArray[np.bool_]:
        """``bool[n]``: one cycle after the packet before."""
        return np.asarray(self.knows_step & (np.abs(self.step_us - cycle_us) <= STEP_TOLERANCE_US))

    def azimuth_steps(self, group_blocks: int = 1) -> AzimuthSteps:
        """How azimuth goes on, where ``group_blocks`` blocks each share one: 2 in dual mode, 4 of a VLS-128."""
        azimuth = self.azimuth[:, ::group_blocks]
        before = np.full_like(azimuth[0], azimuth[0, 0]) if self.before is None else self.before.azimuth[::group_blocks]
        rows = np.concatenate((before[None], azimuth))
        step_cdeg = wrapped_cdeg(np.diff(rows.ravel(), prepend=rows[0, 0])).reshape(rows.shape)
        return AzimuthSteps(
            azimuth=azimuth,
            step_cdeg=step_cdeg[1:],
            turned_cdeg=wrapped_cdeg(np.diff(rows[:, 0])),
            after_gap=np.asarray((np.abs(step_cdeg[:-1, 1:]) > GAP_CDEG).any(axis=1)),
        )


def packet_run(packets: npt.NDArray[Any], before: LastPacket | None) -> PacketRun:
    """Work out how packets follow each other.

    Args:
        packets: ``DATA_PACKET_DTYPE[n]``, n at least 1.
        before: The packet before them, ``last()`` of the run before; None at a stream's start.
    """
    stamp_us = packets["timestamp"].astype(np.int64)
    knows_step = np.full(len(packets), fill_value=True)
    knows_step[0] = before is not None
    return PacketRun(
        packets=packets,
        azimuth=packets["blocks"]["azimuth"].astype(np.int64),
        stamp_us=stamp_us,
        step_us=stamp_steps_us(stamp_us, None if before is None else before.stamp_us),
        knows_step=knows_step,
        before=before,
    )
