"""What points are here: structured arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_MEASURED = [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "u1"), ("ring", "<u2"), ("time", "<i8"), ("return", "u1")]

POINT_DTYPE = np.dtype([*_MEASURED, ("label", "<i2"), ("instance", "<i4")])
"""A point of ``Emulator.points`` and ``Scan.points``; the sensor frame is x right, y forward (azimuth 0), z up. ROS has x forward, y left: ``(y, -x, z)``.

Attributes:
    x: Metres in the sensor frame, to the right.
    y: Metres, forward.
    z: Metres, up.
    intensity: The packet's byte: 0 to 100 percent of diffuse surfaces (Cepton-style: to 127), above it of retro-reflectors.
    ring: The laser: of a Velodyne from the lowest elevation, 0; of a Cepton-style sensor the packet's channel.
    time: Nanoseconds of rig time, of the firing.
    return: Place in the return mode's order: 0 of modes of one return; of dual modes 0 the last, 1 the strongest or second strongest (Cepton-style: 0 the
        strongest, 1 the last). A pair that is one echo is one point, with 0.
    label: Of the object that sent most of the echo's energy, as set in the rig; 99 and 100 of a captured background; -1: rain, dust or noise caused it.
    instance: Which object that was: its place among the rig's objects; -1 as above.
"""

DECODED_DTYPE = np.dtype([*_MEASURED, ("range", "<f4"), ("azimuth", "<f4"), ("packet", "<u4")])
"""A point of ``decode``: as above, but ``time`` is by the sensor's own stamps; ``range`` in metres, ``azimuth`` in degrees clockwise from forward,
``packet`` the place of its packet among those that were given."""

_DECODERS_NAMES = {"time": "time_ns", "return": "return_number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One turn of a Velodyne's head, from azimuth 0 on, or one scan of a Cepton-style sensor's image.

    Attributes:
        sensor: Its name in the rig.
        start_ns: Rig time at which it begins.
        stop_ns: Rig time at which the next one begins.
        points: ``POINT_DTYPE[n]``: of firings with ``start_ns <= time < stop_ns``, in the order of the packets' bytes.
    """

    sensor: str
    start_ns: int
    stop_ns: int
    points: npt.NDArray[Any]


def public_points(decoded: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Points of the project's decoder as one of the types here; fields that the decoder has not are left to the caller."""
    points = np.empty(decoded.size, dtype)
    for name in dtype.names or ():
        source = _DECODERS_NAMES.get(name, name)
        if source in (decoded.dtype.names or ()):
            points[name] = decoded[source]
    return points
