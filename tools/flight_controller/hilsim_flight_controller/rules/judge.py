"""All rules together, applied to each frame and its time."""

from hilsim_flight_controller.mavlink import Message, common
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.rules.answers import Forwarded, Timesync
from hilsim_flight_controller.rules.gps import GpsRules
from hilsim_flight_controller.rules.order import Order
from hilsim_flight_controller.rules.situation import Situation
from hilsim_flight_controller.rules.timing import Timing
from hilsim_flight_controller.rules.units import Units
from hilsim_flight_controller.wire import Frame, Splitter

_SHELL = b"\r\r\r"


class Judge:
    """Checks the simulator's frames. ``ground_systems`` are those of ground stations, whose frames are only passed on."""

    def __init__(self, report: Report, situation: Situation, ground_systems: frozenset[int] = frozenset({255})) -> None:
        self.report, self.situation = report, situation
        self.ground_systems = ground_systems
        self.order = Order(report, situation)
        self.timing = Timing(report, situation)
        self.units = Units(report, situation)
        self.gps = GpsRules(report, situation)
        self.timesync = Timesync(report)
        self.forwarded = Forwarded(report)

    def restart(self) -> None:
        """Reset all rules that depend on earlier frames after a restart of the controller."""
        self.timing.restart()
        self.units.restart()
        self.gps.restart()
        self.timesync.restart()
        self.order.next_sequence.clear()

    def stream(self, now_us: int, splitter: Splitter) -> None:
        """Check the bytes from which the splitter could not make frames."""
        if splitter.garbage:
            some = bytes(splitter.garbage)
            self.report.judge(
                "garbage", holds=False, now_us=now_us, name="bytes between frames", value=f"{len(some)}: {some[:16].hex()}", must="none"
            )
            self.report.judge("shell", _SHELL not in some, now_us, "bytes between frames", some[:16].hex(), "without three carriage returns")
            splitter.garbage.clear()
        for raw in splitter.corrupt:
            self.report.judge("checksum", holds=False, now_us=now_us, name=f"checksum of a frame of {len(raw)} bytes", value=raw.hex(), must="right")
        splitter.corrupt.clear()

    def frame(self, now_us: int, frame: Frame, message: Message) -> bool:
        """Check a frame; ``message`` is None if the dialect does not know it. Returns whether it is the simulator's own."""
        for rule in ("garbage", "shell", "checksum"):
            self.report.judged[rule] += 1
        name = message.get_type() if message is not None else f"id {frame.identity}"
        self.report.received[name] += 1
        if frame.system in self.ground_systems:
            self.forwarded.frame(frame)
            return False
        self.order.frame(now_us, frame, message)
        match frame.identity:
            case common.MAVLINK_MSG_ID_HIL_SENSOR:
                self.timing.sensor(now_us, message)
                self.units.sensor(now_us, message)
            case common.MAVLINK_MSG_ID_HIL_GPS:
                self.timing.gps(now_us, message)
                self.gps.gps(now_us, message)
            case common.MAVLINK_MSG_ID_TIMESYNC if message.tc1 != 0:
                self.timesync.answer(now_us, message)
        return True

    def tick(self, now_us: int) -> None:
        """Check for missing frames."""
        self.timing.tick(now_us)
        self.timesync.tick(now_us)

    def close(self, now_us: int) -> None:
        """Final checks that need the whole flight."""
        self.forwarded.close(now_us)
        self.measure()

    def measure(self) -> None:
        """Add figures of the frames so far to the report."""
        intervals = sorted(self.timing.intervals_us)
        if intervals:
            for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)):
                self.report.figures[f"sensor_interval_{name}_us"] = intervals[min(int(share * len(intervals)), len(intervals) - 1)]
            self.report.figures["sensor_frames"] = len(intervals) + 1
