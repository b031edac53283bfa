"""One lidar of a rig: its model and its settings."""

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from hilsim.emulator.families.base import LidarFamily
from hilsim.emulator.families.registry import family_of
from hilsim.errors import require, within
from hilsim.faults.catalogue import Effect
from hilsim.faults.specs import FaultSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.setup import FamilySettings, SensorSetup
from hilsim.sensor.specs import LidarSpec, PulseState
from hilsim.sensor.unit.spec import UnitSpec


@dataclass(frozen=True, kw_only=True)
class LidarSetting:
    """One lidar of a rig: its model, its settings, and the weather.

    Attributes:
        name: Name, unique within a rig.
        stream: Number of the sensor within the rig, 0 to 65535, which selects its random numbers.
        spec: Specification of the model.
        setup: Mounting and settings, equal to the rig's ``[[sensor]]``.
        weather: Weather between the lidar and the world.
        family_class: Family of the sensor; None: the built-in family of the model.
        unit: Known figures of its unit; none for a drawn or an ideal one.
        pulse: The pulse at its input; None: what ``setup.clock`` makes of it, for ever.
        faults: Faults that befall it.
    """

    name: str
    stream: int
    spec: LidarSpec
    setup: SensorSetup = field(default_factory=SensorSetup)
    weather: WeatherSpec = field(default_factory=WeatherSpec)
    family_class: type[LidarFamily[Any]] | None = None
    unit: UnitSpec = field(default_factory=UnitSpec)
    pulse: PulseState | None = None
    faults: tuple[FaultSpec, ...] = ()

    def __post_init__(self) -> None:
        require(
            *((getattr(self.setup, each.name) is None, f"{each.name} must not be given for a {self.spec.model}") for each in self._others()),
            *self.family.rules(),
            *within(self, stream=(0, 65_535)),
            *self.setup.rules(),
            *((holds, f"unit.{fault}") for holds, fault in self.unit.model_rules(self.spec.model, self.spec.laser_count)),
            *(rule for fault in self.faults for rule in self._fault_rules(fault)),
        )

    def _fault_rules(self, fault: FaultSpec) -> Iterator[tuple[bool, str]]:
        """Check that the sensor has what a fault breaks."""
        most, channels = self.spec.laser_count - 1, getattr(fault, "channels", ())
        yield (
            max(channels, default=0) <= most,
            f"fault {fault.label}: channels of a {self.spec.model} must be at most {most}, got {max(channels, default=0)}",
        )
        family, effect = self.family, fault.row.effect
        needs = {
            Effect.READING: (family.reports_azimuth, "must have readings of an encoder in its packets"),
            Effect.TURN: (family.reports_azimuth and family.produced_ratio == 1.0, "must have a head that packets follow, and see the whole turn"),
            Effect.PULSE: (family.has_pulse_input, "must have an input for a pulse"),
            Effect.MASTER: (self.follows_pulse and not family.has_pulse_input, "must follow time from the network"),
            Effect.THERMAL: (family.reports_azimuth, "must have position packets"),
            Effect.SENTENCE: (family.has_pulse_input and self.setup.gps is not None, "must have a receiver (sensor.gps)"),
        }
        holds, need = needs.get(effect, (True, ""))
        yield holds, f"fault {fault.label}: a {self.spec.model} {need}"
        if effect == Effect.STAMP:
            has_edges = self.follows_pulse and family.has_pulse_input
            yield not any(fault.values[2:4]) or has_edges, f"fault {fault.label}: the clock must follow a pulse"
            yield not fault.values[4] or family.has_pulse_input, f"fault {fault.label}: stamps of a {self.spec.model} must begin again at the hour"

    def _others(self) -> Iterator[Field[Any]]:
        """Keys of other families' settings."""
        own = {base.__dict__.get("name") for base in type(self.family).__mro__}
        return (each for each in fields(FamilySettings) if each.name not in own)

    @cached_property
    def family(self) -> LidarFamily[Any]:
        """Family of the sensor: everything that depends on packet format and beam steering."""
        return family_of(self.spec, self.setup) if self.family_class is None else self.family_class(self.spec, self.setup)

    @property
    def sequences_per_packet(self) -> int:
        """Number of firing sequences in a data packet."""
        return self.family.sequences_per_packet

    @property
    def sub_rays(self) -> int:
        """Rays that sample a beam's footprint."""
        return self.spec.beam.sub_rays if self.setup.sub_rays is None else self.setup.sub_rays

    @property
    def follows_pulse(self) -> bool:
        """Whether the sensor's clock is synchronised to UTC."""
        if self.pulse is not None:
            return self.pulse.pps == "locked"
        return self.setup.clock.sync == "pps" or (self.setup.clock.sync == "auto" and self.family.has_utc_source)

    @property
    def packet_rate_hz(self) -> float:
        """Data packets a second."""
        return 1e9 / (self.sequences_per_packet * self.family.sequence_ns) * self.family.produced_ratio

    def with_sub_rays(self, sub_rays: int) -> "LidarSetting":
        """Copy of the lidar with this number of rays a beam."""
        return replace(self, setup=replace(self.setup, sub_rays=sub_rays))

    def differs_in_optics_alone(self, other: "LidarSetting") -> bool:
        """Whether the other lidar is the same but for its weather, its window and its faults; False for a family of a plug-in, which may use them elsewhere."""
        if self.family_class is not None:
            return False
        return self == replace(other, weather=self.weather, faults=self.faults, setup=replace(other.setup, window=self.setup.window))
