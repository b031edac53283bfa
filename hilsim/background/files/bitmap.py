"""Background maps as 32-bit bitmaps with the pixel format of Cepton's AR note, hilsim's own or another program's.

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
interpretation, which has a version for that reason (decision 13).

The file is a BMP (``background.files.bmp``) with BITMAPV4HEADER and BI_BITFIELDS, bottom-up: array row 0, the lowest elevation, is the first row in the
file, so the picture is upright. Grid, model, pose and provenance are in the trailer. ``hit_count`` and ``confidence`` are not in the file: they
read as 0, "unknown".
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.assets.mesh_parts import read_bytes
from hilsim.background.files.bmp import (
    BI_BITFIELDS,
    FILE_HEADER_DTYPE,
    V4_HEADER_DTYPE,
    Picture,
    append_trailer,
    pixel_rows,
    read_picture,
    read_trailer,
)
from hilsim.background.files.metadata import Grid, MapMetadata, check_cells, describe_map, read_metadata
from hilsim.background.files.whole_file import replace_file
from hilsim.errors import AssetError
from hilsim.scene.background import BRIGHTEST, FARTHEST_MM, BackgroundMap

RED_MASK, GREEN_MASK, BLUE_MASK, ALPHA_MASK = 0x3FF00000, 0x000FFC00, 0x000003FF, 0xC0000000
MASKS = (RED_MASK, GREEN_MASK, BLUE_MASK, ALPHA_MASK)
_INTENSITY_SHIFT, _FLAGS_SHIFT = 20, 30
_SRGB = 0x73524742  # "sRGB": no endpoints or gamma follow
_PIXELS_PER_METRE = 2835  # 72 per inch


def write_bitmap(background: BackgroundMap, path: Path) -> None:
    """Write a map as a BMP with the note's pixels, replacing an existing file.

    Raises:
        AssetError: the file cannot be written, or the map has more than ``MOST_CELLS`` cells.
    """
    rows, columns = background.distance_mm.shape
    check_cells(rows, columns, str(path))
    pixels = pack_pixels(background).tobytes()
    headers_size = FILE_HEADER_DTYPE.itemsize + V4_HEADER_DTYPE.itemsize
    header = np.array([(b"BM", headers_size + len(pixels), (0, 0), headers_size)], FILE_HEADER_DTYPE)
    v4 = np.zeros(1, V4_HEADER_DTYPE)
    v4["info"] = (V4_HEADER_DTYPE.itemsize, columns, rows, 1, 32, BI_BITFIELDS, len(pixels), _PIXELS_PER_METRE, _PIXELS_PER_METRE, 0, 0)
    v4["masks"] = MASKS
    v4["colour_space"] = _SRGB
    replace_file(path, append_trailer(header.tobytes() + v4.tobytes() + pixels, describe_map(background)))


def read_bitmap(path: Path, *, grid: Grid | None = None) -> BackgroundMap:
    """Read the map of a BMP: hilsim's own, or another program's with the note's pixels.

    Another program's bitmap may have any header from BITMAPINFOHEADER to V5, BI_RGB (its words are then assumed to be the note's pixels) or
    BI_BITFIELDS with the note's masks, rows bottom-up or top-down, and padding after its rows; its picture is upright, with the lowest
    elevation at the bottom.

    Args:
        path: Path of the file.
        grid: Grid, required for another program's bitmap, which does not define the directions of its cells. For hilsim's own bitmap it must equal the file's, if given.

    Raises:
        AssetError: the file cannot be read, is no such bitmap, is damaged, or does not match the grid.
    """
    data = read_bytes(path)
    picture = read_picture(path, data, bit_count=32)
    check_cells(picture.rows, picture.columns, str(path))
    _check_masks(path, picture)
    text = read_trailer(path, data, picture.end)
    if text is not None:
        metadata = read_metadata(text, f"{path}: trailer at byte {picture.end}", expected=grid)
    elif grid is not None:
        metadata = MapMetadata(grid=grid, model="", pose=None, provenance={})
    else:
        raise AssetError(
            f"{path}: a bitmap from elsewhere must come with a grid, because it does not define the directions of its cells; hilsim's own has it at byte "
            f"{picture.end}, and this one does not"
        )
    if (picture.rows, picture.columns) != (metadata.grid.rows, metadata.grid.columns):
        raise AssetError(
            f"{path}: picture must be {metadata.grid.rows} rows x {metadata.grid.columns} columns as its grid, "
            f"got {picture.rows} x {picture.columns} at byte 18"
        )
    words = np.ascontiguousarray(pixel_rows(path, data, picture)).view("<u4")
    return _unpack(words, metadata)


def foreign_size(path: Path) -> tuple[int, int] | None:
    """Rows and columns of another program's bitmap, which requires a grid; None for any other file.

    Raises:
        AssetError: the file cannot be read, or is a damaged bitmap.
    """
    data = read_bytes(path)
    if not data.startswith(b"BM"):
        return None
    picture = read_picture(path, data, bit_count=32)
    return None if read_trailer(path, data, picture.end) is not None else (picture.rows, picture.columns)


def pack_pixels(background: BackgroundMap) -> npt.NDArray[np.uint32]:
    """Pixels of a map in the note's format: ``uint32[rows, columns]``, little-endian."""
    intensity = background.intensity.astype("<u4") << _INTENSITY_SHIFT
    flags = background.flags.astype("<u4") << _FLAGS_SHIFT
    packed: npt.NDArray[np.uint32] = flags | intensity | background.distance_mm.astype("<u4")
    return packed


def _unpack(words: npt.NDArray[np.uint32], metadata: MapMetadata) -> BackgroundMap:
    return BackgroundMap(
        grid=metadata.grid,
        distance_mm=(words & FARTHEST_MM).astype(np.uint32),
        intensity=(words >> _INTENSITY_SHIFT & BRIGHTEST).astype(np.uint16),
        flags=(words >> _FLAGS_SHIFT).astype(np.uint8),
        hit_count=np.zeros(words.shape, np.uint32),
        confidence=np.zeros(words.shape, np.float32),
        model=metadata.model,
        pose=metadata.pose,
        provenance=metadata.provenance,
    )


def _check_masks(path: Path, picture: Picture) -> None:
    required = MASKS[: len(picture.masks)]
    if picture.masks != required:
        raise AssetError(f"{path}: colour masks must be {_in_hex(required)}, got {_in_hex(picture.masks)} at byte 54")


def _in_hex(masks: tuple[int, ...]) -> str:
    return " ".join(f"{name} {mask:08x}" for name, mask in zip(("red", "green", "blue", "alpha"), masks, strict=False))
