"""ROS 2 bags of a source's events."""

from pathlib import Path
from typing import Any, Literal

from hilsim.api.packet import Packet
from hilsim.errors import ConfigError
from hilsim.show.outputs.events import Event, SourceInfo
from hilsim.show.outputs.ros import Layout, RosMessages, Stamped

Storage = Literal["sqlite3", "mcap"]


def _static_qos() -> tuple[Any, ...]:
    """Quality of service of what a late subscriber needs too."""
    from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime  # noqa: PLC0415 - an extra

    none = QosTime(0, 0)
    return (Qos(QosHistory.KEEP_LAST, 1, QosReliability.RELIABLE, QosDurability.TRANSIENT_LOCAL, none, none, QosLiveliness.AUTOMATIC, none, False),)  # noqa: FBT003 - its last field


class RosBag:
    """A bag: a folder with ``metadata.yaml``.

    Attributes:
        messages: Messages written.
        packets: Packets in them.
    """

    def __init__(
        self,
        path: Path,
        info: SourceInfo,
        *,
        storage: Storage = "mcap",
        layout: Layout = "xyzirt",
        with_packets: bool = True,
        with_laser_scans: bool = False,
    ) -> None:
        """Create the bag.

        Args:
            path: Folder, which must not exist.
            info: Description of the source.
            storage: Format of the file in it.
            layout: Layout of point clouds.
            with_packets: Whether packets are written.
            with_laser_scans: Whether a LaserScan of the laser nearest to the horizon is made of each scan.

        Raises:
            ConfigError: the package is missing, or the folder exists.
        """
        self._made = RosMessages(info, layout=layout, with_laser_scans=with_laser_scans)
        from rosbags.rosbag2 import StoragePlugin, Writer  # noqa: PLC0415 - an extra
        from rosbags.rosbag2.writer import WriterError  # noqa: PLC0415 - an extra

        try:
            self._writer = Writer(path, version=8, storage_plugin=StoragePlugin[storage.upper()])
            self._writer.open()
        except WriterError as error:
            raise ConfigError(f"{path}: a bag must be a new folder: {error}") from error
        self._with_packets = with_packets
        self._connections: dict[str, Any] = {}
        self.messages = self.packets = 0

    def write(self, event: Event) -> None:
        """Write an event's messages."""
        for stamped in self._made.messages(event):
            self._put(stamped)

    def _put(self, stamped: Stamped) -> None:
        if stamped.packets and not self._with_packets:
            return
        self.packets += stamped.packets
        connection = self._connections.get(stamped.topic)
        if connection is None:
            qos = _static_qos() if stamped.is_static else ()
            connection = self._writer.add_connection(stamped.topic, stamped.kind, typestore=self._made.store, offered_qos_profiles=qos)
            self._connections[stamped.topic] = connection
        self._writer.write(connection, stamped.stamp_ns, self._made.store.serialize_cdr(stamped.message, stamped.kind))
        self.messages += 1

    def close(self) -> None:
        """Write the last packets and the index."""
        for stamped in self._made.whole_scans():
            self._put(stamped)
        self._writer.close()


class PacketBag(RosBag):
    """A bag of packets alone, a message for so many at a time."""

    _AT_ONCE = 75
    """Packets of a message: a turn of a VLP-16 at 600 rpm."""

    def __init__(self, path: Path, info: SourceInfo) -> None:
        """Create the bag; arguments and errors as of ``RosBag``."""
        super().__init__(path, info)
        self._held: dict[str, int] = {}

    def write(self, event: Event) -> None:
        """Take a packet."""
        super().write(event)
        if isinstance(event, Packet):
            self._held[event.sensor] = self._held.get(event.sensor, 0) + 1
            if self._held[event.sensor] >= self._AT_ONCE:
                self._held[event.sensor] = 0
                for stamped in self._made.whole_scans(event.sensor):
                    self._put(stamped)
