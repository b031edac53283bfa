"""What can be set about a rover."""

from dataclasses import dataclass, field
from typing import Any, Literal

from hilsim.errors import require
from hilsim.geometry.frames import Vector
from hilsim.limits import COORDINATE_M, ROVER_SCAN_POINTS
from hilsim.sensor.setup import SensorSetup
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
class RoverDriftSpec:
    """A slow error of where a rover believes to be, as receivers and odometry have it; its points go with it.

    Each part is a first-order Gauss-Markov process: normal, and forgotten within some times ``time_s``.

    Attributes:
        position_m: Standard deviation of the horizontal position, in each direction.
        height_m: Of the height.
        heading_deg: Of the heading; points turn about the rover.
        time_s: After which a part e of an error is left.
    """

    position_m: float = 0.5
    height_m: float = 0.0
    heading_deg: float = 0.5
    time_s: float = 60.0

    def __post_init__(self) -> None:
        require(
            *(
                (0.0 <= value <= 1e6, f"{name} must be 0 to 1e6, got {value}")
                for name, value in (("position_m", self.position_m), ("height_m", self.height_m), ("heading_deg", self.heading_deg))
            ),
            (0.01 <= self.time_s <= 1e6, f"time_s must be 0.01 to 1e6, got {self.time_s}"),
        )


@dataclass(frozen=True, kw_only=True)
class RoverLidarSpec(SensorSetup):
    """The lidar of a rover that drives, as one of the rig's sensors would measure: its beams, noise, grid, limits and detector.

    Attributes:
        profile: A shipped model (``vlp16`` …) or the path of a profile, relative to the rig.
        override: Values that replace the profile's.
    """

    profile: str = "vlp16"
    override: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RoverDriveSpec:
    """A rover that drives through the rig's scene: a differential drive on the ground, with a lidar that looks all around.

    Attributes:
        position_m: Where it begins; its height is the ground's, from up to a metre below and 4 m above it.
        heading_deg: Where it points: 0 east, 90 north.
        steered_by: ``waypoints``, or ``buttons``: a command's bits are 1 forward, 2 back, 4 left, 8 right.
        waypoints_m: Places to drive to, x and y.
        loop: From the last waypoint to the first again.
        speed_mps: At which it drives.
        turn_dps: At which it turns.
        wheelbase_m: Between front and rear wheels.
        track_m: Between left and right wheels.
        lidar_height_m: Above the ground.
        columns: Rays around.
        rows: Rays above each other.
        elevation_min_deg: Of the lowest.
        elevation_max_deg: Of the highest.
        range_max_m: Of the lidar.
        lidar: It measures as this sensor in place of those ideal rays; a scan is what is fired in a cycle, all from where the rover is at its end.
    """

    position_m: Vector = (0.0, 0.0, 0.0)
    heading_deg: float = 0.0
    steered_by: Literal["waypoints", "buttons"] = "waypoints"
    waypoints_m: tuple[tuple[float, float], ...] = ()
    loop: bool = True
    speed_mps: float = 1.0
    turn_dps: float = 45.0
    wheelbase_m: float = 0.8
    track_m: float = 0.6
    lidar_height_m: float = 1.0
    columns: int = 250
    rows: int = 4
    elevation_min_deg: float = -15.0
    elevation_max_deg: float = 3.0
    range_max_m: float = 60.0
    lidar: RoverLidarSpec | None = None

    def __post_init__(self) -> None:
        places = (*self.position_m, self.heading_deg, *(value for waypoint in self.waypoints_m for value in waypoint))
        require(
            (
                all(map(COORDINATE_M.holds, map(abs, places))),
                f"position_m, heading_deg and waypoints_m must be finite and at most {COORDINATE_M.text}",
            ),
            (self.steered_by == "buttons" or bool(self.waypoints_m), 'waypoints_m must be given where they steer, or steered_by "buttons"'),
            (0.0 <= self.speed_mps <= 100.0, f"speed_mps must be 0 to 100, got {self.speed_mps}"),
            (0.0 < self.turn_dps <= 720.0, f"turn_dps must be above 0 and at most 720, got {self.turn_dps}"),
            *(
                (0.01 <= value <= 100.0, f"{name} must be 0.01 to 100, got {value}")
                for name, value in (("wheelbase_m", self.wheelbase_m), ("track_m", self.track_m), ("lidar_height_m", self.lidar_height_m))
            ),
            (self.columns >= 1 and self.rows >= 1, f"columns and rows must be at least 1, got {self.columns} and {self.rows}"),
            ROVER_SCAN_POINTS.rule(self.columns * self.rows, "columns times rows"),
            (
                -90.0 <= self.elevation_min_deg <= self.elevation_max_deg <= 90.0,
                f"elevation_min_deg and elevation_max_deg must be -90 to 90, rising, got {self.elevation_min_deg} and {self.elevation_max_deg}",
            ),
            (0.1 <= self.range_max_m <= 10_000.0, f"range_max_m must be 0.1 to 10000, got {self.range_max_m}"),
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
        drive: It drives through the scene; in place of a file.
        rate_hz: Cycles a second.
        noise: Added to the file's values, or to its pose and ranges; by default that of the emulator, and none beside ``drift`` or ``drive.lidar``.
        drift: A slow error of its position, which its points share.
        network: Where its packets go.
    """

    number: int
    file: str = ""
    drive: RoverDriveSpec | None = None
    rate_hz: float = 10.0
    noise: RoverNoiseSpec | None = None
    drift: RoverDriftSpec | None = None
    network: RoverNetworkSpec = field(default_factory=RoverNetworkSpec)

    def __post_init__(self) -> None:
        require(
            (0 <= self.number <= LARGEST_NUMBER, f"number must be 0 to {LARGEST_NUMBER}, got {self.number}"),
            (bool(self.file) != (self.drive is not None), "file or drive must be given, and not both"),
            (0.1 <= self.rate_hz <= 100.0, f"rate_hz must be 0.1 to 100, got {self.rate_hz}"),
        )

    @property
    def name(self) -> str:
        """In metrics and messages."""
        return f"rover-{self.number}"

    @property
    def added_noise(self) -> RoverNoiseSpec:
        """What is added."""
        if self.noise is not None:
            return self.noise
        errs_otherwise = self.drift is not None or (self.drive is not None and self.drive.lidar is not None)
        return RoverNoiseSpec(position_m=0.0, rotation_deg=0.0, point_m=0.0) if errs_otherwise else RoverNoiseSpec()

    @property
    def period_ns(self) -> int:
        """Of a cycle."""
        return round(1e9 / self.rate_hz)
