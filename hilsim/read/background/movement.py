"""Detection of a moving sensor, by comparing the end of a capture with its beginning.

Traffic makes cells nearer when it arrives, or farther when it has left; a moving sensor makes some cells nearer and about as many
farther. So the smaller of the two shares decides. Medians are compared, which do not depend on objects present for less than half of the time.

Measured on the demo street, thirds of 0.3 to 9 s: stationary at 12 places with traffic 0.1 to 4.7 % (all but one below 2 %), driving 6 to 42 %;
on public captures: stationary sensors 0.1 to 1.6 %, a slowly driving car 11 %. A drift of a few centimetres a second is detected only after tens of seconds.
"""

from dataclasses import dataclass

import numpy as np

from hilsim.errors import CaptureError
from hilsim.read.background.partial import PartialMap
from hilsim.read.background.surface import surfaces

MAX_CHANGED_RATIO = 0.055
"""The sensor moved if more than this share of the cells became nearer, and more than this share farther."""
MIN_CELLS = 200
"""Minimum number of cells for a decision."""
_CHANGED_MM, _CHANGED_RATIO = 200, 0.05
_HALF_PPM = 500_000


@dataclass(frozen=True, kw_only=True)
class Change:
    """Difference of two views of a place.

    Attributes:
        compared: Number of cells with returns in both.
        nearer: Number of cells whose median decreased by more than 20 cm and 5 %.
        farther: Number of cells whose median increased by more than 20 cm and 5 %.
    """

    compared: int
    nearer: int
    farther: int

    @property
    def is_judged(self) -> bool:
        """Whether enough cells were compared to distinguish a stationary sensor from a moving one."""
        return self.compared >= MIN_CELLS

    @property
    def ratio(self) -> float:
        """Smaller share of the compared cells; 0 if too few were compared."""
        return min(self.nearer, self.farther) / self.compared if self.is_judged else 0.0


def change(before: PartialMap, after: PartialMap) -> Change:
    """Difference between the places of two partial maps with one grid."""
    first, second = (surfaces(partial, _HALF_PPM, takes_mean=False) for partial in (before, after))
    is_known = (first.hits > 0) & (second.hits > 0)
    distance_a, distance_b = first.distance_mm[is_known], second.distance_mm[is_known]
    limit = np.maximum(_CHANGED_MM, _CHANGED_RATIO * np.minimum(distance_a, distance_b))
    return Change(
        compared=int(is_known.sum()), nearer=int((distance_a - distance_b > limit).sum()), farther=int((distance_b - distance_a > limit).sum())
    )


def check_standing(before: PartialMap, after: PartialMap, what: str) -> Change:
    """Difference between two partial maps; raises an error if the sensor moved.

    Args:
        before: First partial map.
        after: Second partial map.
        what: Name of the captures; "...: 20 % of 25,000 cells became nearer" follows.

    Raises:
        CaptureError: the sensor moved.
    """
    seen = change(before, after)
    if seen.ratio > MAX_CHANGED_RATIO:
        raise CaptureError(
            f"{what}: {seen.nearer / seen.compared:.1%} of {seen.compared:,} cells became nearer and {seen.farther / seen.compared:.1%} farther "
            f"(with traffic alone, one of them is below {MAX_CHANGED_RATIO:.1%}): the sensor must not move; "
            "select a part where it did not (--start-s, --duration-s), or give the poses of its carrier (--poses)"
        )
    return seen
