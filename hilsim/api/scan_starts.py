"""Find the beginnings of scans of an emulated lidar in its packets' bytes, in rig time."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import first_sequence_of, write_sequences_of
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, POINT_FLAGS_OFFSET, POINT_SIZE, header_size
from hilsim.families.ouster.specs import OusterSpec
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_DTYPE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.clock import rig_from_device
from hilsim.units import TURN_CDEG

_BACKWARDS_CDEG = 100  # largest apparent backward step by the encoder's noise; no head turns by almost a whole turn between blocks


class ScanStarts(Protocol):
    """Finder of the beginnings of scans in consecutive packets."""

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        """Find rig times (ns) at which scans begin in the next packets.

        Args:
            first_packet: Index of the first packet.
            payloads: ``uint8[n, size]``, payloads of the packets.
        """


def scan_starts(lidar: LidarEmulator) -> ScanStarts:
    """Make a finder for a lidar, which takes its packets from any packet on, without gaps."""
    if isinstance(lidar.setting.spec, OusterSpec):
        return _FrameStarts(lidar)
    return _TurnStarts(lidar) if isinstance(lidar.setting.spec, VelodyneSpec) else _ImageStarts(lidar)


class _TurnStarts:
    """Finder of turns, which begin at azimuth 0, interpolated between the azimuths of blocks as for firings."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._lidar = lidar
        self._before: tuple[int, int, int] | None = None
        """Device time and total angle at the last block, and the largest angle until then, so that a step back by noise passes no azimuth twice."""

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        packets = payloads.view(DATA_PACKET_DTYPE).reshape(-1)
        returns = RETURNS_BY_MODE_BYTE[packets["return_mode"]]
        has_own_time = np.arange(BLOCKS) % returns[:, np.newaxis] == 0  # the second block of a pair repeats the first one's
        azimuth = packets["blocks"]["azimuth"][has_own_time].astype(np.int64)
        block_ns = np.concatenate([self._block_times_ns(first_packet + row) for row in range(returns.size)])
        found: list[int] = []
        if self._before is None:
            turned = np.cumsum(np.concatenate([azimuth[:1], _steps(azimuth)]))
            if first_packet == 0 and azimuth.size > 1 and azimuth[0] <= turned[1] - turned[0]:
                found.append(self._rig_ns(0.0))  # it was switched on at azimuth 0: the turn is complete
        else:
            before_ns, turned_before, _ = self._before
            turned = np.cumsum(np.concatenate([[turned_before], _steps(np.concatenate([[turned_before % TURN_CDEG], azimuth]))]))
            block_ns = np.concatenate([[before_ns], block_ns])
        farthest = np.maximum.accumulate(turned)
        if self._before is not None:
            farthest = np.maximum(farthest, self._before[2])
        for block in np.flatnonzero(np.diff(farthest // TURN_CDEG)) + 1:
            passed = farthest[block] // TURN_CDEG * TURN_CDEG
            share = (passed - turned[block - 1]) / (turned[block] - turned[block - 1])
            found.append(self._rig_ns(block_ns[block - 1] + share * (block_ns[block] - block_ns[block - 1])))
        self._before = int(block_ns[-1]), int(turned[-1]), int(farthest[-1])
        return found

    def _block_times_ns(self, packet: int) -> npt.NDArray[np.int64]:
        """Device times of the first firings of a packet's blocks, without the second blocks of pairs."""
        plan = self._lidar.at_packet(packet).plan
        sequence = np.zeros(plan.sequences_per_packet, np.int64)
        write_sequences_of(plan, packet, sequence)
        return sequence[:: max(RECORDS_PER_BLOCK // plan.firing_offset_ns.size, 1)] * plan.sequence_ns

    def _rig_ns(self, device_ns: float) -> int:
        return int(rig_from_device(self._lidar.plan.clock, round(device_ns)))


class _FrameStarts:
    """Finder of an Ouster's frames, each of which begins with the first packet of a turn that is sent."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._lidar = lidar

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        found = []
        for packet in range(first_packet, first_packet + len(payloads)):
            plan = self._lidar.at_packet(packet).plan
            first = int(first_sequence_of(plan, packet))
            within = (first - plan.own.frame_sequence) % plan.own.columns_per_frame
            if within == plan.own.slots[0] * plan.sequences_per_packet:
                found.append(int(rig_from_device(plan.clock, first * plan.sequence_ns)))
        return found


class _ImageStarts:
    """Finder of image scans, which begin with the first firing of another frame parity."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._plan = lidar.plan
        self._flags = slice(header_size(lidar.plan.own.header_version) + POINT_FLAGS_OFFSET, None, POINT_SIZE * lidar.plan.choice.size)
        self._before: int | None = None

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        plan = self._plan
        parity = (payloads[:, self._flags] & FRAME_PARITY).reshape(-1)
        before = parity[0] if self._before is None else self._before
        self._before = int(parity[-1])
        channels = plan.firing_offset_ns.size
        found = []
        for firing in np.flatnonzero(np.diff(parity, prepend=np.uint8(before))).tolist():
            sequence = first_sequence_of(plan, first_packet) + firing // channels
            found.append(int(rig_from_device(plan.clock, sequence * plan.sequence_ns + int(plan.firing_offset_ns[firing % channels]))))
        return found


def _steps(azimuth: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Steps from each azimuth to the next in 0.01 deg, forwards except for noise."""
    step = np.diff(azimuth) % TURN_CDEG
    return np.where(step > TURN_CDEG - _BACKWARDS_CDEG, step - TURN_CDEG, step)
