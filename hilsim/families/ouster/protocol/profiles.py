"""The lidar profiles: the one table of how a pixel's fields are packed. Encoding and decoding read it and know no profile's name.

A pixel is one to four little-endian words of 32 bits. A field lies at ``bit`` of a word (bit 0 is the least significant), ``width`` bits wide. One count is
``scale`` units: millimetres of a range, photon counts of near infrared.

Sources: packet formats of ouster-sdk 1.0.1 (ouster_core/src/data_format.cpp), read back by that SDK; Ouster's firmware user manual, "lidar data"; public
captures of firmware 2.2, 2.3, 2.5 and 3.1 (tests/pcaps of that repository).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import NamedTuple

from hilsim.errors import require

COLUMNS_PER_PACKET = 16
WORD_SIZE, WORD_BITS = 4, 32
PAYLOAD_MAX = 65_507
"""Largest UDP payload over IPv4."""


class FieldKind(IntEnum):
    """Quantity that a field of a pixel carries, in the order of ``pixels.Pixels``."""

    RANGE = 0
    FLAGS = 1
    REFLECTIVITY = 2
    SIGNAL = 3
    NEAR_IR = 4
    WINDOW = 5


class Overflow(IntEnum):
    """Result for a value that does not fit its field."""

    ZERO = 0
    """No return: a range beyond the largest one."""
    SATURATE = 1
    """The field's largest value."""
    MASK = 2
    """The value's lower bits: flags that the profile has."""


OVERFLOW: Mapping[FieldKind, Overflow] = MappingProxyType(
    dict.fromkeys(FieldKind, Overflow.SATURATE) | {FieldKind.RANGE: Overflow.ZERO, FieldKind.FLAGS: Overflow.MASK}
)


class HeaderKind(Enum):
    """Packet header of a profile; NONE: neither header nor footer, and columns of the older form."""

    NONE = "NONE"
    STANDARD = "STANDARD"
    FUSA = "FUSA"


