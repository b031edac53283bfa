r"""BMP as a container: headers, rows of pixels, and hilsim's trailer after them.

======  ======  ==============================================================================================================================
offset  bytes   content
======  ======  ==============================================================================================================================
0       14      file header: ``BM``, size of the file, two reserved words, offset of the pixels
14      40-124  BITMAPINFOHEADER (40), V2 (52), V3 (56), V4 (108) or V5 (124), distinguished by their first word, their size
54      12, 16  colour masks: inside V2 and later; after a BITMAPINFOHEADER with BI_BITFIELDS (3) or BI_ALPHABITFIELDS (6)
offset  rows    each a whole number of 32-bit words; the first is the lowest of the picture if the height is positive, the highest if negative
end     16 + n  hilsim's trailer (``TRAILER_DTYPE``): ``hilsim\r\n``, n, CRC-32 of all bytes before the trailer and of the n, then n bytes of JSON
======  ======  ==============================================================================================================================

The size of the file in its header includes the trailer. Other readers use the offset and the size of the picture and ignore it.

Sources: Microsoft, "Bitmap Header Types" and "BITMAPV4HEADER structure" (wingdi.h),
https://learn.microsoft.com/windows/win32/gdi/bitmap-header-types.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError

FILE_HEADER_DTYPE = np.dtype([("signature", "S2"), ("file_size", "<u4"), ("reserved", "<u2", (2,)), ("pixel_offset", "<u4")])
INFO_HEADER_DTYPE = np.dtype(
    [
        ("header_size", "<u4"),
        ("width", "<i4"),
        ("height", "<i4"),
        ("planes", "<u2"),
        ("bit_count", "<u2"),
        ("compression", "<u4"),
        ("image_size", "<u4"),
        ("x_pixels_per_metre", "<i4"),
        ("y_pixels_per_metre", "<i4"),
        ("colours_used", "<u4"),
        ("colours_important", "<u4"),
    ]
)
V4_HEADER_DTYPE = np.dtype(
    [
        ("info", INFO_HEADER_DTYPE),
        ("masks", "<u4", (4,)),
        ("colour_space", "<u4"),
        ("endpoints", "<u4", (9,)),
        ("gamma", "<u4", (3,)),
    ]
)
TRAILER_DTYPE = np.dtype([("magic", "V8"), ("size", "<u4"), ("crc", "<u4")])
if (FILE_HEADER_DTYPE.itemsize, INFO_HEADER_DTYPE.itemsize, V4_HEADER_DTYPE.itemsize, TRAILER_DTYPE.itemsize) != (14, 40, 108, 16):
    raise AssertionError("a BMP's headers must have 14, 40 and 108 bytes and the trailer 16")

BI_RGB, BI_BITFIELDS, BI_ALPHABITFIELDS = 0, 3, 6
LARGEST_SIDE = 65_536
MOST_PADDING = 255
"""Largest padding of a row in bytes: rows copied to a GPU end on a multiple of 256."""
_HEADER_SIZES = (40, 52, 56, 108, 124)
_SMALLEST = FILE_HEADER_DTYPE.itemsize + INFO_HEADER_DTYPE.itemsize
_MASKS_OFFSET = _SMALLEST
_MAGIC = b"hilsim\r\n"  # its line end is corrupted by a transfer in text mode


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Headers of a BMP, checked against its bytes.

    Attributes:
        columns: Number of pixels per row.
        rows: Number of rows.
        is_top_down: Whether the first row in the file is the highest of the picture.
        masks: Red, green, blue and, if the file has it, alpha; empty if the file has none.
        offset: Offset of the first row.
        row_bytes: Number of bytes of a row's pixels.
        stride_bytes: Distance between rows.
    """

    columns: int
    rows: int
    is_top_down: bool
    masks: tuple[int, ...]
    offset: int
    row_bytes: int
    stride_bytes: int

    @property
    def end(self) -> int:
        """Offset of the first byte after the rows."""
        return self.offset + self.rows * self.stride_bytes


def read_picture(path: Path, data: bytes, *, bit_count: int) -> Picture:
    """Read the headers of a BMP.

    Args:
        path: Path for messages.
        data: Bytes of the whole file.
        bit_count: Bits per pixel that the caller supports.

    Raises:
        AssetError: it is no BMP, is truncated or damaged, is compressed, or has another number of bits per pixel; the text names the byte.
    """
    _check(path, data[:2] == b"BM", f"a BMP must start with {b'BM'!r}, got {data[:2]!r} at byte 0")
    _check(path, len(data) >= _SMALLEST, f"a BMP must have at least {_SMALLEST} bytes of headers, got {len(data)}")
    header = np.frombuffer(data, FILE_HEADER_DTYPE, 1)[0]
    info = np.frombuffer(data, INFO_HEADER_DTYPE, 1, FILE_HEADER_DTYPE.itemsize)[0]
    file_size, offset = int(header["file_size"]), int(header["pixel_offset"])
    columns, rows = int(info["width"]), abs(int(info["height"]))
    _check(path, file_size in (0, len(data)) or _SMALLEST <= file_size < len(data), _size_rule(file_size, len(data)))
    _check(path, info["header_size"] in _HEADER_SIZES, f"header size must be one of {_HEADER_SIZES}, got {info['header_size']} at byte 14")
    _check(path, 1 <= columns <= LARGEST_SIDE, f"width must be 1 to {LARGEST_SIDE}, got {columns} at byte 18")
    _check(path, 1 <= rows <= LARGEST_SIDE, f"height must be 1 to {LARGEST_SIDE}, or minus that, got {info['height']} at byte 22")
    _check(path, info["planes"] == 1, f"planes must be 1, got {info['planes']} at byte 26")
    _check(path, info["bit_count"] == bit_count, f"bits a pixel must be {bit_count}, got {info['bit_count']} at byte 28")
    masks, headers_end = _masks(path, data, info)
    _check(path, headers_end <= offset < len(data), f"pixel offset must be {headers_end} to {len(data) - 1}, got {offset} at byte 10")
    row_bytes = columns * bit_count // 8
    image_size = int(info["image_size"]) or (file_size or len(data)) - offset
    stride_bytes = _stride(
        path, rows, row_bytes, image_size, "size of the picture at byte 34" if info["image_size"] else "bytes behind the pixel offset"
    )
    picture = Picture(
        columns=columns, rows=rows, is_top_down=int(info["height"]) < 0, masks=masks, offset=offset, row_bytes=row_bytes, stride_bytes=stride_bytes
    )
    end = file_size or len(data)
    _check(path, picture.end <= end, f"{rows} rows of {stride_bytes} bytes from byte {offset} on must end by byte {end}, got {picture.end}")
    return picture


