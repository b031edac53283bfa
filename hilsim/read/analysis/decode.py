"""Points of packets, as a driver of the lidar decodes them: the module ``points`` of each family's folder gives them.

Points are in the sensor frame of ``hilsim.world.geometry.frames`` (x right, y forward, z up). ROS drivers have x forward, y left: ``(y, -x, z)`` of these.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.setting import LidarSetting
from hilsim.registry import part_of

POINT_DTYPE = np.dtype(
    [
        ("x", "<f4"),
        ("y", "<f4"),
        ("z", "<f4"),
        ("range", "<f4"),
        ("azimuth", "<f4"),
        ("packet", "<u4"),
        ("time_ns", "<i8"),
        ("ring", "<u2"),
        ("intensity", "u1"),
        ("return_number", "u1"),
        ("flags", "u1"),
    ]
)
"""A point.

=================  ====================================================================================================================
x, y, z            metres, in the sensor frame: right, forward, up; z with the height of the laser's origin, as far as it is known (VLP-16)
range              metres, from the laser's origin, as sent
azimuth            degrees, 0 to 360, of the firing: clockwise from forward, seen from above
packet             index of the decoded packet, from 0
time_ns            nanoseconds, the sensor's stamp of the firing. Velodyne: past the hour in which the packet began, so that the last firings of an
                   hour may exceed it. Cepton: as its header counts
ring               laser. Velodyne, Hesai: counted from the lowest elevation, 0; Cepton: the packet's channel; Livox: the line
intensity          byte of the packet: 0 to 100 percent for diffuse surfaces (Cepton: to 127; Livox: 0 to 150), more for retro-reflectors
return_number      index in the return mode's order: 0 in modes of one return; in dual modes 0 for the last, 1 for the strongest or second strongest. A
                   return in both blocks of a dual packet is given once, as 0. Cepton: 1 for a second return
flags              Cepton's ``PointFlag``; a Livox's tag; 0 for Velodyne
=================  ====================================================================================================================
"""


def batch_of(payloads: npt.NDArray[np.uint8] | Sequence[bytes]) -> DatagramArrays:
    """Datagrams of payloads ``uint8[n, size]``, or of bytes of any sizes, without times and senders."""
    size = np.array([len(payload) for payload in payloads], dtype=np.int64)
    none = np.zeros(size.size, dtype=np.int64)
    data = payloads.reshape(-1) if isinstance(payloads, np.ndarray) else np.frombuffer(b"".join(payloads), dtype=np.uint8)
    return DatagramArrays(data, np.cumsum(size) - size, size, none, none)


def decode_emulated(payloads: npt.NDArray[np.uint8], setting: LidarSetting) -> npt.NDArray[Any]:
    """Decode data packets of one emulated lidar, as their receivers do: ``decode_emulated`` of the module ``points`` of its family, or of the one that it extends.

    Args:
        payloads: ``uint8[n, size]``.
        setting: Setting of the lidar.

    Returns:
        Points ``POINT_DTYPE[m]`` in the order of their bytes; those of an Ouster have more fields.

    Raises:
        ValueError: packets of its family cannot be decoded here, or have another size.
    """
    decoded: npt.NDArray[Any] = own_part(setting, "points").decode_emulated(payloads, setting)
    return decoded


def own_part(setting: LidarSetting, name: str) -> ModuleType:
    """Module ``name`` of a lidar's family, by which its points are read.

    Raises:
        ValueError: the family has none.
    """
    part = part_of(type(setting.family), name)
    if part is None:
        raise ValueError(
            f"points of a {setting.spec.model} cannot be decoded: its family, {setting.family.name}, is a plug-in's with packets of its own"
        )
    return part


def paired(decoded: npt.NDArray[Any], place: npt.NDArray[np.intp], row_place: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Decoded points, and the row of ground truth of each, by the places of both within the packets, which rise."""
    row = np.searchsorted(row_place, place)
    if decoded.size != place.size or not np.array_equal(row_place[row[row < row_place.size]], place):
        raise AssertionError(f"each of {decoded.size} points must have a row of ground truth, got {row_place.size} rows for {place.size} places")
    return decoded, row
