"""A vehicle without physics, moved by a schedule: at rest, up, out and round, back, down. Enough motion for every rule, whatever the motor commands.

Its sensors are formulas of its own: nothing here comes from ``hilsim``.
"""

import math
from dataclasses import dataclass

import numpy as np

from hilsim_flight_controller.rules.atmosphere import pressure_hpa

G = 9.80665
LATITUDE_DEG, LONGITUDE_DEG, ALTITUDE_M = 47.397742, 8.545594, 488.0
FIELD_GAUSS = np.array([0.21523, 0.01334, 0.43290])  # NED at Zurich, WMM2025 in 2026.0
_M_PER_DEG = 111_319.49
_REST_S = 6.0


def _ease(now_s, begin_s, span_s):
    """A smooth step from 0 to 1 with its first two derivatives: minimum jerk."""
    s = (now_s - begin_s) / span_s
    if s <= 0.0:
        return 0.0, 0.0, 0.0
    if s >= 1.0:
        return 1.0, 0.0, 0.0
    return (
        s**3 * (10.0 - 15.0 * s + 6.0 * s * s),
        30.0 * s * s * (1.0 - s) ** 2 / span_s,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / span_s**2,
    )


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What sensors felt at a time: FRD and NED, m/s^2, rad/s, gauss, hPa, metres, degrees Celsius, m/s."""

    force: np.ndarray
    rates: np.ndarray
    field: np.ndarray
    pressure: float
    dynamic: float
    temperature: float
    fix: dict  # HIL_GPS's fields but its time


class Puppet:
    """Moves by schedule, whatever the motors say; each reading has noise."""

    def __init__(self, seed=1):
        self.draw = np.random.default_rng(seed).standard_normal
        self.now_us = 0

    def advance(self, now_us, controls):
        del controls
        self.now_us = now_us

    def _motion(self):
        """Position, velocity and acceleration in NED, yaw and roll with their rates."""
        now_s = self.now_us * 1e-6 - _REST_S
        up, out, down = _ease(now_s, 0.0, 4.0), _ease(now_s, 4.0, 4.0), _ease(now_s, 12.0, 6.0)
        back = _ease(now_s, 8.0, 4.0)
        rows = []
        for order in range(3):
            along = out[order] - back[order]
            rows.append(np.array([4.0 * along, 3.0 * along, -5.0 * (up[order] - down[order])]))
        yaw = [1.5 * (out[order] + back[order]) for order in range(2)]
        roll = [0.2 * (up[order] - out[order]) for order in range(2)]
        return rows, yaw, roll

    def reading(self):
        (position, velocity, acceleration), (yaw, yaw_rate), (roll, roll_rate) = self._motion()
        c, s, cr, sr = math.cos(yaw), math.sin(yaw), math.cos(roll), math.sin(roll)
        body = np.array([[1.0, 0.0, 0.0], [0.0, cr, sr], [0.0, -sr, cr]]) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        noise = self.draw(17)
        height = ALTITUDE_M - position[2]
        return Reading(
            force=body @ (acceleration - (0.0, 0.0, G)) + 0.05 * noise[:3],
            rates=np.array([roll_rate, yaw_rate * sr, yaw_rate * cr]) + 0.003 * noise[3:6],
            field=body @ FIELD_GAUSS + 0.002 * noise[6:9],
            pressure=pressure_hpa(height) + 0.01 * noise[9],
            dynamic=0.01 * noise[10],
            temperature=15.0 - 0.0065 * height,
            fix=_fix(position + 0.03 * noise[11:14], velocity + 0.05 * noise[14:17]),
        )


def _fix(position, velocity):
    north, east, down = (float(part) for part in position)
    speed = math.hypot(velocity[0], velocity[1])
    course = 65_535 if speed < 0.1 else round(math.degrees(math.atan2(velocity[1], velocity[0])) * 100.0) % 36_000
    return {
        "fix_type": 3,
        "lat": round((LATITUDE_DEG + north / _M_PER_DEG) * 1e7),
        "lon": round((LONGITUDE_DEG + east / (_M_PER_DEG * math.cos(math.radians(LATITUDE_DEG)))) * 1e7),
        "alt": round((ALTITUDE_M - down) * 1e3),
        "eph": 90,
        "epv": 120,
        "vel": round(speed * 100.0),
        "vn": round(velocity[0] * 100.0),
        "ve": round(velocity[1] * 100.0),
        "vd": round(velocity[2] * 100.0),
        "cog": course,
        "satellites_visible": 12,
    }
