"""Structured arrays of points."""

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
    intensity: Byte of the packet: 0 to 100 percent for diffuse surfaces (Cepton-style: to 127; Livox: 0 to 150), more for retro-reflectors.
    ring: Laser: for a Velodyne, an Ouster or a Hesai counted from the lowest elevation, 0; for a Cepton-style sensor its channel; for a Livox the line.
    time: Rig time of the firing in nanoseconds.
    return: Index in the return mode's order: 0 in modes of one return; in dual modes 0 for the last, 1 for the strongest or second strongest (Cepton-style:
        0 for the strongest, 1 for the last). A pair that is one echo is one point, with 0.
    label: Label, as set in the rig, of the object that reflected most of the echo's energy; 99 and 100 for a captured background; -1 for rain, dust or noise.
    instance: Index of that object among the rig's objects; -1 for rain, dust or noise.
    tag: Of a Livox alone: the packet's, its confidence that the point is none between objects, of rain, fog or dust.
"""

DECODED_DTYPE = np.dtype([*_MEASURED, ("range", "<f4"), ("azimuth", "<f4"), ("packet", "<u4")])
"""A point of ``decode``: as above, but ``time`` is by the sensor's own stamps; ``range`` in metres, ``azimuth`` in degrees clockwise from forward,
``packet`` the index of its packet among the given ones."""

_DECODERS_NAMES = {"time": "time_ns", "return": "return_number", "tag": "flags"}


def public_points(decoded: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert points of the decoder to one of these types; the caller fills in fields that the decoder does not have."""
    points = np.empty(decoded.size, dtype)
    for name in dtype.names or ():
        known = decoded.dtype.names or ()
        source = name if name in known else _DECODERS_NAMES.get(name)
        if source in known:
            points[name] = decoded[source]
    return points


def further_fields(points: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """Fields of points that ``dtype`` has beyond those of any sensor; None without such fields."""
    further = [(name, dtype[name]) for name in dtype.names or () if name not in {*(POINT_DTYPE.names or ()), *(DECODED_DTYPE.names or ())}]
    return public_points(points, np.dtype(further)) if further else None
