"""Whether the sensor stood still: whether a place looks the same at the end of a capture as at its beginning.

What moves through the view changes few cells; a sensor that moves changes most. Compared are the medians of the cells that have returns in
both: a car that passes does not move a median.
"""

from dataclasses import dataclass

import numpy as np

from hilsim.background.partial import PartialMap
from hilsim.background.surface import surfaces
from hilsim.background.table import INTENSITY_BITS
from hilsim.errors import CaptureError

MOST_CHANGED_RATIO = 0.12
"""More cells than that changed: the sensor moved. See docs/how-to/capture-a-background.md for what was measured."""
FEWEST_CELLS = 200
_CHANGED_MM, _CHANGED_RATIO = 200, 0.05
_HALF_PPM = 500_000


@dataclass(frozen=True, kw_only=True)
class Change:
    """How much two views of a place differ.

    Attributes:
        compared: Cells with returns in both.
        changed: Those whose medians are farther apart than 20 cm and 5 % of the nearer one.
    """

    compared: int
    changed: int

    @property
    def ratio(self) -> float:
        """Share of the compared cells that changed; 0 where too few could be compared to tell."""
        return self.changed / self.compared if self.compared >= FEWEST_CELLS else 0.0


def change(before: PartialMap, after: PartialMap) -> Change:
    """How much the places differ that two partial maps of one grid show."""
    first, first_hits, _ = surfaces(before, _HALF_PPM)
    second, second_hits, _ = surfaces(after, _HALF_PPM)
    is_known = (first_hits > 0) & (second_hits > 0)
    one = (first[is_known] >> INTENSITY_BITS).astype(np.int64)
    other = (second[is_known] >> INTENSITY_BITS).astype(np.int64)
    limit = np.maximum(_CHANGED_MM, _CHANGED_RATIO * np.minimum(one, other))
    return Change(compared=int(is_known.sum()), changed=int((np.abs(one - other) > limit).sum()))


def check_standing(before: PartialMap, after: PartialMap, what: str) -> Change:
    """The change between two partial maps, which must be that of a sensor that stood still.

    Args:
        before: Of the one.
        after: Of the other.
        what: Completes "... in 35 % of the cells"; names the captures.

    Raises:
        CaptureError: it moved.
    """
    seen = change(before, after)
    if seen.ratio > MOST_CHANGED_RATIO:
        raise CaptureError(
            f"{what} in {seen.ratio:.0%} of {seen.compared:,} cells (up to {MOST_CHANGED_RATIO:.0%} is what passes by): the sensor must stand still; "
            "take a stretch where it did (--start-s, --duration-s), or give the poses of what carried it (--poses)"
        )
    return seen
