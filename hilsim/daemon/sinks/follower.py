"""A sink with its own queue and thread: an ordinary thread takes copies of sent packets from the queue and passes them to the sink.

The thread may hold the GIL, wait for a disk or a network, and fail, without any effect on the sending loop and the other sinks. Packets that do not fit
into the queue are counted.
"""

import threading
import time
from contextlib import suppress

import structlog

from hilsim.capture.sinks.base import Sink
from hilsim.daemon.sinks.sent_queue import ROWS, SentQueue
from hilsim.errors import HilsimError
from hilsim.protocols.ethernet import Framing
from hilsim.telemetry.readings import RecordingReading
from hilsim.transmit.loop import FollowingState
from hilsim.transmit.transmitter import Transmitter

log = structlog.get_logger("hilsim")

_INTERVAL_S = 0.05
_LONGEST_END_S = 5.0
"""Longest wait for a sink at the end; one that keeps up takes some 50 ms."""

_QUEUE_S = 2.0
_MIN_SLOTS, _MAX_SLOTS = 4096, 65536


def queue_slots(packet_rate_hz: float) -> int:
    """Number of slots for the packets of two seconds, for which a sink may pause; at most 65,536 (82 MB)."""
    return min(max(round(_QUEUE_S * packet_rate_hz), _MIN_SLOTS), _MAX_SLOTS)


class Follower:
    """Thread that passes packets that a transmitter sends to a sink until it is stopped or the sink fails.

    Attributes:
        name: Name of the sink for logs and metrics.
        sink: The sink.
        fault: Reason of an early end, else empty.
    """

    def __init__(self, name: str, sink: Sink, queue: int) -> None:
        """Create a follower that is the only consumer of the transmitter's ``queue``; nothing is opened before ``open``."""
        self.name = name
        self.sink = sink
        self.fault = ""
        self._sent = SentQueue(queue)
        self._ending = threading.Event()
        self._end_by_s = 0.0
        self._thread: threading.Thread | None = None
        self._lost = 0
        self._has_warned = False

    def add_flow(self, number: int, name: str, framing: Framing, stack: str = "") -> None:
        """Add a flow, before its first datagram is sent (``SentQueue.add_flow``)."""
        self._sent.add_flow(number, name, framing, stack)

    def open(self, transmitter: Transmitter) -> None:
        """Open the sink and load the kernel.

        Raises:
            HilsimError: the sink cannot be opened.
        """
        self._sent.open(transmitter)
        self.sink.open(self._sent.flows)

    def start(self, *, utc_offset_ns: int) -> None:
        """Start the thread; ``utc_offset_ns`` is UTC minus CLOCK_MONOTONIC."""
        self._sent.utc_offset_ns = utc_offset_ns
        self._thread = threading.Thread(target=self._run, name=f"sink-{self.name}", daemon=True)
        self._sent.select(FollowingState.ON)
        self._thread.start()
        log.info("recording.started", file=self.sink.target, sink=self.name)

    def end(self) -> None:
        """Begin to stop, after the transmitter has stopped; the packets still on the queue are written."""
        self._end_by_s = time.monotonic() + _LONGEST_END_S
        self._ending.set()

    def stop(self) -> None:
        """Wait for the end of the thread. A sink that hangs is abandoned 5 s after ``end``."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(max(self._end_by_s - time.monotonic(), 0.0))
            if thread.is_alive():
                self.fault = f"{self.sink.target}: the sink took nothing for {_LONGEST_END_S:g} s"
                log.error("recording.ended", reason=self.fault, packets=self.sink.written, sink=self.name)
                return
        with suppress(HilsimError, OSError):  # all frames have been written before
            self.sink.close()

    def reading(self) -> RecordingReading:
        """Values for the metrics; wait-free."""
        return RecordingReading(running=not self.fault, recorded_packets=self.sink.written, unrecorded_packets=self._missed())

    def _missed(self) -> int:
        return self._sent.missed + self._lost

    def _run(self) -> None:
        try:
            while not self._ending.wait(_INTERVAL_S):
                self._write_waiting()
            self._write_waiting()
            self.sink.close()
        except (HilsimError, OSError) as error:
            self._fail(str(error))
        except Exception as error:  # the top of a thread: every error that ends a sink must be reported
            log.exception("recording.broke", file=self.sink.target, sink=self.name)
            self._fail(f"an error of this program: {type(error).__name__}: {error}")
        else:
            log.info("recording.ended", file=self.sink.target, packets=self.sink.written, unrecorded_packets=self._missed(), sink=self.name)

    def _write_waiting(self) -> None:
        count = ROWS
        while count == ROWS:
            batch = self._sent.take()
            count, before = batch.size.size, self.sink.written
            if count == 0:
                break
            try:
                self.sink.write(batch)
            finally:
                self._lost += count - (self.sink.written - before)  # 0 unless the sink failed
        missed = self._sent.missed
        if not self._has_warned and missed > 0:
            self._has_warned = True
            log.warning("recording.packets_missed", packets=missed, reason="the sink is slower than the stream", sink=self.name)

    def _fail(self, reason: str) -> None:
        try:
            self._sent.select(FollowingState.ENDED)
            while (count := self._sent.take().size.size) > 0:
                self._lost += count
            with suppress(HilsimError, OSError):
                self.sink.close()
        finally:
            self.fault = reason
            log.error("recording.ended", reason=reason, packets=self.sink.written, unrecorded_packets=self._missed(), sink=self.name)
