"""Point packets of the XT series (protocol 6.1): UDP payload, little-endian, of ``N`` blocks of ``C`` channels; XT32 8 x 32, XT16 8 x 16, XT32M 6 x 32.

==========  ====  ==========================================================================================================
offset      size  field
==========  ====  ==========================================================================================================
0           2     bytes EE FF
2           2     version of the protocol, 06 01
4           2     reserved, 0
6           1     lasers ``C``
7           1     blocks ``N``
8           1     return of the first block: 0 single, 1 last, 2 strongest; an XT32M has 5 in mode 0x3C
9           1     millimetres of a count of distance, 4
10          1     returns of a laser: 1, 2; an XT32M has 3 in dual modes too
11          1     flags: bit 0 the packet has a sequence number, always
12 + k B    2     azimuth of block k, 0.01 degrees, 0 to 35999; ``B`` is 2 + 4 ``C``
... + 2     4 c   channels: distance (2 bytes, 0 no return), reflectivity, 0xFF
T           9     three numbers of 2 bytes, each with an identity of 1 byte: constant of a unit; ``T`` is 12 + ``N`` ``B``
T + 9       1     bit 0: about to shut down because of heat
T + 10      1     return mode: a ``ReturnMode``
T + 11      2     speed, rpm
T + 13      6     UTC: year - 1900, month, day, hour, minute, second; clients also know 00 and 40 bits of seconds since 1970, big-endian
T + 19      4     microseconds within the second
T + 23      1     0x42
T + 24      4     number of the packet, from 1
==========  ====  ==========================================================================================================

The time is that of the last block, ``models.Model.firing_ns`` before its lasers fire; other blocks are rounds before it. In dual modes two consecutive blocks have
one azimuth, and a firing with one return has it in both. A clock that nothing sets begins at 2019-07-25 (all three recordings).

Sources: PandarXT-32 manual pages 19 to 24, PandarXT-16 manual pages 39 to 50; values that do not change, and those of XT32M: public recordings of one unit of each.
"""

from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed
from hilsim.compilation.words import store_half
from hilsim.errors import PacketError
from hilsim.families.hesai.protocol.models import BY_NAME, Model
from hilsim.protocols.calendar import write_calendar

DATA_PORT = 2368
HEADER_SIZE, TAIL_SIZE = 12, 28
UNIT_MM = 4
NO_CONFIDENCE = 0xFF
UNSET_UTC_S = 1_564_012_800
"""2019-07-25, at which a clock that nothing sets begins, in seconds since 1970."""
_START = bytes.fromhex("eeff0601")
_MAGIC, _HEADER, _FACTORY, _FLAGS = constant(int.from_bytes(_START, "little")), constant(HEADER_SIZE), constant(0x42), constant(1)
_SECOND, _UNIT = constant(1_000_000_000), constant(UNIT_MM)
_CONFIDENCE = constant(NO_CONFIDENCE << 24)
LASERS_AT, BLOCKS_AT, UNIT_AT, RETURNS_AT, FLAGS_AT = 6, 7, 9, 10, 11
UTC_AT, MICROSECONDS_AT, SEQUENCE_AT = 13, 19, 24
"""Fields of the tail."""
_UTC_AT = constant(UTC_AT)
UNIT_DTYPE = np.dtype([("distance", "<u2"), ("reflectivity", "u1"), ("confidence", "u1")])
TAIL_DTYPE = np.dtype(
    [
        ("status", "u1", (9,)),
        ("shutdown", "u1"),
        ("mode", "u1"),
        ("speed_rpm", "<u2"),
        ("utc", "u1", (6,)),
        ("us", "<u4"),
        ("factory", "u1"),
        ("sequence", "<u4"),
    ]
)


class ReturnMode(IntEnum):
    """Byte of the tail that says which returns a packet has (SDK and nebula)."""

    FIRST = 0x33
    STRONGEST = 0x37
    LAST = 0x38
    LAST_STRONGEST = 0x39
    LAST_FIRST = 0x3B
    FIRST_STRONGEST = 0x3C

    @property
    def returns(self) -> int:
        """Returns of a firing."""
        return 1 if self < ReturnMode.LAST_STRONGEST else 2


class Head(NamedTuple):
    """What the header of a model's packets says.

    Attributes:
        lasers: Channels of a block.
        blocks: Blocks of a packet.
        first_return: Return of the first block.
        returns: Returns of a laser.
    """

    lasers: int
    blocks: int
    first_return: int
    returns: int


class Tail(NamedTuple):
    """What a kernel writes into the tail of a packet.

    Attributes:
        status: ``uint8[9]``.
        shutdown: Whether the sensor is about to shut down because of heat.
        mode: A ``ReturnMode``.
        speed_rpm: Speed.
        utc_ns: Time since 1970, of 1900 to 2155.
        sequence: Number of the packet, of which the low 32 bits are sent.
    """

    status: npt.NDArray[np.uint8]
    shutdown: int
    mode: int
    speed_rpm: int
    utc_ns: int
    sequence: int


def packet_size(model: Model) -> int:
    """Bytes of a model's packet."""
    return HEADER_SIZE + model.blocks * (2 + 4 * model.channels) + TAIL_SIZE


@cache
def packet_dtype(channels: int, blocks: int) -> np.dtype[Any]:
    """Record of a whole packet."""
    block = np.dtype([("azimuth", "<u2"), ("units", UNIT_DTYPE, (channels,))])
    return np.dtype([("header", "u1", (HEADER_SIZE,)), ("blocks", block, (blocks,)), ("tail", TAIL_DTYPE)])


