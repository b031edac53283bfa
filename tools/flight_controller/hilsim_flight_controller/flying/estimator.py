"""Attitude, velocity and position estimated from sensors: an error-state Kalman filter, as in J. Sola, "Quaternion kinematics for the error-state Kalman filter" (2017).

Fifteen errors: attitude (in NED), velocity, position, bias of the gyroscope, bias of the accelerometer. Height comes from the barometer, the rest from the GPS, whose fixes are compared with the
filter's estimate 110 ms before (PX4's EKF2_GPS_DELAY).

Every measurement is tested before it is used, as in EKF2: an innovation beyond its gate is rejected, and while any kind is rejected the filter is not ready and reports that. A rejection
for ``_FAIL_US`` is a fault (PX4 1.12 then reports "Stopping compass use!" or fails to navigate); position and velocity are reset to the GPS after ``_RESET_US`` of rejections, the compass is not.
"""

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
import pygeomag
from pygeomag.wmm.wmm_2025 import WMM_2025

from hilsim_flight_controller.flying.attitude import Floats, Quaternion, from_axes, limited, matrix, multiply, turned, unit, wrapped
from hilsim_flight_controller.mavlink import Gps, Sensor
from hilsim_flight_controller.rules.atmosphere import altitude_m

GRAVITY_MPS2 = 9.80665
GPS_DELAY_US = 110_000
_ATT, _VEL, _POS, _GYRO, _ACC = (slice(3 * part, 3 * part + 3) for part in range(5))
_STILL_US = 1_000_000
_STILL_RADPS = 0.1
_GOOD_FIXES = 10
_M_PER_DEG = 111_319.49
_LONGEST_STEP_US = 20_000
_MAX_RADPS, _MAX_MPS2 = 35.0, 160.0
_GYRO_NOISE, _ACC_NOISE = 0.003, 0.15  # rad/s and m/s^2 per sqrt(Hz): vibration and model errors
_GYRO_WALK, _ACC_WALK = 1e-4, 1e-3
_POS_M, _VEL_MPS, _BARO_M, _YAW_RAD = 0.3, 0.1, 0.15, 0.1
_START = np.concatenate([np.full(3, 0.05), np.full(3, 0.3), np.full(3, 0.5), np.full(3, 0.005), np.full(3, 0.05)])
_FIXED, _KNOWN = 0x47, 0x37F
_GATES = {"vel": 5.0, "pos_h": 5.0, "pos_v": 5.0, "mag": 3.0}
"""Gates in standard deviations (EKF2_GPS_V_GATE, EKF2_GPS_P_GATE, EKF2_BARO_GATE; EKF2_HDG_GATE is 2.6, EKF2_MAG_GATE 3)."""
_FAIL_US = 1_000_000
_RESET_US = 7_000_000


