"""Scale of the grey values of a picture, and the scale bar below it."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from hilsim.errors import require

NOTHING, DARKEST, BRIGHTEST = 0, 32, 255
_STEPS = BRIGHTEST - DARKEST
_BAR_HEIGHT, _TOP, _BOTTOM, _TEXT_TOP = 32, 4, 14, 19
_GAP = 6
_READABLE_WIDTH = 900  # about the width at which a screen shows a picture scaled to fit
_MARKS_M = tuple(first * 10.0**power for power in range(-2, 4) for first in (1, 2, 5))


@dataclass(frozen=True, kw_only=True)
class GreyScale:
    """Scale of grey values.

    Attributes:
        near_m: Distance of grey value 255.
        far_m: Distance of grey value 32.
    """

    near_m: float
    far_m: float

    def __post_init__(self) -> None:
        holds = 0.0 < self.near_m <= self.far_m < math.inf
        require((holds, f"near_m must be above 0 and at most far_m, got {self.near_m} and {self.far_m}"))

    @property
    def distance_m(self) -> npt.NDArray[np.float64]:
        """Distance of each grey value in metres, ``float64[256]``; NaN for values without a distance."""
        metres = np.full(256, np.nan)
        metres[DARKEST:] = self.near_m * (self.far_m / self.near_m) ** (np.arange(_STEPS, -1, -1) / _STEPS)
        return metres

    def share(self, distance_m: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Position on the logarithmic scale: 0 for ``near_m`` to 1 for ``far_m``; 0 if both are equal."""
        span = math.log(self.far_m / self.near_m) or 1.0
        return np.asarray(np.log(np.asarray(distance_m) / self.near_m) / span, np.float64)

    def grey(self, distance_m: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
        """Nearest grey values of distances between ``near_m`` and ``far_m``, ``uint8`` of the same shape."""
        return np.asarray(BRIGHTEST - np.rint(self.share(distance_m) * _STEPS), np.uint8)


def draw_bar(scale: GreyScale, width: int) -> npt.NDArray[np.uint8]:
    """Scale bar ``uint8[height, width]``: every grey value from near to far, labelled with distances; enlarged below a large picture, which is likely scaled down."""
    enlarged = max(width // _READABLE_WIDTH, 1)
    columns = width // enlarged
    bar = np.zeros((_BAR_HEIGHT, columns), np.uint8)
    bar[_TOP:_BOTTOM] = BRIGHTEST - np.rint(np.linspace(0, _STEPS, columns)).astype(np.uint8)
    image = Image.fromarray(bar)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default_imagefont()
    for place, left, text in _marks(scale, columns, font):
        draw.line((place, _BOTTOM, place, _BOTTOM + 3), fill=BRIGHTEST)
        draw.text((left, _TEXT_TOP), text, fill=BRIGHTEST, font=font)
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
