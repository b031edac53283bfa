"""A captured background behind (or before) the synthetic scene, as one sensor sees it: sampled by encoder coordinates, firing by firing.

The rules and markers are those of Cepton's "AR simulator" note (https://developer.cepton.com/blog/AR_simulator), whose own rule is ``BACKGROUND_FIRST``: its comment states that the
closest surface is chosen, its code always takes the background. By default the nearer surface wins here, so that objects appear in front of the real world and vanish behind it.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.units import TURN_CDEG
from hilsim.world.scene.background import OUTSIDE, azimuth_column, image_cell

_EDGE_RATIO = 0.05
_EDGE_M = 0.3
"""Neighbouring cells farther apart than this and this share of their range belong to different surfaces (recommended, unproven)."""


class OverlayRule(IntEnum):
    """Choice of the surface where both a synthetic object and the background are in a beam."""

    SYNTHETIC_ONLY = 0
    NEAREST = 1
    BACKGROUND_FIRST = 2


class Overlay(NamedTuple):
    """Kernel-side background.

    Attributes:
        rule: An ``OverlayRule``.
        is_smooth: Ranges are interpolated between cells of one surface.
        x_min: Image x of the first column (image grids).
        x_max: Image x of the last column.
        z_min: Image z of the first row.
        z_max: Image z of the last row.
        row: ``int32[c]``, row of each channel (azimuth grids).
        range_m: ``float32[rows, columns]``, ``inf`` where there is no background.
        ratio: ``float32[rows, columns]``, reflectivity as a share of a white diffuse target, that of the incidence included.
    """

    rule: int
    is_smooth: bool
    x_min: float
    x_max: float
    z_min: float
    z_max: float
    row: npt.NDArray[np.int32]
    range_m: npt.NDArray[np.float32]
    ratio: npt.NDArray[np.float32]


class Backdrop(NamedTuple):
    """Background seen by each of ``f`` firings.

    Attributes:
        range_m: ``float64[f]``, ``inf`` where there is none.
        ratio: ``float64[f]``, its reflectivity.
    """

    range_m: npt.NDArray[np.float64]
    ratio: npt.NDArray[np.float64]


def no_overlay() -> Overlay:
    """No background."""
    nothing = np.full((1, 1), np.inf, np.float32)
    return Overlay(int(OverlayRule.SYNTHETIC_ONLY), False, 0.0, 1.0, 0.0, 1.0, np.zeros(1, np.int32), nothing, np.zeros((1, 1), np.float32))  # noqa: FBT003 - fields by place


@kernel
def _between(near: float, far: float, share: float) -> float:
    """Range between two cells of a flat surface: inverse ranges lie on a line."""
    return 1.0 / ((1.0 - share) / near + share / far)


@kernel
def _is_one_surface(least: float, most: float) -> bool:
    return most < np.inf and most - least <= _EDGE_M + _EDGE_RATIO * least


@kernel
def _smooth_along(overlay: Overlay, row: int, place: float, wraps: bool) -> float:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Range at a place along a row, in cells: interpolated between the two nearest cells' middles where they are of one surface, else of the cell itself."""
    columns = overlay.range_m.shape[1]
    cell = min(int(place), columns - 1)
    middle = cell + 0.5
    other = cell + (1 if place >= middle else -1)
    if wraps:
        other %= columns
    here = float(overlay.range_m[row, cell])
    if other < 0 or other >= columns:
        return here
    there = float(overlay.range_m[row, other])
    if not _is_one_surface(min(here, there), max(here, there)):
        return here
    return _between(here, there, abs(place - middle))


@kernel
def sample_turning(overlay: Overlay, channel: int, azimuth_cdeg: float) -> tuple[float, float]:
    """Range and reflectivity of the background along a channel's beam; ``inf`` for none."""
    row, columns = int(overlay.row[channel]), overlay.range_m.shape[1]
    column = azimuth_column(columns, azimuth_cdeg)
    range_m = float(overlay.range_m[row, column])
    if overlay.is_smooth and range_m < np.inf:
        range_m = _smooth_along(overlay, row, azimuth_cdeg % TURN_CDEG * columns / TURN_CDEG, True)  # noqa: FBT003 - a kernel's positional scalar
    return range_m, float(overlay.ratio[row, column])


@kernel
def sample_image(overlay: Overlay, image_x: float, image_z: float) -> tuple[float, float]:
    """Range and reflectivity of the background at a point of the image; ``inf`` for none, also beyond its edges."""
    rows, columns = overlay.range_m.shape
    column = image_cell(columns, overlay.x_min, overlay.x_max, image_x)
    row = image_cell(rows, overlay.z_min, overlay.z_max, image_z)
    if OUTSIDE in (column, row):
        return np.inf, 0.0
    range_m, ratio = float(overlay.range_m[row, column]), float(overlay.ratio[row, column])
    if overlay.is_smooth and range_m < np.inf:
        across = (image_x - overlay.x_min) / (overlay.x_max - overlay.x_min) * (columns - 1)
        up = (image_z - overlay.z_min) / (overlay.z_max - overlay.z_min) * (rows - 1)
        other = row + (1 if up >= row + 0.5 else -1)
        range_m = _smooth_along(overlay, row, across, False)  # noqa: FBT003 - a kernel's positional scalar
        if 0 <= other < rows and overlay.range_m[other, column] < np.inf:
            there = _smooth_along(overlay, other, across, False)  # noqa: FBT003 - a kernel's positional scalar
            if _is_one_surface(min(range_m, there), max(range_m, there)):
                range_m = _between(range_m, there, abs(up - row - 0.5))
    return range_m, ratio
