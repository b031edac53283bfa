"""Recorded packets made to name the present: the fields that hold a time are rewritten in place, every other byte stays as it was recorded."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed
from hilsim.protocols.calendar import write_calendar
from hilsim.protocols.crc32 import crc32
from hilsim.protocols.crc64 import write_crc
from hilsim.protocols.nmea_retiming import retime_sentence
from hilsim.units import NS_PER_S

_WIDTH_4, _WIDTH_8 = constant(4), constant(8)
_SET_S, _CENTURY = constant(1_000_000_000), constant(1900)


class Retiming(NamedTuple):
    """Places of a packet's fields that name a time, in bytes; the kernel takes them as ``int64[n]``. All stamps move by one difference.

    Attributes:
        stamp_at: Stamp that names the packet's instant.
        stamps: Number of stamps; 0: it has none.
        leading: Number of those before it.
        stride: Bytes from one stamp to the next.
        width: Bytes of a stamp, little-endian.
        unit_ns: Unit of the stamps.
        wrap_ns: Time after which stamps begin again at 0; 0: never.
        grid: Units of which the difference is a multiple, rounded down.
        further_at: A further stamp, which stays where it is 0; 0: there is none.
        sentence_at: NMEA sentence, which names UTC.
        sentence_end: End of the room for it; 0: there is none.
        utc_offset_at: What to add to stamps for UTC, in 8 bytes, us, which stays where it is 0; 0: there is none.
        crc_at: CRC-64/XZ of all bytes before, which stays where it is 0 or ``not_crc``; 0: there is none.
        not_crc: Constant in place of a CRC, as a signed number.
        crc32_at: CRC-32 of the bytes behind it; 0: there is none.
        crc32_end: End of those bytes.
        calendar_at: Date and time of the second that stamps count in: year, month, day, hour, minute and second, a byte each; 0: there is none.
        calendar_years: Year from which its year counts.
        unset_s: Time since 1970 at which a clock begins that nothing sets: it is added to times before 2001.
    """

    stamp_at: int = 0
    stamps: int = 0
    leading: int = 0
    stride: int = 0
    width: int = 8
    unit_ns: int = 1
    wrap_ns: int = 0
    grid: int = 1
    further_at: int = 0
    sentence_at: int = 0
    sentence_end: int = 0
    utc_offset_at: int = 0
    crc_at: int = 0
    not_crc: int = 0
    crc32_at: int = 0
    crc32_end: int = 0
    calendar_at: int = 0
    calendar_years: int = 1900
    unset_s: int = 0

    def read_ns(self, payload: bytes) -> int | None:
        """The stamp that names a packet's instant; None where there is none."""
        return int.from_bytes(payload[self.stamp_at : self.stamp_at + self.width], "little") * self.unit_ns if self.stamps else None


NOTHING = Retiming()
(
    _STAMP_AT,
    _STAMPS,
    _LEADING,
    _STRIDE,
    _WIDTH,
    _UNIT,
    _WRAP,
    _GRID,
    _FURTHER_AT,
    _SENTENCE_AT,
    _SENTENCE_END,
    _UTC_OFFSET_AT,
    _CRC_AT,
    _NOT_CRC,
    _CRC32_AT,
    _CRC32_END,
    _CALENDAR_AT,
    _CALENDAR_YEARS,
    _UNSET_S,
) = (constant(column) for column in range(len(Retiming._fields)))


class StampClock(NamedTuple):
    """Time of the rewritten stamps.

    Attributes:
        shown_ns: Offset from rig time to the time that stamps show: UTC, or the device clock that the rig's sensors share.
        utc_ns: Offset from rig time to UTC, which NMEA sentences always show.
    """

    shown_ns: int
    utc_ns: int


@kernel
def _read(payload: npt.NDArray[np.uint8], at: int, width: int) -> int:
    value: int = signed(payload[at])
    for byte in range(1, width):
        value |= signed(payload[at + byte]) << (8 * byte)
    return value


@kernel
def _write(value: int, payload: npt.NDArray[np.uint8], at: int, width: int) -> None:
    for byte in range(width):
        payload[at + byte] = (value >> (8 * byte)) & 0xFF


@kernel
def _rewrite_calendar(retiming: npt.NDArray[np.int64], shown_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    at, second = retiming[_CALENDAR_AT], shown_ns // NS_PER_S
    if at > 0:
        write_calendar(second if second >= _SET_S else second + retiming[_UNSET_S], payload, at)
        payload[at] -= retiming[_CALENDAR_YEARS] - _CENTURY


@kernel
def retime(retiming: npt.NDArray[np.int64], clock: StampClock, stamp_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Rewrite one payload in place.

    Args:
        retiming: ``int64[n]``, a ``Retiming``.
        clock: Clock of the stamps.
        stamp_ns: Rig time of the instant the packet's stamp names (its first firing, its assembly).
        payload: ``uint8[>= packet]``, written.
    """
    if retiming[_STAMPS] > 0:
        at, width, further_at = retiming[_STAMP_AT], retiming[_WIDTH], retiming[_FURTHER_AT]
        shown_ns = clock.shown_ns + stamp_ns
        if retiming[_WRAP] > 0:
            shown_ns %= retiming[_WRAP]
        by = shown_ns // retiming[_UNIT] - _read(payload, at, width)
        by -= by % retiming[_GRID]
        at -= retiming[_LEADING] * retiming[_STRIDE]
        for _ in range(retiming[_STAMPS]):
            _write(_read(payload, at, width) + by, payload, at, width)
            at += retiming[_STRIDE]
        _rewrite_calendar(retiming, clock.shown_ns + stamp_ns, payload)
        if further_at > 0 and _read(payload, further_at, width) != 0:
            _write(_read(payload, further_at, width) + by, payload, further_at, width)
    if retiming[_SENTENCE_END] > 0:
        retime_sentence(payload, retiming[_SENTENCE_AT], retiming[_SENTENCE_END], (clock.utc_ns + stamp_ns) // NS_PER_S)
    if retiming[_UTC_OFFSET_AT] > 0 and _read(payload, retiming[_UTC_OFFSET_AT], _WIDTH_8) != 0:
        _write((clock.utc_ns - clock.shown_ns) // 1000, payload, retiming[_UTC_OFFSET_AT], _WIDTH_8)
    if retiming[_CRC_AT] > 0:
        footer = _read(payload, retiming[_CRC_AT], _WIDTH_8)
        if footer not in (0, retiming[_NOT_CRC]):
            write_crc(payload, retiming[_CRC_AT])
    if retiming[_CRC32_AT] > 0:
        at = retiming[_CRC32_AT]
        _write(crc32(payload, at + _WIDTH_4, retiming[_CRC32_END]), payload, at, _WIDTH_4)
