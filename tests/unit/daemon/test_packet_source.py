"""Packets at a client: bytes of a capture, from lines or from messages of a WebSocket, until either end closes."""

import socket
import threading

import pytest

from hilsim.daemon.control.packet_source import PacketSource, take_message

SIZES = [0, 1, 125, 126, 65_535, 65_536, 200_000]


def message(content, kind=2):
    size = len(content)
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big") if size < 1 << 16 else b"\x7f" + size.to_bytes(8, "big")
    return bytes([0x80 | kind]) + length + content


@pytest.fixture
def ends():
    """Makes a source, and the daemon's end of its connection."""
    sockets = socket.socketpair()

    def make(received=b"", *, has_messages):
        return sockets[0], PacketSource(sockets[1], {}, received, has_messages=has_messages)

    yield make
    for each in sockets:
        each.close()


def all_of(source):
    found = b""
    while (piece := source.read(5.0)) != b"":
        found += piece or b""
    return found


@pytest.mark.parametrize("size", SIZES)
def test_a_message_is_taken_when_it_has_arrived_as_a_whole(size):
    content = bytes(range(256)) * (size // 256 + 1)
    whole = message(content[:size])
    received = bytearray(whole + b"more")
    assert (take_message(received), received) == ((2, content[:size]), b"more")
    for missing in (1, 2, size // 2 + 1, len(whole)):
        part = bytearray(whole[: max(len(whole) - missing, 0)])
        assert (take_message(part), len(part)) == (None, max(len(whole) - missing, 0))


def test_the_contents_of_messages_are_the_capture_and_a_closing_message_ends_it(ends):
    daemon, source = ends(message(b"first ")[:3], has_messages=True)
    assert source.read(0.01) is None
    for byte in message(b"first ")[3:] + message(b"", 9) + message(b"second"):
        daemon.send(bytes([byte]))
    daemon.send(message(b"\x03\xe9", 8) + b"rest")
    assert all_of(source) == b"first second"


@pytest.mark.parametrize("has_messages", [False, True])
def test_a_capture_ends_with_its_connection(ends, has_messages):
    daemon, source = ends(b"begin " if not has_messages else message(b"begin "), has_messages=has_messages)
    daemon.send(message(b"end") if has_messages else b"end")
    daemon.close()
    assert all_of(source) == b"begin end"


def test_another_thread_may_close(ends):
    _, source = ends(has_messages=True)
    threading.Timer(0.05, source.close).start()
    assert source.read(30.0) == b""
    source.close()
    assert source.read(1.0) == b""
