"""Events for Foxglove by its own SDK, and MCAP files of them.

Whole packets are in channels of their own, so that a file can be converted back to a capture: each message has an Ethernet frame where the source
has its headers, else the UDP payload; the channel's metadata contain the addresses and the size of the headers. They are Protobuf messages as the others,
so that readers which decode every message do not stop at them.
"""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hilsim.api.packet import Packet
from hilsim.errors import ConfigError
from hilsim.protocols.protobuf import message, string, varint
from hilsim.show.outputs.events import BodyPose, Event, Fix, OutputScan, SceneShapes, SourceInfo, StateReport
from hilsim.show.outputs.foxglove_layout import SCENE, STATE, layout_of
from hilsim.show.outputs.ros import BODY, WORLD, cloud_points, frame, level_ranges, offsets, topic_name
from hilsim.version import __version__
from hilsim.world.geometry.poses import Pose

if TYPE_CHECKING:
    import foxglove

PACKET_SCHEMA = "hilsim.Packet"
"""Name of the messages that are packets."""


def _packet_schema() -> bytes:
    """FileDescriptorSet of ``syntax = "proto3"; package hilsim; message Packet { bytes data = 1; }`` (protobuf's descriptor.proto)."""
    optional, of_bytes = 1, 12
    data = string(1, "data") + varint(3, 1) + varint(4, optional) + varint(5, of_bytes)
    return message(
        1, string(1, "hilsim/packet.proto") + string(2, "hilsim") + message(4, string(1, "Packet") + message(2, data)) + string(12, "proto3")
    )


def require_foxglove() -> Any:
    """The module ``foxglove``.

    Raises:
        ConfigError: the package is missing.
    """
    try:
        import foxglove.channels  # noqa: PLC0415 - an extra
        import foxglove.messages  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("Foxglove requires the package foxglove-sdk (pip install 'hilsim-lidar[foxglove]')") from error
    return foxglove


