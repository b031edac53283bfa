"""Point packets: UDP payload, little-endian, of ``N`` blocks of ``C`` channels.

==============  =======  =========  =======  =====================================================================================================
XT32/16/32M     40P      64         QT64     field
==============  =======  =========  =======  =====================================================================================================
12 bytes        none     8 bytes    12       header, see below
8/8/6 x 32/16   10 x 40  6 x 64     4 x 64   blocks: of a 40P FF EE first; azimuth (2 bytes, 0.01 degrees); channels: distance (2 bytes, 4 mm, 0 no return),
                                             reflectivity, and, but for 40P and 64, a byte that is 0xFF of an XT and 0 of a QT64
T to T + 9      T + 5    T + 5      T + 5    XT: three numbers of 2 bytes, each with an identity of 1 byte, constant of a unit; others: one number with its
                                             identity, which take turns, and 2 bytes that are constant of a unit; ``T`` is behind the blocks
T + 9           T + 5    T + 5      T + 6    bit 0: about to shut down because of heat
                T + 6    T + 6      T + 7    error, 2 bytes, of a QT64 3
T + 11          T + 8    T + 8      T + 10   speed, 2 bytes, rpm
T + 19          T + 10   T + 10     T + 12   microseconds within the second, 4 bytes
T + 10          T + 14   T + 14     T + 16   return mode: a ``ReturnMode``
T + 23          T + 15   T + 15     T + 17   0x42
T + 13          T + 16   T + 16     T + 18   UTC: year, month, day, hour, minute, second; the year since 1900, of a 40P since 2000; clients also know 00 and
                                             40 bits of seconds since 1970, big-endian, of an XT
T + 24          T + 22   T + 22     T + 24   number of the packet, 4 bytes, from 1; a 40P and a 64 send it where that is switched on
==============  =======  =========  =======  =====================================================================================================

Header of XT and QT64: EE FF, version 06 01 or 03 01, 2 bytes 0, ``C``, ``N``, return of the first block (0 single, 1 last, 2 strongest; an XT32M has 5 in mode
0x3C), 4 (millimetres of a count), returns of a laser (1, 2; an XT32M has 3 in dual modes too), flags (bit 0: numbered). Of a 64: EE FF, ``C``, ``N``, 0, 4, 0, 0.

In dual modes two consecutive blocks have one azimuth, and a firing with one return has it in both. ``models.Model`` says when lasers fire.

Sources: PandarXT-32 manual pages 19 to 24, PandarXT-16 manual pages 39 to 50, Pandar64 manual pages 34 to 38, PandarQT manual pages 15 to 21, HesaiLidar_SDK_2.0;
values that do not change: public recordings of one unit of each.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed
from hilsim.compilation.words import store_half
from hilsim.errors import PacketError
from hilsim.families.hesai.protocol.models import BY_NAME, Model, TailPlaces
from hilsim.protocols.calendar import write_calendar

DATA_PORT = 2368
UNIT_MM = 4
FIRST_RETURN_AT, RETURNS_AT = 8, 10
"""Bytes of headers of 12."""
LONG_HEADER = 12
_FACTORY, _SECOND = constant(0x42), constant(1_000_000_000)
_FOUR = constant(4)
_THIS_CENTURY = 70
"""Years below are of this century, as the vendor's SDK takes them."""


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


_MODES = frozenset(ReturnMode)


class Layout(NamedTuple):
    """Kernel-side layout of a sensor's packets.

    Attributes:
        header: ``uint8[h]``, the header.
        marks_blocks: Whether each block begins with FF EE.
        unit_size: Bytes of a channel.
        fill: The fourth one.
        tail: Places of fields.
        centuries: Hundreds of years that dates count from after 1900.
        is_counted: Whether packets have their number.
    """

    header: npt.NDArray[np.uint8]
    marks_blocks: bool
    unit_size: int
    fill: int
    tail: TailPlaces
    centuries: int
    is_counted: bool


