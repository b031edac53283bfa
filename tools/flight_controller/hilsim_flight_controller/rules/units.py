"""Rules on units and axes of HIL_SENSOR, checked by quantities that must agree with it: gravity, the Earth's field, the GPS, each other."""

import math
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

import pygeomag
from pygeomag.wmm.wmm_2025 import WMM_2025

from hilsim_flight_controller.mavlink import Sensor
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.rules.atmosphere import altitude_m
from hilsim_flight_controller.rules.situation import REST_US, Situation
from hilsim_flight_controller.rules.timing import BAROMETER, MAGNETOMETER, PITOT

_FIGURES = (
    "xacc", "yacc", "zacc", "xgyro", "ygyro", "zgyro", "xmag", "ymag", "zmag", "abs_pressure", "diff_pressure", "pressure_alt", "temperature"
)  # fmt: skip
_REST_FRAMES = 100
_TURN_US = 500_000
_MIN_TURN_GAUSS = 0.02  # five times the noise of a difference of readings
_ENOUGH_GAUSS2 = 0.02


Vector: TypeAlias = Sequence[float]


def dot(a: Vector, b: Vector) -> float:
    """Scalar product of three-dimensional vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> tuple[float, float, float]:
    """Vector product of three-dimensional vectors."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


class Units:
    """Rules on HIL_SENSOR."""

    def __init__(self, report: Report, situation: Situation) -> None:
        self.report, self.situation = report, situation
        self.sums = [0.0] * 9
        self.mags = self.frames = 0
        self.waiting: deque[tuple[int, list[float], bool]] = deque()
        self.pitot_sum, self.pitot_count = 0.0, 0
        self.turn = Turn(report)
        self.model: tuple[float, float] | None = None

    def sensor(self, now_us: int, message: Sensor) -> None:
        """Check a HIL_SENSOR."""
        figures: list[float] = [getattr(message, name) for name in _FIGURES]
        bad = [name for name, figure in zip(_FIGURES, figures, strict=True) if not math.isfinite(figure)]
        if not self.report.judge("finite", not bad, now_us, "HIL_SENSOR", ", ".join(bad), "numbers"):
            return
        self.report.judge("device", message.id == 0, now_us, "HIL_SENSOR.id", message.id, "0")
        updated = message.fields_updated
        mag = figures[6:9] if updated & MAGNETOMETER == MAGNETOMETER else None
        if updated & BAROMETER == BAROMETER:
            self._barometer(now_us, message)
        plausible = True
        if mag is not None:
            strength = math.hypot(*mag)
            plausible = self.report.judge("field", 0.2 <= strength <= 0.7, now_us, "magnetic field", strength, "0.2 to 0.7 gauss")
        self.turn.reading(message.time_usec, figures[3:6], mag if plausible else None)
        self._rest(now_us, figures, mag)
        if updated & PITOT:
            self._pitot(now_us, message.diff_pressure)

    def restart(self) -> None:
        """Reset the state after a restart of the controller."""
        self.turn.restart()
        self._forget_rest()

    def _barometer(self, now_us: int, message: Sensor) -> None:
        pressure = message.abs_pressure
        if self.report.judge("pressure", 300.0 <= pressure <= 1100.0, now_us, "abs_pressure", pressure, "300 to 1100 hPa"):
            stands_for = altitude_m(pressure)
            off = abs(message.pressure_alt - stands_for)
            self.report.judge("pressure_altitude", off < 5.0, now_us, "pressure_alt", message.pressure_alt, f"{stands_for:.1f} m by abs_pressure")
            if self.situation.altitude_m is not None:
                near = abs(stands_for - self.situation.altitude_m) < 100.0
                must = f"that of HIL_GPS.alt, {self.situation.altitude_m:.1f} m, to 100 m"
                self.report.judge("pressure", near, now_us, "altitude by abs_pressure (m)", stands_for, must)
        temperature = message.temperature
        self.report.judge("temperature", -60.0 <= temperature <= 60.0, now_us, "temperature", temperature, "-60 to 60 degrees Celsius")

    def _pitot(self, now_us: int, pressure: float) -> None:
        """Check the pitot tube: at rest and in light wind it reads almost 0; 0.5 hPa are 9 m/s."""
        if not self.situation.rests(now_us):
            self.pitot_sum, self.pitot_count = 0.0, 0
            return
        self.pitot_sum += abs(pressure)
        self.pitot_count += 1
        if self.pitot_count == _REST_FRAMES:
            mean = self.pitot_sum / _REST_FRAMES
            self.report.judge("airspeed", mean < 0.5, now_us, "mean size of diff_pressure at rest", mean, "below 0.5 hPa")
            self.pitot_sum, self.pitot_count = 0.0, 0

    def _forget_rest(self) -> None:
        self.sums = [0.0] * 9
        self.mags = self.frames = 0
        self.waiting.clear()

    def _rest(self, now_us: int, figures: Vector, mag: Vector | None) -> None:
        """Average over 100 frames, checked once the vehicle is known to have been at rest in the second after them too."""
        if not self.situation.rests(now_us):
            self._forget_rest()
            return
        for place in range(6):
            self.sums[place] += figures[place]
        if mag is not None:
            self.mags += 1
            for place in range(3):
                self.sums[6 + place] += mag[place]
        self.frames += 1
        if self.frames == _REST_FRAMES:
            means = [part / (self.frames if place < 6 else max(self.mags, 1)) for place, part in enumerate(self.sums)]
            self.waiting.append((now_us, means, self.mags > 0))
            self.sums = [0.0] * 9
            self.mags = self.frames = 0
        while self.waiting and now_us - self.waiting[0][0] > REST_US:
            self._judge_rest(*self.waiting.popleft())

    def _judge_rest(self, then_us: int, means: Vector, has_mag: bool) -> None:  # noqa: FBT001 - as it was kept
        force, rate, mag = means[:3], math.hypot(*means[3:6]), means[6:]
        right = 9.3 <= math.hypot(*force) <= 10.3 and force[2] < -8.5
        shown = "({:.3g}, {:.3g}, {:.3g}) m/s^2".format(*force)
        self.report.judge("specific_force", right, then_us, "mean specific force at rest", shown, "9.3 to 10.3 m/s^2 along -z")
        self.report.judge("gyroscope_rest", rate < 0.05, then_us, "mean rate at rest", rate, "below 0.05 rad/s")
        altitude = self.situation.altitude_m
        if has_mag and altitude is not None and right:
            self._field_model(then_us, force, mag, altitude)

    def _field_model(self, now_us: int, force: Vector, mag: Vector, altitude: float) -> None:
        strength, inclination = self._expected(altitude)
        size = math.hypot(*mag)
        down = -dot(force, mag) / (math.hypot(*force) * size)
        dips = math.degrees(math.asin(max(-1.0, min(1.0, down))))
        self.report.judge("field", abs(size - strength) < 0.05, now_us, "magnetic field at rest", size, f"{strength:.3f} gauss to 0.05 (WMM2025)")
        self.report.judge("field", abs(dips - inclination) < 10.0, now_us, "inclination at rest (deg)", dips, f"{inclination:.1f} to 10 (WMM2025)")

    def _expected(self, altitude: float) -> tuple[float, float]:
        """Strength (gauss) and inclination (deg) at the position of the first fix."""
        if self.model is None:
            situation = self.situation
            model = pygeomag.GeoMag(coefficients_data=WMM_2025)
            found = model.calculate(glat=situation.latitude_deg, glon=situation.longitude_deg, alt=altitude / 1000.0, time=2026.5)
            self.model = float(found.total_intensity) * 1e-5, float(found.i)
        return self.model


