"""Messages of ROS 2 from events, by ``rosbags``: no ROS is needed.

Layouts of PointCloud2: ``xyzirt`` is that of velodyne_pointcloud (22 bytes a point), ``xyzircaedt`` that of nebula and Autoware (32 bytes).
Headers are stamped with the scan's first firing; ``time`` and ``time_stamp`` count from there.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.api.packet import Packet
from hilsim.errors import ConfigError
from hilsim.protocols.recognise import recognise
from hilsim.registry import family_parts
from hilsim.show.outputs.events import BodyPose, Event, Fix, OutputScan, SourceInfo
from hilsim.world.geometry.poses import Pose

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

Layout = Literal["xyzirt", "xyzircaedt", "xyzircdt"]
"""Names of point layouts; the last one, for Foxglove, is the second without the angles."""
WORLD, BODY = "map", "base_link"
"""Frames of the world and of what carries the sensors."""
_BEAMS = 1800
"""Ranges of a LaserScan: a fifth of a degree each."""
_FLOAT32, _UINT8, _UINT16, _UINT32 = 7, 2, 4, 6
_XYZIRT = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")])
_XYZIRCAEDT = np.dtype(
    [
        ("x", "<f4"),
        ("y", "<f4"),
        ("z", "<f4"),
        ("intensity", "u1"),
        ("return_type", "u1"),
        ("channel", "<u2"),
        ("azimuth", "<f4"),
        ("elevation", "<f4"),
        ("distance", "<f4"),
        ("time_stamp", "<u4"),
    ]
)
_XYZIRCDT = np.dtype([field for field in _XYZIRCAEDT.descr if field[0] not in {"azimuth", "elevation"}])
_KINDS = {"<f4": _FLOAT32, "|u1": _UINT8, "<u2": _UINT16, "<u4": _UINT32}


@dataclass(frozen=True, kw_only=True)
class RosPart:
    """Messages of a family's driver that hold packets: the module ``ros`` of its folder has it as ``PART``.

    Attributes:
        message: Type of the messages.
        types: Definitions of that type and of those that it consists of, by name.
        topics: Last part of the topic of each stream's messages; the first one's is of the points.
        ports: Ports of each stream's packets, which messages do not contain.
        is_per_scan: Whether a message holds the packets of a scan, else one packet.
        fields: Fields of a message by packets, as UTC in nanoseconds and payload: values, or functions of the maker of a message of a type.
        packets: Packets in a message, by the time of its recording.
    """

    message: str
    types: Mapping[str, str]
    topics: Mapping[str, str]
    ports: Mapping[str, int]
    is_per_scan: bool
    fields: Callable[[Callable[..., Any], Sequence[tuple[int, bytes]]], dict[str, Any]]
    packets: Callable[[Any, int], Sequence[tuple[int, bytes]]]


def ros_parts() -> dict[str, RosPart]:
    """Parts by family, of the families whose drivers' messages hold packets."""
    return {family: module.PART for family, module in family_parts("ros").items()}


class Stamped(NamedTuple):
    """A message.

    Attributes:
        topic: Its topic.
        kind: Its type, such as ``sensor_msgs/msg/PointCloud2``.
        stamp_ns: UTC.
        message: The message of ``rosbags``.
        is_static: Whether a late subscriber needs it too (latched).
        packets: Number of packets in it.
    """

    topic: str
    kind: str
    stamp_ns: int
    message: Any
    is_static: bool = False
    packets: int = 0


def ros_typestore() -> "Typestore":
    """Types of ROS 2, and of the messages of families' drivers.

    Raises:
        ConfigError: the package is missing.
    """
    try:
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError("ROS messages require the package rosbags (pip install 'hilsim-lidar[ros]')") from error
    store = get_typestore(Stores.ROS2_HUMBLE)
    for part in ros_parts().values():
        store.register({name: found for kind, text in part.types.items() for name, found in get_types_from_msg(text, kind).items()})
    return store


