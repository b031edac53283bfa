"""Gazebo's messages of a lidar and of poses, as protobuf: ``LaserScan``, ``PointCloudPacked`` and ``Pose_V`` (gz.msgs, before that ignition.msgs: the bytes are the same).

A scan is ``V`` rows of ``H`` ranges, the lowest row first, each from its first angle on. The cloud is of the same rays, organised: a miss is a point at infinity, and NaN where a
ray's direction is exactly 0 along an axis, as 0 times infinity is. Both messages of one measurement bear the same time; their sequence numbers are of one counter.
Source: gz-msgs (``laserscan.proto``, ``pointcloud_packed.proto``, ``header.proto``, ``time.proto``, ``pose.proto``, ``pose_v.proto``) and gz-sensors (``CpuLidarSensor.cc``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import PacketError
from hilsim.limits import STAMP_NS
from hilsim.protocols.protobuf import Field, Kind, data, double, message, read_message, string, varint
from hilsim.world.geometry.poses import Pose

POINT_DTYPE = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2")])
"""18 bytes: Gazebo's packed points are not aligned."""
_FLOAT32, _UINT16 = 6, 3
_FIELDS = (("x", 0, _FLOAT32), ("y", 4, _FLOAT32), ("z", 8, _FLOAT32), ("intensity", 12, _FLOAT32), ("ring", 16, _UINT16))
_STAMP = {1: Field("stamp", Kind.MESSAGE, {1: Field("sec", Kind.WHOLE), 2: Field("nsec", Kind.WHOLE)})}
_POSITION = {2: Field("x"), 3: Field("y"), 4: Field("z")}
_POSE = {
    2: Field("name", Kind.TEXT),
    3: Field("id", Kind.WHOLE),
    4: Field("position", Kind.MESSAGE, _POSITION),
    5: Field("orientation", Kind.MESSAGE, {**_POSITION, 5: Field("w")}),
}
_POSE_V = {1: Field("header", Kind.MESSAGE, _STAMP), 2: Field("pose", Kind.MESSAGE, _POSE, is_repeated=True)}
_UNIT_TOLERANCE = 1e-3


class NamedPose(NamedTuple):
    """A pose of a ``Pose_V``.

    Attributes:
        name: Name of the entity.
        id: Number of the entity.
        pose: Pose of the entity in its parent: for a model of the world in the world.
    """

    name: str
    id: int
    pose: Pose


@dataclass(frozen=True, kw_only=True)
class RayFan:
    """Rays of a lidar.

    Attributes:
        horizontal_samples: Number of rays of a row.
        horizontal_min_rad: First angle of a row, counter-clockwise from ahead.
        horizontal_max_rad: Last angle.
        vertical_samples: Rows.
        vertical_min_rad: Elevation of the lowest row.
        vertical_max_rad: Elevation of the highest row.
        range_min_m: Minimum range.
        range_max_m: Maximum range.
    """

    horizontal_samples: int
    horizontal_min_rad: float
    horizontal_max_rad: float
    vertical_samples: int
    vertical_min_rad: float
    vertical_max_rad: float
    range_min_m: float
    range_max_m: float

    @property
    def horizontal_step_rad(self) -> float:
        """Between two rays of a row; 0 for one."""
        return _step(self.horizontal_samples, self.horizontal_min_rad, self.horizontal_max_rad)

    @property
    def vertical_step_rad(self) -> float:
        """Between two rows; 0 for one."""
        return _step(self.vertical_samples, self.vertical_min_rad, self.vertical_max_rad)

    def directions(self) -> npt.NDArray[np.float64]:
        """``float64[V * H, 3]``: unit vectors, x forward, y left, z up."""
        around = self.horizontal_min_rad + self.horizontal_step_rad * np.arange(self.horizontal_samples)
        up = (self.vertical_min_rad + self.vertical_step_rad * np.arange(self.vertical_samples))[:, np.newaxis]
        level = np.broadcast_arrays(np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up))
        return np.stack(level, axis=-1).reshape(-1, 3)


def _step(samples: int, first: float, last: float) -> float:
    return (last - first) / (samples - 1) if samples > 1 else 0.0


