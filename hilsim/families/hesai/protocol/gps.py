"""GPS packets: 512 bytes of UDP payload on port 10110, where a receiver sets the clock.

======  ====  ==================================================================================================
offset  size  field
======  ====  ==================================================================================================
0       2     FF EE
2       6     year, month, day: two digits of ASCII each, the low one first
8       6     second, minute, hour, likewise
14      4     microseconds, little-endian; of an XT 0
18      84    the receiver's sentence, of an XT 100 bytes; behind it, to byte 505, 0xDF
506     1     status in the sentence, ``A`` or ``V``
507     1     whether the clock follows the pulse
508     4     0
======  ====  ==================================================================================================

Sources: PandarQT manual page 21, Pandar128 manual page 35, PandarXT-16 manual page 39. How often a sensor sends them is not known; here once a second.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.compilation.words import store_half
from hilsim.protocols.nmea import civil_date

GPS_PORT, GPS_SIZE = 10_110, 512
XT_ROOM, ROOM = 100, 84
"""Bytes for the sentence."""
_SIZE, _SENTENCE_AT, _FILL_STOP, _FILL, _XT_ROOM = constant(GPS_SIZE), constant(18), constant(506), constant(0xDF), constant(XT_ROOM)
_ZERO, _SECOND, _DAY_S = constant(ord("0")), constant(1_000_000_000), constant(86_400)
_VALID, _VOID = constant(ord("A")), constant(ord("V"))


@kernel
def write_gps(utc_ns: int, room: int, valid: int, locked: int, sentence: npt.NDArray[np.uint8], size: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write a GPS packet.

    Args:
        utc_ns: Time since 1970.
        room: Bytes for the sentence.
        valid: Status in the sentence.
        locked: Whether the clock follows the pulse.
        sentence: ``uint8[>= size]``, the sentence.
        size: Its bytes, 0 without a receiver.
        payload: ``uint8[>= 512]``, written.
    """
    second = utc_ns // _SECOND
    year, month, day = civil_date(second // _DAY_S)
    of_day = second % _DAY_S
    payload[0], payload[1] = 0xFF, 0xEE
    for pair, value in enumerate((year % 100, month, day, of_day % 60, of_day // 60 % 60, of_day // 3600)):
        payload[2 + 2 * pair], payload[3 + 2 * pair] = _ZERO + value % 10, _ZERO + value // 10
    store_half(payload, 14, (utc_ns - second * _SECOND) // 1000 if room < _XT_ROOM else 0)
    for place in range(_SENTENCE_AT, _SIZE):
        at = place - _SENTENCE_AT
        payload[place] = 0 if at < room or place >= _FILL_STOP else _FILL
        if at < min(size, room):
            payload[place] = sentence[at]
    payload[_FILL_STOP], payload[_FILL_STOP + 1] = _VALID if valid else _VOID, 1 if locked else 0


def is_gps(payload: bytes) -> bool:
    """Whether a payload is a GPS packet."""
    return len(payload) == GPS_SIZE and payload[:2] == b"\xff\xee" and payload[118:506].count(0xDF) == 388 and payload[2:14].isdigit()
