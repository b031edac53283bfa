"""Fields of bits in little-endian bytes, written one by one by kernels and read from all packets at once."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel


@kernel
def add_bits(value: int, bits: int, payload: npt.NDArray[np.uint8], at: int, bit: int) -> None:
    """Write a field into bytes in which its bits are still 0.

    Args:
        value: ``int64``, of which the low ``bits`` are written, as two's complement.
        bits: Width, 1 to 64; at most 56 where ``bit`` is no multiple of 8.
        payload: ``uint8[>= at + 8]``, or as much as the field reaches into.
        at: Byte from which ``bit`` counts.
        bit: Lowest bit.
    """
    first, shift = at + (bit >> 3), bit & 7
    rest = value if bits > 63 else (value & ((1 << bits) - 1)) << shift
    for byte in range((shift + bits + 7) >> 3):
        payload[first + byte] |= (rest >> (8 * byte)) & 0xFF


def read_bits(records: npt.NDArray[np.uint8], bit: int, bits: int) -> npt.NDArray[np.uint64]:
    """Read a field.

    Args:
        records: ``uint8[..., size]``.
        bit: Lowest bit, counted from each record's start.
        bits: Width, 1 to 64; at most 57 where ``bit`` is no multiple of 8.

    Returns:
        ``uint64[...]``.
    """
    first, shift = bit >> 3, bit & 7
    value = np.zeros(records.shape[:-1], np.uint64)
    for byte in range((shift + bits + 7) >> 3):
        value |= records[..., first + byte].astype(np.uint64) << np.uint64(8 * byte)
    value >>= np.uint64(shift)
    return value & np.uint64((1 << bits) - 1)
