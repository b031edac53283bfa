"""Frames as the network stack of a sensor sends them: one IPv4 identification counts the datagrams of all its flows, and large datagrams are fragments.

A Velodyne's data packets come from a hardware template, so its frames stay as they are. An Ouster sends through the IPv4 stack of an operating system:
its lidar packets are larger than Ethernet's 1500 bytes, and lidar and IMU packets share a counter (measured on public captures of firmware 2.4 to 3.1).
Fragments as in RFC 791; all fragments of a datagram have its stamp.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.sinks.base import SentBatch
from hilsim.compilation.jit import constant, kernel
from hilsim.protocols.ethernet import HEADER_SIZE

ETHERNET_SIZE, IP_SIZE = 14, 20
FRAGMENT_BYTES = 1480
"""Bytes of IPv4 data in a fragment: Ethernet's 1500 without the header."""
LARGEST_FRAGMENT = ETHERNET_SIZE + IP_SIZE + FRAGMENT_BYTES
_LINK, _IP, _DATA, _STEP = (constant(size) for size in (ETHERNET_SIZE, IP_SIZE, ETHERNET_SIZE + IP_SIZE, FRAGMENT_BYTES))
_MORE_FRAGMENTS, _FLAGS_DONT_FRAGMENT = constant(0x2000), constant(0x40)
_NO_STACK = -1


class StackFrames(NamedTuple):
    """Frames of datagrams on the wire.

    Attributes:
        stamp_ns: ``int64[m]``, UTC, in the order of the datagrams.
        frames: ``uint8[m, capacity]``.
        size: ``int32[m]``, bytes of each frame.
        first: ``int64[n + 1]``, the first frame of each datagram, and m.
    """

    stamp_ns: npt.NDArray[np.int64]
    frames: npt.NDArray[np.uint8]
    size: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]


@kernel
def _put(value: int, frame: npt.NDArray[np.uint8], at: int) -> None:
    frame[at] = (value >> 8) & 0xFF
    frame[at + 1] = value & 0xFF


@kernel
def write_ip_header(frame: npt.NDArray[np.uint8], size: int, identification: int, fragment_field: int) -> None:
    """Overwrite length, identification, fragment field and checksum of the IPv4 header of a frame.

    Args:
        frame: ``uint8[>= 34]``, with the headers of Ethernet and IPv4.
        size: Bytes of the frame.
        identification: IPv4 identification, taken modulo 65,536.
        fragment_field: Flags, and offset in units of 8 bytes.
    """
    _put(size - _LINK, frame, _LINK + 2)
    _put(identification, frame, _LINK + 4)
    _put(fragment_field, frame, _LINK + 6)
    _put(0, frame, _LINK + 10)
    total = 0
    for at in range(_LINK, _DATA, 2):
        total += (int(frame[at]) << 8) | int(frame[at + 1])
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    _put(0xFFFF ^ total, frame, _LINK + 10)


@kernel
def send_through_stack(
    datagrams: npt.NDArray[np.uint8],
    datagram_size: npt.NDArray[np.int32],
    stack: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    frames: npt.NDArray[np.uint8],
    size: npt.NDArray[np.int32],
) -> None:
    """Number datagrams by the counter of their network stack, and cut those that may be fragmented and are too large for Ethernet.

    Args:
        datagrams: ``uint8[n, capacity]``, whole Ethernet frames of UDP over IPv4 without options.
        datagram_size: ``int32[n]``, bytes of each.
        stack: ``int64[n]``, index of each one's counter in ``counts``; -1 for frames that stay as they are.
        counts: ``int64[c]``, datagrams of each network stack so far, incremented.
        first: ``int64[n + 1]``, the first frame of each datagram (``frame_counts``).
        frames: ``uint8[m, capacity]``, output: frames.
        size: ``int32[m]``, output: bytes of each frame.
    """
    for row in range(datagram_size.size):
        begin, number, used = first[row], stack[row], datagram_size[row]
        if number < 0:
            for at in range(used):
                frames[begin, at] = datagrams[row, at]
            size[begin] = used
            continue
        counts[number] += 1
        pieces = first[row + 1] - begin
        for piece in range(pieces):
            offset = piece * _STEP
            length = used - _DATA - offset if piece == pieces - 1 else _STEP
            for at in range(_DATA):
                frames[begin + piece, at] = datagrams[row, at]
            for at in range(length):
                frames[begin + piece, _DATA + at] = datagrams[row, _DATA + offset + at]
            flags = (int(datagrams[row, _LINK + 6]) & _FLAGS_DONT_FRAGMENT) << 8
            more = _MORE_FRAGMENTS if piece < pieces - 1 else 0
            size[begin + piece] = _DATA + length
            write_ip_header(frames[begin + piece], _DATA + length, counts[number], flags | more | offset // 8)


def frame_counts(frames: npt.NDArray[np.uint8], size: npt.NDArray[np.int32], stack: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Frames that each datagram becomes: ``int64[n]`` of ``uint8[n, capacity]``, ``int32[n]`` and ``int64[n]`` as in ``send_through_stack``."""
    is_cut = (stack >= 0) & (size > LARGEST_FRAGMENT) & ((frames[:, ETHERNET_SIZE + 6] & 0x40) == 0)
    pieces = -(-(size.astype(np.int64) - ETHERNET_SIZE - IP_SIZE) // FRAGMENT_BYTES)
    return np.where(is_cut, pieces, 1)


class NetworkStacks:
    """Counters of the network stacks of sensors, by ``SinkFlow.stack``; one sink owns them."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._counts = np.zeros(0, np.int64)

    def send(self, batch: SentBatch) -> StackFrames:
        """Frames of a batch, in its order. The same datagrams in the same order give the same frames, whatever the batches."""
        stack = self._stacks(batch)
        if (stack == _NO_STACK).all():
            return StackFrames(batch.stamp_ns, batch.frames, batch.size, np.arange(batch.size.size + 1))
        counts = frame_counts(batch.frames, batch.size, stack)
        first = np.concatenate(([0], np.cumsum(counts)))
        whole = batch.size[counts == 1]
        capacity = max(LARGEST_FRAGMENT, int(whole.max(initial=HEADER_SIZE)))
        frames, size = np.zeros((int(first[-1]), capacity), np.uint8), np.zeros(int(first[-1]), np.int32)
        send_through_stack(batch.frames, batch.size, stack, self._counts, first, frames, size)
        return StackFrames(np.repeat(batch.stamp_ns, counts), frames, size, first)

    def _stacks(self, batch: SentBatch) -> npt.NDArray[np.int64]:
        """``int64[n]``: index of each datagram's counter, or -1."""
        stack = np.full(batch.size.size, _NO_STACK)
        for number in np.unique(batch.flow).tolist():
            flow = batch.flows.get(number)
            if flow is not None and flow.stack:
                stack[batch.flow == number] = self._number.setdefault(flow.stack, len(self._number))
        self._counts = np.concatenate((self._counts, np.zeros(len(self._number) - self._counts.size, np.int64)))
        return stack
