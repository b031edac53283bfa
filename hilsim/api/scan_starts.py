"""When scans of an emulated lidar begin: found in its packets' bytes, given in rig time."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import first_sequence_of, packet_device_ns
from hilsim.protocols.cepton.stdv import FRAME_PARITY, POINT_FLAGS_OFFSET, POINT_SIZE, header_size
from hilsim.protocols.velodyne.data import BLOCKS, DATA_PACKET_DTYPE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE
from hilsim.sensor.clock import rig_from_device
from hilsim.sensor.velodyne_specs import VelodyneSpec
from hilsim.units import TURN_CDEG

_BACKWARDS_CDEG = 100  # what an encoder's noise may turn the head back; a head does not turn by almost a whole turn from block to block


class ScanStarts(Protocol):
    """Finds the beginnings of scans in packets that follow each other."""

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        """Rig times (ns) at which scans begin, of the next packets.

        Args:
            first_packet: Index of the first of them.
            payloads: ``uint8[n, size]``.
        """


def scan_starts(lidar: LidarEmulator) -> ScanStarts:
    """Of a lidar, whose packets are then given from some packet on, none left out."""
    return _TurnStarts(lidar) if isinstance(lidar.setting.spec, VelodyneSpec) else _ImageStarts(lidar)


class _TurnStarts:
    """A turn begins where the head passes azimuth 0: interpolated between the azimuths of blocks, as the firings are."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._lidar = lidar
        self._block_ns = lidar.plan.sequence_ns * (RECORDS_PER_BLOCK // lidar.plan.firing_offset_ns.size)
        self._before: tuple[int, int] | None = None
        """How far the last block's head had turned, and the farthest until then: what noise turned back is not passed again."""

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        packets = payloads.view(DATA_PACKET_DTYPE).reshape(-1)
        returns = RETURNS_BY_MODE_BYTE[packets["return_mode"]]
        has_own_time = np.arange(BLOCKS) % returns[:, np.newaxis] == 0  # the second block of a pair repeats the first one's
        azimuth = packets["blocks"]["azimuth"][has_own_time].astype(np.int64)
        start_ns = [packet_device_ns(self._lidar.at_packet(first_packet + row).plan, first_packet + row) for row in range(returns.size)]
        block_ns = (np.array(start_ns)[:, np.newaxis] + np.arange(BLOCKS) // returns[:, np.newaxis] * self._block_ns)[has_own_time]
        found: list[int] = []
        if self._before is None:
            turned = np.cumsum(np.concatenate([azimuth[:1], _steps(azimuth)]))
            if first_packet == 0 and azimuth.size > 1 and azimuth[0] <= turned[1] - turned[0]:
                found.append(self._rig_ns(0.0))  # it was switched on as it passed: nothing of the turn is missing
        else:
            turned_before, _ = self._before
            turned = np.cumsum(np.concatenate([[turned_before], _steps(np.concatenate([[turned_before % TURN_CDEG], azimuth]))]))
            block_ns = np.concatenate([block_ns[:1] - self._block_ns, block_ns])
        farthest = np.maximum.accumulate(turned)
        if self._before is not None:
            farthest = np.maximum(farthest, self._before[1])
        for block in np.flatnonzero(np.diff(farthest // TURN_CDEG)) + 1:
            passed = farthest[block] // TURN_CDEG * TURN_CDEG
            share = (passed - turned[block - 1]) / (turned[block] - turned[block - 1])
            found.append(self._rig_ns(block_ns[block - 1] + share * self._block_ns))
        self._before = int(turned[-1]), int(farthest[-1])
        return found

    def _rig_ns(self, device_ns: float) -> int:
        return int(rig_from_device(self._lidar.plan.clock, round(device_ns)))


class _ImageStarts:
    """A scan begins with the first firing of another frame parity."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._plan = lidar.plan
        self._flags = slice(header_size(lidar.plan.header_version) + POINT_FLAGS_OFFSET, None, POINT_SIZE * lidar.plan.choice.size)
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
    """From each azimuth to the next, 0.01 deg, forwards except for noise."""
    step = np.diff(azimuth) % TURN_CDEG
    return np.where(step > TURN_CDEG - _BACKWARDS_CDEG, step - TURN_CDEG, step)
