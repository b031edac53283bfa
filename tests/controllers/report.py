"""What a controller found: which rules were judged how often, which were broken, when, and by what figure."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field

MOST_KEPT = 20
"""Violations of a rule that are kept in words; all are counted."""

RULES = {
    "garbage": "every byte belongs to a frame",
    "checksum": "every frame's checksum is right",
    "sequence": "the simulator's frames are numbered one after the other",
    "shell": "the line never carries three carriage returns in a row, which start a shell",
    "heartbeat": "the simulator's HEARTBEAT is a MAVLink 2 frame with 9 bytes of payload, type GENERIC, autopilot INVALID",
    "before_heartbeat": "no sensor before the controller's first HEARTBEAT",
    "hil_flag": "no sensor to a controller whose HEARTBEAT lacks the HIL flag",
    "quaternion": "HIL_STATE_QUATERNION comes over TCP alone, and only once it was asked for",
    "lockstep": "in lockstep one HIL_SENSOR comes after the answer to the one before",
    "stamps": "HIL_SENSOR.time_usec grows from frame to frame, as fast as time",
    "finite": "every figure of a sensor is a number",
    "groups": "fields_updated has all bits of a group or none",
    "imu": "every HIL_SENSOR has accelerometer and gyroscope",
    "device": "HIL_SENSOR.id is 0",
    "rate": "each sensor has its own rate: IMU 95 to 520 Hz, magnetometer 45 to 110, barometer 40 to 60, GPS 4 to 11",
    "gap": "no sensor is silent for more than 300 ms (GPS: 1 s)",
    "burst": "what a stall held up is not sent after it: no four HIL_SENSOR within half a period",
    "stale": "no figure of a sensor stays the same for 100 readings",
    "specific_force": "the accelerometer reads (0, 0, -9.8) m/s^2 in FRD at rest",
    "gyroscope": "the gyroscope turns the magnetic field as the magnetometer sees it turn: rad/s, FRD",
    "gyroscope_rest": "the gyroscope reads 0 at rest",
    "field": "the magnetic field has 0.2 to 0.7 gauss, and at rest strength and inclination of the World Magnetic Model",
    "pressure": "abs_pressure is in hPa, and the altitude it stands for is that of the GPS",
    "pressure_altitude": "pressure_alt is the altitude in metres that abs_pressure stands for",
    "temperature": "temperature is in degrees Celsius",
    "airspeed": "diff_pressure is in hPa",
    "gps_position": "HIL_GPS.lat and lon are in degrees * 1e7",
    "gps_velocity": "HIL_GPS.vn, ve and vd are in cm/s: what the position changes by",
    "gps_speed": "HIL_GPS.vel is the ground speed in cm/s",
    "gps_course": "HIL_GPS.cog is the course over ground in centidegrees, or 65535",
    "gps_quality": "15 s after the first HIL_GPS there is a fix with 6 satellites, eph 5 to 300 cm, epv 5 to 500 cm",
    "gps_time": "HIL_GPS.time_usec is Unix time, grows, and is 20 to 400 ms old",
    "timesync": "every TIMESYNC request is answered within 1 s with its own ts1",
    "forwarded": "what a ground station sent arrives byte by byte and in order",
}


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A rule that did not hold."""

    rule: str
    time_s: float
    field: str
    value: str
    must: str

    def __str__(self):
        return f"{self.time_s:.3f} s: {self.field} must be {self.must}, got {self.value}"


@dataclass
class Report:
    """Collects findings; ``as_dict`` is what a program writes."""

    judged: Counter = field(default_factory=Counter)
    broken: Counter = field(default_factory=Counter)
    violations: list = field(default_factory=list)
    received: Counter = field(default_factory=Counter)
    events: list = field(default_factory=list)
    figures: dict = field(default_factory=dict)

    def judge(self, rule, holds, now_us, name, value, must):
        """Count a judgement of ``rule``, and keep it where it does not hold. Returns ``holds``."""
        if rule not in RULES:
            raise KeyError(rule)
        self.judged[rule] += 1
        if not holds:
            self.broken[rule] += 1
            if self.broken[rule] <= MOST_KEPT:
                shown = f"{value:.6g}" if isinstance(value, float) else str(value)
                self.violations.append(Violation(rule=rule, time_s=now_us * 1e-6, field=name, value=shown, must=must))
        return holds

    def note(self, now_us, text):
        self.events.append((round(now_us * 1e-6, 6), text))

    def time_of(self, text):
        """Seconds at which an event was first noted, or None."""
        return next((time_s for time_s, event in self.events if event == text), None)

    def as_dict(self):
        return {
            "judged": dict(self.judged),
            "broken": dict(self.broken),
            "violations": [asdict(violation) | {"text": str(violation)} for violation in self.violations],
            "received": dict(self.received),
            "events": self.events,
            "figures": self.figures,
        }

    def write(self, path, **more):
        path.write_text(json.dumps(self.as_dict() | more, indent=1))
