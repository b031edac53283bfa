"""Consumer of one of the transmitter's queues of sent datagrams, which makes whole Ethernet frames of them."""

import threading

import numpy as np

from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.daemon.sinks.framing import Links, allocate_links, frame_waiting
from hilsim.protocols.ethernet import HEADER_SIZE, Framing
from hilsim.transmit.loop import FollowingState
from hilsim.transmit.transmitter import Transmitter

ROWS = 256
"""Number of frames made at a time. Their 330 kB fit into the CPU's cache: a VLP-16 packet into a PCAP file takes 3.0 us of CPU, with 1024 frames 4.7 us."""


class SentQueue:
    """Copies of sent datagrams as frames, for one consumer.

    Attributes:
        utc_offset_ns: UTC minus CLOCK_MONOTONIC.
    """

    def __init__(self, queue: int) -> None:
        """Create the only consumer of the transmitter's ``queue``; nothing is allocated before ``open``."""
        self.utc_offset_ns = 0
        self._queue = queue
        self._transmitter: Transmitter | None = None
        self._framings: dict[int, Framing] = {}
        self._flows: dict[int, SinkFlow] = {}
        self._links: Links = allocate_links({}, None)
        self._changing = threading.Lock()

    @property
    def flows(self) -> tuple[SinkFlow, ...]:
        """Flows known so far."""
        return tuple(self._flows.values())

    @property
    def missed(self) -> int:
        """Number of datagrams that were sent while the queue was selected and are not on it, or are of a flow that was not added."""
        return self._opened().missed(self._queue) + int(self._links.unknown[0])

    def add_flow(self, number: int, name: str, framing: Framing, stack: str = "") -> None:
        """Add a flow, before its first datagram is sent.

        Args:
            number: ``Transmitter.flow_number``; for a reused number the count of frames restarts.
            name: Name of the flow.
            framing: Headers to put before each datagram (``PAYLOAD_ONLY``: the datagrams are frames).
            stack: ``SinkFlow.stack``.
        """
        with self._changing:
            self._framings[number] = framing
            self._flows = {**self._flows, number: SinkFlow(number=number, name=name, stack=stack)}  # a former batch keeps the former dictionary
            self._links = allocate_links(self._framings, self._links)
            self._links.framed[number] = 0

    def open(self, transmitter: Transmitter) -> None:
        """Allocate the frames and load the kernel."""
        self._transmitter = transmitter
        self._packets = transmitter.queue(self._queue)
        capacity = HEADER_SIZE + self._packets.payload.shape[1]
        self._sent_ns, self._deadline_ns, self._flow = (np.zeros(ROWS, np.int64) for _ in range(3))
        self._size, self._frames = np.zeros(ROWS, np.int32), np.zeros((ROWS, capacity), np.uint8)
        self.take()

    def select(self, state: FollowingState) -> None:
        """Start or stop the copying of sent datagrams onto the queue."""
        self._opened().set_following(self._queue, state)

    def take(self) -> SentBatch:
        """Take the oldest frames from the queue, at most ``ROWS``, with the flows at the time of their sending."""
        with self._changing:
            count = int(frame_waiting(self._packets, self._links, self._sent_ns, self._deadline_ns, self._flow, self._frames, self._size))
            flows = self._flows
        return SentBatch(
            self._sent_ns[:count] + self.utc_offset_ns,
            self._deadline_ns[:count] + self.utc_offset_ns,
            self._flow[:count],
            self._frames[:count],
            self._size[:count],
            flows,
        )

    def _opened(self) -> Transmitter:
        if self._transmitter is None:
            raise AssertionError("a queue is opened before it is used")
        return self._transmitter
