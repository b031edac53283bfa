"""Report of a flight controller on a simulator: the rules, and the faults found."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

RULES = {
    "garbage": "every byte belongs to a frame",
    "checksum": "every frame's checksum is right",
    "sequence": "the simulator's frames are numbered one after the other",
    "shell": "the line never carries three carriage returns in a row, which start a shell",
    "heartbeat": "the simulator's HEARTBEAT is a MAVLink 2 frame with 9 bytes of payload, type GENERIC, autopilot INVALID",
    "before_heartbeat": "no sensor before the controller's first HEARTBEAT",
    "hil_flag": "no sensor to a controller whose HEARTBEAT lacks the HIL flag",
    "quaternion": "HIL_STATE_QUATERNION is sent over TCP only, and only after a request",
    "lockstep": "in lockstep one HIL_SENSOR is sent after the answer to the previous one",
    "stamps": "HIL_SENSOR.time_usec grows from frame to frame, as fast as time",
    "finite": "every figure of a sensor is a number",
    "groups": "fields_updated has all bits of a group or none",
    "imu": "every HIL_SENSOR has accelerometer and gyroscope",
    "device": "HIL_SENSOR.id is 0",
    "rate": "each sensor has its own rate: IMU 95 to 520 Hz, magnetometer 45 to 110, barometer 40 to 60, GPS 4 to 11",
    "gap": "no sensor is silent for more than 300 ms (GPS: 1 s)",
    "burst": "frames delayed by a stall are not sent after it: no four HIL_SENSOR within half a period",
    "stale": "no figure of a sensor stays the same for 100 readings",
    "specific_force": "the accelerometer reads (0, 0, -9.8) m/s^2 in FRD at rest",
    "gyroscope": "the gyroscope's rotation agrees with the rotation of the magnetic field: rad/s, FRD",
    "gyroscope_rest": "the gyroscope reads 0 at rest",
    "field": "the magnetic field has 0.2 to 0.7 gauss, and at rest strength and inclination of the World Magnetic Model",
    "pressure": "abs_pressure is in hPa, and its altitude is that of the GPS",
    "pressure_altitude": "pressure_alt is the altitude in metres of abs_pressure",
    "temperature": "temperature is in degrees Celsius",
    "airspeed": "diff_pressure is in hPa",
    "gps_position": "HIL_GPS.lat and lon are in degrees * 1e7",
    "gps_velocity": "HIL_GPS.vn, ve and vd are in cm/s and agree with the change of position",
    "gps_speed": "HIL_GPS.vel is the ground speed in cm/s",
    "gps_course": "HIL_GPS.cog is the course over ground in centidegrees, or 65535",
    "gps_quality": "15 s after the first HIL_GPS there is a fix with 6 satellites, eph 5 to 300 cm, epv 5 to 500 cm",
    "gps_time": "HIL_GPS.time_usec is Unix time, grows, and is 20 to 400 ms old",
    "timesync": "every TIMESYNC request is answered within 1 s with its own ts1",
    "forwarded": "frames of ground stations arrive unchanged and in order",
}
"""All rules in words. Limits are facts about PX4 1.12."""

TIMING_RULES = frozenset({"rate", "gap", "burst", "gps_time", "stamps", "timesync"})
"""Rules that a stalled host may violate although the simulator is correct."""


class Event(NamedTuple):
    """Event of the controller, on its own clock: a mode, ``armed``, its text messages."""

    time_s: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One violation of a rule.

    Attributes:
        rule: Key in ``RULES``.
        time_s: Time on the controller's clock.
        field: Checked quantity.
        value: Actual value.
        must: Expected value.
    """

    rule: str
    time_s: float
    field: str
    value: str
    must: str

    def __str__(self) -> str:
        return f"{self.time_s:.3f} s: {self.field} must be {self.must}, got {self.value}"


@dataclass(frozen=True, kw_only=True)
class FlightReport:
    """Report of a controller on the simulator at its link.

    Attributes:
        script: Name of its script.
        done: Whether its script has ended; ``idle`` has no end and counts as done.
        judged: Number of checks of each rule; a missing rule was never checked.
        broken: Number of violations of each rule; all are counted.
        faults: First 20 violations of each rule, in the order of detection.
        received: Number of frames received, by the message's name.
        events: Events of the controller.
        figures: Measurements by name: ``hover_level_m``, ``sensor_interval_p99_us`` and others.
        sent: First 20,000 frames sent by the controller, other than motor commands.
        from_ground: Frames of ground stations that were received.
    """

    script: str
    done: bool
    judged: Mapping[str, int]
    broken: Mapping[str, int]
    faults: tuple[Fault, ...]
    received: Mapping[str, int]
    events: tuple[Event, ...]
    figures: Mapping[str, float]
    sent: tuple[bytes, ...]
    from_ground: tuple[bytes, ...]

    def time_of(self, text: str) -> float | None:
        """Time in seconds of an event's first occurrence, or None."""
        return next((event.time_s for event in self.events if event.text == text), None)

    def __str__(self) -> str:
        broken = ", ".join(f"{rule} ({count})" for rule, count in self.broken.items()) or "none"
        head = f"script {self.script}: {'done' if self.done else 'not done'}; rules broken: {broken}"
        return "\n".join([head, *(f"  {fault.rule}: {fault}" for fault in self.faults)])


def read_report(path: Path) -> FlightReport:
    """Read a report written by ``python -m hilsim_flight_controller``."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    return FlightReport(
        script=raw["script"],
        done=raw["done"],
        judged=MappingProxyType(raw["judged"]),
        broken=MappingProxyType(raw["broken"]),
        faults=tuple(read_fault(row) for row in raw["faults"]),
        received=MappingProxyType(raw["received"]),
        events=tuple(Event(*row) for row in raw["events"]),
        figures=MappingProxyType(raw["figures"]),
        sent=tuple(bytes.fromhex(row) for row in raw["sent"]),
        from_ground=tuple(bytes.fromhex(row) for row in raw["from_ground"]),
    )


def read_fault(row: Mapping[str, str | float]) -> Fault:
    """A fault from its row in a report."""
    return Fault(rule=str(row["rule"]), time_s=float(row["time_s"]), field=str(row["field"]), value=str(row["value"]), must=str(row["must"]))