class Tail(NamedTuple):
    """What a kernel writes into the tail of a packet.

    Attributes:
        status: ``uint8[s]``.
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


def layout_of(model: Model, *, first_return: int = 1, returns: int = 2, is_counted: bool = True) -> Layout:
    """Layout of a model's packets; what a header of 12 bytes says of returns is ``first_return`` and ``returns``."""
    header = np.frombuffer(model.header, np.uint8).copy()
    if header.size == LONG_HEADER:
        header[FIRST_RETURN_AT], header[RETURNS_AT] = first_return, returns
    unit_size = 3 if model.fill is None else 4
    return Layout(header, model.marks_blocks, unit_size, model.fill or 0, model.tail, (model.years_from - 1900) // 100, is_counted)


BY_SIZE: dict[int, tuple[Model, np.dtype[Any]]] = {}
"""Model and record of packets, which their size alone tells."""
for _model in BY_NAME.values():
    for _is_counted in (True, False) if len(_model.header) < LONG_HEADER else (True,):
        _record = _model.dtype(is_counted=_is_counted)
        BY_SIZE[_record.itemsize] = _model, _record
if sorted(BY_SIZE) != [568, 820, 1072, 1080, 1194, 1198, 1262, 1266]:
    raise AssertionError(f"packets must be of the sizes of recordings and manuals, got {sorted(BY_SIZE)}")


@kernel
def write_header(layout: Layout, payload: npt.NDArray[np.uint8], at: int) -> int:
    """Write the header of a packet to ``payload[at:]``; returns the byte after it."""
    for place in range(layout.header.size):
        payload[at + place] = layout.header[place]
    return at + layout.header.size


@kernel
def write_block(
    layout: Layout, azimuth_cdeg: int, distance: npt.NDArray[np.int32], reflectivity: npt.NDArray[np.uint8], payload: npt.NDArray[np.uint8], at: int
) -> int:
    """Write a block to ``payload[at:]``; returns the byte after it.

    Args:
        layout: Layout of the sensor's packets.
        azimuth_cdeg: Azimuth, 0 to 35999.
        distance: ``int32[c]``, 0 to 65535.
        reflectivity: ``uint8[c]``.
        payload: ``uint8[n]``, written.
        at: Its first byte.
    """
    if layout.marks_blocks:
        payload[at], payload[at + 1] = 0xFF, 0xEE
        at += 2
    payload[at], payload[at + 1] = azimuth_cdeg & 0xFF, azimuth_cdeg >> 8
    at += 2
    is_whole, fill = layout.unit_size == _FOUR, layout.fill << 24
    for channel in range(distance.size):
        if is_whole:
            store_half(payload, at, signed(distance[channel]) + (signed(reflectivity[channel]) << 16) + fill)
        else:
            payload[at], payload[at + 1], payload[at + 2] = distance[channel] & 0xFF, distance[channel] >> 8, reflectivity[channel]
        at += layout.unit_size
    return at


@kernel
def write_tail(layout: Layout, tail: Tail, payload: npt.NDArray[np.uint8], at: int) -> None:
    """Write the tail of a packet to ``payload[at:]``."""
    places = layout.tail
    for place in range(places.sequence):
        payload[at + place] = tail.status[place] if place < tail.status.size else 0
    payload[at + places.shutdown], payload[at + places.mode] = tail.shutdown, tail.mode
    payload[at + places.speed], payload[at + places.speed + 1] = tail.speed_rpm & 0xFF, tail.speed_rpm >> 8
    second = tail.utc_ns // _SECOND
    write_calendar(second, payload, at + places.utc)
    payload[at + places.utc] -= 100 * layout.centuries
    store_half(payload, at + places.us, (tail.utc_ns - second * _SECOND) // 1000)
    payload[at + places.factory] = _FACTORY
    if layout.is_counted:
        store_half(payload, at + places.sequence, tail.sequence)


def packet_fault(payload: bytes) -> str:
    """What keeps a payload from being a whole point packet, with field, byte and value; empty: nothing."""
    if len(payload) not in BY_SIZE:
        return f"packet must be of {', '.join(map(str, sorted(BY_SIZE)))} bytes, got {len(payload)}"
    model, dtype = BY_SIZE[len(payload)]
    is_long = len(model.header) == LONG_HEADER
    free = {4, 5, FIRST_RETURN_AT, RETURNS_AT} if is_long else {4, 6, 7}
    for at, byte in enumerate(model.header):
        if payload[at] != byte and at not in free:
            return f"header (byte {at}) of a {model.name} must be 0x{byte:02x}, got 0x{payload[at]:02x}"
    if is_long and payload[RETURNS_AT] not in (1, 2, 3):
        return f"returns (byte {RETURNS_AT}) must be 1 to 3, got {payload[RETURNS_AT]}"
    return _mark_fault(payload, model, dtype) or _tail_fault(payload, model, dtype)


def _mark_fault(payload: bytes, model: Model, dtype: np.dtype[Any]) -> str:
    for block in range(model.blocks) if model.marks_blocks else ():
        at = len(model.header) + block * dtype["blocks"].base.itemsize
        if payload[at : at + 2] != b"\xff\xee":
            return f"block {block} (byte {at}) must begin with ffee, got {payload[at : at + 2].hex()}"
    return ""


def _tail_fault(payload: bytes, model: Model, dtype: np.dtype[Any]) -> str:
    tail_at = len(payload) - dtype["tail"].itemsize
    factory_at, mode_at = tail_at + model.tail.factory, tail_at + model.tail.mode
    if payload[factory_at] != _FACTORY:
        return f"factory byte (byte {factory_at}) must be 0x42, got 0x{payload[factory_at]:02x}"
    if payload[mode_at] not in _MODES:
        return f"return mode (byte {mode_at}) must be one of {', '.join(f'0x{mode:02x}' for mode in ReturnMode)}, got 0x{payload[mode_at]:02x}"
    return ""


def model_of(payload: bytes) -> Model:
    """The model that a payload is a packet of.

    Raises:
        PacketError: the payload is no whole packet; the text names field and byte.
    """
    if fault := packet_fault(payload):
        raise PacketError(f"Hesai packet: {fault}")
    return BY_SIZE[len(payload)][0]


def read_packet(payload: bytes) -> Any:
    """A packet as a record of ``Model.dtype``.

    Raises:
        PacketError: the payload is no whole packet; the text names field and byte.
    """
    model_of(payload)
    return np.frombuffer(payload, BY_SIZE[len(payload)][1])[0]


def utc_ns(tails: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Times of tails ``[n]`` in ns since 1970, in either form of the date."""
    utc = tails["utc"].astype(np.int64)
    year, month, day = np.where(utc[:, 0] < _THIS_CENTURY, 2000, 1900) + utc[:, 0], utc[:, 1], utc[:, 2]
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + day - 1
    calendar_s = days * 86_400 + utc[:, 3] * 3600 + utc[:, 4] * 60 + utc[:, 5]
    counted_s = utc[:, 1:] @ (1 << np.arange(32, -8, -8, dtype=np.int64))
    return np.asarray(np.where(utc[:, 0] == 0, counted_s, calendar_s) * 1_000_000_000 + tails["us"].astype(np.int64) * 1000)
