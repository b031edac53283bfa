"""Control frames of a Livox: requests, their answers, and what the sensor pushes unasked; lists of keys and values within.

Layout, little-endian (Livox-SDK2 1.4.3, sdk_core/comm/sdk_protocol.cpp and define.h; Livox wiki, "Mid-360 communication protocol"):

======  ======  ======================================================================================
offset  bytes   field
======  ======  ======================================================================================
0       1       start of frame, 0xAA
1       1       version, 0
2       2       bytes of the whole frame, at most 1400
4       4       sequence number; an answer repeats that of its request
8       2       command
10      1       0 request, 1 answer
11      1       0 from a host, 1 from the sensor
12      6       reserved, 0
18      2       CRC-16/CCITT-FALSE of bytes 0 to 17; of ``123456789`` it is 0x29b1
20      4       CRC-32 of the data; 0 where there is none
24      n       data
======  ======  ======================================================================================

A list of keys and values has for each one its number (2 bytes), the bytes of its value (2), and the value, without padding.
"""

import binascii
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from hilsim.errors import require

HEADER_BYTES = 24
MAX_FRAME_BYTES = 1400
_START, _VERSION = 0xAA, 0
_HEAD = struct.Struct("<BBHIHBB6x")
_CRCS = struct.Struct("<HI")
_COUNT = struct.Struct("<HH")
_KEY = struct.Struct("<HH")


class Command(IntEnum):
    """Commands that a sensor answers, and ``PUSH``, which it sends unasked."""

    SEARCH = 0x0000
    SET = 0x0100
    QUERY = 0x0101
    PUSH = 0x0102
    REBOOT = 0x0200
    FACTORY_RESET = 0x0201
    SET_TIME = 0x0202


class ReturnCode(IntEnum):
    """First byte of an answer."""

    OK = 0x00
    FAILED = 0x01
    NOT_NOW = 0x02
    OUT_OF_RANGE = 0x03
    UNKNOWN_KEY = 0x20
    AFTER_REBOOT = 0x21
    READ_ONLY = 0x22
    BAD_LENGTH = 0x23
    KEY_COUNT = 0x24


@dataclass(frozen=True, kw_only=True)
class ControlFrame:
    """A request, an answer, or a push message.

    Attributes:
        command: Number of the command, known or not.
        sequence: Sequence number.
        data: Data behind the header.
        is_answer: Whether it answers a request.
        is_from_sensor: Whether the sensor sends it.
    """

    command: int
    sequence: int
    data: bytes = b""
    is_answer: bool = False
    is_from_sensor: bool = False

    def __post_init__(self) -> None:
        require(
            (0 <= self.command < 1 << 16, f"command must be 0 to 65535, got {self.command}"),
            (0 <= self.sequence < 1 << 32, f"sequence must be 0 to 4294967295, got {self.sequence}"),
            (len(self.data) <= MAX_FRAME_BYTES - HEADER_BYTES, f"data must be at most {MAX_FRAME_BYTES - HEADER_BYTES} bytes, got {len(self.data)}"),
        )

    def answer(self, data: bytes) -> "ControlFrame":
        """The sensor's answer to this request."""
        return ControlFrame(command=self.command, sequence=self.sequence, data=data, is_answer=True, is_from_sensor=True)


def crc16(head: bytes) -> int:
    """CRC-16/CCITT-FALSE of some bytes."""
    return binascii.crc_hqx(head, 0xFFFF)


def encode_frame(frame: ControlFrame) -> bytes:
    """Bytes of a frame."""
    size = HEADER_BYTES + len(frame.data)
    head = _HEAD.pack(_START, _VERSION, size, frame.sequence, frame.command, frame.is_answer, frame.is_from_sensor)
    return head + _CRCS.pack(crc16(head), zlib.crc32(frame.data)) + frame.data


