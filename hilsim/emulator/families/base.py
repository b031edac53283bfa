"""Interface of a sensor family: one object per lidar for everything on the Python side that depends on the family.

Kernels choose a packet format in ``emulator.families.packets`` alone (decision 57). All other code uses ``LidarSetting.family``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hilsim.emulator.plan import LidarPlan
from hilsim.errors import require
from hilsim.protocols.ethernet import LinkStyle
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.decimation import Decimation
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.response import calibrated_ratios
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import LidarSpec
from hilsim.sensor.unit.draws import UnitDraws
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.sensor.unit.spread import UnitSpread
from hilsim.world.scene.background import AzimuthGrid, ImageGrid

SpecT = TypeVar("SpecT", bound=LidarSpec)
_ELEVATION_TOLERANCE_DEG = 0.01


class FlowLayout(NamedTuple):
    """One stream of a sensor's datagrams.

    Attributes:
        name: ``data``, ``position``, ``points`` or ``info``.
        source_port: Source port of the real sensor.
        destination_port: Destination port of the packets.
        style: Style of the packets' headers.
    """

    name: str
    source_port: int
    destination_port: int
    style: LinkStyle


@dataclass(frozen=True)
class LidarFamily(ABC, Generic[SpecT]):
    """One lidar, as one of its family.

    Attributes:
        spec: Its model.
        setup: Setup of the lidar.
        name: Name of the family, as in a profile's ``family``.
        title: Title of the family's sensors, for messages.
        profile: Its profiles' class.
        grid: Cells of a captured background.
        grid_axes: Meaning of those cells' axes, for messages.
        capture_stamps: Default unit of a capture's stamps: the one that the software for these sensors reads.
        pair: Choices of the two returns of a firing in dual return mode.
        is_known_by_source: Receivers distinguish sensors by their source address alone.
        has_pulse_input: It has an input for a pulse and a receiver's sentences.
        reports_azimuth: Its packets contain readings of an encoder.
        interface_ports: Keys of ``[sensor.web]`` that give the TCP ports of its interface, with a real sensor's; none: it has no interface.
        has_network_stack: An ordinary IPv4 stack sends its packets: one identification counts those of all flows, and packets above 1500 bytes are fragments.
    """

    spec: SpecT
    setup: SensorSetup
    name: ClassVar[str]
    title: ClassVar[str]
    profile: ClassVar[type[LidarSpec]]
    grid: ClassVar[type[AzimuthGrid] | type[ImageGrid]]
    grid_axes: ClassVar[str]
    capture_stamps: ClassVar[Literal["ns", "us"]]
    pair: ClassVar[tuple[EchoChoice, EchoChoice]]
    is_known_by_source: ClassVar[bool]
    has_pulse_input: ClassVar[bool] = False
    reports_azimuth: ClassVar[bool] = False
    interface_ports: ClassVar[Mapping[str, int]] = MappingProxyType({})
    has_network_stack: ClassVar[bool] = False

    @abstractmethod
    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield the family's rules for a sensor's keys, with the error messages for ``require``."""

    def port_rules(self, data_port: int | None, position_port: int | None) -> Iterator[tuple[bool, str]]:
        """Yield the family's rules for the ports in ``[sensor.network]``; None: not given."""
        data, position = self.flows(data_port, position_port)
        differ = data.destination_port != position.destination_port
        yield differ, f"network.data_port and position_port must differ, got {position.destination_port} for both"

    def web_rules(self, web: Any, network: Any) -> Iterator[tuple[bool, str]]:  # noqa: ARG002 - of interest to families with one
        """Yield the family's rules for the tables ``[sensor.web]`` and ``[sensor.network]`` of a sensor that has the former."""
        yield bool(self.interface_ports), f"web must not be given for a {self.spec.model}: it has no interface"
        alone = not web.discovery and web.commands_port is None
        yield alone, f"web.discovery and web.commands_port must not be given for a {self.spec.model}: it has neither"

    def interface_port(self, web: Any, key: str) -> int:
        """Port of its interface by ``[sensor.web]``: that of a real sensor, unless the table has another."""
        given: int | None = getattr(web, key)
        return self.interface_ports[key] if given is None else given

    def commands_port_rule(self, web: Any) -> tuple[bool, str]:
        """The rule that its two ports differ."""
        port, commands_port = (self.interface_port(web, key) for key in ("port", "commands_port"))
        return port != commands_port or not port, f"web.commands_port must not be that of port, got {port} for both"

    @abstractmethod
    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Its data, and its position packets or sensor information; ports that are None are the model's."""

    def effective_setup(self) -> dict[str, Any]:
        """Keys of ``[[sensor]]`` whose defaults depend on the family, filled in."""
        return {}

    def effective_ports(self, data_port: int | None, position_port: int | None) -> dict[str, int]:
        """Keys of ``[sensor.network]`` whose defaults depend on the family, filled in."""
        data, position = self.flows(data_port, position_port)
        return {"data_port": data.destination_port, "position_port": position.destination_port}

    def metadata(self, stream: int, *, destination: str, data_port: int | None, position_port: int | None) -> Any:  # noqa: ARG002 - of interest to some families
        """Metadata that the sensor gives of itself, by which its packets are read; None where packets alone are enough.

        Args:
            stream: Number of the sensor within its rig.
            destination: Address that its packets go to.
            data_port: Port of data packets; None: the model's.
            position_port: Port of its other packets; None: the model's.
        """
        return None

    @property
    @abstractmethod
    def pace(self) -> str:
        """The model and how fast it scans, for people."""

    @abstractmethod
    def packets_text(self, info_port: int) -> str:
        """Kinds of its packets, for messages, after the address of its data."""

    @property
    def is_dual(self) -> bool:
        """Whether it reports two returns of each firing."""
        return self.setup.return_mode == "dual"

    @property
    def returns(self) -> int:
        """Returns that it reports of each firing."""
        return 2 if self.is_dual else 1

    @property
    def choices(self) -> tuple[EchoChoice, ...]:
        """Choice for each return of a firing."""
        return self.pair if self.is_dual else (EchoChoice[self.setup.return_mode.upper()],)

    @property
    def sequence_ns(self) -> int:
        """Device time from firing sequence to firing sequence."""
        return self.spec.sequence_ns

    @property
    def largest_data_size(self) -> int:
        """Bytes of the largest data packet of any setting: unless a family says otherwise, what an Ethernet frame holds behind UDP's headers."""
        return 1472

    @property
    def settled_data_size(self) -> int:
        """Bytes of the largest data packet of the setting that it has."""
        return self.largest_data_size

    @property
    def fastest_packet_hz(self) -> float:
        """Data packets a second in the fastest mode that the sensor can be set to while it runs; 0: it stays as it is."""
        return 0.0

    @property
    def produced_ratio(self) -> float:
        """Share of a turn whose packets are sent."""
        return self.setup.produced_ratio

    @property
    @abstractmethod
    def sequences_per_packet(self) -> int:
        """Firing sequences of a data packet."""

    @property
    @abstractmethod
    def scan_ns(self) -> int:
        """Duration of a turn of its head, or of a scan of its image."""

    @property
    def rotation_rate_hz(self) -> float | None:
        """Rotation rate of its head; None without one."""
        return None

    @property
    def spread(self) -> UnitSpread:
        """Differences between units of the model."""
        return UnitSpread()

    def of_unit(self, spec: SpecT, setup: SensorSetup, learned: UnitSpec, spread: UnitSpread, draws: UnitDraws) -> tuple[SpecT, SensorSetup]:  # noqa: ARG002 - of interest to some families
        """Model and setup with what one unit has of its own beside its clock and the errors of its lasers."""
        return spec, setup

    @property
    def decimation(self) -> Decimation:
        """Rule that selects the firings to report; asked for where the setup has one."""
        raise NotImplementedError

    @property
    def has_utc_source(self) -> bool:
        """Its clock is connected to UTC in this rig."""
        return False

    def clock_offset_s(self, clock: DeviceClock, rig_ns: int, utc_epoch_ns: int) -> float:  # noqa: ARG002 - of interest to some families
        """Lead of its own clock over rig time, as in the metrics: the time that it begins with where it follows nothing."""
        return 0.0 if clock.follows_pulse else self.setup.clock.offset_s

    @abstractmethod
    def complete(self, plan: LidarPlan, *, seed: int, stream: int, utc_epoch_ns: int) -> LidarPlan:
        """A plan of what all lidars have, with what is the family's own: how firings are directed, which are reported, and the packets."""

    def reflectivity_ratios(self) -> npt.NDArray[np.float64]:
        """``float64[256]``, share of a white diffuse target for each reflectivity byte: percent to 100, logarithmic above."""
        return calibrated_ratios()

    def background_rows(self, grid: AzimuthGrid | ImageGrid) -> npt.NDArray[np.int32]:  # noqa: ARG002 - of interest to some families
        """``int32[c]``, row of a background's cells that each channel looks at; zeros where cells are of an image.

        Raises:
            ValueError: the cells are not of this model's channels, or the family sees no captured background.
        """
        raise ValueError(f"a background must not be given for a {self.spec.model}: no maps are made of captures of such a sensor")

    def rows_by_elevation(self, grid: AzimuthGrid | ImageGrid, elevation_deg: Sequence[float]) -> npt.NDArray[np.int32]:
        """``background_rows`` of a head that turns, whose channels have these elevations.

        Raises:
            ValueError: the rows have other elevations.
        """
        if not isinstance(grid, AzimuthGrid):
            raise TypeError(f"grid must have cells of {self.grid_axes}, got {type(grid).__name__}")
        fits = grid.rows == len(elevation_deg) and np.allclose(np.sort(elevation_deg), grid.elevation_deg, atol=_ELEVATION_TOLERANCE_DEG)
        rule = (
            f"rows of a background for a {self.spec.model} must be its {len(elevation_deg)} elevations from {min(elevation_deg):g} to "
            f"{max(elevation_deg):g} deg, got {grid.rows} from {grid.elevation_deg[0]:g} to {grid.elevation_deg[-1]:g} deg"
        )
        require((fits, rule))
        return np.argsort(np.argsort(elevation_deg, kind="stable")).astype(np.int32)
