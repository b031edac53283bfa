"""Packets that a daemon sends, as they arrive at a client: the bytes of a capture, which a WebSocket carries in messages."""

import select
import socket
import time
from contextlib import suppress
from typing import Any, Self

_PIECE_BYTES = 1 << 18
_BINARY, _CLOSE = 2, 8
_LENGTH_BYTES = {126: 2, 127: 8}


class PacketSource:
    """Connection over which packets come; one thread reads, any thread may close.

    Attributes:
        answer: Answer of the daemon.
    """

    def __init__(self, connection: socket.socket, answer: dict[str, Any], received: bytes, *, has_messages: bool) -> None:
        """Create a source.

        Args:
            connection: Connection, which the source closes.
            answer: Answer of the daemon.
            received: Bytes that were received behind the answer.
            has_messages: Whether the bytes are messages of a WebSocket.
        """
        self.answer = answer
        self._connection = connection
        self._received = bytearray(received)
        self._has_messages = has_messages
        self._has_ended = False
        connection.settimeout(None)

    def read(self, timeout_s: float) -> bytes | None:
        """Wait for bytes of the capture; returns None if none came in time, and no bytes at the end of the connection."""
        until_s = time.monotonic() + timeout_s
        while not (found := self._taken()) and not self._has_ended:
            try:
                waiting = select.poll()
                waiting.register(self._connection, select.POLLIN)
                if not waiting.poll(max(until_s - time.monotonic(), 0.0) * 1e3):
                    return None
                piece = self._connection.recv(_PIECE_BYTES)
            except (OSError, ValueError):  # closed, by the daemon or another thread
                piece = b""
            self._received += piece
            self._has_ended |= not piece
        return found

    def _taken(self) -> bytes:
        """Received bytes of the capture."""
        if not self._has_messages:
            found = bytes(self._received)
            self._received.clear()
            return found
        pieces = []
        while (message := take_message(self._received)) is not None:
            self._has_ended |= message[0] == _CLOSE
            pieces.append(message[1] if message[0] == _BINARY else b"")
        return b"".join(pieces)

    def close(self) -> None:
        """End the connection; closing again does nothing."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def __enter__(self) -> Self:
        """Nothing more to open."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the connection."""
        self.close()


def take_message(received: bytearray) -> tuple[int, bytes] | None:
    """Take the first message of a server from received bytes (RFC 6455, 5.2; a server masks none, and the daemon divides none).

    Returns:
        Kind (opcode) and content; None if it has not arrived as a whole.
    """
    length = received[1] & 0x7F if len(received) > 1 else 0
    begin = 2 + _LENGTH_BYTES.get(length, 0)
    if len(received) < begin:
        return None
    if length in _LENGTH_BYTES:
        length = int.from_bytes(received[2:begin], "big")
    if len(received) < begin + length:
        return None
    message = received[0] & 0x0F, bytes(received[begin : begin + length])
    del received[: begin + length]
    return message
