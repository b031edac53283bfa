"""Statistics of dual-mode pairs: the even block has the last return, the odd block the strongest, or the second strongest if that is the last."""

import numpy as np

from hilsim.analysis.comparison.histogram import Histogram
from hilsim.families.velodyne.comparison.blocks import PacketBlock
from hilsim.families.velodyne.comparison.returns import RANGE_BIN_MM, RANGE_BINS


class DualStatistics:
    """Counts of pairs by the kind of their two records.

    Attributes:
        pairs: Number of pairs.
        empty: Number of pairs without a return.
        empty_equal: Number of pairs without a return and with equal bytes.
        identical: Number of pairs with one return, in both blocks with equal distance and byte.
        different: Number of pairs with two returns of different distance.
        only_even: Number of pairs with a return in the even block only.
        only_odd: Number of pairs with a return in the odd block only.
        even_farther: Number of different pairs whose even block is the farther one.
        even_stronger: Number of different pairs whose even block has the larger byte.
        odd_stronger: Number of different pairs whose odd block has the larger byte.
        separations_m: Separations of the returns of different pairs, in bins of 2 mm.
        near_bytes: Reflectivity bytes of the nearer returns of different pairs.
        far_bytes: Reflectivity bytes of the farther returns of different pairs.
    """

    def __init__(self) -> None:
        self.pairs = 0
        self.empty = 0
        self.empty_equal = 0
        self.identical = 0
        self.different = 0
        self.only_even = 0
        self.only_odd = 0
        self.even_farther = 0
        self.even_stronger = 0
        self.odd_stronger = 0
        self.separations_m = Histogram(first=0.0, width=RANGE_BIN_MM / 1000.0, bins=RANGE_BINS)
        self.near_bytes = Histogram(first=0.0, width=1.0, bins=256)
        self.far_bytes = Histogram(first=0.0, width=1.0, bins=256)

    def look(self, block: PacketBlock) -> None:
        """Add a block of dual mode."""
        even, odd = block.records[:, ::2], block.records[:, 1::2]
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
        self._look_at_different(block, has_even & has_odd & ~has_equal_distance)

    def _look_at_different(self, block: PacketBlock, is_different: np.ndarray) -> None:
        even, odd = (block.records[:, start::2][is_different] for start in (0, 1))
        farther = even["distance"].astype(np.int64) - odd["distance"]
        self.different += len(farther)
        self.even_farther += int((farther > 0).sum())
        self.even_stronger += int((even["reflectivity"] > odd["reflectivity"]).sum())
        self.odd_stronger += int((even["reflectivity"] < odd["reflectivity"]).sum())
        is_even_farther = farther > 0
        self.near_bytes.add_places(np.where(is_even_farther, odd["reflectivity"], even["reflectivity"]))
        self.far_bytes.add_places(np.where(is_even_farther, even["reflectivity"], odd["reflectivity"]))
        self.separations_m.add_places(np.abs(farther) * (block.model.distance_unit_mm // RANGE_BIN_MM))

    @property
    def with_return(self) -> int:
        """Number of pairs with any return."""
        return self.pairs - self.empty
