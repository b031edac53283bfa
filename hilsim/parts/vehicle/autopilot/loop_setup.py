"""Construction of the flight loop's arguments from a rig."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.errors import require
from hilsim.faults.table import FaultTable
from hilsim.parts.vehicle.autopilot.breaking import vehicle_fault_table
from hilsim.parts.vehicle.autopilot.change_table import ChangeTable, Kind, allocate_changes
from hilsim.parts.vehicle.autopilot.loop import attend_changes, fly_ahead
from hilsim.parts.vehicle.autopilot.loop_context import ControlWord, Flight, FlightCount, FlightWord, Line, LinkBuffers, LoopContext, SharedTelemetry
from hilsim.parts.vehicle.autopilot.send_queue import allocate_outbox, build_pace
from hilsim.parts.vehicle.autopilot.session import allocate_session
from hilsim.parts.vehicle.autopilot.vehicle_sensors import build_instruments
from hilsim.parts.vehicle.physics.aerodynamics import MOTION_SIZE, ORIENTATION, POSITION
from hilsim.parts.vehicle.physics.hold import build_hold, hold_start
from hilsim.parts.vehicle.physics.multirotor import Multirotor, build_multirotor, state_at
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.parts.vehicle.physics.surroundings import build_surroundings
from hilsim.parts.vehicle.physics.touching import allocate_touch
from hilsim.parts.vehicle.specs import FlightWaypointSpec, VehicleRigSpec
from hilsim.protocols.mavlink.frames import LARGEST_FRAME, allocate_stream
from hilsim.protocols.mavlink.messages import (
    COMMAND_LONG,
    HEARTBEAT,
    HIL_ACTUATOR_CONTROLS,
    HIL_FLAG,
    HIL_GPS,
    HIL_SENSOR,
    PROTOCOL_VERSION,
    SYSTEM_TIME,
    TIMESYNC,
    build_draft,
    build_origin,
)
from hilsim.transmit.links.addresses import RATES_HZ
from hilsim.transmit.links.descriptors import allocate_waits
from hilsim.transmit.packet_queue import allocate_packet_queue
from hilsim.transmit.statistics import BINS
from hilsim.units import NS_PER_S
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import PoseTrack, fixed_track, linear_track
from hilsim.world.platforms.wind import Wind, build_wind, wind_from
from hilsim.world.scene.world import World

_ROW_NS = 4_000_000
"""Interval of a flown track's rows: at 10 m/s^2 the error of linear interpolation is 0.02 mm."""
_FREE_SHARE_BYTES_PER_S = 200_000.0
_AUTOPILOT_INVALID, _TYPE_GENERIC, _STATE_ACTIVE = 8, 0, 4
_REQUEST_MESSAGE = 512
"""MAV_CMD_REQUEST_MESSAGE; its first parameter is the message id."""
_STATION_SLOTS, _CONTROLLER_SLOTS, _OBSERVATION_SLOTS = 1 << 15, 8, 16
"""The first holds a burst of 2.5 MB of a log (LOG_DATA has 90 bytes of it), which PX4 writes without a pause; reading it later instead would delay the motor commands behind it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LoopSetup:
    """Arguments of ``autopilot.loop.fly`` for a vehicle.

    Attributes:
        context: Constants.
        flight: State of the flight.
        shared: Data shared with the daemon.
        buffers: Message buffers.
    """

    context: LoopContext
    flight: Flight
    shared: SharedTelemetry
    buffers: LinkBuffers


def open_line(kind: str) -> Line:
    """Line without a rate limit."""
    return Line(
        pace=build_pace(line_bytes_per_s=None, station_bytes_per_s=_FREE_SHARE_BYTES_PER_S),
        is_stream=kind in ("serial", "tcp"),
        is_simulator=kind == "tcp",
    )


def standing_height_m(multirotor: Multirotor) -> float:
    """Height of the centre of mass above the lowest leg of a level vehicle."""
    return -float(multirotor.point[: multirotor.legs, 2].min())


def start_pose(spec: VehicleRigSpec, vehicle: VehicleSpec) -> Pose:
    """Initial pose of a vehicle, world from body."""
    x, y, z = spec.position_m
    return mounting((x, y, z + standing_height_m(build_multirotor(vehicle))), (0.0, 0.0, spec.yaw_deg))


def build_loop_context(spec: VehicleRigSpec, vehicle: VehicleSpec, line: Line, *, seed: int, rate_hz: int) -> LoopContext:
    """Build the constants for a rig's vehicle and one line to its controller.

    Args:
        spec: The rig's table.
        vehicle: Profile of the vehicle.
        line: Line to the controller.
        seed: Random seed of the rig.
        rate_hz: Sensor frames per second, one of ``RATES_HZ``: the rig's, or fewer if the line cannot carry them.

    Raises:
        ValueError: parameters are inconsistent.
    """
    controller = spec.controller
    require((rate_hz in RATES_HZ, f"rate_hz must be one of {', '.join(map(str, RATES_HZ))}, got {rate_hz}"))
    return LoopContext(
        multirotor=build_multirotor(vehicle),
        wind=build_wind(spec.wind, seed, 0),
        instruments=build_instruments(
            spec.sensors,
            spec.home,
            seed=seed,
            year=spec.year,
            frame_ns=NS_PER_S // rate_hz,
            magnetometer_every=max(1, math.ceil(rate_hz / controller.magnetometer_hz)),
            barometer_every=max(1, math.ceil(rate_hz / controller.barometer_hz)),
            gps_ns=NS_PER_S // controller.gps_hz,
        ),
        line=line,
        is_held=controller.kind == "hold",
        hold=build_hold(spec.hold, vehicle),
        track=_track(spec.waypoint, start_pose(spec, vehicle)),
        is_lockstep=controller.lockstep,
        no_faults=vehicle_fault_table((), seed),
    )


def build_loop_setup(spec: VehicleRigSpec, vehicle: VehicleSpec, line: Line, *, seed: int, rate_hz: int) -> LoopSetup:
    """Build the loop's arguments for a rig's vehicle at its initial pose; arguments as in ``build_loop_context``.

    Raises:
        ValueError: parameters are inconsistent.
    """
    context = build_loop_context(spec, vehicle, line, seed=seed, rate_hz=rate_hz)
    start = start_pose(spec, vehicle)
    state = state_at(context.multirotor, start.position_m, start.orientation)
    flight = Flight(
        state=state,
        start=state.motion.copy(),
        wind_state=wind_from(context.wind, 0),
        hold_state=hold_start(),
        command=np.zeros(len(vehicle.rotors)),
        imu_sums=np.zeros(8),
        around=build_surroundings(context.multirotor),
        word=shared_words(FlightWord),
    )
    return LoopSetup(
        context=context, flight=flight, shared=_shared_telemetry(), buffers=_link_buffers(spec.controller.system_id, spec.controller.component_id)
    )


class TimedChange(NamedTuple):
    """A change of a vehicle at a rig time.

    Attributes:
        at_ns: Rig time.
        kind: Kind of the change.
        value: Value of the change, as in ``ChangeTable.add``.
    """

    at_ns: int
    kind: Kind
    value: Wind | World | FaultTable | npt.NDArray[np.float64] | None = None


def placed_motion(multirotor: Multirotor, position_m: Vector, rotation_deg: Vector) -> npt.NDArray[np.float64]:
    """Motion ``float64[13]`` of a vehicle at rest whose legs' lowest point would be at a position if it were level."""
    x, y, z = position_m
    pose = mounting((x, y, z + standing_height_m(multirotor)), rotation_deg)
    return state_at(multirotor, pose.position_m, pose.orientation).motion


