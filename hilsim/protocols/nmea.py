"""The $GPRMC sentence, formatted without Python objects so that the sensor's own thread can write it.

Widths are those a real VLP-16's receiver sent (public capture ``sample_velodyne_vlp16_gps.pcap``)::

    $GPRMC,081802.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,210116,0.0,E,A*2E<CR><LF>

Fields: NMEA 0183 recommended minimum data: UTC hhmmss.ss, status, latitude, longitude, speed in knots, course, date ddmmyy, magnetic variation,
mode (since NMEA 2.3). Checksum: exclusive or of the bytes between ``$`` and ``*``.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel

GPRMC_CAPACITY = 96
SENTENCE_CAPACITY = 128
"""Longest sentence of a receiver outside, in bytes."""
_WIDTH_1, _WIDTH_2, _WIDTH_3, _WIDTH_7 = (constant(width) for width in (1, 2, 3, 7))
_LATITUDE_WIDTH, _LONGITUDE_WIDTH = constant(2), constant(3)
_DOT, _COMMA, _STAR, _RETURN, _FEED = (constant(ord(character)) for character in ".,*\r\n")
_KNOTS_PER_MPS = 3600.0 / 1852.0


@kernel
def write_digits(value: int, width: int, out: npt.NDArray[np.uint8], at: int) -> int:
    """Write ``value`` in ``width`` decimal digits with leading zeros; returns the next position."""
    for place in range(width):
        out[at + width - 1 - place] = 48 + value % 10
        value //= 10
    return at + width


@kernel
def _variable_digits(value: int, out: npt.NDArray[np.uint8], at: int) -> int:
    """Write ``value`` in as many digits as it needs."""
    width = 1
    rest = value // 10
    while rest > 0:
        width += 1
        rest //= 10
    return write_digits(value, width, out, at)


@kernel
def _byte(character: int, out: npt.NDArray[np.uint8], at: int) -> int:
    out[at] = character
    return at + 1


@kernel
def civil_date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days since 1970-01-01 (proleptic Gregorian calendar)."""
    shifted = days + 719468
    era = shifted // 146097
    day_of_era = shifted - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_index + 2) // 5 + 1
    month = month_index + 3 if month_index < 10 else month_index - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    return year, month, day


@kernel
def _angle(degrees: float, degree_width: int, out: npt.NDArray[np.uint8], at: int) -> int:
    """Write |degrees| as (d)ddmm.mmmmmmm."""
    units = int(np.round(abs(degrees) * 60.0 * 1e7))
    whole = units // 600_000_000
    at = write_digits(whole, degree_width, out, at)
    minutes = units - whole * 600_000_000
    at = write_digits(minutes // 10_000_000, _WIDTH_2, out, at)
    at = _byte(_DOT, out, at)
    return write_digits(minutes % 10_000_000, _WIDTH_7, out, at)


@stage_kernel
def write_gprmc(
    utc_s: int,
    valid: bool,  # noqa: FBT001 - a kernel takes plain positional scalars
    latitude_deg: float,
    longitude_deg: float,
    speed_mps: float,
    course_deg: float,
    out: npt.NDArray[np.uint8],
) -> int:
    """Write a $GPRMC sentence with checksum and CR LF; returns its size in bytes (at most ``GPRMC_CAPACITY``).

    Args:
        utc_s: Whole seconds since 1970-01-01 UTC that the sentence names.
        valid: Receiver status A (valid) or V.
        latitude_deg: -90..90, north positive.
        longitude_deg: -180..180, east positive.
        speed_mps: Over ground.
        course_deg: Over ground, clockwise from north, 0..360.
        out: ``uint8[>= GPRMC_CAPACITY]``, written.
    """
    at = 0
    for character in (36, 71, 80, 82, 77, 67, 44):  # $GPRMC,
        at = _byte(character, out, at)
    of_day = utc_s % 86400
    at = write_digits(of_day // 3600, _WIDTH_2, out, at)
    at = write_digits(of_day // 60 % 60, _WIDTH_2, out, at)
    at = write_digits(of_day % 60, _WIDTH_2, out, at)
    for character in (46, 48, 48, 44):  # .00,
        at = _byte(character, out, at)
    at = _byte(65 if valid else 86, out, at)
    at = _byte(_COMMA, out, at)
    at = _angle(latitude_deg, _LATITUDE_WIDTH, out, at)
    at = _byte(_COMMA, out, at)
    at = _byte(78 if latitude_deg >= 0.0 else 83, out, at)
    at = _byte(_COMMA, out, at)
    at = _angle(longitude_deg, _LONGITUDE_WIDTH, out, at)
    at = _byte(_COMMA, out, at)
    at = _byte(69 if longitude_deg >= 0.0 else 87, out, at)
    at = _byte(_COMMA, out, at)
    knots = int(np.round(speed_mps * _KNOTS_PER_MPS * 1000.0))
    at = _variable_digits(knots // 1000, out, at)
    at = _byte(_DOT, out, at)
    at = write_digits(knots % 1000, _WIDTH_3, out, at)
    at = _byte(_COMMA, out, at)
    course = int(np.round(course_deg * 10.0)) % 3600
    at = _variable_digits(course // 10, out, at)
    at = _byte(_DOT, out, at)
    at = write_digits(course % 10, _WIDTH_1, out, at)
    at = _byte(_COMMA, out, at)
    year, month, day = civil_date(utc_s // 86400)
    at = write_digits(day, _WIDTH_2, out, at)
    at = write_digits(month, _WIDTH_2, out, at)
    at = write_digits(year % 100, _WIDTH_2, out, at)
    for character in (44, 48, 46, 48, 44, 69, 44):  # ,0.0,E,
        at = _byte(character, out, at)
    at = _byte(65 if valid else 78, out, at)  # mode A autonomous, N not valid
    checksum = 0
    for position in range(1, at):
        checksum ^= out[position]
    at = _byte(_STAR, out, at)
    for nibble in (checksum >> 4, checksum & 15):
        at = _byte(48 + nibble if nibble < 10 else 55 + nibble, out, at)
    at = _byte(_RETURN, out, at)
    return _byte(_FEED, out, at)
