"""A family of turning lidars with Velodyne's packets, but their own ports and headers, and without dual returns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from hilsim.plugins import FlowLayout, LinkStyle, VelodyneFamily, VelodyneSpec

STYLE = LinkStyle(ttl=64, dont_fragment=True, counting_identification=True, udp_checksum=True)


@dataclass(frozen=True, kw_only=True)
class SpinnerSpec(VelodyneSpec):
    """Keys of a profile with ``family = "spinner"``: a Velodyne's, and the ports of the model.

    Attributes:
        points_port: Destination port of data packets, unless the rig sets one.
        status_port: Destination port of position packets, unless the rig sets one.
    """

    family: Literal["spinner"] = "spinner"  # type: ignore[assignment] # a profile says whose it is
    points_port: int
    status_port: int

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield a Velodyne's rules, and those of the ports."""
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
        """Yield a Velodyne's rules, and one that allows a single return."""
        yield from super().rules()
        yield not self.mode.is_dual, f'return_mode must be "strongest" or "last" for a {self.spec.model}, got "{self.setup.return_mode}"'

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Flows of points and status, to the ports of the model."""
        return (
            FlowLayout("points", self.spec.points_port, data_port or self.spec.points_port, STYLE),
            FlowLayout("status", self.spec.status_port, position_port or self.spec.status_port, STYLE),
        )

    def packets_text(self, info_port: int) -> str:
        """Text with the kinds of packets, and the port of the status packets."""
        return f"(points) and :{info_port} (status)"
