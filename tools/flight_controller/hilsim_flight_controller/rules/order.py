"""Rules on the order of frames: start, HIL flag, lockstep, numbering."""

from hilsim_flight_controller.mavlink import Message, common
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.rules.situation import Situation
from hilsim_flight_controller.wire import Frame

SENSORS = {common.MAVLINK_MSG_ID_HIL_SENSOR, common.MAVLINK_MSG_ID_HIL_GPS}
_HEARTBEAT_SIZE = 9
_SILENCE_US = 200_000
_AFTER_SILENCE_US = 1_000_000
"""Delay by which a busy host may run the simulator later than the controller; only then does it discard frames queued for a silent controller."""

_UNDER_WAY = 50
"""Number of frames that may be in transit when the controller answers for the first time: until then a simulator cannot withhold them, because PX4 does not boot unless time advances."""


class Order:
    """Rules on the simulator's own frames."""

    def __init__(self, report: Report, situation: Situation) -> None:
        self.report, self.situation = report, situation
        self.next_sequence: dict[tuple[int, int], int] = {}
        self.last_us: dict[tuple[int, int], int] = {}
        self.late: set[tuple[int, int]] = set()
        self.excused_until_us: dict[tuple[int, int], int] = {}
        self.unanswered = False
        self.forgiven = _UNDER_WAY

    def frame(self, now_us: int, frame: Frame, message: Message) -> None:
        """Check a frame; ``message`` is None if the dialect does not know it."""
        self._numbering(now_us, frame)
        if frame.identity == common.MAVLINK_MSG_ID_HEARTBEAT:
            self._heartbeat(now_us, frame, message)
        if frame.identity in SENSORS:
            self._permission(now_us, message.get_type())
        if frame.identity == common.MAVLINK_MSG_ID_HIL_SENSOR and self.situation.lockstep:
            self._turn(now_us)
        if frame.identity == common.MAVLINK_MSG_ID_HIL_STATE_QUATERNION:
            allowed = not self.situation.serial and self.situation.quaternion_wanted
            self.report.judge(
                "quaternion", allowed, now_us, "HIL_STATE_QUATERNION", "one", "absent: on a serial line PX4 takes it for its own estimate"
            )

    def answered(self) -> None:
        """Record that the controller has sent its HIL_ACTUATOR_CONTROLS."""
        self.unanswered = False
        self.forgiven = min(self.forgiven, _UNDER_WAY - 1)

    def _numbering(self, now_us: int, frame: Frame) -> None:
        want = self.next_sequence.get(frame.source, frame.sequence)
        # A simulator discards frames queued for a controller that is silent for 0.2 s, and a full socket drops later ones.
        if now_us - self.last_us.get(frame.source, now_us) >= _SILENCE_US:
            self.excused_until_us[frame.source] = now_us + _AFTER_SILENCE_US
        is_excused = self.situation.held_up or frame.source in self.late or now_us < self.excused_until_us.get(frame.source, 0)
        (self.late.add if self.situation.held_up else self.late.discard)(frame.source)
        self.report.judge("sequence", frame.sequence == want or is_excused, now_us, f"sequence of {frame.source}", frame.sequence, f"{want}")
        self.next_sequence[frame.source] = (frame.sequence + 1) % 256
        self.last_us[frame.source] = now_us

    def _heartbeat(self, now_us: int, frame: Frame, message: Message) -> None:
        right = (
            frame.version == 2
            and frame.payload_size == _HEARTBEAT_SIZE
            and message.type == common.MAV_TYPE_GENERIC
            and message.autopilot == common.MAV_AUTOPILOT_INVALID
        )
        got = f"version {frame.version}, {frame.payload_size} bytes, type {message.type}, autopilot {message.autopilot}"
        self.report.judge("heartbeat", right, now_us, "HEARTBEAT", got, f"version 2, {_HEARTBEAT_SIZE} bytes, type 0, autopilot 8")

    def _permission(self, now_us: int, name: str) -> None:
        situation = self.situation
        if now_us < situation.forgiven_until_us:
            return
        if situation.serial:
            self.report.judge(
                "before_heartbeat", situation.spoken_us is not None, now_us, name, "one", "absent before the controller's first HEARTBEAT"
            )
            if situation.spoken_us is not None:
                self.report.judge("hil_flag", situation.hil, now_us, name, "one", "absent while HEARTBEAT.base_mode lacks bit 32")

    def _turn(self, now_us: int) -> None:
        if 0 < self.forgiven < _UNDER_WAY:
            self.forgiven -= 1
        if self.forgiven == 0:
            self.report.judge(
                "lockstep", not self.unanswered, now_us, "HIL_SENSOR", "a second one", "held until HIL_ACTUATOR_CONTROLS has answered the first"
            )
        self.unanswered = True
