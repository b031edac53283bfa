"""Blocks of lidar packets of one sensor as arrays, the input of all statistics."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.headers import VALID_STATUS
from hilsim.families.ouster.protocol.lidar import LidarPackets
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET


@dataclass(frozen=True, kw_only=True)
class LidarBlock:
    """Consecutive lidar packets of one sensor.

    Attributes:
        metadata: Metadata of the sensor.
        packets: Headers, columns and pixels.
        position: ``int64[n]``, number of the packet, counted through all frames.
        host_ns: ``int64[n]``, capture times.
        host_step_ns: ``int64[n]``, capture time minus that of the former packet; 0 for the stream's first packet.
        is_next: ``bool[n]``, whether a packet directly follows the former one, also from frame to frame.
        former_stamp_ns: Stamp of the last column of the packet before the block; 0 for the first one.
    """

    metadata: SensorMetadata
    packets: LidarPackets
    position: npt.NDArray[np.int64]
    host_ns: npt.NDArray[np.int64]
    host_step_ns: npt.NDArray[np.int64]
    is_next: npt.NDArray[np.bool_]
    former_stamp_ns: int

    @property
    def column_ns(self) -> float:
        """Nominal time between columns."""
        return 1e9 / (self.metadata.columns_per_frame * self.metadata.rate_hz)

    @property
    def cycle_us(self) -> float:
        """Nominal time between packets."""
        return COLUMNS_PER_PACKET * self.column_ns / 1000.0

    @property
    def stamp_ns(self) -> npt.NDArray[np.int64]:
        """Stamps of the columns, ``int64[n, 16]``."""
        return np.asarray(self.packets.columns["timestamp_ns"].astype(np.int64))

    @property
    def is_valid(self) -> npt.NDArray[np.bool_]:
        """Whether a column has pixels, ``bool[n, 16]``."""
        columns = self.packets.columns
        return np.asarray((columns["status"] & VALID_STATUS != 0) & (columns["measurement_id"] < self.metadata.columns_per_frame))

    @property
    def follows(self) -> npt.NDArray[np.bool_]:
        """Whether a column directly follows the former one of the stream, ``bool[n, 16]``."""
        follows = np.ones((len(self.is_next), COLUMNS_PER_PACKET), np.bool_)
        follows[:, 0] = self.is_next
        return follows