def read_frame(payload: bytes) -> ControlFrame:
    """The frame that is a datagram's payload.

    Raises:
        ValueError: it is none; the text names the first field that is wrong, and its byte.
    """
    if len(payload) < HEADER_BYTES:
        raise ValueError(f"a control frame must be {HEADER_BYTES} bytes or more, got {len(payload)}")
    start, version, size, sequence, command, kind, sender = _HEAD.unpack_from(payload)
    head_crc, data_crc = _CRCS.unpack_from(payload, _HEAD.size)
    data = payload[HEADER_BYTES:]
    for name, byte, rule, got, fits in (
        ("start of frame", 0, f"0x{_START:02X}", f"0x{start:02X}", start == _START),
        ("version", 1, f"{_VERSION}", f"{version}", version == _VERSION),
        ("length", 2, f"the payload's {len(payload)}, and at most {MAX_FRAME_BYTES}", f"{size}", size == len(payload) <= MAX_FRAME_BYTES),
        ("command type", 10, "0 or 1", f"{kind}", kind <= 1),
        ("sender", 11, "0 or 1", f"{sender}", sender <= 1),
        ("CRC-16", 18, f"0x{crc16(payload[:18]):04X}", f"0x{head_crc:04X}", head_crc == crc16(payload[:18])),
        ("CRC-32", 20, f"0x{zlib.crc32(data):08X}", f"0x{data_crc:08X}", data_crc == zlib.crc32(data)),
    ):
        if not fits:
            raise ValueError(f"{name} (byte {byte}) must be {rule}, got {got}")
    return ControlFrame(command=command, sequence=sequence, data=data, is_answer=bool(kind), is_from_sensor=bool(sender))


def is_from_sensor(payload: bytes) -> bool:
    """Whether the header of a frame names the sensor as its sender."""
    return len(payload) >= HEADER_BYTES and payload[11] == 1


Pairs = Sequence[tuple[int, bytes]]


def _listed(pairs: Pairs) -> bytes:
    """Keys and values, without their number."""
    return b"".join(_KEY.pack(key, len(value)) + value for key, value in pairs)


def counted(pairs: Pairs) -> bytes:
    """Data of a request to set keys, and of a push message: number of keys, two reserved bytes, keys and values."""
    return _COUNT.pack(len(pairs), 0) + _listed(pairs)


def write_answer(code: ReturnCode, key: int = 0) -> bytes:
    """Data of the answer to a request to write keys: return code, and the key that is refused; also of a query that is refused, with no keys."""
    return struct.pack("<BH", code, key)


def query_answer(pairs: Pairs) -> bytes:
    """Data of the answer to a query: return code, number of keys, keys and values, from byte 3 on."""
    return struct.pack("<BH", ReturnCode.OK, len(pairs)) + _listed(pairs)


def search_answer(*, device_type: int, serial: str, address: bytes, command_port: int) -> bytes:
    """Data of the answer to a search, 24 bytes; ``address`` is the sensor's, 4 bytes."""
    return struct.pack("<BB16s4sH", ReturnCode.OK, device_type, serial.encode("ascii"), address, command_port)


def _number_of_keys(data: bytes) -> int:
    if len(data) < _COUNT.size:
        raise ValueError(f"a list of keys must be {_COUNT.size} bytes or more, got {len(data)}")
    return int(_COUNT.unpack_from(data)[0])


def read_pairs(data: bytes) -> list[tuple[int, bytes]]:
    """Keys and values of the data of a request to set keys, or of a push message.

    Raises:
        ValueError: the data are not so many whole pairs; the text names the byte.
    """
    number, at = _number_of_keys(data), _COUNT.size
    pairs: list[tuple[int, bytes]] = []
    for _ in range(number):
        if at + _KEY.size > len(data):
            raise ValueError(f"key {len(pairs) + 1} of {number} (byte {at}) must be {_KEY.size} bytes and its value, got {len(data) - at} bytes")
        key, size = _KEY.unpack_from(data, at)
        at += _KEY.size
        if at + size > len(data):
            raise ValueError(f"value of key 0x{key:04X} (byte {at}) must be {size} bytes, got {len(data) - at}")
        pairs.append((key, data[at : at + size]))
        at += size
    if at != len(data):
        raise ValueError(f"keys must be {number}, got {len(data) - at} bytes more (byte {at})")
    return pairs


def read_keys(data: bytes) -> list[int]:
    """Keys of the data of a query.

    Raises:
        ValueError: the data are not so many keys.
    """
    number = _number_of_keys(data)
    size = _COUNT.size + 2 * number
    if len(data) != size:
        raise ValueError(f"a query of {number} keys must be {size} bytes, got {len(data)}")
    return list(struct.unpack_from(f"<{number}H", data, _COUNT.size))
