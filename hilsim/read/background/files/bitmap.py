"""Background maps as the 32-bit bitmap of Cepton's AR note, for the note's programs; hilsim itself reads maps from NPZ.

A pixel is a little-endian 32-bit word:

======  =====  =============================================================================================================
bits    mask   content
======  =====  =============================================================================================================
31..30  alpha  flags: 3 valid, 0 invalid
29..20  red    intensity, 0 to 1023
19..10  green  distance in millimetres, its upper 10 bits
9..0    blue   distance in millimetres, its lower 10 bits
======  =====  =============================================================================================================

So 15,420 mm, valid, intensity 0 is 0xC0003C3C, and the distance is the lowest 20 bits. The note
(https://developer.cepton.com/blog/AR_simulator) gives 20 bits of distance in green and blue, 10 bits each, 2 bits of flags in alpha and their
values, and mentions an intensity. That green is the upper half, that the intensity is red, and the positions of the channels in the word are hilsim's
interpretation (decision 13).

The file is a BMP with BITMAPV4HEADER and BI_BITFIELDS, bottom-up: array row 0, the lowest elevation, is the first row in the file, so the picture is
upright. Source: Microsoft, "BITMAPV4HEADER structure" (wingdi.h), https://learn.microsoft.com/windows/win32/gdi/bitmap-header-types.
"""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.read.background.files.metadata import check_cells
from hilsim.read.background.files.whole_file import replace_file
from hilsim.world.scene.background import BackgroundMap

RED_MASK, GREEN_MASK, BLUE_MASK, ALPHA_MASK = 0x3FF00000, 0x000FFC00, 0x000003FF, 0xC0000000
_INTENSITY_SHIFT, _FLAGS_SHIFT = 20, 30
_FILE_HEADER = "<2sI4xI"  # signature, size of the file, offset of the pixels
_V4_HEADER = "<IiiHHIIii8x4II48x"  # size, columns, rows, planes, bits, compression, bytes of pixels, pixels per metre, masks, colour space
_PIXELS_OFFSET = struct.calcsize(_FILE_HEADER) + struct.calcsize(_V4_HEADER)
_BI_BITFIELDS = 3
_SRGB = 0x73524742  # "sRGB": no endpoints or gamma follow
_PIXELS_PER_METRE = 2835  # 72 per inch


def write_bitmap(background: BackgroundMap, path: Path) -> None:
    """Write a map as a BMP with the note's pixels, replacing an existing file.

    Raises:
        AssetError: the file cannot be written, or the map has more than ``MAX_CELLS`` cells.
    """
    rows, columns = background.distance_mm.shape
    check_cells(rows, columns, str(path))
    pixels = pack_pixels(background).tobytes()
    header = struct.pack(_FILE_HEADER, b"BM", _PIXELS_OFFSET + len(pixels), _PIXELS_OFFSET)
    masks = RED_MASK, GREEN_MASK, BLUE_MASK, ALPHA_MASK
    density = _PIXELS_PER_METRE, _PIXELS_PER_METRE
    v4 = struct.pack(_V4_HEADER, struct.calcsize(_V4_HEADER), columns, rows, 1, 32, _BI_BITFIELDS, len(pixels), *density, *masks, _SRGB)
    replace_file(path, header + v4 + pixels)


def pack_pixels(background: BackgroundMap) -> npt.NDArray[np.uint32]:
    """Pixels of a map in the note's format: ``uint32[rows, columns]``, little-endian."""
    intensity = background.intensity.astype("<u4") << _INTENSITY_SHIFT
    flags = background.flags.astype("<u4") << _FLAGS_SHIFT
    packed: npt.NDArray[np.uint32] = flags | intensity | background.distance_mm.astype("<u4")
    return packed
