"""Counts of dual-mode pairs: the even block has the last return, the odd block the strongest, or the second strongest if that is the last."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.read.analysis.comparison.histogram import Histogram

RANGE_BIN_MM = 2
RANGE_BINS = 4 * 65_536 // RANGE_BIN_MM  # the coarsest unit is 4 mm


def _bytes() -> Histogram:
    return Histogram(first=0.0, width=1.0, bins=256)


@dataclass(kw_only=True)
class PairCounts:
    """Counts of pairs by the kind of their two records."""

    pairs: Annotated[int, "Number of pairs."] = 0
    empty: Annotated[int, "Number of pairs without a return."] = 0
    empty_equal: Annotated[int, "Number of pairs without a return and with equal bytes."] = 0
    identical: Annotated[int, "Number of pairs with one return, in both blocks with equal distance and byte."] = 0
    different: Annotated[int, "Number of pairs with two returns of different distance."] = 0
    only_even: Annotated[int, "Number of pairs with a return in the even block only."] = 0
    only_odd: Annotated[int, "Number of pairs with a return in the odd block only."] = 0
    even_farther: Annotated[int, "Number of different pairs whose even block is the farther one."] = 0
    even_stronger: Annotated[int, "Number of different pairs whose even block has the larger byte."] = 0
    odd_stronger: Annotated[int, "Number of different pairs whose odd block has the larger byte."] = 0
    separations_m: Annotated[Histogram, "Separations of the returns of different pairs, in bins of 2 mm."] = field(
        default_factory=lambda: Histogram(first=0.0, width=RANGE_BIN_MM / 1000.0, bins=RANGE_BINS)
    )
    near_bytes: Annotated[Histogram, "Reflectivity bytes of the nearer returns of different pairs."] = field(default_factory=_bytes)
    far_bytes: Annotated[Histogram, "Reflectivity bytes of the farther returns of different pairs."] = field(default_factory=_bytes)

    def look(self, records: npt.NDArray[Any], unit_mm: int) -> None:
        """Add the channel records ``[n, blocks, 32]`` of packets of dual mode, whose distance codes have a unit."""
        even, odd = records[:, ::2], records[:, 1::2]
        has_even, has_odd = even["distance"] > 0, odd["distance"] > 0
        is_empty = ~has_even & ~has_odd
        has_equal_bytes = even["reflectivity"] == odd["reflectivity"]
        has_equal_distance = even["distance"] == odd["distance"]
        self.pairs += even.size
        self.empty += int(is_empty.sum())
        self.empty_equal += int((is_empty & has_equal_bytes).sum())
        self.identical += int((has_even & has_equal_distance & has_equal_bytes).sum())
        self.only_even += int((has_even & ~has_odd).sum())
        self.only_odd += int((has_odd & ~has_even).sum())
        self._look_at_different(records, has_even & has_odd & ~has_equal_distance, unit_mm)

    def _look_at_different(self, records: npt.NDArray[Any], is_different: npt.NDArray[np.bool_], unit_mm: int) -> None:
        even, odd = (records[:, start::2][is_different] for start in (0, 1))
        farther = even["distance"].astype(np.int64) - odd["distance"]
        self.different += len(farther)
        self.even_farther += int((farther > 0).sum())
        self.even_stronger += int((even["reflectivity"] > odd["reflectivity"]).sum())
        self.odd_stronger += int((even["reflectivity"] < odd["reflectivity"]).sum())
        is_even_farther = farther > 0
        self.near_bytes.add_places(np.where(is_even_farther, odd["reflectivity"], even["reflectivity"]))
        self.far_bytes.add_places(np.where(is_even_farther, even["reflectivity"], odd["reflectivity"]))
        self.separations_m.add_places(np.abs(farther) * (unit_mm // RANGE_BIN_MM))

    @property
    def with_return(self) -> int:
        """Number of pairs with any return."""
        return self.pairs - self.empty
