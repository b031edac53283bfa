"""Recorded NMEA sentences made to name another second, in place and without Python objects.

Sentences: NMEA 0183 RMC (time in field 1, date ddmmyy in field 9) and GGA (time in field 1) of any talker. Checksum: exclusive or of the bytes
between ``$`` and ``*``.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.protocols.nmea import civil_date, write_digits

_COMMA, _STAR = constant(ord(",")), constant(ord("*"))
_WIDTH_6 = constant(6)


@kernel
def _is_digit(character: int) -> bool:
    return 48 <= character <= 57


@kernel
def _checksum_place(text: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    """Offset of the two checksum digits of a valid sentence, or -1."""
    if stop - start < 11 or text[start] != 36:
        return -1
    checksum = 0
    for at in range(start + 1, stop - 2):
        if text[at] == _STAR:
            for offset in range(2):
                nibble = (checksum >> (4 - 4 * offset)) & 15
                shown = text[at + 1 + offset]
                if shown != (48 + nibble if nibble < 10 else 55 + nibble) and shown != (48 + nibble if nibble < 10 else 87 + nibble):
                    return -1
            return at + 1
        checksum ^= text[at]
    return -1


@kernel
def _replace_digits(value: int, width: int, text: npt.NDArray[np.uint8], at: int) -> bool:
    """Write ``value`` over ``width`` digits, if there are digits."""
    for place in range(width):
        if not _is_digit(text[at + place]):
            return False
    write_digits(value, width, text, at)
    return True


@kernel
def _replace_date(days: int, text: npt.NDArray[np.uint8], at: int, stop: int) -> None:
    """Write a date over the one behind the ninth comma of a sentence whose second comma is at ``at``."""
    commas = 2
    while at < stop and commas < 9:
        at += 1
        if text[at] == _COMMA:
            commas += 1
    if at + 7 < stop:
        year, month, day = civil_date(days)
        _replace_digits(day * 10000 + month * 100 + year % 100, _WIDTH_6, text, at + 1)


@kernel
def retime_sentence(text: npt.NDArray[np.uint8], start: int, stop: int, utc_s: int) -> bool:
    """Let a recorded RMC or GGA sentence name another second: time, date (RMC) and checksum are rewritten in place, everything else stays.

    A fraction of the second becomes zero, in as many digits as it had.

    Args:
        text: ``uint8[n]``, written.
        start: Place of the sentence's ``$``.
        stop: End of the space for the sentence.
        utc_s: Whole seconds since 1970-01-01 UTC to name.

    Returns:
        False where there is no such sentence, its checksum is wrong, or it names no time: nothing was written.
    """
    checksum_at = _checksum_place(text, start, stop)
    if checksum_at < 0:
        return False
    is_rmc = text[start + 3] == 82 and text[start + 4] == 77 and text[start + 5] == 67
    is_gga = text[start + 3] == 71 and text[start + 4] == 71 and text[start + 5] == 65
    if not (is_rmc or is_gga) or text[start + 6] != _COMMA:
        return False
    at = start + 7
    of_day = utc_s % 86400
    if not _replace_digits(of_day // 3600 * 10000 + of_day // 60 % 60 * 100 + of_day % 60, _WIDTH_6, text, at):
        return False
    at += 6
    while text[at] != _COMMA and at < checksum_at:
        if _is_digit(text[at]):
            text[at] = 48
        at += 1
    if is_rmc:
        _replace_date(utc_s // 86400, text, at, checksum_at)
    checksum = 0
    for position in range(start + 1, checksum_at - 1):
        checksum ^= text[position]
    for offset in range(2):
        nibble = (checksum >> (4 - 4 * offset)) & 15
        text[checksum_at + offset] = 48 + nibble if nibble < 10 else 55 + nibble
    return True
