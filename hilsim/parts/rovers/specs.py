"""Settings of a rover."""

from dataclasses import dataclass, field
from typing import Any, Literal

from hilsim.errors import require, within
from hilsim.limits import COORDINATE_M
from hilsim.parts.rovers.limits import ROVER_SCAN_POINTS
from hilsim.sensor.setup import SensorSetup
from hilsim.transmit.hosts import is_host, is_ipv4
from hilsim.world.geometry.frames import Vector

MAX_ROVERS = 256
LARGEST_NUMBER = 54_535
"""Largest number of a rover: telemetry is sent to port 11000 + number."""


@dataclass(frozen=True, kw_only=True)
class RoverNoiseSpec:
    """Noise of a rover's pose and points: normal, independent, the same in every frame, as in the rover emulator.

    Attributes:
        position_m: Standard deviation of each coordinate of the pose.
        rotation_deg: Standard deviation of each angle.
        point_m: Standard deviation of each coordinate of each point.
    """

    position_m: float = 0.5
    rotation_deg: float = 0.5
    point_m: float = 0.5

    def __post_init__(self) -> None:
        require(*within(self, position_m=(0, 1_000_000), rotation_deg=(0, 1_000_000), point_m=(0, 1_000_000)))


@dataclass(frozen=True, kw_only=True)
class RoverDriftSpec:
    """Slow error of a rover's position estimate, as with receivers and odometry; its points have the same error.

    Each component is a first-order Gauss-Markov process: normal, with a correlation time of ``time_s``.

    Attributes:
        position_m: Standard deviation of the horizontal position, in each direction.
        height_m: Standard deviation of the height.
        heading_deg: Standard deviation of the heading; points rotate about the rover.
        time_s: Time after which the fraction 1/e of an error is left.
    """

    position_m: float = 0.5
    height_m: float = 0.0
    heading_deg: float = 0.5
    time_s: float = 60.0

    def __post_init__(self) -> None:
        sizes = dict.fromkeys(("position_m", "height_m", "heading_deg"), (0, 1_000_000))
        require(*within(self, **sizes, time_s=(0.01, 1_000_000)))


@dataclass(frozen=True, kw_only=True)
class RoverLidarSpec(SensorSetup):
    """Lidar of a driving rover, which measures like one of the rig's sensors: beams, noise, grid, limits and detector.

    Attributes:
        profile: A shipped model (``vlp16`` …) or the path of a profile, relative to the rig.
        override: Values that replace the profile's.
    """

    profile: str = "vlp16"
    override: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RoverDriveSpec:
    """A rover that drives through the rig's scene: a differential drive on the ground, with a lidar.

    Attributes:
        position_m: Initial position; its height is corrected to the ground, from up to a metre below and 4 m above it.
        heading_deg: Initial heading: 0 east, 90 north.
        steered_by: ``waypoints``, or ``buttons``: a command's bits are 1 forward, 2 back, 4 left, 8 right.
        waypoints_m: Waypoints, x and y.
        loop: Whether to return from the last waypoint to the first.
        speed_mps: Driving speed.
        turn_dps: Turning rate.
        wheelbase_m: Distance between front and rear wheels.
        track_m: Distance between left and right wheels.
        lidar_height_m: Height of the lidar above the ground.
        columns: Number of rays around.
        rows: Number of rays above each other.
        elevation_min_deg: Elevation of the lowest row.
        elevation_max_deg: Elevation of the highest row.
        range_max_m: Maximum range of the lidar.
        lidar: Sensor that replaces the ideal rays; a scan contains the firings of a cycle, all from the rover's position at its end.
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
            *within(self, speed_mps=(0, 100), range_max_m=(0.1, 10_000), wheelbase_m=(0.01, 100), track_m=(0.01, 100), lidar_height_m=(0.01, 100)),
            (
                all(map(COORDINATE_M.holds, map(abs, places))),
                f"position_m, heading_deg and waypoints_m must be finite and at most {COORDINATE_M.text}",
            ),
            (self.steered_by == "buttons" or bool(self.waypoints_m), 'waypoints_m must be given where they steer, or steered_by "buttons"'),
            (0.0 < self.turn_dps <= 720.0, f"turn_dps must be above 0 and at most 720, got {self.turn_dps}"),
            (self.columns >= 1 and self.rows >= 1, f"columns and rows must be at least 1, got {self.columns} and {self.rows}"),
            ROVER_SCAN_POINTS.rule(self.columns * self.rows, "columns times rows"),
            (
                -90.0 <= self.elevation_min_deg <= self.elevation_max_deg <= 90.0,
                f"elevation_min_deg and elevation_max_deg must be -90 to 90, rising, got {self.elevation_min_deg} and {self.elevation_max_deg}",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class RoverNetworkSpec:
    """Source and destination of a rover's packets.

    Attributes:
        source: IPv4 address of this host, the packets' source; commands are received there.
        destination: Destination address or host name.
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
        number: Number of the rover; added to 8000, 9000, 10000 and 11000 it gives the rover's ports.
        file: File of its scans, one per line (plain, gzip, xz or zstd, also in a tar), relative to the rig. After the last scan it starts again with the first.
        drive: Drive through the scene, in place of a file.
        rate_hz: Cycles per second.
        noise: Noise added to the file's values, or to its pose and ranges; by default the rover emulator's, and none with ``drift`` or ``drive.lidar``.
        drift: Slow error of its position estimate, shared by its points.
        network: Source and destination of its packets.
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
            *within(self, rate_hz=(0.1, 100)),
        )

    @property
    def name(self) -> str:
        """Name in metrics and messages."""
        return f"rover-{self.number}"

    @property
    def added_noise(self) -> RoverNoiseSpec:
        """Noise that is added."""
        if self.noise is not None:
            return self.noise
        errs_otherwise = self.drift is not None or (self.drive is not None and self.drive.lidar is not None)
        return RoverNoiseSpec(position_m=0.0, rotation_deg=0.0, point_m=0.0) if errs_otherwise else RoverNoiseSpec()

    @property
    def period_ns(self) -> int:
        """Period of a cycle."""
        return round(1e9 / self.rate_hz)
