"""Statistics of the columns' stamps, of frames, and of inertial measurements.

An encoder triggers the columns, so their steps vary with the angle and are no white noise.
"""

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.imu import IMU_PACKET_SIZE, MEASUREMENT_SIZE
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET
from hilsim.families.ouster.stream import LidarBlock
from hilsim.read.analysis.comparison.histogram import Histogram
from hilsim.read.analysis.scatter import Scatter

GRIDS_NS = (10, 8)
"""Steps of the stamps of Rev 6 (firmware to 2.3) and Rev 7 units."""
_STEP_BIN_US, _LONGEST_STEP_US = 0.002, 400.0
_FRAME_BIN_US, _LONGEST_FRAME_US = 1.0, 400_000.0
_NEVER = -(1 << 62)


class ColumnStatistics:
    """Steps and grid of the stamps of columns, and columns that are missing.

    Attributes:
        steps: Steps between neighbouring columns in us, in bins of 2 ns.
        scatter: Scatter of the steps about their nominal length, ns; white noise of the stamps correlates neighbours by -0.5.
        stamps: Number of stamps.
        on_grid: ``int64[2]``, number of stamps that are multiples of each of ``GRIDS_NS``.
        present: Number of columns of the window that were received with pixels.
        without_pixels: Number of columns of the window that were received without.
    """

    def __init__(self, metadata: SensorMetadata) -> None:
        self.steps = Histogram(first=0.0, width=_STEP_BIN_US, bins=round(_LONGEST_STEP_US / _STEP_BIN_US))
        self.stamps = 0
        self.on_grid = np.zeros(len(GRIDS_NS), np.int64)
        self.present = 0
        self.without_pixels = 0
        self._first, self._last = metadata.window
        self.scatter = Scatter()

    def look(self, block: LidarBlock) -> None:
        """Add a block."""
        stamps, before_ns = block.stamp_ns.ravel(), 0 if block.before is None else block.before.stamp_ns
        step = np.diff(stamps, prepend=before_ns)
        follows = block.follows.ravel() & (stamps > 0) & (np.concatenate((np.array([before_ns]), stamps[:-1])) > 0)
        self.steps.add(step[follows] / 1000.0)
        self.scatter.add(step - block.column_ns, follows)
        known = stamps[stamps > 0]
        self.stamps += known.size
        self.on_grid += [np.count_nonzero(known % grid == 0) for grid in GRIDS_NS]
        is_inside, has_pixels = self._is_inside(block.ids), block.has_pixels
        self.present += int((is_inside & has_pixels).sum())
        self.without_pixels += int((is_inside & ~has_pixels).sum())

    def _is_inside(self, column: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        after, before = column >= self._first, column <= self._last
        return after & before if self._first <= self._last else after | before


class FrameStatistics:
    """Time from turn to turn.

    Attributes:
        durations: Stamp of each packet minus that of the same packet one frame earlier, us.
    """

    def __init__(self, metadata: SensorMetadata) -> None:
        self.durations = Histogram(first=0.0, width=_FRAME_BIN_US, bins=round(_LONGEST_FRAME_US / _FRAME_BIN_US))
        self._packets = metadata.columns_per_frame // COLUMNS_PER_PACKET
        self._position = np.full(self._packets, _NEVER, np.int64)
        self._stamp_ns = np.zeros(self._packets, np.int64)

    def look(self, block: LidarBlock) -> None:
        """Add a block of at most a frame's packets."""
        position, stamps = block.position, block.stamp_ns[:, -1]
        places = position % self._packets
        is_known = (self._position[places] == position - self._packets) & (stamps > 0) & (self._stamp_ns[places] > 0)
        self.durations.add((stamps - self._stamp_ns[places])[is_known] / 1000.0)
        self._position[places], self._stamp_ns[places] = position, stamps


_GYROSCOPE_AT, _FIRST_AT, _FOOTER_SIZE = 16, 132, 32


class InertialStatistics:
    """Count of the measurements, and their own stamps.

    Attributes:
        measurements: Number of measurements.
    """

    def __init__(self) -> None:
        self.measurements = 0
        self._first: tuple[int, int] | None = None
        self._last = (0, 0)

    def look(self, payload: bytes) -> None:
        """Add an IMU packet of either form."""
        is_legacy = len(payload) == IMU_PACKET_SIZE
        at = _GYROSCOPE_AT if is_legacy else _FIRST_AT
        here = int.from_bytes(payload[at : at + 8], "little"), self.measurements
        self._first = self._first or here
        self._last = here
        self.measurements += 1 if is_legacy else (len(payload) - _FIRST_AT - _FOOTER_SIZE) // MEASUREMENT_SIZE

    @property
    def rate_hz(self) -> float:
        """Measurements a second of the sensor's time, as if none were lost; NaN for less than two packets."""
        if self._first is None or self._last[0] <= self._first[0]:
            return float("nan")
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0]) * 1e9
