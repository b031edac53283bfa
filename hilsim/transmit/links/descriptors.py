"""A link's descriptor in the nogil loop: waiting for input, reading into a stream, meaning of a result."""

import contextlib
import errno
import select
import termios
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from hilsim.compilation.jit import kernel
from hilsim.protocols.mavlink.frames import ByteStream, Frame, make_room
from hilsim.transmit.libc import poll_descriptors, read_bytes, write_bytes
from hilsim.transmit.packet_queue import PacketQueue, put
from hilsim.units import NS_PER_S

_EAGAIN = errno.EAGAIN
_EINTR = errno.EINTR
_ECONNREFUSED = errno.ECONNREFUSED
_ENOBUFS = errno.ENOBUFS
_READABLE = select.POLLIN
_BROKEN = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Outcome(IntEnum):
    """Result of reading or writing."""

    DONE = 0
    FULL = 1
    GONE = 2


_DONE = int(Outcome.DONE)
_FULL = int(Outcome.FULL)
_GONE = int(Outcome.GONE)


class Readiness(IntEnum):
    """Result bits of ``await_input``."""

    LINK_READABLE = 1
    LINK_BROKEN = 2
    WOKEN = 4


_LINK_READABLE = int(Readiness.LINK_READABLE)
_LINK_BROKEN = int(Readiness.LINK_BROKEN)
_WOKEN = int(Readiness.WOKEN)


class Waits(NamedTuple):
    """Memory for ``await_input``.

    Attributes:
        words: ``int64[4]``, two ``struct pollfd`` and a ``struct timespec``.
    """

    words: npt.NDArray[np.int64]


def allocate_waits() -> Waits:
    """Allocate the memory of ``await_input`` for one thread."""
    return Waits(np.zeros(4, np.int64))


@kernel
def outcome_of(result: int, is_stream: bool) -> int:  # noqa: FBT001 - a kernel's argument
    """``Outcome`` of a read or write result.

    A read of 0 bytes from a stream is its end. A UDP datagram that is refused (the peer does not listen yet) or finds no room is retried. Any other error (EIO, ENODEV and ENXIO of an
    unplugged device, ECONNRESET and EPIPE of a connection) means that the link is gone and must be reopened.

    Args:
        result: Number of bytes, or -errno.
        is_stream: False for UDP.
    """
    if result > 0 or (result == 0 and not is_stream):
        return _DONE
    if result in {-_EAGAIN, -_EINTR} or (not is_stream and result in {-_ECONNREFUSED, -_ENOBUFS}):
        return _FULL
    return _GONE


@kernel
def receive(stream: ByteStream, descriptor: int, is_stream: bool) -> int:  # noqa: FBT001 - a kernel's argument
    """Read once into a stream whose frames have all been taken; FULL when no bytes are available."""
    room = make_room(stream)
    if room == 0:
        return _DONE
    result = read_bytes(descriptor, stream.buffer.ctypes.data + stream.place[1], room)
    if result > 0:
        stream.place[1] += result
    return outcome_of(result, is_stream)


@kernel
def pass_on(stream: ByteStream, frame: Frame, queue: PacketQueue, now_ns: int) -> bool:
    """Put a received frame onto the packet queue to the ground stations, with ``time_ns`` its arrival and ``flow`` its message id; False when the queue is full."""
    return put(queue, frame.id, now_ns, now_ns, stream.buffer[frame.start : frame.start + frame.size], frame.size)


@kernel
def await_input(waits: Waits, descriptor: int, wake_descriptor: int, timeout_ns: int) -> int:
    """Wait until the link has bytes or is broken, another thread wakes this one, or the timeout expires.

    Args:
        waits: Memory for waiting.
        descriptor: Descriptor of the link, -1 for none.
        wake_descriptor: Eventfd that wakes the thread, -1 for none; the caller reads it empty.
        timeout_ns: Timeout; 0 to return at once.

    Returns:
        ``Readiness`` bits; 0 for a timeout or a signal.
    """
    words = waits.words
    words[0] = (np.int64(descriptor) & 0xFFFFFFFF) | _READABLE << 32
    words[1] = (np.int64(wake_descriptor) & 0xFFFFFFFF) | _READABLE << 32
    words[2] = timeout_ns // NS_PER_S
    words[3] = timeout_ns % NS_PER_S
    if poll_descriptors(words.ctypes.data, 2, words.ctypes.data + 16) <= 0:
        return 0
    found = words[0] >> 48
    ready = _LINK_READABLE if found & _READABLE else 0
    ready |= _LINK_BROKEN if found & _BROKEN else 0
    return ready | (_WOKEN if words[1] >> 48 & _READABLE else 0)


@kernel
def wake(waits: Waits, descriptor: int) -> None:
    """Write 1 to an eventfd, which wakes the thread waiting for it."""
    waits.words[0] = 1
    write_bytes(descriptor, waits.words.ctypes.data, 8)


_tcflush = types.ExternalFunction("tcflush", types.int32(types.int32, types.int32))
_OUTPUT = int(termios.TCOFLUSH)


@kernel
def _discard(descriptor: int) -> None:
    _tcflush(descriptor, _OUTPUT)


def _discard_in_python(descriptor: int) -> None:
    with contextlib.suppress(termios.error):
        termios.tcflush(int(descriptor), termios.TCOFLUSH)


discard_output: Callable[[int], None] = _discard if not numba.config.DISABLE_JIT else _discard_in_python
"""``discard_output(descriptor)``: discard the bytes that a serial port has accepted and not yet sent; no effect on other descriptors."""


@kernel
def clear_wake(waits: Waits, descriptor: int) -> None:
    """Read a non-blocking eventfd empty."""
    read_bytes(descriptor, waits.words.ctypes.data, 8)
