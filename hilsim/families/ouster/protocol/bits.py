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
    first, shift, size = bit >> 3, bit & 7, records.shape[-1]
    needed = (shift + bits + 7) >> 3
    width = 1 << (needed - 1).bit_length()
    if width <= size and records.strides[-1] == 1:  # one number instead of its bytes
        begin = min(first, size - width)
        value = records[..., begin : begin + width].view(f"<u{width}")[..., 0].astype(np.uint64)
        shift += 8 * (first - begin)
    else:
        value = np.zeros(records.shape[:-1], np.uint64)
        for byte in range(needed):
            value |= records[..., first + byte].astype(np.uint64) << np.uint64(8 * byte)
    value >>= np.uint64(shift)
    value &= np.uint64((1 << bits) - 1)
    return value
