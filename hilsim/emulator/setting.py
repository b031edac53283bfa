"""One lidar as a rig describes it: its model and how it is set up."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hilsim.errors import require
from hilsim.protocols.cepton.stdv import points_max
from hilsim.protocols.velodyne.data import BLOCKS, RECORDS_PER_BLOCK, ReturnMode
from hilsim.sensor.cepton_specs import CeptonSetting, CeptonSpec
from hilsim.sensor.head import rate_rule
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import ThinningSpec
from hilsim.sensor.velodyne_specs import VelodyneSpec
from hilsim.sensor.weather import WeatherSpec


@dataclass(frozen=True, kw_only=True)
class LidarSetting:
    """One lidar of a rig: which model, how it is set up, and what is between it and the world.

    Attributes:
        name: Unique within a rig.
        stream: The sensor's number within the rig, 0..65535: the stream of its random draws.
        spec: The model.
        setup: How it is mounted and set; a rig's ``[[sensor]]`` as it is.
        weather: What the light passes through.
    """

    name: str
    stream: int
    spec: VelodyneSpec | CeptonSpec
    setup: SensorSetup = field(default_factory=SensorSetup)
    weather: WeatherSpec = field(default_factory=WeatherSpec)

    def __post_init__(self) -> None:
        require(
            *self._family_rules(),
            (0 <= self.stream <= 65_535, f"stream must be 0 to 65535, got {self.stream}"),
            *self.setup.rules(),
        )

    def _family_rules(self) -> Iterator[tuple[bool, str]]:
        """What depends on whose sensor it is."""
        if isinstance(self.spec, VelodyneSpec):
            yield self.setup.cepton is None, f"cepton must not be given for a {self.spec.model}"
            yield (
                self.setup.clock.stamps == "power_up",
                f'clock.stamps must be "power_up" for a {self.spec.model}: its stamps count from the hour, and follow UTC with clock.sync = "pps"',
            )
            yield rate_rule(self.spec, self.setup)
            return
        yield self.setup.gps is None, f"gps must not be given for a {self.spec.model}: it has no input for a receiver"
        yield self.setup.thinning == ThinningSpec(), f"thinning must not be given for a {self.spec.model}: its firings have no channels and columns"
        most, points = points_max(self.header_version), self.spec.laser_count * self.returns
        yield (
            points <= most,
            f"segments must be at most {most // self.returns} in return_mode {self.setup.return_mode} (a packet holds {most} points), got {self.spec.laser_count}",
        )

    @property
    def returns(self) -> int:
        """Returns reported for each firing."""
        return ReturnMode.named(self.setup.return_mode).returns

    @property
    def sequences_per_packet(self) -> int:
        """Firing sequences of a data packet."""
        if isinstance(self.spec, VelodyneSpec):
            return BLOCKS // self.returns * (RECORDS_PER_BLOCK // self.spec.laser_count)
        return points_max(self.header_version) // (self.spec.laser_count * self.returns)

    @property
    def follows_pulse(self) -> bool:
        """The sensor's clock is synchronised to UTC."""
        is_fed = self.setup.gps is not None or isinstance(self.spec, CeptonSpec)
        return self.setup.clock.sync == "pps" or (self.setup.clock.sync == "auto" and is_fed)

    @property
    def header_version(self) -> int:
        """Of a Cepton-style sensor's point packets."""
        return (self.setup.cepton or CeptonSetting()).header_version

    @property
    def packet_rate_hz(self) -> float:
        """Data packets a second."""
        return 1e9 / (self.sequences_per_packet * self.spec.sequence_ns)

    def with_sub_rays(self, sub_rays: int) -> "LidarSetting":
        """The same lidar with so many rays a beam."""
        return replace(self, setup=replace(self.setup, sub_rays=sub_rays))
