"""Structured arrays of points, and whole scans of them."""

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from hilsim.read.scans.points import DECODED_DTYPE, POINT_DTYPE, public_points

__all__ = ["DECODED_DTYPE", "POINT_DTYPE", "Scan", "public_points"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One turn of a Velodyne's head, from azimuth 0 on, or one scan of a Cepton-style sensor's image.

    Attributes:
        sensor: Name of the sensor in the rig.
        start_ns: Rig time at which the scan begins.
        stop_ns: Rig time at which the next scan begins.
        points: ``POINT_DTYPE[n]``, points of the firings with ``start_ns <= time < stop_ns``, in the order of the packets' bytes.
    """

    sensor: str
    start_ns: int
    stop_ns: int
    points: npt.NDArray[Any]
