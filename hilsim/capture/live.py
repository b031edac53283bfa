"""Datagrams as they arrive, stamped by the kernel.

It uses a plain non-blocking socket watched by the event loop, not asyncio-dgram: arrival times are measured here, so the kernel's own
receive stamp is needed (``SO_TIMESTAMPNS``, an ancillary message that asyncio's datagram transports discard), and asyncio's unbounded
queue would hide a reader that is too slow. Here the kernel's socket buffer is the queue, and its drops are counted.
"""

import asyncio
import errno
import socket
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from itertools import chain
from types import TracebackType
from typing import Self

from hilsim.capture.datagram import CapturedDatagram
from hilsim.errors import CaptureError
from hilsim.units import NS_PER_S

_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; Python's socket module does not name these three
_SO_RXQ_OVFL = 40
_IP_PKTINFO = 8
_TIMESPEC = struct.Struct("@ll")
_LARGEST_PAYLOAD = 65535
_MAX_AT_ONCE = 512
_ALL_NS = 1 << 63
_RECEIVE_BUFFER_SIZE = 4 << 20


@dataclass(kw_only=True)
class Listener:
    """Datagrams received at one address on some ports; an asynchronous context manager and iterator.

    Attributes:
        host: Address to bind: an interface's, ``0.0.0.0`` for all and for broadcasts, or a multicast group.
        ports: UDP ports, usually data and position.
        dropped: Number of datagrams that the kernel dropped because they were not read in time.
    """

    host: str
    ports: Sequence[int]
    dropped: int = 0
    _sockets: list[socket.socket] = field(default_factory=list)
    _dropped_by: dict[int, int] = field(default_factory=dict)
    _count: int = 0

    async def __aenter__(self) -> Self:
        """Open the sockets.

        Raises:
            CaptureError: a port is in use or not permitted, or the address is not this machine's.
        """
        try:
            for port in self.ports:
                self._sockets.append(_open(self.host, port))
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    def bound_ports(self) -> tuple[int, ...]:
        """Ports in use, in the order of ``ports``; they differ where port 0 (any) was requested."""
        return tuple(sock.getsockname()[1] for sock in self._sockets)

    async def batches(self) -> AsyncIterator[list[CapturedDatagram]]:
        """Yield the datagrams received since the last time, in the order of the kernel's stamps, until cancelled or left.

        A reader that lags finds more on one socket than it takes at once; what came later on the others waits for it.
        """
        loop, waiting = asyncio.get_running_loop(), list[CapturedDatagram]()
        arrived = asyncio.Event()
        for sock in self._sockets:
            loop.add_reader(sock, arrived.set)
        try:
            while True:
                await arrived.wait()
                arrived.clear()
                drained = [self._drain(sock) for sock in self._sockets]
                known_ns = min((found[-1].host_stamp_ns for found in drained if len(found) == _MAX_AT_ONCE), default=_ALL_NS)
                waiting = sorted(chain(waiting, *drained), key=lambda datagram: datagram.host_stamp_ns)
                batch = [datagram for datagram in waiting if datagram.host_stamp_ns <= known_ns]
                waiting = waiting[len(batch) :]
                if waiting:
                    arrived.set()
                if batch:
                    yield batch
        finally:
            for sock in self._sockets:
                loop.remove_reader(sock)

    async def __aiter__(self) -> AsyncIterator[CapturedDatagram]:
        async for batch in self.batches():
            for datagram in batch:
                yield datagram

    def _drain(self, sock: socket.socket) -> list[CapturedDatagram]:
        """Datagrams that the kernel holds for one socket, up to a bound that keeps the event loop responsive."""
        drained: list[CapturedDatagram] = []
        bound_address, bound_port = sock.getsockname()[:2]
        with suppress(BlockingIOError):
            while len(drained) < _MAX_AT_ONCE:
                payload, ancillary, _, source = sock.recvmsg(_LARGEST_PAYLOAD, 256)
                stamp_ns, destination = self._ancillary(sock, ancillary)
                self._count += 1
                drained.append(
                    CapturedDatagram(
                        host_stamp_ns=stamp_ns,
                        source=source[0],
                        source_port=source[1],
                        destination=destination or bound_address,
                        destination_port=bound_port,
                        payload=payload,
                        link=None,
                        is_ethernet=False,
                        frame=self._count,
                    )
                )
        return drained

    def _ancillary(self, sock: socket.socket, messages: list[tuple[int, int, bytes]]) -> tuple[int, str | None]:
        stamp_ns = time.time_ns()
        destination = None
        for level, kind, data in messages:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                seconds, nanoseconds = _TIMESPEC.unpack_from(data)
                stamp_ns = seconds * NS_PER_S + nanoseconds
            elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
                self._dropped_by[sock.fileno()] = struct.unpack_from("@I", data)[0]
                self.dropped = sum(self._dropped_by.values())
            elif level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                destination = str(IPv4Address(data[8:12]))
        return stamp_ns, destination


def _open(host: str, port: int) -> socket.socket:
    """Open a bound non-blocking socket. Address reuse stays off: a second reader would silently take the first one's packets."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
        sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_SIZE)
        sock.bind((host, port))
        group = IPv4Address(socket.inet_aton(socket.gethostbyname(host)))
        if group.is_multicast:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group.packed + IPv4Address("0.0.0.0").packed)  # noqa: S104 - the kernel chooses the interface
    except (OSError, OverflowError) as error:
        sock.close()
        raise CaptureError(f"{host}:{port}: cannot listen: {_reason(error)}") from error
    return sock


def _reason(error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return "the port must be 0 to 65535"
    return {
        errno.EADDRINUSE: "the port is in use by another program",
        errno.EADDRNOTAVAIL: "the address is not one of this machine's",
        errno.EACCES: "ports below 1024 need CAP_NET_BIND_SERVICE",
    }.get(error.errno or 0, error.strerror or str(error))
