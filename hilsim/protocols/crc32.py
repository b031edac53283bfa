"""CRC-32 (IEEE, that of ``zlib``), as in Livox packets. Check value of ``123456789``: 0xcbf43926."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel, signed
from hilsim.compilation.words import load_word

_POLYNOMIAL = 0xEDB88320
_ONES, _BYTE = np.uint64(0xFFFF_FFFF), np.uint64(0xFF)
_LANES = 8
_SHIFTS: npt.NDArray[np.uint64] = np.arange(0, 64, 8, dtype=np.uint64)


def _table() -> npt.NDArray[np.uint64]:
    """``uint64[8, 256]``: row k is the CRC of a byte that k zero bytes follow."""
    rows = [[0] * 256 for _ in range(_LANES)]
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        rows[0][byte] = value
    for lane in range(1, _LANES):
        for byte in range(256):
            before = rows[lane - 1][byte]
            rows[lane][byte] = before >> 8 ^ rows[0][before & 0xFF]
    return np.array(rows, np.uint64)


_TABLE = _table()


@kernel
def crc32(payload: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    """CRC-32 of ``payload[start:stop]``, eight bytes a step."""
    crc, at = _ONES, start
    while at + _LANES <= stop:
        word, crc = crc ^ load_word(payload, at), np.uint64(0)
        for lane in range(_LANES):
            crc ^= _TABLE[_LANES - 1 - lane, (word >> _SHIFTS[lane]) & _BYTE]
        at += _LANES
    while at < stop:
        crc = (crc >> _SHIFTS[1]) ^ _TABLE[0, (crc ^ np.uint64(payload[at])) & _BYTE]
        at += 1
    return signed(crc ^ _ONES)  # type: ignore[no-any-return]
