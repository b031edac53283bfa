"""How well what a map shows agrees with a capture: of the place it was made from, or of the same place at another time."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.background.partial import PartialMap
from hilsim.background.surface import NEAR_MM, NEAR_SHARE, SurfaceRule, form_map, surfaces
from hilsim.background.table import BEST, BINS, COUNT, INTENSITY_BITS, KEY, SUM, bin_starts

FEWEST_CELLS = 200
"""Cells of one surface; fewer do not show a bias."""
MOST_BIAS_MM = 5.0
LEAST_COVERAGE = 0.95
LEAST_AGREEMENT = 0.8
_FEWEST_HITS = 3


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """What is shown, against a capture.

    Attributes:
        cells: In which the capture has a surface.
        one_surface: Those of them in which all returns lie at one surface, 3 or more of the capture and all that are shown: the bias comes from these.
        bias_mm: Mean over them of what is shown minus the mean of the capture's returns; positive is too far.
        spread_mm: Standard deviation of the same.
        coverage_ratio: Share of ``cells`` in which something is shown.
        agreement_ratio: Share of the capture's returns, in cells in which something is shown, within 10 cm or 1/64 of what is shown.
    """

    cells: int
    one_surface: int
    bias_mm: float
    spread_mm: float
    coverage_ratio: float
    agreement_ratio: float

    @property
    def is_judged(self) -> bool:
        """Whether there are enough cells of one surface."""
        return self.one_surface >= FEWEST_CELLS

    def faults(self) -> tuple[str, ...]:
        """What is worse than it must be; where nothing could be judged, that."""
        if not self.is_judged:
            return (f"too short to judge: at least {FEWEST_CELLS} cells must hold {_FEWEST_HITS} returns of one surface, got {self.one_surface:,}",)
        found = (
            (abs(self.bias_mm) <= MOST_BIAS_MM, f"bias must be at most {MOST_BIAS_MM:g} mm, got {self.bias_mm:+.1f} mm"),
            (self.coverage_ratio >= LEAST_COVERAGE, f"coverage must be at least {LEAST_COVERAGE:.0%}, got {self.coverage_ratio:.1%}"),
            (self.agreement_ratio >= LEAST_AGREEMENT, f"agreement must be at least {LEAST_AGREEMENT:.0%}, got {self.agreement_ratio:.1%}"),
        )
        return tuple(fault for holds, fault in found if not holds)


class Shown(NamedTuple):
    """What is shown in each cell.

    Attributes:
        distance_mm: ``int64[rows, columns]``, 0 where nothing is.
        is_one: ``bool[rows, columns]``: nothing else is shown there. At an edge a rig's beams meet both sides within one cell, as real ones do.
    """

    distance_mm: npt.NDArray[np.int64]
    is_one: npt.NDArray[np.bool_]


def compare(shown: Shown, captured: PartialMap, rule: SurfaceRule) -> Agreement:
    """What is shown against a capture.

    Args:
        shown: What is shown.
        captured: Counts of the capture, of the same grid.
        rule: What a surface is.
    """
    seen = form_map(captured, rule).used
    found = surfaces(captured, rule.beyond_ppm, takes_mean=True)
    is_shown = shown.distance_mm > 0
    is_one = seen & is_shown & shown.is_one & (found.hits >= _FEWEST_HITS) & (found.averaged == found.hits)
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
