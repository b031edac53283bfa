"""Modes, arming, takeoff and landing: the controller's reaction to commands of its own script or of a ground station."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hilsim_flight_controller.flying.attitude import Floats, euler
from hilsim_flight_controller.flying.estimator import Estimator
from hilsim_flight_controller.flying.pilot import Pilot
from hilsim_flight_controller.mavlink import Message, common
from hilsim_flight_controller.report import Report

MANUAL, HOLD, TAKEOFF, LAND = "manual", "hold", "takeoff", "land"
_AUTO, _HOLD_SUB = 4, 3  # PX4's custom main and sub mode
_TAKEOFF_M = 2.5  # MIS_TAKEOFF_ALT
_CLIMB_MPS, _DESCENT_MPS = 1.2, 0.7
_NEAR_M = 0.3
_TAKEN_OFF_M = 0.5
_LIGHT = 0.7  # of the hover thrust
_CONTACT_US, _TOUCHDOWN_US, _LANDED_US = 500_000, 1_000_000, 2_000_000
_STANDING_MPS = 0.2
_LOST = math.cos(math.radians(60.0))
_LONGEST_STEP_US = 20_000


@dataclass
class Commander:
    """Executes commands; ``estimate`` is the controller's own."""

    report: Report
    estimate: Estimator
    say: Callable[[str], None]  # called with a text for STATUSTEXT
    pilot: Pilot = field(default_factory=Pilot)
    mode: str = MANUAL
    armed: bool = False
    motors: Floats | None = None
    place: Floats = field(default_factory=lambda: np.zeros(3))
    target: Floats = field(default_factory=lambda: np.zeros(3))
    yaw: float = 0.0
    cruise_mps: float = _CLIMB_MPS
    airborne: bool = False
    hover_force: float | None = None
    light_since_us: int | None = None
    contact_us: int | None = None
    last_us: int = 0
    told: set[str] = field(default_factory=set)

    def command(self, now_us: int, message: Message) -> int:
        """Execute a COMMAND_LONG; returns a MAV_RESULT."""
        match message.command:
            case common.MAV_CMD_DO_SET_MODE:
                return self.set_mode(now_us, int(message.param2), int(message.param3))
            case common.MAV_CMD_COMPONENT_ARM_DISARM:
                return self.arm(now_us) if message.param1 == 1.0 else self.disarm(now_us)
            case common.MAV_CMD_NAV_TAKEOFF:
                origin = self.estimate.origin
                known = math.isfinite(message.param7) and message.param7 != 0.0
                return self.take_off(now_us, message.param7 - origin[2] if known and origin is not None else _TAKEOFF_M)
            case common.MAV_CMD_NAV_LAND:
                return self.land(now_us)
        return int(common.MAV_RESULT_UNSUPPORTED)

    def set_mode(self, now_us: int, main: int, sub: int) -> int:
        """Enter Hold, the only supported mode. Returns a MAV_RESULT, as do the other commands."""
        if (main, sub) != (_AUTO, _HOLD_SUB):
            return int(common.MAV_RESULT_DENIED)
        self._enter(now_us, HOLD)
        self._stay()
        return int(common.MAV_RESULT_ACCEPTED)

    def arm(self, now_us: int) -> int:
        """Arm. An attitude is sufficient, as on PX4; without a position, takeoff is then denied."""
        if not self.estimate.aligned:
            self.say("Preflight Fail: Attitude not available")
            return int(common.MAV_RESULT_TEMPORARILY_REJECTED)
        refused = sorted(self.estimate.faults | set(self.estimate.refused_since_us))
        if refused:
            self.say(f"Preflight Fail: {', '.join(refused)} innovations too high")
            return int(common.MAV_RESULT_TEMPORARILY_REJECTED)
        if not self.armed:
            self.armed = True
            self.pilot.reset()
            self.report.note(now_us, "armed")
        return int(common.MAV_RESULT_ACCEPTED)

    def disarm(self, now_us: int, why: str = "disarmed") -> int:
        """Stop the motors, wherever the vehicle is."""
        if self.armed:
            self.armed = self.airborne = False
            self.light_since_us = self.contact_us = None
            self.report.note(now_us, why)
        return int(common.MAV_RESULT_ACCEPTED)

    def take_off(self, now_us: int, height_m: float) -> int:
        """Climb; rejected if it is not armed or has no position."""
        if not (self.armed and self.estimate.ready):
            self.say("Takeoff denied! Please disarm and retry")
            return int(common.MAV_RESULT_TEMPORARILY_REJECTED)
        self._enter(now_us, TAKEOFF)
        self._stay()
        self.target = self.place - np.array([0.0, 0.0, height_m])
        return int(common.MAV_RESULT_ACCEPTED)

    def land(self, now_us: int) -> int:
        """Descend at the current position, and disarm on the ground."""
        if not self.armed:
            return int(common.MAV_RESULT_TEMPORARILY_REJECTED)
        self._stay()
        self._enter(now_us, LAND)
        return int(common.MAV_RESULT_ACCEPTED)

    def go(self, place: Floats, yaw: float) -> None:
        """Hold another position (m, NED) and heading (rad)."""
        self.target, self.yaw = place, yaw

    def step(self, now_us: int) -> None:
        """Continue the flight, after each reading of the IMU."""
        step_s = min(now_us - self.last_us, _LONGEST_STEP_US) * 1e-6
        self.last_us = now_us
        if not self.armed:
            self.motors = None
            return
        if self.estimate.faults - self.told:
            self.told |= self.estimate.faults
            self.say(
                "Stopping compass use! Check calibration on landing" if "mag" in self.told else "Navigation failure! Land and recalibrate sensors"
            )
            self.report.note(now_us, "navigation failure")
        if self.estimate.r[2, 2] < _LOST:
            self.say("Attitude failure detected")
            self.disarm(now_us, "lost")
            self.motors = None
        elif self.mode == LAND:
            self._land(now_us, step_s)
        elif self.mode == TAKEOFF or self.airborne:
            self._move(step_s)
            self.motors = self.pilot.fly(self.estimate, step_s, self.place, self.yaw)
            self._watch(now_us)
        else:
            self.motors = np.zeros(4)

    def _enter(self, now_us: int, mode: str) -> None:
        if mode != self.mode:
            self.mode = mode
            self.report.note(now_us, mode)

    def _stay(self) -> None:
        self.place = self.estimate.p.copy()
        self.target = self.place.copy()
        self.yaw = euler(self.estimate.q)[2]

    def _move(self, step_s: float) -> None:
        """Move the setpoint towards the target, at most at ``cruise_mps``."""
        away = self.target - self.place
        distance = float(np.linalg.norm(away))
        reach = self.cruise_mps * step_s
        self.place = self.target.copy() if distance <= reach else self.place + away * (reach / distance)

    def _watch(self, now_us: int) -> None:
        if not self.airborne and self.estimate.p[2] < self.target[2] + max(abs(self.target[2]) - _TAKEN_OFF_M, 0.0):
            self.airborne = True
            self.report.note(now_us, "airborne")
        if self.mode == TAKEOFF and abs(self.estimate.p[2] - self.target[2]) < _NEAR_M and np.array_equal(self.place, self.target):
            self._enter(now_us, HOLD)
        if self.airborne:
            force = self.pilot.force_mps2
            self.hover_force = force if self.hover_force is None else self.hover_force + 0.005 * (force - self.hover_force)

    def _land(self, now_us: int, step_s: float) -> None:
        """Descend at a constant speed until thrust and speed are low, which means that it has landed.

        As in PX4, ground contact stops horizontal thrust first: a vehicle held up by friction at a wall continues to descend, and its motors are not stopped.
        """
        if self.contact_us is None:
            self.motors = self.pilot.fly(self.estimate, step_s, self.place, self.yaw, climb=_DESCENT_MPS)
            light = self.pilot.force_mps2 < _LIGHT * (self.hover_force or math.inf) and abs(self.estimate.v[2]) < _STANDING_MPS
            self.light_since_us = (self.light_since_us or now_us) if light else None
            if self.light_since_us is not None and now_us - self.light_since_us >= _CONTACT_US:
                self.place = self.estimate.p.copy()
                self.pilot.integral[:2] = 0.0
            if self.light_since_us is not None and now_us - self.light_since_us >= _TOUCHDOWN_US:
                self.contact_us = now_us
                self.report.note(now_us, "touchdown")
        else:
            self.motors = np.zeros(4)
            if now_us - self.contact_us >= _LANDED_US:
                self._enter(now_us, MANUAL)
                self.disarm(now_us)
