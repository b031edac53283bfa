"""Statistics of the pixels: ranges, reflectivity, photons, and pairs of returns."""

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.profiles import FieldKind, Profile
from hilsim.families.ouster.stream import LidarBlock
from hilsim.read.analysis.comparison.histogram import Histogram

RANGE_CLASSES_M = ((1, 5), (5, 10), (10, 20), (20, 40), (40, 600))
"""Classes of range of the photons: from the first to before the second number; an echo from the near zone does not reach the detector whole."""
MIN_REFLECTIVITY, MAX_REFLECTIVITY = 5, 100
"""Reflectivity for which photons are compared: above 100 the scale is logarithmic, below 5 the byte's rounding is too coarse."""
_RANGE_BIN_M, _MAX_M = 0.01, 600.0
_VALUES = 65_536
_SEPARATION_BIN_M, _LARGEST_SEPARATION_M = 0.001, 100.0


def _photons() -> Histogram:
    return Histogram(first=0.0, width=1.0, bins=_VALUES)


class PixelStatistics:
    """Distributions over returns, and over pixels without one.

    Attributes:
        reflectivity: Reflectivity of the returns.
        ranges_m: Ranges of the returns, in bins of 1 cm.
        signal: Logarithm to base 10 of photons times range squared (m2) by reflectivity (percent), by class of ``RANGE_CLASSES_M``.
        empty_signal: Photons of pixels without a return and without a reflectivity.
        near_ir: Photons of ambient light, of all pixels.
        empty_near_ir: Photons of ambient light, of pixels without a return.
        odd: Number of ranges of odd millimetres.
        of_three: Number of ranges that are multiples of 3 mm, a third of them if none is preferred.
        pixels: Number of pixels of columns that have some.
        empty: Number of those without a return.
        suppressed: Number of those without a return, but with a reflectivity: a return was suppressed.
    """

    def __init__(self, profile: Profile) -> None:
        self.reflectivity = Histogram(first=0.0, width=1.0, bins=256)
        self.ranges_m = Histogram(first=0.0, width=_RANGE_BIN_M, bins=round(_MAX_M / _RANGE_BIN_M))
        self.signal = tuple(Histogram(first=-1.0, width=0.002, bins=4500) for _ in RANGE_CLASSES_M)
        self.empty_signal, self.near_ir, self.empty_near_ir = _photons(), _photons(), _photons()
        self.pixels = self.empty = self.suppressed = 0
        self.odd = self.of_three = 0
        self._has_signal, self._has_near_ir = profile.carries(FieldKind.SIGNAL), profile.carries(FieldKind.NEAR_IR)

    def look(self, block: LidarBlock) -> None:
        """Add a block."""
        pixels, is_valid = block.measured, block.has_pixels
        is_return = (pixels.range_mm > 0) & is_valid[:, np.newaxis, :, np.newaxis]
        range_mm, reflectivity = pixels.range_mm[is_return].astype(np.int64), pixels.reflectivity[is_return].astype(np.int64)
        self.reflectivity.add_places(reflectivity)
        self.ranges_m.add(range_mm / 1000.0)
        self.odd += int((range_mm % 2).sum())
        self.of_three += int((range_mm % 3 == 0).sum())
        is_empty = is_valid[:, :, np.newaxis] & ~is_return.any(axis=1)
        self.pixels += int(is_valid.sum()) * is_return.shape[-1]
        self.empty += int(is_empty.sum())
        self.suppressed += int((pixels.reflectivity[:, 0][is_empty] > 0).sum())
        if self._has_signal:
            self.empty_signal.add_places(pixels.signal[:, 0][is_empty & (pixels.reflectivity[:, 0] == 0)])
            self._add_signal(pixels.signal[is_return].astype(np.float64), range_mm / 1000.0, reflectivity)
        if self._has_near_ir:
            self.near_ir.add_places(pixels.near_ir[:, 0][is_valid])
            self.empty_near_ir.add_places(pixels.near_ir[:, 0][is_empty])

    def _add_signal(self, signal: npt.NDArray[np.float64], range_m: npt.NDArray[np.float64], reflectivity: npt.NDArray[np.int64]) -> None:
        is_fit = (reflectivity >= MIN_REFLECTIVITY) & (reflectivity <= MAX_REFLECTIVITY) & (signal > 0)
        for (near_m, far_m), histogram in zip(RANGE_CLASSES_M, self.signal, strict=True):
            chosen = is_fit & (range_m >= near_m) & (range_m < far_m)
            histogram.add(np.log10(signal[chosen] * range_m[chosen] ** 2 / reflectivity[chosen]))


class PairStatistics:
    """Pixels of a profile with two returns.

    Attributes:
        with_return: Number of pixels with a return.
        both: Number of pixels with two.
        only_second: Number of pixels with the second alone.
        second_farther: Number of pixels with two, of which the second is farther.
        separations_m: Distances between two returns of a pixel, in bins of 1 mm.
    """

    def __init__(self) -> None:
        self.with_return = self.both = self.only_second = self.second_farther = 0
        self.separations_m = Histogram(first=0.0, width=_SEPARATION_BIN_M, bins=round(_LARGEST_SEPARATION_M / _SEPARATION_BIN_M))

    def look(self, block: LidarBlock) -> None:
        """Add a block."""
        range_mm, has_pixels = block.measured.range_mm.astype(np.int64), block.has_pixels
        first, second = (range_mm[:, number][has_pixels] for number in range(2))
        is_pair = (first > 0) & (second > 0)
        self.with_return += int(((first > 0) | (second > 0)).sum())
        self.both += int(is_pair.sum())
        self.only_second += int(((first == 0) & (second > 0)).sum())
        self.second_farther += int((second[is_pair] > first[is_pair]).sum())
        self.separations_m.add(np.abs(second[is_pair] - first[is_pair]) / 1000.0)
