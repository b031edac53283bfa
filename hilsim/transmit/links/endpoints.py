"""Local ends of links: a serial port, a TCP port that accepts connections, or a UDP port with one peer; each can be closed and reopened."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hilsim.transmit.links.line import NETWORK, Line, SerialSpec
from hilsim.transmit.links.serial_port import OpenPort, open_serial
from hilsim.transmit.links.sockets import accept_connection, listen_tcp, open_udp

if TYPE_CHECKING:
    import socket

_POLL_S = 0.02


class OpenLink(NamedTuple):
    """A link that is open.

    Attributes:
        descriptor: Non-blocking descriptor; the endpoint owns it.
        device: Name of the other end for messages: the port's device, or ``address:port``.
        line: Line that carries the bytes.
    """

    descriptor: int
    device: str
    line: Line


class Endpoint(Protocol):
    """One end of a link, which may be opened and closed repeatedly."""

    async def open(self) -> OpenLink:
        """Open the link; waits for a connection if the peer initiates it.

        Raises:
            LinkError: it cannot be opened now.
        """
        ...

    def close_link(self) -> None:
        """Close the link; it may be opened again."""
        ...

    def close(self) -> None:
        """Close everything."""
        ...


class SerialEndpoint:
    """A serial port.

    Args:
        spec: Specification of the port.
        is_uart: Whether it is a true UART; None to detect it from the device.
    """

    def __init__(self, spec: SerialSpec, *, is_uart: bool | None = None) -> None:
        self._spec = spec
        self._is_uart = is_uart
        self._port: OpenPort | None = None
        self._name: str | None = None

    async def open(self) -> OpenLink:
        """Open the port in a thread, because a driver may be slow.

        Raises:
            LinkError: it cannot be opened now.
        """
        port = await asyncio.to_thread(open_serial, self._spec, is_uart=self._is_uart, name=self._name)
        self._port, self._name = port, port.name
        return OpenLink(port.descriptor, port.device, port.line)

    def close_link(self) -> None:
        """Close the port."""
        if self._port is not None:
            self._port.close()
            self._port = None

    def close(self) -> None:
        """Close the port."""
        self.close_link()


class TcpEndpoint:
    """A TCP port that one peer at a time connects to.

    Raises:
        LinkError: the port cannot be opened.
    """

    def __init__(self, address: str, port: int) -> None:
        self._listener = listen_tcp(address, port)
        self._connection: socket.socket | None = None

    async def open(self) -> OpenLink:
        """Wait for a peer, and accept its connection."""
        while (connection := accept_connection(self._listener)) is None:  # noqa: ASYNC110 - the event loop's own accept sets none of its options
            await asyncio.sleep(_POLL_S)
        self._connection = connection
        host, port = connection.getpeername()
        return OpenLink(connection.fileno(), f"{host}:{port}", NETWORK)

    def close_link(self) -> None:
        """Close the connection; the next peer may connect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection and the port."""
        self.close_link()
        self._listener.close()


class UdpEndpoint:
    """A free UDP port with one peer; datagrams from others are not received."""

    def __init__(self, address: str, port: int) -> None:
        self._peer = address, port
        self._socket: socket.socket | None = None

    async def open(self) -> OpenLink:
        """Bind a port and connect it to the peer.

        Raises:
            LinkError: no port is available.
        """
        self._socket = open_udp(address_towards_peer(self._peer[0]), 0)
        self._socket.connect(self._peer)
        return OpenLink(self._socket.fileno(), f"{self._peer[0]}:{self._peer[1]}", NETWORK)

    def close_link(self) -> None:
        """Close the port."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Close the port."""
        self.close_link()


def address_towards_peer(peer: str) -> str:
    """Local address to bind for datagrams to a peer: loopback for a loopback peer, else any."""
    return "127.0.0.1" if peer.startswith("127.") else "0.0.0.0"  # noqa: S104 - as above
