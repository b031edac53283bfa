"""Statistics of patches: 12 neighbouring firings of one laser on a smooth surface.

A patch is half a packet of a VLP-16 in single-return mode, or a whole one in dual mode. All its firings have a return, neighbours are less than 25 codes
apart, and no range is 50 mm or more away from the parabola through the twelve. What is left is the noise of the sensor, with little of the surface.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.firings import Firings
from hilsim.families.velodyne.comparison.grid import is_on_one_surface
from hilsim.read.analysis.comparison.histogram import Histogram

PATCH_FIRINGS = 12
CLASSES = ((3, 10), (10, 20), (20, 40), (40, 70), (70, 100))
"""Classes of the mean byte of a patch: from the first to before the second number. Bytes 100 are saturated and have no noise."""
_LARGEST_RESIDUAL_MM = 50.0
_SD_BIN = 0.05
_SD_BINS = 801


def _residual_projection() -> npt.NDArray[np.float64]:
    powers = np.vander(np.arange(PATCH_FIRINGS, dtype=np.float64), 3)
    return np.eye(PATCH_FIRINGS) - powers @ np.linalg.pinv(powers)


_RESIDUAL = _residual_projection()
WHITE_AUTOCORRELATION = float(np.diagonal(_RESIDUAL, 1).sum() / np.trace(_RESIDUAL))
"""Expected products of neighbouring residuals over expected squares, for white noise (-0.25): a parabola takes 3 of 12 degrees of freedom."""


@dataclass(frozen=True, kw_only=True)
class Patches:
    """Patches with the deviations from their surfaces."""

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
