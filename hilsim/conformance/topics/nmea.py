"""The NMEA sentence in a position packet."""

import re

import numpy as np

from hilsim.conformance.blocks import PositionBlock
from hilsim.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.packets.velodyne_position import NMEA_OFFSET, NMEA_SIZE, PpsState

_PAGES = "manuals 63-9243 page 41 and 63-9325 page 41"
SENTENCE = Rule(
    id="nmea.sentence",
    severity=Severity.ERROR,
    holds="the area is empty or begins with $GPRMC or $GPGGA, in printable characters",
    source=f"{_PAGES}; HDL-32E manual page 7",
)
CHECKSUM = Rule(
    id="nmea.checksum",
    severity=Severity.ERROR,
    holds="* and two hexadecimal digits give the exclusive or of the characters before",
    source="NMEA 0183",
)
ENDING = Rule(id="nmea.ending", severity=Severity.ERROR, holds="the sentence ends with CR LF", source=f"{_PAGES}; two public captures")
PADDING = Rule(id="nmea.padding", severity=Severity.ERROR, holds="only zeros follow the sentence", source="manual 63-9243 page 60; public captures")
FIELDS = Rule(
    id="nmea.fields",
    severity=Severity.ERROR,
    holds="$GPRMC has a time, status A or V, a position, speed, course and date where they belong",
    source="NMEA 0183; public captures",
)
TIME = Rule(
    id="nmea.time",
    severity=Severity.WARNING,
    holds="with PPS locked and a valid sentence the stamp is in the second the sentence names or the next one",
    source="manual 63-9243 page 124; field measurement of 70.9 ms lag",
)
RULES = (SENTENCE, CHECKSUM, ENDING, PADDING, FIELDS, TIME)

_TIME = r"(?:[01]\d|2[0-3])([0-5]\d)([0-5]\d)(?:\.\d{1,3})?"
_RMC = re.compile(
    rf"\$GPRMC,{_TIME},([AV]),(?:\d{{4}}\.\d+)?,[NS]?,(?:\d{{5}}\.\d+)?,[EW]?,\d*\.?\d*,\d*\.?\d*,"
    r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d\d,\d*\.?\d*,[EW]?(?:,[ADENS])?"
)
_GGA = re.compile(rf"\$GPGGA,{_TIME},(?:\d{{4}}\.\d+)?,[NS]?,(?:\d{{5}}\.\d+)?,[EW]?,[0-8],.*")


class NmeaTopic:
    """Sentences; each distinct one is parsed once."""

    def __init__(self) -> None:
        self.sentences = 0
        self._last: bytes | None = None
        self._seconds: int | None = None  # past the hour, of a valid last sentence

    def look(self, block: PositionBlock, log: FindingLog) -> None:
        """Judge one block."""
        for row, area in enumerate(block.packets["nmea"]):
            raw = area.tobytes()
            if raw != self._last:
                self._last = raw
                self._seconds = self._parse(raw, block.place(row, NMEA_OFFSET), log) if any(raw) else None
            if self._seconds is not None and block.packets["pps"][row] == PpsState.LOCKED:
                ahead_s = (int(block.stamp_us[row]) // 1_000_000 - self._seconds + 1800) % 3600 - 1800
                if not 0 <= ahead_s <= 1:
                    log.tell(TIME, f"the stamp must be in the sentence's second or the next, got {ahead_s:+d} s", block.place(row, 198))

    def _parse(self, raw: bytes, place: Place, log: FindingLog) -> int | None:
        """Report what is wrong with one sentence; seconds past the hour where it is a valid position."""
        self.sentences += 1
        text, ending, padding = _cut(raw)
        if not text.startswith((b"$GPRMC,", b"$GPGGA,")) or any(not 32 <= byte < 127 for byte in text):
            log.tell(SENTENCE, f"a sentence must begin with $GPRMC or $GPGGA, got {text[:16]!r}", place)
            return None
        if ending != b"\r\n":
            log.tell(ENDING, f"the sentence must end with CR LF, got {ending!r}", place._replace(byte_offset=NMEA_OFFSET + len(text)))
        if any(padding):
            first = NMEA_SIZE - len(padding) + int(np.flatnonzero(np.frombuffer(padding, dtype=np.uint8))[0])
            log.tell(
                PADDING,
                f"zeros must follow the sentence, got {raw[first]} at byte {NMEA_OFFSET + first}",
                place._replace(byte_offset=NMEA_OFFSET + first),
            )
        body, star, digits = text.partition(b"*")
        checksum = int(np.bitwise_xor.reduce(np.frombuffer(body[1:], dtype=np.uint8)))
        if not star or digits.upper() != b"%02X" % checksum:
            log.tell(CHECKSUM, f"the checksum must be {checksum:02X}, got {digits.decode('ascii') or 'none'}", place)
        match = (_RMC if body.startswith(b"$GPRMC") else _GGA).fullmatch(body.decode("ascii"))
        if match is None:
            log.tell(FIELDS, f"the fields must be those of the sentence, got {body.decode('ascii')}", place)
            return None
        is_valid = match.re is _GGA or match[3] == "A"
        return 60 * int(match[1]) + int(match[2]) if is_valid else None

    def conclude(self, log: FindingLog) -> None:
        """Nothing is left to say."""


def _cut(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Sentence, line ending and what follows."""
    end = min((at for at in (raw.find(b"\r"), raw.find(b"\n"), raw.find(b"\x00")) if at >= 0), default=len(raw))
    stop = end
    while stop < len(raw) and stop < end + 2 and raw[stop] in b"\r\n":
        stop += 1
    return raw[:end], raw[end:stop], raw[stop:]
