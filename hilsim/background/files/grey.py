"""Background maps as grey pictures, with a scale for people and programs.

Near is bright, far is dark, and black is a cell that overlays do not use (``BackgroundMap.used``). Grey values are logarithmic in distance, so that 10 %
more is the same step at 3 m and at 100 m: 255 is the map's nearest used cell, 32 its farthest, 1 to 31 do not occur, so that far differs
from unused. The highest row is on top, azimuth 0 on the left; cells of small maps are enlarged. Below the map is a bar of its grey values with
distances in metres.

The figures are also in the file as JSON: in a PNG as text of the keyword ``hilsim-grey``, in a BMP in the trailer (``background.files.bmp``).

================  ==================================================================================
``format``        ``"hilsim-grey"``, with ``version`` 1
``rows``          rows of the map; ``columns`` likewise
``row_pixels``    height of a cell in the picture; ``column_pixels`` is its width
``near_m``        distance of grey value 255
``far_m``         distance of grey value 32
================  ==================================================================================
"""

import json
import warnings
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError
from PIL.PngImagePlugin import PngImageFile, PngInfo

from hilsim.assets.mesh_parts import read_bytes
from hilsim.background.files.bmp import append_trailer, pixel_rows, read_picture, read_trailer
from hilsim.background.files.grey_scale import NOTHING, GreyScale, draw_bar
from hilsim.background.files.metadata import MOST_CELLS, check_cells, checked, read_json
from hilsim.background.files.whole_file import replace_file
from hilsim.errors import AssetError, require
from hilsim.scene.background import FARTHEST_USED_MM, NEAREST_USED_MM, BackgroundMap

FORMAT, VERSION = "hilsim-grey", 1
_LEAST_WIDTH, _LEAST_HEIGHT = 360, 160
_MOST_PIXELS = 2 * MOST_CELLS


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """JSON of a picture."""

    format: str
    version: int
    rows: int
    columns: int
    row_pixels: int
    column_pixels: int
    near_m: float
    far_m: float

    @property
    def scale(self) -> GreyScale:
        """Scale of the grey values."""
        return GreyScale(near_m=self.near_m, far_m=self.far_m)

    def __post_init__(self) -> None:
        _ = self.scale  # validates the scale
        sides = (self.rows, self.columns, self.row_pixels, self.column_pixels)
        require((min(sides) >= 1, f"rows, columns, row_pixels and column_pixels must be at least 1, got {sides}"))


def grey_values(background: BackgroundMap) -> tuple[npt.NDArray[np.uint8], GreyScale]:
    """Grey values ``uint8[rows, columns]``, row 0 the lowest as in the map, and their scale, from the nearest to the farthest used cell."""
    used = background.used
    distance_m = background.distance_mm[used] / 1000.0
    if distance_m.size == 0:
        return np.zeros(used.shape, np.uint8), GreyScale(near_m=NEAREST_USED_MM / 1000.0, far_m=FARTHEST_USED_MM / 1000.0)
    scale = GreyScale(near_m=float(distance_m.min()), far_m=float(distance_m.max()))
    grey = np.full(used.shape, NOTHING, np.uint8)
    grey[used] = scale.grey(distance_m)
    return grey, scale


def write_grey(background: BackgroundMap, path: Path) -> None:
    """Write the grey picture of a map as PNG or BMP, replacing an existing file.

    Args:
        background: Map to draw.
        path: Path that ends with .png or .bmp.

    Raises:
        AssetError: the file cannot be written, the name has another ending, or the map has more than ``MOST_CELLS`` cells.
    """
    suffix = path.suffix.lower()
    if suffix not in (".png", ".bmp"):
        raise AssetError(f'{path}: a grey picture must be a .png or .bmp, got "{path.suffix}"')
    grey, scale = grey_values(background)
    rows, columns = grey.shape
    check_cells(rows, columns, str(path))
    row_pixels, column_pixels = -(-_LEAST_HEIGHT // rows), -(-_LEAST_WIDTH // columns)
    layout = _Layout(format=FORMAT, version=VERSION, rows=rows, columns=columns, row_pixels=row_pixels, column_pixels=column_pixels, **asdict(scale))
    cells = np.repeat(np.repeat(grey[::-1], row_pixels, axis=0), column_pixels, axis=1)
    pixels = np.concatenate([cells, draw_bar(scale, cells.shape[1])])
    replace_file(path, _encoded(Image.fromarray(pixels), suffix, json.dumps(asdict(layout))))


def read_grey(path: Path) -> tuple[npt.NDArray[np.uint8], GreyScale]:
    """Read grey values ``uint8[rows, columns]``, row 0 the lowest, and their scale, from a picture of ``write_grey``.

    Raises:
        AssetError: the file cannot be read, is no such picture, or is damaged.
    """
    data = read_bytes(path)
    pixels, text = _read_bmp(path, data) if data[:2] == b"BM" else _read_png(path, data)
    if text is None:
        raise AssetError(f"{path}: a grey picture must have the text {FORMAT}, got none: not written by hilsim, or saved by another program?")
    layout = _layout(text, f"{path}: {FORMAT}")
    height, width = layout.rows * layout.row_pixels, layout.columns * layout.column_pixels
    if pixels.shape[0] < height or pixels.shape[1] != width:
        raise AssetError(f"{path}: picture must be {width} pixels wide and at least {height} high, got {pixels.shape[1]} x {pixels.shape[0]}")
    cells = pixels[:height].reshape(layout.rows, layout.row_pixels, layout.columns, layout.column_pixels)
    grey = cells[:, 0, :, 0]
    if (cells != grey[:, np.newaxis, :, np.newaxis]).any():
        raise AssetError(f"{path}: pixels of a cell must have one grey value, got several: scaled or edited?")
    return grey[::-1].copy(), layout.scale


def _layout(text: str | bytes, where: str) -> _Layout:
    table = read_json(text, where, format_name=FORMAT, version=VERSION)
    layout = checked(_Layout, table, where)
    check_cells(layout.rows, layout.columns, where)
    return layout


def _encoded(image: Image.Image, suffix: str, text: str) -> bytes:
    stored = BytesIO()
    if suffix == ".bmp":
        image.save(stored, "BMP")
        return append_trailer(stored.getvalue(), text)
    info = PngInfo()
    info.add_text(FORMAT, text)
    image.save(stored, "PNG", pnginfo=info)
    return stored.getvalue()


def _read_bmp(path: Path, data: bytes) -> tuple[npt.NDArray[np.uint8], bytes | None]:
    picture = read_picture(path, data, bit_count=8)
    return pixel_rows(path, data, picture)[::-1], read_trailer(path, data, picture.end)


def _read_png(path: Path, data: bytes) -> tuple[npt.NDArray[Any], str | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large images; the size is checked here, before decoding
            with Image.open(BytesIO(data), formats=("PNG",)) as image:
                if image.mode != "L" or image.width * image.height > _MOST_PIXELS:
                    raise AssetError(
                        f"{path}: must be 8-bit grey of at most {_MOST_PIXELS} pixels, got {image.mode} of {image.width} x {image.height}"
                    )
                text = image.text.get(FORMAT) if isinstance(image, PngImageFile) else None
                return np.asarray(image), text
    except UnidentifiedImageError as error:
        raise AssetError(f"{path}: a grey picture must be a PNG or BMP, got {data[:8]!r}") from error
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise AssetError(f"{path}: cannot be decoded: {error}") from error
