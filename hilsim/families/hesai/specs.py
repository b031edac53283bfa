"""Specification of a Hesai: a head whose encoder, or a clock, tells its lasers when to fire."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from hilsim.families.hesai.protocol.models import BY_NAME, Model
from hilsim.families.hesai.protocol.points import LONG_HEADER
from hilsim.sensor.specs import LidarSpec
from hilsim.sensor.unit.encoder import EncoderSpec, RateJitterSpec
from hilsim.sensor.unit.spread import UnitSpread

RATES_RPM = (300, 600, 1200)
ModelName = Literal["XT32", "XT16", "XT32M", "Pandar40P", "Pandar64", "QT64"]


@dataclass(frozen=True, kw_only=True)
class HesaiSpec(LidarSpec):
    """Specification of a Hesai.

    Attributes:
        family: Packet format, always ``hesai``.
        model: Name in the table of models (``families.hesai.protocol.models``), which has blocks and firing times.
        elevation_deg: Elevation of each laser, channel 1 first; empty: the model's nominal ones.
        azimuth_deg: Azimuth of each laser beside its block's; empty: the model's nominal ones.
        has_later_first: Whether the blocks of a pair come in the manual's order, the last return before the strongest; a recorded XT32 has the other order.
        first_return_byte: Byte 8 of packets in dual modes: 1, or 5 as a recorded XT32M has it.
        dual_returns_byte: Byte 10 of packets in dual modes: 2, or 3 as that XT32M has it.
        is_counted: Whether packets have their number, which a Pandar40P and a Pandar64 may leave out.
        rate_jitter: Oscillations of the rotation rate of a Pandar40P or Pandar64.
        encoder: Errors of its encoder, at any rate.
        units: Differences between units of the model; the other keys describe an ideal one.
    """

    family: Literal["hesai"]
    model: ModelName
    elevation_deg: tuple[float, ...] = ()
    azimuth_deg: tuple[float, ...] = ()
    has_later_first: bool = True
    first_return_byte: int = 1
    dual_returns_byte: int = 2
    is_counted: bool = True
    rate_jitter: RateJitterSpec = field(default_factory=RateJitterSpec)
    encoder: EncoderSpec = field(default_factory=lambda: EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.0))
    units: UnitSpread = field(default_factory=UnitSpread)

    @property
    def known(self) -> Model:
        """Entry of the table of models."""
        return BY_NAME[self.model]

    @property
    def elevations_deg(self) -> tuple[float, ...]:
        """Elevation of each laser."""
        return self.elevation_deg or self.known.elevation_deg

    @property
    def azimuths_deg(self) -> tuple[float, ...]:
        """Azimuth of each laser beside its block's, clockwise."""
        return self.azimuth_deg or self.known.azimuth_deg

    @property
    def laser_count(self) -> int:
        """Number of lasers."""
        return self.known.channels

    @property
    def firing_delays_ns(self) -> tuple[int, ...]:
        """Time of each firing after that of its block."""
        return self.known.firing_ns

    @property
    def packet_size(self) -> int:
        """Bytes of a point packet."""
        return self.known.dtype(is_counted=self.is_counted).itemsize

    @property
    def range_code_max(self) -> int:
        """Largest distance, in counts of ``range_unit_mm``, that packets can represent."""
        return 65_535

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        lasers = self.laser_count
        for name, angles in (("elevation_deg", self.elevation_deg), ("azimuth_deg", self.azimuth_deg)):
            yield len(angles) in (0, lasers), f"{name} must be of the {lasers} lasers of a {self.model}, got {len(angles)}"
            yield all(-90.0 < angle < 90.0 for angle in angles), f"{name} must be above -90 and below 90, got {list(angles)}"
        yield self.first_return_byte in range(256), f"first_return_byte must be 0 to 255, got {self.first_return_byte}"
        yield self.dual_returns_byte in (2, 3), f"dual_returns_byte must be 2 or 3, got {self.dual_returns_byte}"
        is_even = self.rate_jitter == RateJitterSpec() and self.encoder == EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.0)
        yield self.known.is_clocked or is_even, f"rate_jitter and encoder must not be given for a {self.model}: it fires by its encoder"
        yield self.is_counted or len(self.known.header) < LONG_HEADER, f"is_counted must be true for a {self.model}"
        yield self.sequence_ns == self.known.round_ns, f"sequence_ns must be {self.known.round_ns} for a {self.model}, got {self.sequence_ns}"
        yield self.range_unit_mm == 4.0, f"range_unit_mm must be 4, got {self.range_unit_mm}"
        yield from super().rules()
