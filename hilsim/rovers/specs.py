"""What can be set about a rover."""

from dataclasses import dataclass, field

from hilsim.errors import require
from hilsim.transmit.hosts import is_host, is_ipv4

MOST_ROVERS = 256
LARGEST_NUMBER = 54_535
"""Telemetry goes to port 11000 + number."""


@dataclass(frozen=True, kw_only=True)
class RoverNoiseSpec:
    """Noise of a rover's pose and points: normal, independent, and of no frame, as the rover emulator has it.

    Attributes:
        position_m: Standard deviation of each coordinate of the pose.
        rotation_deg: Of each angle.
        point_m: Of each coordinate of each point.
    """

    position_m: float = 0.5
    rotation_deg: float = 0.5
    point_m: float = 0.5

    def __post_init__(self) -> None:
        require(
            *(
                (0.0 <= value <= 1e6, f"{name} must be 0 to 1e6, got {value}")
                for name, value in (("position_m", self.position_m), ("rotation_deg", self.rotation_deg), ("point_m", self.point_m))
            )
        )


@dataclass(frozen=True, kw_only=True)
class RoverNetworkSpec:
    """Where a rover's packets come from and go to.

    Attributes:
        source: IPv4 address of this host that they leave from, and that commands are taken at.
        destination: Address that they go to, or the name of a host.
    """

    source: str = "127.0.0.1"
    destination: str = "127.0.0.1"

    def __post_init__(self) -> None:
        require(
            (is_ipv4(self.source), f'source must be an IPv4 address, got "{self.source}"'),
            (is_host(self.destination), f'destination must be an IPv4 address or the name of a host, got "{self.destination}"'),
        )


@dataclass(frozen=True, kw_only=True)
class RoverSpec:
    """One rover.

    Attributes:
        number: Added to 8000, 9000, 10000 and 11000 it gives the rover's ports.
        file: Its scans, one a line (plain, gzip, xz or zstd, also in a tar), relative to the rig. They are sent again from the first one when all have been.
        rate_hz: Cycles a second.
        noise: Added to what the file says.
        network: Where its packets go.
    """

    number: int
    file: str
    rate_hz: float = 10.0
    noise: RoverNoiseSpec = field(default_factory=RoverNoiseSpec)
    network: RoverNetworkSpec = field(default_factory=RoverNetworkSpec)

    def __post_init__(self) -> None:
        require(
            (0 <= self.number <= LARGEST_NUMBER, f"number must be 0 to {LARGEST_NUMBER}, got {self.number}"),
            (bool(self.file), "file must be given"),
            (0.1 <= self.rate_hz <= 100.0, f"rate_hz must be 0.1 to 100, got {self.rate_hz}"),
        )

    @property
    def name(self) -> str:
        """In metrics and messages."""
        return f"rover-{self.number}"

    @property
    def period_ns(self) -> int:
        """Of a cycle."""
        return round(1e9 / self.rate_hz)
