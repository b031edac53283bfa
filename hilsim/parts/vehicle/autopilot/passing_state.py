"""Status of an autopilot, read from frames forwarded to ground stations: whether it can be armed, its warnings, and its position estimate.

Only forwarded frames are read; hilsim sends no requests. Flags and their meaning: MAVLink common.xml, ESTIMATOR_STATUS_FLAGS.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilsim.protocols.mavlink.messages import (
    ATTITUDE,
    ATTITUDE_DTYPE,
    ESTIMATOR_STATUS,
    ESTIMATOR_STATUS_DTYPE,
    GLOBAL_POSITION_INT,
    GLOBAL_POSITION_INT_DTYPE,
    LOCAL_POSITION_NED,
    LOCAL_POSITION_NED_DTYPE,
    STATUSTEXT,
    STATUSTEXT_DTYPE,
)
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.geodesy import Home, geodetic_at
from hilsim.world.geometry.rotations import ned_from_frd, roll_pitch_yaw_rad

HOME_POSITION_ID = 242
WARNING_SEVERITY = 4
"""Texts of this severity and below it (MAV_SEVERITY: 0 emergency … 4 warning) are warnings."""
GLITCH_FLAGS = 0x400 | 0x800
"""GPS glitch, accelerometer error."""
LEAP_US = 10_000_000
"""Time that an estimator has to notice a leap of the vehicle, by its own clock: PX4 1.12 reports a GPS glitch up to 8.1 s later."""
READY_FLAGS = 0x01 | 0x02 | 0x04 | 0x10 | 0x20
"""Flags of attitude, horizontal and vertical velocity, absolute horizontal position, vertical position."""
FLAG_NAMES = {
    0x01: "attitude",
    0x02: "velocity",
    0x04: "climb rate",
    0x10: "position",
    0x20: "height",
    0x400: "GPS glitch",
    0x800: "accelerometer error",
}
_MAVLINK_2 = 0xFD
_NAMED = {
    ATTITUDE.id: ATTITUDE_DTYPE,
    LOCAL_POSITION_NED.id: LOCAL_POSITION_NED_DTYPE,
    GLOBAL_POSITION_INT.id: GLOBAL_POSITION_INT_DTYPE,
    ESTIMATOR_STATUS.id: ESTIMATOR_STATUS_DTYPE,
    STATUSTEXT.id: STATUSTEXT_DTYPE,
}


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Errors of the autopilot's estimates (estimate minus truth); None without an estimate.

    Attributes:
        position_m: Error in east, north, up.
        velocity_mps: Error in east, north, up.
        attitude_deg: Error in roll, pitch, yaw.
    """

    position_m: Vector | None = None
    velocity_mps: Vector | None = None
    attitude_deg: Vector | None = None


@dataclass(kw_only=True)
class AutopilotStatus:
    """Status from the frames so far; one thread writes, other threads read single fields.

    Attributes:
        estimator_flags: Latest ESTIMATOR_STATUS.flags; None if none was received.
        has_home: Whether a HOME_POSITION was received.
        warning: Text of the latest warning or error; empty for none.
        errors: Errors of its estimates.
        is_carried: Whether the link carries its status: PX4's simulator link and ArduPilot's JSON link do not.
        leapt: Whether the vehicle was put elsewhere since the latest ESTIMATOR_STATUS.
        settled_us: Autopilot's time from which its status counts again after that; 0 for now.
    """

    estimator_flags: int | None = None
    has_home: bool = False
    warning: str = ""
    errors: Errors = field(default_factory=Errors)
    is_carried: bool = True
    leapt: bool = False
    settled_us: int = 0

    @property
    def obstacle(self) -> str:
        """Condition that prevents arming, from the received frames; empty for none."""
        if self.estimator_flags is None:
            return "no ESTIMATOR_STATUS was received" if self.is_carried else "not known: this link does not carry the autopilot's status"
        if self.leapt or self.settled_us:
            return f"the vehicle was put elsewhere, which the estimator may notice within {LEAP_US / 1e6:.0f} s"
        missing = [name for flag, name in FLAG_NAMES.items() if flag & READY_FLAGS and not self.estimator_flags & flag]
        if missing:
            return f"the estimator has no {', '.join(missing)}"
        wrong = [name for flag, name in FLAG_NAMES.items() if flag & GLITCH_FLAGS & self.estimator_flags]
        if wrong:
            return f"the estimator reports {', '.join(wrong)}"
        return "" if self.has_home else "no HOME_POSITION was received"

    @property
    def is_ready(self) -> bool:
        """Whether estimator and home are ready for arming."""
        return not self.obstacle

    def forget(self) -> None:
        """Reset the status after a restart of the controller."""
        self.estimator_flags, self.has_home, self.warning, self.errors = None, False, "", Errors()
        self.leapt, self.settled_us = False, 0

    def note_frame(self, message_id: int, frame: bytes, home: Home, truth: "Truth") -> None:
        """Update the status from a frame.

        Args:
            message_id: Message id of the frame.
            frame: Whole frame, MAVLink 1 or 2.
            home: Home of the world.
            truth: True state of the vehicle when the frame arrived.
        """
        if message_id == HOME_POSITION_ID:
            self.has_home = True
        layout = _NAMED.get(message_id)
        if layout is None:
            return
        content = read_message(frame, layout)
        match message_id:
            case ESTIMATOR_STATUS.id:
                self._note_estimator(int(content["flags"]), int(content["time_usec"]))
            case STATUSTEXT.id:
                if int(content["severity"]) <= WARNING_SEVERITY:
                    self.warning = bytes(content["text"]).split(b"\0", 1)[0].decode("utf-8", "replace")
            case ATTITUDE.id:
                angles = (float(content["roll"]), float(content["pitch"]), float(content["yaw"]))
                self._note(attitude_deg=_attitude_error(angles, truth.orientation))
            case GLOBAL_POSITION_INT.id:
                self._note(position_m=_position_error(content, home, truth.position_m))
            case LOCAL_POSITION_NED.id:
                vx, vy, vz = truth.velocity_mps
                self._note(velocity_mps=(float(content["vy"]) - vx, float(content["vx"]) - vy, -float(content["vz"]) - vz))

    def _note_estimator(self, flags: int, time_us: int) -> None:
        self.estimator_flags = flags
        if self.leapt:
            self.leapt, self.settled_us = False, time_us + LEAP_US
        elif time_us >= self.settled_us:
            self.settled_us = 0

    def _note(self, **changed: Vector) -> None:
        self.errors = Errors(**(vars(self.errors) | changed))


