"""CRC-64/XZ, as in the footer of an Ouster's packet: ECMA-182 reflected, initial value and final XOR all ones, stored little-endian.

Check value of ``123456789``: 0x995dc9bbdf1939fa. Confirmed on packets of firmware 2.5.2, 3.2.0 and by ouster-sdk 1.0.1.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.compilation.words import load_word

CRC_SIZE = 8
_POLYNOMIAL = 0xC96C5795D7870F42
_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_BYTE = np.uint64(0xFF)
_LANES = 16


def crc_table(polynomial: int, lanes: int) -> npt.NDArray[np.uint64]:
    """``uint64[lanes, 256]`` of a reflected CRC: row k is the CRC of a byte that k zero bytes follow."""
    rows = [[0] * 256 for _ in range(lanes)]
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        rows[0][byte] = value
    for lane in range(1, lanes):
        for byte in range(256):
            before = rows[lane - 1][byte]
            rows[lane][byte] = before >> 8 ^ rows[0][before & 0xFF]
    return np.array(rows, np.uint64)


_TABLE = crc_table(_POLYNOMIAL, _LANES)
_SHIFTS: npt.NDArray[np.uint64] = np.arange(0, 64, 8, dtype=np.uint64)


@kernel
def crc64(payload: npt.NDArray[np.uint8], size: int) -> np.uint64:
    """CRC-64/XZ of ``payload[:size]``, sixteen bytes a step (with one table lookup a byte, 33 kB packets would cost many times as much)."""
    crc = _ONES
    whole = size - size % _LANES
    for start in range(0, whole, _LANES):
        first, second, crc = crc ^ load_word(payload, start), load_word(payload, start + 8), np.uint64(0)
        for lane in range(8):
            crc ^= _TABLE[15 - lane, (first >> _SHIFTS[lane]) & _BYTE] ^ _TABLE[7 - lane, (second >> _SHIFTS[lane]) & _BYTE]
    for at in range(whole, size):
        crc = (crc >> _SHIFTS[1]) ^ _TABLE[0, (crc ^ np.uint64(payload[at])) & _BYTE]
    return crc ^ _ONES


@kernel
def write_crc(payload: npt.NDArray[np.uint8], at: int) -> None:
    """Write the CRC of ``payload[:at]`` to ``payload[at : at + 8]``."""
    crc = crc64(payload, at)
    for byte in range(CRC_SIZE):
        payload[at + byte] = (crc >> _SHIFTS[byte]) & _BYTE


@kernel
def _fill_crcs(payloads: npt.NDArray[np.uint8], size: int, crcs: npt.NDArray[np.uint64]) -> None:
    for number in range(len(payloads)):
        crcs[number] = crc64(payloads[number], size)


def crcs_of(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """``uint64[n]``: CRC of all but the last 8 bytes of each of ``uint8[n, size]``."""
    crcs = np.zeros(len(payloads), np.uint64)
    _fill_crcs(np.ascontiguousarray(payloads), payloads.shape[1] - CRC_SIZE, crcs)
    return crcs
