"""Replays of an Ouster: columns' stamps, IMU times, the CRC made anew, and frame ids that go on.

All times of a packet move by the same number of nanoseconds, a multiple of 40, so that stamps stay on the firmware's grid of 8 or 10 ns.
"""

from functools import cache

from hilsim.emulator.replaying import Count, CutPlace, ReplayingPart
from hilsim.emulator.retime import Retiming
from hilsim.families.ouster.protocol.firmware import FOOTER_CONSTANT, FOOTER_SIZE
from hilsim.families.ouster.protocol.headers import COLUMNS, HEADERS, LIDAR_PACKET, FieldPlace, HeaderField
from hilsim.families.ouster.protocol.imu import IMU_PACKET_SIZE, MEASUREMENT_SIZE
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS, header_kind, read_header_field
from hilsim.families.ouster.recognition import OusterKind
from hilsim.protocols.crc64 import CRC_SIZE

_STAMPS = Retiming(grid=40, not_crc=FOOTER_CONSTANT - (1 << 64))
_FIRST_MEASUREMENT = 132
_LEGACY_IMU = _STAMPS._replace(stamp_at=8, stamps=3, leading=1, stride=8)
_IMU = _STAMPS._replace(stamp_at=_FIRST_MEASUREMENT, stride=MEASUREMENT_SIZE, further_at=32)
"""Of any number of measurements; the further stamp is that of an NMEA sentence."""


@cache
def _lidar_retiming(size: int) -> Retiming:
    """Stamps of the columns of a lidar packet of a size."""
    form = FORMS[size]
    crc_at = size - CRC_SIZE if form.has_header else 0
    return _STAMPS._replace(stamp_at=form.first_column, stamps=COLUMNS_PER_PACKET, stride=form.column_size, crc_at=crc_at)


@cache
def _imu_retiming(size: int) -> Retiming:
    """Times of the measurements of an IMU packet of a size, or of both readings of a LEGACY one and of its beginning."""
    if size == IMU_PACKET_SIZE:
        return _LEGACY_IMU
    return _IMU._replace(stamps=(size - _FIRST_MEASUREMENT - FOOTER_SIZE) // MEASUREMENT_SIZE, crc_at=size - CRC_SIZE)


def _frame_places(payload: bytes) -> tuple[HeaderKind, tuple[FieldPlace, ...]]:
    """Header and places of the frame id: one, or in LEGACY one a column."""
    kind = header_kind(payload)
    place = HEADERS[kind].get(HeaderField.FRAME_ID)
    if place is not None:
        return kind, (place,)
    own, form = COLUMNS[HeaderKind.NONE].frame_id, FORMS.get(len(payload))
    if own is None or form is None:
        return kind, ()
    return kind, tuple(FieldPlace(form.first_column + column * form.column_size + own.offset, own.bits) for column in range(COLUMNS_PER_PACKET))


def _measurement_id(payload: bytes) -> int:
    """Measurement id of a packet's first column or measurement."""
    form = FORMS.get(len(payload))
    at = 8 + (form.first_column if form is not None and (not form.has_header or payload[0] == LIDAR_PACKET) else _FIRST_MEASUREMENT)
    return int.from_bytes(payload[at : at + 2], "little")


def frame_of(payload: bytes) -> Count | None:
    """Frame id and first measurement id of a packet, with its serial number (0 without packet header); None without a frame id (LEGACY IMU)."""
    kind, places = _frame_places(payload)
    if not places:
        return None
    at, bits = places[0]
    frame_id = int.from_bytes(payload[at : at + bits // 8], "little")
    return Count(frame_id, _measurement_id(payload), read_header_field(payload, kind, HeaderField.SERIAL))


def with_frame_id(payload: bytes, frame_id: int) -> bytes:
    """The packet with another frame id, modulo the count of frame ids; its CRC is not made anew."""
    _, places = _frame_places(payload)
    changed = bytearray(payload)
    for at, bits in places:
        changed[at : at + bits // 8] = (frame_id % (1 << bits)).to_bytes(bits // 8, "little")
    return bytes(changed)


PART = ReplayingPart(
    retimings={
        OusterKind.LIDAR: lambda payload: _lidar_retiming(len(payload)),
        OusterKind.IMU: lambda payload: _imu_retiming(len(payload)),
    },
    cut_places=lambda: lambda payload: (CutPlace(0, _measurement_id(payload)),),
    at_once=OusterKind.IMU,
    count=frame_of,
    counted=with_frame_id,
)
