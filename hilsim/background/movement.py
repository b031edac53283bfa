"""Whether the sensor stood still: whether a place looks the same at the end of a capture as at its beginning.

What passes by makes cells nearer when it comes, or farther when it has gone; a sensor that moves makes some nearer and about as many others
farther. So the lesser of the two shares decides. Compared are medians, which nothing moves that is there for less than half of the time.

Measured on the demo street, thirds of 0.3 to 9 s: standing at 12 places with its traffic 0.1 to 4.7 % (all but one below 2 %), driving 6 to 42 %;
on public captures: standing sensors 0.1 to 1.6 %, a car that creeps 11 %. A drift of a few centimetres a second shows after tens of seconds only.
"""

from dataclasses import dataclass

import numpy as np

from hilsim.background.partial import PartialMap
from hilsim.background.surface import surfaces
from hilsim.errors import CaptureError

MOST_CHANGED_RATIO = 0.055
"""A larger share of the cells became nearer, and a larger share farther: the sensor moved."""
FEWEST_CELLS = 200
"""With fewer cells there is no verdict."""
_CHANGED_MM, _CHANGED_RATIO = 200, 0.05
_HALF_PPM = 500_000


@dataclass(frozen=True, kw_only=True)
class Change:
    """How much two views of a place differ.

    Attributes:
        compared: Cells with returns in both.
        nearer: Those whose median became less, by more than 20 cm and 5 % of it.
        farther: Those whose median became more, in the same way.
    """

    compared: int
    nearer: int
    farther: int

    @property
    def is_judged(self) -> bool:
        """Whether enough cells could be compared to distinguish a fixed sensor from a moving one."""
        return self.compared >= FEWEST_CELLS

    @property
    def ratio(self) -> float:
        """The lesser share of the compared cells; 0 if too few could be compared."""
        return min(self.nearer, self.farther) / self.compared if self.is_judged else 0.0


def change(before: PartialMap, after: PartialMap) -> Change:
    """How much the places differ that two partial maps of one grid show."""
    first, second = (surfaces(partial, _HALF_PPM, takes_mean=False) for partial in (before, after))
    is_known = (first.hits > 0) & (second.hits > 0)
    distance_a, distance_b = first.distance_mm[is_known], second.distance_mm[is_known]
    limit = np.maximum(_CHANGED_MM, _CHANGED_RATIO * np.minimum(distance_a, distance_b))
    return Change(
        compared=int(is_known.sum()), nearer=int((distance_a - distance_b > limit).sum()), farther=int((distance_b - distance_a > limit).sum())
    )


def check_standing(before: PartialMap, after: PartialMap, what: str) -> Change:
    """The change between two partial maps, which must be that of a sensor that stood still.

    Args:
        before: Of the one.
        after: Of the other.
        what: Names the captures; "...: 20 % of 25,000 cells became nearer" follows.

    Raises:
        CaptureError: it moved.
    """
    seen = change(before, after)
    if seen.ratio > MOST_CHANGED_RATIO:
        raise CaptureError(
            f"{what}: {seen.nearer / seen.compared:.1%} of {seen.compared:,} cells became nearer and {seen.farther / seen.compared:.1%} farther "
            f"(of what passes by, one of them stays below {MOST_CHANGED_RATIO:.1%}): the sensor must stand still; "
            "take a stretch where it did (--start-s, --duration-s), or give the poses of what carried it (--poses)"
        )
    return seen
