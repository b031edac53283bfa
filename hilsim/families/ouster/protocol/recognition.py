"""Recognition of Ouster's packets by their bytes, and the profiles that a packet's size allows.

A lidar packet without metadata states neither its profile nor its channels: 8448 bytes are 32 channels with two returns of the 16-byte pixel, or 128 channels
of the low data rate. Its columns lie at the same bytes in both cases, because there are always 16 of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hilsim.families.ouster.protocol.headers import COLUMNS, HEADERS, IMU_PACKET, LIDAR_PACKET, PACKET_HEADER_SIZE, HeaderField
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, PAYLOAD_MAX, PROFILES, HeaderKind

CHANNELS = (16, 32, 64, 128)
"""Channels of the units that these profiles are known of."""
_FOOTER_SIZE = 32
_ID_PAIRS = ((0, 1), (7, 8), (14, 15))
_IMU_SIZE, _LATEST_NS, _MAX_NS = 48, 1 << 61, 1_000_000_000
_MAX_G, _MAX_DPS = 40.0, 5000.0
_FIRST_MEASUREMENT, _MEASUREMENT_SIZE, _MAX_MEASUREMENTS = 132, 36, 64


class Fit(NamedTuple):
    """Profile and channels that a packet's size allows.

    Attributes:
        profile: Name of the profile.
        channels: Beams.
    """

    profile: str
    channels: int


class Form(NamedTuple):
    """Places of the columns in lidar packets of one size.

    Attributes:
        has_header: Whether there are packet header and footer.
        first_column: Byte at which column 0 begins.
        column_size: Bytes a column.
        fits: Profiles and channels of that size.
    """

    has_header: bool
    first_column: int
    column_size: int
    fits: tuple[Fit, ...]


def _forms() -> Mapping[int, Form]:
    forms: dict[int, Form] = {}
    for profile in PROFILES.values():
        has_header = profile.header is not HeaderKind.NONE
        column = COLUMNS[profile.header]
        for channels in CHANNELS:
            column_size = column.header_size + channels * profile.pixel_size + column.footer_size
            size = COLUMNS_PER_PACKET * column_size + has_header * (PACKET_HEADER_SIZE + _FOOTER_SIZE)
            if size <= PAYLOAD_MAX:
                former = forms.get(size, Form(has_header, has_header * PACKET_HEADER_SIZE, column_size, ()))
                forms[size] = former._replace(fits=(*former.fits, Fit(profile.name, channels)))
    return MappingProxyType(forms)


FORMS = _forms()
"""Forms of lidar packets by their size in bytes."""


def is_lidar_packet(payload: bytes) -> bool:
    """Whether a payload is a lidar packet: a known size, type 1 where there is a packet header, and measurement ids that count.

    Of three pairs of neighbouring columns, two must count, so that a packet with one wrong id is recognised too.
    """
    form = FORMS.get(len(payload))
    if form is None or (form.has_header and payload[0] != LIDAR_PACKET):
        return False
    start, size = form.first_column + 8, form.column_size
    ids = ((_word(payload, start + size * first), _word(payload, start + size * second)) for first, second in _ID_PAIRS)
    return sum(second == first + 1 for first, second in ids) >= len(_ID_PAIRS) - 1


def is_imu_packet(payload: bytes) -> bool:
    """Whether a payload is an IMU packet of either form."""
    if len(payload) == _IMU_SIZE:
        return _is_legacy_imu(payload)
    count, rest = divmod(len(payload) - _FIRST_MEASUREMENT - _FOOTER_SIZE, _MEASUREMENT_SIZE)
    if rest or not 1 <= count <= _MAX_MEASUREMENTS or payload[0] != IMU_PACKET or any(payload[125:_FIRST_MEASUREMENT]):
        return False
    return all(_word(payload, _FIRST_MEASUREMENT + number * _MEASUREMENT_SIZE + 10) <= 1 for number in range(count))


def _is_legacy_imu(payload: bytes) -> bool:
    """Whether 48 bytes are times within a second of each other and possible values: an NTP packet, of the same size, has neither."""
    diagnostic_ns, accelerometer_ns, gyroscope_ns = (int.from_bytes(payload[at : at + 8], "little") for at in (0, 8, 16))
    if not (0 < accelerometer_ns < _LATEST_NS and diagnostic_ns < _LATEST_NS) or abs(gyroscope_ns - accelerometer_ns) > _MAX_NS:
        return False
    values = np.abs(np.frombuffer(payload, "<f4", offset=24))
    return bool((values[:3] <= _MAX_G).all() and (values[3:] <= _MAX_DPS).all())


def _word(payload: bytes, at: int) -> int:
    return payload[at] | payload[at + 1] << 8


def header_kind(payload: bytes) -> HeaderKind:
    """Kind of the packet header of a lidar packet, or of an IMU packet with one, by its bytes.

    The type has 16 bits in a STANDARD header and 8 in a FUSA header, where the initialisation id follows. Where that id's lowest byte is 0, the last bytes of
    the serial number decide, at which a STANDARD header is 0.
    """
    form = FORMS.get(len(payload))
    if len(payload) == _IMU_SIZE or (form is not None and not form.has_header):
        return HeaderKind.NONE
    return HeaderKind.FUSA if payload[1] or (payload[14] and payload[15]) else HeaderKind.STANDARD


def read_header_field(payload: bytes, kind: HeaderKind, field: HeaderField) -> int:
    """Value of a field of whole bytes of a packet header; 0 where there is none."""
    place = HEADERS[kind].get(field)
    return 0 if place is None else int.from_bytes(payload[place.offset : place.offset + place.bits // 8], "little")


def fits_of(size: int, kind: HeaderKind) -> tuple[Fit, ...]:
    """Profiles and channels that a lidar packet of a size and a header allows; firmware 3.2 has each profile with either header."""
    form = FORMS.get(size)
    if form is None:
        return ()
    own = tuple(fit for fit in form.fits if PROFILES[fit.profile].header is kind)
    return own or form.fits


def describe_fits(size: int, kind: HeaderKind) -> str:
    """Text of the profiles and channels that a lidar packet allows, and of the file that decides between them."""
    names = [f"{fit.profile} with {fit.channels} channels" for fit in fits_of(size, kind)]
    return f"{size} bytes fit {' or '.join(names)}: give the sensor's metadata (JSON)"
