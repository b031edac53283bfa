"""Ground stations on UDP and TCP: frames to and from them, with a bounded queue for each peer in each direction.

A *station* is one of hilsim's ports; a *peer* is a program connected to it. A UDP station has one peer at a fixed address, or learns up to ``most_peers`` from
datagrams that contain a frame and removes silent ones; a TCP station has one peer per connection. When a peer's queue is full, its oldest frame
is dropped and counted; no peer can delay another.

Sockets are non-blocking and served by the event loop's readiness callbacks, not by asyncio-dgram or asyncio's streams, whose queues are unbounded.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import IPv4Address

import numpy as np

from hilsim.errors import require, within
from hilsim.protocols.mavlink.frames import ByteStream, split

_FRAMES_A_CALL = 256


class Protocol(StrEnum):
    """Transport of a ground station."""

    UDP = "udp"
    TCP = "tcp"


@dataclass(frozen=True, kw_only=True)
class StationSpec:
    """One port for ground stations.

    Attributes:
        name: Name in logs and metrics.
        protocol: UDP, or TCP where ground stations connect to hilsim.
        address: hilsim's own address.
        port: hilsim's own port; 0 for any free one.
        remote: UDP: address of the ground station, such as ``("127.0.0.1", 14550)``; None to learn peers from received datagrams.
        truth: Whether it receives the vehicle's true state from hilsim.
        withhold: Message ids that are not forwarded to it: 93 (HIL_ACTUATOR_CONTROLS) is most of a HIL controller's traffic.
        most_peers: Maximum number of programs connected at once.
        queue_frames: Maximum number of queued frames per peer and direction.
        silence_s: Time after which a silent learned peer is removed.
    """

    name: str
    protocol: Protocol = Protocol.UDP
    address: str = "127.0.0.1"
    port: int = 0
    remote: tuple[str, int] | None = None
    withhold: tuple[int, ...] = ()
    truth: bool = False
    most_peers: int = 8
    queue_frames: int = 256
    silence_s: float = 30.0

    def __post_init__(self) -> None:
        require(
            *within(self, port=(0, 65_535), most_peers=(1, 64), queue_frames=(1, 4096)),
            (bool(self.name), 'name must not be empty, got ""'),
            (_is_address(self.address), f'address must be an IPv4 address, got "{self.address}"'),
            (self.remote is None or self.protocol is Protocol.UDP, f"remote must be left out for tcp, got {self.remote}"),
            (
                self.remote is None or (_is_address(self.remote[0]) and 1 <= self.remote[1] <= 65535),
                f"remote must be an IPv4 address and a port from 1 to 65535, got {self.remote}",
            ),
            (self.remote is not None or self.port > 0 or self.protocol is Protocol.TCP, "port must be above 0 where no remote is given, got 0"),
            (all(0 <= each < 1 << 24 for each in self.withhold), f"withhold must be message ids, got {self.withhold}"),
            (self.silence_s > 0, f"silence_s must be positive, got {self.silence_s:g}"),
        )


@dataclass(kw_only=True)
class StationCounters:
    """Counters of a station; all but ``peers`` only increase.

    Attributes:
        name: Name of the station.
        peers: Number of connected programs.
        frames_to_station: Frames sent.
        dropped_to_station: Frames dropped because a peer was too slow.
        refused: Frames rejected by the network: no listener, or no route.
        frames_from_station: Whole frames received.
        dropped_from_station: Received frames dropped because the link was too slow.
        skipped_bytes: Received bytes that belong to no frame.
        strangers: Rejected datagrams and connections of unknown programs.
    """

    name: str
    peers: int = 0
    frames_to_station: int = 0
    dropped_to_station: int = 0
    refused: int = 0
    frames_from_station: int = 0
    dropped_from_station: int = 0
    skipped_bytes: int = 0
    strangers: int = 0


@dataclass(kw_only=True, eq=False)
class Peer:
    """A program connected to a station.

    Attributes:
        outgoing: Frames queued for it.
        incoming: Frames received from it.
        rest: TCP: unsent remainder of a frame.
        received_s: UDP: time of its latest datagram by the event loop's clock.
        connection: TCP: socket of the connection.
        stream: TCP: received bytes of an incomplete frame.
        half_frame: TCP: timer for the remainder of a frame.
    """

    outgoing: deque[bytes] = field(default_factory=deque)
    incoming: deque[bytes] = field(default_factory=deque)
    rest: bytes = b""
    received_s: float = 0.0
    connection: socket.socket | None = None
    stream: ByteStream | None = None
    half_frame: asyncio.TimerHandle | None = None


class StationPort:
    """Common part of UDP and TCP stations: counters, and splitting received bytes into frames."""

    def __init__(self, spec: StationSpec, arrived: Callable[[], None]) -> None:
        self.spec = spec
        self.counters = StationCounters(name=spec.name)
        self.arrived = arrived
        self.loop = asyncio.get_running_loop()
        self.timer: asyncio.TimerHandle | None = None
        self._found = np.zeros((_FRAMES_A_CALL, 3), np.int64)

    def reading(self) -> StationCounters:
        """A copy of the counters."""
        return replace(self.counters)

    def frames_in(self, stream: ByteStream) -> list[bytes]:
        """Copies of the stream's next whole frames."""
        frames: list[bytes] = []
        while True:
            count = split(stream, self._found)
            frames += [stream.buffer[start : start + size].tobytes() for start, size, _ in self._found[:count].tolist()]
            if count < len(self._found):
                return frames

    def keep_incoming(self, peer: Peer, frames: list[bytes]) -> None:
        """Queue data received from a peer, and count it."""
        self.counters.frames_from_station += len(frames)
        peer.incoming.extend(frames)
        if frames:
            self.arrived()

    def keep_outgoing(self, peer: Peer, frame: bytes) -> None:
        """Queue a frame for a peer; when its queue is full, drop the oldest one."""
        if len(peer.outgoing) >= self.spec.queue_frames:
            peer.outgoing.popleft()
            self.counters.dropped_to_station += 1
        peer.outgoing.append(frame)

    def count_sent(self) -> None:
        """Count a frame accepted by the network."""
        self.counters.frames_to_station += 1


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
