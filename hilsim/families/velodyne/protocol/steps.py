"""Steps from packet to packet and from block to block: stamps begin again at the hour, azimuths at the turn."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hilsim.units import HOUR_US, TURN_CDEG

GAP_CDEG = 400
"""A larger step of azimuth between neighbouring blocks is no step of the head: five times what it turns in two firing sequences of 55.296 us at 1200 rpm."""

_Angle = TypeVar("_Angle", int, float, npt.NDArray[np.int64], npt.NDArray[np.float64])
_Time = TypeVar("_Time", int, npt.NDArray[np.int64])


def wrapped_us(step_us: _Time) -> _Time:
    """A difference of stamps past the hour, in -half an hour .. half an hour."""
    return (step_us + HOUR_US // 2) % HOUR_US - HOUR_US // 2


def wrapped_cdeg(angle_cdeg: _Angle) -> _Angle:
    """The same angle in -18000 .. below 18000 hundredths of a degree."""
    return (angle_cdeg + TURN_CDEG // 2) % TURN_CDEG - TURN_CDEG // 2
