"""Figures of a stream's received signal: parity of ranges, noise of reflectivity bytes, what happens at depth edges."""

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests.received_losses import find_edges

_NEAR_COUNTS = 25
"""Largest step between firings of one surface, in counts."""
_THIRD_DIFFERENCE = 20.0
"""Sum of the squares of its coefficients."""
_SIGMA_PER_MAD = 1.4826
BYTE_CLASSES = (10, 20, 40, 70, 95)
"""Borders of the classes of bytes in ``SignalFigures.byte_noise``."""


class SignalFigures(NamedTuple):
    """Figures of a stream; NaN where nothing was seen.

    Attributes:
        odd_step: Share of odd steps of the distance code between consecutive firings of a laser that hit one surface.
        odd_step_of_equal: The same where both reflectivity bytes are equal.
        odd_code: Share of odd distance codes.
        same_byte: Share of firings with a byte of 20 to 95 whose next one has the same byte.
        byte_noise: ``float64[4]``, standard deviation of the byte by third differences, by classes of ``BYTE_CLASSES``; from medians.
        range_noise_counts: ``float64[4]``, the same of the distance code.
        edges: Number of depth edges: a jump of 0.5 m or more between settled firings with up to four firings between.
        empty_edges: Share of edges with an empty firing between.
        mixed_edges: Share of edges with a return between both sides.
    """

    odd_step: float
    odd_step_of_equal: float
    odd_code: float
    same_byte: float
    byte_noise: npt.NDArray[np.float64]
    range_noise_counts: npt.NDArray[np.float64]
    edges: int
    empty_edges: float
    mixed_edges: float


def measure_signal(distance: npt.NDArray[np.int64], reflectivity: npt.NDArray[np.int64], unit_m: float) -> SignalFigures:
    """Measure the received signal of a stream.

    Args:
        distance: ``int64[s, c]``, distance codes of consecutive firing sequences; 0 for no return.
        reflectivity: ``int64[s, c]``, reflectivity bytes.
        unit_m: Distance of one count.
    """
    step, is_same = np.diff(distance, axis=0), reflectivity[1:] == reflectivity[:-1]
    is_near = (distance[1:] > 0) & (distance[:-1] > 0) & (np.abs(step) < _NEAR_COUNTS)
    is_odd, is_grey = step & 1 == 1, (reflectivity[:-1] >= 20) & (reflectivity[:-1] <= 95)
    edges = find_edges(distance, unit_m)
    byte_noise, range_noise = _third_differences(distance, reflectivity)
    return SignalFigures(
        odd_step=_share(is_odd[is_near]),
        odd_step_of_equal=_share(is_odd[is_near & is_same]),
        odd_code=_share(distance[distance > 0] & 1 == 1),
        same_byte=_share(is_same[is_near & is_grey]),
        byte_noise=byte_noise,
        range_noise_counts=range_noise,
        edges=edges.empty.size,
        empty_edges=_share(edges.empty > 0),
        mixed_edges=_share(edges.is_mixed),
    )


def _share(holds: npt.NDArray[np.bool_]) -> float:
    return float(holds.mean()) if holds.size else np.nan


def _third_differences(
    distance: npt.NDArray[np.int64], reflectivity: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Standard deviations of byte and code by classes of bytes, from medians of third differences in smooth runs of four firings."""
    count = distance.shape[0] - 3
    four = np.stack([distance[at : count + at] for at in range(4)])
    is_smooth = (four > 0).all(axis=0) & (np.abs(four[3] - four[0]) < _NEAR_COUNTS)
    mean = np.stack([reflectivity[at : count + at] for at in range(4)]).mean(axis=0)
    noise = np.full((2, len(BYTE_CLASSES) - 1), np.nan)
    for row, values in enumerate((reflectivity, distance)):
        third = np.abs(np.diff(values, n=3, axis=0))
        for at, (low, high) in enumerate(itertools.pairwise(BYTE_CLASSES)):
            of_class = third[is_smooth & (mean >= low) & (mean < high)]
            if of_class.size:
                noise[row, at] = _SIGMA_PER_MAD * np.median(of_class) / np.sqrt(_THIRD_DIFFERENCE)
    return noise[0], noise[1]