@dataclass(frozen=True, kw_only=True)
class Truth:
    """True state of a vehicle at an instant: position and velocity in the world (ENU), orientation world from body (FLU), rates in the body."""

    position_m: Vector
    velocity_mps: Vector
    orientation: Quaternion
    rates_radps: Vector = (0.0, 0.0, 0.0)

    @property
    def speed_mps(self) -> float:
        """Magnitude of the velocity."""
        return math.hypot(*self.velocity_mps)

    @property
    def tilt_deg(self) -> float:
        """Angle between the body's z axis and the vertical."""
        _, x, y, _ = self.orientation
        return math.degrees(math.acos(min(max(1.0 - 2.0 * (x * x + y * y), -1.0), 1.0)))

    @property
    def roll_pitch_yaw_deg(self) -> Vector:
        """Attitude in an autopilot's convention: NED from FRD, yaw 0 is north and clockwise positive."""
        roll, pitch, yaw = roll_pitch_yaw_rad(ned_from_frd(self.orientation))
        return math.degrees(roll), math.degrees(pitch), math.degrees(yaw)


def read_message(frame: bytes, layout: np.dtype[Any]) -> Any:
    """Decode a frame's payload by its layout; truncated bytes are zero."""
    header = 10 if frame[0] == _MAVLINK_2 else 6
    payload = frame[header : header + frame[1]]
    return np.frombuffer(payload[: layout.itemsize].ljust(layout.itemsize, b"\0"), layout, count=1)[0]


def _attitude_error(estimate_rad: Vector, orientation: Quaternion) -> Vector:
    roll, pitch, yaw = (
        _half_turn(estimate - true) for estimate, true in zip(estimate_rad, roll_pitch_yaw_rad(ned_from_frd(orientation)), strict=True)
    )
    return roll, pitch, yaw


def _half_turn(angle_rad: float) -> float:
    """Convert an angle to degrees, -180 to 180."""
    return (math.degrees(angle_rad) + 180.0) % 360.0 - 180.0


def _position_error(content: Any, home: Home, position_m: Vector) -> Vector:
    """Position error, computed with the Earth's radii at home like the simulated receiver's position."""
    latitude, longitude, altitude_m = geodetic_at(home, position_m)
    per_north = (geodetic_at(home, (home.origin_m[0], home.origin_m[1] + 1000.0, home.origin_m[2]))[0] - home.latitude_deg) / 1000.0
    per_east = (geodetic_at(home, (home.origin_m[0] + 1000.0, home.origin_m[1], home.origin_m[2]))[1] - home.longitude_deg) / 1000.0
    east_deg = (float(content["lon"]) * 1e-7 - longitude + 180.0) % 360.0 - 180.0
    return east_deg / per_east, (float(content["lat"]) * 1e-7 - latitude) / per_north, float(content["alt"]) * 1e-3 - altitude_m
