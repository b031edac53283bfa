"""MAVLink 1 and 2 frames in a stream of bytes: found, checked and cut out, never changed; in kernels, without the GIL.

======  =======  ==================================================================================
MAVLink 1        (8 bytes and the payload)
-----------------------------------------------------------------------------------------------------
offset  size     field
======  =======  ==================================================================================
0       1        0xFE
1       1        payload length n
2       1        sequence
3       1        system
4       1        component
5       1        message id
6       n        payload
6 + n   2        CRC, low byte first
======  =======  ==================================================================================

======  =======  ==================================================================================
MAVLink 2        (12 bytes and the payload, 13 more when signed)
-----------------------------------------------------------------------------------------------------
offset  size     field
======  =======  ==================================================================================
0       1        0xFD
1       1        payload length n
2       1        incompatibility flags: bit 0 signed; a frame with any other is of unknown length
3       1        compatibility flags
4       1        sequence
5       1        system
6       1        component
7       3        message id, low byte first
10      n        payload, its trailing zero bytes cut off
10 + n  2        CRC, low byte first
12 + n  13       signature, not looked into
======  =======  ==================================================================================

The CRC is CRC-16/MCRF4XX over all after the first byte, then the message's extra byte. Source: https://mavlink.io/en/guide/serialization.html.

Which bytes are a frame:

- *checked*: the CRC holds with the extra byte of the message of that id; behind a signature, which the CRC does not cover, the next byte also begins a
  frame or has not come yet.
- *unchecked*: the id is not in our table, or the sender has another idea of that message (PX4 and ground stations are often years apart). The extra
  byte is then solved for: one CRC in 256 has a solution. If it has, and the next byte begins a frame or has not come yet, the frame is passed on
  unchanged, for the receiver to check; nothing in hilsim reads its payload.
- All else is stepped over, one byte at a time, so that a frame behind a damaged one is found.

The limit of this: one damaged frame or piece of noise in 256 is passed on as unchecked (receivers check the CRC themselves), and a sound frame that is
signed or of an unknown message is lost when noise follows it at once.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import kernel
from hilsim.errors import require
from hilsim.protocols.mavlink.crc_extras import EXTRA_BY_ID, UNKNOWN

MAVLINK_1 = 0xFE
MAVLINK_2 = 0xFD
HEADER_1_SIZE = 6
HEADER_2_SIZE = 10
CRC_SIZE = 2
SIGNATURE_SIZE = 13
SIGNED = 0x01
LARGEST_FRAME = HEADER_2_SIZE + 255 + CRC_SIZE + SIGNATURE_SIZE
"""280 bytes."""

_CRC_SEED = 0xFFFF
_SMALLEST_BUFFER = 2 * LARGEST_FRAME


class FrameState(IntEnum):
    """Result of ``next_frame``."""

    NONE = 0
    CHECKED = 1
    UNCHECKED = 2


_NONE = int(FrameState.NONE)
_CHECKED = int(FrameState.CHECKED)
_UNCHECKED = int(FrameState.UNCHECKED)


class StreamCount(IntEnum):
    """Columns of ``ByteStream.counts``."""

    CHECKED = 0
    UNCHECKED = 1
    BAD = 2
    SKIPPED_BYTES = 3
    ABANDONED = 4


class Frame(NamedTuple):
    """One frame, by its place in the buffer it was found in.

    Attributes:
        state: A ``FrameState``; with NONE everything else is 0.
        start: Index of its first byte.
        size: Bytes, with header, CRC and signature.
        id: Message id.
        system: Id of the system that sent it.
        component: Id of the component that sent it.
        sequence: The sender's count, 0 to 255.
    """

    state: int
    start: int
    size: int
    id: int
    system: int
    component: int
    sequence: int


class ByteStream(NamedTuple):
    """Bytes of a stream that came and are not used up yet.

    Attributes:
        buffer: ``uint8[C]``.
        place: ``int64[8]``: column 0 the first byte not used up, column 1 one past the last that came.
        counts: ``int64[n]``, columns by ``StreamCount``: frames passed on, starts whose CRC did not hold (in noise there are some by chance), bytes that
            belong to no frame, starts given up by ``abandon``; they only grow.
    """

    buffer: npt.NDArray[np.uint8]
    place: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def allocate_stream(capacity: int = 1 << 14) -> ByteStream:
    """An empty stream.

    Raises:
        ValueError: two frames of the largest size do not fit.
    """
    require((_SMALLEST_BUFFER <= capacity <= 1 << 20, f"capacity must be {_SMALLEST_BUFFER} to {1 << 20} bytes, got {capacity}"))
    return ByteStream(np.zeros(capacity, np.uint8), np.zeros(8, np.int64), shared_words(StreamCount))


@kernel
def _byte(data: npt.NDArray[np.uint8], at: int) -> int:
    return int(np.int64(data[at]))  # of a uint8, Python's sums and shifts would not leave a byte


@kernel
def crc_with(crc: int, byte: int) -> int:
    """CRC-16/MCRF4XX after one byte more."""
    mixed = (byte ^ crc) & 0xFF
    mixed = (mixed ^ (mixed << 4)) & 0xFF
    return ((crc >> 8) ^ (mixed << 8) ^ (mixed << 3) ^ (mixed >> 4)) & 0xFFFF


@kernel
def crc_of(data: npt.NDArray[np.uint8], begin: int, end: int) -> int:
    """CRC-16/MCRF4XX of ``data[begin:end]``."""
    crc = _CRC_SEED
    for at in range(begin, end):
        crc = crc_with(crc, _byte(data, at))
    return crc


@kernel
def solved_extra(crc_before: int, crc_read: int) -> int:
    """The extra byte that takes a CRC to what was read, or -1 where none does, as in 255 of 256 random cases."""
    wanted = crc_read ^ (crc_before >> 8)
    high = wanted >> 8
    mixed = high ^ (high >> 5)
    if ((mixed << 3) ^ (mixed >> 4)) & 0xFF != wanted & 0xFF:
        return -1
    return (mixed ^ (mixed << 4) ^ crc_before) & 0xFF


@kernel
def extra_of(message_id: int) -> int:
    """The extra byte of a message, -1 where the table has none."""
    return int(EXTRA_BY_ID[message_id]) if message_id < EXTRA_BY_ID.size else UNKNOWN


@kernel
def claimed_size(data: npt.NDArray[np.uint8], begin: int, end: int) -> int:
    """Bytes of the frame that begins at ``begin``, by its header; 0 when none does, -1 when the header is not whole yet."""
    first = data[begin]
    if first == MAVLINK_1:
        return HEADER_1_SIZE + _byte(data, begin + 1) + CRC_SIZE if end - begin >= 2 else -1
    if first != MAVLINK_2:
        return 0
    if end - begin < 3:
        return -1
    flags = _byte(data, begin + 2)
    if flags & ~SIGNED:
        return 0
    return HEADER_2_SIZE + _byte(data, begin + 1) + CRC_SIZE + (SIGNATURE_SIZE if flags & SIGNED else 0)


@kernel
def _whole_frame(data: npt.NDArray[np.uint8], begin: int, size: int, end: int) -> Frame:
    """The frame of that size at ``begin``, all of which is there; its state is NONE when it is none."""
    is_2 = data[begin] == MAVLINK_2
    header_size = HEADER_2_SIZE if is_2 else HEADER_1_SIZE
    check_at = begin + header_size + _byte(data, begin + 1)
    message_id = _byte(data, begin + 7) | _byte(data, begin + 8) << 8 | _byte(data, begin + 9) << 16 if is_2 else _byte(data, begin + 5)
    crc = crc_of(data, begin + 1, check_at)
    read = _byte(data, check_at) | _byte(data, check_at + 1) << 8
    extra = extra_of(message_id)
    follows = begin + size
    is_in_company = follows == end or data[follows] == MAVLINK_1 or data[follows] == MAVLINK_2
    is_signed = size > header_size + _byte(data, begin + 1) + CRC_SIZE
    state = _NONE
    if extra != UNKNOWN and crc_with(crc, extra) == read and (is_in_company or not is_signed):
        state = _CHECKED
    elif is_in_company and solved_extra(crc, read) >= 0:
        state = _UNCHECKED
    names_at = begin + (4 if is_2 else 2)
    return Frame(state, begin, size, message_id, _byte(data, names_at + 1), _byte(data, names_at + 2), _byte(data, names_at))


@kernel
def next_frame(stream: ByteStream) -> Frame:
    """Use up the stream to the end of its next whole frame, which stays in the buffer until ``make_room``; NONE when no more is whole."""
    data, place, counts = stream
    end = place[1]
    while place[0] < end:
        begin = place[0]
        size = claimed_size(data, begin, end)
        if size < 0 or (size > 0 and begin + size > end):
            break
        if size > 0:
            frame = _whole_frame(data, begin, size, end)
            if frame.state != _NONE:
                counts[StreamCount.CHECKED if frame.state == _CHECKED else StreamCount.UNCHECKED] += 1
                place[0] = begin + size
                return frame
            counts[StreamCount.BAD] += 1
        counts[StreamCount.SKIPPED_BYTES] += 1
        place[0] = begin + 1
    return Frame(0, 0, 0, 0, 0, 0, 0)


@kernel
def pending(stream: ByteStream) -> int:
    """Bytes received and not consumed: after ``next_frame`` returned NONE, those of an incomplete frame."""
    return int(stream.place[1] - stream.place[0])


@kernel
def make_room(stream: ByteStream) -> int:
    """Move what is not used up to the buffer's front; returns how many bytes may be written from ``place[1]`` on. Frames found before are gone."""
    data, place, _ = stream
    waiting = place[1] - place[0]
    if place[0] > 0:
        for at in range(waiting):
            data[at] = data[place[0] + at]
        place[0] = 0
        place[1] = waiting
    return int(data.size - waiting)


