"""Headers of packets and columns, as tables of byte offset and width in bits; all numbers are little-endian.

The packet header is 32 bytes, and unlisted bits are 0:

====================  =================  ==================  ==========================================================================
field                 STANDARD: offset,  FUSA: offset, bits  meaning
                      bits
====================  =================  ==================  ==========================================================================
packet_type           0, 16              0, 8                1 lidar, 2 IMU
frame_id              2, 16              4, 32               count of turns; STANDARD starts again after 65535, FUSA only grows
init_id               4, 24              1, 24               ``sensor_info.initialization_id``, new at each start and reinitialisation
serial                7, 40              11, 40              ``sensor_info.prod_sn`` as a number
alert_flags           12, 8              8, 8                bits 0 to 5 alert cursor, 6 the cursor overflowed, 7 alerts are active
safe_state            none               10, 8               id of the safe state
shutdown_countdown_s  16, 8              16, 8               seconds to the thermal shutdown: 30 if imminent, else 0
limiting_countdown_s  17, 8              17, 8               seconds to shot limiting
thermal_shutdown      18, 4              18, 4               0 normal, 1 imminent
shot_limiting         19, 4              19, 4               0 normal, 1 imminent, 2 to 9 reduction of 0 to 10, 10 to 20 … 70 to 75 %
====================  =================  ==================  ==========================================================================

A column begins with these fields, and its pixels follow:

===============  ================  ==============================================  ======================================================
field            offset, bits      without packet header: offset, bits             meaning
===============  ================  ==============================================  ======================================================
timestamp_ns     0, 64             0, 64                                           time of the column
measurement_id   8, 16             8, 16                                           number of the column within the turn
status           10, 16            4 bytes from the column's end, 32               bit 0: valid (``VALID_STATUS``, ``LEGACY_VALID_STATUS``)
encoder_count    none              12, 32                                          encoder's position, 0 to 90111
frame_id         none              10, 16                                          the packet's frame id
===============  ================  ==============================================  ======================================================

Sources: ouster-sdk 1.0.1 (ouster_core/src/parsing.cpp), Ouster's firmware user manual, "lidar data" (alerts, countdowns), and public captures.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.profiles import HeaderKind

LIDAR_PACKET, IMU_PACKET = 1, 2
"""Packet types."""
PACKET_HEADER_SIZE = 32
VALID_STATUS, LEGACY_VALID_STATUS = 0x0001, 0xFFFF_FFFF
ENCODER_COUNTS = 90_112
"""Encoder counts a turn; source: OS1 manual of firmware 2.0, and captures."""


class HeaderField(IntEnum):
    """Columns of a kernel's ``header``."""

    PACKET_TYPE = 0
    FRAME_ID = 1
    INIT_ID = 2
    SERIAL = 3
    ALERT_FLAGS = 4
    SAFE_STATE = 5
    SHUTDOWN_COUNTDOWN_S = 6
    LIMITING_COUNTDOWN_S = 7
    THERMAL_SHUTDOWN = 8
    SHOT_LIMITING = 9


class ColumnField(IntEnum):
    """Columns of a kernel's ``columns``; a column's frame id is that of ``header``."""

    TIMESTAMP_NS = 0
    MEASUREMENT_ID = 1
    STATUS = 2
    ENCODER_COUNT = 3


class FieldPlace(NamedTuple):
    """Position of a field: byte offset and width in bits."""

    offset: int
    bits: int


class ColumnLayout(NamedTuple):
    """Form of a column.

    Attributes:
        header_size: Bytes before the pixels.
        footer_size: Bytes behind the pixels.
        fields: Places of the fields that it has; a negative offset counts from the column's end.
        frame_id: Place of the frame id, or None.
        valid_status: Status of a valid column.
    """

    header_size: int
    footer_size: int
    fields: Mapping[ColumnField, FieldPlace]
    frame_id: FieldPlace | None
    valid_status: int


