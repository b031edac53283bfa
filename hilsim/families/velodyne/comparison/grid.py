"""Statistics of distance codes and bytes of neighbouring firings: the grid of the ranges, and the noise of the byte.

A *step* is the difference between two neighbouring firings of one laser inside a packet, both with a return, of less than 25 codes. White ranges rounded to
the code's unit give as many odd steps as even ones. Ranges of a VLP-16 lie locally on a grid of two codes (4 mm), and the byte and the laser decide on
which of the two grids, so few of its steps are odd, and fewer where the two bytes are equal.
"""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.comparison.firings import Firings

LARGEST_STEP = 25
"""Neighbours whose distance codes differ by this or more lie on different surfaces."""
_BYTES = 256
_BYTE_RANGE = (16, 98)  # below, the byte has few values; above, it saturates at 100


class GridStatistics:
    """Counts of steps by parity and by equality of the bytes, and of codes by parity, laser and byte.

    Attributes:
        steps: Number of steps.
        odd: Number of odd steps.
        equal: Number of steps whose two firings have the same byte.
        odd_equal: Number of odd steps among ``equal``.
        diffuse: Number of steps whose former firing has a byte of 16 to 98.
        diffuse_equal: Number of steps among ``diffuse`` whose two firings have the same byte.
        parity: ``int64[channels, 256, 2]``, number of returns by laser, byte, and parity of the distance code.
    """

    def __init__(self, channels: int) -> None:
        self.steps = 0
        self.odd = 0
        self.equal = 0
        self.odd_equal = 0
        self.diffuse = 0
        self.diffuse_equal = 0
        self.parity = np.zeros((channels, _BYTES, 2), dtype=np.int64)

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
    def odd_share(self) -> float:
        """Share of odd steps; NaN before any step."""
        return self.odd / self.steps if self.steps else float("nan")

    @property
    def odd_share_of_equal(self) -> float:
        """Share of odd steps among those whose two firings have the same byte; NaN without such."""
        return self.odd_equal / self.equal if self.equal else float("nan")

    @property
    def equal_share(self) -> float:
        """Share of steps with the same byte, among those whose former firing has a byte of 16 to 98; NaN without such."""
        return self.diffuse_equal / self.diffuse if self.diffuse else float("nan")

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
    return np.asarray((former > 0) & (later > 0) & (np.abs(later - former) < LARGEST_STEP))
