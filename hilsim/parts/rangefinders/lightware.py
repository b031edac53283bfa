"""LightWare's binary serial protocol (LWNX): frames, their checksum, and finding them in a stream of bytes.

======  ====  ===========================================================================================
offset  size  field
======  ====  ===========================================================================================
0       1     start AA
1       2     flags, little-endian: bit 0 write, bits 6 to 15 length of the payload (command and data)
3       1     command
4       n     data, little-endian
4+n     2     CRC-16/XMODEM (polynomial 1021, initially 0) of all bytes before, little-endian
======  ====  ===========================================================================================

Source: LightWare's published description of the protocol (repository LightWare-Optoelectronics/LW20-docs, ``serial.md``): a correctly formed request
is always answered; where length or checksum are wrong, the search goes on behind the false start byte.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel

START = 0xAA
OVERHEAD_SIZE = 6
"""Bytes of a frame that are not data."""
LONGEST_PAYLOAD = 131
"""Longest payload of a request: the command and 130 bytes of firmware. A longer one is a false start byte, and must not swallow the requests after it."""
PATIENCE_NS = 100_000_000
"""An unfinished frame that nothing follows for so long is given up. Chosen: no driver pauses within a frame."""

_POLYNOMIAL = 0x1021


class Request(NamedTuple):
    """Contents of a frame.

    Attributes:
        command: Number of the command.
        write: Whether data is to be set, not asked for.
        data: Bytes after the command.
    """

    command: int
    write: bool
    data: bytes


@kernel
def crc16(data: npt.NDArray[np.uint8]) -> int:
    """CRC-16/XMODEM of ``uint8[n]``."""
    crc = 0
    for byte in data:
        crc ^= int(byte) << 8
        for _ in range(8):
            crc = (crc << 1 ^ _POLYNOMIAL) & 0xFFFF if crc & 0x8000 else crc << 1
    return crc


def encode_frames(command: int, data: npt.NDArray[np.uint8], *, write: bool) -> npt.NDArray[np.uint8]:
    """``uint8[n, m + 6]``: frames of one command with ``uint8[n, m]`` data."""
    count, size = data.shape
    frames = np.empty((count, size + OVERHEAD_SIZE), np.uint8)
    flags = (size + 1) << 6 | int(write)
    frames[:, 0] = START
    frames[:, 1] = flags & 0xFF
    frames[:, 2] = flags >> 8
    frames[:, 3] = command
    frames[:, 4:-2] = data
    for frame in frames:
        crc = crc16(frame[:-2])
        frame[-2] = crc & 0xFF
        frame[-1] = crc >> 8
    return frames


def encode_frame(command: int, data: bytes, *, write: bool) -> bytes:
    """One frame."""
    return encode_frames(command, np.frombuffer(data, np.uint8)[np.newaxis], write=write).tobytes()


class FrameFinder:
    """Finds frames in bytes that arrive in any portions."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._arrived_ns = 0

    def feed(self, data: bytes, time_ns: int) -> list[Request]:
        """Every request that is complete with these bytes, which arrived at ``time_ns``; what is no frame is passed over."""
        if time_ns - self._arrived_ns > PATIENCE_NS:
            self._waiting.clear()
        self._arrived_ns = time_ns
        self._waiting += data
        found = []
        while (size := self._frame_size()) is not None:
            request = self._take(size)
            if request is not None:
                found.append(request)
        return found

    def _frame_size(self) -> int | None:
        """Size of the frame at the front; None where more bytes are needed."""
        waiting = self._waiting
        while True:
            start = waiting.find(START)
            del waiting[: len(waiting) if start < 0 else start]
            if len(waiting) < 3:
                return None
            payload = int.from_bytes(waiting[1:3], "little") >> 6
            if 1 <= payload <= LONGEST_PAYLOAD:
                size = payload + OVERHEAD_SIZE - 1
                return size if len(waiting) >= size else None
            del waiting[0]

    def _take(self, size: int) -> Request | None:
        frame = bytes(self._waiting[:size])
        if crc16(np.frombuffer(frame[:-2], np.uint8)) != int.from_bytes(frame[-2:], "little"):
            del self._waiting[0]
            return None
        del self._waiting[:size]
        return Request(frame[3], bool(frame[1] & 1), frame[4:-2])
