"""Fields of a packet's pixels in units, whatever the profile packs of them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, Profile


class Pixels(NamedTuple):
    """Fields of the pixels of one packet, in the order of ``FieldKind``; a decoder's arrays have the packet's number as first axis.

    A return that there is not is 0 in all fields of its own. Near infrared is of every pixel.

    Attributes:
        range_mm: ``int32[return, column, channel]``, millimetres from the beam's origin; 0: no return.
        flags: ``uint8[return, column, channel]``.
        reflectivity: ``uint8[return, column, channel]``, calibrated: to 100 percent of a Lambertian surface, above it logarithmic. Of LEGACY packets before firmware 2.1,
            whose 16 bits are not calibrated: 16 times the logarithm to base 2 of the value and 1, at most 255.
        signal: ``uint16[return, column, channel]``, photons.
        near_ir: ``uint16[1, column, channel]``, photons of ambient light.
        window: ``uint8[1, column, channel]``, since firmware 3.2.
    """

    range_mm: npt.NDArray[np.int32]
    flags: npt.NDArray[np.uint8]
    reflectivity: npt.NDArray[np.uint8]
    signal: npt.NDArray[np.uint16]
    near_ir: npt.NDArray[np.uint16]
    window: npt.NDArray[np.uint8]


_TYPES = (np.int32, np.uint8, np.uint8, np.uint16, np.uint16, np.uint8)
_PER_RETURN = (True, True, True, True, False, False)


def allocate_pixels(profile: Profile, channels: int, packets: tuple[int, ...] = ()) -> Pixels:
    """Pixels that are all 0.

    Args:
        profile: Profile, for the number of returns.
        channels: Beams.
        packets: Axes before those of a packet.
    """
    return Pixels(
        *(
            np.zeros((*packets, profile.returns if is_per_return else 1, COLUMNS_PER_PACKET, channels), kind)
            for kind, is_per_return in zip(_TYPES, _PER_RETURN, strict=True)
        )
    )
