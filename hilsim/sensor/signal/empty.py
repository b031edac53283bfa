"""Bytes of empty firings of a laser whose shares of them are known."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel
from hilsim.sensor.signal.signal import LaserSignals

Doubles = npt.NDArray[np.float64]
_PLACES = 1024


def with_own_empty_bytes(lasers: LaserSignals, baseline: npt.NDArray[np.uint8], baseline_ratio: Doubles, empty_ratio: Doubles) -> LaserSignals:
    """Lasers whose empty firings have known bytes, in place of the model's multiples of the baseline.

    Args:
        lasers: Figures of the lasers.
        baseline: ``uint8[c]``, most frequent byte of each laser's empty firings.
        baseline_ratio: ``float64[c]``, share of them with this byte; NaN: what the other bytes leave.
        empty_ratio: ``float64[c, 256]``, shares of the other bytes. Where they and the baseline's do not make 1, they are scaled, as rare bytes are left out;
            a laser without a share of any other byte keeps its figures, unless the baseline's is 1.
    """
    is_known = np.asarray((empty_ratio > 0.0).any(axis=1) | (baseline_ratio == 1.0))
    if not is_known.any():
        return lasers
    table = np.repeat(baseline[:, None], _PLACES, axis=1)
    for laser in np.flatnonzero(is_known):
        shares = empty_ratio[laser].copy()
        shares[baseline[laser]] = 0.0
        if shares.any() and np.isfinite(baseline_ratio[laser]):
            shares *= (1.0 - baseline_ratio[laser]) / shares.sum()
        ends = np.cumsum(shares)
        others = np.searchsorted(ends, (np.arange(_PLACES) + 0.5) / _PLACES, side="right")
        table[laser] = np.where(others < shares.size, others, baseline[laser])
    return lasers._replace(empty_bytes=table, has_empty_bytes=is_known)


@borrowing_kernel
def own_empty_byte(empty_bytes: npt.NDArray[np.uint8], channel: int, draw: float) -> int:
    """Reflectivity byte of a firing without a return, of a laser with known ones.

    Args:
        empty_bytes: ``LaserSignals.empty_bytes``.
        channel: Number of the laser.
        draw: The firing's number of ``empty_draws``.
    """
    return int(empty_bytes[channel, int(draw * empty_bytes.shape[1])])
