"""Recorded Ouster packets with other times and frame ids: columns' stamps, IMU times, and the CRC made anew; every other byte stays.

All times of a packet move by the same number of nanoseconds, a multiple of 40, so that stamps stay on the firmware's grid of 8 or 10 ns.
"""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed
from hilsim.families.ouster.protocol.crc import CRC_SIZE, write_crc
from hilsim.families.ouster.protocol.firmware import FOOTER_CONSTANT, FOOTER_SIZE
from hilsim.families.ouster.protocol.headers import COLUMNS, HEADERS, PACKET_HEADER_SIZE, HeaderField, Place
from hilsim.families.ouster.protocol.imu import IMU_PACKET_SIZE, MEASUREMENT_SIZE
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS, LEGACY_SIZES, header_kind, read_header_field

_COLUMNS = constant(COLUMNS_PER_PACKET)
_HEADER, _FOOTER, _CRC = constant(PACKET_HEADER_SIZE), constant(FOOTER_SIZE), constant(CRC_SIZE)
_CONSTANT = constant(FOOTER_CONSTANT - (1 << 64))
_GRID_NS = constant(40)
_LEGACY_IMU, _LEGACY_IMU_TIMES, _ACCELEROMETER_AT = constant(IMU_PACKET_SIZE), constant(3), constant(8)
_NMEA_TIME_AT, _FIRST_AT, _MEASUREMENT = constant(32), constant(132), constant(MEASUREMENT_SIZE)
_FIRST_MEASUREMENT = 132


@kernel
def _read_ns(payload: npt.NDArray[np.uint8], at: int) -> int:
    value: int = signed(payload[at])
    for byte in range(1, 8):
        value |= signed(payload[at + byte]) << (8 * byte)
    return value


@kernel
def _move(payload: npt.NDArray[np.uint8], at: int, by_ns: int) -> None:
    value = _read_ns(payload, at) + by_ns
    for byte in range(8):
        payload[at + byte] = (value >> (8 * byte)) & 0xFF


@kernel
def _difference_ns(shown_ns: int, recorded_ns: int) -> int:
    """Time by which stamps move, a multiple of the grid."""
    by_ns = shown_ns - recorded_ns
    return by_ns - by_ns % _GRID_NS


@kernel
def _renew_footer(payload: npt.NDArray[np.uint8]) -> None:
    """Make the CRC anew, where the packet has one: a footer of zero or of the constant of early firmware stays."""
    at = payload.size - _CRC
    footer = _read_ns(payload, at)
    if footer not in (0, _CONSTANT):
        write_crc(payload, at)


@kernel
def retime_lidar(payload: npt.NDArray[np.uint8], shown_ns: int) -> None:
    """Move the columns' stamps of a lidar packet ``uint8[size]`` in place; ``shown_ns`` is the new stamp of the first column, to 40 ns."""
    has_header = payload.size not in LEGACY_SIZES
    first = _HEADER if has_header else 0
    column_size = (payload.size - (_HEADER + _FOOTER if has_header else 0)) // _COLUMNS
    by_ns = _difference_ns(shown_ns, _read_ns(payload, first))
    for column in range(_COLUMNS):
        _move(payload, first + column * column_size, by_ns)
    if has_header:
        _renew_footer(payload)


@kernel
def retime_imu(payload: npt.NDArray[np.uint8], shown_ns: int) -> None:
    """Move the times of an IMU packet ``uint8[size]`` in place; ``shown_ns`` is the new time of the accelerometer's reading (LEGACY) or of the first measurement."""
    if payload.size == _LEGACY_IMU:
        by_ns = _difference_ns(shown_ns, _read_ns(payload, _ACCELEROMETER_AT))
        for field in range(_LEGACY_IMU_TIMES):
            _move(payload, 8 * field, by_ns)
        return
    by_ns = _difference_ns(shown_ns, _read_ns(payload, _FIRST_AT))
    if _read_ns(payload, _NMEA_TIME_AT) != 0:
        _move(payload, _NMEA_TIME_AT, by_ns)
    for number in range((payload.size - _FIRST_AT - _FOOTER) // _MEASUREMENT):
        _move(payload, _FIRST_AT + number * _MEASUREMENT, by_ns)
    _renew_footer(payload)


def stamp_place(payload: bytes) -> int:
    """Byte of the time that a packet is placed by: the first column's stamp, the accelerometer's reading, or the first measurement's."""
    form = FORMS.get(len(payload))
    if form is not None and (not form.has_header or payload[0] == 1):
        return form.first_column
    return 8 if len(payload) == IMU_PACKET_SIZE else _FIRST_MEASUREMENT


def _frame_places(payload: bytes) -> tuple[HeaderKind, tuple[Place, ...]]:
    """Header and places of the frame id: one, or in LEGACY one a column."""
    kind = header_kind(payload)
    place = HEADERS[kind].get(HeaderField.FRAME_ID)
    if place is not None:
        return kind, (place,)
    own, form = COLUMNS[HeaderKind.NONE].frame_id, FORMS.get(len(payload))
    if own is None or form is None:
        return kind, ()
    return kind, tuple(Place(form.first_column + column * form.column_size + own.offset, own.bits) for column in range(COLUMNS_PER_PACKET))


def frame_of(payload: bytes) -> tuple[int, int, int] | None:
    """Serial number (0 without packet header), frame id and first measurement id of a packet; None where a packet has no frame id (LEGACY IMU)."""
    kind, places = _frame_places(payload)
    if not places:
        return None
    at, bits = places[0]
    measurement_at = stamp_place(payload) + 8
    measured = int.from_bytes(payload[measurement_at : measurement_at + 2], "little")
    return read_header_field(payload, kind, HeaderField.SERIAL), int.from_bytes(payload[at : at + bits // 8], "little"), measured


def with_frame_id(payload: bytes, frame_id: int) -> bytes:
    """The packet with another frame id, modulo the count of frame ids; its CRC is not made anew."""
    _, places = _frame_places(payload)
    changed = bytearray(payload)
    for at, bits in places:
        changed[at : at + bits // 8] = (frame_id % (1 << bits)).to_bytes(bits // 8, "little")
    return bytes(changed)