_H = HeaderField
_COMMON = {
    _H.SHUTDOWN_COUNTDOWN_S: FieldPlace(16, 8),
    _H.LIMITING_COUNTDOWN_S: FieldPlace(17, 8),
    _H.THERMAL_SHUTDOWN: FieldPlace(18, 4),
    _H.SHOT_LIMITING: FieldPlace(19, 4),
}
HEADERS: Mapping[HeaderKind, Mapping[HeaderField, FieldPlace]] = MappingProxyType(
    {
        HeaderKind.NONE: {},
        HeaderKind.STANDARD: {
            _H.PACKET_TYPE: FieldPlace(0, 16),
            _H.FRAME_ID: FieldPlace(2, 16),
            _H.INIT_ID: FieldPlace(4, 24),
            _H.SERIAL: FieldPlace(7, 40),
            _H.ALERT_FLAGS: FieldPlace(12, 8),
            **_COMMON,
        },
        HeaderKind.FUSA: {
            _H.PACKET_TYPE: FieldPlace(0, 8),
            _H.INIT_ID: FieldPlace(1, 24),
            _H.FRAME_ID: FieldPlace(4, 32),
            _H.ALERT_FLAGS: FieldPlace(8, 8),
            _H.SAFE_STATE: FieldPlace(10, 8),
            _H.SERIAL: FieldPlace(11, 40),
            **_COMMON,
        },
    }
)

_C = ColumnField
_COLUMN = ColumnLayout(
    header_size=12,
    footer_size=0,
    fields={_C.TIMESTAMP_NS: FieldPlace(0, 64), _C.MEASUREMENT_ID: FieldPlace(8, 16), _C.STATUS: FieldPlace(10, 16)},
    frame_id=None,
    valid_status=VALID_STATUS,
)
_LEGACY_COLUMN = ColumnLayout(
    header_size=16,
    footer_size=4,
    fields={
        _C.TIMESTAMP_NS: FieldPlace(0, 64),
        _C.MEASUREMENT_ID: FieldPlace(8, 16),
        _C.ENCODER_COUNT: FieldPlace(12, 32),
        _C.STATUS: FieldPlace(-4, 32),
    },
    frame_id=FieldPlace(10, 16),
    valid_status=LEGACY_VALID_STATUS,
)
COLUMNS: Mapping[HeaderKind, ColumnLayout] = MappingProxyType(
    {HeaderKind.NONE: _LEGACY_COLUMN, HeaderKind.STANDARD: _COLUMN, HeaderKind.FUSA: _COLUMN}
)

_TYPES = {8: "u1", 16: "<u2", 32: "<u4", 64: "<u8"}


def _type_for(bits: int) -> str:
    return next(name for width, name in _TYPES.items() if bits <= width)


HEADER_DTYPE = np.dtype(
    [(field.name.lower(), _type_for(max(places[field].bits for places in HEADERS.values() if field in places))) for field in HeaderField]
)
COLUMN_DTYPE = np.dtype([("timestamp_ns", "<u8"), ("measurement_id", "<u2"), ("status", "<u4"), ("encoder_count", "<u4")])


def field_values(records: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """``int64[..., fields]`` for the kernels, from records of ``HEADER_DTYPE`` or ``COLUMN_DTYPE``."""
    return np.stack([records[name].astype(np.int64) for name in records.dtype.names or ()], axis=-1)


def place_rows(fields: type[IntEnum], places: Mapping[Any, FieldPlace], size: int) -> npt.NDArray[np.int64]:
    """Table for the kernels.

    Args:
        fields: Names of the rows.
        places: Places of those that there are.
        size: Bytes of what negative offsets count from.

    Returns:
        ``int64[fields, 2]``: byte offset and bits; 0 bits of a field that is not there.
    """
    rows = np.zeros((len(fields), 2), np.int64)
    for field, place in places.items():
        rows[field] = place.offset % size, place.bits
    return rows