class Estimator:
    """Called with each HIL_SENSOR and HIL_GPS and the controller's time."""

    def __init__(self) -> None:
        self.last_us = self.stamp_us = 0
        self.still: list[tuple[Floats, Floats, Floats | None, float | None]] = []
        self.still_since_us: int | None = None
        self.aligned = False
        self.origin: tuple[float, float, float] | None = None  # degrees, degrees, metres above sea level
        self.good_fixes = 0
        self.declination = 0.0
        self.ground_m = 0.0  # barometric altitude at the start of the flight
        self.q: Quaternion = (1.0, 0.0, 0.0, 0.0)
        self.r: Floats = np.eye(3)
        self.v: Floats = np.zeros(3)
        self.p: Floats = np.zeros(3)
        self.bias_gyro: Floats = np.zeros(3)
        self.bias_acc: Floats = np.zeros(3)
        self.rates: Floats = np.zeros(3)
        self.covariance: Floats = np.diag(_START**2)
        self.since_us = 0
        self.force_sum: Floats = np.zeros(3)
        self.past: deque[tuple[int, Floats, Floats]] = deque(maxlen=60)
        self.ratios = dict.fromkeys(_GATES, 0.0)
        self.refused_since_us: dict[str, int] = {}
        self.faults: set[str] = set()

    @property
    def ready(self) -> bool:
        """Whether position and velocity are reliable: all are known, no measurement is rejected, none has failed."""
        return self.knows and not self.refused_since_us and not self.faults

    @property
    def knows(self) -> bool:
        """Whether it has a position, reliable or not."""
        return self.aligned and self.good_fixes >= _GOOD_FIXES

    @property
    def flags(self) -> int:
        """ESTIMATOR_STATUS.flags: attitude only, or all flags that PX4 has before a flight."""
        return _KNOWN if self.ready else _FIXED

    def geodetic(self) -> tuple[float, float, float]:
        """Latitude, longitude (deg) and altitude (m) of the estimate; (0, 0, 0) without an origin."""
        latitude, longitude, altitude = self.origin or (0.0, 0.0, 0.0)
        east_deg = self.p[1] / (_M_PER_DEG * math.cos(math.radians(latitude)))
        return latitude + float(self.p[0]) / _M_PER_DEG, longitude + float(east_deg), altitude - float(self.p[2])

    def sensor(self, now_us: int, message: Sensor, *, has_mag: bool, has_baro: bool) -> None:
        """Process a reading; ``has_mag`` and ``has_baro`` mark new values in it."""
        gyro = limited((message.xgyro, message.ygyro, message.zgyro), _MAX_RADPS)
        force = limited((message.xacc, message.yacc, message.zacc), _MAX_MPS2)
        mag = np.array((message.xmag, message.ymag, message.zmag)) if has_mag else None
        height = altitude_m(message.abs_pressure) if has_baro and message.abs_pressure > 0.0 else None
        if not self.aligned:
            self._align(now_us, gyro, force, mag, height)
        else:
            step_us = min(self._since(now_us, message.time_usec), _LONGEST_STEP_US)
            self._predict(now_us, step_us, gyro - self.bias_gyro, force - self.bias_acc)
            if mag is not None:
                self._heading(now_us, mag)
            if height is not None:
                self._tested(now_us, "pos_v", [(_POS.start + 2, -(height - self.ground_m) - self.p[2], _BARO_M)])
        self.last_us, self.stamp_us = now_us, message.time_usec

    def _since(self, now_us: int, stamp_us: int) -> int:
        """Time since the previous reading, by its stamps where they increase: a busy host may deliver several readings at once, although they were measured at even intervals."""
        return stamp_us - self.stamp_us if stamp_us > self.stamp_us else now_us - self.last_us

    def gps(self, now_us: int, message: Gps) -> None:
        """Process a fix, GPS_DELAY_US old."""
        if message.fix_type < 3 or message.eph > 300:
            self.good_fixes = 0
            return
        place = message.lat * 1e-7, message.lon * 1e-7, message.alt * 1e-3
        self.good_fixes += 1
        if not self.aligned:
            self.good_fixes = 0
            return
        if self.origin is None:
            self._place(place)
        latitude, longitude, _ = self.origin or place
        north = (place[0] - latitude) * _M_PER_DEG
        east = (place[1] - longitude) * _M_PER_DEG * math.cos(math.radians(latitude))
        velocity = message.vn * 1e-2, message.ve * 1e-2, message.vd * 1e-2
        was_v, was_p = self._at(now_us - GPS_DELAY_US)
        speeds, places = velocity - was_v, (north - was_p[0], east - was_p[1])
        self._tested(now_us, "pos_h", [(_POS.start + axis, places[axis], _POS_M) for axis in range(2)])
        self._tested(now_us, "vel", [(_VEL.start + axis, speeds[axis], _VEL_MPS) for axis in range(3)])
        if any(now_us - self.refused_since_us.get(kind, now_us) > _RESET_US for kind in ("vel", "pos_h")):
            self.v, self.p = np.array(velocity), np.array([north, east, self.p[2]])
            self.past.clear()
            self.refused_since_us.pop("vel", None)
            self.refused_since_us.pop("pos_h", None)

    def _align(self, now_us: int, gyro: Floats, force: Floats, mag: Floats | None, height: float | None) -> None:
        if np.abs(gyro).max() > _STILL_RADPS:
            self.still.clear()
            self.still_since_us = None
            return
        if self.still_since_us is None:
            self.still_since_us = now_us
        self.still.append((gyro, force, mag, height))
        if now_us - self.still_since_us < _STILL_US:
            return
        mags = [entry[2] for entry in self.still if entry[2] is not None]
        heights = [entry[3] for entry in self.still if entry[3] is not None]
        down: Floats = -np.mean([entry[1] for entry in self.still], axis=0)
        if not mags or not heights or np.linalg.norm(down) < 1.0:
            self.still.pop(0)
            return
        down /= np.linalg.norm(down)
        east: Floats = np.cross(down, np.mean(mags, axis=0))
        if np.linalg.norm(east) < 1e-9:
            self.still.pop(0)
            return
        east /= np.linalg.norm(east)
        columns = np.array([np.cross(east, down), east, down]).T
        self._turn_to(from_axes(*((x, y, z) for x, y, z in columns.tolist())))
        self.ground_m = float(np.mean(heights))
        self.since_us = now_us
        self.aligned = True

    def _place(self, place: tuple[float, float, float]) -> None:
        """Set the origin and true north from the first good fix."""
        self.origin = place
        found = pygeomag.GeoMag(coefficients_data=WMM_2025).calculate(glat=place[0], glon=place[1], alt=place[2] / 1000.0, time=2026.5)
        self.declination = math.radians(float(found.d))
        self._turn_to(multiply(turned((0.0, 0.0, self.declination)), self.q))
        self.v, self.p = np.zeros(3), np.zeros(3)
        self.past.clear()

    def _turn_to(self, q: Quaternion) -> None:
        self.q = unit(q)
        self.r = matrix(self.q)

    def _predict(self, now_us: int, step_us: int, rates: Floats, force: Floats) -> None:
        step_s = step_us * 1e-6
        self.rates = rates
        turn = multiply(self.q, turned(rates * step_s))
        accel = self.r @ force
        self.force_sum += accel * step_s
        accel[2] += GRAVITY_MPS2
        self.p = self.p + self.v * step_s + 0.5 * step_s * step_s * accel
        self.v = self.v + accel * step_s
        self._turn_to(turn)
        if self.origin is None:
            self.v, self.p = np.zeros(3), np.zeros(3)
        self.past.append((now_us, self.v, self.p))
        if now_us - self.since_us >= _LONGEST_STEP_US:
            self._spread((now_us - self.since_us) * 1e-6)
            self.since_us = now_us
            self.force_sum = np.zeros(3)

    def _spread(self, step_s: float) -> None:
        """Propagate the covariance over a time, with the mean specific force."""
        step_s = min(step_s, 0.1)
        fx, fy, fz = self.force_sum
        f = np.eye(15)
        f[_VEL, _ATT] = [[0.0, fz, -fy], [-fz, 0.0, fx], [fy, -fx, 0.0]]
        f[_ATT, _GYRO] = -step_s * self.r
        f[_VEL, _ACC] = -step_s * self.r
        f[_POS, _VEL] = step_s * np.eye(3)
        noise = np.repeat([_GYRO_NOISE**2, _ACC_NOISE**2, 0.0, _GYRO_WALK**2, _ACC_WALK**2], 3) * step_s
        self.covariance = f @ self.covariance @ f.T + np.diag(noise)

    def _at(self, time_us: int) -> tuple[Floats, Floats]:
        """Velocity and position of the filter's estimate at a time."""
        return next(((v, p) for stamp_us, v, p in reversed(self.past) if stamp_us <= time_us), (self.v, self.p))

    def _heading(self, now_us: int, mag: Floats) -> None:
        if "mag" in self.faults:
            return  # stopped permanently
        north, east, _ = self.r @ mag
        self._tested(now_us, "mag", [(_ATT.start + 2, wrapped(self.declination - math.atan2(east, north)), _YAW_RAD)])

    def _tested(self, now_us: int, kind: str, measurements: Sequence[tuple[int, float, float]]) -> None:
        """Test rows of state, difference and noise; apply or reject them together."""
        ratios = [
            abs(float(difference)) / (_GATES[kind] * math.sqrt(self.covariance[state, state] + noise * noise))
            for state, difference, noise in measurements
        ]
        self.ratios[kind] = max(ratios)
        if self.ratios[kind] <= 1.0:
            self.refused_since_us.pop(kind, None)
            for state, difference, noise in measurements:
                self._scalar(state, difference, noise)
            return
        begun_us = self.refused_since_us.setdefault(kind, now_us)
        if now_us - begun_us >= _FAIL_US:
            self.faults.add(kind)

    def _scalar(self, state: int, difference: float, noise: float) -> None:
        """Apply one measurement of one error."""
        column = self.covariance[:, state]
        gain = column / (column[state] + noise * noise)
        error = gain * float(difference)
        self.covariance = self.covariance - np.outer(gain, column)
        self.v = self.v + error[_VEL]
        self.p = self.p + error[_POS]
        self.bias_gyro = limited(self.bias_gyro + error[_GYRO], 0.1)
        self.bias_acc = limited(self.bias_acc + error[_ACC], 0.5)
        self._turn_to(multiply(turned(error[_ATT]), self.q))