def pixel_rows(path: Path, data: bytes, picture: Picture) -> npt.NDArray[np.uint8]:
    """Pixels without padding, ``uint8[rows, row_bytes]``, the picture's lowest row first.

    Raises:
        AssetError: a padding byte is not 0, so the rows are not at the positions given by the headers.
    """
    count = picture.rows * picture.stride_bytes
    rows = np.frombuffer(data, np.uint8, count, picture.offset).reshape(picture.rows, picture.stride_bytes)
    padding = rows[:, picture.row_bytes :]
    if padding.any():
        row, column = (int(place[0]) for place in np.nonzero(padding))
        place = picture.offset + row * picture.stride_bytes + picture.row_bytes + column
        raise AssetError(f"{path}: padding behind the pixels of a row must be 0, got {padding[row, column]} at byte {place}: is the width right?")
    pixels = rows[:, : picture.row_bytes]
    return pixels[::-1] if picture.is_top_down else pixels


def append_trailer(data: bytes, text: str) -> bytes:
    """BMP with hilsim's trailer after its rows, with which ``data`` must end; the size in its header includes the trailer."""
    stored = text.encode("ascii")
    header = np.frombuffer(data, FILE_HEADER_DTYPE, 1).copy()
    header["file_size"] = len(data) + TRAILER_DTYPE.itemsize + len(stored)
    whole = header.tobytes() + data[FILE_HEADER_DTYPE.itemsize :]
    trailer = np.array([(_MAGIC, len(stored), zlib.crc32(stored, zlib.crc32(whole)))], TRAILER_DTYPE)
    return whole + trailer.tobytes() + stored


def read_trailer(path: Path, data: bytes, end: int) -> bytes | None:
    """JSON of hilsim's trailer at byte ``end``, or None without a trailer.

    Raises:
        AssetError: the file is truncated, or its bytes have been changed.
    """
    start = end + TRAILER_DTYPE.itemsize
    if data[end : end + len(_MAGIC)] != _MAGIC:
        return None
    _check(path, len(data) >= start, f"hilsim's trailer at byte {end} must have {TRAILER_DTYPE.itemsize} bytes, got {len(data) - end}")
    trailer = np.frombuffer(data, TRAILER_DTYPE, 1, end)[0]
    size = int(trailer["size"])
    _check(
        path, len(data) == start + size, f"hilsim's trailer must end with the file at byte {len(data)}, got {start + size} (size at byte {end + 8})"
    )
    crc = zlib.crc32(data[start:], zlib.crc32(data[:end]))
    _check(path, crc == int(trailer["crc"]), f"CRC-32 must be 0x{int(trailer['crc']):08x} as at byte {end + 12}, got 0x{crc:08x}: damaged or edited")
    return data[start:]


def _check(path: Path, holds: object, rule: str) -> None:
    if not holds:
        raise AssetError(f"{path}: {rule}")


def _size_rule(stated: int, found: int) -> str:
    return f"size of the file must be the {stated} bytes stated at byte 2, got {found}{' (cut short?)' if stated > found else ''}"


def _masks(path: Path, data: bytes, info: np.void) -> tuple[tuple[int, ...], int]:
    """Colour masks, and offset of the end of the headers."""
    header_size, compression = int(info["header_size"]), int(info["compression"])
    end = FILE_HEADER_DTYPE.itemsize + header_size
    known = (BI_RGB, BI_BITFIELDS, BI_ALPHABITFIELDS)
    _check(
        path,
        compression in known,
        f"compression must be none ({BI_RGB}) or bit fields ({BI_BITFIELDS}, {BI_ALPHABITFIELDS}), got {compression} at byte 30",
    )
    if compression == BI_RGB:
        return (), end
    count = 4 if compression == BI_ALPHABITFIELDS or header_size >= 56 else 3
    masks_end = _MASKS_OFFSET + 4 * count
    _check(path, len(data) >= masks_end, f"colour masks must end by the file's end at byte {len(data)}, got {masks_end}")
    return tuple(np.frombuffer(data, "<u4", count, _MASKS_OFFSET).tolist()), max(end, masks_end)


def _stride(path: Path, rows: int, row_bytes: int, image_size: int, named: str) -> int:
    """Distance between rows in bytes: a whole number of words, or more if the picture's size requires it."""
    least = (row_bytes + 3) // 4 * 4
    padding, rest = divmod(image_size - rows * least, rows)
    holds = 0 <= padding <= MOST_PADDING and rest == 0
    _check(path, holds, f"{named} must be {rows * least}, or that with 1 to {MOST_PADDING} bytes of padding a row, got {image_size}")
    return least + padding
