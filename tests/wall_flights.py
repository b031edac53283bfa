"""Flights of the scripted controller into obstacles, without a clock: the flight loop's own steps and sensors, the controller's estimator and pilot, frame by frame in turn."""

import copy
import dataclasses
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from hilsim.parts.vehicle.autopilot.loop import Motion, make_steps
from hilsim.parts.vehicle.autopilot.loop_setup import build_loop_setup, open_line
from hilsim.parts.vehicle.autopilot.vehicle_sensors import fill_gps, fill_sensor
from hilsim.parts.vehicle.physics.multirotor import is_damaged
from hilsim.parts.vehicle.physics.touching import TouchWord
from hilsim.parts.vehicle.specs import ControllerSpec, VehicleRigSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.platforms.live import build_live_pose
from hilsim.world.platforms.wind import wind_at
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box, cylinder, plane
from hilsim.world.scene.world import SceneObject, build_world
from hilsim_flight_controller.flying.commander import Commander
from hilsim_flight_controller.flying.estimator import Estimator
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.rules.timing import BAROMETER, MAGNETOMETER
from tests.unit.vehicle.vehicles import profile

RATE_HZ = 250
HEIGHT_M = 4.0
DOWN_M = 0.4
RUN_UP_M = {1.0: 3.0, 3.0: 8.0, 8.0: 30.0}
"""Distances in which the scripted pilot reaches a speed (m/s)."""
OBSTACLES = ("wall head-on", "wall at 45 deg", "corner", "pole")
POLE_RADIUS_M = 0.1
POLE_COURSE_DEG = 22.5
"""In the middle between two of the fixed directions in which obstacles are looked for."""
COURSE_DEG = {"wall head-on": 0.0, "wall at 45 deg": 45.0, "corner": 45.0, "pole": POLE_COURSE_DEG}
"""North of east."""
_GRASS = DEFAULTS["grass"]
_FLOOR = SceneObject(mesh=plane((300.0, 300.0), _GRASS))


def world_with(obstacle, x_m, y_m):
    """A floor and an obstacle whose surface is met by the collision sphere of a vehicle that comes to about (x, y)."""
    radius_m = profile("iris").collision_radius_m
    east = SceneObject(mesh=box((1.0, 120.0, 12.0), _GRASS), placement=Pose(position_m=(x_m + radius_m + 0.5, y_m, 0.0)))
    north = SceneObject(mesh=box((120.0, 1.0, 12.0), _GRASS), placement=Pose(position_m=(x_m, y_m + radius_m + 0.5, 0.0)))
    away_m = radius_m + POLE_RADIUS_M
    course_rad = math.radians(POLE_COURSE_DEG)
    place_m = (x_m + away_m * math.cos(course_rad), y_m + away_m * math.sin(course_rad), 6.0)
    pole = SceneObject(mesh=cylinder(POLE_RADIUS_M, 12.0, _GRASS), placement=Pose(position_m=place_m))
    return build_world([_FLOOR, *{"wall head-on": [east], "wall at 45 deg": [east], "corner": [east, north], "pole": [pole]}[obstacle]])


