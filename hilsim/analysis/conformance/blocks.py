"""Runs of packets as arrays: what the topics look at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.conformance.findings import Place
from hilsim.analysis.conformance.motion import Motion
from hilsim.analysis.velodyne_stream import PacketRun
from hilsim.capture.datagram import CapturedDatagram
from hilsim.protocols.velodyne.models import Model
from hilsim.protocols.velodyne.position import POSITION_PACKET_DTYPE, POSITION_PACKET_SIZE


@dataclass(frozen=True, kw_only=True)
class DataBlock:
    """Data packets of one sensor that follow each other and carry the same factory bytes.

    Attributes:
        model: What the packets are checked as.
        is_dual: Blocks come in pairs of one azimuth.
        cycle_us: Expected time between packets.
        first_index: Index of the first packet among the sensor's data packets.
        frames: ``int64[n]``, frame numbers.
        host_stamp_ns: ``int64[n]``.
        run: The packets, and how they follow each other; a packet's predecessor is the one judged before it.
        azimuth: ``int64[n, m]``, of each group of firings with an azimuth of its own (m = 12, dual 6), 0.01 deg.
        is_next: ``bool[n]``: exactly one cycle after its predecessor.
        motion: How the head turned meanwhile.
    """

    model: Model
    is_dual: bool
    cycle_us: float
    first_index: int
    frames: npt.NDArray[np.int64]
    host_stamp_ns: npt.NDArray[np.int64]
    run: PacketRun
    azimuth: npt.NDArray[np.int64]
    is_next: npt.NDArray[np.bool_]
    motion: Motion

    @property
    def has_leap(self) -> npt.NDArray[np.bool_]:
        """``bool[n]``: azimuth leaps inside the packet, as across the part of the turn outside the field of view."""
        return np.asarray(self.motion.is_leap.any(axis=1))

    @property
    def distance(self) -> npt.NDArray[np.uint16]:
        """``uint16[n, 12, 32]``, raw."""
        distance: npt.NDArray[np.uint16] = self.run.packets["blocks"]["channels"]["distance"]
        return distance

    @property
    def reflectivity(self) -> npt.NDArray[np.uint8]:
        """``uint8[n, 12, 32]``."""
        reflectivity: npt.NDArray[np.uint8] = self.run.packets["blocks"]["channels"]["reflectivity"]
        return reflectivity

    def place(self, row: int, byte_offset: int | None = None) -> Place:
        """Where packet ``row`` of this block is."""
        return Place(self.first_index + int(row), int(self.frames[row]), byte_offset)


@dataclass(frozen=True, kw_only=True)
class PositionBlock:
    """Position packets of one sensor that follow each other.

    Attributes:
        model: What the sensor's data packets were taken for, or None before any.
        is_dual: The data packets are in dual return mode.
        first_index: Index of the first packet among the sensor's position packets.
        frames: ``int64[n]``, frame numbers.
        host_stamp_ns: ``int64[n]``.
        packets: ``POSITION_PACKET_DTYPE[n]``.
        stamp_us: ``int64[n]``.
        data_stamp_us: ``int64[n]``, stamp of the data packet captured last before each, or -1.
    """

    model: Model | None
    is_dual: bool
    first_index: int
    frames: npt.NDArray[np.int64]
    host_stamp_ns: npt.NDArray[np.int64]
    packets: npt.NDArray[Any]
    stamp_us: npt.NDArray[np.int64]
    data_stamp_us: npt.NDArray[np.int64]

    def place(self, row: int, byte_offset: int | None = None) -> Place:
        """Where packet ``row`` of this block is."""
        return Place(self.first_index + int(row), int(self.frames[row]), byte_offset)


def stack_position(datagrams: list[CapturedDatagram]) -> npt.NDArray[Any]:
    """``POSITION_PACKET_DTYPE[n]`` of payloads that all have the right size."""
    payloads = np.frombuffer(b"".join(datagram.payload for datagram in datagrams), dtype=np.uint8)
    return payloads.reshape(-1, POSITION_PACKET_SIZE).view(POSITION_PACKET_DTYPE)[:, 0]


def frame_numbers(datagrams: list[CapturedDatagram]) -> npt.NDArray[np.int64]:
    """``int64[n]`` frame numbers."""
    return np.array([datagram.frame for datagram in datagrams], dtype=np.int64)


def host_stamps(datagrams: list[CapturedDatagram]) -> npt.NDArray[np.int64]:
    """``int64[n]`` host stamps, ns."""
    return np.array([datagram.host_stamp_ns for datagram in datagrams], dtype=np.int64)
