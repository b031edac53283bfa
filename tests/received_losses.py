"""Firings without a return in a stream: single ones in even surfaces, those at depth edges, and their bytes."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_SURFACE_M = 0.05
"""Largest step between firings of one surface."""
_EVEN_BYTES, _EVEN_RATIO = 2.0, 0.25
"""Both sides of a place are equally bright if their mean bytes differ by at most this, or by this share of their mean."""
_SETTLED_M, _EDGE_M, _BETWEEN_M = 0.06, 0.5, 0.1
_MAX_BETWEEN = 4
"""Most firings between the two sides of an edge."""
_AROUND = 3
"""Firings on either side within which a return counts as beside an empty firing."""


class DropOuts(NamedTuple):
    """Places of even surfaces by the mean byte of the four firings around: ``int64[k]`` each.

    Attributes:
        lost: Number of places whose firing has no return.
        places: Number of places.
    """

    lost: Ints
    places: Ints


class Edges(NamedTuple):
    """Depth edges: a jump above 0.5 m between two runs of settled firings of a laser, with up to four firings between; ``[n]`` each.

    Attributes:
        near_m: Range of the near side.
        far_m: Range of the far side.
        is_approach: Whether the head turns from the far side to the near one.
        empty: Number of firings without a return between both sides.
        is_mixed: Whether a firing between has a return 0.1 m or more away from either side, between them.
    """

    near_m: npt.NDArray[np.float64]
    far_m: npt.NDArray[np.float64]
    is_approach: npt.NDArray[np.bool_]
    empty: Ints
    is_mixed: npt.NDArray[np.bool_]

    @property
    def parallax_per_m(self) -> npt.NDArray[np.float64]:
        """``1 / near - 1 / far``: the angle between both sides, seen from a receiver beside the beam, grows with it."""
        return 1.0 / self.near_m - 1.0 / self.far_m


class EmptyBytes(NamedTuple):
    """Bytes of firings without a return.

    Attributes:
        between: Number of firings with a return within three firings on both sides.
        between_other: Number of those whose byte is not the laser's baseline.
        away: Number of firings with no return within three firings.
        away_other: Number of those whose byte is not the laser's baseline.
    """

    between: int
    between_other: int
    away: int
    away_other: int


def drop_outs(distance: Ints, reflectivity: Ints, unit_m: float, borders: tuple[float, ...]) -> DropOuts:
    """Count single firings without a return in even surfaces.

    A place is a firing with two firings of the laser on either side that are less than 50 mm from their neighbours, the inner two from each other too, and
    equally bright on both sides.

    Args:
        distance: ``int64[s, c]``, distance codes of consecutive firing sequences; 0 for no return, negative between parts of a stream.
        reflectivity: ``int64[s, c]``, reflectivity bytes.
        unit_m: Distance of one count.
        borders: Borders of the classes of the mean byte, ``k + 1`` rising numbers; a class begins with its border.
    """
    count = max(len(distance) - 4, 0)
    first, second, middle, fourth, fifth = (distance[at : at + count] for at in range(5))
    left, right = ((reflectivity[at : at + count] + reflectivity[at + 1 : at + 1 + count]) / 2.0 for at in (0, 3))
    mean = (left + right) / 2.0
    near = _SURFACE_M / unit_m
    is_place = (middle >= 0) & (np.abs(left - right) <= np.maximum(_EVEN_BYTES, _EVEN_RATIO * mean))
    for one, other in ((first, second), (second, fourth), (fourth, fifth)):
        is_place &= (one > 0) & (other > 0) & (np.abs(one - other) < near)
    lost, places = (np.histogram(mean[chosen], bins=borders)[0].astype(np.int64) for chosen in (is_place & (middle == 0), is_place))
    return DropOuts(lost, places)


def find_edges(distance: Ints, unit_m: float) -> Edges:
    """Find the depth edges along the firings of each laser; arguments as of ``drop_outs``."""
    rows = [row for laser in range(distance.shape[1]) for row in _edges_of(distance[:, laser], unit_m)]
    table = np.array(rows, np.float64).reshape(-1, 5)
    return Edges(table[:, 0], table[:, 1], table[:, 2] > 0.0, table[:, 3].astype(np.int64), table[:, 4] > 0.0)


def _edges_of(distance: Ints, unit_m: float) -> list[tuple[float, float, bool, int, bool]]:
    """Rows of ``Edges`` of one laser."""
    step = np.abs(np.diff(distance))
    pair = (distance[:-1] > 0) & (distance[1:] > 0) & (step < round(_SETTLED_M / unit_m))
    starts = np.flatnonzero(pair[:-1] & pair[1:])  # of three settled firings
    margin, rows = round(_BETWEEN_M / unit_m), []
    for start, following in pairwise(starts):
        end = start + 2
        near, far = sorted((int(distance[end]), int(distance[following])))
        if following <= end or following - end - 1 > _MAX_BETWEEN or (far - near) * unit_m < _EDGE_M:
            continue
        between = distance[end + 1 : following]
        if (between >= 0).all():
            is_mixed = ((between >= near + margin) & (between <= far - margin)).any()
            rows.append((near * unit_m, far * unit_m, distance[end] > distance[following], int((between == 0).sum()), bool(is_mixed)))
    return rows


def empty_bytes(distance: Ints, reflectivity: Ints, baseline: Ints) -> EmptyBytes:
    """Count the bytes of firings without a return; ``baseline`` is ``int64[c]``, other arguments as of ``drop_outs``."""
    is_empty, is_return, is_other = distance == 0, distance > 0, reflectivity != baseline
    before, after = np.zeros_like(is_return), np.zeros_like(is_return)
    for lag in range(1, _AROUND + 1):
        before[lag:] |= is_return[:-lag]
        after[:-lag] |= is_return[lag:]
    between, away = is_empty & before & after, is_empty & ~before & ~after
    return EmptyBytes(*(int(part.sum()) for part in (between, between & is_other, away, away & is_other)))
