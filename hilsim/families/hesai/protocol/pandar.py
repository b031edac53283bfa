"""Point packets of Pandar40P, Pandar64 and QT64: UDP payload, little-endian, of ``N`` blocks of ``C`` channels.

=======  =======  ======  ==========================================================================================================
40P      64       QT64    field
=======  =======  ======  ==========================================================================================================
none     8 bytes  12      header: 64: EE FF, ``C``, ``N``, first return 0, unit 4, 0, 0; QT64: EE FF 03 01 00 00, ``C``, ``N``, first return, 4, returns, 1
10 x 40  6 x 64   4 x 64  blocks: of a 40P FF EE first; azimuth (2 bytes, 0.01 degrees); channels: distance (2 bytes, 4 mm), reflectivity, of a QT64 a byte 0
1240     1172     1044    tail, ``T``
T        T        T       a number of 2 bytes and its identity of 1 byte, which take turns
T + 3    T + 3    T + 3   2 bytes, constant of a unit
T + 5    T + 5    T + 6   bit 0: about to shut down because of heat
T + 6    T + 6            error, 2 bytes
T + 8    T + 8    T + 10  speed, 2 bytes, rpm
T + 10   T + 10   T + 12  microseconds within the second, 4 bytes
T + 14   T + 14   T + 16  return mode
T + 15   T + 15   T + 17  0x42
T + 16   T + 16   T + 18  UTC: year, month, day, hour, minute, second; the year since 2000 (40P) or 1900 (64, QT64)
T + 22   T + 22   T + 24  number of the packet, 4 bytes; a 40P sends it, and a 64, where that is switched on
=======  =======  ======  ==========================================================================================================

Sources: Pandar64 manual pages 34 to 38, PandarQT manual pages 15 to 21, the vendor's HesaiLidar_SDK_2.0, and public recordings of a unit of each.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.compilation.words import store_half
from hilsim.errors import PacketError
from hilsim.protocols.calendar import write_calendar

_SECOND, _FACTORY, _YEARS = constant(1_000_000_000), constant(0x42), constant(100)
_STATUS = [("value", "<u2"), ("identity", "u1"), ("reserved", "u1", (2,))]
_SHORT = [*_STATUS, ("shutdown", "u1"), ("error", "<u2"), ("speed_rpm", "<u2"), ("us", "<u4"), ("mode", "u1"), ("factory", "u1"), ("utc", "u1", (6,))]
_LONG = [*_STATUS, ("unused", "u1"), ("shutdown", "u1"), ("error", "u1", (3,)), ("speed_rpm", "<u2"), ("us", "<u4"), *_SHORT[-3:]]


class Layout(NamedTuple):
    """Kernel-side layout of a model's packets.

    Attributes:
        channels: Channels of a block.
        blocks: Blocks of a packet.
        header: ``uint8[h]``, the header.
        marks_blocks: Whether each block begins with FF EE.
        unit_size: Bytes of a channel.
        is_long: Whether the tail is a QT64's.
        counts_from_2000: Whether years are counted from 2000, not from 1900.
    """

    channels: int
    blocks: int
    header: npt.NDArray[np.uint8]
    marks_blocks: bool
    unit_size: int
    is_long: bool
    counts_from_2000: bool


class Tail(NamedTuple):
    """What a kernel writes into the tail of a packet.

    Attributes:
        value: Number that has its turn.
        identity: Its identity.
        reserved: Two bytes, the first one the lower.
        shutdown: Whether the sensor is about to shut down because of heat.
        error: Error.
        mode: Return mode.
        speed_rpm: Speed.
        utc_ns: Time since 1970.
        sequence: Number of the packet; -1: packets have none.
    """

    value: int
    identity: int
    reserved: int
    shutdown: int
    error: int
    mode: int
    speed_rpm: int
    utc_ns: int
    sequence: int


@dataclass(frozen=True)
class Pandar:
    """A model whose packets these are.

    Attributes:
        name: Its name.
        layout: Layout of its packets.
    """

    name: str
    layout: Layout

    def size(self, *, is_counted: bool) -> int:
        """Bytes of a packet, with or without its number."""
        return self.dtype(is_counted=is_counted).itemsize

    def dtype(self, *, is_counted: bool) -> np.dtype[Any]:
        """Record of a whole packet."""
        layout = self.layout
        unit = [("distance", "<u2"), ("reflectivity", "u1"), ("confidence", "u1")][: layout.unit_size - 1]
        flag = [("flag", "<u2")] if layout.marks_blocks else []
        tail = [*(_LONG if layout.is_long else _SHORT), *([("sequence", "<u4")] if is_counted else [])]
        block = np.dtype([*flag, ("azimuth", "<u2"), ("units", np.dtype(unit), (layout.channels,))])
        return np.dtype([("header", "u1", (layout.header.size,)), ("blocks", block, (layout.blocks,)), ("tail", np.dtype(tail))])


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(text), np.uint8)


PANDAR40P = Pandar("Pandar40P", Layout(40, 10, _bytes(""), True, 3, False, True))  # noqa: FBT003 - fields by place
PANDAR64 = Pandar("Pandar64", Layout(64, 6, _bytes("eeff400600040000"), False, 3, False, False))  # noqa: FBT003
QT64 = Pandar("QT64", Layout(64, 4, _bytes("eeff0301000040040104 0201".replace(" ", "")), False, 4, True, False))  # noqa: FBT003
BY_SIZE = {model.size(is_counted=counted): (model, counted) for model in (PANDAR40P, PANDAR64) for counted in (False, True)}
BY_SIZE[QT64.size(is_counted=True)] = QT64, True
if sorted(BY_SIZE) != [1072, 1194, 1198, 1262, 1266]:
    raise AssertionError(f"packets must be 1262 or 1266, 1194 or 1198, and 1072 bytes, got {sorted(BY_SIZE)}")
_FIXED = {"Pandar40P": (), "Pandar64": (0, 1, 2, 3, 5), "QT64": (0, 1, 2, 3, 6, 7, 9, 11)}
"""Bytes of the header that are alike in all packets of a model."""


@kernel
def write_packet(
    layout: Layout,
    azimuth_cdeg: npt.NDArray[np.int64],
    distance: npt.NDArray[np.int32],
    reflectivity: npt.NDArray[np.uint8],
    tail: Tail,
    payload: npt.NDArray[np.uint8],
    at: int,
) -> None:
    """Write a packet to ``payload[at:]``.

    Args:
        layout: Layout of the model.
        azimuth_cdeg: ``int64[blocks]``, 0 to 35999.
        distance: ``int32[blocks, channels]``, 0 to 65535.
        reflectivity: ``uint8[blocks, channels]``.
        tail: What the tail says.
        payload: ``uint8[n]``, written.
        at: Its first byte.
    """
    for place in range(layout.header.size):
        payload[at + place] = layout.header[place]
    at += layout.header.size
    for block in range(layout.blocks):
        if layout.marks_blocks:
            payload[at], payload[at + 1] = 0xFF, 0xEE
            at += 2
        payload[at], payload[at + 1] = azimuth_cdeg[block] & 0xFF, azimuth_cdeg[block] >> 8
        at += 2
        for channel in range(layout.channels):
            code = distance[block, channel]
            payload[at], payload[at + 1], payload[at + 2] = code & 0xFF, code >> 8, reflectivity[block, channel]
            if layout.unit_size > 3:
                payload[at + 3] = 0
            at += layout.unit_size
    _write_tail(layout, tail, payload, at)


@kernel
def _write_tail(layout: Layout, tail: Tail, payload: npt.NDArray[np.uint8], at: int) -> None:
    payload[at], payload[at + 1], payload[at + 2] = tail.value & 0xFF, tail.value >> 8, tail.identity
    payload[at + 3], payload[at + 4], payload[at + 5] = tail.reserved & 0xFF, tail.reserved >> 8, 0
    at += 6 if layout.is_long else 5
    payload[at], payload[at + 1], payload[at + 2] = tail.shutdown, tail.error & 0xFF, tail.error >> 8
    at += 3
    if layout.is_long:
        payload[at] = 0
        at += 1
    payload[at], payload[at + 1] = tail.speed_rpm & 0xFF, tail.speed_rpm >> 8
    second = tail.utc_ns // _SECOND
    store_half(payload, at + 2, (tail.utc_ns - second * _SECOND) // 1000)
    payload[at + 6], payload[at + 7] = tail.mode, _FACTORY
    write_calendar(second, payload, at + 8)
    if layout.counts_from_2000:
        payload[at + 8] -= _YEARS
    if tail.sequence >= 0:
        store_half(payload, at + 14, tail.sequence)


def read_packet(payload: bytes) -> Any:
    """A packet as a record of ``Pandar.dtype``.

    Raises:
        PacketError: the payload is no whole packet; the text names field and byte.
    """
    if len(payload) not in BY_SIZE:
        raise PacketError(f"Pandar packet must be of {', '.join(map(str, sorted(BY_SIZE)))} bytes, got {len(payload)}")
    model, is_counted = BY_SIZE[len(payload)]
    header = model.layout.header.tobytes()
    packet = np.frombuffer(payload, model.dtype(is_counted=is_counted))[0]
    wrong = next((at for at in _FIXED[model.name] if payload[at] != header[at]), None)
    if wrong is not None:
        raise PacketError(f"{model.name} packet: header (byte {wrong}) must be 0x{header[wrong]:02x}, got 0x{payload[wrong]:02x}")
    if model.layout.marks_blocks and (packet["blocks"]["flag"] != 0xEEFF).any():
        block = int(np.flatnonzero(packet["blocks"]["flag"] != 0xEEFF)[0])
        raise PacketError(f"{model.name} packet: block {block} (byte {124 * block}) must begin with ffee, got {payload[124 * block :][:2].hex()}")
    if packet["tail"]["factory"] != 0x42:
        at = len(payload) - (11 if is_counted else 7)
        raise PacketError(f"{model.name} packet: factory byte (byte {at}) must be 0x42, got 0x{packet['tail']['factory']:02x}")
    return packet


def utc_ns(packet: Any) -> int:
    """Time of a packet in ns since 1970; years below 70 are of this century, as the vendor's SDK takes them."""
    year, month, day, hour, minute, second = map(int, packet["tail"]["utc"])
    date = np.datetime64(f"{(1900 if year >= 70 else 2000) + year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}", "us")
    return (int(date.astype(np.int64)) + int(packet["tail"]["us"])) * 1000
