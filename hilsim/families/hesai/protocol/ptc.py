"""PTC, the commands of a Hesai at TCP port 9347: requests and answers in one form, big-endian.

======  ====  ====================================
offset  size  field
======  ====  ====================================
0       2     47 74
2       1     command
3       1     0, of an answer a ``ReturnCode``
4       4     length of the payload
8       n     payload
======  ====  ====================================

A connection has any number of requests, one after the other. Version 2.0 of other models begins with 57 75.

Sources: HesaiLidar_SDK_2.0 (libhesai/PtcClient), nebula (nebula_hesai_hw_interfaces).
"""

import struct
from enum import IntEnum
from typing import NamedTuple

PTC_PORT = 9347
_MAGIC = b"\x47\x74"
_HEAD = struct.Struct(">2sBBI")
HEAD_SIZE = _HEAD.size
SERIAL_LENGTH = 18
"""Characters of a serial number in the inventory."""


class ReturnCode(IntEnum):
    """Results of a request."""

    OK = 0
    INVALID_PARAMETER = 1
    SERVER_FAILED = 2
    INVALID_DATA = 3
    OUT_OF_MEMORY = 4
    UNSUPPORTED = 5
    FPGA_FAILED = 6
    OTHER = 7


class Command(IntEnum):
    """Requests."""

    CALIBRATION = 0x05
    PTP_DIAGNOSTICS = 0x06
    INVENTORY = 0x07
    CONFIG = 0x08
    STATUS = 0x09
    REBOOT = 0x10
    SPIN_RATE = 0x17
    SYNC_ANGLE = 0x18
    TRIGGER = 0x1B
    STANDBY = 0x1C
    RETURN_MODE = 0x1E
    CLOCK_SOURCE = 0x1F
    DESTINATION = 0x20
    NETWORK = 0x21
    FIELD_OF_VIEW = 0x22
    GET_FIELD_OF_VIEW = 0x23
    PTP = 0x24
    RESET = 0x25
    GET_PTP = 0x26
    MONITOR = 0x27
    DIRECTION = 0x2A
    LOCK_OFFSET = 0x39
    GET_LOCK_OFFSET = 0x3A


class Request(NamedTuple):
    """A request.

    Attributes:
        command: A ``Command``, or any other byte.
        payload: Its payload.
    """

    command: int
    payload: bytes = b""


class Answer(NamedTuple):
    """An answer.

    Attributes:
        code: Result.
        payload: Its payload.
    """

    code: ReturnCode = ReturnCode.OK
    payload: bytes = b""


def read_head(head: bytes) -> tuple[int, int]:
    """Command, and length of the payload, of the first 8 bytes of a request.

    Raises:
        ValueError: it is none.
    """
    magic, command, _, length = _HEAD.unpack(head)
    if magic != _MAGIC:
        raise ValueError(f"bytes 0 and 1 must be {_MAGIC.hex()}, got {magic.hex()}")
    return command, length


def encode_frame(command: int, payload: bytes, code: int = 0) -> bytes:
    """A request, or an answer with its result."""
    return _HEAD.pack(_MAGIC, command, code, len(payload)) + payload