class RosMessages:
    """Maker of messages; the events come in the order of time."""

    def __init__(self, info: SourceInfo, *, layout: Layout = "xyzirt", with_laser_scans: bool = False) -> None:
        """Prepare the types.

        Args:
            info: Description of the source.
            layout: Layout of point clouds.
            with_laser_scans: Whether a LaserScan of the laser nearest to the horizon is made of each scan.

        Raises:
            ConfigError: the package ``rosbags`` is missing.
        """
        self.store = ros_typestore()
        self._types = self.store.types
        self._info, self._layout, self._with_laser_scans = info, layout, with_laser_scans
        self._placed: set[str] = set()
        self._parts = ros_parts()
        self._packets: dict[str, tuple[RosPart, list[tuple[int, bytes]]]] = {}
        """Packets of each sensor's scan that is not complete."""

    def messages(self, event: Event) -> Iterator[Stamped]:
        """Messages of an event; packets are sent scan by scan, as the driver does."""
        if isinstance(event, OutputScan):
            event = event.on_host_clock()
        match event:
            case OutputScan():
                yield from self._placing(event)
                if self._info.is_simulated:
                    yield Stamped(
                        "/clock", "rosgraph_msgs/msg/Clock", event.stamp_ns, self._make("rosgraph_msgs/msg/Clock", clock=self._time(event.stamp_ns))
                    )
                yield from self.whole_scans(event.sensor)
                yield self._cloud(event)
                if self._with_laser_scans and event.points.size:
                    yield self._laser_scan(event)
            case Packet():
                facts = recognise(event.payload).facts
                part = self._parts.get(facts.family)
                if part is not None and facts.stream in part.topics:
                    if part.is_per_scan:
                        self._packets.setdefault(event.sensor, (part, []))[1].append((event.time_ns, event.payload))
                    else:
                        yield self._packed(part, event.sensor, facts.stream, [(event.time_ns, event.payload)])
            case BodyPose():
                yield from self._body(event)
            case Fix():
                yield self._fix(event)

    def whole_scans(self, sensor: str | None = None) -> Iterator[Stamped]:
        """Messages of the packets that have come, of one sensor or, at the end, of all."""
        for name in [sensor] if sensor is not None else list(self._packets):
            if name in self._packets:
                part, packets = self._packets.pop(name)
                yield self._packed(part, name, next(iter(part.topics)), packets)

    def _packed(self, part: RosPart, sensor: str, stream: str, packets: list[tuple[int, bytes]]) -> Stamped:
        """Message of a driver."""
        stamp_ns = packets[-1][0]
        header = {"header": self._header(stamp_ns, frame(sensor))} if part.is_per_scan else {}
        message = self._make(part.message, **header, **part.fields(self._make, packets))
        return Stamped(f"/{topic_name(sensor)}/{part.topics[stream]}", part.message, stamp_ns, message, packets=len(packets))

    def _make(self, kind: str, **fields: Any) -> Any:
        return self._types[kind](**fields)

    def _time(self, stamp_ns: int) -> Any:
        return self._make("builtin_interfaces/msg/Time", sec=stamp_ns // 1_000_000_000, nanosec=stamp_ns % 1_000_000_000)

    def _header(self, stamp_ns: int, frame_id: str) -> Any:
        return self._make("std_msgs/msg/Header", stamp=self._time(stamp_ns), frame_id=frame_id)

    @cached_property
    def _unknown(self) -> Any:
        return np.zeros(9)

    def _transform(self, stamp_ns: int, parent: str, child: str, pose: Pose) -> Any:
        x, y, z = pose.position_m
        qw, qx, qy, qz = pose.orientation
        return self._make(
            "geometry_msgs/msg/TransformStamped",
            header=self._header(stamp_ns, parent),
            child_frame_id=child,
            transform=self._make(
                "geometry_msgs/msg/Transform",
                translation=self._make("geometry_msgs/msg/Vector3", x=x, y=y, z=z),
                rotation=self._make("geometry_msgs/msg/Quaternion", x=qx, y=qy, z=qz, w=qw),
            ),
        )

    def _placing(self, scan: OutputScan) -> Iterator[Stamped]:
        """The place of a sensor on the body, once; or in the world, where nothing is known of a body."""
        kind = "tf2_msgs/msg/TFMessage"
        if not self._info.has_body:
            message = self._make(kind, transforms=[self._transform(scan.stamp_ns, WORLD, frame(scan.sensor), scan.pose or Pose())])
            yield Stamped("/tf", kind, scan.stamp_ns, message)
            return
        if scan.sensor in self._placed:
            return
        self._placed.add(scan.sensor)
        mount = self._info.mounts.get(scan.sensor, Pose())
        message = self._make(kind, transforms=[self._transform(scan.stamp_ns, BODY, frame(scan.sensor), mount)])
        yield Stamped("/tf_static", kind, scan.stamp_ns, message, is_static=True)

    def _cloud(self, scan: OutputScan) -> Stamped:
        kind = "sensor_msgs/msg/PointCloud2"
        points = cloud_points(scan, self._layout)
        fields = [
            self._make("sensor_msgs/msg/PointField", name=name, offset=offset, datatype=_KINDS[points.dtype[name].str], count=1)
            for name, offset in offsets(points.dtype)
        ]
        message = self._make(
            kind,
            header=self._header(scan.stamp_ns, frame(scan.sensor)),
            height=1,
            width=points.size,
            fields=fields,
            is_bigendian=False,
            point_step=points.dtype.itemsize,
            row_step=points.nbytes,
            data=points.view(np.uint8).reshape(-1),
            is_dense=True,
        )
        return Stamped(f"/{topic_name(scan.sensor)}/points", kind, scan.stamp_ns, message)

    def _laser_scan(self, scan: OutputScan) -> Stamped:
        kind = "sensor_msgs/msg/LaserScan"
        ranges, intensities = level_ranges(scan)
        seconds = float(np.ptp(scan.points["offset_ns"])) / 1e9
        message = self._make(
            kind,
            header=self._header(scan.stamp_ns, frame(scan.sensor)),
            angle_min=-math.pi,
            angle_max=math.pi - 2.0 * math.pi / _BEAMS,
            angle_increment=2.0 * math.pi / _BEAMS,
            time_increment=-seconds / _BEAMS,  # a head turns clockwise
            scan_time=seconds,
            range_min=0.0,
            range_max=1000.0,
            ranges=ranges,
            intensities=intensities,
        )
        return Stamped(f"/{topic_name(scan.sensor)}/scan", kind, scan.stamp_ns, message)

    def _body(self, body: BodyPose) -> Iterator[Stamped]:
        kind = "tf2_msgs/msg/TFMessage"
        yield Stamped("/tf", kind, body.stamp_ns, self._make(kind, transforms=[self._transform(body.stamp_ns, WORLD, BODY, body.pose)]))
        x, y, z = body.pose.position_m
        qw, qx, qy, qz = body.pose.orientation
        in_body = Pose(orientation=body.pose.orientation).inverse().transform(body.velocity_mps)
        vector = "geometry_msgs/msg/Vector3"
        pose = self._make(
            "geometry_msgs/msg/Pose",
            position=self._make("geometry_msgs/msg/Point", x=x, y=y, z=z),
            orientation=self._make("geometry_msgs/msg/Quaternion", x=qx, y=qy, z=qz, w=qw),
        )
        twist = self._make(
            "geometry_msgs/msg/Twist",
            linear=self._make(vector, x=in_body[0], y=in_body[1], z=in_body[2]),
            angular=self._make(vector, x=0.0, y=0.0, z=0.0),
        )
        kind = "nav_msgs/msg/Odometry"
        message = self._make(
            kind,
            header=self._header(body.stamp_ns, WORLD),
            child_frame_id=BODY,
            pose=self._make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=np.zeros(36)),
            twist=self._make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=np.zeros(36)),
        )
        yield Stamped("/odom", kind, body.stamp_ns, message)
        if body.rates_radps is not None and body.force_mps2 is not None:
            kind = "sensor_msgs/msg/Imu"
            message = self._make(
                kind,
                header=self._header(body.stamp_ns, BODY),
                orientation=self._make("geometry_msgs/msg/Quaternion", x=qx, y=qy, z=qz, w=qw),
                orientation_covariance=self._unknown,
                angular_velocity=self._make(vector, **dict(zip("xyz", body.rates_radps, strict=True))),
                angular_velocity_covariance=self._unknown,
                linear_acceleration=self._make(vector, **dict(zip("xyz", body.force_mps2, strict=True))),
                linear_acceleration_covariance=self._unknown,
            )
            yield Stamped("/imu", kind, body.stamp_ns, message)

    def _fix(self, fix: Fix) -> Stamped:
        kind = "sensor_msgs/msg/NavSatFix"
        message = self._make(
            kind,
            header=self._header(fix.stamp_ns, frame(fix.sensor)),
            status=self._make("sensor_msgs/msg/NavSatStatus", status=0, service=1),
            latitude=fix.latitude_deg,
            longitude=fix.longitude_deg,
            altitude=math.nan,
            position_covariance=self._unknown,
            position_covariance_type=0,
        )
        return Stamped(f"/{topic_name(fix.sensor)}/fix", kind, fix.stamp_ns, message)


