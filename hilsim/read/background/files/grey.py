"""Background maps as grey pictures for people, with a scale.

Near is bright, far is dark, and black is a cell that overlays do not use (``BackgroundMap.used``). Grey values are logarithmic in distance, so that 10 %
more is the same step at 3 m and at 100 m: 255 is the map's nearest used cell, 32 its farthest, 1 to 31 do not occur, so that far differs
from unused. The highest row is on top, azimuth 0 on the left; cells of small maps are enlarged. Below the map is a bar of its grey values with
distances in metres.
"""

import math
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from hilsim.read.background.files.metadata import check_cells
from hilsim.read.background.files.whole_file import replace_file
from hilsim.world.scene.background import MAX_USED_MM, NEAREST_USED_MM, BackgroundMap

GREY_KINDS = ("png", "bmp")
"""File types of the grey picture, as suffixes without a dot."""
_DARKEST, _BRIGHTEST = 32, 255
_STEPS = _BRIGHTEST - _DARKEST
_MIN_WIDTH, _MIN_HEIGHT = 360, 160
_BAR_HEIGHT, _TOP, _BOTTOM, _TEXT_TOP = 32, 4, 14, 19
_GAP = 6
_READABLE_WIDTH = 900  # about the width at which a screen shows a picture scaled to fit
_MARKS_M = tuple(first * 10.0**power for power in range(-2, 4) for first in (1, 2, 5))


class GreyScale(NamedTuple):
    """Distances of the grey values 255 and 32."""

    near_m: float
    far_m: float

    def share(self, distance_m: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Position on the logarithmic scale: 0 for ``near_m`` to 1 for ``far_m``; 0 if both are equal."""
        span = math.log(self.far_m / self.near_m) or 1.0
        return np.asarray(np.log(np.asarray(distance_m) / self.near_m) / span, np.float64)


def grey_values(background: BackgroundMap) -> tuple[npt.NDArray[np.uint8], GreyScale]:
    """Grey values ``uint8[rows, columns]``, row 0 the lowest as in the map, and their scale, from the nearest to the farthest used cell."""
    used = background.used
    grey = np.zeros(used.shape, np.uint8)
    distance_m = background.distance_mm[used] / 1000.0
    if distance_m.size == 0:
        return grey, GreyScale(NEAREST_USED_MM / 1000.0, MAX_USED_MM / 1000.0)
    scale = GreyScale(float(distance_m.min()), float(distance_m.max()))
    grey[used] = _BRIGHTEST - np.rint(scale.share(distance_m) * _STEPS)
    return grey, scale


def write_grey(background: BackgroundMap, path: Path) -> None:
    """Write the grey picture of a map, replacing an existing file.

    Args:
        background: Map to draw.
        path: Path whose suffix is one of ``GREY_KINDS``; a BMP has 8 bits a pixel.

    Raises:
        AssetError: the file cannot be written, or the map has more than ``MAX_CELLS`` cells.
    """
    grey, scale = grey_values(background)
    rows, columns = grey.shape
    check_cells(rows, columns, str(path))
    cells = np.repeat(np.repeat(grey[::-1], -(-_MIN_HEIGHT // rows), axis=0), -(-_MIN_WIDTH // columns), axis=1)
    picture = Image.fromarray(np.concatenate([cells, draw_bar(scale, cells.shape[1])]))
    stored = BytesIO()
    picture.save(stored, path.suffix.removeprefix("."))
    replace_file(path, stored.getvalue())


def draw_bar(scale: GreyScale, width: int) -> npt.NDArray[np.uint8]:
    """Scale bar ``uint8[height, width]``: every grey value from near to far, labelled with distances; enlarged below a large picture, which is likely scaled down."""
    enlarged = max(width // _READABLE_WIDTH, 1)
    columns = width // enlarged
    bar = np.zeros((_BAR_HEIGHT, columns), np.uint8)
    bar[_TOP:_BOTTOM] = _BRIGHTEST - np.rint(np.linspace(0, _STEPS, columns)).astype(np.uint8)
    image = Image.fromarray(bar)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default_imagefont()
    for place, left, text in _marks(scale, columns, font):
        draw.line((place, _BOTTOM, place, _BOTTOM + 3), fill=_BRIGHTEST)
        draw.text((left, _TEXT_TOP), text, fill=_BRIGHTEST, font=font)
    large = np.repeat(np.repeat(np.asarray(image), enlarged, axis=0), enlarged, axis=1)
    return np.pad(large, ((0, 0), (0, width - large.shape[1])))


def _marks(scale: GreyScale, columns: int, font: ImageFont.ImageFont) -> list[tuple[int, int, str]]:
    """Column of the tick, column of the start of its label, and the label: both ends, and round distances between them if they fit."""
    near, far = f"{scale.near_m:.3g} m", f"{scale.far_m:.3g} m"
    free, last = int(font.getlength(near)) + _GAP, columns - int(font.getlength(far))
    marks = [(0, 0, near), (columns - 1, last, far)]
    for mark_m in (mark_m for mark_m in _MARKS_M if scale.near_m < mark_m < scale.far_m):
        text = f"{mark_m:g} m"
        length = int(font.getlength(text))
        place = round(float(scale.share(mark_m)) * (columns - 1))
        left = place - length // 2
        if left >= free and left + length + _GAP <= last:
            marks.append((place, left, text))
            free = left + length + _GAP
    return marks
