"""Background surface from counts of distances: one distance per cell.

The farthest surface is the background, because moving objects can only be in front of it. One return is enough to find it. ``max`` uses the
farthest return, as in Cepton's note: then a single false return - a raindrop's echo, a mirror, an error - makes a permanent hole in the map.
``quantile`` ignores the farthest few: it uses the bin in which, counted from the nearest, that share of the cell's returns is reached. So

- at least the share ``quantile`` of the cell's returns are not farther than the farthest of the bin, which exceeds the exact quantile by less than a bin;
- a share of up to ``1 - quantile`` of returns beyond the surface changes nothing, whatever their distances;
- a surface with more than ``1 - quantile`` of the cell's returns is found, however often objects were in front of it.

The distance ``mean`` is the mean of the surface's returns. They are those within 15 cm, or 1/128 of the distance, of their own mean, which is computed iteratively
from the bin
found. That includes the noise of the supported sensors to five standard deviations, and excludes objects farther in front of the wall. Whole bins
are included or excluded, each by the mean of its own returns, so that a bin wider than the noise causes no shift. ``farthest`` is the note's: the farthest return of
the bin, which is behind the surface by about two standard deviations of the noise, and more the longer the capture.

A cell whose firings mostly have no return contains no surface: its returns are from objects in front of the sky.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require, within
from hilsim.read.background.partial import PartialMap
from hilsim.read.background.table import BEST, BINS, COUNT, INTENSITY_BITS, KEY, SUM, Rows, bin_start
from hilsim.units import WHOLE_PPM
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.background import INVALID, VALID, BackgroundMap, Grid

_N_BINS, _BITS, _ALL = constant(BINS), constant(INTENSITY_BITS), constant(WHOLE_PPM)
_KEY, _BEST, _COUNT = constant(KEY), constant(BEST), constant(COUNT)
_SUM = constant(SUM)
NEAR_MM, NEAR_SHARE = 100, 64
"""Returns within 10 cm or 1/64 of the distance belong to the surface: noise, roughness and the cell's own width."""
_SAME_MM, _SAME_SHARE = constant(150), constant(128)
"""Returns within 15 cm or 1/128 of the distance are averaged: five standard deviations of the noisiest supported sensor (29 mm), and at most a bin."""
_ROUNDS = constant(8)


@dataclass(frozen=True, kw_only=True)
class SurfaceRule:
    """Definition of a cell's surface.

    Attributes:
        kind: Method, ``quantile`` or ``max``.
        quantile: Share of the cell's returns that are not farther.
        distance: Distance of the surface: ``mean`` of its returns, or the ``farthest`` of them, to the width of a bin.
        min_hits: Minimum number of returns of a cell with a surface.
        min_share: Minimum share of a cell's firings with a return (if the sensor reports firings without a return).
    """

    kind: Literal["quantile", "max"] = "quantile"
    quantile: float = 0.95
    distance: Literal["mean", "farthest"] = "mean"
    min_hits: int = 2
    min_share: float = 0.25

    def __post_init__(self) -> None:
        require(
            (self.kind in {"quantile", "max"}, f'kind must be "quantile" or "max", got "{self.kind}"'),
            (0.5 <= self.quantile < 1.0, f"quantile must be 0.5 to less than 1, got {self.quantile}"),
            (self.distance in {"mean", "farthest"}, f'distance must be "mean" or "farthest", got "{self.distance}"'),
            (1 <= self.min_hits <= WHOLE_PPM, f"min_hits must be 1 to {WHOLE_PPM}, got {self.min_hits}"),
            *within(self, min_share=(0, 1)),
        )

    @property
    def beyond_ppm(self) -> int:
        """Number of returns per million that may be farther."""
        return 0 if self.kind == "max" else WHOLE_PPM - round(self.quantile * WHOLE_PPM)


class Surfaces(NamedTuple):
    """Surfaces of the cells, each field ``int64[rows, columns]``; all 0 without a return.

    Attributes:
        distance_mm: Distance of the surface.
        intensity: Intensity of the surface.
        hits: Number of returns.
        near: Number of returns that belong to the surface.
        empty: Number of firings without a return.
        averaged: Number of returns averaged for the distance; 1 for the farthest.
    """

    distance_mm: npt.NDArray[np.int64]
    intensity: npt.NDArray[np.int64]
    hits: npt.NDArray[np.int64]
    near: npt.NDArray[np.int64]
    empty: npt.NDArray[np.int64]
    averaged: npt.NDArray[np.int64]


