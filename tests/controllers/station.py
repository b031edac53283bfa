"""A scripted ground station: datagrams with their arrival times go in, datagrams come out. It keeps every byte both ways. ``ground`` gives it a socket."""

from dataclasses import asdict, dataclass, field

from pymavlink.dialects.v20 import common

from hilsim_flight_controller.wire import Splitter, Writer

_HEARTBEAT_US = 1_000_000
_PATIENCE_US = 3_000_000
_AUTO, _HOLD_SUB = 4, 3
_ODD_US = 20_000
_ENDLESS = 1_000_000
_READY_FLAGS = 0x37F
_NEAR_M = 0.4


@dataclass
class ControllerReport:
    """What the controller reported of itself to the ground station."""

    base_mode: int | None = None
    estimator_flags: int = 0
    home: bool = False
    height_m: float | None = None
    above_sea_m: float | None = None
    highest_m: float = 0.0
    texts: list = field(default_factory=list)

    def frame(self, message):
        match message.get_type():
            case "HEARTBEAT" if message.autopilot == common.MAV_AUTOPILOT_PX4:
                self.base_mode = message.base_mode
            case "ESTIMATOR_STATUS":
                self.estimator_flags = message.flags
            case "HOME_POSITION":
                self.home = True
                self.above_sea_m = message.altitude * 1e-3
            case "GLOBAL_POSITION_INT":
                self.height_m = message.relative_alt * 1e-3
                self.highest_m = max(self.highest_m, self.height_m)
            case "STATUSTEXT":
                self.texts.append(message.text)

    @property
    def armed(self):
        return bool((self.base_mode or 0) & common.MAV_MODE_FLAG_SAFETY_ARMED)

    @property
    def ready(self):
        """PX4 has a position and a home: to arm before that succeeds, and takeoff is then denied."""
        return self.estimator_flags & _READY_FLAGS == _READY_FLAGS and self.home


class Station:
    """``script`` is ``listen``, ``fly``, ``odd`` or ``chatter``; ``system`` tells several apart."""

    def __init__(self, script="listen", *, system=255, height_m=2.5, hover_s=2.0):
        self.writer = Writer(system, 190)
        self.heard = ControllerReport()
        self.came, self.sent, self.events, self.acks = [], [], [], []
        self.garbage = 0
        self.out = []
        self.now_us = self.heartbeat_us = 0
        self.height_m, self.hover_s = height_m, hover_s
        self.script = {"listen": self._listen, "fly": self._fly, "odd": self._odd, "chatter": self._chatter}[script]()
        self.done = False

    def receive(self, now_us, datagram):
        """A datagram; frames may share one."""
        self.now_us = now_us
        splitter = Splitter()
        for frame in splitter.feed(datagram):
            self.came.append(frame.raw)
            message = frame.message()
            if message is not None:
                self.heard.frame(message)
                if message.get_type() == "COMMAND_ACK":
                    self.acks.append((message.command, message.result))
        self.garbage += len(splitter.garbage) + len(splitter.waiting) + len(splitter.corrupt)

    def advance(self, now_us):
        """What is due; returns datagrams of one frame each."""
        self.now_us = now_us
        if now_us >= self.heartbeat_us:
            self.heartbeat_us = now_us + _HEARTBEAT_US
            self._send(self.writer.pack(common.MAVLink_heartbeat_message(common.MAV_TYPE_GCS, common.MAV_AUTOPILOT_INVALID, 0, 0, 4, 3)))
        if not self.done:
            self.done = next(self.script, self) is self
        out, self.out = self.out, []
        return out

    def as_dict(self):
        """What a program writes; bytes as hex."""
        return {
            "done": self.done,
            "sent": [raw.hex() for raw in self.sent],
            "came": [raw.hex() for raw in self.came],
            "garbage_bytes": self.garbage,
            "acks": self.acks,
            "events": self.events,
            "heard": asdict(self.heard),
        }

    def _send(self, raw):
        self.sent.append(raw)
        self.out.append(raw)

    def _note(self, text):
        self.events.append((round(self.now_us * 1e-6, 6), text))

    def _wait(self, seconds):
        end_us = self.now_us + round(seconds * 1e6)
        while self.now_us < end_us:
            yield

    def _until(self, condition):
        while not condition():
            yield

    def _command(self, command, *parameters):
        """A command until it is accepted: again after each refusal, and where no answer came."""
        values = [*parameters, *[0.0] * (7 - len(parameters))]
        attempt = 0
        while True:
            before = len(self.acks)
            self._send(self.writer.pack(common.MAVLink_command_long_message(1, 1, command, attempt % 256, *values)))
            end_us = self.now_us + _PATIENCE_US
            while self.now_us < end_us and all(ack[0] != command for ack in self.acks[before:]):
                yield
            results = [result for number, result in self.acks[before:] if number == command]
            self._note(f"command {command}: {results[0] if results else 'no answer'}")
            if common.MAV_RESULT_ACCEPTED in results:
                return
            attempt += 1
            yield from self._wait(0.5)

    def _listen(self):
        while True:
            yield

    def _fly(self):
        """Hold, arm, up, wait, down: what a person clicks, once the controller is ready."""
        heard = self.heard
        yield from self._until(lambda: heard.ready)
        self._note("ready")
        yield from self._command(common.MAV_CMD_DO_SET_MODE, 1.0, float(_AUTO), float(_HOLD_SUB))
        yield from self._command(common.MAV_CMD_COMPONENT_ARM_DISARM, 1.0)
        yield from self._command(common.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, 0, 0, 0, heard.above_sea_m + self.height_m)
        yield from self._until(lambda: abs(heard.height_m - self.height_m) < _NEAR_M)
        self._note("up")
        yield from self._wait(self.hover_s)
        yield from self._command(common.MAV_CMD_NAV_LAND)
        yield from self._until(lambda: not heard.armed)
        self._note("down")

    def _odd(self, count=6):
        """Once something came: commands, frames of unknown ids, signed frames."""
        yield from self._until(lambda: self.came)
        for raw in odd_frames(self.writer, count):
            self._send(raw)
            yield from self._wait(_ODD_US * 1e-6)

    def _chatter(self):
        """As odd, without an end."""
        yield from self._odd(_ENDLESS)


def odd_frames(writer, count=6):
    """What a bridge must not touch: known, unknown, signed; some end in zeros that are cut off."""
    for number in range(count):
        yield writer.pack(common.MAVLink_command_long_message(1, 1, 512, 0, float(number), 0, 0, 0, 0, 0, 0))
        yield writer.unknown(70_000 + number, bytes(range(number % 200 + 1)) + b"\xfd\x09")
        yield writer.signed(common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3), stamp=number)