def laser_scan(fan: RayFan, ranges_m: npt.NDArray[np.float64], *, time_ns: int, sequence: int, frame: str, pose: Pose) -> bytes:
    """A ``LaserScan``.

    Args:
        fan: The rays.
        ranges_m: ``float64[V * H]``; infinite or NaN where there is none.
        time_ns: Simulation time.
        sequence: Sequence number of the message.
        frame: Name of the sensor's frame.
        pose: Pose of the sensor in the world.
    """
    figures = (
        fan.horizontal_min_rad, fan.horizontal_max_rad, fan.horizontal_step_rad, fan.range_min_m, fan.range_max_m,
    )  # fmt: skip
    vertical = (fan.vertical_min_rad, fan.vertical_max_rad, fan.vertical_step_rad)
    return b"".join(
        (
            message(1, _header(time_ns, sequence, frame)),
            string(2, frame),
            message(3, _pose(pose)),
            *(double(number, value) for number, value in enumerate(figures, start=4)),
            varint(9, fan.horizontal_samples),
            *(double(number, value) for number, value in enumerate(vertical, start=10)),
            varint(13, fan.vertical_samples),
            data(14, np.ascontiguousarray(ranges_m, "<f8").tobytes()),
            data(15, bytes(8 * ranges_m.size)),
        )
    )


def point_cloud(fan: RayFan, ranges_m: npt.NDArray[np.float64], *, time_ns: int, sequence: int, frame: str) -> bytes:
    """A ``PointCloudPacked`` of the same; the arguments are those of ``laser_scan``."""
    points = np.zeros(ranges_m.size, POINT_DTYPE)
    with np.errstate(invalid="ignore", over="ignore"):
        along = fan.directions() * ranges_m[:, np.newaxis]
        for axis, name in enumerate("xyz"):
            points[name] = along[:, axis]
    points["ring"] = np.repeat(np.arange(fan.vertical_samples), fan.horizontal_samples)
    return b"".join(
        (
            message(1, _header(time_ns, sequence, frame)),
            *(message(2, string(1, name) + varint(2, offset) + varint(3, kind) + varint(4, 1)) for name, offset, kind in _FIELDS),
            varint(3, fan.vertical_samples),
            varint(4, fan.horizontal_samples),
            varint(6, POINT_DTYPE.itemsize),
            varint(7, POINT_DTYPE.itemsize * fan.horizontal_samples),
            data(8, points.tobytes()),
            varint(9, int(np.isfinite(ranges_m).all())),
        )
    )


def decode_poses(content: bytes, where: str = "Pose_V") -> tuple[int, tuple[NamedPose, ...]]:
    """Read the time (ns) and the poses of a ``Pose_V``.

    Raises:
        PacketError: it is no such message; the text names the field by its path.
    """
    try:
        read = read_message(content, _POSE_V)
    except ValueError as error:
        raise PacketError(f"{where}: Pose_V{error}") from error
    stamp = read.get("header", {}).get("stamp")
    if stamp is None:
        raise PacketError(f"{where}: Pose_V.header.stamp must be given, got a message without it")
    found = []
    for row, one in enumerate(read.get("pose", ())):
        at, turn = one.get("position", {}), one.get("orientation", {})
        parts = tuple(turn.get(axis, 0.0) for axis in "wxyz")
        length = math.hypot(*parts)
        if abs(length - 1.0) > _UNIT_TOLERANCE:
            raise PacketError(f"{where}: Pose_V.pose[{row}].orientation must have length 1, got {length:.6g}")
        w, x, y, z = (part / length for part in parts)
        pose = Pose(position_m=(at.get("x", 0.0), at.get("y", 0.0), at.get("z", 0.0)), orientation=(w, x, y, z))
        found.append(NamedPose(one.get("name", ""), one.get("id", 0), pose))
    time_ns = stamp.get("sec", 0) * 1_000_000_000 + stamp.get("nsec", 0)
    STAMP_NS.enforce(time_ns, f"{where}: Pose_V.header.stamp", PacketError)
    return time_ns, tuple(found)


def encode_poses(time_ns: int, poses: Sequence[NamedPose]) -> bytes:
    """Encode a ``Pose_V``."""
    stamp = message(1, varint(1, time_ns // 1_000_000_000) + varint(2, time_ns % 1_000_000_000))
    return message(1, stamp) + b"".join(message(2, string(2, one.name) + varint(3, one.id) + _pose(one.pose)) for one in poses)


def _header(time_ns: int, sequence: int, frame: str) -> bytes:
    stamp = varint(1, time_ns // 1_000_000_000) + varint(2, time_ns % 1_000_000_000)
    pairs = (("frame_id", frame), ("seq", str(sequence)))
    return message(1, stamp) + b"".join(message(2, string(1, key) + message(2, value.encode())) for key, value in pairs)


def _pose(pose: Pose) -> bytes:
    w, x, y, z = pose.orientation
    position = b"".join(double(number, value) for number, value in enumerate(pose.position_m, start=2))
    orientation = b"".join(double(number, value) for number, value in enumerate((x, y, z, w), start=2))
    return message(4, position) + message(5, orientation)
