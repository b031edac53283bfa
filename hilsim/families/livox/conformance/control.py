"""Rules for what a sensor says beside its data: answers to its hosts, and push messages."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.livox.interface.keys import KEYS, SERIAL, WORK_STATE, Work
from hilsim.families.livox.protocol.commands import Command, read_frame, read_pairs
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.units import NS_PER_S

CONTROL = Rule(id="livox.control", severity=Severity.ERROR)
PUSH = Rule(id="livox.push", severity=Severity.ERROR)
KEY = Rule(id="livox.key", severity=Severity.ERROR)
PUSH_NUMBER = Rule(id="livox.push_number", severity=Severity.WARNING, packets=2)
PUSH_PERIOD = Rule(id="livox.push_period", severity=Severity.WARNING, packets=3)
STATE = Rule(id="livox.state", severity=Severity.ERROR)
SERIAL_CHANGED = Rule(id="livox.serial", severity=Severity.ERROR, packets=2)

_HEAD_AT, _DATA_AT = 10, 24
_MAX_OFF_NS = NS_PER_S // 5
_SOON_NS = NS_PER_S // 2
"""Time in which points of before a change of the work state may still come."""


class ControlTopic:
    """Control frames of one sensor, judged one by one.

    Attributes:
        frames: Number of frames.
        pushes: Number of push messages.
        serial: Serial number; None before a push message with one.
        state: Work state that the last one says; None before.
    """

    def __init__(self) -> None:
        self.frames = self.pushes = self._off = self._steps = 0
        self.serial: str | None = None
        self.state: int | None = None
        self._number: int | None = None
        self._host_ns = 0

    def look(self, datagram: CapturedDatagram, log: FindingLog) -> None:
        """Judge a frame."""
        place = Place(self.frames, datagram.frame)
        self.frames += 1
        try:
            frame = read_frame(datagram.payload)
        except ValueError as error:
            log.report(CONTROL, str(error), place)
            return
        is_push = frame.command == Command.PUSH
        if not frame.is_from_sensor or frame.is_answer == is_push:
            rule = "a push message must be a request" if is_push else "a frame of a sensor must be an answer"
            got = f"type {datagram.payload[10]}, sender {datagram.payload[11]}"
            log.report(CONTROL, f"{rule}, and its sender the sensor, got {got}", place.at(_HEAD_AT))
        if is_push:
            self._look_at_push(frame.data, frame.sequence, datagram.host_stamp_ns, place, log)

    def _look_at_push(self, data: bytes, number: int, host_ns: int, place: Place, log: FindingLog) -> None:
        self.pushes += 1
        try:
            pairs = read_pairs(data)
        except ValueError as error:
            log.report(PUSH, f"push message: {error}", place.at(_DATA_AT))
            return
        for key, value in pairs:
            if key not in KEYS or len(value) != KEYS[key].size:
                rule, severity = (f"{KEYS[key].size} bytes", None) if key in KEYS else ("a key that is known", Severity.NOTE)
                log.report(KEY, f"key 0x{key:04x} must be {rule}, got {len(value)} bytes", place.at(_DATA_AT), severity=severity)
        values = dict(pairs)
        if len(values.get(WORK_STATE, b"")) == 1:
            self.state = values[WORK_STATE][0]
            if self.state not in set(Work):
                log.report(STATE, f"work state must be one of {', '.join(map(str, sorted(Work)))}, got {self.state}", place.at(_DATA_AT))
        serial = values.get(SERIAL, b"").split(b"\0")[0].decode("latin-1")
        if serial and self.serial not in {None, serial}:
            log.report(SERIAL_CHANGED, f"serial number must stay {self.serial}, got {serial}", place.at(_DATA_AT))
        self.serial = serial or self.serial
        if self._number is not None:
            if number != self._number + 1:
                log.report(PUSH_NUMBER, f"push messages must be numbered {self._number + 1} next, got {number}", place.at(4))
            else:
                self._steps += 1
                self._off += abs(host_ns - self._host_ns - NS_PER_S) > _MAX_OFF_NS
        self._number, self._host_ns = number, host_ns

    def look_at_data(self, datagram: CapturedDatagram, place: Place, log: FindingLog) -> None:
        """Judge whether a packet of data fits the work state."""
        is_silent = self.state is not None and self.state != Work.SAMPLING
        if is_silent and datagram.host_stamp_ns - self._host_ns in range(_SOON_NS, NS_PER_S):
            log.report(STATE, f"data must be sent in work state {Work.SAMPLING.value} (SAMPLING) alone, got state {self.state}", place)

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if self.pushes and log.applies(PUSH_PERIOD, self.pushes, of="push messages") and self._off > 0.1 * self._steps:
            log.report(PUSH_PERIOD, f"push messages must come once a second, got {self._off} of {self._steps} times more than 0.2 s off")
