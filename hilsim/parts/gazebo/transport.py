"""Publishes messages over Gazebo's transport: topics are advertised to a multicast group, messages go to subscribers over ZeroMQ.

ZeroMQ reports subscriptions and their ends, whatever the cause. A stalled subscriber loses messages beyond the ``_HELD`` queued for it, and no publisher waits for it.
"""

import contextlib
import fcntl
import os
import pwd
import select
import socket
import struct
import threading
import time
import uuid
from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, NamedTuple

from hilsim.errors import TransmitError
from hilsim.parts.gazebo.specs import GazeboSpec
from hilsim.protocols.gazebo_discovery import GROUP, MESSAGE_PORT, Advertised, DiscoveryType, decode_discovery, encode_discovery, wire_topic

if TYPE_CHECKING:
    import zmq

_BEAT_S = 1.0
_LARGEST = 65_536
_LARGEST_PORT, _PORT_DIGITS = 65_535, 5
_HELD = 32
_UNSUBSCRIBED = b"\x00"
_SIOCGIFADDR = 0x8915
_PREFIXES = ("GZ_", "IGN_")
"""Prefixes of environment variables: that of Gazebo Garden and later first."""


def from_environment(name: str) -> str | None:
    """Value of an environment variable of Gazebo (``PARTITION`` …); None if not set."""
    return next((os.environ[prefix + name] for prefix in _PREFIXES if prefix + name in os.environ), None)


def default_partition() -> str:
    """Gazebo's default partition: the environment's, also an empty one, or the host's and the user's names.

    Source: gz-transport, ``NodeOptions.cc`` and ``NetUtils.cc``: ``USER`` is used, and ``LOGNAME`` is not.
    """
    named = from_environment("PARTITION")
    if named is not None:
        return named
    user = os.environ.get("USER")
    if user is None:
        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # a user without a name
            user = "error-get-user"
    return f"{socket.gethostname()}:{user}"


class Beacon(NamedTuple):
    """Multicast address for advertising topics.

    Attributes:
        group: Multicast address.
        port: UDP port.
    """

    group: str
    port: int


def discovery_beacon() -> Beacon:
    """Gazebo's default beacon, or the environment's.

    Raises:
        TransmitError: the environment's is invalid.
    """
    group, port = from_environment("DISCOVERY_MULTICAST_IP") or GROUP, from_environment("DISCOVERY_MSG_PORT") or str(MESSAGE_PORT)
    if not _is_group(group):
        raise TransmitError(f'GZ_DISCOVERY_MULTICAST_IP of the environment must be an IPv4 multicast address, got "{group[:50]}"')
    if not (port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and 1 <= int(port) <= _LARGEST_PORT):
        raise TransmitError(f'GZ_DISCOVERY_MSG_PORT of the environment must be 1 to {_LARGEST_PORT}, got "{port[:50]}"')
    return Beacon(group, int(port))


def _is_group(text: str) -> bool:
    try:
        return IPv4Address(text).is_multicast
    except ValueError:
        return False


