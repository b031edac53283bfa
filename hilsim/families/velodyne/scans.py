"""Data packets of a Velodyne to points, and to scans, which are turns of its head."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.decode import batch_of
from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import write_sequences_of
from hilsim.families.velodyne.points import decode_velodyne, geometry_of_packets
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_DTYPE, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE, ReturnMode
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.protocol.position import decode_position_packets
from hilsim.families.velodyne.recognition import BLOCK_FLAGS, is_first_hdl_64e
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.scans.part import ScansPart
from hilsim.scans.points import DECODED_DTYPE
from hilsim.scans.stream import SensorStream
from hilsim.scans.turns import HeadTurns
from hilsim.sensor.clock import rig_from_device
from hilsim.units import HOUR_NS, TURN_CDEG

if TYPE_CHECKING:
    from hilsim.families.velodyne.protocol.geometry import FiringGeometry

_FLAGS = [flag[1] for flag in BLOCK_FLAGS]
_BACKWARDS_CDEG = 100  # largest apparent backward step by the encoder's noise; no head turns by almost a whole turn between blocks


class VelodyneDecoder:
    """Decoder of one sensor; see ``hilsim.scans.stream.StreamDecoder``."""

    dtype = DECODED_DTYPE

    def __init__(self, model: str = "") -> None:
        """Decode packets of a model; without a name, of the one that the first packets are recognised to be of."""
        self._geometry: FiringGeometry | None = BY_NAME[model].geometry if model else None

    @property
    def is_sure(self) -> bool:
        """Whether the model is known."""
        return self._geometry is not None

    def takes(self, _payload: bytes) -> bool:
        """Each data packet is decoded."""
        return True

    def points(self, payloads: Sequence[bytes]) -> npt.NDArray[Any]:
        """Points of consecutive data packets.

        Raises:
            CaptureError: the lasers of the model are not known.
        """
        self._geometry = self._geometry or geometry_of_packets(stacked_packets(payloads))
        return decode_velodyne(batch_of(payloads), self._geometry)

    def new_turns(self) -> HeadTurns:
        """Turns of the head."""
        return HeadTurns()

    def stamps(self, payloads: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Stamps and first azimuths."""
        packets = stacked_packets(payloads)
        return packets["timestamp"].astype(np.int64) * 1000, packets["blocks"]["azimuth"][:, 0].astype(np.int64)


def _serials(batch: DatagramArrays, rows: npt.NDArray[np.intp], _metadata: None) -> npt.NDArray[np.int64]:
    found = np.full(rows.size, -1, np.int64)
    sized = np.flatnonzero(batch.size[rows] == DATA_PACKET_SIZE)
    places = np.arange(0, 100 * BLOCKS, 100)[:, np.newaxis] + np.arange(2)
    flags = batch.data[batch.start[rows[sized], np.newaxis, np.newaxis] + places] if sized.size else np.empty((0, BLOCKS, 2), np.uint8)
    is_block = (flags[:, 0, 0] == 0xFF) & np.isin(flags[:, 0, 1], _FLAGS)
    found[sized[is_block & ~is_first_hdl_64e((flags[:, :, 1] == 0xEE).sum(axis=1), (flags[:, :, 1] == 0xDD).sum(axis=1))]] = 0
    return found


def _returns(payload: bytes) -> tuple[str, ...]:
    """The other return of a pair is the strongest or the second strongest, which its packet leaves open."""
    mode = ReturnMode.find(payload[1204])
    if mode is not None and mode.is_dual:
        return "last", "second"
    return ("last" if mode is ReturnMode.LAST else "strongest",)


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


def _steps(azimuth: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Steps from each azimuth to the next in 0.01 deg, forwards except for noise."""
    step = np.diff(azimuth) % TURN_CDEG
    return np.where(step > TURN_CDEG - _BACKWARDS_CDEG, step - TURN_CDEG, step)


def _sentence(payload: bytes) -> bytes:
    return bytes(decode_position_packets(np.frombuffer(payload, np.uint8)[np.newaxis])["nmea"][0]).rstrip(b"\0")


PART = ScansPart(
    serials=_serials,
    serial=lambda _payload, _metadata: "",
    begin=lambda sensor, _first, publish, pose, _metadata: SensorStream(sensor, VelodyneDecoder(), publish, pose),
    decoder=lambda _first, _where, model, _metadata: VelodyneDecoder(model),
    starts=_TurnStarts,
    returns=_returns,
    models=tuple(BY_NAME),
    stamp_cycle_ns=HOUR_NS,
    sentence=_sentence,
)
