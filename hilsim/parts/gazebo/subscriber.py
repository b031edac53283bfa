"""Receives the messages of one topic of Gazebo's transport: its publishers are found by discovery, and their messages come over ZeroMQ."""

import contextlib
import math
import socket
import time
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hilsim.errors import TransmitError
from hilsim.parts.gazebo.specs import GazeboSpec
from hilsim.parts.gazebo.transport import default_partition, discovery_beacon, interfaces_of, open_beacon
from hilsim.protocols.gazebo_discovery import DiscoveryType, decode_discovery, encode_subscription, wire_topic

if TYPE_CHECKING:
    import zmq

_LARGEST = 65_536
_ASK_S = 1.0
_PARTS = 4  # topic, publisher's address, content, message type
_MAX_PUBLISHERS = 16


class Subscriber:
    """Messages of one topic.

    Args:
        spec: Address and partition, as in the rig's table ``[gazebo]``.
        topic: Name of the topic without the partition: ``/world/yard/pose/info``.
        message: Name of the messages without the package: ``Pose_V``. Publishers of other messages are passed over.
    """

    def __init__(self, spec: GazeboSpec, topic: str, message: str) -> None:
        self._spec, self._message = spec, message
        self._topic = wire_topic(spec.partition or default_partition(), topic)
        self._process = str(uuid.uuid4())
        self._where = discovery_beacon()
        self._beacon: socket.socket | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._messages: zmq.Socket[bytes] | None = None
        self._known: set[str] = set()

    def __enter__(self) -> Self:
        """Open the sockets.

        Raises:
            TransmitError: a port cannot be opened, or an address in the environment is invalid.
        """
        import zmq  # noqa: PLC0415 - most rigs do not need it

        try:
            self._beacon = open_beacon(self._spec.address, self._where)
        except OSError as error:
            raise TransmitError(f"UDP port {self._where.port} must be shared by Gazebo's programs: {error}") from error
        self._context = zmq.Context()
        self._messages = self._context.socket(zmq.SUB)
        self._messages.setsockopt(zmq.LINGER, 0)
        self._messages.setsockopt(zmq.SUBSCRIBE, self._topic.encode())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the sockets."""
        if self._beacon is not None:
            self._beacon.close()
        if self._messages is not None and self._context is not None:
            self._messages.close()
            self._context.term()

    def messages(self, silence_s: float | None = None) -> Iterator[bytes]:
        """Yield the messages as they come.

        Args:
            silence_s: Time without a message after which the iterator ends; None: it never does.
        """
        import zmq  # noqa: PLC0415

        beacon, messages = self._beacon, self._messages
        if beacon is None or messages is None:
            raise RuntimeError("a subscriber must be entered before its messages are read")
        poller = zmq.Poller()
        poller.register(beacon.fileno(), zmq.POLLIN)
        poller.register(messages, zmq.POLLIN)
        heard_s, ask_s = time.monotonic(), 0.0
        while silence_s is None or time.monotonic() < heard_s + silence_s:
            if time.monotonic() >= ask_s:
                ask_s = time.monotonic() + _ASK_S
                self._ask(beacon)
            wait_s = min(ask_s, heard_s + silence_s if silence_s is not None else ask_s) - time.monotonic()
            ready = dict(poller.poll(math.ceil(max(1000.0 * wait_s, 0.0))))
            if beacon.fileno() in ready:
                self._discover(beacon, messages)
            if messages in ready:
                parts = messages.recv_multipart()
                if len(parts) == _PARTS and parts[0].decode(errors="replace") == self._topic and self._is_of_type(parts[3].decode(errors="replace")):
                    heard_s = time.monotonic()
                    yield parts[2]

    def _is_of_type(self, name: str) -> bool:
        return name.rpartition(".")[2] == self._message

    def _ask(self, beacon: socket.socket) -> None:
        datagram = encode_subscription(self._process, self._topic)
        for interface in interfaces_of(self._spec.address):
            with contextlib.suppress(OSError):  # an interface that is gone, or without multicast
                beacon.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
                beacon.sendto(datagram, self._where)

    def _discover(self, beacon: socket.socket, messages: "zmq.Socket[bytes]") -> None:
        """Connect to the publishers that a datagram advertises."""
        import zmq  # noqa: PLC0415

        with contextlib.suppress(OSError, zmq.ZMQError):
            heard = decode_discovery(beacon.recv(_LARGEST))
            is_ours = (
                heard is not None and heard.kind == DiscoveryType.ADVERTISE and heard.topic == self._topic and self._is_of_type(heard.message_type)
            )
            if heard is not None and is_ours and heard.address not in self._known and len(self._known) < _MAX_PUBLISHERS:
                messages.connect(heard.address)
                self._known.add(heard.address)