class FoxgloveLog:
    """Messages in the channels of a context, which go to its file or its server.

    Attributes:
        messages: Messages logged.
    """

    def __init__(
        self,
        context: "foxglove.Context",
        info: SourceInfo,
        *,
        with_packets: bool = True,
        with_laser_scans: bool = False,
        layout_file: Path | None = None,
    ) -> None:
        """Create a log without channels; they are made for the first message of each.

        Args:
            context: Context whose file or server takes the messages.
            info: Description of the source.
            with_packets: Whether packets are logged.
            with_laser_scans: Whether a LaserScan of the laser nearest to the horizon is made of each scan.
            layout_file: File for a layout that shows the sensors, written when one is new; None: none.
        """
        self._foxglove = require_foxglove()
        self._context, self._info = context, info
        self._with_packets, self._with_laser_scans = with_packets, with_laser_scans
        self._channels: dict[str, Any] = {}
        self._placed: dict[str, None] = {}
        self._layout_file = layout_file
        self.messages = 0

    def write(self, event: Event) -> None:
        """Log an event's messages."""
        if isinstance(event, OutputScan):
            event = event.on_host_clock()
        match event:
            case OutputScan():
                self._place(event)
                self._scan(event)
            case Packet():
                if self._with_packets:
                    self._packet(event)
            case BodyPose():
                self._body(event)
            case Fix():
                fix = self._foxglove.messages.LocationFix(
                    timestamp=self._time(event.stamp_ns),
                    frame_id=frame(event.sensor),
                    latitude=event.latitude_deg,
                    longitude=event.longitude_deg,
                    altitude=math.nan,
                )
                self._log(f"/{topic_name(event.sensor)}/fix", "LocationFix", fix, event.stamp_ns)
            case SceneShapes():
                self._shapes(event)
            case StateReport():
                channel = self._channels.get(STATE) or self._made(
                    STATE, self._foxglove.Channel(STATE, message_encoding="json", context=self._context)
                )
                channel.log(json.dumps(event.state).encode(), log_time=event.stamp_ns)
                self.messages += 1

    def close(self) -> None:
        """The context's file or server is closed by whoever made it."""

    def _made(self, topic: str, channel: Any) -> Any:
        self._channels[topic] = channel
        return channel

    def _log(self, topic: str, kind: str, message: Any, stamp_ns: int) -> None:
        channel = self._channels.get(topic) or self._made(topic, getattr(self._foxglove.channels, f"{kind}Channel")(topic, context=self._context))
        channel.log(message, log_time=stamp_ns)
        self.messages += 1

    def _time(self, stamp_ns: int) -> Any:
        return self._foxglove.messages.Timestamp(sec=stamp_ns // 1_000_000_000, nsec=stamp_ns % 1_000_000_000)

    def _pose(self, pose: Pose) -> Any:
        messages = self._foxglove.messages
        x, y, z = pose.position_m
        qw, qx, qy, qz = pose.orientation
        return messages.Pose(position=messages.Vector3(x=x, y=y, z=z), orientation=messages.Quaternion(x=qx, y=qy, z=qz, w=qw))

    def _transform(self, stamp_ns: int, parent: str, child: str, pose: Pose) -> None:
        messages = self._foxglove.messages
        x, y, z = pose.position_m
        qw, qx, qy, qz = pose.orientation
        transform = messages.FrameTransform(
            timestamp=self._time(stamp_ns),
            parent_frame_id=parent,
            child_frame_id=child,
            translation=messages.Vector3(x=x, y=y, z=z),
            rotation=messages.Quaternion(x=qx, y=qy, z=qz, w=qw),
        )
        self._log("/tf", "FrameTransforms", messages.FrameTransforms(transforms=[transform]), stamp_ns)

    def _place(self, scan: OutputScan) -> None:
        if not self._info.has_body:
            self._transform(scan.stamp_ns, WORLD, frame(scan.sensor), scan.pose or Pose())
        elif scan.sensor not in self._placed:
            self._transform(scan.stamp_ns, BODY, frame(scan.sensor), self._info.mounts.get(scan.sensor, Pose()))

        if scan.sensor not in self._placed:
            self._placed[scan.sensor] = None
            if self._layout_file is not None:
                layout = layout_of(tuple(self._placed), BODY if self._info.has_body else WORLD)
                self._layout_file.write_text(json.dumps(layout, indent=2) + "\n")

    def _scan(self, scan: OutputScan) -> None:
        messages = self._foxglove.messages
        points = cloud_points(scan, "xyzircdt")
        kinds = {
            "<f4": messages.PackedElementFieldNumericType.Float32,
            "|u1": messages.PackedElementFieldNumericType.Uint8,
            "<u2": messages.PackedElementFieldNumericType.Uint16,
            "<u4": messages.PackedElementFieldNumericType.Uint32,
        }
        cloud = messages.PointCloud(
            timestamp=self._time(scan.stamp_ns),
            frame_id=frame(scan.sensor),
            pose=self._pose(Pose()),
            point_stride=points.dtype.itemsize,
            fields=[
                messages.PackedElementField(name=name, offset=offset, type=kinds[points.dtype[name].str]) for name, offset in offsets(points.dtype)
            ],
            data=points.tobytes(),
        )
        self._log(f"/{topic_name(scan.sensor)}/points", "PointCloud", cloud, scan.stamp_ns)
        if self._with_laser_scans and scan.points.size:
            ranges, intensities = level_ranges(scan)
            laser = messages.LaserScan(
                timestamp=self._time(scan.stamp_ns),
                frame_id=frame(scan.sensor),
                pose=self._pose(Pose()),
                start_angle=-math.pi,
                end_angle=math.pi - 2.0 * math.pi / ranges.size,
                ranges=ranges.astype(np.float64).tolist(),
                intensities=intensities.astype(np.float64).tolist(),
            )
            self._log(f"/{topic_name(scan.sensor)}/scan", "LaserScan", laser, scan.stamp_ns)

    def _body(self, body: BodyPose) -> None:
        self._transform(body.stamp_ns, WORLD, BODY, body.pose)
        pose = self._foxglove.messages.PoseInFrame(timestamp=self._time(body.stamp_ns), frame_id=WORLD, pose=self._pose(body.pose))
        self._log("/pose", "PoseInFrame", pose, body.stamp_ns)

    def _shapes(self, scene: SceneShapes) -> None:
        messages = self._foxglove.messages
        colour = messages.Color(r=0.6, g=0.6, b=0.6, a=1.0)
        entities = []
        for shape in scene.shapes:
            points = [messages.Point3(x=x, y=y, z=z) for x, y, z in shape.vertices_m.tolist()]
            surface = messages.TriangleListPrimitive(
                pose=self._pose(shape.pose), points=points, color=colour, indices=shape.triangles.reshape(-1).tolist()
            )
            entities.append(
                messages.SceneEntity(
                    timestamp=self._time(scene.stamp_ns),
                    frame_id=WORLD,
                    id=shape.name,
                    triangles=[surface],
                    metadata=[messages.KeyValuePair(key=key, value=value) for key, value in self._described(shape.label).items()],
                )
            )
        deletions = [
            messages.SceneEntityDeletion(timestamp=self._time(scene.stamp_ns), type=messages.SceneEntityDeletionType.MatchingId, id=name)
            for name in scene.removed
        ]
        self._log(SCENE, "SceneUpdate", messages.SceneUpdate(deletions=deletions, entities=entities), scene.stamp_ns)

    def _described(self, label: int) -> dict[str, str]:
        return {"label": str(label)} | ({"class": self._info.classes[label].name} if label in self._info.classes else {})

    def _packet(self, packet: Packet) -> None:
        topic = f"/{topic_name(packet.sensor)}/packets/{packet.source[1]}-{packet.destination[1]}{'' if packet.headers else '/payload'}"
        key = f"{topic} {packet.source} {packet.destination} {len(packet.headers)}"
        channel = self._channels.get(key)
        if channel is None:
            metadata = {
                "sensor": packet.sensor,
                "stream": packet.stream,
                "source": f"{packet.source[0]}:{packet.source[1]}",
                "destination": f"{packet.destination[0]}:{packet.destination[1]}",
                "header_size": str(len(packet.headers)),
            }
            schema = self._foxglove.Schema(name=PACKET_SCHEMA, encoding="protobuf", data=_packet_schema())
            channel = self._made(
                key, self._foxglove.Channel(topic, schema=schema, message_encoding="protobuf", context=self._context, metadata=metadata)
            )
        channel.log(message(1, packet.headers + packet.payload), log_time=packet.time_ns)
        self.messages += 1


class McapFile(FoxgloveLog):
    """A log in a file."""

    def __init__(
        self, path: Path, info: SourceInfo, *, with_packets: bool = True, with_laser_scans: bool = False, layout_file: Path | None = None
    ) -> None:
        """Create the file, in place of one that is there.

        Raises:
            ConfigError: the package is missing, or the file cannot be created.
        """
        foxglove = require_foxglove()
        context = foxglove.Context()
        try:
            options = foxglove.mcap.MCAPWriteOptions(compression=foxglove.mcap.MCAPCompression.Lz4)
            self._writer = foxglove.open_mcap(path, allow_overwrite=True, context=context, writer_options=options)
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"{path}: must be a file that can be created, got {error}") from error
        super().__init__(context, info, with_packets=with_packets, with_laser_scans=with_laser_scans, layout_file=layout_file)

    def close(self) -> None:
        """Write the index, and what is known of the source."""
        facts = {
            "source": self._info.name,
            "hilsim": __version__,
            "models": json.dumps(self._info.models),
            "stamps": "UTC by the host's clock: of a scan, when its first packet was sent",
            "remarks": json.dumps(self._info.remarks),
        }
        self._writer.write_metadata("hilsim", facts)
        self._writer.close()
