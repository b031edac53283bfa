"""OSI messages from the network: a datagram each (UDP), or each behind its length of four bytes, little-endian (TCP).

esmini splits a message into datagrams of a counter (int32: 1, 2, …; negative in the last one), the size of the data (uint32) and up to 8192 bytes of data,
all little-endian (esmini's OSIReporter.cpp and its example of a receiver). No message begins so: its first byte would be that of a field, and the size fits.
"""

import socket
import struct
from collections.abc import Iterator

from hilsim.errors import CaptureError, LinkError
from hilsim.parts.external.limits import OSI_MESSAGE_BYTES
from hilsim.parts.external.sources.osi_traces import OsiMessage
from hilsim.protocols.osi import MessageType

_LARGEST_DATAGRAM = 65_536
_LENGTH_BYTES = 4
_PART, _LARGEST_PART = struct.Struct("<iI"), 8192
_MAX_PARTS = OSI_MESSAGE_BYTES.bound // _LARGEST_PART


class Parts:
    """Message in parts, as esmini sends it.

    Parts may come in any order, but the first one before the last one. A part that cannot be one more of the message begins another one: a part was lost, and two
    messages must not become one.
    """

    def __init__(self) -> None:
        self._held: dict[int, bytes] = {}
        self._last = 0

    def add(self, counter: int, data: bytes) -> tuple[bytes, str]:
        """Take a part; returns the message that it completes, and a sentence on one that is given up, each empty if there is none."""
        number = abs(counter)
        fault = ""
        is_behind = counter < 0 and max(self._held, default=0) > number
        if number in self._held or is_behind or (self._last and (number == 1 or counter < 0 or number > self._last)):
            fault = self.rest()
        self._held[number] = data
        self._last = number if counter < 0 else self._last
        if not self._last or len(self._held) < self._last:
            return b"", fault
        message = b"".join(self._held[each] for each in sorted(self._held))
        self._held, self._last = {}, 0
        return message, fault

    def rest(self) -> str:
        """Give up what is held; returns a sentence on it, empty if there is nothing."""
        held, last = sorted(self._held), self._last
        self._held, self._last = {}, 0
        return f"parts 1 to {last or 'the last'} of a message must come, got {', '.join(map(str, held))}" if held else ""


def _part(content: bytes) -> tuple[int, bytes] | None:
    """Counter and data of a datagram of a message in parts; None: it is a whole message."""
    if len(content) < _PART.size:
        return None
    counter, size = _PART.unpack_from(content)
    is_size = size == len(content) - _PART.size or (size <= _LARGEST_PART and len(content) == _PART.size + _LARGEST_PART)
    return (counter, content[_PART.size : _PART.size + size]) if is_size and 1 <= abs(counter) <= _MAX_PARTS else None


def datagrams(listening: socket.socket, kind: MessageType) -> Iterator[OsiMessage]:
    """Yield the messages of a UDP socket, each a datagram or in esmini's parts, until it is closed or its time-out passes without one."""
    name = _name(listening)
    number = 0
    parts = Parts()
    while True:
        try:
            content = listening.recv(_LARGEST_DATAGRAM)
        except TimeoutError:
            break
        except OSError:
            if listening.fileno() == -1:
                break
            raise
        part, fault = _part(content), ""
        if part is not None:
            content, fault = parts.add(*part)
        if fault:
            yield OsiMessage(b"", kind, f"{name}: message {number}", fault)
            number += 1
        if content or part is None:
            yield OsiMessage(content, kind, f"{name}: message {number}")
            number += 1
    if fault := parts.rest():
        yield OsiMessage(b"", kind, f"{name}: message {number}", fault)


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