@lru_cache(maxsize=256)
def topic_name(sensor: str) -> str:
    """Part of a topic for a sensor: letters, digits and underscores, not beginning with a digit, as ROS requires."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in sensor)
    return f"lidar_{plain}" if not plain or plain[0].isdigit() else plain


def frame(sensor: str) -> str:
    """Frame of a sensor."""
    return topic_name(sensor)


def offsets(kind: np.dtype[Any]) -> list[tuple[str, int]]:
    """Names of a point's fields, and their offsets in bytes."""
    return [(name, int(place[1])) for name, place in (kind.fields or {}).items()]


def cloud_points(scan: OutputScan, layout: Layout) -> Any:
    """Points of a scan as a message has them."""
    points = scan.points
    if layout == "xyzirt":
        made = np.zeros(points.size, _XYZIRT)
        made["time"] = points["offset_ns"] / 1e9
        made["ring"] = points["ring"]
    else:
        made = np.zeros(points.size, _XYZIRCAEDT if layout == "xyzircaedt" else _XYZIRCDT)
        made["return_type"], made["channel"], made["distance"] = points["return_type"], points["ring"], points["range"]
        if layout == "xyzircaedt":
            made["azimuth"], made["elevation"] = angles_rad(points)
        made["time_stamp"] = np.clip(points["offset_ns"], 0, 0xFFFFFFFF)
    for name in ("x", "y", "z", "intensity"):
        made[name] = points[name]
    return made


def angles_rad(points: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Azimuth, counter-clockwise from forward, and elevation of ``OUTPUT_DTYPE[n]``."""
    x, y, z = (points[axis].astype(np.float64) for axis in "xyz")
    return np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))


def level_ranges(scan: OutputScan) -> tuple[Any, Any]:
    """``float32[1800]`` level ranges of the laser nearest to the horizon, counter-clockwise from behind, infinite without a return; and intensities."""
    points = scan.points
    rings, inverse = np.unique(points["ring"], return_inverse=True)
    azimuth, elevation = angles_rad(points)
    mean = np.bincount(inverse, np.abs(elevation)) / np.bincount(inverse)
    is_level = points["ring"] == rings[np.argmin(mean)]
    level = points[is_level]
    ranges, intensities = np.full(_BEAMS, np.inf, np.float32), np.zeros(_BEAMS, np.float32)
    beam = np.floor((azimuth[is_level] + math.pi) * _BEAMS / (2.0 * math.pi)).astype(np.int64) % _BEAMS
    flat = np.hypot(level["x"], level["y"])
    order = np.argsort(-flat, kind="stable")  # the nearest of a beam is written last
    ranges[beam[order]], intensities[beam[order]] = flat[order], level["intensity"][order]
    return ranges, intensities
