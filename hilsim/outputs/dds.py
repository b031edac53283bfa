"""ROS 2 topics over DDS, by CycloneDDS: no ROS is needed.

Names, types and quality of service are those of ROS 2's middleware: topic ``rt/NAME``, type ``pkg::msg::dds_::Type_``, the type's hash in the writer's
user data. Messages are serialised by ``rosbags``, and written as ready bytes: CycloneDDS's own way takes ten times as long for a cloud.
"""

from types import new_class
from typing import TYPE_CHECKING, Any

from hilsim.api.packet import Packet
from hilsim.errors import ConfigError
from hilsim.outputs.events import Event, SourceInfo
from hilsim.outputs.ros import Layout, RosMessages, Stamped

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

_DEPTH = 10


def _require_dds() -> None:
    try:
        import cyclonedds.domain  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise ConfigError("DDS requires the packages cyclonedds and rosbags (pip install 'hilsim-lidar[dds]')") from error


def _store(sample: Any, data: bytes) -> None:
    sample.data_ready = data


def _stored(sample: Any, **_: Any) -> bytes:
    """Serialised form of a sample: what it was made of."""
    data: bytes = sample.data_ready
    return data


class DdsTypes:
    """Types of CycloneDDS, made of the definitions of ``rosbags``."""

    def __init__(self, store: "Typestore") -> None:
        """Make no type yet."""
        self._store = store
        self._made: dict[str, Any] = {}

    def kind(self, name: str) -> Any:
        """The type of a message, such as ``sensor_msgs/msg/PointCloud2``."""
        if name not in self._made:
            from cyclonedds.idl import make_idl_struct  # noqa: PLC0415 - an extra

            package, _, plain = name.replace("/", "::").rpartition("::")
            _, fields = self._store.fielddefs[name]
            self._made[name] = make_idl_struct(f"{plain}_", f"{package}::dds_::{plain}_", {field: self._field(kind) for field, kind in fields})
        return self._made[name]

    def ready(self, name: str) -> tuple[Any, Any]:
        """The type of a message, and a subclass made of serialised bytes."""
        kind = self.kind(name)
        return kind, new_class("Ready", (kind,), exec_body=lambda body: body.update(__init__=_store, serialize=_stored))

    def _field(self, kind: Any) -> Any:
        from cyclonedds.idl import types  # noqa: PLC0415 - an extra
        from rosbags.interfaces import Nodetype  # noqa: PLC0415

        node, of = kind
        match node:
            case Nodetype.BASE:
                name = of[0]
                return {"string": str, "bool": bool, "octet": types.byte, "char": types.uint8}.get(name) or getattr(types, name)
            case Nodetype.NAME:
                return self.kind(of)
            case Nodetype.ARRAY:
                return types.array[self._field(of[0]), of[1]]
            case _:
                return types.sequence[self._field(of[0])]


class DdsTopics:
    """Publisher of a source's messages.

    Attributes:
        messages: Messages written.
    """

    def __init__(self, info: SourceInfo, *, domain: int = 0, layout: Layout = "xyzirt", with_laser_scans: bool = False) -> None:
        """Join a domain.

        Args:
            info: Description of the source.
            domain: ROS_DOMAIN_ID.
            layout: Layout of point clouds.
            with_laser_scans: As for ``RosMessages``.

        Raises:
            ConfigError: a package is missing, or the domain cannot be joined.
        """
        _require_dds()
        from cyclonedds.core import DDSException  # noqa: PLC0415 - an extra
        from cyclonedds.domain import DomainParticipant  # noqa: PLC0415

        try:
            self._participant = DomainParticipant(domain)
        except DDSException as error:
            raise ConfigError(f"DDS domain {domain} must be one that can be joined, got {error}") from error
        self._made = RosMessages(info, layout=layout, with_laser_scans=with_laser_scans)
        self._types = DdsTypes(self._made.store)
        self._writers: dict[str, tuple[Any, Any]] = {}
        self.messages = 0

    def write(self, event: Event) -> None:
        """Publish an event's messages; packets are not published."""
        if isinstance(event, Packet):
            return
        for stamped in self._made.messages(event):
            self._put(stamped)

    def _put(self, stamped: Stamped) -> None:
        if stamped.topic not in self._writers:
            self._writers[stamped.topic] = self._writer(stamped)
        writer, sample = self._writers[stamped.topic]
        writer.write(sample(bytes(self._made.store.serialize_cdr(stamped.message, stamped.kind))))
        self.messages += 1

    def _writer(self, stamped: Stamped) -> tuple[Any, Any]:
        from cyclonedds.core import Policy, Qos  # noqa: PLC0415 - an extra
        from cyclonedds.pub import DataWriter, Publisher  # noqa: PLC0415
        from cyclonedds.topic import Topic  # noqa: PLC0415
        from cyclonedds.util import duration  # noqa: PLC0415

        kind, ready = self._types.ready(stamped.kind)
        durability = Policy.Durability.TransientLocal if stamped.is_static else Policy.Durability.Volatile
        qos = Qos(
            Policy.Reliability.Reliable(max_blocking_time=duration(milliseconds=1)),
            durability,
            Policy.History.KeepLast(1 if stamped.is_static else _DEPTH),
            Policy.Userdata(f"typehash={self._made.store.hash_rihs01(stamped.kind)};".encode()),
        )
        topic = Topic(self._participant, "rt" + stamped.topic, kind)
        return DataWriter(Publisher(self._participant), topic, qos), ready

    def close(self) -> None:
        """Leave the domain."""
        self._writers.clear()
        del self._participant