@kernel
def append(stream: ByteStream, data: npt.NDArray[np.uint8]) -> int:
    """Copy ``uint8[n]`` behind what came before; returns how many bytes had room. Frames found before are gone."""
    count = min(make_room(stream), data.size)
    at = stream.place[1]
    for i in range(count):
        stream.buffer[at + i] = data[i]
    stream.place[1] = at + count
    return count


@kernel
def abandon(stream: ByteStream) -> bool:
    """Give up a frame that began and was not finished, when the line has been silent; what came behind its first byte is then looked at anew.

    Without it the half of a frame that was cut off by an unplugged cable would swallow the first frames after the pause.

    Returns:
        False when nothing was pending.
    """
    if stream.place[1] <= stream.place[0]:
        return False
    stream.place[0] += 1
    stream.counts[StreamCount.SKIPPED_BYTES] += 1
    stream.counts[StreamCount.ABANDONED] += 1
    return True


@kernel
def clear(stream: ByteStream) -> None:
    """Throw away what is pending, as when the port was opened anew; counted as skipped."""
    stream.counts[StreamCount.SKIPPED_BYTES] += stream.place[1] - stream.place[0]
    stream.place[0] = 0
    stream.place[1] = 0


@kernel
def split(stream: ByteStream, found: npt.NDArray[np.int64]) -> int:
    """Write start, size and id of the next frames into ``int64[m, 3]``; returns how many; less than ``m`` means that no more is whole."""
    count = 0
    while count < found.shape[0]:
        frame = next_frame(stream)
        if frame.state == _NONE:
            break
        found[count, 0] = frame.start
        found[count, 1] = frame.size
        found[count, 2] = frame.id
        count += 1
    return count
