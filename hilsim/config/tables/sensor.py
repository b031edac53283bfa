"""The keys of a rig's ``[[sensor]]``: model, mounting, setup and network."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Any, ClassVar, Literal

from hilsim.errors import require, within
from hilsim.protocols.ethernet import parse_mac
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.time_input import Qualifiers
from hilsim.transmit.hosts import is_host, is_ipv4
from hilsim.transmit.links.addresses import is_address
from hilsim.transmit.links.line import MAX_BAUD, MIN_BAUD


def _is_mac(text: str) -> bool:
    try:
        parse_mac(text)
    except ValueError:
        return False
    return True


def _is_network(text: str) -> bool:
    try:
        IPv4Network(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """Network settings of a sensor.

    Attributes:
        mode: ``udp``: ordinary sockets (TTL, do-not-fragment and checksum as in the real sensor where a socket can); ``ethernet``: whole frames with the
            real sensor's headers bit for bit (needs CAP_NET_RAW).
        source: The sensor's IPv4 address. For ``udp`` it must be on this host (any 127.x.y.z is).
        destination: Destination of packets: a unicast, multicast or broadcast address, or a host name, resolved once at the start and at each reload.
        broadcast: Must be true for a broadcast destination: all hosts on the network receive the packets.
        data_port: Destination port of data packets; by default the model's: 2368, or 8808 for a Cepton-style sensor (also for its information packets).
        position_port: Destination port of position packets, 8308 by default; only for a sensor that has them.
        source_ports: ``sensor``: the real sensor's source ports (2368 and 8308; 8808); ``any``: free ports, so that a receiver on
            this host can bind 0.0.0.0:2368 (``udp`` only).
        interface: Name of the network interface; required for ``ethernet``, optional for ``udp``.
        source_mac: The sensor's MAC address in frames; by default that of its unit's file, or the model's prefix and the sensor's number.
        destination_mac: Destination MAC address of frames to a unicast address.
    """

    mode: Literal["udp", "ethernet"] = "udp"
    source: str = "127.0.1.201"
    destination: str = "127.0.0.1"
    broadcast: bool = False
    data_port: int | None = None
    position_port: int | None = None
    source_ports: Literal["sensor", "any"] = "sensor"
    interface: str = ""
    source_mac: str = ""
    destination_mac: str = ""

    def __post_init__(self) -> None:
        require(
            (is_ipv4(self.source), f'source must be an IPv4 address, got "{self.source}"'),
            (is_host(self.destination), f'destination must be an IPv4 address or the name of a host, got "{self.destination}"'),
            *within(self, data_port=(1, 65_535), position_port=(1, 65_535)),
            (
                self.broadcast or self.destination != "255.255.255.255",
                "broadcast must be true for destination 255.255.255.255: every host on the network gets these packets",
            ),
            (self.mode == "udp" or bool(self.interface), 'interface must be given for mode "ethernet"'),
            (not self.source_mac or _is_mac(self.source_mac), f'source_mac must be like "60:76:88:10:2f:6f", got "{self.source_mac}"'),
            (
                not self.destination_mac or _is_mac(self.destination_mac),
                f'destination_mac must be like "60:76:88:10:2f:6f", got "{self.destination_mac}"',
            ),
            (
                self.mode == "udp" or self.broadcast or bool(self.destination_mac),
                'destination_mac must be given for a unicast destination in mode "ethernet"',
            ),
        )


@dataclass(frozen=True, kw_only=True)
class SensorWebSpec:
    """Web interface of a Velodyne, or control interface of an Ouster, a Livox or a Hesai, at the sensor's own address (``network.source``).

    Attributes:
        port: TCP port of HTTP, not of a Livox; a real sensor has 80, which an ordinary user may not open. 0: any free one.
        serial: Serial number that a Velodyne or a Hesai shows; empty: one made of the sensor's number.
        boot_s: Time for which the sensor sends nothing after a reset or, an Ouster, while it initialises anew; of a Livox from each start to the first points.
        saved_file: File, relative to the rig, that keeps saved settings until the next start; empty: they last as long as the daemon.
        commands_port: TCP port for commands: of an Ouster in words, 7501 if it is not given; of a Hesai by PTC, 9347. 0: any free one.
        discovery: Whether an Ouster announces itself by mDNS on the network of its address (extra ``ouster``).
        destinations: Networks such as ``192.168.1.0/24`` that clients may have packets sent to, besides the rig's destination; by default any address, as of
            a real sensor.
    """

    port: int = 80
    serial: str = ""
    boot_s: float = 8.0
    saved_file: str = ""
    commands_port: int | None = None
    discovery: bool = False
    destinations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            *within(self, port=(0, 65_535), commands_port=(0, 65_535), boot_s=(0, 120)),
            (self.serial.isprintable() and len(self.serial) <= 64, f"serial must be at most 64 printable characters, got {self.serial[:80]!r}"),
            *((_is_network(each), f'destinations must be IPv4 networks like "192.168.1.0/24", got "{each}"') for each in self.destinations),
        )

    def permits(self, address: str) -> bool:
        """Whether clients may have packets sent to an IPv4 address."""
        return not self.destinations or any(IPv4Address(address) in IPv4Network(each) for each in self.destinations)


@dataclass(frozen=True, kw_only=True)
class TimeInputSpec:
    """A receiver outside, connected to the GPS input of a Velodyne.

    Attributes:
        nmea: Source of sentences: a serial port (``/dev/serial/by-id/…``), ``udp:ADDRESS:PORT`` to receive at (a real sensor has port 10110),
            ``tcp:ADDRESS:PORT`` to connect to; empty: none.
        baud: Bits per second of the serial port.
        pps: Source of the pulse: ``system``: each second of this computer's clock; ``/dev/ppsN``, or another file of the form of
            ``/sys/class/pps/ppsN/assert``; empty: none.
        qualifiers: Conditions on pulses and sentences.
    """

    nmea: str = ""
    baud: int = 9600
    pps: str = ""
    qualifiers: Qualifiers = field(default_factory=Qualifiers)

    def __post_init__(self) -> None:
        kind, _, address = self.nmea.partition(":")
        is_source = not self.nmea or self.nmea.startswith("/") or (kind in {"udp", "tcp"} and is_address(address))
        require(
            (is_source, f'nmea must be a serial port, "udp:ADDRESS:PORT" or "tcp:ADDRESS:PORT", got "{self.nmea}"'),
            (MIN_BAUD <= self.baud <= MAX_BAUD, f"baud must be {MIN_BAUD} to {MAX_BAUD}, got {self.baud}"),
            (
                self.pps in {"", "system"} or self.pps.startswith("/"),
                f'pps must be "system" or an absolute path such as "/dev/pps0", got "{self.pps}"',
            ),
            (bool(self.nmea or self.pps), "nmea or pps must be given"),
        )


@dataclass(frozen=True, kw_only=True)
class ProfileChoice:
    """Model and name of a sensor.

    Attributes:
        name: Name, unique within the rig; a label of metrics.
        profile: A shipped model (``vlp16``, ``hr80w-like`` …) or the path of a profile, relative to the rig.
        override: Values that replace the profile's, e.g. ``{ range_noise_m = 0.0 }``.
    """

    name: str
    profile: str = "vlp16"
    override: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SensorSpec(SensorSetup, ProfileChoice):
    """One lidar of the rig.

    Attributes:
        network: Network settings.
        web: Web interface of a Velodyne, or control interface of another sensor; None: none.
        time_input: Pulses and sentences from outside at its GPS input; None: none.
        sdf_sensor: Name (``model::link::sensor``) of a lidar of the scene's SDF file: this sensor is mounted at its pose, on a fixed platform, and ignores the
            collisions that contain the lidar's origin.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"thinning": "decimation"}

    network: NetworkSpec = field(default_factory=NetworkSpec)
    web: SensorWebSpec | None = None
    time_input: TimeInputSpec | None = None
    sdf_sensor: str = ""

    def __post_init__(self) -> None:
        plain = self.name.replace("-", "").replace("_", "").isalnum()
        require((plain, f'name must be letters, digits, "-" and "_", got "{self.name}"'))
