"""Discovery in Gazebo's transport: a datagram to a multicast group, with the size and the bytes of a protobuf message ``Discovery``.

A publisher advertises its topics once a second and on request; one that is silent for three seconds is removed.
Source: gz-transport (``Discovery.hh``, ``Publisher.cc``, ``TopicUtils.cc``), gz-msgs (``discovery.proto``).
"""

from dataclasses import dataclass
from enum import IntEnum

from hilsim.protocols.protobuf import fields, message, string, varint

GROUP, MESSAGE_PORT = "239.255.0.7", 10_317
WIRE_VERSION = 10
_SIZE_BYTES = 2
_ALL = 2
"""Scope of a topic that every subscriber may have."""


class DiscoveryType(IntEnum):
    """Purpose of a datagram."""

    ADVERTISE = 1
    SUBSCRIBE = 2
    UNADVERTISE = 3
    HEARTBEAT = 4
    BYE = 5
    NEW_CONNECTION = 6
    END_CONNECTION = 7


@dataclass(frozen=True, kw_only=True)
class Advertised:
    """A published topic.

    Attributes:
        topic: On the wire, with its partition (``wire_topic``).
        address: ZeroMQ address of who publishes, ``tcp://ADDRESS:PORT``.
        process: Id of its process.
        node: Id of its node.
        message_type: Name of the message, ``gz.msgs.LaserScan``.
    """

    topic: str
    address: str
    process: str
    node: str
    message_type: str


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A datagram of another process.

    Attributes:
        kind: Number of its ``DiscoveryType``, or another.
        process: Id of the sending process.
        topic: Name of the topic; empty for none.
        address: ZeroMQ address of an advertised topic's publisher; empty for none.
        message_type: Name of an advertised topic's message; empty for none.
    """

    kind: int
    process: str
    topic: str
    address: str = ""
    message_type: str = ""


def wire_topic(partition: str, topic: str) -> str:
    """A topic's name on the wire."""
    named = "/" + partition.strip("/") if partition.strip("/") else ""
    return f"@{named}@/{topic.strip('/')}"


def encode_discovery(kind: DiscoveryType, process: str, about: Advertised | None = None) -> bytes:
    """A datagram.

    Args:
        kind: Purpose of the datagram.
        process: Id of the process that sends it.
        about: The topic, where it is about one.
    """
    parts = [varint(2, WIRE_VERSION), string(3, process), varint(4, kind)]
    if about is not None:
        publisher = string(1, about.topic) + string(2, about.address) + string(3, about.process) + string(4, about.node) + varint(5, _ALL)
        parts.append(message(7, publisher + message(6, string(2, about.message_type))))
    body = b"".join(parts)
    return len(body).to_bytes(_SIZE_BYTES, "little") + body


def decode_discovery(datagram: bytes) -> Heard | None:
    """Contents of a datagram; None for other datagrams and versions."""
    body = datagram[_SIZE_BYTES:]
    if len(datagram) < _SIZE_BYTES or int.from_bytes(datagram[:_SIZE_BYTES], "little") != len(body):
        return None
    try:
        found = dict(fields(body))
        about = found.get(6, found.get(7, b""))
        named = dict(fields(about)) if isinstance(about, bytes) else {}
        process, kind, kept = found.get(3, b""), found.get(4, 0), named.get(6, b"")
        kept = dict(fields(kept)).get(2, b"") if isinstance(kept, bytes) else b""
        if found.get(2) != WIRE_VERSION or not isinstance(kind, int):
            return None
        return Heard(kind=kind, process=_text(process), topic=_text(named.get(1, b"")), address=_text(named.get(2, b"")), message_type=_text(kept))
    except ValueError:
        return None


def encode_subscription(process: str, topic: str) -> bytes:
    """Encode the datagram that asks a topic's publishers to advertise it.

    Args:
        process: Id of the process that asks.
        topic: Name of the topic on the wire.
    """
    body = varint(2, WIRE_VERSION) + string(3, process) + varint(4, DiscoveryType.SUBSCRIBE) + message(6, string(1, topic))
    return len(body).to_bytes(_SIZE_BYTES, "little") + body


def _text(value: int | bytes) -> str:
    """A field's text.

    Raises:
        ValueError: it is a number, or no UTF-8.
    """
    if isinstance(value, int):
        raise ValueError(f"a field with text must have bytes, got {value}")  # noqa: TRY004 - caught with the faults of its bytes
    return value.decode()
