"""From counts of distances to the surface that stayed: one distance a cell.

The farthest surface is the background, because what comes and goes can only stand before it. ``max`` takes the farthest return of all, as Cepton's
note does: then a single return from nowhere - a raindrop's echo, a mirror, a fault - makes a hole in the map for good. ``quantile`` passes over the farthest
few: it takes the bin in which, counted from the nearest, that share of the cell's returns is reached, and in it the farthest distance. So

- the value is a distance that was measured, with the intensity that was measured with it;
- at least the share ``quantile`` of the cell's returns are not farther, and the value is beyond the exact quantile by less than a bin: 1/128 of it;
- a share of up to ``1 - quantile`` of returns from beyond the surface changes nothing, whatever their distances;
- a surface is found that shows in more than ``1 - quantile`` of the cell's returns, however often something stood before it.

A cell whose firings mostly meet nothing holds no surface: what returns came from it passed before the sky.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, kernel, signed
from hilsim.background.partial import Grid, PartialMap
from hilsim.background.table import BEST, BINS, COUNT, INTENSITY_BITS, KEY, Rows
from hilsim.errors import require
from hilsim.geometry.poses import Pose
from hilsim.scene.background import INVALID, VALID, BackgroundMap

_PPM = 1_000_000
_N_BINS, _BITS, _ALL = constant(BINS), constant(INTENSITY_BITS), constant(_PPM)
_KEY, _BEST, _COUNT = constant(KEY), constant(BEST), constant(COUNT)
_NEAR_MM, _NEAR_SHARE = constant(100), constant(64)
"""Returns within 10 cm or 1/64 of the distance lie at the surface: noise, roughness and the cell's own width."""


@dataclass(frozen=True, kw_only=True)
class SurfaceRule:
    """Which of a cell's distances is its surface.

    Attributes:
        kind: ``quantile`` or ``max``.
        quantile: Share of the cell's returns that are not farther.
        min_hits: Cells with fewer returns hold no surface.
        min_share: Nor do cells where a smaller share of the firings has a return (as far as a sensor tells where it fired in vain).
    """

    kind: Literal["quantile", "max"] = "quantile"
    quantile: float = 0.95
    min_hits: int = 2
    min_share: float = 0.25

    def __post_init__(self) -> None:
        require(
            (self.kind in {"quantile", "max"}, f'kind must be "quantile" or "max", got "{self.kind}"'),
            (0.5 <= self.quantile < 1.0, f"quantile must be 0.5 to less than 1, got {self.quantile}"),
            (1 <= self.min_hits <= _PPM, f"min_hits must be 1 to {_PPM}, got {self.min_hits}"),
            (0.0 <= self.min_share <= 1.0, f"min_share must be 0 to 1, got {self.min_share}"),
        )

    @property
    def beyond_ppm(self) -> int:
        """Returns of a million that may be farther."""
        return 0 if self.kind == "max" else _PPM - round(self.quantile * _PPM)


@kernel
def find_surfaces(rows: Rows, beyond_ppm: int, found: npt.NDArray[np.uint32]) -> None:
    """Find each cell's surface.

    Args:
        rows: Counts, in the order of their keys.
        beyond_ppm: Returns of a million that may be farther, rounded down to whole returns.
        found: ``uint32[4, cells]``, written where there is anything: distance and intensity as ``packed`` (0 without returns), returns, those of them
            that lie at the surface, firings without a return.
    """
    start = 0
    while start < rows.shape[0]:
        cell = signed(rows[start, _KEY]) // _N_BINS
        if signed(rows[start, _KEY]) == cell * _N_BINS:
            found[3, cell] = rows[start, _COUNT]
            start += 1
        total = signed(0)
        stop = start
        while stop < rows.shape[0] and signed(rows[stop, _KEY]) // _N_BINS == cell:
            total += rows[stop, _COUNT]
            stop += 1
        if total > 0:
            beyond = total * beyond_ppm // _ALL
            at = stop - 1
            while beyond >= rows[at, _COUNT]:
                beyond -= rows[at, _COUNT]
                at -= 1
            found[0, cell], found[1, cell] = rows[at, _BEST], total
            found[2, cell] = _near(rows[start:stop], signed(rows[at, _BEST]) >> _BITS)
        start = stop


@kernel
def _near(rows: Rows, distance_mm: int) -> int:
    """Returns of a cell that lie at a distance, as far as their bins tell."""
    tolerance_mm = max(_NEAR_MM, distance_mm // _NEAR_SHARE)
    near = signed(0)
    for row in range(rows.shape[0]):
        apart_mm = (signed(rows[row, _BEST]) >> _BITS) - distance_mm
        if -tolerance_mm <= apart_mm <= tolerance_mm:
            near += rows[row, _COUNT]
    count: int = near
    return count


def surfaces(partial: PartialMap, beyond_ppm: int) -> tuple[npt.NDArray[np.uint32], ...]:
    """Distance and intensity as ``packed``, returns, returns at the surface and firings without a return, each ``uint32[rows, columns]``."""
    found = np.zeros((4, partial.grid.columns * partial.grid.rows), dtype=np.uint32)
    find_surfaces(partial.rows, beyond_ppm, found)
    return tuple(_shaped(figure, partial.grid) for figure in found)


def _shaped(by_cell: npt.NDArray[np.uint32], grid: Grid) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(by_cell.reshape(grid.columns, grid.rows).T)


def form_map(
    partial: PartialMap, rule: SurfaceRule, *, model: str = "", pose: Pose | None = None, provenance: dict[str, Any] | None = None
) -> BackgroundMap:
    """The map of all that was counted.

    Args:
        partial: Counts.
        rule: Which distance is the surface.
        model: Of the sensor.
        pose: World from sensor.
        provenance: What to keep of how it was made.
    """
    best, hits, near, empty = surfaces(partial, rule.beyond_ppm)
    firings = hits.astype(np.int64) + empty
    is_valid = (hits >= rule.min_hits) & (hits.astype(np.int64) * _PPM >= firings * round(rule.min_share * _PPM))
    distance_mm = np.where(is_valid, best >> INTENSITY_BITS, 0).astype(np.uint32)
    intensity = np.where(is_valid, best & ((1 << INTENSITY_BITS) - 1), 0).astype(np.uint16)
    confidence = np.where(is_valid, near / np.maximum(hits, 1), 0.0).astype(np.float32)
    return BackgroundMap(
        grid=partial.grid,
        distance_mm=distance_mm,
        intensity=intensity,
        flags=np.where(is_valid, VALID, INVALID).astype(np.uint8),
        hit_count=hits,
        confidence=confidence,
        model=model,
        pose=pose,
        provenance=provenance or {},
    )
