"""Range noise of the unit that made a recording.

Noise is measured along each laser's scan: third differences of four neighbouring ranges cancel every surface that is smooth to second order, and have twenty
times the variance of a range's own noise. Their median leaves out edges. It is measured for each class of reflectivity bytes and of ranges; classes
with too few ranges get the model of ``DetectorSpec``, fitted to the others: ``s0^2 + s1^2 / (b + 1) * max(1, R / R1)^2`` for byte b at range R.
"""

import numpy as np
import numpy.typing as npt

from hilsim.emulator.insertion.part import RecordedRanges
from hilsim.emulator.insertion.unit import BYTE_CLASSES, RANGE_CLASSES_M

_ORDER = np.array([1.0, -3.0, 3.0, -1.0])
_VARIANCE_RATIO = float((_ORDER**2).sum())
_WIDEST_M = 0.3
"""Third differences beyond it are edges of surfaces."""
_SD_PER_MEDIAN = 1.4826
_MIN_RUNS = 200
"""Runs of four ranges of one class, at least."""
ONSET_M = 15.0
"""``DetectorSpec.range_noise_onset_m``."""


def measured_noise_m(ranges: RecordedRanges) -> npt.NDArray[np.float64] | None:
    """Standard deviation of a range, ``float64[b, r]``, by the classes of ``insertion.unit.BYTE_CLASSES`` and ``RANGE_CLASSES_M``; None: too few ranges."""
    range_m, byte, unit_m = ranges
    if len(range_m) < len(_ORDER):
        return None
    windows = np.lib.stride_tricks.sliding_window_view(range_m, len(_ORDER), axis=0)
    level = np.lib.stride_tricks.sliding_window_view(byte, len(_ORDER), axis=0)
    third_m, low, high = np.abs(windows @ _ORDER), level.min(axis=-1), level.max(axis=-1)
    is_used = np.isfinite(third_m) & (third_m < _WIDEST_M) & (high <= 1.5 * low + 2)
    third_m, mean_m, mean_byte = third_m[is_used], windows.mean(axis=-1)[is_used], level.mean(axis=-1)[is_used]
    of_byte, of_range = np.searchsorted(BYTE_CLASSES, mean_byte, side="right"), np.searchsorted(RANGE_CLASSES_M, mean_m, side="right")
    noise_m = np.full((len(BYTE_CLASSES) + 1, len(RANGE_CLASSES_M) + 1), np.nan)
    terms, variances, weights = np.zeros((noise_m.size, 2)), np.zeros(noise_m.size), np.zeros(noise_m.size)
    for cell in range(noise_m.size):
        at = np.unravel_index(cell, noise_m.shape)
        chosen = (of_byte == at[0]) & (of_range == at[1])
        if chosen.sum() < _MIN_RUNS:
            continue
        noise_m[at] = _SD_PER_MEDIAN * _median(third_m[chosen], unit_m) / np.sqrt(_VARIANCE_RATIO)
        far = max(float(np.median(mean_m[chosen])) / ONSET_M, 1.0)
        terms[cell], variances[cell] = (1.0, far**2 / (float(np.median(mean_byte[chosen])) + 1.0)), noise_m[at] ** 2
        weights[cell] = np.sqrt(chosen.sum()) / max(noise_m[at], 1e-6) ** 2
    if not weights.any():
        return None
    strong, weak = _non_negative(terms, variances, weights)
    typical_byte = np.sqrt(np.array([1.0, *BYTE_CLASSES]) * np.array([*BYTE_CLASSES, 128.0]))
    typical_m = np.sqrt(np.array([1.0, *RANGE_CLASSES_M]) * np.array([*RANGE_CLASSES_M, 160.0]))
    fitted = np.sqrt(strong + weak * np.maximum(typical_m / ONSET_M, 1.0) ** 2 / (typical_byte[:, np.newaxis] + 1.0))
    return np.where(np.isnan(noise_m), fitted, noise_m)


def _median(values_m: npt.NDArray[np.float64], unit_m: float) -> float:
    """Median of absolute values that are whole multiples of a unit, as if each were spread evenly over its unit."""
    counts = np.bincount(np.rint(values_m / unit_m).astype(np.int64))
    below = np.cumsum(counts) - counts
    half = values_m.size / 2.0
    at = int(np.searchsorted(np.cumsum(counts), half))
    share = (half - below[at]) / counts[at]
    return float(unit_m * (0.5 * share if at == 0 else at - 0.5 + share))


def _non_negative(terms: npt.NDArray[np.float64], values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Two coefficients of a weighted least-squares fit, none of them negative."""
    (first, second), *_ = np.linalg.lstsq(terms * weights[:, np.newaxis], values * weights, rcond=None)
    if first >= 0.0 and second >= 0.0:
        return float(first), float(second)
    alone = [float((weights**2 * terms[:, at] * values).sum() / (weights**2 * terms[:, at] ** 2).sum()) for at in (0, 1)]
    errors = [float(((weights * (values - alone[at] * terms[:, at])) ** 2).sum()) for at in (0, 1)]
    return (alone[0], 0.0) if errors[0] <= errors[1] else (0.0, alone[1])
