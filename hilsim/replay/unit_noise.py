"""What a recording shows of the unit that made it: its range noise, and the bytes of its records without a return.

Noise is measured along each laser's scan: third differences of four neighbouring ranges cancel every surface that is smooth to second order, and have twenty
times the variance of a range's own noise. A robust width leaves out edges. It is fitted by the model of ``DetectorSpec``:
``s0^2 + s1^2 / (b + 1) * max(1, R / R1)^2`` for a reflectivity byte b at range R.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.protocols.cepton.stdv import POINT_UNIT_M, PointFlag, decode_stdv_points, read_stdv_header
from hilsim.protocols.velodyne.data import DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE
from hilsim.protocols.velodyne.geometry import FiringGeometry

_ORDER = np.array([1.0, -3.0, 3.0, -1.0])
_VARIANCE_RATIO = float((_ORDER**2).sum())
_WIDEST_M = 0.3
"""Third differences beyond it are edges of surfaces."""
_SD_PER_MEDIAN = 1.4826
_LEAST_RUNS = 200
"""Runs of four ranges of one class of reflectivity, at least."""
_CLASSES = (0, 2, 4, 8, 16, 32, 64, 256)
"""Bounds of the classes of reflectivity bytes."""
ONSET_M = 15.0
"""``DetectorSpec.range_noise_onset_m``."""


@dataclass(frozen=True, kw_only=True)
class UnitNoise:
    """What a recording shows of its unit.

    Attributes:
        strong_m: Standard deviation of the range of strong echoes, s0.
        weak_m: Noise of weak echoes, s1.
        runs: Runs of four ranges that it was measured on; 0: too few, and the other figures are 0.
        no_return: Reflectivity byte of a record without a return, by laser; empty where the format has none.
    """

    strong_m: float
    weak_m: float
    runs: int
    no_return: tuple[int, ...] = ()


def measure_velodyne(payloads: Sequence[bytes], geometry: FiringGeometry) -> UnitNoise:
    """Measure a Velodyne's data packets, in their order; others among them are left out."""
    payloads = [payload for payload in payloads if len(payload) == DATA_PACKET_SIZE]
    lasers = len(geometry.elevation_deg)
    if not payloads:
        return UnitNoise(strong_m=0.0, weak_m=0.0, runs=0, no_return=(0,) * lasers)
    packets = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), DATA_PACKET_SIZE)
    returns = int(np.bincount(RETURNS_BY_MODE_BYTE[packets[:, 1204]]).argmax())
    packets = packets[RETURNS_BY_MODE_BYTE[packets[:, 1204]] == returns]
    records = packets[:, :1200].reshape(len(packets), 12, 100)[:, ::returns, 4:].reshape(len(packets), -1, RECORDS_PER_BLOCK, 3)
    if lasers > RECORDS_PER_BLOCK:
        groups = records.shape[1] * RECORDS_PER_BLOCK // lasers
        records = records[:, : groups * lasers // RECORDS_PER_BLOCK]
    records = records.reshape(-1, lasers, 3)
    raw = records[..., 0].astype(np.int64) | records[..., 1].astype(np.int64) << 8
    byte = records[..., 2].astype(np.int64)
    range_m = np.where(raw > 0, raw * geometry.distance_unit_mm * 1e-3, np.nan)
    no_return = tuple(_most_frequent(byte[raw[:, laser] == 0, laser]) for laser in range(lasers))
    return _fitted(range_m, byte, no_return)


def measure_cepton(payloads: Sequence[bytes]) -> UnitNoise:
    """Measure a Cepton's STDV packets, in their order; others among them are left out."""
    headers = [read_stdv_header(payload) for payload in payloads]
    points = [decode_stdv_points(payload) for payload, header in zip(payloads, headers, strict=True) if header and header.point_size == 10]
    if not points:
        return UnitNoise(strong_m=0.0, weak_m=0.0, runs=0)
    every = np.concatenate(points)
    every = every[(every["flags"] & int(PointFlag.SECOND_RETURN)) == 0]
    counts = [every[axis].astype(np.float64) for axis in "xyz"]
    range_m = POINT_UNIT_M * np.sqrt(counts[0] ** 2 + counts[1] ** 2 + counts[2] ** 2)
    range_m[range_m == 0.0] = np.nan
    columns = [np.flatnonzero(every["channel"] == channel) for channel in np.unique(every["channel"])]
    length = min(map(len, columns))
    rows = np.stack([column[:length] for column in columns], axis=1)
    return _fitted(range_m[rows], every["reflectivity"].astype(np.int64)[rows], ())


def _most_frequent(values: npt.NDArray[Any]) -> int:
    return int(np.bincount(values).argmax()) if values.size else 0


def _fitted(range_m: npt.NDArray[np.float64], byte: npt.NDArray[np.int64], no_return: tuple[int, ...]) -> UnitNoise:
    """Fit the noise of ranges ``[firing, laser]``, ``nan`` where there is no return."""
    if len(range_m) < len(_ORDER):
        return UnitNoise(strong_m=0.0, weak_m=0.0, runs=0, no_return=no_return)
    windows = np.lib.stride_tricks.sliding_window_view(range_m, len(_ORDER), axis=0)
    third_m, mean_m = np.abs(windows @ _ORDER), windows.mean(axis=-1)
    level = np.lib.stride_tricks.sliding_window_view(byte, len(_ORDER), axis=0)
    low, high = level.min(axis=-1), level.max(axis=-1)
    is_used = np.isfinite(third_m) & (third_m < _WIDEST_M) & (high <= 1.5 * low + 2)
    rows, variances, weights = [], [], []
    for least, most in itertools.pairwise(_CLASSES):
        chosen = is_used & (level.mean(axis=-1) >= least) & (level.mean(axis=-1) < most)
        count = int(chosen.sum())
        if count < _LEAST_RUNS:
            continue
        deviation_m = _SD_PER_MEDIAN * float(np.median(third_m[chosen])) / np.sqrt(_VARIANCE_RATIO)
        far = np.maximum(mean_m[chosen] / ONSET_M, 1.0)
        rows.append((1.0, float(np.median(far**2 / (level.mean(axis=-1)[chosen] + 1.0)))))
        variances.append(deviation_m**2)
        weights.append(np.sqrt(count) / deviation_m**2 if deviation_m > 0.0 else 0.0)
    if not rows:
        return UnitNoise(strong_m=0.0, weak_m=0.0, runs=0, no_return=no_return)
    strong, weak = _non_negative(np.array(rows), np.array(variances), np.array(weights))
    return UnitNoise(strong_m=float(np.sqrt(strong)), weak_m=float(np.sqrt(weak)), runs=int(is_used.sum()), no_return=no_return)


def _non_negative(rows: npt.NDArray[np.float64], values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Two coefficients of a weighted least-squares fit, none of them negative."""
    (first, second), *_ = np.linalg.lstsq(rows * weights[:, np.newaxis], values * weights, rcond=None)
    if first >= 0.0 and second >= 0.0 and len(rows) > 1:
        return float(first), float(second)
    squares = (weights**2)[:, np.newaxis]
    alone = [float((squares * rows[:, [at]] * values[:, np.newaxis]).sum() / (squares * rows[:, [at]] ** 2).sum()) for at in (0, 1)]
    errors = [float(((weights * (values - alone[at] * rows[:, at])) ** 2).sum()) for at in (0, 1)]
    return (alone[0], 0.0) if errors[0] <= errors[1] or len(rows) == 1 else (0.0, alone[1])
