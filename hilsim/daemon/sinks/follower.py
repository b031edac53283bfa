"""A sink with its own queue and thread: an ordinary thread takes copies of sent packets from the queue and passes them to the sink.

The thread may hold the GIL, wait for a disk or a network, and fail, without any effect on the sending loop and the other sinks. Packets that do not fit
into the queue are counted.
"""

import threading
import time
from contextlib import suppress

import numpy as np
import structlog

from hilsim.daemon.sinks.framing import Links, allocate_links, frame_waiting
from hilsim.errors import HilsimError
from hilsim.protocols.ethernet import HEADER_SIZE, Framing
from hilsim.sinks.base import SentBatch, Sink, SinkFlow
from hilsim.telemetry.readings import RecordingReading
from hilsim.transmit.loop import FollowingState
from hilsim.transmit.transmitter import Transmitter

log = structlog.get_logger("hilsim")

_INTERVAL_S = 0.05
_LONGEST_END_S = 5.0
"""Longest wait for a sink at the end; one that keeps up takes some 50 ms."""

_QUEUE_S = 2.0
_FEWEST_SLOTS, _MOST_SLOTS = 4096, 65536
_ROWS = 256
"""Number of frames made at a time. Their 330 kB fit into the CPU's cache: a VLP-16 packet into a PCAP file takes 3.0 us of CPU, with 1024 frames 4.7 us."""


def queue_slots(packet_rate_hz: float) -> int:
    """Number of slots for the packets of two seconds, for which a sink may pause; at most 65,536 (82 MB)."""
    return min(max(round(_QUEUE_S * packet_rate_hz), _FEWEST_SLOTS), _MOST_SLOTS)


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
        self._queue = queue
        self._transmitter: Transmitter | None = None
        self._framings: dict[int, Framing] = {}
        self._flows: dict[int, SinkFlow] = {}
        self._links: Links = allocate_links({}, None)
        self._changing = threading.Lock()
        self._ending = threading.Event()
        self._end_by_s = 0.0
        self._thread: threading.Thread | None = None
        self._utc_offset_ns = 0
        self._lost = 0
        self._has_warned = False

    def add_flow(self, number: int, name: str, framing: Framing) -> None:
        """Add a flow, before its first datagram is sent.

        Args:
            number: ``Transmitter.flow_number``; for a reused number the count of frames restarts.
            name: Name of the flow.
            framing: Headers to put before each datagram (``PAYLOAD_ONLY``: the datagrams are frames).
        """
        with self._changing:
            self._framings[number] = framing
            self._flows = {**self._flows, number: SinkFlow(number=number, name=name)}  # a former batch keeps the former dictionary
            self._links = allocate_links(self._framings, self._links)
            self._links.framed[number] = 0

    def open(self, transmitter: Transmitter) -> None:
        """Open the sink and load the kernel.

        Raises:
            HilsimError: the sink cannot be opened.
        """
        self._transmitter = transmitter
        self._packets = transmitter.queue(self._queue)
        capacity = HEADER_SIZE + self._packets.payload.shape[1]
        self._sent_ns, self._deadline_ns, self._flow = (np.zeros(_ROWS, np.int64) for _ in range(3))
        self._size, self._frames = np.zeros(_ROWS, np.int32), np.zeros((_ROWS, capacity), np.uint8)
        self._take()
        self.sink.open(tuple(self._flows.values()))

    def start(self, *, utc_offset_ns: int) -> None:
        """Start the thread; ``utc_offset_ns`` is UTC minus CLOCK_MONOTONIC."""
        self._utc_offset_ns = utc_offset_ns
        self._thread = threading.Thread(target=self._run, name=f"sink-{self.name}", daemon=True)
        self._opened().set_following(self._queue, FollowingState.ON)
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
        return self._opened().missed(self._queue) + self._lost

    def _opened(self) -> Transmitter:
        if self._transmitter is None:
            raise AssertionError("a follower is opened before it is used")
        return self._transmitter

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

    def _take(self) -> SentBatch:
        """Take the oldest frames from the queue, with the flows at the time of their sending."""
        with self._changing:
            count = int(frame_waiting(self._packets, self._links, self._sent_ns, self._deadline_ns, self._flow, self._frames, self._size))
            flows = self._flows
        return SentBatch(
            self._sent_ns[:count] + self._utc_offset_ns,
            self._deadline_ns[:count] + self._utc_offset_ns,
            self._flow[:count],
            self._frames[:count],
            self._size[:count],
            flows,
        )

    def _write_waiting(self) -> None:
        count = _ROWS
        while count == _ROWS:
            batch = self._take()
            count, before = batch.size.size, self.sink.written
            if count == 0:
                break
            try:
                self.sink.write(batch)
            finally:
                self._lost += count - (self.sink.written - before)  # 0 unless the sink failed
        missed = self._opened().missed(self._queue)
        if not self._has_warned and missed > 0:
            self._has_warned = True
            log.warning("recording.packets_missed", packets=missed, reason="the sink is slower than the stream", sink=self.name)

    def _fail(self, reason: str) -> None:
        try:
            self._opened().set_following(self._queue, FollowingState.ENDED)
            while (count := self._take().size.size) > 0:
                self._lost += count
            with suppress(HilsimError, OSError):
                self.sink.close()
        finally:
            self.fault = reason
            log.error("recording.ended", reason=reason, packets=self.sink.written, unrecorded_packets=self._missed(), sink=self.name)
