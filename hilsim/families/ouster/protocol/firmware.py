"""Differences between firmware versions: the footer of packets, and the shift between the rows of a picture.

Generations: 1.12 to 2.5 run on Rev 5 and Rev 6 ("aries"), 3.0 to 3.2 on Rev 7 ("bootes"). Later ones have another packet header and are not described here.
"""

import re
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from hilsim.families.ouster.protocol.profiles import HeaderKind

_VERSION = re.compile(r"(?:^|[-v])(\d+)\.(\d+)\.(\d+)")
FOOTER_CONSTANT = 0xDEAD_BEEF_0000_C0DE
"""Last eight bytes of a footer before there was a CRC."""
FOOTER_SIZE = 32
"""Bytes behind the columns of a packet that has a header; the last eight are one of ``Footer``, the others 0."""


class Firmware(NamedTuple):
    """Version of the firmware, ordered.

    Attributes:
        major: 2 for Rev 6, 3 for Rev 7.
        minor: Minor version.
        patch: Patch version.
    """

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


NEWEST = Firmware(3, 3)
"""First version that is not described here."""


class Footer(IntEnum):
    """Last eight bytes of a packet."""

    NONE = 0
    """The packet has no footer."""
    ZERO = 1
    CONSTANT = 2
    """``FOOTER_CONSTANT``, little-endian."""
    CRC = 3


CALIBRATED = Firmware(2, 1)
"""First version whose LEGACY profile has calibrated reflectivity, of 8 bits; before, 16 bits that are not calibrated (captures of 1.x, 2.0 and 2.1)."""


def find_firmware(image_rev: str) -> Firmware:
    """Version in an image's name, as ``ousteros-image-prod-aries-v2.5.2+20230714195410``.

    Raises:
        ValueError: the name has no version of three numbers.
    """
    found = _VERSION.search(image_rev)
    if found is None:
        raise ValueError(f"image_rev must have a version of three numbers, got {image_rev!r}")
    major, minor, patch = (int(number) for number in found.groups())
    return Firmware(major, minor, patch)


def footer_of(firmware: Firmware, header: HeaderKind) -> Footer:
    """Footer of a firmware's packets.

    As seen: zero in every FUSA packet (3.1) and in a STANDARD one of 2.2; the constant in 2.3 and 2.4; the CRC in 2.5 and from 3.1 on. A capture of 3.0 was
    not found: it is taken to be as 2.4, of the same time.
    """
    if header is HeaderKind.NONE:
        return Footer.NONE
    if header is HeaderKind.FUSA or firmware < Firmware(2, 3):
        return Footer.ZERO
    has_crc = firmware >= Firmware(3, 1) or Firmware(2, 5) <= firmware < Firmware(3, 0)
    return Footer.CRC if has_crc else Footer.CONSTANT


_EARLY_SHIFTS = {"OS-0": 32, "OS-1": 12, "OS-2": 6}
"""Constant that firmware before 2.4 adds at 1024 columns, by product line."""


def pixel_shifts(azimuth_deg: tuple[float, ...], columns_per_frame: int, firmware: Firmware, prod_line: str) -> tuple[int, ...]:
    """``pixel_shift_by_row``: columns by which each row is rotated to the right for a picture.

    Until firmware 2.3 a constant is added so that none is negative. It fits 14 public files; one of an OS0-32 with 2.2 has two columns more.
    """
    early = _EARLY_SHIFTS.get(prod_line[:4], 12) * columns_per_frame // 1024 if firmware < Firmware(2, 4) else 0
    return tuple(int(shift) + early for shift in np.rint(np.array(azimuth_deg) * (columns_per_frame / 360.0)))