class Field(NamedTuple):
    """One field of a pixel.

    Attributes:
        kind: Quantity.
        return_number: Return that it belongs to: 0 or 1; 0 of what a pixel has once.
        word: Word of the pixel.
        bit: Lowest bit within the word.
        width: Bits.
        scale: Units a count, a power of two.
    """

    kind: FieldKind
    return_number: int
    word: int
    bit: int
    width: int
    scale: int = 1

    @property
    def bit_offset(self) -> int:
        """Lowest bit within the pixel."""
        return WORD_BITS * self.word + self.bit

    @property
    def dropped_bits(self) -> int:
        """Lower bits of a value in units that the field has not."""
        return self.scale.bit_length() - 1

    @property
    def largest(self) -> int:
        """Largest value, in units."""
        return ((1 << self.width) - 1) * self.scale


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A lidar profile.

    Attributes:
        name: Its name in ``udp_profile_lidar``.
        words: Words a pixel.
        fields: Fields of a pixel, which do not overlap.
        header: Its packet header.
    """

    name: str
    words: int
    fields: tuple[Field, ...]
    header: HeaderKind = HeaderKind.STANDARD

    def __post_init__(self) -> None:
        bits = [bit for field in self.fields for bit in range(field.bit_offset, field.bit_offset + field.width)]
        require(
            (len(bits) == len(set(bits)), f"fields of {self.name} must not overlap"),
            (all(field.bit + field.width <= WORD_BITS for field in self.fields), f"fields of {self.name} must lie within a word"),
            (all(field.scale.bit_count() == 1 for field in self.fields), f"scales of {self.name} must be powers of two"),
            (max(bits) < WORD_BITS * self.words, f"fields of {self.name} must lie within {self.words} words"),
        )

    @property
    def returns(self) -> int:
        """Returns reported for each pixel."""
        return 1 + max(field.return_number for field in self.fields)

    @property
    def pixel_size(self) -> int:
        """Bytes a pixel."""
        return WORD_SIZE * self.words

    @property
    def largest_range_mm(self) -> int:
        """Largest range that it can report."""
        return next(field.largest for field in self.fields if field.kind is FieldKind.RANGE)

    def with_header(self, header: HeaderKind) -> "Profile":
        """The profile with another packet header: firmware 3.2 has a setting for it (``header_type``).

        Raises:
            ValueError: one of both headers is none.
        """
        require(
            (
                (self.header is HeaderKind.NONE) == (header is HeaderKind.NONE),
                f"header of {self.name} must be like {self.header.name}, got {header.name}",
            )
        )
        return replace(self, header=header)

    def carries(self, kind: FieldKind) -> bool:
        """Whether a pixel has that quantity."""
        return any(field.kind is kind for field in self.fields)


_KINDS = FieldKind
_RANGE, _FLAGS, _REFLECTIVITY = _KINDS.RANGE, _KINDS.FLAGS, _KINDS.REFLECTIVITY
_SIGNAL, _NEAR_IR, _WINDOW = _KINDS.SIGNAL, _KINDS.NEAR_IR, _KINDS.WINDOW

_LOW_RATE = (
    Field(_RANGE, 0, 0, 0, 15, 8),
    Field(_FLAGS, 0, 0, 15, 1),
    Field(_REFLECTIVITY, 0, 0, 16, 8),
    Field(_NEAR_IR, 0, 0, 24, 8, 16),
)
_LOW_RATE_DUAL = (
    *_LOW_RATE,
    Field(_RANGE, 1, 1, 0, 15, 8),
    Field(_FLAGS, 1, 1, 15, 1),
    Field(_REFLECTIVITY, 1, 1, 16, 8),
    Field(_WINDOW, 0, 1, 24, 8),
)

_ALL = (
    Profile(
        name="LEGACY",
        words=3,
        header=HeaderKind.NONE,
        fields=(
            Field(_RANGE, 0, 0, 0, 20),
            Field(_FLAGS, 0, 0, 28, 4),
            Field(_REFLECTIVITY, 0, 1, 0, 8),  # 16 bits before firmware 2.1: EARLY_LEGACY
            Field(_SIGNAL, 0, 1, 16, 16),
            Field(_NEAR_IR, 0, 2, 0, 16),
        ),
    ),
    Profile(
        name="RNG19_RFL8_SIG16_NIR16",
        words=3,
        fields=(
            Field(_RANGE, 0, 0, 0, 19),
            Field(_FLAGS, 0, 0, 19, 5),
            Field(_REFLECTIVITY, 0, 1, 0, 8),
            Field(_SIGNAL, 0, 1, 16, 16),
            Field(_NEAR_IR, 0, 2, 0, 16),
            Field(_WINDOW, 0, 2, 24, 8),  # here and below: since firmware 3.2, 0 before
        ),
    ),
    Profile(
        name="RNG19_RFL8_SIG16_NIR16_DUAL",
        words=4,
        fields=(
            Field(_RANGE, 0, 0, 0, 19),
            Field(_FLAGS, 0, 0, 19, 5),
            Field(_REFLECTIVITY, 0, 0, 24, 8),
            Field(_RANGE, 1, 1, 0, 19),
            Field(_FLAGS, 1, 1, 19, 5),
            Field(_REFLECTIVITY, 1, 1, 24, 8),
            Field(_SIGNAL, 0, 2, 0, 16),
            Field(_SIGNAL, 1, 2, 16, 16),
            Field(_NEAR_IR, 0, 3, 0, 16),
            Field(_WINDOW, 0, 3, 24, 8),
        ),
    ),
    Profile(name="RNG15_RFL8_NIR8", words=1, fields=_LOW_RATE),
    Profile(name="RNG15_RFL8_NIR8_DUAL", words=2, fields=_LOW_RATE_DUAL),
    Profile(name="FUSA_RNG15_RFL8_NIR8_DUAL", words=2, fields=_LOW_RATE_DUAL, header=HeaderKind.FUSA),
)
PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})
"""Profiles by ``udp_profile_lidar``."""

EARLY_LEGACY = replace(
    PROFILES["LEGACY"],
    fields=tuple(field._replace(width=16) if field.kind is _REFLECTIVITY else field for field in PROFILES["LEGACY"].fields),
)
"""LEGACY before firmware 2.1."""
