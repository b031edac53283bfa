"""Rules on the timing of sensors: rates, gaps, bursts, stamps, and constant values."""

from collections import deque

from hilsim_flight_controller.mavlink import Gps, Sensor
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.rules.situation import Situation

ACCELEROMETER, GYROSCOPE, MAGNETOMETER, BAROMETER, PITOT = 0x007, 0x038, 0x1C0, 0x1A00, 0x400
GROUPS = {"accelerometer": ACCELEROMETER, "gyroscope": GYROSCOPE, "magnetometer": MAGNETOMETER, "barometer": BAROMETER}
RESET = 1 << 31
_KNOWN_BITS = 0x1FFF | RESET
_FIELDS = {
    "accelerometer": ("xacc", "yacc", "zacc"),
    "gyroscope": ("xgyro", "ygyro", "zgyro"),
    "magnetometer": ("xmag", "ymag", "zmag"),
    "barometer": ("abs_pressure",),
    "gps": ("lat", "lon", "alt"),
}
_RATES_HZ = {"accelerometer": (95, 520), "gyroscope": (95, 520), "magnetometer": (45, 110), "barometer": (40, 60), "gps": (4, 11)}
_GAPS_US = {"accelerometer": 300_000, "gyroscope": 300_000, "magnetometer": 300_000, "barometer": 300_000, "gps": 1_000_000}
_WINDOW_US = 2_000_000
_FIRST_FIX_US = 10_000_000
_LOST_US = 15_000
_BURST = 4
_EQUAL = 1e-6  # PX4's sensors/data_validator/DataValidator.cpp
_MAX_EQUAL = 100


