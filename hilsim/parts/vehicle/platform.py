"""Motion of a rig's platform by its vehicle: poses at the start, which the flight loop goes on with, or a flight without a clock, with timed changes."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hilsim.config.rig import Rig
from hilsim.config.script import ChangeSpec, ClearChange, FaultChange, VehicleChange
from hilsim.errors import ConfigError
from hilsim.parts.vehicle.autopilot.breaking import VEHICLE, vehicle_fault_table, vehicle_faults
from hilsim.parts.vehicle.autopilot.change_table import Kind
from hilsim.parts.vehicle.autopilot.loop_setup import TimedChange, build_loop_setup, flown_track, open_line, placed_motion, start_pose
from hilsim.parts.vehicle.physics.multirotor import Multirotor, build_multirotor
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.parts.vehicle.physics.surroundings import is_below_ground
from hilsim.parts.vehicle.specs import VehicleRigSpec
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.platforms.live import STATE_SIZE, LivePose, build_live_pose, write_state
from hilsim.world.platforms.wind import build_wind
from hilsim.world.scene.world import World

_LEVEL = (0.0, 0.0, 0.0)


def require_place(world: World, position_m: Vector | None, name: str = "position_m") -> None:
    """Refuse a place of a vehicle under the ground; None: no place.

    Raises:
        ConfigError: the place is there.
    """
    if position_m is not None and is_below_ground(world, position_m):
        raise ConfigError(f"{name} must be above the ground, got {list(position_m)}, below which there is none: the vehicle would fall for ever")


def loop_changes(change: VehicleChange, at_ns: int, multirotor: Multirotor, *, seed: int) -> Iterator[TimedChange]:
    """Changes of the flight loop that a change of a vehicle consists of, at a rig time."""
    if change.reset:
        yield TimedChange(at_ns, Kind.RESET)
    if change.position_m is not None:
        yield TimedChange(at_ns, Kind.PLACE, placed_motion(multirotor, change.position_m, change.rotation_deg or _LEVEL))
    if change.wind is not None:
        yield TimedChange(at_ns, Kind.WIND, build_wind(change.wind, seed, 0))


def profile_of(rig: Rig) -> VehicleSpec:
    """Profile of a rig's vehicle."""
    profile: VehicleSpec = rig.settings["vehicle"][0]
    return profile


def spec_of(rig: Rig) -> VehicleRigSpec:
    """Table of a rig's vehicle."""
    spec: VehicleRigSpec = rig.spec.part("vehicle")[0]
    return spec


def motion_of(rig: Rig, world: World, until_ns: int | None, changes: Sequence[tuple[ChangeSpec, Any]]) -> LivePose | PoseTrack:
    """Motion of a rig's vehicle; arguments, result and errors as in ``PartKind.motion``."""
    spec, profile = spec_of(rig), profile_of(rig)
    require_place(world, spec.position_m, f"{rig.path}: vehicle.position_m")
    if until_ns is None:
        return standing(spec, profile)
    if spec.controller.kind != "hold":
        raise ConfigError(
            f'{rig.path}: vehicle.controller.kind must be "hold" where nothing runs in real time, got "{spec.controller.kind}";'
            " hilsim run --record FILE records a flight under a controller"
        )
    setup = build_loop_setup(spec, profile, open_line("hold"), seed=rig.spec.seed, rate_hz=spec.controller.rate_hz)
    return flown_track(setup, world, until_ns, tuple(_timed(rig, profile, changes)))


def standing(spec: VehicleRigSpec, profile: VehicleSpec) -> LivePose:
    """Poses of a vehicle that stays at its start."""
    live = build_live_pose()
    state = np.zeros(STATE_SIZE)
    pose = start_pose(spec, profile)
    state[0:3], state[6:10] = pose.position_m, pose.orientation
    write_state(live, 0, state)
    return live


def _timed(rig: Rig, profile: VehicleSpec, changes: Sequence[tuple[ChangeSpec, Any]]) -> list[TimedChange]:
    """The rig's faults and changes for the flight loop by their times, each with the world, or the faults, after it."""
    multirotor, found = build_multirotor(profile), list[TimedChange]()
    faults = vehicle_faults(rig.spec.fault)
    if faults:
        found.append(TimedChange(0, Kind.FAULTS, vehicle_fault_table(faults, rig.spec.seed)))
    for change, value in changes:
        match change:
            case VehicleChange():
                found.extend(loop_changes(change, change.sensor_ns(VEHICLE), multirotor, seed=rig.spec.seed))
            case FaultChange() | ClearChange():
                table = vehicle_fault_table(vehicle_faults(value), rig.spec.seed)
                found.append(TimedChange(change.sensor_ns(VEHICLE), Kind.FAULTS, table))
            case _:
                found.append(TimedChange(change.at_ns or 0, Kind.WORLD, value))
    return sorted(found, key=lambda change: change.at_ns)
