"""The complete controller, without a clock and without input or output: it takes bytes with their arrival times and returns bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hilsim_flight_controller.boot import UsbScan
from hilsim_flight_controller.flying.commander import Commander
from hilsim_flight_controller.flying.estimator import Estimator
from hilsim_flight_controller.flying.inertial import InertialDriver
from hilsim_flight_controller.flying.scripts import SCRIPTS
from hilsim_flight_controller.mavlink import Message, Sensor, common
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.rules.judge import Judge
from hilsim_flight_controller.rules.situation import Situation
from hilsim_flight_controller.rules.timing import BAROMETER, MAGNETOMETER
from hilsim_flight_controller.telemetry import PARAMETERS, UNKNOWN_ID, Telemetry, heartbeat, parameter
from hilsim_flight_controller.wire import Splitter, Writer

_HEARTBEAT_US, _TIMESYNC_US, _STREAM_US, _BACKUP_US = 1_000_000, 100_000, 5_000, 20_000
_FORGIVEN_US = 5_000_000
_DISARMED = -0.1  # PWM 900 as PX4 1.12 scales it
_HEARTBEAT_WISH = (common.MAV_CMD_REQUEST_MESSAGE, float(common.MAVLINK_MSG_ID_HEARTBEAT))
_ARMED_FLAG = common.MAV_MODE_FLAG_SAFETY_ARMED
_MAX_KEPT = 20_000
_STATE_INTERVAL_US = 5000.0


@dataclass(frozen=True, kw_only=True)
class Px4Spec:
    """Properties of a controller.

    Attributes:
        serial: Whether it is on a serial line, booting as over USB; else on PX4's simulator link, where it sends first.
        linux: Whether it is PX4 built for Linux, on a serial line: it sends at once, its first HEARTBEAT a second later, and its clock is the machine's, which continues over a restart.
        lockstep: Whether its clock is HIL_SENSOR.time_usec, and each is answered.
        hil: Whether HEARTBEAT has the HIL flag.
        armed: Whether it is armed from the start.
        autopilot: Value of HEARTBEAT.autopilot.
        parameters: Parameters; a float is one of PX4's floats, all others its integers.
        boot_us: Time from power-up to its first check of the port.
        script: Script; see ``scripts``.
        newer: Whether actuators are as after 1.12: 0 while disarmed, ``flags`` marks the channels of motors.
        extra: Whether it sends frames of unknown ids, and signed ones.
        ground_systems: System ids of ground stations.
        utc_at_zero_us: Unix time at time 0; None if unknown.
    """

    serial: bool = True
    linux: bool = False
    lockstep: bool = False
    hil: bool = True
    armed: bool = False
    autopilot: int = common.MAV_AUTOPILOT_PX4
    parameters: Mapping[str, float] = field(default_factory=lambda: dict(PARAMETERS))
    boot_us: int = 0
    script: str = "idle"
    newer: bool = False
    extra: bool = True
    ground_systems: frozenset[int] = frozenset({255})
    utc_at_zero_us: int | None = None


class Px4:
    """A controller; ``now_us`` is its own clock, 0 at its first power-up."""

    def __init__(self, spec: Px4Spec) -> None:
        self.spec = spec
        self.report = Report()
        self.situation = Situation(serial=spec.serial, lockstep=spec.lockstep, hil=spec.hil, utc_at_zero_us=spec.utc_at_zero_us)
        self.judge = Judge(self.report, self.situation, spec.ground_systems)
        self.sent: list[bytes] = []
        self.quaternion_asked = False
        self._power_on(0)

    def _power_on(self, now_us: int) -> None:
        self.clock_us = self.power_us = now_us
        self.scan = UsbScan(next_look_us=now_us + self.spec.boot_us)
        self.splitter = Splitter()
        self.writer = Writer(1, 1)
        self.estimate = Estimator()
        self.inertial = InertialDriver()
        self.out = bytearray()
        self.commander = Commander(report=self.report, estimate=self.estimate, say=self._say, armed=self.spec.armed)
        self.telemetry = Telemetry(extra=self.spec.extra and self.spec.serial)
        self.script = SCRIPTS[self.spec.script](self.commander, lambda: self.clock_us, self.report)
        self.script_ended = False
        self.fresh = self.answering = False
        self.heartbeat_us = self.timesync_us = self.stream_us = self.output_us = now_us
        self.unplugged = False
        self.speaking = self.spec.linux
        if self.speaking:
            self.heartbeat_us = now_us + _HEARTBEAT_US
            self.report.note(now_us, "speaking")
        self.situation.spoken_us = None
        self.situation.armed = self.spec.armed

    @property
    def done(self) -> bool:
        """Whether its script has ended."""
        return self.report.time_of("done") is not None

    def reboot(self, now_us: int, *, forgiven_us: int = _FORGIVEN_US) -> None:
        """Power-cycle: all state is lost, and faults are ignored for a while, until the bridge can notice."""
        self.report.note(now_us, "reboot")
        self._power_on(now_us)
        self.judge.restart()
        self.situation.forgiven_until_us = now_us + forgiven_us

    def unplug(self, now_us: int) -> None:
        """Disconnect the cable: no bytes are exchanged, but the controller continues."""
        self.report.note(now_us, "unplugged")
        self.unplugged = True

    def plug(self, now_us: int) -> None:
        """Reconnect the cable. Disarmed, MAVLink was stopped and waits for a HEARTBEAT (cdc_acm_check.cpp); armed, it continues."""
        self.report.note(now_us, "plugged")
        self.unplugged = False
        self.splitter, self.out = Splitter(), bytearray()
        self.scan = UsbScan(next_look_us=now_us)
        self.speaking = self.commander.armed or not self.spec.serial or self.spec.linux
        self.situation.spoken_us = None
        self.heartbeat_us = now_us
        self.judge.restart()

    def babble(self, now_us: int, count: int = 200) -> None:
        """Send bytes that are no frame: noise, with starts of frames in it, which may swallow frames that follow."""
        self.report.note(now_us, "babble")
        self.judge.timesync.restart()
        self.timesync_us = now_us + _TIMESYNC_US
        noise = np.random.default_rng(count).bytes(count)
        self.out += noise[: count // 2] + b"\xfd\xff\x00" + noise[count // 2 :] + b"\xfe\x09\x00"

    def receive(self, now_us: int, data: bytes, *, held_up: bool = False) -> None:
        """Process received bytes; ``held_up``: the reader was late, so arrival times are unknown."""
        self.situation.held_up = held_up
        if not self.spec.lockstep:
            self.clock_us = now_us
        if self.spec.serial and not self.speaking:
            self.scan.feed(data)
            self._overhear(data)
            return
        self._take(data)

    def advance(self, now_us: int) -> bytes:
        """Execute actions due until now; returns bytes to send."""
        if not self.spec.lockstep:
            self.clock_us = now_us
        now_us = self.clock_us
        if self.unplugged:
            self.out.clear()
            return b""
        if not self.speaking:
            self._begin(now_us)
        if self.speaking:
            self._talk(now_us)
            self.judge.tick(now_us)
            self.situation.held_up = False
        if self.answering:
            self.judge.order.answered()
            self.answering = False
        data, self.out = bytes(self.out), bytearray()
        return data

    def close(self) -> Report:
        """End the controller; returns the report."""
        self.judge.close(self.clock_us)
        return self.report

    def _overhear(self, data: bytes) -> None:
        """Check received bytes before MAVLink starts for order only: heartbeats are permitted, sensor frames are not."""
        for frame in self.splitter.feed(data):
            message = frame.message()
            if message is not None and frame.system not in self.spec.ground_systems:
                self.judge.order.frame(self.clock_us, frame, message)
        self.judge.stream(self.clock_us, self.splitter)

    def _begin(self, now_us: int) -> None:
        if self.spec.serial:
            self.speaking = self.scan.advance(now_us)
        else:
            self.speaking = True
        if self.speaking:
            self.report.note(now_us, "speaking")
            self.heartbeat_us = now_us
            self._beat(now_us)
            if self.spec.serial:
                self._take(bytes(self.scan.waiting), overheard=True)
            elif not self.quaternion_asked:
                self.quaternion_asked = self.situation.quaternion_wanted = True
                interval = common.MAV_CMD_SET_MESSAGE_INTERVAL
                identity = float(common.MAVLINK_MSG_ID_HIL_STATE_QUATERNION)
                self._send(common.MAVLink_command_long_message(0, 0, interval, 0, identity, _STATE_INTERVAL_US, 0, 0, 0, 0, 0))

    def _take(self, data: bytes, *, overheard: bool = False) -> None:
        frames = Splitter().feed(data) if overheard else self.splitter.feed(data)
        for frame in frames:
            message = frame.message()
            if not overheard:
                self.judge.frame(self._time_of(message), frame, message)
            self._handle(message)
        self.judge.stream(self.clock_us, self.splitter)

    def _time_of(self, message: Message) -> int:
        """Time of a message; in lockstep the sensor's stamp is the controller's time."""
        if self.spec.lockstep and message is not None and message.get_type() == "HIL_SENSOR":
            self.clock_us = max(message.time_usec, self.clock_us)
        return self.clock_us

    def _handle(self, message: Message) -> None:
        if message is None:
            return
        now_us = self.clock_us
        match message.get_type():
            case "HIL_SENSOR":
                self._sensor(now_us, message)
            case "HIL_GPS":
                self.estimate.gps(now_us, message)
            case "TIMESYNC" if message.tc1 == 0:
                self._send(common.MAVLink_timesync_message(now_us * 1000, message.ts1))
            case "COMMAND_LONG" if self.spec.serial and (message.command, message.param1) == _HEARTBEAT_WISH:
                self._beat(now_us)
                self._send(common.MAVLink_command_ack_message(message.command, common.MAV_RESULT_ACCEPTED))
            case "COMMAND_LONG" if self.spec.serial and message.target_system in {0, 1}:
                result = self.commander.command(now_us, message)
                self.report.note(now_us, f"command {message.command}: {result}")
                self._send(common.MAVLink_command_ack_message(message.command, result))
            case "PARAM_REQUEST_LIST" if self.spec.serial:
                for name in self.spec.parameters:
                    self._send(parameter(name, self.spec.parameters))
            case "PARAM_REQUEST_READ" if self.spec.serial and message.param_id in self.spec.parameters:
                self._send(parameter(message.param_id, self.spec.parameters))

    def _sensor(self, now_us: int, message: Sensor) -> None:
        if self.spec.linux and not self.inertial.takes(now_us):
            return
        figures = [message.xacc, message.yacc, message.zacc, message.xgyro, message.ygyro, message.zgyro, message.abs_pressure]
        figures += [message.xmag, message.ymag, message.zmag]
        if np.isfinite(figures).all():
            updated = message.fields_updated
            has_mag, has_baro = updated & MAGNETOMETER == MAGNETOMETER, updated & BAROMETER == BAROMETER
            self.estimate.sensor(now_us, message, has_mag=has_mag, has_baro=has_baro)
        self._follow_script()
        self.commander.step(now_us)
        self.situation.armed = self.commander.armed
        self.fresh = True
        self.output_us = now_us
        if self.spec.lockstep:
            self._actuate(now_us)
            self.answering = True

    def _follow_script(self) -> None:
        if not self.script_ended:
            self.script_ended = next(self.script, self) is self

    def _talk(self, now_us: int) -> None:
        if now_us >= self.heartbeat_us:
            self._beat(now_us)
        if not self.spec.lockstep and now_us >= self.stream_us:
            self._stream(now_us)
        if not self.spec.serial:
            return
        if now_us >= self.timesync_us:
            self.timesync_us = now_us + _TIMESYNC_US
            self.judge.timesync.request(now_us, now_us * 1000)
            self._send(common.MAVLink_timesync_message(0, now_us * 1000))
        for kind, message in self.telemetry.messages(now_us, self.estimate):
            if kind == "unknown":
                self._keep(self.writer.unknown(UNKNOWN_ID, message))
            elif kind == "signed":
                self._keep(self.writer.signed(message, stamp=now_us // 10))
            else:
                self._send(message)

    def _stream(self, now_us: int) -> None:
        """Send actuator commands: at most every 5 ms, only new ones; without sensors they are computed every 20 ms."""
        if self.fresh or now_us - self.output_us >= _BACKUP_US:
            self.stream_us = max(self.stream_us + _STREAM_US, now_us - _STREAM_US + 1)
            self.output_us = now_us
            self._actuate(now_us)

    def _actuate(self, now_us: int) -> None:
        self.fresh = False
        motors = self.commander.motors
        idle = 0.0 if self.spec.newer else _DISARMED
        controls = [idle] * 4 if motors is None else [float(motor) for motor in motors]
        mode = common.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | (_ARMED_FLAG if self.commander.armed else 0)
        if self.spec.serial:
            mode |= common.MAV_MODE_FLAG_HIL_ENABLED if self.spec.hil else 0
        flags = 0b1111 if self.spec.newer and self.spec.serial else int(self.spec.lockstep)
        uptime_us = now_us if self.spec.lockstep or self.spec.linux else now_us - self.power_us
        message = common.MAVLink_hil_actuator_controls_message(uptime_us, [*controls, *[0.0] * 12], mode, flags)
        self.out += self.writer.pack(message)

    def _beat(self, now_us: int) -> None:
        self.heartbeat_us = now_us + _HEARTBEAT_US
        self._send(heartbeat(self.commander, serial=self.spec.serial, hil=self.spec.hil, autopilot=self.spec.autopilot))
        if self.situation.spoken_us is None:
            self.situation.spoken_us = now_us

    def _say(self, text: str) -> None:
        self._send(common.MAVLink_statustext_message(common.MAV_SEVERITY_CRITICAL, text.encode()))
        self.report.note(self.clock_us, text)

    def _send(self, message: Message) -> None:
        self._keep(self.writer.pack(message))

    def _keep(self, raw: bytes) -> None:
        """Keep frames other than the actuators', to compare them with a ground station's."""
        if len(self.sent) < _MAX_KEPT:
            self.sent.append(raw)
        self.out += raw
