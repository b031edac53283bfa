"""Rules on answers: to TIMESYNC, and unchanged frames of ground stations."""

from collections import deque
from collections.abc import Iterable

from hilsim_flight_controller.mavlink import Message
from hilsim_flight_controller.report import Report
from hilsim_flight_controller.wire import Frame, system_of

_PATIENCE_US = 1_000_000


class Timesync:
    """Rule that answers to the controller's requests (tc1 = 0) have the request's ts1 and the answerer's own time."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.restart()

    def restart(self) -> None:
        """Forget all requests."""
        self.asked: deque[tuple[int, int]] = deque()

    def request(self, now_us: int, stamp_ns: int) -> None:
        """Record a request of the controller, with this stamp."""
        self.asked.append((now_us, stamp_ns))

    def answer(self, now_us: int, message: Message) -> None:
        """Check an answer."""
        known = [entry for entry in self.asked if entry[1] == message.ts1]
        self.report.judge("timesync", bool(known), now_us, "TIMESYNC.ts1", message.ts1, "that of a request")
        for entry in known:
            self.asked.remove(entry)

    def tick(self, now_us: int) -> None:
        """Check for requests without an answer in time."""
        while self.asked and now_us - self.asked[0][0] > _PATIENCE_US:
            _, stamp_ns = self.asked.popleft()
            self.report.judge("timesync", holds=False, now_us=now_us, name=f"answer to TIMESYNC {stamp_ns}", value="none in 1 s", must="one")


class Forwarded:
    """Frames of ground stations: stored, and compared with the sent frames where known."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.came: list[bytes] = []
        self.sent: list[bytes] | None = None

    def expect(self, frames: Iterable[bytes]) -> None:
        """Register ``frames`` that ground stations sent; their order per station is checked."""
        self.sent = [*(self.sent or []), *frames]

    def frame(self, frame: Frame) -> None:
        """Store a received frame."""
        self.came.append(frame.raw)

    def close(self, now_us: int) -> None:
        """Compare; the first differing frame is reported, then the following ones are searched separately."""
        if self.sent is None:
            return
        for system in {system_of(raw) for raw in [*self.sent, *self.came]}:
            self._compare(
                now_us,
                [raw for raw in self.came if system_of(raw) == system],
                deque(raw for raw in self.sent if system_of(raw) == system),
            )

    def _compare(self, now_us: int, came: Iterable[bytes], waiting: deque[bytes]) -> None:
        for raw in came:
            is_expected = raw in waiting
            self.report.judge("forwarded", is_expected, now_us, "forwarded frame", raw.hex(), "one that a ground station sent, whole and in order")
            while is_expected and (first := waiting.popleft()) != raw:
                self._lost(now_us, first)
        for raw in waiting:
            self._lost(now_us, raw)

    def _lost(self, now_us: int, raw: bytes) -> None:
        self.report.judge("forwarded", holds=False, now_us=now_us, name=f"frame {raw.hex()} of a ground station", value="nothing", must="forwarded")
