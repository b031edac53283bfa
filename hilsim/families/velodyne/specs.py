"""Specification of Velodyne lidars: rotating head, encoder, lasers and position packets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hilsim.errors import require, within
from hilsim.families.velodyne.model_facts import CHANNEL_FACTS, MODEL_FACTS, completed
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.sensor.specs import LidarSpec
from hilsim.sensor.unit.encoder import EncoderSpec, RateJitterSpec
from hilsim.sensor.unit.position import PositionSpec
from hilsim.sensor.unit.spread import UnitSpread


@dataclass(frozen=True, kw_only=True)
class ChannelSpec:
    """One laser, in firing order.

    Attributes:
        elevation_deg: Angle above the sensor's horizontal plane.
        azimuth_offset_deg: Azimuth of this laser relative to the block's azimuth (clockwise).
        vertical_offset_mm: Height of the laser's origin above the sensor's origin.
        no_return_reflectivity: Reflectivity byte reported for no return: a per-unit baseline found in real units.
    """

    of_model: ClassVar[frozenset[str]] = CHANNEL_FACTS

    elevation_deg: float
    azimuth_offset_deg: float = 0.0
    vertical_offset_mm: float = 0.0
    no_return_reflectivity: int = 0

    def __post_init__(self) -> None:
        require(
            (-90.0 < self.elevation_deg < 90.0, f"elevation_deg must be above -90 and below 90, got {self.elevation_deg}"),
            *within(self, azimuth_offset_deg=(-180, 180), vertical_offset_mm=(-1000, 1000), no_return_reflectivity=(0, 255)),
        )


@dataclass(frozen=True, kw_only=True)
class VelodyneSpec(LidarSpec):
    """Specification of a lidar with a rotating head.

    A profile leaves out the keys that the table of models (``families.velodyne.protocol.models``) provides for its ``model``; values that it still contains must agree.

    Attributes:
        family: Packet format, always ``velodyne``.
        product: Factory byte that names the model in data packets.
        channels: Lasers in firing order; 16, 32 or 128.
        lasers_per_firing: Lasers that fire at once, 1, 2 or 8.
        rate_min_rpm: Slowest rotation.
        rate_max_rpm: Fastest rotation.
        rate_step_rpm: Step of permitted rates.
        encoder: Errors of the encoder, one entry for each measured rate.
        rate_jitter: Oscillations of the rotation rate.
        position: The position packet stream.
        units: Differences between units of the model; the other keys describe an ideal one.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"ripple": "[rate_jitter]"}

    of_model: ClassVar[frozenset[str]] = MODEL_FACTS

    family: Literal["velodyne"] = "velodyne"
    product: int
    channels: tuple[ChannelSpec, ...]
    rate_min_rpm: int
    rate_max_rpm: int
    rate_step_rpm: int
    encoder: tuple[EncoderSpec, ...]
    rate_jitter: RateJitterSpec = field(default_factory=RateJitterSpec)
    position: PositionSpec
    units: UnitSpread = field(default_factory=UnitSpread)

    @classmethod
    def completed(cls, table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Complete a profile's table from the table of models; returns it with an error message for each contradicting value."""
        return completed(table)

    @property
    def geometry(self) -> FiringGeometry:
        """Directions and firing times of the lasers."""
        return FiringGeometry(
            model=self.model,
            elevation_deg=tuple(channel.elevation_deg for channel in self.channels),
            azimuth_offset_deg=tuple(channel.azimuth_offset_deg for channel in self.channels),
            delay_ns=self.firing_delays_ns,
            sequence_ns=self.sequence_ns,
            distance_unit_mm=self.range_unit_mm,
            vertical_offset_mm=tuple(channel.vertical_offset_mm for channel in self.channels),
        )

    @property
    def firing_delays_ns(self) -> tuple[int, ...]:
        """Time of each firing from the start of its firing sequence, with the pauses inside it that the table of models has."""
        model = BY_NAME.get(self.model)
        return super().firing_delays_ns if model is None or model.channels != self.laser_count else model.geometry.delay_ns

    @property
    def laser_count(self) -> int:
        """Number of firings in a firing sequence."""
        return len(self.channels)

    @property
    def no_return_reflectivities(self) -> tuple[int, ...]:
        """Reflectivity byte that each laser reports for no return."""
        return tuple(channel.no_return_reflectivity for channel in self.channels)

    @property
    def range_code_max(self) -> int:
        """Largest distance, in counts of ``range_unit_mm``, that the model's packets can represent."""
        return 65_535

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from within(self, product=(0, 255))
        yield len(self.channels) in (16, 32, 128), f"channels must be 16, 32 or 128, got {len(self.channels)}"
        yield self.lasers_per_firing in (1, 2, 8), f"lasers_per_firing must be 1, 2 or 8, got {self.lasers_per_firing}"
        yield from super().rules()
        yield (
            0 < self.rate_min_rpm <= self.rate_max_rpm,
            f"rate_min_rpm must be above 0 and at most rate_max_rpm, got {self.rate_min_rpm} and {self.rate_max_rpm}",
        )
        yield (
            self.data_latency_us + self.position.latency_us >= 0.0,
            f"position.latency_us must be at least -{self.data_latency_us:g}, so that no packet is sent before its stamp, got {self.position.latency_us:g}",
        )
        yield len(self.encoder) > 0, "encoder must have at least one entry"
        yield self.rate_step_rpm > 0, f"rate_step_rpm must be above 0, got {self.rate_step_rpm}"

    def encoder_at(self, rate_rpm: int) -> EncoderSpec:
        """The encoder's entry for the measured rate nearest to ``rate_rpm`` (by ratio)."""
        return min(self.encoder, key=lambda entry: max(entry.rate_rpm / rate_rpm, rate_rpm / entry.rate_rpm))
