"""Rules for the NMEA sentence in a position packet."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from hilsim.families.velodyne.conformance.blocks import PositionBlock
from hilsim.families.velodyne.protocol.position import NMEA_OFFSET, NMEA_SIZE
from hilsim.families.velodyne.protocol.steps import wrapped_us
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.sensor.specs import PpsState
from hilsim.units import NS_PER_S

SENTENCE = Rule(id="nmea.sentence", severity=Severity.ERROR)
CHECKSUM = Rule(id="nmea.checksum", severity=Severity.ERROR)
ENDING = Rule(id="nmea.ending", severity=Severity.ERROR)
PADDING = Rule(id="nmea.padding", severity=Severity.ERROR)
FIELDS = Rule(id="nmea.fields", severity=Severity.ERROR)
VALUES = Rule(id="nmea.values", severity=Severity.ERROR)
TIME = Rule(id="nmea.time", severity=Severity.ERROR)
ADVANCE = Rule(id="nmea.advance", severity=Severity.ERROR, packets=2)
HOUR = Rule(id="nmea.hour", severity=Severity.WARNING)

_TIME = r"(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?P<second>[0-5]\d)(?:\.\d{1,3})?"
_PLACE = r"(?P<latitude>\d{4}\.\d+)?,[NS]?,(?P<longitude>\d{5}\.\d+)?,[EW]?"
_RMC = re.compile(
    rf"\$GPRMC,{_TIME},(?P<status>[AV]),{_PLACE},(?P<speed>\d*\.?\d*),(?P<course>\d*\.?\d*),"
    r"(?P<date>(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d\d),\d*\.?\d*,[EW]?(?:,[ADENS])?"
)
_GGA = re.compile(rf"\$GPGGA,{_TIME},{_PLACE},(?P<status>[0-8]),.*")
_FASTEST_KNOTS = 1000.0
_DAY_S, _HOUR_S = 86_400, 3_600
_LARGEST_ZONE_S = 14 * _HOUR_S
_NEAR_S = 120
_OFF_S = (_DAY_S, 1024 * 7 * _DAY_S)
_MAX_ADVANCE_S = 2.0
_LONGEST_STEP_US = 60_000_000  # between position packets: after a longer time, the receiver may be another one


class _TimeOfSentence(NamedTuple):
    """Time in a valid sentence.

    Attributes:
        day_s: Seconds past midnight.
        utc_s: UTC, or None if the sentence has no date.
    """

    day_s: int
    utc_s: int | None


class NmeaTopic:
    """Sentences of one sensor; each distinct one is parsed once."""

    def __init__(self) -> None:
        self.sentences = 0
        self._last: bytes | None = None
        self._time: _TimeOfSentence | None = None
        self._locked_before: tuple[_TimeOfSentence, int] | None = None  # the last new sentence in lock, and the running time at that moment
        self._running_us = 0  # running time by the stamps
        self._last_us: int | None = None
        self._hours: Counter[int | None] = Counter()

    def look(self, block: PositionBlock, log: FindingLog) -> None:
        """Judge one block."""
        for row, area in enumerate(block.packets["nmea"]):
            stamp_us = int(block.stamp_us[row])
            self._run_on(stamp_us)
            raw = area.tobytes()
            is_new = raw != self._last
            if is_new:
                self._last = raw
                self._time = self._parse(raw, block.place(row, NMEA_OFFSET), log) if any(raw) else None
                self._compare_host(int(block.host_stamp_ns[row]))
            if self._time is None or block.packets["pps"][row] != PpsState.LOCKED:
                self._locked_before = None
                continue
            if is_new:
                self._check_advance(self._time, block.place(row, NMEA_OFFSET), log)
            ahead_s = (stamp_us // 1_000_000 - self._time.day_s % _HOUR_S + 1800) % _HOUR_S - 1800
            if not 0 <= ahead_s <= 1:
                message = f"the stamp must be in the sentence's second or the next, got {ahead_s:+d} s"
                log.report(TIME, message, block.place(row, 198), severity=Severity.WARNING if -1 <= ahead_s <= 2 else None)

    def _run_on(self, stamp_us: int) -> None:
        step_us = 0 if self._last_us is None else wrapped_us(stamp_us - self._last_us)
        self._last_us = stamp_us
        self._running_us += step_us
        if abs(step_us) > _LONGEST_STEP_US:
            self._locked_before = None

    def _check_advance(self, sentence: _TimeOfSentence, place: Place, log: FindingLog) -> None:
        if self._locked_before is not None:
            before, running_us = self._locked_before
            by_stamps_s = (self._running_us - running_us) / 1e6
            if sentence.utc_s is not None and before.utc_s is not None:
                by_sentence_s = sentence.utc_s - before.utc_s
            else:
                by_sentence_s = (sentence.day_s - before.day_s + _DAY_S // 2) % _DAY_S - _DAY_S // 2
            if abs(by_sentence_s - by_stamps_s) > _MAX_ADVANCE_S:
                log.report(ADVANCE, f"sentences must advance with the stamps, got {by_sentence_s:+d} s in {by_stamps_s:.3f} s", place)
        self._locked_before = sentence, self._running_us

    def _compare_host(self, host_ns: int) -> None:
        """Record the difference of a sentence to the capture's time in hours, or None if it is not a whole number of hours."""
        if self._time is None or self._time.utc_s is None:
            return
        off_s = self._time.utc_s - host_ns // NS_PER_S
        hours = round(off_s / _HOUR_S)
        is_usual = abs(off_s) <= _LARGEST_ZONE_S + _NEAR_S or any(abs(abs(off_s) - usual_s) <= _NEAR_S for usual_s in _OFF_S)
        is_near = abs(off_s - hours * _HOUR_S) <= _NEAR_S and is_usual
        self._hours[hours if is_near else None] += 1

    def _parse(self, raw: bytes, place: Place, log: FindingLog) -> _TimeOfSentence | None:
        """Report the faults of one sentence; returns its time if it has a valid position."""
        self.sentences += 1
        text, ending, padding = _cut(raw)
        if not text.startswith((b"$GPRMC,", b"$GPGGA,")) or any(not 32 <= byte < 127 for byte in text):
            log.report(SENTENCE, f"a sentence must begin with $GPRMC or $GPGGA, got {text[:16]!r}", place)
            return None
        if ending != b"\r\n":
            log.report(ENDING, f"the sentence must end with CR LF, got {ending!r}", place.at(NMEA_OFFSET + len(text)))
        if any(padding):
            first = NMEA_SIZE - len(padding) + int(np.flatnonzero(np.frombuffer(padding, dtype=np.uint8))[0])
            log.report(PADDING, f"zeros must follow the sentence, got {raw[first]} at byte {NMEA_OFFSET + first}", place.at(NMEA_OFFSET + first))
        body, star, digits = text.partition(b"*")
        checksum = int(np.bitwise_xor.reduce(np.frombuffer(body[1:], dtype=np.uint8)))
        if not star or digits.upper() != b"%02X" % checksum:
            log.report(CHECKSUM, f"the checksum must be {checksum:02X}, got {digits.decode('ascii') or 'none'}", place)
        match = (_RMC if body.startswith(b"$GPRMC") else _GGA).fullmatch(body.decode("ascii"))
        if match is None:
            log.report(FIELDS, f"the fields must be those of the sentence, got {body.decode('ascii')}", place)
            return None
        fields = match.groupdict()
        for wrong in _impossible(fields):
            log.report(VALUES, f"{wrong}, in {body.decode('ascii')}", place)
        if fields["status"] in {"V", "0"}:  # no fix
            return None
        day_s = _HOUR_S * int(fields["hour"]) + 60 * int(fields["minute"]) + int(fields["second"])
        date = _date_of(fields.get("date"))
        return _TimeOfSentence(day_s, None if date is None else int(date.timestamp()) + day_s)

    def conclude(self, log: FindingLog) -> None:
        """Report sentences that differ from the capture's time by whole hours."""
        hours, count = self._hours.most_common(1)[0] if self._hours else (None, 0)
        if hours and count == self._hours.total():
            why = ": the receiver's week number began again" if abs(hours) * _HOUR_S == _OFF_S[1] else ""
            log.report(HOUR, f"sentences must be of the capture's hour, got {hours:+d} h in all of {count}{why}")


