"""The Velodyne data packet: 1206 bytes of UDP payload, little-endian.

======  ====  =====================================================================================
offset  size  field
======  ====  =====================================================================================
100 k   2     flag, bytes FF EE (k = 0..11); a VLS-128's banks of lasers: FF EE, FF DD, FF CC, FF BB
100k+2  2     azimuth of the block's first firing, 0.01 deg, 0..35999
100k+4  3 c   32 channel records: distance (uint16, 0 = no return), reflectivity (uint8)
1200    4     timestamp, us past the hour, of the first firing of block 0 (VLP-16)
1204    1     return mode: a ``ReturnMode``
1205    1     product: 0x22 VLP-16 …
======  ====  =====================================================================================

A block holds 32 records: one firing sequence of a 32-channel sensor, two of a 16-channel one, or a bank of lasers of a firing sequence of a 128-channel
one, whose four blocks have one azimuth. In dual return mode every group of firings
makes two consecutive blocks of one azimuth: even blocks the last return, odd blocks the strongest, or the second strongest where that is the last.
A VLS-128's dual packet holds one firing sequence in blocks 0 to 7; blocks 8 to 11 are padding: flag 0x0000, the azimuth, empty records. Three public
decoders read it so, and one pads so in its own tests; no capture of a unit was found.

Source: VLP-16 User Manual 63-9243 rev D, pages 54-57 and 62; field values confirmed on public captures.
"""

from enum import Enum, IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import PacketError

DATA_PACKET_SIZE = 1206
BLOCKS = 12
RECORDS_PER_BLOCK = 32
BLOCK_FLAG = 0xEEFF
BANK_FLAG_STEP = 0x1100
"""Difference of the flags of two neighbouring banks of lasers."""
DATA_PORT = 2368

CHANNEL_DTYPE = np.dtype([("distance", "<u2"), ("reflectivity", "u1")])
BLOCK_DTYPE = np.dtype([("flag", "<u2"), ("azimuth", "<u2"), ("channels", CHANNEL_DTYPE, (RECORDS_PER_BLOCK,))])
DATA_PACKET_DTYPE = np.dtype([("blocks", BLOCK_DTYPE, (BLOCKS,)), ("timestamp", "<u4"), ("return_mode", "u1"), ("product", "u1")])
if (CHANNEL_DTYPE.itemsize, BLOCK_DTYPE.itemsize, DATA_PACKET_DTYPE.itemsize) != (3, 100, DATA_PACKET_SIZE):
    raise AssertionError("the data packet's layout does not have the manual's sizes")


class Return(Enum):
    """Type of the return that a block reports."""

    LAST = "last"
    STRONGEST = "strongest"


class ReturnMode(IntEnum):
    """The factory byte that names which returns a packet carries; everything that tools know of a mode is defined here and in ``_MODE_FACTS``."""

    STRONGEST = 0x37
    LAST = 0x38
    DUAL = 0x39
    DUAL_CONFIDENCE = 0x3B

    @classmethod
    def find(cls, byte: int) -> Self | None:
        """The mode of a factory byte; None of a byte that names none."""
        return next((mode for mode in cls if mode == byte), None)

    @classmethod
    def named(cls, name: str) -> Self:
        """The mode of a rig's ``return_mode``.

        Raises:
            KeyError: there is none of that name.
        """
        return cls[name.upper()]

    @property
    def words(self) -> str:
        """Its name for people."""
        return _MODE_FACTS[self].words

    @property
    def order(self) -> tuple[Return, ...]:
        """Returns of the consecutive blocks of one azimuth, the first block first."""
        return _MODE_FACTS[self].order

    @property
    def returns(self) -> int:
        """Returns reported for each firing."""
        return len(self.order)

    @property
    def is_dual(self) -> bool:
        """Blocks come in pairs of one azimuth, and a packet holds half the firings."""
        return len(self.order) == 2

    @property
    def is_documented(self) -> bool:
        """A manual describes it."""
        return _MODE_FACTS[self].is_documented

    @property
    def is_emulated(self) -> bool:
        """An emulated sensor can send it: a rig's ``return_mode`` is its name in lower case."""
        return _MODE_FACTS[self].is_emulated


class _ModeFacts(NamedTuple):
    """Properties of a ``ReturnMode``, which defines each field."""

    words: str
    order: tuple[Return, ...]
    is_documented: bool = True
    is_emulated: bool = True