class Timing:
    """Rules on HIL_SENSOR's groups and on HIL_GPS."""

    def __init__(self, report: Report, situation: Situation) -> None:
        self.report, self.situation = report, situation
        self.intervals_us: list[int] = []
        self.restart()

    def restart(self) -> None:
        """Reset the state after a restart of the controller."""
        self.last_us: dict[str, int] = {}
        self.silent: set[str] = set()
        self.count: dict[str, int] = {}
        self.window_us: int | None = None
        self.begun_us: int | None = None
        self.spoiled = False
        self.period_us: float | None = None
        self.arrivals: deque[int] = deque(maxlen=_BURST)
        self.stamp: int | None = None
        self.window_stamp: int | None = None
        self.values: dict[str, list[float]] = {}
        self.equal: dict[str, list[int]] = {}

    def sensor(self, now_us: int, message: Sensor) -> None:
        """Check a HIL_SENSOR."""
        if self.begun_us is None:
            self.begun_us = self.window_us = now_us
            self.window_stamp = message.time_usec
        updated = message.fields_updated
        for name, mask in GROUPS.items():
            whole = updated & mask in {0, mask}
            self.report.judge("groups", whole, now_us, f"fields_updated of the {name}", hex(updated & mask), f"0 or {mask:#x}")
            if updated & mask == mask:
                self._update(now_us, name, message)
        self.report.judge("groups", not updated & ~_KNOWN_BITS, now_us, "fields_updated", hex(updated), "of bits 0 to 12 and 31")
        inertial = ACCELEROMETER | GYROSCOPE
        self.report.judge("imu", updated & inertial == inertial, now_us, "fields_updated", hex(updated & inertial), hex(inertial))
        self._stamp(now_us, message.time_usec)
        self._burst(now_us)

    def gps(self, now_us: int, message: Gps) -> None:
        """Check a HIL_GPS."""
        self._update(now_us, "gps", message)

    def tick(self, now_us: int) -> None:
        """Check for missing frames."""
        self.spoiled |= self.situation.held_up
        for name, last_us in self.last_us.items():
            if now_us - last_us > _GAPS_US[name] and name not in self.silent and not self.situation.held_up:
                self.silent.add(name)
                self._judge_gap(now_us, name, now_us - last_us)
        if self.window_us is not None and now_us - self.window_us >= _WINDOW_US:
            self._close_window(now_us, self.window_us)

    def _update(self, now_us: int, name: str, message: Sensor | Gps) -> None:
        last_us = self.last_us.get(name)
        if last_us is not None:
            if name == "accelerometer" and not self.situation.held_up:
                self.intervals_us.append(now_us - last_us)
            if name not in self.silent and not self.situation.held_up:
                self._judge_gap(now_us, name, now_us - last_us)
        self.silent.discard(name)
        self.last_us[name] = now_us
        self.count[name] = self.count.get(name, 0) + 1
        self._staleness(now_us, name, message)

    def _judge_gap(self, now_us: int, name: str, gap_us: int) -> None:
        self.report.judge(
            "gap",
            gap_us <= _GAPS_US[name],
            now_us,
            f"time between readings of the {name}",
            f"{gap_us / 1e6:.3f} s",
            f"at most {_GAPS_US[name] / 1e6:g} s",
        )

    def _staleness(self, now_us: int, name: str, message: Sensor | Gps) -> None:
        before = self.values.get(name)
        values = [getattr(message, part) for part in _FIELDS[name]]
        self.values[name] = values
        counts = self.equal.setdefault(name, [0] * len(values))
        if before is None:
            return
        for place, part in enumerate(_FIELDS[name]):
            counts[place] = counts[place] + 1 if abs(values[place] - before[place]) < _EQUAL else 0
            stale = counts[place] == _MAX_EQUAL
            self.report.judge(
                "stale", not stale, now_us, f"{part} of the {name}", f"{values[place]} {_MAX_EQUAL} times", "different from reading to reading"
            )

    def _stamp(self, now_us: int, stamp: int) -> None:
        if self.stamp is not None:
            self.report.judge("stamps", stamp > self.stamp, now_us, "HIL_SENSOR.time_usec", stamp, f"above {self.stamp}")
            self.situation.time_lost |= stamp - self.stamp > _LOST_US
        self.stamp = stamp

    def _burst(self, now_us: int) -> None:
        if self.situation.lockstep:
            return
        if self.situation.held_up:
            self.arrivals.clear()
        self.arrivals.append(now_us)
        if self.period_us is not None and len(self.arrivals) == _BURST:
            span_us = now_us - self.arrivals[0]
            must = f"not within half a period of {self.period_us:.0f} us"
            self.report.judge("burst", span_us >= 0.5 * self.period_us, now_us, f"{_BURST} HIL_SENSOR", f"{span_us} us", must)

    def _close_window(self, now_us: int, begun_us: int) -> None:
        window_s = (now_us - begun_us) * 1e-6
        if not self.spoiled:
            for name, (least, most) in _RATES_HZ.items():
                waiting = name == "gps" and "gps" not in self.last_us and now_us - (self.begun_us or 0) < _FIRST_FIX_US
                began = name == "gps" and self.count.get(name, 0) == 0 and self.last_us.get(name, 0) >= begun_us
                if not waiting and not began:
                    rate_hz = self.count.get(name, 0) / window_s
                    self.report.judge("rate", least <= rate_hz <= most, now_us, f"rate of the {name}", f"{rate_hz:.1f} Hz", f"{least} to {most} Hz")
            self._judge_stamp_rate(now_us, now_us - begun_us)
        frames = self.count.get("accelerometer", 0)
        self.period_us = (now_us - begun_us) / frames if frames else None
        self.window_us, self.window_stamp = now_us, self.stamp
        self.spoiled = False
        self.count = {}

    def _judge_stamp_rate(self, now_us: int, window_us: int) -> None:
        if self.stamp is None or self.window_stamp is None or self.situation.lockstep:
            return
        ratio = (self.stamp - self.window_stamp) / window_us
        self.report.judge("stamps", 0.9 <= ratio <= 1.1, now_us, "growth of HIL_SENSOR.time_usec", f"{ratio:.3g} us a us", "0.9 to 1.1 us a us")