def _impossible(fields: dict[str, str | None]) -> Iterator[str]:
    """Yield faults of values that no receiver sends, as text."""
    for name, most_deg in (("latitude", 90), ("longitude", 180)):
        text = fields[name]
        if text:
            degrees, minutes = divmod(float(text), 100.0)
            if minutes >= 60.0 or degrees + minutes / 60.0 > most_deg:
                yield f"the {name} must be at most {most_deg} degrees with minutes below 60, got {text}"
    if float(fields.get("speed") or 0) > _FASTEST_KNOTS:
        yield f"the speed must be at most {_FASTEST_KNOTS:.0f} knots, got {fields['speed']}"
    if float(fields.get("course") or 0) > 360.0:
        yield f"the course must be at most 360 degrees, got {fields['course']}"
    if fields.get("date") and _date_of(fields["date"]) is None:
        yield f"the date must be in the calendar, got {fields['date']} (ddmmyy)"


def _date_of(text: str | None) -> datetime | None:
    """Midnight of a date ddmmyy; None without a date or for an impossible date."""
    if not text:
        return None
    try:
        return datetime(2000 + int(text[4:]), int(text[2:4]), int(text[:2]), tzinfo=UTC)
    except ValueError:
        return None


def _cut(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Sentence, line ending and the bytes after it."""
    end = min((at for at in (raw.find(b"\r"), raw.find(b"\n"), raw.find(b"\x00")) if at >= 0), default=len(raw))
    stop = end
    while stop < len(raw) and stop < end + 2 and raw[stop] in b"\r\n":
        stop += 1
    return raw[:end], raw[end:stop], raw[stop:]
