"""A UDP port for ground stations."""

import socket
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hilsim.parts.vehicle.ground_stations.endpoints import Peer, StationPort, StationSpec
from hilsim.protocols.mavlink.frames import StreamCount, allocate_stream, append, clear
from hilsim.transmit.links.sockets import open_udp

_LARGEST_DATAGRAM = 4096  # the rest of a longer one counts as skipped; ground stations send one frame per datagram, routers fill an Ethernet frame
_DATAGRAMS_A_TURN = 16
_BYTES_A_TURN = 8192  # noise that resembles frames costs 0.2 us a byte (bench_mavlink.py): a turn takes at most 2.5 ms
_FLOOD_PAUSE_S = 0.002


class UdpStation(StationPort):
    """A UDP port for ground stations; every frame is a separate datagram."""

    def __init__(self, spec: StationSpec, arrived: Callable[[], None]) -> None:
        """Open the port and serve it on the running event loop until ``close``.

        Raises:
            LinkError: the port cannot be opened.
        """
        super().__init__(spec, arrived)
        self._socket = open_udp(spec.address, spec.port)
        self._stream = allocate_stream(2 * _LARGEST_DATAGRAM)
        self._datagram = bytearray(_LARGEST_DATAGRAM)
        self._cut_bytes = 0
        self._by_address: dict[tuple[str, int], Peer] = {}
        if spec.remote is not None:
            self._by_address[spec.remote] = Peer()
            self.counters.peers = 1
        self.loop.add_reader(self._socket, self._read)

    @property
    def port(self) -> int:
        """Port of hilsim itself."""
        return int(self._socket.getsockname()[1])

    @property
    def peers(self) -> list[Peer]:
        """Current peers."""
        return list(self._by_address.values())

    def deliver(self, frame: bytes) -> None:
        """Send a frame to every peer; queue it for those that already have queued frames."""
        self._forget_silent()
        for address, peer in self._by_address.items():
            if peer.outgoing:
                self.keep_outgoing(peer, frame)
            elif not self._send(address, frame):
                self.keep_outgoing(peer, frame)
                self.loop.add_writer(self._socket, self._write)

    def close(self) -> None:
        """Close the port."""
        if self.timer is not None:
            self.timer.cancel()
        self.loop.remove_reader(self._socket)
        self.loop.remove_writer(self._socket)
        self._socket.close()

    def _send(self, address: tuple[str, int], frame: bytes) -> bool:
        try:
            self._socket.sendto(frame, address)
        except BlockingIOError:
            return False
        except OSError:
            self.counters.refused += 1
            return True
        self.count_sent()
        return True

    def _write(self) -> None:
        for address, peer in self._by_address.items():
            while peer.outgoing and self._send(address, peer.outgoing[0]):
                peer.outgoing.popleft()
        if not any(peer.outgoing for peer in self._by_address.values()):
            self.loop.remove_writer(self._socket)

    def _read(self) -> None:
        taken_bytes = 0
        for _ in range(_DATAGRAMS_A_TURN):
            try:
                size, address = self._socket.recvfrom_into(self._datagram, 0, socket.MSG_TRUNC)
            except OSError:
                return  # no more data, or the error of an earlier datagram
            kept = min(size, _LARGEST_DATAGRAM)
            self._cut_bytes += size - kept
            self._take(np.frombuffer(self._datagram, np.uint8, kept), address)
            taken_bytes += kept
            if taken_bytes > _BYTES_A_TURN:
                break
        self.loop.remove_reader(self._socket)  # under a flood the kernel drops the excess
        self.timer = self.loop.call_later(_FLOOD_PAUSE_S, self.loop.add_reader, self._socket, self._read)

    def _take(self, datagram: npt.NDArray[np.uint8], address: tuple[str, int]) -> None:
        append(self._stream, datagram)
        frames = self.frames_in(self._stream)
        clear(self._stream)  # a frame does not continue in the next datagram
        self.counters.skipped_bytes = int(self._stream.counts[StreamCount.SKIPPED_BYTES]) + self._cut_bytes
        peer = self._peer_at(address, learns=bool(frames))
        if peer is None:
            self.counters.strangers += 1
            return
        peer.received_s = self.loop.time()
        self.keep_incoming(peer, frames)
        while len(peer.incoming) > self.spec.queue_frames:
            peer.incoming.popleft()
            self.counters.dropped_from_station += 1

    def _peer_at(self, address: tuple[str, int], *, learns: bool) -> Peer | None:
        if self.spec.remote is not None:
            return (
                self._by_address[self.spec.remote] if address[0] == self.spec.remote[0] else None
            )  # it may send from another port than it listens on
        self._forget_silent()
        if address not in self._by_address and learns and len(self._by_address) < self.spec.most_peers:
            self._by_address[address] = Peer()
            self.counters.peers = len(self._by_address)
        return self._by_address.get(address)

    def _forget_silent(self) -> None:
        if self.spec.remote is not None:
            return
        silent_since = self.loop.time() - self.spec.silence_s
        for address in [address for address, peer in self._by_address.items() if peer.received_s < silent_since]:
            self.counters.dropped_from_station += len(self._by_address.pop(address).incoming)
        self.counters.peers = len(self._by_address)
