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
from dataclasses import asdict
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from hilsim.background.files.bmp import append_trailer
from hilsim.background.files.grey_scale import NOTHING, GreyScale, draw_bar
from hilsim.background.files.metadata import check_cells
from hilsim.background.files.whole_file import replace_file
from hilsim.errors import AssetError
from hilsim.scene.background import FARTHEST_USED_MM, NEAREST_USED_MM, BackgroundMap

FORMAT, VERSION = "hilsim-grey", 1
_LEAST_WIDTH, _LEAST_HEIGHT = 360, 160


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
    layout = {
        "format": FORMAT,
        "version": VERSION,
        "rows": rows,
        "columns": columns,
        "row_pixels": row_pixels,
        "column_pixels": column_pixels,
        **asdict(scale),
    }
    cells = np.repeat(np.repeat(grey[::-1], row_pixels, axis=0), column_pixels, axis=1)
    pixels = np.concatenate([cells, draw_bar(scale, cells.shape[1])])
    replace_file(path, _encoded(Image.fromarray(pixels), suffix, json.dumps(layout)))


def _encoded(image: Image.Image, suffix: str, text: str) -> bytes:
    stored = BytesIO()
    if suffix == ".bmp":
        image.save(stored, "BMP")
        return append_trailer(stored.getvalue(), text)
    info = PngInfo()
    info.add_text(FORMAT, text)
    image.save(stored, "PNG", pnginfo=info)
    return stored.getvalue()