_BY_SHAPE = {(model.channels, model.blocks): model for model in BY_NAME.values()}
if {packet_size(model): packet_dtype(*shape).itemsize for shape, model in _BY_SHAPE.items()} != {1080: 1080, 568: 568, 820: 820}:
    raise AssertionError("packets of XT32, XT16 and XT32M must be 1080, 568 and 820 bytes")


@kernel
def write_block(
    azimuth_cdeg: int, distance: npt.NDArray[np.int32], reflectivity: npt.NDArray[np.uint8], payload: npt.NDArray[np.uint8], at: int
) -> int:
    """Write a block to ``payload[at:]``; returns the byte after it.

    Args:
        azimuth_cdeg: Azimuth, 0 to 35999.
        distance: ``int32[c]``, 0 to 65535.
        reflectivity: ``uint8[c]``.
        payload: ``uint8[n]``, written.
        at: Its first byte.
    """
    payload[at], payload[at + 1] = azimuth_cdeg & 0xFF, azimuth_cdeg >> 8
    at += 2
    for channel in range(distance.size):
        store_half(payload, at, signed(distance[channel]) + (signed(reflectivity[channel]) << 16) + _CONFIDENCE)
        at += 4
    return at


@kernel
def write_header(head: Head, payload: npt.NDArray[np.uint8], at: int) -> int:
    """Write the header of a packet to ``payload[at:]``; returns the byte after it."""
    store_half(payload, at, _MAGIC)
    store_half(payload, at + 4, (head.lasers << 16) + (head.blocks << 24))
    store_half(payload, at + 8, head.first_return + (_UNIT << 8) + (head.returns << 16) + (_FLAGS << 24))
    return at + _HEADER


@kernel
def write_tail(tail: Tail, payload: npt.NDArray[np.uint8], at: int) -> None:
    """Write the tail of a packet to ``payload[at:]``."""
    for place in range(9):
        payload[at + place] = tail.status[place]
    payload[at + 9], payload[at + 10] = tail.shutdown, tail.mode
    payload[at + 11], payload[at + 12] = tail.speed_rpm & 0xFF, tail.speed_rpm >> 8
    second = tail.utc_ns // _SECOND
    write_calendar(second, payload, at + _UTC_AT)
    store_half(payload, at + 19, (tail.utc_ns - second * _SECOND) // 1000)
    payload[at + 23] = _FACTORY
    store_half(payload, at + 24, tail.sequence)


def packet_fault(payload: bytes) -> str:
    """What keeps a payload from being a whole point packet, with field, byte and value; empty: nothing."""
    if len(payload) < HEADER_SIZE or payload[:4] != _START:
        return f"bytes 0 to 3 must be {_START.hex()}, got {payload[:4].hex()}"
    model = _BY_SHAPE.get((payload[LASERS_AT], payload[BLOCKS_AT]))
    if model is None:
        return f"lasers (byte {LASERS_AT}) and blocks (byte {BLOCKS_AT}) must be 32 and 8, 16 and 8, or 32 and 6, got {payload[6]} and {payload[7]}"
    faults = (
        (
            len(payload) != packet_size(model),
            f"packet of {model.channels} lasers and {model.blocks} blocks must be {packet_size(model)} bytes, got {len(payload)}",
        ),
        (payload[UNIT_AT] != UNIT_MM, f"unit of distance (byte {UNIT_AT}) must be {UNIT_MM}, got {payload[UNIT_AT]}"),
        (payload[RETURNS_AT] not in (1, 2, 3), f"returns (byte {RETURNS_AT}) must be 1 to 3, got {payload[RETURNS_AT]}"),
        (payload[FLAGS_AT] != 1, f"flags (byte {FLAGS_AT}) must be 1, got {payload[FLAGS_AT]}"),
    )
    fault = next((text for holds, text in faults if holds), "")
    if not fault and payload[-18] not in set(ReturnMode):
        fault = f"return mode (byte {len(payload) - 18}) must be one of {', '.join(f'0x{mode:02x}' for mode in ReturnMode)}, got 0x{payload[-18]:02x}"
    return fault


def model_of(payload: bytes) -> Model:
    """The model that a payload is a packet of.

    Raises:
        PacketError: the payload is no whole packet; the text names field and byte.
    """
    if fault := packet_fault(payload):
        raise PacketError(f"Hesai packet: {fault}")
    return _BY_SHAPE[payload[LASERS_AT], payload[BLOCKS_AT]]


def read_packet(payload: bytes) -> Any:
    """A packet as a record of ``packet_dtype``.

    Raises:
        PacketError: the payload is no whole packet; the text names field and byte.
    """
    model = model_of(payload)
    return np.frombuffer(payload, packet_dtype(model.channels, model.blocks))[0]


def utc_ns(tails: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Times of tails ``TAIL_DTYPE[n]`` in ns since 1970, in either form of the date."""
    utc = tails["utc"].astype(np.int64)
    year, month, day = 1900 + utc[:, 0], utc[:, 1], utc[:, 2]
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + day - 1
    calendar_s = days * 86_400 + utc[:, 3] * 3600 + utc[:, 4] * 60 + utc[:, 5]
    counted_s = utc[:, 1:] @ (1 << np.arange(32, -8, -8, dtype=np.int64))
    return np.asarray(np.where(utc[:, 0] == 0, counted_s, calendar_s) * 1_000_000_000 + tails["us"].astype(np.int64) * 1000)
