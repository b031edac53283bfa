"""Runs of packets as arrays, the input of all topics."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.velodyne.conformance.head_motion import Motion
from hilsim.families.velodyne.protocol.models import Model
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_DTYPE, POSITION_PACKET_SIZE
from hilsim.families.velodyne.stream import ModelPackets
from hilsim.read.analysis.conformance.findings import Place


@dataclass(frozen=True, kw_only=True)
class DataBlock(ModelPackets):
    """Consecutive data packets of one sensor with equal factory bytes; a packet's predecessor is the one judged before it."""

    first_index: Annotated[int, "Index of the first packet among the sensor's data packets."]
    frames: Annotated[npt.NDArray[np.int64], "``int64[n]``, frame numbers."]
    azimuth: Annotated[
        npt.NDArray[np.int64], "``int64[n, m]``, azimuth of each group of firings with its own azimuth (m = 12, dual 6; VLS-128 3, dual 1), 0.01 deg."
    ]
    is_next: Annotated[npt.NDArray[np.bool_], "``bool[n]``, whether a packet is exactly one cycle after its predecessor."]
    motion: Annotated[Motion, "Motion of the head during the block."]

    @property
    def has_leap(self) -> npt.NDArray[np.bool_]:
        """Whether azimuth leaps inside each packet, as across the part of the turn outside the field of view, ``bool[n]``."""
        return np.asarray(self.motion.is_leap.any(axis=1))

    @property
    def distance(self) -> npt.NDArray[np.uint16]:
        """Raw distances, ``uint16[n, 12, 32]`` as ``records``."""
        distance: npt.NDArray[np.uint16] = self.records["distance"]
        return distance

    @property
    def reflectivity(self) -> npt.NDArray[np.uint8]:
        """Reflectivities, as ``distance``."""
        reflectivity: npt.NDArray[np.uint8] = self.records["reflectivity"]
        return reflectivity

    def place(self, row: int, byte_offset: int | None = None) -> Place:
        """Place of packet ``row`` of this block."""
        return Place(self.first_index + int(row), int(self.frames[row]), byte_offset)


@dataclass(frozen=True, kw_only=True)
class PositionBlock:
    """Consecutive position packets of one sensor."""

    model: Annotated[Model | None, "Model by the sensor's data packets, or None before any."]
    is_dual: Annotated[bool, "Whether the data packets are in dual return mode."]
    first_index: Annotated[int, "Index of the first packet among the sensor's position packets."]
    frames: Annotated[npt.NDArray[np.int64], "``int64[n]``, frame numbers."]
    host_stamp_ns: Annotated[npt.NDArray[np.int64], "``int64[n]``, capture times."]
    packets: Annotated[npt.NDArray[Any], "``POSITION_PACKET_DTYPE[n]``, packets."]
    stamp_us: Annotated[npt.NDArray[np.int64], "``int64[n]``, stamps of the packets."]
    data_stamp_us: Annotated[npt.NDArray[np.int64], "``int64[n]``, stamp of the last data packet captured before each, or -1."]

    def place(self, row: int, byte_offset: int | None = None) -> Place:
        """Place of packet ``row`` of this block."""
        return Place(self.first_index + int(row), int(self.frames[row]), byte_offset)


def stack_position(datagrams: list[CapturedDatagram]) -> npt.NDArray[Any]:
    """Join payloads of the right size to ``POSITION_PACKET_DTYPE[n]``."""
    payloads = np.frombuffer(b"".join(datagram.payload for datagram in datagrams), dtype=np.uint8)
    return payloads.reshape(-1, POSITION_PACKET_SIZE).view(POSITION_PACKET_DTYPE)[:, 0]


def frame_numbers(datagrams: list[CapturedDatagram]) -> npt.NDArray[np.int64]:
    """Frame numbers, ``int64[n]``."""
    return np.array([datagram.frame for datagram in datagrams], dtype=np.int64)


def host_stamps(datagrams: list[CapturedDatagram]) -> npt.NDArray[np.int64]:
    """Host stamps in ns, ``int64[n]``."""
    return np.array([datagram.host_stamp_ns for datagram in datagrams], dtype=np.int64)
