"""Rules on units, time and quality of HIL_GPS, and on the agreement of its velocity with its change of position."""

import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from hilsim_flight_controller.mavlink import Gps
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.rules.situation import MOVES_MPS, Situation

UNKNOWN_COURSE = 65_535
_UNIX_2020_US, _UNIX_2100_US = 1_577_836_800_000_000, 4_102_444_800_000_000
_M_PER_DEGE7 = 0.0111319
_SPAN_US = 1_000_000
_MAX_GAP_US = 350_000
_MIN_M = 0.5
_ENOUGH_M2 = 4.0
_SETTLED_US = 15_000_000
_FAST_CMPS = 100


class GpsRules:
    """Rules on HIL_GPS."""

    def __init__(self, report: Report, situation: Situation) -> None:
        self.report, self.situation = report, situation
        self.restart()

    def restart(self) -> None:
        """Reset the state after a restart of the controller."""
        self.first_us: int | None = None
        self.stamp: int | None = None
        self.fixes: deque[tuple[int, tuple[float, float, float], tuple[float, float, float]]] = deque()
        self.sums = {"level": [0.0, 0.0, 0.0], "vertical": [0.0, 0.0, 0.0]}

    def gps(self, now_us: int, message: Gps) -> None:
        """Check a fix, and pass it to other rules."""
        if self.first_us is None:
            self.first_us = now_us
        self._time(now_us, message.time_usec)
        if now_us - self.first_us >= _SETTLED_US:
            self._quality(now_us, message)
        if message.fix_type < 3:
            return
        degrees = message.lat * 1e-7, message.lon * 1e-7
        somewhere = max(abs(degrees[0]), abs(degrees[1])) > 1.0 and abs(degrees[0]) <= 90.0 and abs(degrees[1]) <= 180.0
        self.report.judge("gps_position", somewhere, now_us, "lat and lon", f"{message.lat}, {message.lon}", "degrees * 1e7 of a place on land")
        self._course(now_us, message)
        self._motion(now_us, message)
        self._tell(now_us, message)

    def _tell(self, now_us: int, message: Gps) -> None:
        situation = self.situation
        situation.fixed_us = now_us
        situation.altitude_m = message.alt * 1e-3
        situation.latitude_deg, situation.longitude_deg = message.lat * 1e-7, message.lon * 1e-7
        situation.speed_mps = math.hypot(message.vn, message.ve, message.vd) * 1e-2
        if situation.speed_mps > MOVES_MPS:
            situation.moved_us = now_us

    def _time(self, now_us: int, stamp: int) -> None:
        if self.report.judge("gps_time", _UNIX_2020_US < stamp < _UNIX_2100_US, now_us, "HIL_GPS.time_usec", stamp, "microseconds since 1970"):
            if self.stamp is not None:
                self.report.judge("gps_time", stamp > self.stamp, now_us, "HIL_GPS.time_usec", stamp, f"above {self.stamp}")
            if self.situation.utc_at_zero_us is not None:
                age_ms = (self.situation.utc_at_zero_us + now_us - stamp) * 1e-3
                held_up = self.situation.held_up
                self.report.judge("gps_time", held_up or 20.0 <= age_ms <= 400.0, now_us, "age of the fix (ms)", age_ms, "20 to 400")
        self.stamp = stamp

    def _quality(self, now_us: int, message: Gps) -> None:
        good = message.fix_type >= 3 and message.satellites_visible >= 6 and 5 <= message.eph <= 300 and 5 <= message.epv <= 500
        got = f"fix {message.fix_type}, {message.satellites_visible} satellites, eph {message.eph}, epv {message.epv}"
        self.report.judge("gps_quality", good, now_us, "HIL_GPS", got, "fix 3 or better, 6 satellites, eph 5 to 300 cm, epv 5 to 500 cm")

    def _course(self, now_us: int, message: Gps) -> None:
        level = math.hypot(message.vn, message.ve)
        self.report.judge("gps_speed", abs(message.vel - level) <= 0.05 * level + 5.0, now_us, "vel", message.vel, f"{level:.0f} cm/s by vn and ve")
        known = message.cog != UNKNOWN_COURSE
        if known:
            self.report.judge("gps_course", message.cog < 36_000, now_us, "cog", message.cog, "0 to 35999 cdeg, or 65535")
        if known and level >= _FAST_CMPS:
            course = math.degrees(math.atan2(message.ve, message.vn)) * 100.0
            off = (message.cog - course + 18_000.0) % 36_000.0 - 18_000.0
            self.report.judge("gps_course", abs(off) < 2_000.0, now_us, "cog", message.cog, f"{course % 36_000.0:.0f} cdeg by vn and ve")

    def _motion(self, now_us: int, message: Gps) -> None:
        """Compare the change of position with the integral of the velocity, by the fixes' own stamps, over seconds with motion.

        The vehicle stops while its controller is silent, and also when a busy host delays its simulator, although time continues: earlier fixes are then ignored.
        """
        if self.situation.time_lost or (self.fixes and message.time_usec - self.fixes[-1][0] > _MAX_GAP_US):
            self.fixes.clear()
            self.situation.time_lost = False
        place = message.lat * _M_PER_DEGE7, message.lon * _M_PER_DEGE7 * math.cos(math.radians(message.lat * 1e-7)), -message.alt * 1e-3
        self.fixes.append((message.time_usec, place, (message.vn * 1e-2, message.ve * 1e-2, message.vd * 1e-2)))
        if message.time_usec - self.fixes[0][0] < _SPAN_US:
            return
        moved = [b - a for a, b in zip(self.fixes[0][1], place, strict=True)]
        summed = [0.0, 0.0, 0.0]
        for (early_us, _, before), (late_us, _, after) in pairwise(self.fixes):
            for axis in range(3):
                summed[axis] += 0.5 * (before[axis] + after[axis]) * (late_us - early_us) * 1e-6
        last = self.fixes[-1]
        self.fixes.clear()
        self.fixes.append(last)
        self._compare(now_us, "level", moved[:2], summed[:2])
        self._compare(now_us, "vertical", moved[2:], summed[2:])

    def _compare(self, now_us: int, name: str, moved: Sequence[float], summed: Sequence[float]) -> None:
        if max(math.hypot(*moved), math.hypot(*summed)) < _MIN_M:
            return
        sums = self.sums[name]
        for place, pair in enumerate(((moved, summed), (moved, moved), (summed, summed))):
            sums[place] += sum(a * b for a, b in zip(*pair, strict=True))
        most = max(sums[1], sums[2])
        if most >= _ENOUGH_M2:
            must = "above 0.7 (1 is agreement)"
            self.report.judge("gps_velocity", sums[0] / most > 0.7, now_us, f"{name} velocity over change of position", sums[0] / most, must)
            self.sums[name] = [0.0, 0.0, 0.0]
