"""Read the time from a receiver's sentence, as a sensor does: $GPRMC and $GPGGA with a right checksum; anything else names no time.

Fields: NMEA 0183. Times hhmmss with or without decimals, with or without the mode field of NMEA 2.3 (VLP-16 user manual, page 41).
"""

import re
from typing import NamedTuple

_SENTENCE = re.compile(rb"\$(GPRMC|GPGGA),([ -~]*)\*([0-9A-Fa-f]{2})\s*")
_TIME = re.compile(rb"([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])(?:\.[0-9]{0,4})?")
_ANGLE = re.compile(rb"([0-9]{2,3})([0-9]{2}\.[0-9]+|[0-9]{2})")
_PLACES = {b"GPRMC": (2, 1), b"GPGGA": (1, 5)}
"""Numbers of the latitude's field and of the status."""


class ReadSentence(NamedTuple):
    """A sentence as a sensor reads it.

    Attributes:
        of_day_s: UTC second of the day, 0 to 86,399; None: a sentence without a usable time (before a fix, or a leap second).
        is_valid: Whether the receiver says that it is valid.
        position: Latitude and longitude as the status of a sensor shows them, ``49 00.00N 200 .00W``; empty without a position.
        degrees: Latitude and longitude in degrees, north and east above 0; None without a position.
    """

    of_day_s: int | None
    is_valid: bool
    position: str
    degrees: tuple[float, float] | None = None


def read_sentence(sentence: bytes) -> ReadSentence | None:
    """Read a sentence with its line end or without; None: it is none that a sensor accepts."""
    found = _SENTENCE.fullmatch(sentence)
    if found is None:
        return None
    checksum = 0
    for byte in sentence[1 : found.start(3) - 1]:
        checksum ^= byte
    fields = found[2].split(b",")
    if checksum != int(found[3], 16) or len(fields) < 6:
        return None
    latitude_place, status_place = _PLACES[found[1]]
    status = fields[status_place]
    time = _TIME.fullmatch(fields[0])
    of_day_s = int(time[1]) * 3600 + int(time[2]) * 60 + int(time[3]) if time else None
    angles = [_shown(fields[place], fields[place + 1]) for place in (latitude_place, latitude_place + 2)]
    is_placed = all(angles)
    degrees = None
    if is_placed:
        degrees = _degrees(fields[latitude_place], fields[latitude_place + 1]), _degrees(fields[latitude_place + 2], fields[latitude_place + 3])
    return ReadSentence(of_day_s, status not in {b"V", b"0", b""}, " ".join(angles) if is_placed else "", degrees)


def _degrees(angle: bytes, side: bytes) -> float:
    whole, _, _ = angle.partition(b".")
    degrees = int(whole[:-2] or b"0") + float(angle[len(whole) - 2 :]) / 60.0
    return -degrees if side in {b"S", b"W"} else degrees


def _shown(angle: bytes, side: bytes) -> str:
    found = _ANGLE.fullmatch(angle)
    if found is None or side not in {b"N", b"S", b"E", b"W"}:
        return ""
    return f"{found[1].decode()} {float(found[2]):05.2f}{side.decode()}"
