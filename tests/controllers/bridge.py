"""A small bridge of the tests' own, right in what the controller judges: the reference that ``wrong`` breaks. Bytes in, bytes out; no clock, no sockets."""

from collections import deque

from pymavlink.dialects.v20 import common

from hilsim_flight_controller.rules.atmosphere import altitude_m
from hilsim_flight_controller.rules.timing import ACCELEROMETER, BAROMETER, GYROSCOPE, MAGNETOMETER, PITOT
from hilsim_flight_controller.wire import Splitter, Writer

GPS_AGE_US = 110_000
_HEARTBEAT_US, _GPS_US = 1_000_000, 100_000
_BARO_US = 20_000
_TOO_OLD_US = 300_000
_SILENT_US = 3_000_000
_LONGEST_STEP = 5


class Bridge:
    """Between a ``body`` (``advance``, ``reading``) and a controller. ``now_us`` is its own clock; ``utc_at_zero_us`` is Unix time at its time 0.

    The magnetometer has the IMU's rate or a quarter of it, the barometer 50 Hz. Methods that begin with ``on_`` and ``may_``, ``write`` and the periods are there to be spoiled.
    """

    def __init__(self, body, *, serial=True, lockstep=False, period_us=4000, utc_at_zero_us=1_780_000_000_000_000):
        self.body = body
        self.serial, self.lockstep = serial, lockstep
        self.period_us, self.gps_period_us = period_us, _GPS_US
        self.mag_every, self.baro_every = 1 if period_us >= 10_000 else 4, max(_BARO_US // period_us, 1)
        self.utc_at_zero_us = utc_at_zero_us
        self.writer = Writer(1, 200)
        self.splitter = Splitter()
        self.out = bytearray()
        self.to_ground = []
        self.controls = [0.0] * 4
        self.heard_us = None
        self.hil = False
        self.heartbeat_us = self.due_us = self.gps_us = 0
        self.frames = 0
        self.body_us, self.sensed_us = 0, None
        self.fixes = deque()
        self.waiting = False

    def receive(self, now_us, data):
        """Bytes of the controller."""
        for frame in self.splitter.feed(data):
            self.to_ground.append(frame.raw)
            message = frame.message()
            if message is not None:
                self._obey(now_us, message)

    def unplugged(self):
        """The cable is out: earlier messages of the controller are void."""
        self.heard_us, self.hil, self.waiting = None, False, False
        self.splitter = Splitter()
        self.fixes.clear()
        self.out.clear()

    def from_ground(self, raw):
        """A frame of a ground station."""
        self.out += raw

    def advance(self, now_us):
        """What is due; returns bytes for the controller."""
        if now_us >= self.heartbeat_us:
            self.heartbeat_us = now_us + _HEARTBEAT_US
            self.send(self.on_heartbeat())
        if self.may_sense(now_us):
            self.sense(now_us)
        data, self.out = bytes(self.out), bytearray()
        return data

    def may_sense(self, now_us):
        """Whether a reading is due to a controller that may have one."""
        if self.lockstep:
            return self.heard_us is not None and not self.waiting and now_us >= self.due_us
        heard = self.heard_us is not None and now_us - self.heard_us < _SILENT_US
        return heard and (self.hil or not self.serial) and now_us >= self.due_us

    def sense(self, now_us):
        """Step the body and send what its sensors feel; what a stall held up is skipped, and the body stood still meanwhile."""
        self.due_us = self.next_due(now_us)
        most_us = _LONGEST_STEP * self.period_us
        self.body_us = now_us if self.sensed_us is None else self.body_us + min(now_us - self.sensed_us, most_us)
        self.sensed_us = now_us
        self.body.advance(self.body_us, self.controls)
        reading = self.body.reading()
        self.send_sensor(now_us, self.on_sensor(now_us, self._fields(now_us, reading)))
        self.waiting = self.lockstep
        if now_us >= self.gps_us:
            self.gps_us = now_us + self.gps_period_us
            self.fixes.append((now_us, reading.fix))
        while self.fixes and now_us - self.fixes[0][0] >= GPS_AGE_US:
            fixed_us, fix = self.fixes.popleft()
            if now_us - fixed_us < _TOO_OLD_US:
                self.send(common.MAVLink_hil_gps_message(**self.on_gps(now_us, {"time_usec": self.utc_at_zero_us + fixed_us, **fix})))

    def next_due(self, now_us):
        """The next place in the grid of readings."""
        due_us = self.due_us + self.period_us
        return due_us if due_us > now_us else now_us - now_us % self.period_us + self.period_us

    def on_sensor(self, now_us, fields):
        """HIL_SENSOR's fields before they are packed."""
        del now_us
        return fields

    def on_gps(self, now_us, fields):
        """HIL_GPS's fields before they are packed."""
        del now_us
        return fields

    def on_heartbeat(self):
        return common.MAVLink_heartbeat_message(common.MAV_TYPE_GENERIC, common.MAV_AUTOPILOT_INVALID, 0, 0, common.MAV_STATE_ACTIVE, 3)

    def on_timesync(self, now_us, message):
        """The answer to a request, or None."""
        return common.MAVLink_timesync_message(now_us * 1000 + 1, message.ts1)

    def send_sensor(self, now_us, fields):
        del now_us
        self.send(common.MAVLink_hil_sensor_message(**fields))

    def send(self, message):
        self.write(self.writer.pack(message))

    def write(self, raw):
        self.out += raw

    def _fields(self, now_us, reading):
        updated = ACCELEROMETER | GYROSCOPE
        updated |= MAGNETOMETER if self.frames % self.mag_every == 0 else 0
        updated |= BAROMETER | PITOT if self.frames % self.baro_every == 0 else 0
        self.frames += 1
        names = ("xacc", "yacc", "zacc", "xgyro", "ygyro", "zgyro", "xmag", "ymag", "zmag")
        figures = [float(part) for part in (*reading.force, *reading.rates, *reading.field)]
        return dict(zip(names, figures, strict=True)) | {
            "time_usec": now_us,
            "abs_pressure": reading.pressure,
            "diff_pressure": reading.dynamic,
            "pressure_alt": altitude_m(reading.pressure),
            "temperature": reading.temperature,
            "fields_updated": updated,
        }

    def _obey(self, now_us, message):
        match message.get_type():
            case "HEARTBEAT":
                self.hil = bool(message.base_mode & common.MAV_MODE_FLAG_HIL_ENABLED)
                if self.heard_us is None:
                    self.due_us = now_us
                self.heard_us = now_us
            case "HIL_ACTUATOR_CONTROLS":
                armed = message.mode & common.MAV_MODE_FLAG_SAFETY_ARMED
                self.controls = [min(max(control, 0.0), 1.0) if armed else 0.0 for control in message.controls[:4]]
                self.waiting = False
            case "TIMESYNC" if message.tc1 == 0:
                answer = self.on_timesync(now_us, message)
                if answer is not None:
                    self.send(answer)
