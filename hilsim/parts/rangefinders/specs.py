"""Keys of all range sensors on a serial port.

Unless another source is named, limits are the vendors': Benewake's SJ-PM-TFmini-T-01 A03, LightWare's SF45/B command list, InnoMaker's page of the LD06.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hilsim.errors import within
from hilsim.transmit.links.line import SerialSpec
from hilsim.world.geometry.frames import Vector

ZERO: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class RangefinderSpec(SerialSpec):
    """Common part of range sensors on a serial port.

    Attributes:
        mount_position_m: Position in the platform's frame (x forward, y left, z up).
        mount_rotation_deg: Roll, pitch, yaw in that frame; with zeros it faces forward, and a scanner's plane is horizontal.
        range_min_m: Smallest reported range.
        range_max_m: Largest reported range.
        range_noise_m: Standard deviation of the range noise.
    """

    mount_position_m: Vector = ZERO
    mount_rotation_deg: Vector = ZERO
    range_min_m: float
    range_max_m: float
    range_noise_m: float = 0.0

    @property
    def range_code_max_m(self) -> float:
        """Largest range that the sensor's format can represent."""
        raise NotImplementedError

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield all(map(math.isfinite, self.mount_position_m)), f"mount_position_m must be finite, got {self.mount_position_m}"
        yield all(map(math.isfinite, self.mount_rotation_deg)), f"mount_rotation_deg must be finite, got {self.mount_rotation_deg}"
        yield (
            0.0 <= self.range_min_m < self.range_max_m <= self.range_code_max_m,
            f"range_min_m and range_max_m must be 0 <= min < max <= {self.range_code_max_m:g}, got {self.range_min_m} and {self.range_max_m}",
        )
        yield from within(self, range_noise_m=(0, 1))
