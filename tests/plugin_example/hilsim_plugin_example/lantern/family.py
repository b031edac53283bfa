"""Family of the Lanterns: keys of their profiles, and the plan for kernels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from hilsim.plugins import (
    AzimuthGrid,
    EchoChoice,
    FlowLayout,
    LidarFamily,
    LidarSpec,
    LinkStyle,
    family_kernels,
    turning_head,
)
from hilsim_plugin_example.lantern.points import STEP_DEG
from hilsim_plugin_example.lantern.protocol import BEAMS, COLUMNS, MARK, PACKET, PORT, RATE_HZ, encode

STYLE = LinkStyle(ttl=64, dont_fragment=True, counting_identification=True, udp_checksum=True)


@family_kernels(encode=encode)
class LanternPlan(NamedTuple):
    """What its kernels need.

    Attributes:
        mark: ``uint8[4]``, first bytes of a packet.
    """

    mark: Any

    def allocate_returns(self, shape: tuple[int, int, int]) -> None:
        """Nothing: it reports ranges and reflectivities alone."""


@dataclass(frozen=True, kw_only=True)
class LanternSpec(LidarSpec):
    """Keys of a profile with ``family = "lantern"``.

    Attributes:
        top_deg: Elevation of the top beam; the others are 3 degrees apart below it.
    """

    family: Literal["lantern"] = "lantern"
    top_deg: float

    @property
    def laser_count(self) -> int:
        """Number of beams."""
        return BEAMS

    @property
    def range_code_max(self) -> int:
        """Largest distance that packets can represent."""
        return 65_535

    @property
    def firing_delays_ns(self) -> tuple[int, ...]:
        """All beams fire at once."""
        return (0,) * BEAMS

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield the rules of any lidar, and one of the beams."""
        yield from super().rules()
        yield -60.0 <= self.top_deg <= 60.0, f"top_deg must be -60 to 60, got {self.top_deg}"


@dataclass(frozen=True)
class LanternFamily(LidarFamily[LanternSpec]):
    """A Lantern."""

    name: ClassVar[str] = "lantern"
    title: ClassVar[str] = "Lantern"
    profile: ClassVar[type[LanternSpec]] = LanternSpec
    grid: ClassVar[type[AzimuthGrid]] = AzimuthGrid
    grid_axes: ClassVar[str] = "azimuth and channel"
    capture_stamps: ClassVar[Literal["ns", "us"]] = "ns"
    pair: ClassVar[tuple[EchoChoice, EchoChoice]] = (EchoChoice.STRONGEST, EchoChoice.SECOND_STRONGEST)
    is_known_by_source: ClassVar[bool] = True
    interface_ports: ClassVar[Mapping[str, int]] = MappingProxyType({"port": 80})

    def rules(self) -> Iterator[tuple[bool, str]]:
        """A Lantern reports one return."""
        yield not self.is_dual, f'return_mode must be "strongest" or "last" for a {self.spec.model}, got "{self.setup.return_mode}"'

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Columns; nothing is sent beside them."""
        return FlowLayout("data", PORT, data_port or PORT, STYLE), FlowLayout("nothing", PORT + 1, position_port or PORT + 1, STYLE)

    @property
    def pace(self) -> str:
        """The model and its rate."""
        return f"{self.spec.model} at {RATE_HZ} turns/s"

    def packets_text(self, info_port: int) -> str:  # noqa: ARG002 - nothing goes there
        """Kinds of its packets."""
        return "(columns)"

    @property
    def sequences_per_packet(self) -> int:
        """Columns of a packet."""
        return COLUMNS

    @property
    def scan_ns(self) -> int:
        """Time of a turn."""
        return 1_000_000_000 // RATE_HZ

    @property
    def rotation_rate_hz(self) -> float:
        """Rotation rate of its head."""
        return float(RATE_HZ)

    def complete(self, plan: Any, *, seed: int, stream: int, utc_epoch_ns: int) -> Any:  # noqa: ARG002 - it draws nothing
        """Beams at their elevations, a head, and packets."""
        return plan._replace(
            own=LanternPlan(np.frombuffer(MARK, np.uint8)),
            head=turning_head(RATE_HZ),
            elevation_deg=self.spec.top_deg - STEP_DEG * np.arange(BEAMS),
            data_size=PACKET.itemsize,
        )
