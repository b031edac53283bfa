"""Statistics of depth edges, of single firings without a return, and of isolated returns.

A firing is *settled* with its neighbour of the same laser if both have a return and are less than 0.1 m apart. An *edge* is a pair of settled pairs with
0 to 2 firings between them, of which none is settled with a neighbour, whose inner ranges are more than 0.5 m apart. So each edge counts once. Edges show
how a sensor treats a beam that meets two surfaces: a return from either, from between them (a *mixed* point), or none.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.firings import Firings

_SETTLED_MM = 100
_EDGE_MM = 500
_MERGED_MM = 1200  # real units report two returns from here on (least separation of dual returns 1.16 to 1.19 m)
_MOST_BETWEEN = 2


@dataclass(kw_only=True)
class EdgeStatistics:
    """Counts of edges and of firings that differ from both neighbours."""

    returns: Annotated[int, "Number of returns."] = 0
    edges: Annotated[int, "Number of edges."] = 0
    with_empty: Annotated[int, "Number of edges with a firing without a return."] = 0
    near: Annotated[int, "Number of edges with a gap of less than 1.2 m."] = 0
    near_mixed: Annotated[int, "Number of near edges with a return 0.1 m or more away from either side, between them."] = 0
    far: Annotated[int, "Number of edges with a gap of 1.2 m or more."] = 0
    far_mixed: Annotated[int, "Number of far edges with such a return."] = 0
    single: Annotated[
        int, "Number of firings without a return whose two neighbours on either side are settled, the inner two with each other too."
    ] = 0
    isolated: Annotated[int, "Number of returns whose neighbours on either side have none."] = 0

    def look(self, firings: Firings) -> None:
        """Add firings."""
        range_mm = firings.distance * firings.unit_mm
        self.returns += int((range_mm > 0).sum())
        for between in range(_MOST_BETWEEN + 1):
            if range_mm.shape[1] >= between + 4:
                self._add_edges(_windows(range_mm, between + 4))
        if range_mm.shape[1] >= 5:
            five = _windows(range_mm, 5)
            is_smooth = _settled(five[0], five[1]) & _settled(five[3], five[4]) & _settled(five[1], five[3])
            self.single += int((is_smooth & (five[2] == 0)).sum())
            former, middle, later = five[1], five[2], five[3]
            self.isolated += int(((middle > 0) & (former == 0) & (later == 0)).sum())

    def _add_edges(self, window: list[npt.NDArray[np.int64]]) -> None:
        """Add the edges among windows of neighbouring firings, a settled pair at each end."""
        near_side, far_side = window[1], window[-2]
        is_edge = _settled(*window[:2]) & _settled(*window[-2:]) & (np.abs(far_side - near_side) > _EDGE_MM)
        for former, later in pairwise(window[1:-1]):
            is_edge &= ~_settled(former, later)
        low, high = np.minimum(near_side, far_side)[is_edge], np.maximum(near_side, far_side)[is_edge]
        has_empty, is_mixed = np.zeros(len(low), dtype=np.bool_), np.zeros(len(low), dtype=np.bool_)
        for firing in (values[is_edge] for values in window[2:-2]):
            has_empty |= firing == 0
            is_mixed |= (firing >= low + _SETTLED_MM) & (firing <= high - _SETTLED_MM)
        is_near = high - low < _MERGED_MM
        self.edges += len(low)
        self.with_empty += int(has_empty.sum())
        self.near += int(is_near.sum())
        self.near_mixed += int((is_near & is_mixed).sum())
        self.far += int((~is_near).sum())
        self.far_mixed += int((~is_near & is_mixed).sum())


def _windows(values: npt.NDArray[np.int64], length: int) -> list[npt.NDArray[np.int64]]:
    """Views of neighbouring firings: the k-th holds the k-th firing of every window, ``int64[n, m - length + 1, c]``."""
    return [values[:, start : values.shape[1] - length + start + 1] for start in range(length)]


def _settled(former: npt.NDArray[np.int64], later: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return np.asarray((former > 0) & (later > 0) & (np.abs(later - former) < _SETTLED_MM))
