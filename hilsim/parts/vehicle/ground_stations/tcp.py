"""A TCP port that ground stations connect to."""

import contextlib
import socket
from collections.abc import Callable

import numpy as np

from hilsim.parts.vehicle.ground_stations.endpoints import Peer, StationPort, StationSpec
from hilsim.protocols.mavlink.frames import ByteStream, StreamCount, abandon, allocate_stream, append, pending
from hilsim.transmit.links.sockets import accept_connection, listen_tcp

_CHUNK = 8192
_SEND_BUFFER = 65536  # for a slow station, buffered data are outdated when they are read
_GIVE_UP_MS = 10_000
_HALF_FRAME_S = 0.5  # a frame incomplete after this time is discarded


class TcpStation(StationPort):
    """A TCP port that ground stations connect to."""

    def __init__(self, spec: StationSpec, arrived: Callable[[], None]) -> None:
        """Open the port and serve it on the running event loop until ``close``.

        Raises:
            LinkError: the port cannot be opened.
        """
        super().__init__(spec, arrived)
        self._listener = listen_tcp(spec.address, spec.port)
        self.peers: list[Peer] = []
        self.loop.add_reader(self._listener, self._accept)

    @property
    def port(self) -> int:
        """Port of hilsim itself."""
        return int(self._listener.getsockname()[1])

    def deliver(self, frame: bytes) -> None:
        """Send a frame to every peer; queue it for those whose socket is full."""
        for peer in list(self.peers):
            is_idle = not peer.outgoing and not peer.rest
            self.keep_outgoing(peer, frame)
            if is_idle:
                self._write(peer)

    def resume(self) -> None:
        """Resume reading from peers that sent more than the link can carry."""
        for peer in self.peers:
            if len(peer.incoming) < self.spec.queue_frames // 2:
                self._listen_to(peer)

    def close(self) -> None:
        """Close the port and all connections."""
        self.loop.remove_reader(self._listener)
        self._listener.close()
        for peer in list(self.peers):
            self._drop(peer)

    def _accept(self) -> None:
        connection = accept_connection(self._listener)
        if connection is None:
            return  # it has disconnected
        if len(self.peers) >= self.spec.most_peers:
            self.counters.strangers += 1
            connection.close()
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _GIVE_UP_MS)
        peer = Peer(connection=connection, stream=allocate_stream(2 * _CHUNK))
        self.peers.append(peer)
        self.counters.peers = len(self.peers)
        self._listen_to(peer)

    def _listen_to(self, peer: Peer) -> None:
        """Read available bytes; discard an incomplete frame after the timeout."""
        self.loop.add_reader(_connection(peer), self._read, peer)
        self._await_rest(peer)

    def _await_rest(self, peer: Peer) -> None:
        if peer.half_frame is None and peer.stream is not None and pending(peer.stream) > 0:
            # A timer, not the time since the last chunk: the event loop reads sockets before it runs timers, so its own pauses do not count as a peer's silence.
            peer.half_frame = self.loop.call_later(_HALF_FRAME_S, self._give_up_half_frame, peer, peer.stream)

    def _ignore(self, peer: Peer) -> None:
        self.loop.remove_reader(_connection(peer))
        self._stop_timer(peer)

    def _stop_timer(self, peer: Peer) -> None:
        if peer.half_frame is not None:
            peer.half_frame.cancel()
            peer.half_frame = None

    def _give_up_half_frame(self, peer: Peer, stream: ByteStream) -> None:
        peer.half_frame = None
        skipped = int(stream.counts[StreamCount.SKIPPED_BYTES])
        while pending(stream) > 0 and abandon(stream):
            self.keep_incoming(peer, self.frames_in(stream))
        self.counters.skipped_bytes += int(stream.counts[StreamCount.SKIPPED_BYTES]) - skipped

    def _write(self, peer: Peer) -> None:
        connection = _connection(peer)
        try:
            while peer.rest or peer.outgoing:
                if not peer.rest:
                    peer.rest = peer.outgoing.popleft()
                    self.count_sent()
                peer.rest = peer.rest[connection.send(peer.rest) :]
        except BlockingIOError:
            self.loop.add_writer(connection, self._write, peer)
            return
        except OSError:
            self._drop(peer)
            return
        self.loop.remove_writer(connection)

    def _read(self, peer: Peer) -> None:
        connection, stream = _connection(peer), peer.stream
        try:
            chunk = connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk or stream is None:
            self._drop(peer)
            return
        self._stop_timer(peer)
        skipped = int(stream.counts[StreamCount.SKIPPED_BYTES])
        append(stream, np.frombuffer(chunk, np.uint8))
        self.keep_incoming(peer, self.frames_in(stream))
        self.counters.skipped_bytes += int(stream.counts[StreamCount.SKIPPED_BYTES]) - skipped
        if len(peer.incoming) >= self.spec.queue_frames // 2:
            self._ignore(peer)  # TCP flow control makes the peer wait
        else:
            self._await_rest(peer)

    def _drop(self, peer: Peer) -> None:
        connection = _connection(peer)
        self._ignore(peer)
        self.loop.remove_writer(connection)
        with contextlib.suppress(OSError):
            connection.close()
        self.peers.remove(peer)
        self.counters.dropped_from_station += len(peer.incoming)
        self.counters.peers = len(self.peers)


def _connection(peer: Peer) -> socket.socket:
    if peer.connection is None:
        raise TypeError("a peer of a TCP station must have a connection")
    return peer.connection