@kernel
def find_surfaces(rows: Rows, beyond_ppm: int, takes_mean: bool, found: npt.NDArray[np.int64]) -> None:  # noqa: FBT001 - a kernel's argument
    """Find each cell's surface.

    Args:
        rows: Counts, in the order of their keys.
        beyond_ppm: Number of returns per million that may be farther, rounded down to whole returns.
        takes_mean: Whether the distance is the mean of the surface's returns.
        found: ``int64[6, cells]``, zeros before; the fields of ``Surfaces``, written for cells with counts.
    """
    start = 0
    while start < rows.shape[0]:
        cell = rows[start, _KEY] // _N_BINS
        if rows[start, _KEY] == cell * _N_BINS:
            found[4, cell] = rows[start, _COUNT]
            start += 1
        total = 0
        stop = start
        while stop < rows.shape[0] and rows[stop, _KEY] // _N_BINS == cell:
            total += rows[stop, _COUNT]
            stop += 1
        if total > 0:
            beyond = total * beyond_ppm // _ALL
            at = stop - 1
            while beyond >= rows[at, _COUNT]:
                beyond -= rows[at, _COUNT]
                at -= 1
            found[0, cell], found[1, cell], found[5, cell] = rows[at, _BEST] >> _BITS, rows[at, _BEST] & ((1 << _BITS) - 1), 1
            if takes_mean:
                found[0, cell], found[1, cell], found[5, cell] = _averaged(rows[start:stop], at - start)
            found[2, cell] = total
            found[3, cell] = _near(rows[start:stop], found[0, cell])
        start = stop


@kernel
def _mean_mm(rows: Rows, row: int) -> int:
    """Mean distance of a bin's returns."""
    count = rows[row, _COUNT]
    mean_mm: int = bin_start(rows[row, _BEST] >> _BITS) + (2 * rows[row, _SUM] + count) // (2 * count)
    return mean_mm


@kernel
def _averaged(rows: Rows, first: int) -> tuple[int, int, int]:
    """Mean distance of a cell's returns near their own mean, starting with a bin that stays included; their mean intensity, and their number.

    A bin has one intensity, its farthest return's, weighted by the number of its returns.
    """
    origin_mm = bin_start(rows[first, _BEST] >> _BITS)
    centre_mm = _mean_mm(rows, first)
    count = beyond = light = 0
    for _ in range(_ROUNDS):
        tolerance_mm = max(_SAME_MM, centre_mm // _SAME_SHARE)
        if not -tolerance_mm <= _mean_mm(rows, first) - centre_mm <= tolerance_mm:
            break
        count = beyond = light = 0
        for row in range(rows.shape[0]):
            if -tolerance_mm <= _mean_mm(rows, row) - centre_mm <= tolerance_mm:
                shift_mm = bin_start(rows[row, _BEST] >> _BITS) - origin_mm
                count += rows[row, _COUNT]
                beyond += rows[row, _SUM] + rows[row, _COUNT] * shift_mm
                light += rows[row, _COUNT] * (rows[row, _BEST] & ((1 << _BITS) - 1))
        found_mm = origin_mm + (2 * beyond + count) // (2 * count)
        if found_mm == centre_mm:
            break
        centre_mm = found_mm
    return origin_mm + (2 * beyond + count) // (2 * count), (2 * light + count) // (2 * count), count


@kernel
def _near(rows: Rows, distance_mm: int) -> int:
    """Number of returns of a cell at a distance, to the width of a bin."""
    tolerance_mm = max(NEAR_MM, distance_mm // NEAR_SHARE)
    near = 0
    for row in range(rows.shape[0]):
        if -tolerance_mm <= _mean_mm(rows, row) - distance_mm <= tolerance_mm:
            near += rows[row, _COUNT]
    return near


def surfaces(partial: PartialMap, beyond_ppm: int, *, takes_mean: bool) -> Surfaces:
    """Surface of each cell of a partial map; arguments as in ``find_surfaces``."""
    found = np.zeros((len(Surfaces._fields), partial.grid.columns * partial.grid.rows), dtype=np.int64)
    find_surfaces(partial.rows, beyond_ppm, takes_mean, found)
    return Surfaces(*(_shaped(figure, partial.grid) for figure in found))


def _shaped(by_cell: npt.NDArray[np.int64], grid: Grid) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(by_cell.reshape(grid.columns, grid.rows).T)


def form_map(
    partial: PartialMap, rule: SurfaceRule, *, model: str = "", pose: Pose | None = None, provenance: dict[str, Any] | None = None
) -> BackgroundMap:
    """Compute the map from counts.

    Args:
        partial: Counts of the captures.
        rule: Definition of the surface.
        model: Name of the sensor's model.
        pose: Pose of the sensor, world from sensor.
        provenance: Provenance to store.
    """
    found = surfaces(partial, rule.beyond_ppm, takes_mean=rule.distance == "mean")
    firings = found.hits + found.empty
    is_valid = (found.hits >= rule.min_hits) & (found.hits * WHOLE_PPM >= firings * round(rule.min_share * WHOLE_PPM))
    distance_mm = np.where(is_valid, found.distance_mm, 0).astype(np.uint32)
    intensity = np.where(is_valid, found.intensity, 0).astype(np.uint16)
    confidence = np.where(is_valid, found.near / np.maximum(found.hits, 1), 0.0).astype(np.float32)
    return BackgroundMap(
        grid=partial.grid,
        distance_mm=distance_mm,
        intensity=intensity,
        flags=np.where(is_valid, VALID, INVALID).astype(np.uint8),
        hit_count=found.hits.astype(np.uint32),
        confidence=confidence,
        model=model,
        pose=pose,
        provenance=provenance or {},
    )
