"""Features of windows of 72 firing groups: how the encoder reads the head's angle, and how the clock stamps packets.

A window has 6 packets of single-return mode or 12 of dual mode, so it lasts as long in either. Windows overlap by a half.

==========  =====================================================================================================
topic       features
==========  =====================================================================================================
increments  shares of the increments that are 2 less than the window's mean rounded, 1 less, equal, 1 more, 2 more
lags        autocorrelations of the increments at lags 1 to 3
residuals   deviation of the azimuths about the window's straight line: sd, mean magnitude, largest, kurtosis
classes     shares of the azimuths modulo 5, in 0.01 deg, sorted
borders     increments across packet borders: mean and sd against the others, product of the mean deviations
stamps      deviation of the stamps about the window's straight line: sd, span, lag-1 autocorrelation
==========  =====================================================================================================
"""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.blocks import PacketBlock
from hilsim.families.velodyne.protocol.data import BLOCKS
from tools.judge.capture_sample import CaptureSample
from tools.judge.feature_table import FeatureTable, table_of_rows

_WINDOW_GROUPS = 72
_TURN = 36_000
_CLASSES = 5


def clock_features(capture: CaptureSample) -> FeatureTable:
    """Find the features of a capture's windows without a lost packet or a pause of firing."""
    return table_of_rows([features for block in capture.stretches for features in _windows(block)])


def _windows(block: PacketBlock) -> list[dict[str, float]]:
    packets, groups = block.azimuth_step.shape
    size = _WINDOW_GROUPS // groups
    azimuth = block.run.azimuth[:, :: BLOCKS // groups]
    stamps = np.concatenate(([0], np.cumsum(block.run.step_us[1:])))
    rows = []
    for start in range(0, packets - size + 1, max(size // 2, 1)):
        window = slice(start, start + size)
        joined = block.is_joined[window].ravel()[1:]
        if joined.all():
            features = _angle_features(block.azimuth_step[window].ravel()[1:], azimuth[window].ravel(), groups)
            rows.append(features | _stamp_features(stamps[window].astype(np.float64)))
    return rows


def _angle_features(step: npt.NDArray[np.int64], azimuth: npt.NDArray[np.int64], groups: int) -> dict[str, float]:
    offset = step - round(float(step.mean()))
    features = {f"increments.share_{k:+d}": float((offset == k).mean()) for k in range(-2, 3)}
    deviation = step - step.mean()
    features |= {f"lags.{lag}": _ratio(float((deviation[lag:] * deviation[:-lag]).sum()), float((deviation**2).sum())) for lag in (1, 2, 3)}
    features |= _spread("residuals", _about_line(np.concatenate(([0.0], np.cumsum(step)))))
    classes = np.sort(np.bincount(azimuth % _TURN % _CLASSES, minlength=_CLASSES) / len(azimuth))
    features |= {f"classes.{place}": float(share) for place, share in enumerate(classes)}
    is_border = np.arange(1, len(step) + 1) % groups == 0
    across, inside = deviation[is_border], deviation[~is_border]
    later = np.flatnonzero(is_border)
    neighbours = deviation[later - 1] * deviation[later]
    return features | {
        "borders.mean": float(across.mean() - inside.mean()),
        "borders.sd": float(across.std() - inside.std()),
        "borders.product": float(neighbours.mean()),
    }


def _stamp_features(stamps: npt.NDArray[np.float64]) -> dict[str, float]:
    residual = _about_line(stamps)
    return {
        "stamps.sd": float(residual.std()),
        "stamps.span": float(np.ptp(residual)),
        "stamps.lag_1": _ratio(float((residual[1:] * residual[:-1]).sum()), float((residual**2).sum())),
    }


def _spread(topic: str, residual: npt.NDArray[np.float64]) -> dict[str, float]:
    sd = float(residual.std())
    return {
        f"{topic}.sd": sd,
        f"{topic}.mean": float(np.abs(residual).mean()),
        f"{topic}.largest": float(np.abs(residual).max()),
        f"{topic}.kurtosis": _ratio(float((residual**4).mean()), sd**4),
    }


def _about_line(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Deviation of equally spaced values from their straight line."""
    x = np.arange(len(values)) - (len(values) - 1) / 2.0
    y = values - values.mean()
    return np.asarray(y - float(x @ y) / float(x @ x) * x)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else float("nan")
