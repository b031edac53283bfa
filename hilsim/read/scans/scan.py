"""A scan of a sensor, and the packets that it was decoded from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

IDENTITY_WXYZ = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """One turn of one sensor, decoded from the packets that left.

    Attributes:
        sensor: Name of the sensor.
        number: Number of the scan; each sensor's scans are counted from 0.
        stamp_ns: UTC at which the first packet of the scan was sent.
        points: ``hilsim.read.scans.points.DECODED_DTYPE[n]`` in the sensor frame: x right, y forward, z up.
        further: Fields of the points that only the sensor's family has, ``[n]``; None without any.
        instance: ``int32[n]``, object of each point in the ground truth; None where it is not known.
        label: ``int16[n]``, label of that object; None where it is not known.
        position_m: Position of the sensor frame in the world at the middle of the scan.
        wxyz: Orientation of the sensor frame in the world at the middle of the scan, ``world_from_sensor``; the identity where it is not known.
    """

    sensor: str
    number: int
    stamp_ns: int
    points: npt.NDArray[Any]
    further: npt.NDArray[Any] | None = None
    instance: npt.NDArray[np.int32] | None = None
    label: npt.NDArray[np.int16] | None = None
    position_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    wxyz: tuple[float, float, float, float] = IDENTITY_WXYZ


class ScanPackets(NamedTuple):
    """Data packets of a scan.

    Attributes:
        first: Index of the first packet, as in ``packet`` of points.
        payloads: Payloads of the packets, from that one on.
        stamp_ns: ``int64[n]``, UTC at which each was sent.
    """

    first: int
    payloads: Sequence[bytes]
    stamp_ns: npt.NDArray[np.int64]


PoseOf = Callable[[str, int], tuple[tuple[float, float, float], tuple[float, float, float, float]]]
"""Function that gives the position and orientation of a sensor at a UTC instant."""
Publish = Callable[[Scan, ScanPackets], None]
"""Function that takes the next scan of a sensor."""


def no_pose(_sensor: str, _stamp_ns: int) -> tuple[tuple[float, float, float], tuple[float, float, float, float]]:
    """Pose of a sensor of which none is known."""
    return (0.0, 0.0, 0.0), IDENTITY_WXYZ
