"""Statistics of neighbouring firings of one laser: the grid of the ranges, the noise of the byte, the colour of the range noise, and depth edges.

They compare neighbours inside a packet only, so they do not depend on lost packets or on how a stream is cut into blocks. Packets of fewer than 12 firing
sequences are taken together, as many as have 12: of a VLS-128 four packets, which follow each other without a pause.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.blocks import PacketBlock
from hilsim.read.analysis.comparison.histogram import Histogram

PATCH_FIRINGS = 12
CLASSES = ((3, 10), (10, 20), (20, 40), (40, 70), (70, 100))
"""Classes of the mean byte of a patch: from the first to before the second number. Bytes 100 are saturated and have no noise."""
_LARGEST_STEP = 25
"""Neighbours whose distance codes differ by this or more lie on different surfaces."""
_BYTES = 256
_BYTE_RANGE = (16, 98)  # below, the byte has few values; above, it saturates at 100
_LARGEST_RESIDUAL_MM = 50.0
_SD_BIN = 0.05
_SD_BINS = 801
_SETTLED_MM = 100
_EDGE_MM = 500
_MERGED_MM = 1200  # real units report two returns from here on (least separation of dual returns 1.16 to 1.19 m)
_MAX_BETWEEN = 2


@dataclass(frozen=True, kw_only=True)
class Firings:
    """Distances and bytes of ``n`` packets, or runs of packets, of ``m`` firing sequences with ``c`` lasers; in dual mode of the even blocks: the last return."""

    distance: Annotated[npt.NDArray[np.int64], "``int64[n, m, c]``, distance codes; 0 for a firing without a return."]
    byte: Annotated[npt.NDArray[np.int64], "``int64[n, m, c]``, reflectivity bytes."]
    unit_mm: Annotated[int, "Unit of the distance codes."]


def packet_firings(block: PacketBlock) -> Firings:
    """Find the firings of the block's packets, or runs of packets, that have no pause of firing inside."""
    records = block.records[:, :: 2 if block.is_dual else 1]
    sequences = records[0].size // block.model.channels
    packets = max(1, -(-PATCH_FIRINGS // sequences))
    runs, groups = len(records) // packets, block.is_joined.shape[1]
    is_whole = block.is_joined[: runs * packets].reshape(runs, packets * groups)[:, 1:].all(axis=1)
    shape = (runs, packets * sequences, block.model.channels)
    return Firings(
        distance=records["distance"][: runs * packets].reshape(shape)[is_whole].astype(np.int64),
        byte=records["reflectivity"][: runs * packets].reshape(shape)[is_whole].astype(np.int64),
        unit_mm=block.model.distance_unit_mm,
    )


@dataclass(kw_only=True)
class GridStatistics:
    """Counts of steps by parity and by equality of the bytes, and of codes by parity, laser and byte.

    A *step* is the difference between two neighbouring firings of one laser inside a packet, both with a return, of less than 25 codes. White ranges
    rounded to the code's unit give as many odd steps as even ones. Ranges of a VLP-16 lie locally on a grid of two codes (4 mm), and the byte and the laser
    decide on which of the two grids, so few of its steps are odd, and fewer where the two bytes are equal.
    """

    channels: Annotated[int, "Number of lasers."]
    steps: Annotated[int, "Number of steps."] = 0
    odd: Annotated[int, "Number of odd steps."] = 0
    equal: Annotated[int, "Number of steps whose two firings have the same byte."] = 0
    odd_equal: Annotated[int, "Number of odd steps among ``equal``."] = 0
    diffuse: Annotated[int, "Number of steps whose former firing has a byte of 16 to 98."] = 0
    diffuse_equal: Annotated[int, "Number of steps among ``diffuse`` whose two firings have the same byte."] = 0

    def __post_init__(self) -> None:
        """Begin the counts of returns by laser, byte, and parity of the distance code, ``int64[channels, 256, 2]``."""
        self.parity = np.zeros((self.channels, _BYTES, 2), dtype=np.int64)

    def look(self, firings: Firings) -> None:
        """Add firings."""
        distance, byte = firings.distance, firings.byte
        step = np.diff(distance, axis=1)
        is_step = is_on_one_surface(distance)
        is_odd, is_equal = step % 2 == 1, byte[:, 1:] == byte[:, :-1]
        is_diffuse = is_step & (byte[:, :-1] >= _BYTE_RANGE[0]) & (byte[:, :-1] <= _BYTE_RANGE[1])
        self.steps += int(is_step.sum())
        self.odd += int((is_step & is_odd).sum())
        self.equal += int((is_step & is_equal).sum())
        self.odd_equal += int((is_step & is_equal & is_odd).sum())
        self.diffuse += int(is_diffuse.sum())
        self.diffuse_equal += int((is_diffuse & is_equal).sum())
        laser = np.broadcast_to(np.arange(distance.shape[2]), distance.shape)
        cell = ((laser * _BYTES + byte) * 2 + distance % 2)[distance > 0]
        self.parity += np.bincount(cell, minlength=self.parity.size).reshape(self.parity.shape)

    @property
    def predicted_share(self) -> float:
        """Share of returns whose code has the parity that most *other* returns of the same laser and byte have; NaN before any return.

        A tie of the others counts one half. Codes without a pattern give 0.5, whatever the number of samples.
        """
        many, few = self.parity.max(axis=2), self.parity.min(axis=2)
        hits = np.where(many - 1 > few, many, 0.0) + np.where(many - 1 == few, 0.5 * many, 0.0)
        returns = int(self.parity.sum())
        return float(hits.sum()) / returns if returns else float("nan")


def is_on_one_surface(distance: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether neighbours on axis 1 both have a return and are less than 25 codes apart, ``bool[n, m - 1, ...]``."""
    former, later = distance[:, :-1], distance[:, 1:]
    return np.asarray((former > 0) & (later > 0) & (np.abs(later - former) < _LARGEST_STEP))


def _residual_projection() -> npt.NDArray[np.float64]:
    powers = np.vander(np.arange(PATCH_FIRINGS, dtype=np.float64), 3)
    return np.eye(PATCH_FIRINGS) - powers @ np.linalg.pinv(powers)


_RESIDUAL = _residual_projection()
WHITE_AUTOCORRELATION = float(np.diagonal(_RESIDUAL, 1).sum() / np.trace(_RESIDUAL))
"""Expected products of neighbouring residuals over expected squares, for white noise (-0.25): a parabola takes 3 of 12 degrees of freedom."""


@dataclass(frozen=True, kw_only=True)
class Patches:
    """Patches with the deviations from their surfaces.

    A patch is 12 neighbouring firings of one laser on a smooth surface: half a packet of a VLP-16 in single-return mode, or a whole one in dual mode. All
    its firings have a return, neighbours are less than 25 codes apart, and no range is 50 mm or more away from the parabola through the twelve. What is
    left is the noise of the sensor, with little of the surface.
    """

    distance: Annotated[npt.NDArray[np.int64], "``int64[k, 12]``, distance codes."]
    byte: Annotated[npt.NDArray[np.int64], "``int64[k, 12]``, reflectivity bytes."]
    residual_mm: Annotated[npt.NDArray[np.float64], "``float64[k, 12]``, range minus that of the parabola, mm."]
    laser: Annotated[npt.NDArray[np.int64], "``int64[k]``, laser of each patch."]
    packet: Annotated[npt.NDArray[np.int64], "``int64[k]``, index of its packet among the firings."]


def find_patches(firings: Firings) -> Patches:
    """Find the patches of firings; none for a model with fewer than 12 firing sequences in a packet."""
    packets, sequences, channels = firings.distance.shape
    patches = sequences // PATCH_FIRINGS

    def rows(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        parts = values[:, : patches * PATCH_FIRINGS].reshape(packets, patches, PATCH_FIRINGS, channels)
        return parts.transpose(0, 1, 3, 2).reshape(-1, PATCH_FIRINGS)

    distance, byte = rows(firings.distance), rows(firings.byte)
    place = np.flatnonzero(is_on_one_surface(distance).all(axis=1))
    residual = distance[place] @ _RESIDUAL * firings.unit_mm
    smooth = np.abs(residual).max(axis=1, initial=0.0) < _LARGEST_RESIDUAL_MM
    place, residual = place[smooth], residual[smooth]
    return Patches(
        distance=distance[place],
        byte=byte[place],
        residual_mm=residual,
        laser=place % channels,
        packet=place // max(patches * channels, 1),
    )


def autocorrelations(values: npt.NDArray[np.float64], lag: int = 1) -> npt.NDArray[np.float64]:
    """Sum of products of values ``lag`` places apart over the sum of squares, of each row, ``float64[k]``; NaN for a row of zeros."""
    squares = (values * values).sum(axis=1)
    return np.asarray((values[:, lag:] * values[:, :-lag]).sum(axis=1) / np.where(squares > 0.0, squares, np.nan))


class PatchStatistics:
    """Byte noise and colour of the range noise of patches, by class of the mean byte.

    Attributes:
        byte_sd: Standard deviations of the twelve bytes, a histogram for each class.
        constant: ``int64[classes]``, number of patches whose twelve bytes are equal.
    """

    def __init__(self) -> None:
        self.byte_sd = [Histogram(first=0.0, width=_SD_BIN, bins=_SD_BINS) for _ in CLASSES]
        self.constant = np.zeros(len(CLASSES), dtype=np.int64)
        self._correlation_sum = np.zeros(len(CLASSES))
        self._correlated = np.zeros(len(CLASSES), dtype=np.int64)

    def look(self, firings: Firings) -> None:
        """Add firings."""
        patches = find_patches(firings)
        mean, sd = patches.byte.mean(axis=1), patches.byte.std(axis=1)
        correlation = autocorrelations(patches.residual_mm)
        for place, (start, stop) in enumerate(CLASSES):
            is_in = (mean >= start) & (mean < stop)
            self.byte_sd[place].add(sd[is_in])
            self.constant[place] += int((patches.byte[is_in] == patches.byte[is_in][:, :1]).all(axis=1).sum())
            known = correlation[is_in & ~np.isnan(correlation)]
            self._correlation_sum[place] += float(known.sum())
            self._correlated[place] += len(known)

    def count(self, place: int) -> int:
        """Number of patches of a class."""
        return self.byte_sd[place].total

    def constant_share(self, place: int) -> float:
        """Share of patches of a class whose bytes are all equal; NaN without a patch."""
        return int(self.constant[place]) / self.count(place) if self.count(place) else float("nan")

    def autocorrelation(self, place: int) -> float:
        """Mean lag-1 autocorrelation of the residuals of a class's patches; white noise gives -0.25, NaN without a patch."""
        return float(self._correlation_sum[place] / self._correlated[place]) if self._correlated[place] else float("nan")


@dataclass(kw_only=True)
class EdgeStatistics:
    """Counts of edges and of firings that differ from both neighbours.

    A firing is *settled* with its neighbour of the same laser if both have a return and are less than 0.1 m apart. An *edge* is a pair of settled pairs
    with 0 to 2 firings between them, of which none is settled with a neighbour, whose inner ranges are more than 0.5 m apart. So each edge counts once.
    Edges show how a sensor treats a beam that meets two surfaces: a return from either, from between them (a *mixed* point), or none.
    """

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
        for between in range(_MAX_BETWEEN + 1):
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