class Transport:
    """Topics of one process.

    Args:
        spec: Table ``[gazebo]`` of the rig.
        topics: Names and message types (``LaserScan``) of the published topics.
    """

    def __init__(self, spec: GazeboSpec, topics: Sequence[tuple[str, str]]) -> None:
        self._spec = spec
        self._names = dict(topics)
        self._process = str(uuid.uuid4())
        self._node = str(uuid.uuid4())
        self._partition = spec.partition or default_partition()
        self._lock = threading.Lock()
        self._wanted: set[bytes] = set()
        self._publisher: zmq.Socket[bytes] | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._where = Beacon(GROUP, MESSAGE_PORT)
        self._beacon: socket.socket | None = None
        self._advertised: dict[str, Advertised] = {}
        self._stop_read, self._stop_write = -1, -1
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Open the ports, and start advertising.

        Raises:
            TransmitError: a port cannot be opened, or an address in the environment is invalid.
        """
        import zmq  # noqa: PLC0415 - most rigs do not need it

        self._where = discovery_beacon()
        self._context = zmq.Context()
        publisher: zmq.Socket[bytes] = self._context.socket(zmq.XPUB)
        self._publisher = publisher
        publisher.setsockopt(zmq.SNDHWM, _HELD)
        publisher.setsockopt(zmq.LINGER, 0)
        try:
            port = publisher.bind_to_random_port(f"tcp://{self._spec.address}")
            self._beacon = open_beacon(self._spec.address, self._where)
        except (zmq.ZMQError, OSError) as error:
            self.close()
            raise TransmitError(
                f"gazebo.address must be of this host, and UDP port {self._where.port} be shared, got {self._spec.address}: {error}"
            ) from error
        address = f"tcp://{self._spec.address}:{port}"
        for topic, message in self._names.items():
            named = wire_topic(self._partition, topic)
            kind = f"{self._spec.messages}.msgs.{message}"
            self._advertised[topic] = Advertised(topic=named, address=address, process=self._process, node=self._node, message_type=kind)
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._advertise, name="gazebo-discovery", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Announce the end, and close everything."""
        if self._thread is not None:
            os.close(self._stop_write)
            self._thread.join()
            self._thread = None
            os.close(self._stop_read)
        if self._beacon is not None:
            self._beacon.close()
            self._beacon = None
        if self._publisher is not None and self._context is not None:
            with self._lock:
                self._publisher.close()
                self._publisher = None
            self._context.term()

    @property
    def alive(self) -> bool:
        """Whether the topics are being advertised."""
        return self._thread is not None and self._thread.is_alive()

    def wants(self, topic: str) -> bool:
        """Whether a topic has a subscriber, by its full name: a subscription to ``/a`` does not include ``/a/points``, although ZeroMQ matches prefixes."""
        with self._lock:
            if self._publisher is None:
                return False
            self._hear(self._publisher)
        return self._advertised[topic].topic.encode() in self._wanted

    def publish(self, topic: str, content: bytes) -> None:
        """Send a message to the subscribers."""
        import zmq  # noqa: PLC0415

        advertised = self._advertised[topic]
        parts = (advertised.topic.encode(), advertised.address.encode(), content, advertised.message_type.encode())
        with self._lock:
            if self._publisher is not None:
                self._hear(self._publisher)
                self._publisher.send_multipart(parts, zmq.NOBLOCK)

    def _hear(self, publisher: "zmq.Socket[bytes]") -> None:
        """Process subscriptions and their ends. It also updates the socket's count of sent messages: otherwise, in a burst, it would drop messages despite free room."""
        import zmq  # noqa: PLC0415

        with contextlib.suppress(zmq.Again):
            while True:
                change = publisher.recv(zmq.NOBLOCK)
                (self._wanted.discard if change[:1] == _UNSUBSCRIBED else self._wanted.add)(change[1:])

    def _advertise(self) -> None:
        """Advertise each second, and on request; run by the thread."""
        beacon = self._beacon
        if beacon is None:
            return
        interfaces = interfaces_of(self._spec.address)
        by_name = {advertised.topic: advertised for advertised in self._advertised.values()}
        next_s = time.monotonic()
        while True:
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + _BEAT_S
                self._tell(beacon, interfaces, DiscoveryType.HEARTBEAT)
                for advertised in by_name.values():
                    self._tell(beacon, interfaces, DiscoveryType.ADVERTISE, advertised)
            ready, _, _ = select.select([beacon.fileno(), self._stop_read], [], [], max(next_s - time.monotonic(), 0.0))
            if self._stop_read in ready:
                self._tell(beacon, interfaces, DiscoveryType.BYE)
                return
            if beacon.fileno() in ready:
                with contextlib.suppress(OSError):
                    heard = decode_discovery(beacon.recv(_LARGEST))
                    if heard is not None and heard.process != self._process and heard.kind == DiscoveryType.SUBSCRIBE and heard.topic in by_name:
                        self._tell(beacon, interfaces, DiscoveryType.ADVERTISE, by_name[heard.topic])

    def _tell(self, beacon: socket.socket, interfaces: Sequence[str], kind: DiscoveryType, about: Advertised | None = None) -> None:
        datagram = encode_discovery(kind, self._process, about)
        for interface in interfaces:
            with contextlib.suppress(OSError):  # an interface that is gone, or without multicast
                beacon.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
                beacon.sendto(datagram, self._where)


def open_beacon(address: str, where: Beacon) -> socket.socket:
    """Open the socket that advertises. Datagrams of a loopback address do not leave the host."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0 if address.startswith("127.") else 1)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        made.bind(("", where.port))
        for interface in interfaces_of(address):
            with contextlib.suppress(OSError):  # an interface without multicast
                made.setsockopt(
                    socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("4s4s", socket.inet_aton(where.group), socket.inet_aton(interface))
                )
        made.settimeout(0)
    except OSError:
        made.close()
        raise
    return made


def interfaces_of(address: str) -> tuple[str, ...]:
    """IPv4 addresses of the interfaces to advertise on: all for a loopback address, else the address's own and loopback."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # the interface has no IPv4 address
                answer = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                found.append(socket.inet_ntoa(answer[20:24]))
    return tuple(each for each in dict.fromkeys(found) if address.startswith("127.") or each == address or each.startswith("127."))
