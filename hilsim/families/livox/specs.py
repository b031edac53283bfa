"""Specification of Livox lidars: lines that fire at once along an endless pattern of two rotations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.sensor.specs import LidarSpec

PatternName = Literal["mid360"]


@dataclass(frozen=True, kw_only=True)
class LivoxSpec(LidarSpec):
    """Specification of a Livox.

    Attributes:
        family: Packet format, always ``livox``.
        dev_type: Number of the model in answers to its host: 9 Mid-360, 35 Mid-360s (``livox_lidar_def.h``).
        serial_prefix: First characters of serial numbers that are made.
        pattern: Scan pattern, of those in ``patterns``.
        lines: Beams that fire at once.
        shots_per_sequence: Times that they fire in a firing sequence.
        interval: Time from a packet's first point to its last one as packets say it, 0.1 us.
        point_port: Source port of points.
        imu_port: Source port of inertial packets.
        imu_position_mm: Place of the inertial sensors in the frame of the points (x forward, y left, z up).
    """

    family: Literal["livox"]
    dev_type: int
    serial_prefix: str
    pattern: PatternName
    lines: int
    shots_per_sequence: int
    interval: int
    point_port: int = 56_300
    imu_port: int = 56_400
    imu_position_mm: tuple[float, float, float]

    @property
    def laser_count(self) -> int:
        """Firings of a firing sequence: shots of all lines, one line after another."""
        return self.lines * self.shots_per_sequence

    @property
    def range_code_max(self) -> int:
        """Largest distance that packets can represent, in millimetres: 16 bits of 10 mm each in packets of type 2."""
        return 327_670

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield 1 <= self.lines <= 8, f"lines must be 1 to 8, got {self.lines}"
        yield 1 <= self.shots_per_sequence <= 96, f"shots_per_sequence must be 1 to 96, got {self.shots_per_sequence}"
        yield 96 % max(self.laser_count, 1) == 0, f"lines times shots_per_sequence must divide the 96 points of a packet, got {self.laser_count}"
        yield self.lasers_per_firing == self.lines, f"lasers_per_firing must be lines, got {self.lasers_per_firing}"
        yield self.range_unit_mm == 1.0, f"range_unit_mm must be 1, got {self.range_unit_mm}"
        even_ns = self.firing_ns * self.shots_per_sequence
        yield self.sequence_ns == even_ns, f"sequence_ns must be shots_per_sequence times firing_ns, {even_ns}, got {self.sequence_ns}"
        yield from super().rules()
