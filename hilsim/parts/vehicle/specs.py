"""The keys of a rig's ``[vehicle]``: vehicle, initial pose, controller and ground stations."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Literal

from hilsim.errors import require, within
from hilsim.parts.vehicle.physics.hold import HoldSpec
from hilsim.parts.vehicle.physics.sensor_specs import SensorsSpec
from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ObstacleSpec
from hilsim.protocols.ardupilot_json import JSON_PORT
from hilsim.transmit.links.addresses import RATES_HZ, host_and_port, is_address
from hilsim.transmit.links.line import SerialSpec
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.geodesy import HomeSpec
from hilsim.world.platforms.wind import WindSpec

Rule = tuple[bool, str]
_MAVLINK_KINDS = ("serial", "tcp", "udp")
TRUTH_RATES_HZ = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Rates of the truth file in Hz: whole steps of the physics per row."""
CONTROLLER_PORT = 4560
"""PX4's simulator link (TCP; the simulator listens)."""
STATION_PORT = 14550
"""UDP port of QGroundControl."""


@dataclass(frozen=True, kw_only=True)
class ControllerSpec(SerialSpec):
    """The vehicle's controller and its serial port (empty for other kinds).

    Attributes:
        kind: ``serial``: a flight controller in its hardware-in-the-loop mode on a serial port; ``tcp``: PX4's simulator link (it connects here); ``udp``: MAVLink datagrams to and from
            ``address``; ``ardupilot``: ArduPilot's simulation by its JSON link (it sends to hilsim); ``hold``: no controller, the built-in position hold flies the waypoints.
        port: Serial device, preferably by its name under /dev/serial/by-id, which does not change on replugging; for kind ``serial`` only.
        is_uart: Whether the port is a true UART, whose baud rate limits the link; by default detected from the device.
        address: ``tcp``: listening address, 127.0.0.1:4560 by default; ``udp``: address of the controller; ``ardupilot``: listening address, 127.0.0.1:9002 by default; as ``a.b.c.d:port``.
        lockstep: ``tcp`` only: whether simulation and controller wait for each other.
        rate_hz: Sensor frames per second.
        magnetometer_hz: Magnetometer readings per second.
        barometer_hz: Barometer readings per second.
        gps_hz: GPS positions per second.
        system_id: MAVLink system id of hilsim.
        component_id: MAVLink component id of hilsim.
    """

    kind: Literal["serial", "tcp", "udp", "ardupilot", "hold"] = "hold"
    port: str = ""
    needs_port: ClassVar[bool] = False
    is_uart: bool | None = None
    address: str = ""
    lockstep: bool = False
    rate_hz: int = 250
    magnetometer_hz: int = 100
    barometer_hz: int = 50
    gps_hz: int = 10
    system_id: int = 1
    component_id: int = 200

    def rules(self) -> Iterator[Rule]:
        """Yield each rule as a condition and its error message."""
        yield (self.kind == "serial") == bool(self.port), 'port must be given for kind "serial" and only for it'
        yield from super().rules()
        yield not self.address or is_address(self.address), f'address must be like "127.0.0.1:{CONTROLLER_PORT}", got "{self.address}"'
        yield self.kind != "udp" or bool(self.address), 'address must be given for kind "udp"'
        yield self.kind in ("tcp", "udp", "ardupilot") or not self.address, f'address must not be given for kind "{self.kind}", got "{self.address}"'
        yield not self.lockstep or self.kind == "tcp", f'lockstep must be with kind "tcp": hardware runs by its own clock, got "{self.kind}"'
        yield self.rate_hz in RATES_HZ, f"rate_hz must be one of {', '.join(map(str, RATES_HZ))}, got {self.rate_hz}"
        yield from within(self, magnetometer_hz=(25, 100), barometer_hz=(10, 100), gps_hz=(1, 20), system_id=(1, 255), component_id=(1, 255))

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port of ``address``."""
        default = f"127.0.0.1:{JSON_PORT if self.kind == 'ardupilot' else CONTROLLER_PORT}"
        return host_and_port(self.address or default)


@dataclass(frozen=True, kw_only=True)
class GroundStationSpec:
    """A ground station connected to hilsim.

    Attributes:
        kind: ``udp``: the station listens at ``address`` (QGroundControl, Mission Planner: 14550); ``udp_server``: hilsim listens there, and answers up to eight programs that
            send; ``tcp``: hilsim listens there for connections.
        address: Address as ``a.b.c.d:port``.
        actuators: Whether to forward HIL_ACTUATOR_CONTROLS, nine tenths of a controller's traffic.
        truth: Whether to send HIL_STATE_QUATERNION, the vehicle's true pose, 20 times a second; it is never sent to the controller.
    """

    kind: Literal["udp", "udp_server", "tcp"] = "udp"
    address: str = f"127.0.0.1:{STATION_PORT}"
    actuators: bool = False
    truth: bool = False

    def __post_init__(self) -> None:
        require((is_address(self.address), f'address must be like "127.0.0.1:{STATION_PORT}", got "{self.address}"'))


@dataclass(frozen=True, kw_only=True)
class FlightWaypointSpec:
    """Position of the position hold at a time.

    Attributes:
        time_s: Rig time.
        position_m: Position in the world.
        yaw_deg: Heading of the nose; 0 is east, 90 north.
    """

    time_s: float
    position_m: Vector
    yaw_deg: float = 0.0

    def __post_init__(self) -> None:
        require(
            (self.time_s >= 0.0 and math.isfinite(self.time_s), f"time_s must be at least 0, got {self.time_s}"),
            (all(map(math.isfinite, self.position_m)), f"position_m must be finite, got {self.position_m}"),
        )


@dataclass(frozen=True, kw_only=True)
class VehicleRigSpec:
    """The vehicle that carries the sensors (``platform.kind = "vehicle"``).

    Attributes:
        profile: A shipped vehicle (``iris``, ``airsim-quad``) or the path of a profile, relative to the rig.
        position_m: Initial position of its legs' lowest point; it drops to the ground from there.
        yaw_deg: Initial heading of its nose; 0 is east, 90 north.
        home: Geographic position of the world's ``origin_m``, for GPS, magnetic field and scene.
        year: Decimal year of the magnetic field (WMM2025: 2025 to 2030).
        wind: Wind at the place of flight.
        sensors: Sensors of the vehicle.
        controller: Controller of the vehicle.
        ground_station: Ports at which ground stations exchange frames with the controller.
        hold: Gains of the position hold.
        waypoint: Waypoints of the position hold, times increasing; straight lines between.
        obstacle: OBSTACLE_DISTANCE to the controller, computed from a lidar's scan.
        distance: DISTANCE_SENSOR to the controller, computed from a lidar's scan.
        truth_file: File for its true pose, speed and rates in flight, its contacts and the errors of the autopilot's estimates: Parquet if the name ends
            with ``.parquet``, else CSV; relative to the rig.
        truth_hz: Rows per second of the truth file.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"ranger": "[[rangefinder]]"}

    profile: str = "iris"
    position_m: Vector = (0.0, 0.0, 0.0)
    yaw_deg: float = 90.0
    home: HomeSpec = field(default_factory=lambda: HomeSpec(latitude_deg=47.397742, longitude_deg=8.545594, altitude_m=488.0))
    year: float = 2026.5
    wind: WindSpec = field(default_factory=WindSpec)
    sensors: SensorsSpec = field(default_factory=SensorsSpec)
    controller: ControllerSpec = field(default_factory=ControllerSpec)
    ground_station: tuple[GroundStationSpec, ...] = ()
    hold: HoldSpec = field(default_factory=HoldSpec)
    waypoint: tuple[FlightWaypointSpec, ...] = ()
    obstacle: ObstacleSpec | None = None
    distance: tuple[DistanceSensorSpec, ...] = ()
    truth_file: str = ""
    truth_hz: int = 50

    def __post_init__(self) -> None:
        require(*self._rules(), *self._eyes_rules())

    def _eyes_rules(self) -> Iterator[Rule]:
        kind = self.controller.kind
        speaks = kind in _MAVLINK_KINDS
        yield speaks or self.obstacle is None, f'obstacle must be with a controller that speaks MAVLink with hilsim, got kind "{kind}"'
        yield speaks or not self.distance, f'distance must be with a controller that speaks MAVLink with hilsim, got kind "{kind}"'
        ids = [spec.sensor_id for spec in self.distance]
        yield len(ids) == len(set(ids)), f"sensor_id of distance must differ, got {ids}"

    def _rules(self) -> Iterator[Rule]:
        times = [waypoint.time_s for waypoint in self.waypoint]
        kind = self.controller.kind
        yield all(map(math.isfinite, self.position_m)), f"position_m must be finite, got {self.position_m}"
        yield self.truth_hz in TRUTH_RATES_HZ, f"truth_hz must be one of {', '.join(map(str, TRUTH_RATES_HZ))}, got {self.truth_hz}"
        yield math.isfinite(self.yaw_deg), f"yaw_deg must be finite, got {self.yaw_deg}"
        yield from within(self, year=(2025, 2030))
        yield kind == "hold" or not times, 'waypoint must be with controller.kind "hold": a controller flies its own mission'
        yield all(early < late for early, late in pairwise(times)), f"waypoints' time_s must rise, got {times}"
        yield (
            kind in _MAVLINK_KINDS or not self.ground_station,
            f'ground_station must be with a controller that speaks MAVLink with hilsim, got kind "{kind}"',
        )
        stations = [f"{station.kind} {station.address}" for station in self.ground_station]
        yield len(set(stations)) == len(stations), f"ground stations must differ in kind or address, got {', '.join(stations)}"
