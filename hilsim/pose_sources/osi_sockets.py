"""OSI messages from the network: a datagram each (UDP), or each behind its length of four bytes, little-endian (TCP)."""

import socket
from collections.abc import Iterator

from hilsim.errors import CaptureError, LinkError
from hilsim.limits import OSI_MESSAGE_BYTES
from hilsim.pose_sources.osi_traces import OsiMessage
from hilsim.protocols.osi import MessageType

_LARGEST_DATAGRAM = 65_536
_LENGTH_BYTES = 4


def datagrams(listening: socket.socket, kind: MessageType) -> Iterator[OsiMessage]:
    """Yield the messages of a UDP socket until it is closed or its time-out passes without one."""
    name = _name(listening)
    number = 0
    while True:
        try:
            content = listening.recv(_LARGEST_DATAGRAM)
        except TimeoutError:
            return
        except OSError:
            if listening.fileno() == -1:
                return
            raise
        yield OsiMessage(content, kind, f"{name}: message {number}")
        number += 1


def stream_messages(connected: socket.socket, kind: MessageType) -> Iterator[OsiMessage]:
    """Yield the messages of a TCP connection until the other side closes it.

    Raises:
        CaptureError: a message is longer than the limit.
        LinkError: the connection breaks or ends within a message.
    """
    name = _name(connected)
    number = 0
    while length := _receive(connected, _LENGTH_BYTES, f"{name}: length of message {number}"):
        where = f"{name}: message {number}"
        size = int.from_bytes(length, "little")
        OSI_MESSAGE_BYTES.enforce(size, where, CaptureError)
        content = _receive(connected, size, where) if size else b""
        if size and not content:
            raise LinkError(f"{where}: must have {size} bytes, got 0 before the end of the connection")
        yield OsiMessage(content, kind, where)
        number += 1


def _receive(connected: socket.socket, size: int, where: str) -> bytes:
    """So many bytes; none if the connection ends before the first."""
    found = bytearray()
    while len(found) < size:
        try:
            part = connected.recv(min(size - len(found), 1 << 20))
        except OSError as error:
            raise LinkError(f"{where}: connection must not break, got {error}") from error
        if not part:
            if found:
                raise LinkError(f"{where}: must have {size} bytes, got {len(found)} before the end of the connection")
            return b""
        found += part
    return bytes(found)


def _name(of: socket.socket) -> str:
    host, port = of.getsockname()[:2]
    return f"{host}:{port}"
