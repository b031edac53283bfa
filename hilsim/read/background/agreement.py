"""Agreement of a map, or of a rig that shows it, with a capture of the same place."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.read.background.partial import PartialMap
from hilsim.read.background.surface import NEAR_MM, NEAR_SHARE, SurfaceRule, form_map, surfaces
from hilsim.read.background.table import BEST, BINS, COUNT, INTENSITY_BITS, KEY, SUM, bin_starts

MIN_CELLS = 200
"""Minimum number of single-surface cells for computing a bias."""
MAX_BIAS_MM = 5.0
MIN_COVERAGE = 0.95
MIN_AGREEMENT = 0.8
_MIN_HITS = 3


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement of shown distances with a capture.

    Attributes:
        cells: Number of cells in which the capture has a surface.
        one_surface: Number of those in which all returns are at one surface, with 3 or more returns in the capture; the bias is computed from these.
        bias_mm: Mean difference of shown distance and mean of the capture's returns; positive is too far.
        spread_mm: Standard deviation of that difference.
        coverage_ratio: Share of ``cells`` with a shown distance.
        agreement_ratio: Share of the capture's returns, in cells with a shown distance, within 10 cm or 1/64 of it.
    """

    cells: int
    one_surface: int
    bias_mm: float
    spread_mm: float
    coverage_ratio: float
    agreement_ratio: float

    @property
    def is_judged(self) -> bool:
        """Whether there are enough single-surface cells."""
        return self.one_surface >= MIN_CELLS

    def faults(self) -> tuple[str, ...]:
        """Limits that are exceeded; a sentence if there were too few cells."""
        if not self.is_judged:
            return (f"too short to judge: at least {MIN_CELLS} cells must hold {_MIN_HITS} returns of one surface, got {self.one_surface:,}",)
        found = (
            (abs(self.bias_mm) <= MAX_BIAS_MM, f"bias must be at most {MAX_BIAS_MM:g} mm, got {self.bias_mm:+.1f} mm"),
            (self.coverage_ratio >= MIN_COVERAGE, f"coverage must be at least {MIN_COVERAGE:.0%}, got {self.coverage_ratio:.1%}"),
            (self.agreement_ratio >= MIN_AGREEMENT, f"agreement must be at least {MIN_AGREEMENT:.0%}, got {self.agreement_ratio:.1%}"),
        )
        return tuple(fault for holds, fault in found if not holds)


class Shown(NamedTuple):
    """Shown distance of each cell.

    Attributes:
        distance_mm: ``int64[rows, columns]``, 0 for none.
        is_one: ``bool[rows, columns]``, whether only one surface is shown. At an edge a rig's beams hit both sides within one cell, like real ones.
    """

    distance_mm: npt.NDArray[np.int64]
    is_one: npt.NDArray[np.bool_]


def compare(shown: Shown, captured: PartialMap, rule: SurfaceRule) -> Agreement:
    """Compare shown distances with a capture.

    Args:
        shown: Shown distances.
        captured: Counts of the capture, with the same grid.
        rule: Definition of a surface.
    """
    seen = form_map(captured, rule).used
    found = surfaces(captured, rule.beyond_ppm, takes_mean=True)
    is_shown = shown.distance_mm > 0
    is_one = seen & is_shown & shown.is_one & (found.hits >= _MIN_HITS) & (found.averaged == found.hits)
    apart_mm = (shown.distance_mm - found.distance_mm)[is_one].astype(np.float64)
    return Agreement(
        cells=int(seen.sum()),
        one_surface=int(is_one.sum()),
        bias_mm=float(apart_mm.mean()) if apart_mm.size else 0.0,
        spread_mm=float(apart_mm.std()) if apart_mm.size else 0.0,
        coverage_ratio=float(is_shown[seen].mean()) if seen.any() else 0.0,
        agreement_ratio=_agreement(shown.distance_mm, captured),
    )


def _agreement(shown_mm: npt.NDArray[np.int64], captured: PartialMap) -> float:
    cell, place = np.divmod(captured.rows[:, KEY], BINS)
    is_return = place > 0
    count = captured.rows[:, COUNT]
    distance_mm = bin_starts(captured.rows[:, BEST] >> INTENSITY_BITS) + captured.rows[:, SUM] / np.maximum(count, 1)
    shown = shown_mm.T.reshape(-1)[cell]
    agrees = np.abs(distance_mm - shown) <= np.maximum(NEAR_MM, shown / NEAR_SHARE)
    total = int(count[is_return & (shown > 0)].sum())
    return float(count[is_return & (shown > 0) & agrees].sum() / total) if total else 0.0