_MODE_FACTS = {
    # manual 63-9243 page 57
    ReturnMode.STRONGEST: _ModeFacts("strongest", (Return.STRONGEST,)),
    ReturnMode.LAST: _ModeFacts("last", (Return.LAST,)),
    ReturnMode.DUAL: _ModeFacts("dual", (Return.LAST, Return.STRONGEST)),
    # a setting of newer firmware that a public client knows; the order of its blocks is taken to be that of dual
    ReturnMode.DUAL_CONFIDENCE: _ModeFacts("dual with confidence", (Return.LAST, Return.STRONGEST), is_documented=False, is_emulated=False),
}
RETURNS_BY_MODE_BYTE: npt.NDArray[np.int64] = np.array([getattr(ReturnMode.find(byte), "returns", 1) for byte in range(256)], dtype=np.int64)
"""``int64[256]``, returns of a firing by the mode's factory byte, for kernels and whole arrays; 1 of a byte that names no mode."""


class Product(IntEnum):
    """The factory byte that names the model (manual page 57; 0xA1 as in decoders and captures)."""

    HDL_32E = 0x21
    VLP_16 = 0x22
    PUCK_HI_RES = 0x24
    VLP_32C = 0x28
    VLS_128 = 0xA1


def factory_bytes(mode: ReturnMode, product: int) -> int:
    """The two bytes that end a packet, the first one the lower; ``product`` need not be a ``Product``."""
    return int(mode) | int(product) << 8


@kernel
def encode_data_packet(
    azimuth_cdeg: npt.NDArray[np.int64],
    distance: npt.NDArray[np.int32],
    reflectivity: npt.NDArray[np.uint8],
    stamp_us: int,
    factory_bytes: int,
    payload: npt.NDArray[np.uint8],
) -> None:
    """Write one data packet.

    Args:
        azimuth_cdeg: ``int64[s]``, reported azimuth of each firing sequence, 0..35999.
        distance: ``int32[r, s, c]`` raw distances, 0..65535; r = 1, or 2 for dual (0 the last, 1 the strongest or second strongest). c is 16, 32, or a
            multiple of 32, and ``r * s * c`` at most 12 * 32: what remains is padding.
        reflectivity: ``uint8[r, s, c]``.
        stamp_us: Microseconds past the hour of the first firing, 0..3,599,999,999.
        factory_bytes: Result of ``factory_bytes``.
        payload: ``uint8[>= 1206]``, written.
    """
    returns, sequences, channels = distance.shape
    banks = max(channels // RECORDS_PER_BLOCK, 1)
    sequences_per_block = max(RECORDS_PER_BLOCK // channels, 1)
    used = returns * banks * (sequences // sequences_per_block)
    for block in range(used, BLOCKS):
        payload[100 * block : 100 * (block + 1)] = 0
        payload[100 * block + 2] = azimuth_cdeg[sequences - 1] & 0xFF
        payload[100 * block + 3] = azimuth_cdeg[sequences - 1] >> 8
    for block in range(used):
        bank = (block // returns) % banks
        first = (block // (returns * banks)) * sequences_per_block
        return_number = block % returns
        flag = BLOCK_FLAG - BANK_FLAG_STEP * bank
        at = 100 * block
        payload[at] = flag & 0xFF
        payload[at + 1] = flag >> 8
        payload[at + 2] = azimuth_cdeg[first] & 0xFF
        payload[at + 3] = azimuth_cdeg[first] >> 8
        at += 4
        for sequence in range(first, first + sequences_per_block):
            for channel in range(bank * RECORDS_PER_BLOCK, min((bank + 1) * RECORDS_PER_BLOCK, channels)):
                code = distance[return_number, sequence, channel]
                payload[at] = code & 0xFF
                payload[at + 1] = code >> 8
                payload[at + 2] = reflectivity[return_number, sequence, channel]
                at += 3
    for byte in range(4):
        payload[1200 + byte] = (stamp_us >> (8 * byte)) & 0xFF
    payload[1204] = factory_bytes & 0xFF
    payload[1205] = factory_bytes >> 8


def decode_data_packets(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """View payloads as records of ``DATA_PACKET_DTYPE``.

    Args:
        payloads: ``uint8[n, 1206]``.

    Raises:
        PacketError: a payload has another size or a block without its flag; the text names packet, block and byte.
    """
    if payloads.ndim != 2 or payloads.shape[1] != DATA_PACKET_SIZE:
        raise PacketError(f"Velodyne data packets must be {DATA_PACKET_SIZE} bytes each, got an array of shape {payloads.shape}")
    packets = np.ascontiguousarray(payloads).view(DATA_PACKET_DTYPE)[:, 0]
    wrong = np.argwhere(packets["blocks"]["flag"] != BLOCK_FLAG)
    if wrong.size:
        packet, block = (int(index) for index in wrong[0])
        flag = int(packets["blocks"]["flag"][packet, block])
        raise PacketError(
            f"Velodyne data packet {packet} block {block} must start with flag 0x{BLOCK_FLAG:04x}, got 0x{flag:04x} at byte {100 * block}"
        )
    return packets
