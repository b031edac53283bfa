"""Data packets of a Velodyne to points, and to scans, which are turns of its head."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import write_sequences_of
from hilsim.families.velodyne.points import decode_velodyne, geometry_of_packets
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_DTYPE, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE, ReturnMode
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.protocol.position import decode_position_packets
from hilsim.families.velodyne.recognition import BLOCK_FLAGS, is_first_hdl_64e
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.read.analysis.decode import batch_of
from hilsim.read.scans.part import ScansPart
from hilsim.read.scans.points import DECODED_DTYPE
from hilsim.read.scans.stream import SensorStream
from hilsim.read.scans.turns import HeadTurns, TurnStarts
from hilsim.units import HOUR_NS

if TYPE_CHECKING:
    from hilsim.families.velodyne.protocol.geometry import FiringGeometry

_FLAGS = [flag[1] for flag in BLOCK_FLAGS]


class VelodyneDecoder:
    """Decoder of one sensor; see ``hilsim.read.scans.stream.StreamDecoder``."""

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


def _blocks(lidar: LidarEmulator, first_packet: int, payloads: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Azimuths of blocks, without the second blocks of pairs, which repeat the first ones', and device times of their first firings."""
    packets = payloads.view(DATA_PACKET_DTYPE).reshape(-1)
    returns = RETURNS_BY_MODE_BYTE[packets["return_mode"]]
    has_own_time = np.arange(BLOCKS) % returns[:, np.newaxis] == 0
    times_ns = []
    for packet in range(first_packet, first_packet + returns.size):
        plan = lidar.at_packet(packet).plan
        sequence = np.zeros(plan.sequences_per_packet, np.int64)
        write_sequences_of(plan.field_of_view, plan, packet, sequence)
        times_ns.append(sequence[:: max(RECORDS_PER_BLOCK // plan.firing_offset_ns.size, 1)] * plan.sequence_ns)
    return packets["blocks"]["azimuth"][has_own_time].astype(np.int64), np.concatenate(times_ns)


def _sentence(payload: bytes) -> bytes:
    return bytes(decode_position_packets(np.frombuffer(payload, np.uint8)[np.newaxis])["nmea"][0]).rstrip(b"\0")


PART = ScansPart(
    serials=_serials,
    serial=lambda _payload, _metadata: "",
    begin=lambda sensor, _first, publish, pose, _metadata: SensorStream(sensor, VelodyneDecoder(), publish, pose),
    decoder=lambda _first, _where, model, _metadata: VelodyneDecoder(model),
    starts=lambda lidar: TurnStarts(lidar, _blocks),
    returns=_returns,
    models=tuple(BY_NAME),
    stamp_cycle_ns=HOUR_NS,
    sentence=_sentence,
)