def flown_track(setup: LoopSetup, world: World, duration_ns: int, changes: Sequence[TimedChange] = ()) -> PoseTrack:
    """Track of a vehicle flown by its position hold, from rig time 0; the setup's state is then the final one.

    Args:
        setup: Vehicle at rig time 0.
        world: World of surfaces that it can touch.
        duration_ns: End of the flight.
        changes: Changes by their times; each begins with the first step at its time or later.
    """
    end_ns, step_ns = (duration_ns // _ROW_NS + 1) * _ROW_NS, setup.context.multirotor.step_ns
    table, begin_ns = ChangeTable(setup.shared.changes), 0
    times: list[npt.NDArray[np.int64]] = []
    motions: list[npt.NDArray[np.float64]] = []

    def fly_to(until_ns: int) -> None:
        rows_ns = np.arange(-(-begin_ns // _ROW_NS) * _ROW_NS, until_ns, _ROW_NS, dtype=np.int64)
        time_ns = np.unique(np.concatenate(([begin_ns], rows_ns, [until_ns])))
        motion = np.zeros((time_ns.size, MOTION_SIZE))
        fly_ahead(setup.context, setup.flight, world, setup.shared, begin_ns, time_ns, motion)
        times.append(time_ns)
        motions.append(motion)

    for change in changes:
        at_ns = -(-change.at_ns // step_ns) * step_ns
        if at_ns >= end_ns:
            break
        if at_ns > begin_ns:
            fly_to(at_ns)
            begin_ns = at_ns
            times[-1][-1] -= 1  # the pose leaps within a nanosecond
        table.add(change.kind, at_ns, change.value)
        attend_changes(setup.context, setup.flight, setup.shared, at_ns)
    fly_to(end_ns)
    motion = np.concatenate(motions)
    return linear_track(np.concatenate(times), motion[:, POSITION : POSITION + 3], motion[:, ORIENTATION : ORIENTATION + 4])


def _track(waypoints: tuple[FlightWaypointSpec, ...], start: Pose) -> PoseTrack:
    if not waypoints:
        return fixed_track(start)
    poses = [mounting(waypoint.position_m, (0.0, 0.0, waypoint.yaw_deg)) for waypoint in waypoints]
    if len(poses) == 1:
        return fixed_track(poses[0])
    time_ns = np.array([round(waypoint.time_s * 1e9) for waypoint in waypoints], dtype=np.int64)
    return linear_track(time_ns, [pose.position_m for pose in poses], [pose.orientation for pose in poses])


def _shared_telemetry() -> SharedTelemetry:
    control, wakes = shared_words(ControlWord), np.full(8, -1, np.int64)
    control[ControlWord.LINK] = -1
    return SharedTelemetry(
        control=control,
        wakes=wakes,
        session=allocate_session(),
        counts=shared_words(FlightCount),
        lateness=np.zeros(BINS, np.int64),
        round_trip=np.zeros(BINS, np.int64),
        gap=np.zeros(BINS, np.int64),
        sums_ns=np.zeros(8, np.int64),
        to_stations=allocate_packet_queue(_STATION_SLOTS, LARGEST_FRAME),
        to_controller=allocate_packet_queue(_CONTROLLER_SLOTS, LARGEST_FRAME),
        observations=allocate_packet_queue(_OBSERVATION_SLOTS, LARGEST_FRAME),
        touch=allocate_touch(),
        changes=allocate_changes(),
    )


def _link_buffers(system_id: int, component_id: int) -> LinkBuffers:
    heartbeat = build_draft(HEARTBEAT)
    record = heartbeat.record
    record["type"], record["autopilot"], record["base_mode"] = _TYPE_GENERIC, _AUTOPILOT_INVALID, HIL_FLAG
    record["system_status"], record["mavlink_version"] = _STATE_ACTIVE, PROTOCOL_VERSION
    request = build_draft(COMMAND_LONG)
    request.record["command"], request.record["param1"] = _REQUEST_MESSAGE, HEARTBEAT.id
    return LinkBuffers(
        origin=build_origin(system_id, component_id),
        heartbeat=heartbeat,
        system_time=build_draft(SYSTEM_TIME),
        sensor=build_draft(HIL_SENSOR),
        gps=build_draft(HIL_GPS),
        timesync=build_draft(TIMESYNC),
        request=request,
        received_heartbeat=build_draft(HEARTBEAT),
        received_controls=build_draft(HIL_ACTUATOR_CONTROLS),
        received_timesync=build_draft(TIMESYNC),
        frame=np.zeros(LARGEST_FRAME, np.uint8),
        stream=allocate_stream(),
        outbox=allocate_outbox(),
        waits=allocate_waits(),
        nothing=allocate_packet_queue(1, 1),
    )