class WallFlight:
    """An Iris, with or without propeller guards, and its controller, in hover at ``HEIGHT_M``; ``world`` may be replaced."""

    def __init__(self, world, *, guards):
        spec = VehicleRigSpec(position_m=(0.0, 0.0, 0.06), yaw_deg=0.0, controller=ControllerSpec(kind="serial", port="/dev/null"))
        shape = dataclasses.replace(profile("iris"), has_propeller_guards=guards)
        self.made = build_loop_setup(spec, shape, open_line("serial"), seed=1, rate_hz=RATE_HZ)
        self.world, self.live, self.pose = world, build_live_pose(), np.empty(13)
        self.report, self.estimate, self.said = Report(), Estimator(), []
        self.commander = Commander(report=self.report, estimate=self.estimate, say=self.say)
        self.now_ns = self.next_gps_ns = self.frame = 0
        self.rows, self.obstacle = [], ""

    def say(self, text):
        self.said.append(text)

    def copied(self, world):
        """The same flight up to now, in another world."""
        memo = {id(self.world): world, id(self.made.context): self.made.context}
        return copy.deepcopy(self, memo)

    @property
    def state(self):
        return self.made.flight.state

    @property
    def touch(self):
        return self.made.shared.touch

    @property
    def now_s(self):
        return self.now_ns * 1e-9

    def turn(self):
        """One sensor frame: the steps before it, the frame, the motor command that answers it."""
        made = self.made
        make_steps(made.context, made.flight, self.world, self.live, made.shared, int(Motion.FREE), self.now_ns, self.pose)
        sums, now_us, sensor = made.flight.imu_sums, self.now_ns // 1000, made.buffers.sensor.record
        sums[:6] /= max(sums[6], 1.0)
        wind = wind_at(made.context.wind, made.flight.wind_state, self.state.time_ns[0])
        fill_sensor(made.context.instruments, self.state, wind, sums, self.frame, now_us, sensor)
        sums[:] = 0.0
        message = sensor.view(np.recarray)[0]
        updated = int(message.fields_updated)
        self.estimate.sensor(now_us, message, has_mag=updated & MAGNETOMETER == MAGNETOMETER, has_baro=updated & BAROMETER == BAROMETER)
        if self.now_ns >= self.next_gps_ns:
            self.next_gps_ns += made.context.instruments.gps_ns
            fill_gps(made.context.instruments, self.live, self.now_ns, self.state.time_ns[0], 0, made.buffers.gps.record)
            self.estimate.gps(now_us, made.buffers.gps.record.view(np.recarray)[0])
        self.commander.step(now_us)
        motors = self.commander.motors
        made.shared.session.control[:4] = 0.0 if motors is None else motors
        multirotor = made.context.multirotor
        force_n = self.state.impulse_ns[multirotor.point.shape[0] :].sum(axis=0) / (multirotor.step_ns * 1e-9)
        self.rows.append((self.now_s, *self.state.motion, *force_n, *self.estimate.v))
        self.frame += 1
        self.now_ns += made.context.instruments.frame_ns

    def until(self, condition, most_s):
        """Fly on; returns whether the condition came to hold in time."""
        end_ns = self.now_ns + round(most_s * 1e9)
        while not condition() and self.now_ns < end_ns:
            self.turn()
        return condition()

    def fly_for(self, seconds):
        self.until(lambda: False, seconds)

    def hover(self):
        """Take off and hover."""
        assert self.until(lambda: self.estimate.ready, 40.0)
        self.commander.set_mode(self.now_ns // 1000, 4, 3)
        self.commander.arm(self.now_ns // 1000)
        self.fly_for(1.8)
        self.commander.take_off(self.now_ns // 1000, HEIGHT_M)
        assert self.until(lambda: self.commander.mode == "hold", 20.0)
        self.fly_for(2.0)
        return self


@cache
def hovering(*, guards):
    """A flight in hover over a floor; copy it."""
    return WallFlight(build_world([_FLOOR]), guards=guards).hover()


@dataclass(frozen=True)
class WallRow:
    """What became of a flight into an obstacle; times in s, lengths in m, speeds in m/s.

    Attributes:
        closing_mps: Speed of the first contact.
        impact_s: From the first touch until the velocity towards the obstacle was gone.
        contact_s: All contacts together, as ``hilsim.parts.vehicle.physics.touching`` counts them.
        end_m: Where it is at the end.
        slid_m: From the first contact to the place of the command to land.
        pressed_n: Mean force of the obstacle on the level in the second before LAND.
        friction_share: Largest share of what friction can hold (coefficient times force) that held it up then.
        fastest_turn_radps: Largest rate about any axis while it touched, before LAND.
        velocity_error_mps: Largest error of the estimated velocity (level) in the second after the impact.
        landed_s: From the command (or the damage) until it stood, of a vehicle with broken blades until it was down; None: it did not.
        told_height_m: Height of the command to land.
        crashed: Whether an impact broke it.
        broken_rotors: Rotors with broken blades.
        warnings: Of the controller.
    """

    closing_mps: float
    impact_s: float
    contact_s: float
    end_m: tuple[float, float, float]
    slid_m: float
    pressed_n: float
    friction_share: float
    fastest_turn_radps: float
    velocity_error_mps: float
    landed_s: float | None
    told_height_m: float
    crashed: bool
    broken_rotors: int
    warnings: tuple[str, ...]


def fly_into(obstacle, speed_mps, *, guards, pressed_s=10.0, change=None):
    """Hover, fly at an obstacle with the place to be far behind it, press for ``pressed_s``, land; returns the flight and its ``WallRow``.

    ``change(flight)`` is called before the flight begins.
    """
    course_rad = math.radians(COURSE_DEG[obstacle])
    away = np.array([math.cos(course_rad), math.sin(course_rad)])
    hover = hovering(guards=guards)
    start_m = hover.state.motion[:2]
    met_m = start_m + RUN_UP_M[speed_mps] * away
    flight = hover.copied(world_with(obstacle, *met_m))
    flight.rows, flight.obstacle = [], obstacle
    if change is not None:
        change(flight)
    commander, pilot = flight.commander, flight.commander.pilot
    commander.cruise_mps, pilot.fastest_mps = speed_mps, 1.3 * speed_mps
    behind_m = RUN_UP_M[speed_mps] + 10.0
    commander.go(commander.target + behind_m * np.array([away[1], away[0], 0.0]), commander.yaw)
    assert flight.until(lambda: flight.touch.word[TouchWord.COUNT] > 0, 60.0), "it never met the obstacle"
    closing_mps = float(flight.touch.closing_mps[1])
    met_s, place_m = flight.now_s, flight.state.motion[:3].copy()
    flight.until(lambda: is_damaged(flight.state), pressed_s)
    told_s, told_m = flight.now_s, flight.state.motion[:3].copy()
    commander.land(flight.now_ns // 1000)
    landed = flight.until(lambda: _lies(flight) if is_damaged(flight.state) else not commander.armed, 60.0)
    rows = np.array(flight.rows)
    return flight, _row_of(flight, rows, closing_mps, met_s, place_m, told_s, told_m, away, landed=landed)


def _lies(flight):
    if not flight.state.crashed[0]:
        return flight.state.motion[2] < DOWN_M
    return flight.state.motion[2] < 0.5 and np.abs(flight.state.motion[3:6]).max() < 0.01


def _row_of(flight, rows, closing_mps, met_s, place_m, told_s, told_m, away, *, landed):
    time_s, force_n = rows[:, 0], rows[:, 14:17]
    touching = force_n.any(axis=1)
    after = (time_s >= met_s - 0.005) & (time_s < met_s + 1.0)
    inward = rows[:, 4:6] @ (away if flight.obstacle in {"corner", "pole"} else np.array([1.0, 0.0]))
    gone = np.flatnonzero((time_s >= met_s - 0.005) & (inward < 0.05 * inward[np.searchsorted(time_s, met_s - 0.01)]))
    error = rows[after, 17:19] - rows[after][:, [5, 4]]
    pressing = touching & (time_s <= told_s)
    held_n = force_n[pressing & (time_s > told_s - 1.0)]
    level_n = np.hypot(held_n[:, 0], held_n[:, 1])
    friction = flight.made.context.multirotor.friction_ratio
    return WallRow(
        closing_mps=closing_mps,
        impact_s=float(time_s[gone[0]] - met_s) if len(gone) else math.inf,
        contact_s=float(np.count_nonzero(touching)) / RATE_HZ,
        end_m=tuple(np.round(flight.state.motion[:3], 2).tolist()),
        slid_m=float(np.linalg.norm(told_m - place_m)),
        pressed_n=float(level_n.mean()),
        friction_share=float((np.abs(held_n[:, 2]) / (friction * level_n)).max()) if friction > 0.0 else 0.0,
        fastest_turn_radps=float(np.abs(rows[pressing, 11:14]).max()),
        velocity_error_mps=float(np.linalg.norm(error, axis=1).max()),
        landed_s=flight.now_s - told_s if landed else None,
        told_height_m=float(told_m[2]),
        crashed=bool(flight.state.crashed[0]),
        broken_rotors=int(flight.state.broken.sum()),
        warnings=tuple(flight.said),
    )
