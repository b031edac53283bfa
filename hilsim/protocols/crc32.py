"""CRC-32 (IEEE, that of ``zlib``), as in Livox packets. Check value of ``123456789``: 0xcbf43926."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel, signed
from hilsim.compilation.words import load_word
from hilsim.protocols.crc64 import crc_table

_POLYNOMIAL = 0xEDB88320
_ONES, _BYTE = np.uint64(0xFFFF_FFFF), np.uint64(0xFF)
_LANES = 8
_SHIFTS: npt.NDArray[np.uint64] = np.arange(0, 64, 8, dtype=np.uint64)


_TABLE = crc_table(_POLYNOMIAL, _LANES)


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
