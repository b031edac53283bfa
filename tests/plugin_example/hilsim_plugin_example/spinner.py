"""A family: lidars that turn and speak Velodyne's packets, but to ports of their own, with headers of their own, and without dual returns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from hilsim.plugins import FlowLayout, LinkStyle, VelodyneFamily, VelodyneSpec

STYLE = LinkStyle(ttl=64, dont_fragment=True, counting_identification=True, udp_checksum=True)


@dataclass(frozen=True, kw_only=True)
class SpinnerSpec(VelodyneSpec):
    """Keys of a profile with ``family = "spinner"``: a Velodyne's, and the ports of the model.

    Attributes:
        points_port: That data packets go to unless the rig says otherwise.
        status_port: The same for position packets.
    """

    family: Literal["spinner"] = "spinner"  # type: ignore[assignment] # a profile says whose it is
    points_port: int
    status_port: int

    def rules(self) -> Iterator[tuple[bool, str]]:
        """A Velodyne's, and those of the ports."""
        yield from super().rules()
        for name, port in (("points_port", self.points_port), ("status_port", self.status_port)):
            yield 1024 <= port <= 65_535, f"{name} must be 1024 to 65535, got {port}"


@dataclass(frozen=True)
class SpinnerFamily(VelodyneFamily):
    """A Spinner."""

    spec: SpinnerSpec
    name: ClassVar[str] = "spinner"
    title: ClassVar[str] = "Spinner"
    profile: ClassVar[type[SpinnerSpec]] = SpinnerSpec

    def rules(self) -> Iterator[tuple[bool, str]]:
        """A Velodyne's, and one return a firing."""
        yield from super().rules()
        yield not self.mode.is_dual, f'return_mode must be "strongest" or "last" for a {self.spec.model}, got "{self.setup.return_mode}"'

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Points and status, to ports of the model."""
        return (
            FlowLayout("points", self.spec.points_port, data_port or self.spec.points_port, STYLE),
            FlowLayout("status", self.spec.status_port, position_port or self.spec.status_port, STYLE),
        )

    def packets_text(self, info_port: int) -> str:
        """Points, and the port of the status packets."""
        return f"(points) and :{info_port} (status)"
