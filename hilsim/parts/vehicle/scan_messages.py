"""Keys of MAVLink messages computed from a lidar's scan."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require, within

MAX_CM = 65_533
"""Largest ``max_distance`` of a message: one more means free, and 65535 unknown."""

Orientation = Literal[
    "forward", "forward_right", "right", "backward_right", "backward", "backward_left", "left", "forward_left", "up", "down"
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ScanMessageSpec:
    """Common part of the two MAVLink messages computed from a lidar's scan.

    Attributes:
        sensor: Name of the lidar.
        rate_hz: Messages per second; both autopilots ignore a message older than 0.5 s.
        range_min_m: Minimum range.
        range_max_m: Maximum range.
    """

    sensor: str
    rate_hz: float = 15.0
    range_min_m: float = 0.5
    range_max_m: float = 100.0

    def __post_init__(self) -> None:
        require(*self.rules())

    @property
    def min_cm(self) -> int:
        """Minimum range in the message's unit."""
        return round(self.range_min_m * 100.0)

    @property
    def max_cm(self) -> int:
        """Maximum range in the message's unit."""
        return round(self.range_max_m * 100.0)

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield bool(self.sensor), "sensor must not be empty"
        yield from within(self, rate_hz=(4, 50))
        farthest_m = MAX_CM / 100.0
        yield (
            0.0 <= self.range_min_m < self.range_max_m <= farthest_m,
            f"range_min_m and range_max_m must be 0 <= min < max <= {farthest_m:g}, got {self.range_min_m} and {self.range_max_m}",
        )


@dataclass(frozen=True, kw_only=True)
class ObstacleSpec(ScanMessageSpec):
    """OBSTACLE_DISTANCE computed from a lidar's scan.

    Attributes:
        low_m: Lower end of the height band, relative to the vehicle.
        high_m: Upper end of the height band, relative to the vehicle.
    """

    low_m: float = -0.5
    high_m: float = 0.5

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield (
            -1000.0 <= self.low_m < self.high_m <= 1000.0,
            f"low_m and high_m must be -1000 <= low < high <= 1000, got {self.low_m} and {self.high_m}",
        )


@dataclass(frozen=True, kw_only=True)
class DistanceSensorSpec(ScanMessageSpec):
    """DISTANCE_SENSOR computed from a lidar's scan.

    Attributes:
        orientation: Direction of the message's beam in the body; the autopilot's RNGFND or SENS parameter must be equal.
        width_deg: Full angle of the cone whose nearest return is reported.
        sensor_id: Sensor id in the message.
    """

    orientation: Orientation = "forward"
    width_deg: float = 5.0
    sensor_id: int = 0

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield from within(self, width_deg=(0.1, 90), sensor_id=(0, 255))
