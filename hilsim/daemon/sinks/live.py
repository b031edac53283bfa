"""Stream of sent packets for clients that come and go: its queue is fed only while there is one."""

import threading
from collections.abc import Callable, Mapping

import structlog

from hilsim.capture.sinks.pcap_streams import PcapStreams, StreamClient
from hilsim.daemon.sinks.sent_queue import ROWS, SentQueue
from hilsim.protocols.ethernet import Framing
from hilsim.protocols.flow_key import FlowKey
from hilsim.telemetry.readings import PacketStreamReading, StreamLoss
from hilsim.transmit.loop import FollowingState
from hilsim.transmit.transmitter import Transmitter

log = structlog.get_logger("hilsim")

_INTERVAL_S = 0.05
_LONGEST_END_S = 1.0


class LivePackets:
    """Thread that passes sent packets to clients; it sleeps, and the sending loop copies nothing, while there is none."""

    def __init__(self, queue: int) -> None:
        """Create the only consumer of the transmitter's ``queue``; nothing is opened before ``open``."""
        self._sent = SentQueue(queue)
        self._streams = PcapStreams()
        self._missed = 0
        self._wanted = threading.Event()
        self._changing = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def addresses(self) -> Mapping[str, FlowKey]:
        """Addresses in the frames of each flow of which clients have got packets, by name."""
        return self._streams.addresses

    def add_flow(self, number: int, name: str, framing: Framing, stack: str = "") -> None:
        """Add a flow, before its first datagram is sent (``SentQueue.add_flow``)."""
        self._sent.add_flow(number, name, framing, stack)

    def open(self, transmitter: Transmitter) -> None:
        """Load the kernel."""
        self._sent.open(transmitter)

    def start(self, *, utc_offset_ns: int) -> None:
        """Start the thread; ``utc_offset_ns`` is UTC minus CLOCK_MONOTONIC."""
        self._sent.utc_offset_ns = utc_offset_ns
        self._thread = threading.Thread(target=self._run, name="sink-packets", daemon=True)
        self._thread.start()

    def connect(self, wake: Callable[[], None]) -> StreamClient:
        """Add a client; ``wake`` is called by the thread when packets wait for it.

        Raises:
            ConfigError: there are too many clients.
        """
        with self._changing:
            client = self._streams.add_client(wake)
            self._wanted.set()
        log.info("packets.followed", client=client.number)
        return client

    def disconnect(self, client: StreamClient) -> None:
        """Remove a client."""
        with self._changing:
            self._streams.remove_client(client)
            if not self._streams.clients and not self._ending.is_set():
                self._wanted.clear()
        log.info("packets.left", client=client.number, packets=client.reading().sent_packets, lost_packets=client.reading().lost_packets)

    def end(self) -> None:
        """Begin to stop, after the transmitter has stopped."""
        self._ending.set()
        self._wanted.set()

    def stop(self) -> None:
        """Wait for the end of the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_LONGEST_END_S)

    def reading(self) -> PacketStreamReading:
        """Values for the metrics; wait-free."""
        return PacketStreamReading(
            clients=tuple(client.reading() for client in self._streams.clients),
            sent_packets=self._streams.sent,
            lost_packets={StreamLoss.SLOW_CLIENT: self._streams.lost, StreamLoss.QUEUE_FULL: self._sent.missed},
        )

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._wanted.wait()
                self._sent.select(FollowingState.ON)
                while self._wanted.is_set() and not self._ending.wait(_INTERVAL_S):
                    self._write_waiting()
                self._sent.select(FollowingState.OFF)
                self._write_waiting()
        except Exception:  # the top of a thread: the stream ends, and the packets go on
            log.exception("packets.broke")
            self._sent.select(FollowingState.OFF)

    def _write_waiting(self) -> None:
        count = ROWS
        while count == ROWS:
            batch = self._sent.take()
            count = batch.size.size
            if count:
                missed, self._missed = self._sent.missed - self._missed, self._sent.missed
                self._streams.write(batch, missed)
