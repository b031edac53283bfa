"""What a family gives so that its sensors' packets are read as points and scans: the module ``scans`` of its folder has it as ``PART``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.read.scans.losses import Losses
from hilsim.read.scans.scan import PoseOf, Publish


class PointDecoder(Protocol):
    """Decoder of the packets of points of one sensor.

    Attributes:
        dtype: Type of its points for users: ``DECODED_DTYPE``, or one with more fields.
    """

    dtype: np.dtype[Any]

    def takes(self, payload: bytes) -> bool:
        """Whether a packet of points has the sensor's form."""

    def points(self, payloads: Sequence[bytes]) -> npt.NDArray[Any]:
        """Points ``POINT_DTYPE[n]``, or with more fields, of consecutive packets, packet by packet.

        Raises:
            CaptureError: the model that sent them is not known.
        """


class Stream(Protocol):
    """Decoder of one sensor to scans.

    Attributes:
        sensor: Name of the sensor.
        losses: Counts of what is missing.
        packets: Number of packets of points decoded so far.
    """

    sensor: str
    losses: Losses
    packets: int

    def add(self, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Decode the sensor's next packets of points, those of some rows of a batch."""

    def is_by(self, payload: bytes, metadata: Any) -> bool:
        """Whether a packet of the sensor is decoded as this stream does, by the present metadata."""

    def reset(self) -> None:
        """Forget the packets of incomplete scans, as after a seek."""


class ScanStarts(Protocol):
    """Finder of the beginnings of scans in consecutive packets of an emulated lidar."""

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        """Find rig times (ns) at which scans begin in the next packets.

        Args:
            first_packet: Index of the first packet.
            payloads: ``uint8[n, size]``, payloads of the packets.
        """


@dataclass(frozen=True, kw_only=True)
class ScansPart:
    """How a family's packets of points are read.

    Attributes:
        serials: Serial number of the sensor that sent each row of a batch, ``int64[n]``: 0 where packets have none, -1 for what is no packet of points of the
            family; by the metadata of its sensors.
        serial: Serial number of the sensor that sent a packet of points, as a user names it, by the metadata; empty where packets have none.
        begin: Stream of a sensor by its name, a packet, where its scans go, its poses, and the metadata.
        decoder: Decoder of a sensor by a packet, its name in messages, the model that a user has named, or an empty text, and the metadata.
        starts: Finder of the beginnings of scans of an emulated lidar, which takes its packets from any packet on, without gaps.
        returns: Names of a point's returns, in the order of ``return``, by a packet.
        models: Names of models that a user may give to ``decoder``.
        stamp_cycle_ns: Time after which the stamps of packets begin again from 0; 0: they do not.
        sentence: NMEA sentence in a packet of the stream ``position``.
    """

    serials: Callable[[DatagramArrays, npt.NDArray[np.intp], Any], npt.NDArray[np.int64]]
    serial: Callable[[bytes, Any], str]
    begin: Callable[[str, bytes, Publish, PoseOf, Any], Stream]
    decoder: Callable[[bytes, str, str, Any], PointDecoder]
    starts: Callable[[LidarEmulator], ScanStarts]
    returns: Callable[[bytes], tuple[str, ...]]
    models: tuple[str, ...] = ()
    stamp_cycle_ns: int = 0
    sentence: Callable[[bytes], bytes] | None = None


def payload_of(batch: DatagramArrays, row: int) -> bytes:
    """Payload of a row of a batch."""
    return batch.data[batch.start[row] : batch.start[row] + batch.size[row]].tobytes()
