"""Everything the loop that flies is handed, built from what the rig says."""

import math
from dataclasses import dataclass

import numpy as np

from hilsim.bridge.cable import allocate_cable
from hilsim.bridge.flying import Craft, Flight, Talk, Watch
from hilsim.bridge.instruments import build_instruments
from hilsim.bridge.messages import HEARTBEAT, HIL_ACTUATOR_CONTROLS, HIL_GPS, HIL_SENSOR, PROTOCOL_VERSION, TIMESYNC, draft, origin
from hilsim.bridge.session import HEARTBEAT_PERIOD_NS, allocate_session
from hilsim.bridge.specs import FlightWaypointSpec, VehicleRigSpec
from hilsim.bridge.surroundings import surroundings
from hilsim.errors import require
from hilsim.geometry.poses import Pose, mounting
from hilsim.geometry.tracks import PoseTrack, fixed_track, linear_track
from hilsim.transmit.statistics import BINS
from hilsim.transmit.tape import allocate_tape
from hilsim.vehicle.hold import build_hold, hold_start
from hilsim.vehicle.multirotor import Multirotor, build_multirotor, state_at
from hilsim.vehicle.specs import VehicleSpec
from hilsim.vehicle.wind import build_wind, wind_from

_AUTOPILOT_INVALID, _TYPE_GENERIC, _STATE_ACTIVE = 8, 0, 4
_HIL_MODE = 0x20
_STATION_SLOTS, _CONTROLLER_SLOTS = 1024, 256
_FRAME_SIZE = 280
_CONTROL, _LINK = 0, 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Outfit:
    """What ``flying.fly`` takes of a vehicle.

    Attributes:
        craft: Constants.
        flight: State.
        watch: Shared with the daemon.
        talk: Messages.
    """

    craft: Craft
    flight: Flight
    watch: Watch
    talk: Talk


def standing_height_m(multirotor: Multirotor) -> float:
    """Of the centre of mass above the lowest leg, level."""
    return -float(multirotor.point[: multirotor.legs, 2].min())


def outfit(spec: VehicleRigSpec, vehicle: VehicleSpec, *, seed: int, rate_hz: int) -> Outfit:
    """The vehicle of a rig, standing at its place.

    Args:
        spec: What the rig says.
        vehicle: Its profile.
        seed: Of the rig.
        rate_hz: Sensor frames a second: the rig's, or fewer where the link cannot carry them.

    Raises:
        ValueError: figures do not go together.
    """
    controller = spec.controller
    require((1000 % rate_hz == 0, f"rate_hz must divide 1000, got {rate_hz}"))
    multirotor = build_multirotor(vehicle)
    instruments = build_instruments(
        spec.sensors,
        spec.home,
        seed=seed,
        year=spec.year,
        frame_ns=1_000_000_000 // rate_hz,
        magnetometer_every=max(1, math.ceil(rate_hz / controller.magnetometer_hz)),
        barometer_every=max(1, math.ceil(rate_hz / controller.barometer_hz)),
        gps_ns=1_000_000_000 // controller.gps_hz,
    )
    x, y, z = spec.position_m
    start = mounting((x, y, z + standing_height_m(multirotor)), (0.0, 0.0, spec.yaw_deg))
    state = state_at(multirotor, start.position_m, start.orientation)
    wind = build_wind(spec.wind, seed, 0)
    craft = Craft(
        multirotor=multirotor,
        wind=wind,
        instruments=instruments,
        is_held=controller.kind == "hold",
        hold=build_hold(spec.hold, vehicle),
        track=_track(spec.waypoint, start),
        is_lockstep=controller.lockstep,
        heartbeat_ns=0 if controller.kind == "tcp" else HEARTBEAT_PERIOD_NS,
    )
    flight = Flight(
        state=state,
        start=state.motion.copy(),
        wind_state=wind_from(wind, 0),
        hold_state=hold_start(),
        command=np.zeros(len(vehicle.rotors)),
        felt=np.zeros(8),
        around=surroundings(multirotor),
        word=np.zeros(16, np.int64),
    )
    return Outfit(craft=craft, flight=flight, watch=_watch(), talk=_talk(controller.system_id, controller.component_id))


def _track(waypoints: tuple[FlightWaypointSpec, ...], start: Pose) -> PoseTrack:
    if not waypoints:
        return fixed_track(start)
    poses = [mounting(waypoint.position_m, (0.0, 0.0, waypoint.yaw_deg)) for waypoint in waypoints]
    if len(poses) == 1:
        return fixed_track(poses[0])
    time_ns = np.array([round(waypoint.time_s * 1e9) for waypoint in waypoints], dtype=np.int64)
    return linear_track(time_ns, [pose.position_m for pose in poses], [pose.orientation for pose in poses])


def _watch() -> Watch:
    control = np.zeros(8, np.int64)
    control[_LINK] = -1
    return Watch(
        control=control,
        session=allocate_session(),
        cable=allocate_cable(),
        lateness=np.zeros(BINS, np.int64),
        round_trip=np.zeros(BINS, np.int64),
        gap=np.zeros(BINS, np.int64),
        to_stations=allocate_tape(_STATION_SLOTS, _FRAME_SIZE),
        to_controller=allocate_tape(_CONTROLLER_SLOTS, _FRAME_SIZE),
    )


def _talk(system_id: int, component_id: int) -> Talk:
    heartbeat = draft(HEARTBEAT)
    said = heartbeat.record
    said["type"], said["autopilot"], said["base_mode"] = _TYPE_GENERIC, _AUTOPILOT_INVALID, _HIL_MODE
    said["system_status"], said["mavlink_version"] = _STATE_ACTIVE, PROTOCOL_VERSION
    return Talk(
        origin=origin(system_id, component_id),
        heartbeat=heartbeat,
        sensor=draft(HIL_SENSOR),
        gps=draft(HIL_GPS),
        timesync=draft(TIMESYNC),
        heard_heartbeat=draft(HEARTBEAT),
        heard_controls=draft(HIL_ACTUATOR_CONTROLS),
        heard_timesync=draft(TIMESYNC),
        frame=np.zeros(_FRAME_SIZE, np.uint8),
    )
