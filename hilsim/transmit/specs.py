"""Settings of sending, and specification of one flow's socket."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import AddressValueError, IPv4Address
from typing import Literal, Self

from hilsim.errors import require, within
from hilsim.protocols.ethernet import LinkStyle
from hilsim.protocols.flow_key import FlowKey

SchedulingChoice = Literal["auto", "fifo", "slice", "plain"]
LONGEST_SPIN_US = 50.0
CHOOSE_SPIN = -1.0
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class TransmitSpec:
    """Settings of the sending loop.

    Attributes:
        scheduling: ``fifo``: SCHED_FIFO or an error; ``slice``: SCHED_OTHER with a 100 us slice; ``plain``: default scheduling; ``auto``: the best permitted.
        priority: Priority under SCHED_FIFO, 1 to 99.
        cpu: CPU that the sending thread runs on; -1: any.
        spin_us: Time before each deadline that is spent awake, 0 to 50: more precise, but more CPU. -1: 50 where the thread is real-time and that takes
            at most a tenth of a core, else 0.
        late_policy: Treatment of a packet later than ``late_limit_us``: ``skip``: not sent, counted, so that a backlog is never sent in
            a burst; ``send``: sent, counted; ``stop``: sending ends.
        late_limit_us: Limit of lateness. By default some fifteen packets of a VLP-16: virtual machines stall for 12 ms now and then, and receivers can still use packets that late.
        slots: Packets per ring, 4 to 65536, which limits rendering ahead. 0: enough for the fastest sensor's lead, at least 64.
        lock_memory: Whether to prevent swapping of the process's memory, where permitted.
        epoch_utc: UTC instant of rig time 0, like ``2026-01-01T12:00:00Z``, to the microsecond: daemons of several hosts with one instant emulate one world in
            step. A daemon started before it waits, one started after it begins in the middle (a rig of sensors only). Empty: soon after the start.
    """

    scheduling: SchedulingChoice = "auto"
    priority: int = 50
    cpu: int = -1
    spin_us: float = CHOOSE_SPIN
    late_policy: Literal["skip", "send", "stop"] = "skip"
    late_limit_us: float = 20_000.0
    slots: int = 0
    lock_memory: bool = True
    epoch_utc: str = ""

    def __post_init__(self) -> None:
        require(
            *within(self, priority=(1, 99), late_limit_us=(10, 10_000_000)),
            (-1 <= self.cpu <= 1023, f"cpu must be -1 (any) or 0 to 1023, got {self.cpu}"),
            (
                self.spin_us == CHOOSE_SPIN or 0.0 <= self.spin_us <= LONGEST_SPIN_US,
                f"spin_us must be 0 to {LONGEST_SPIN_US:g}, or {CHOOSE_SPIN:g} to have it chosen, got {self.spin_us}",
            ),
            (self.slots == 0 or 4 <= self.slots <= 65536, f"slots must be 4 to 65536, or 0 to follow the rate, got {self.slots}"),
            (
                not self.epoch_utc or _instant_ns(self.epoch_utc) is not None,
                f'epoch_utc must be a UTC instant from 1970 to 2199 like 2026-01-01T12:00:00Z, got "{self.epoch_utc}"',
            ),
        )

    @property
    def epoch_utc_ns(self) -> int | None:
        """``epoch_utc`` in nanoseconds since 1970-01-01 UTC; None if it is empty."""
        return _instant_ns(self.epoch_utc) if self.epoch_utc else None


@dataclass(frozen=True, kw_only=True)
class SocketSpec:
    """A UDP socket and its destination.

    Attributes:
        source: IPv4 source address, one of this host's.
        source_port: UDP source port; 0: any free one.
        destination: IPv4 address: unicast, multicast, or a broadcast address (then ``broadcast`` must be true).
        destination_port: UDP destination port.
        broadcast: Whether to permit a broadcast destination.
        interface: Name of the interface to send through; empty: as routed.
        ttl: IP time to live.
        dont_fragment: Don't-fragment flag of IP; the identification is then 0, as in a real Velodyne's data packets.
        udp_checksum: Whether to send a valid UDP checksum; else 0, as in a real Velodyne's data packets (the network card may not fill it in then).
        send_buffer_bytes: Size of the socket's send buffer; 0: the system's default.
    """

    source: str
    source_port: int
    destination: str
    destination_port: int
    broadcast: bool = False
    interface: str = ""
    ttl: int = 255
    dont_fragment: bool = True
    udp_checksum: bool = False
    send_buffer_bytes: int = 0

    def __post_init__(self) -> None:
        same = (self.source, self.source_port) == (self.destination, self.destination_port)
        require(
            *within(self, source_port=(0, 65_535), destination_port=(1, 65_535), ttl=(1, 255)),
            (_is_address(self.source), f'source must be an IPv4 address, got "{self.source}"'),
            (_is_address(self.destination), f'destination must be an IPv4 address, got "{self.destination}"'),
            (not same, f"destination must not be the source itself, got {self.destination}:{self.destination_port} for both"),
            (self.broadcast or self.destination != "255.255.255.255", "broadcast must be true for destination 255.255.255.255"),
            (len(self.interface.encode()) <= 15, f'interface must be at most 15 bytes, got "{self.interface}"'),
            (self.send_buffer_bytes >= 0, f"send_buffer_bytes must be 0 or more, got {self.send_buffer_bytes}"),
        )

    @classmethod
    def of_flow(cls, flow: FlowKey, style: LinkStyle, *, free_port: bool, broadcast: bool, interface: str) -> Self:
        """Specification of a socket with a sensor's own headers.

        Args:
            flow: Source and destination of the datagrams.
            style: Style of the sensor's headers.
            free_port: Whether to use any free port of the source address instead of the flow's.
            broadcast: Whether to permit a broadcast destination.
            interface: Name of the interface to send through; empty: as routed.

        Raises:
            ValueError: the arguments are inconsistent.
        """
        return cls(
            source=flow.source,
            source_port=0 if free_port else flow.source_port,
            destination=flow.destination,
            destination_port=flow.destination_port,
            broadcast=broadcast,
            interface=interface,
            ttl=style.ttl,
            dont_fragment=style.dont_fragment,
            udp_checksum=style.udp_checksum,
        )

    @property
    def is_multicast(self) -> bool:
        """Whether the destination is a multicast group."""
        return IPv4Address(self.destination).is_multicast


@dataclass(frozen=True, kw_only=True)
class FrameSocketSpec:
    """A raw socket: the ring's payloads are whole Ethernet frames.

    Attributes:
        interface: Name of the interface to send through.
    """

    interface: str

    def __post_init__(self) -> None:
        require((1 <= len(self.interface.encode()) <= 15, f'interface must be 1 to 15 bytes, got "{self.interface}"'))


@dataclass(frozen=True, kw_only=True)
class FlowSpec:
    """One stream of datagrams.

    Attributes:
        name: Unique name of the flow: ``"<sensor>/data"``, ``"<sensor>/position"``.
        socket: Specification of its socket.
        packet_rate_hz: Expected mean rate, for the budget of real-time scheduling.
        sends_late: Whether to send a datagram however late it is: for a producer that postpones later ones, so that none is lost and none accumulates.
        path: Name by which faults of the network find it, that of its flow in a recording without a clock; empty: ``name``.
    """

    name: str
    socket: SocketSpec | FrameSocketSpec
    packet_rate_hz: float
    sends_late: bool = False
    path: str = ""

    def __post_init__(self) -> None:
        require(
            (bool(self.name), "name must not be empty"),
            *within(self, packet_rate_hz=(0, 1_000_000)),
        )


def _instant_ns(text: str) -> int | None:
    """Nanoseconds since 1970-01-01 UTC of an ISO 8601 instant that ends with Z; None if it is not one."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    if not text.endswith("Z") or not 1970 <= instant.year < 2200:
        return None
    return (instant - _UNIX_EPOCH) // timedelta(microseconds=1) * 1000


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True