class Turn:
    """Rule that the gyroscope's rotation agrees with the rotation of the magnetic field, over half seconds with rotation.

    It uses the readings' stamps: a busy host may deliver several readings at once although they were measured at even intervals (rules of timing check the arrival).
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.restart()

    def restart(self) -> None:
        """Reset the state after a restart of the controller."""
        self.begun_us = self.last_us = 0
        self.first: Vector = ()
        self.turned: tuple[float, float, float] | None = None
        self.both = self.predicted = self.seen = 0.0

    def reading(self, now_us: int, rates: Vector, mag: Vector | None) -> None:
        """Process rates (rad/s) and, if there is a new one, a field (gauss) at a time."""
        if self.turned is not None:
            step_s = min(now_us - self.last_us, 100_000) * 1e-6
            steps = 1 + int(math.hypot(*rates) * step_s / 0.1)
            for _ in range(min(steps, 20)):
                change = cross(self.turned, rates)
                x, y, z = (part + step_s / steps * growth for part, growth in zip(self.turned, change, strict=True))
                self.turned = x, y, z
        self.last_us = now_us
        if mag is None:
            return
        if self.turned is not None and now_us - self.begun_us >= _TURN_US:
            self._compare(now_us, mag, self.turned)
        if self.turned is None or now_us - self.begun_us >= _TURN_US:
            self.begun_us, self.first, self.turned = now_us, tuple(mag), (mag[0], mag[1], mag[2])

    def _compare(self, now_us: int, mag: Vector, turned: Vector) -> None:
        predicted = [a - b for a, b in zip(turned, self.first, strict=True)]
        seen = [a - b for a, b in zip(mag, self.first, strict=True)]
        if max(math.hypot(*predicted), math.hypot(*seen)) < _MIN_TURN_GAUSS:
            return
        self.both += dot(predicted, seen)
        self.predicted += dot(predicted, predicted)
        self.seen += dot(seen, seen)
        most = max(self.predicted, self.seen)
        if most >= _ENOUGH_GAUSS2:
            agreement = self.both / most
            self.report.judge(
                "gyroscope", agreement > 0.6, now_us, "field turned by the gyroscope over field turned", agreement, "above 0.6 (1 is agreement)"
            )
            self.both = self.predicted = self.seen = 0.0
