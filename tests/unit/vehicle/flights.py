"""A flight from beginning to end without a flight controller: position hold, wind, vehicle and ground in one kernel."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import require
from hilsim.parts.vehicle.physics.aerodynamics import MOTION_SIZE
from hilsim.parts.vehicle.physics.contact import no_planes, plane_through
from hilsim.parts.vehicle.physics.hold import Hold, HoldSpec, HoldState, build_hold, hold_command, hold_start
from hilsim.parts.vehicle.physics.multirotor import MAX_OBSTACLES, Multirotor, MultirotorState, build_multirotor, legs_down, step
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.platforms.wind import Wind, WindSpec, WindState, build_wind, wind_at, wind_from


class FlightLog(NamedTuple):
    """What a flight was, row by row; row 0 is the state it began with.

    Attributes:
        time_ns: ``int64[m]``.
        motion: ``float64[m, 13]``; see ``hilsim.parts.vehicle.physics.aerodynamics.POSITION``.
        specific_force_mps2: ``float64[m, 3]``, of the step before, in the body.
        rotor_radps: ``float64[m, n]``.
        closing_mps: ``float64[m, 2]``, fastest since the row before: at the ground, at an obstacle.
        legs_down: ``int64[m]``, how many carried something.
    """

    time_ns: npt.NDArray[np.int64]
    motion: npt.NDArray[np.float64]
    specific_force_mps2: npt.NDArray[np.float64]
    rotor_radps: npt.NDArray[np.float64]
    closing_mps: npt.NDArray[np.float64]
    legs_down: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class FlightSpec:
    """Where and in what a vehicle flies.

    Attributes:
        vehicle: What flies.
        hold: Who flies it.
        wind: What blows.
        step_ns: Of the vehicle.
        seed: Of the gusts.
        ground_point_m: A point of the ground; None: there is none.
        ground_normal: Out of the ground.
        obstacles: Further planes: a point and the normal of each, at most four.
    """

    vehicle: VehicleSpec
    hold: HoldSpec = field(default_factory=HoldSpec)
    wind: WindSpec = field(default_factory=WindSpec)
    step_ns: int = 1_000_000
    seed: int = 0
    ground_point_m: Vector | None = (0.0, 0.0, 0.0)
    ground_normal: Vector = (0.0, 0.0, 1.0)
    obstacles: tuple[tuple[Vector, Vector], ...] = ()

    def __post_init__(self) -> None:
        require(
            (len(self.obstacles) <= MAX_OBSTACLES, f"obstacles must be at most {MAX_OBSTACLES}, got {len(self.obstacles)}"),
            (
                self.hold.period_ns % self.step_ns == 0,
                f"hold.period_ns must be a whole number of steps of {self.step_ns}, got {self.hold.period_ns}",
            ),
        )


@kernel
def fly(
    multirotor: Multirotor,
    state: MultirotorState,
    hold: Hold,
    hold_state: HoldState,
    track: PoseTrack,
    wind: Wind,
    wind_state: WindState,
    ground: npt.NDArray[np.float64],
    obstacles: npt.NDArray[np.float64],
    health: npt.NDArray[np.float64],
    row_ns: int,
    log: FlightLog,
) -> None:
    """Fly until ``log`` is full, a row every ``row_ns``; commands are multiplied by ``health`` ``float64[n]``: 0 is a dead motor."""
    command = np.zeros(multirotor.airframe.rotor.shape[0])
    begin_ns = state.time_ns[0]
    for row in range(log.time_ns.shape[0]):
        log.closing_mps[row] = 0.0
        while state.time_ns[0] < begin_ns + row * row_ns:
            if (state.time_ns[0] - begin_ns) % hold.period_ns == 0:
                hold_command(hold, hold_state, multirotor, state, track, command)
                for number in range(command.shape[0]):
                    command[number] *= health[number]
            step(multirotor, state, command, wind_at(wind, wind_state, state.time_ns[0]), ground, obstacles)
            for kind in range(2):
                log.closing_mps[row, kind] = max(log.closing_mps[row, kind], state.closing_mps[kind])
        log.time_ns[row] = state.time_ns[0]
        log.motion[row] = state.motion
        log.specific_force_mps2[row] = state.specific_force_mps2
        log.rotor_radps[row] = state.rotor_radps
        log.legs_down[row] = legs_down(multirotor, state)


def simulate(
    spec: FlightSpec, track: PoseTrack, state: MultirotorState, *, duration_s: float, row_ns: int = 10_000_000, health: npt.ArrayLike | None = None
) -> FlightLog:
    """Fly ``track`` from ``state`` (left as it is at the end) for a time.

    Args:
        spec: Of the flight.
        track: Where to be, and where to look (yaw), at each rig time.
        state: Where it begins.
        duration_s: How long, to whole rows.
        row_ns: From one row of the log to the next, whole steps.
        health: ``float64[n]``, factors of the rotors' commands.

    Raises:
        ValueError: rows are no whole number of steps, or the vehicle cannot be held.
    """
    require((row_ns > 0 and row_ns % spec.step_ns == 0, f"row_ns must be a whole number of steps of {spec.step_ns}, got {row_ns}"))
    multirotor = build_multirotor(spec.vehicle, step_ns=spec.step_ns)
    rows, rotors, points = round(duration_s * 1e9) // row_ns + 1, len(spec.vehicle.rotors), multirotor.point.shape[0]
    log = FlightLog(
        np.zeros(rows, np.int64),
        np.zeros((rows, MOTION_SIZE)),
        np.zeros((rows, 3)),
        np.zeros((rows, rotors)),
        np.zeros((rows, 2)),
        np.zeros(rows, np.int64),
    )
    ground = no_planes(points)
    if spec.ground_point_m is not None:
        ground[:] = plane_through(spec.ground_point_m, spec.ground_normal)
    obstacles = np.array([plane_through(point, normal) for point, normal in spec.obstacles]).reshape(-1, 4)
    wind = build_wind(spec.wind, spec.seed, 0)
    fly(
        multirotor,
        state,
        build_hold(spec.hold, spec.vehicle),
        hold_start(),
        track,
        wind,
        wind_from(wind, int(state.time_ns[0])),
        ground,
        obstacles,
        np.ones(rotors) if health is None else np.array(health, dtype=np.float64),
        int(row_ns),
        log,
    )
    return log
