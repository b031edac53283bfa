"""PCAP streams as a sink: copies of what was sent for clients that come and go, each with bounded memory."""

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hilsim.capture.link import LINK_ETHERNET, Parts, find_datagram
from hilsim.capture.pcap import RECORD_HEADER_SIZE, pcap_records
from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.errors import ConfigError
from hilsim.limits import PACKET_STREAM_BYTES, PACKET_STREAMS
from hilsim.protocols.flow_key import FlowKey


class ClientReading(NamedTuple):
    """Counters of one client.

    Attributes:
        client: Number of the client.
        sent_packets: Packets passed to its connection or waiting for it.
        lost_packets: Packets that found no room, because the client read too slowly.
        waiting_bytes: Bytes that wait for it.
    """

    client: int
    sent_packets: int
    lost_packets: int
    waiting_bytes: int


class StreamClient:
    """Records that wait for one client, of bounded size; one thread puts them, another one takes them.

    Attributes:
        number: Number of the client.
    """

    def __init__(self, number: int, wake: Callable[[], None], most_bytes: int = PACKET_STREAM_BYTES.bound) -> None:
        """Create an empty queue of at most ``most_bytes``; ``wake`` is called, by any thread, when records have come."""
        self.number = number
        self._wake = wake
        self._most_bytes = most_bytes
        self._chunks: deque[memoryview] = deque()
        self._changing = threading.Lock()
        self._waiting_bytes = self._sent = self._lost = self._gap = 0
        self._is_full = False

    def put(self, records: bytes, ends: Sequence[int], missed: int = 0) -> None:
        """Append the records that have room, whole ones and the oldest, and count the others.

        Once one is lost, the following are lost, too, until the client has taken all that waits: what it gets has few gaps, which are long.
        A record without bytes stands in each gap; its original length is the number of lost packets.

        Args:
            records: Records of some packets.
            ends: End of each record, as an offset in ``records``.
            missed: Packets before these that no client can get.
        """
        with self._changing:
            self._gap += missed
            room = 0 if self._is_full and self._chunks else self._most_bytes - self._waiting_bytes
            fitting = int(np.searchsorted(ends, room, side="right"))
            if fitting:
                if self._gap:
                    self._append(memoryview(_gap_record(records, self._gap)))
                    self._gap = 0
                self._append(memoryview(records)[: ends[fitting - 1]])
            self._sent += fitting
            lost = len(ends) - fitting
            self._is_full = lost > 0
            self._lost += lost
            self._gap += lost
        if fitting:
            self._wake()

    def _append(self, chunk: memoryview) -> None:
        self._chunks.append(chunk)
        self._waiting_bytes += len(chunk)

    def take(self) -> memoryview | None:
        """Take the oldest records, or None where none wait."""
        with self._changing:
            if not self._chunks:
                return None
            chunk = self._chunks.popleft()
            self._waiting_bytes -= len(chunk)
            return chunk

    def reading(self) -> ClientReading:
        """Counters of the client."""
        return ClientReading(self.number, self._sent, self._lost, self._waiting_bytes)


class PcapStreams:
    """Sink whose frames become PCAP records once, for all clients.

    Attributes:
        written: Frames given to clients or lost by them; while there is no client, none come.
        target: Text for messages.
        addresses: Addresses in the frames of each flow, by its name.
        lost: Frames lost by clients that read too slowly, those of former clients included.
        sent: Frames given to clients, those of former clients included.
    """

    target = "clients of packets"

    def __init__(self) -> None:
        self.written = 0
        self.addresses: Mapping[str, FlowKey] = {}
        self._flows: dict[int, SinkFlow] = {}
        self._clients: tuple[StreamClient, ...] = ()
        self._changing = threading.Lock()
        self._numbered = 0
        self._former_sent = self._former_lost = 0

    @property
    def clients(self) -> tuple[StreamClient, ...]:
        """Present clients."""
        return self._clients

    @property
    def sent(self) -> int:
        """Frames given to clients so far."""
        return self._former_sent + sum(client.reading().sent_packets for client in self._clients)

    @property
    def lost(self) -> int:
        """Frames lost by slow clients so far."""
        return self._former_lost + sum(client.reading().lost_packets for client in self._clients)

    def add_client(self, wake: Callable[[], None]) -> StreamClient:
        """Add a client, which gets every frame from the next batch on.

        Raises:
            ConfigError: there are too many.
        """
        with self._changing:
            PACKET_STREAMS.enforce(len(self._clients) + 1, "packets", ConfigError)
            self._numbered += 1
            client = StreamClient(self._numbered, wake)
            self._clients = (*self._clients, client)
        return client

    def remove_client(self, client: StreamClient) -> None:
        """Remove a client; what waits for it is lost."""
        with self._changing:
            if client in self._clients:
                self._clients = tuple(other for other in self._clients if other is not client)
                reading = client.reading()
                self._former_sent += reading.sent_packets
                self._former_lost += reading.lost_packets

    def check(self) -> None:
        """Nothing can fail before a client comes."""

    def open(self, flows: Sequence[SinkFlow]) -> None:
        """Nothing is opened before a client comes."""

    def write(self, batch: SentBatch, missed: int = 0) -> None:
        """Put frames into the queue of each client; ``missed`` packets before them are not in any batch."""
        clients = self._clients
        if clients and batch.size.size:
            self._learn(batch)
            records = pcap_records(batch.stamp_ns, batch.frames, batch.size)
            ends = np.cumsum(batch.size.astype(np.int64) + RECORD_HEADER_SIZE).tolist()
            for client in clients:
                client.put(records, ends, missed)
        self.written += batch.size.size

    def close(self) -> None:
        """Nothing to write."""

    def _learn(self, batch: SentBatch) -> None:
        """Read the addresses of flows that were not seen before: a number may have been another flow's."""
        numbers, rows = np.unique(batch.flow, return_index=True)
        for number, row in zip(numbers.tolist(), rows.tolist(), strict=True):
            flow = batch.flows.get(number)
            if flow is None or self._flows.get(number) is flow:
                continue
            self._flows[number] = flow
            if (key := _addresses(batch.frames[row, : batch.size[row]].tobytes())) is not None:
                self.addresses = {**self.addresses, flow.name: key}


def _gap_record(following: bytes, lost: int) -> bytes:
    """Record that stands for lost packets, with the stamp of the following record."""
    return following[:8] + bytes(4) + lost.to_bytes(4, sys.byteorder)


def _addresses(frame: bytes) -> FlowKey | None:
    """Addresses of a frame; None where it is no UDP over IPv4."""
    parts = find_datagram(LINK_ETHERNET, frame)
    return parts.flow if isinstance(parts, Parts) else None
