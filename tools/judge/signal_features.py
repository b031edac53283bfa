"""Features of patches: 12 neighbouring firings of one laser on a smooth surface (``hilsim.families.velodyne.comparison.signal``).

===========  ====================================================================================================================
topic        features
===========  ====================================================================================================================
noise        deviation of the ranges about the patch's parabola: sd, mean magnitude, largest, kurtosis, median third difference
colour       autocorrelations of those deviations at lags 1 to 3; share of equal neighbouring codes
byte         sd of the bytes, span, share of equal neighbours, number of different bytes, lag-1 autocorrelation
range_byte   correlation of deviation and byte, and of their differences from firing to firing
parity       share of odd steps, share of odd steps among those with equal bytes, share of the commoner parity
===========  ====================================================================================================================

Patches of two captures are compared only within cells of equal range (octaves) and byte, so that no scene can be recognised by them.
"""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.signal import Patches, autocorrelations, find_patches, packet_firings
from tools.judge.capture_sample import CaptureSample
from tools.judge.feature_table import FeatureTable, join_tables

_BYTE_EDGES = (3, 6, 10, 20, 30, 40, 55, 70, 85, 99)
_RANGE_EDGES_M = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def signal_features(capture: CaptureSample) -> FeatureTable:
    """Find the features of a capture's patches."""
    tables = []
    for block in capture.stretches:
        firings = packet_firings(block)
        tables.append(patch_features(find_patches(firings), firings.unit_mm))
    return join_tables(tables)


def patch_features(patches: Patches, unit_mm: int) -> FeatureTable:
    """Find the features of patches."""
    byte = patches.byte.astype(np.float64)
    about_mean = byte - byte.mean(axis=1, keepdims=True)
    step = np.diff(patches.distance, axis=1)
    is_equal = patches.byte[:, 1:] == patches.byte[:, :-1]
    is_odd = step % 2 == 1
    odd_codes = (patches.distance % 2).mean(axis=1)
    columns = _noise_columns(patches.residual_mm, np.diff(patches.distance, n=3, axis=1) * unit_mm)
    columns |= {f"colour.lag_{lag}": autocorrelations(patches.residual_mm, lag) for lag in (1, 2, 3)}
    columns |= {
        "colour.equal": (step == 0).mean(axis=1),
        "byte.sd": byte.std(axis=1),
        "byte.span": np.ptp(byte, axis=1),
        "byte.equal": is_equal.mean(axis=1),
        "byte.kinds": (np.diff(np.sort(byte, axis=1), axis=1) > 0).sum(axis=1) + 1.0,
        "byte.lag_1": autocorrelations(about_mean),
        "range_byte.level": _correlations(patches.residual_mm, about_mean),
        "range_byte.step": _correlations(step.astype(np.float64), np.diff(byte, axis=1)),
        "parity.odd": is_odd.mean(axis=1),
        "parity.odd_equal": (is_odd & is_equal).sum(axis=1) / np.where(is_equal.any(axis=1), is_equal.sum(axis=1), np.nan),
        "parity.commoner": np.maximum(odd_codes, 1.0 - odd_codes),
    }
    range_m = patches.distance.mean(axis=1) * unit_mm / 1000.0
    cell = np.searchsorted(_RANGE_EDGES_M, range_m, side="right") * (len(_BYTE_EDGES) + 1) + np.searchsorted(
        _BYTE_EDGES, byte.mean(axis=1), side="right"
    )
    return FeatureTable(columns=columns, cell=cell)


def _noise_columns(residual: npt.NDArray[np.float64], third: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
    sd = residual.std(axis=1)
    magnitude = np.abs(residual)
    return {
        "noise.sd": sd,
        "noise.mean": magnitude.mean(axis=1),
        "noise.largest": magnitude.max(axis=1, initial=0.0),
        "noise.kurtosis": (residual**4).mean(axis=1) / np.where(sd > 0.0, sd, np.nan) ** 4,
        "noise.third": np.median(np.abs(third), axis=1) if len(third) else np.zeros(0),
    }


def _correlations(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Correlation coefficient of each row, ``float64[k]``; NaN if one of the two does not vary."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    scale = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return np.asarray((a * b).sum(axis=1) / np.where(scale > 0.0, scale, np.nan))
