"""Rules for Ethernet, IPv4 and UDP headers: data packets are made from a hardware template, position packets by a software stack.

They apply only to headers that a sensor may have sent. VeloView's exporter, the loopback interface, and senders with another maker's MAC (a router, a
bridge, a program's socket) write their own headers, for which a note is reported.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from struct import unpack

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.velodyne.protocol.data import DATA_PORT
from hilsim.families.velodyne.protocol.models import HDL_32E, Model
from hilsim.families.velodyne.protocol.position import POSITION_PORT
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE
from hilsim.protocols.ethernet import HEADER_SIZE, LinkStyle
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

OWN = Rule(id="header.own", severity=Severity.NOTE)
MAC = Rule(id="header.mac", severity=Severity.WARNING, packets=2)
OFFLOAD = Rule(id="header.offload", severity=Severity.NOTE)
SHAPE = Rule(id="header.ip", severity=Severity.ERROR)
TTL = Rule(id="header.ttl", severity=Severity.ERROR)
FRAGMENT = Rule(id="header.fragment", severity=Severity.ERROR)
IDENTIFICATION = Rule(id="header.identification", severity=Severity.ERROR)
UDP_CHECKSUM = Rule(id="header.udp_checksum", severity=Severity.ERROR)
PORT = Rule(id="header.source_port", severity=Severity.ERROR)
ONE_SENDER = Rule(id="header.one_sender", severity=Severity.ERROR)
DESTINATION_PORT = Rule(id="header.destination_port", severity=Severity.NOTE)

_OUI = bytes.fromhex("607688")
_EXPORTER = bytes.fromhex("607688000000")
_OLD_PORT = 443  # HDL-32E of 2011
_COOKED_MAC = {16 + 28: 6, 20 + 28: 12}
"""Offset of the sender's address in Linux's cooked headers (two versions), by the size of all headers."""
_MAX_MACS = 16
_MIN_STEPS = 10
_HEADERS_SIZE = 28
_MAX_STEP = 64


class Origin(StrEnum):
    """Origin of the headers in a capture."""

    NONE = "none"
    SENSOR = "sensor"
    LOOPBACK = "loopback"
    EXPORTER = "exporter"
    FOREIGN = "foreign"


def origin_of(datagram: CapturedDatagram) -> Origin:
    """Find the origin of a datagram's headers."""
    if datagram.link is None:
        return Origin.NONE
    has_no_macs = not any(datagram.link[:12]) if datagram.is_ethernet else datagram.source.startswith("127.")
    if has_no_macs:
        return Origin.LOOPBACK
    mac = mac_of(datagram)
    if mac == _EXPORTER:
        return Origin.EXPORTER
    return Origin.SENSOR if mac is None or mac[:3] == _OUI else Origin.FOREIGN


def mac_of(datagram: CapturedDatagram) -> bytes | None:
    """Source Ethernet address of a datagram; None if the capture does not contain it."""
    link = datagram.link or b""
    if datagram.is_ethernet:
        return link[6:12]
    place = _COOKED_MAC.get(len(link))
    return link[place : place + 6] if place is not None and any(link[place : place + 6]) else None


@dataclass(kw_only=True)
class _Count:
    """Number of packets that break a rule, and the first of them."""

    packets: int = 0
    got: str = ""
    place: Place | None = None


@dataclass(kw_only=True)
class HeadersTopic:
    """Headers of one kind of packet.

    Attributes:
        is_data: Whether these are data packets, else position packets.
        origin: Origin of the headers of the first packet.
    """

    is_data: bool
    origin: Origin = Origin.NONE
    packets: int = 0
    _counts: dict[Rule, _Count] = field(default_factory=dict)
    _last_identification: int | None = None
    _counting: int = 0
    _steps: int = 0
    _valid_checksums: int = 0
    _offloaded: int = 0
    _macs: set[bytes] = field(default_factory=set)
    _is_local: bool = False
    _ports: set[int] = field(default_factory=set)

    @property
    def _style(self) -> LinkStyle:
        return VELODYNE_DATA_STYLE if self.is_data else VELODYNE_POSITION_STYLE

    def look(self, datagrams: list[CapturedDatagram], first_index: int) -> None:
        """Judge the headers of consecutive packets."""
        if not self.packets:
            self.origin = origin_of(datagrams[0])
            self._is_local = datagrams[0].source.startswith("127.")
        self.packets += len(datagrams)
        for row, datagram in enumerate(datagrams):
            place = Place(first_index + row, datagram.frame)
            self._check_ports(datagram, place)
            mac = mac_of(datagram)
            if mac is not None and len(self._macs) < _MAX_MACS:
                self._macs.add(mac)
            if self.origin in {Origin.SENSOR, Origin.FOREIGN} and ":" not in datagram.source:
                self._check_ip(datagram, place)

    def _count(self, rule: Rule, got: str, place: Place) -> None:
        self._counts.setdefault(rule, _Count(got=got, place=place)).packets += 1

    def _check_ports(self, datagram: CapturedDatagram, place: Place) -> None:
        port = DATA_PORT if self.is_data else POSITION_PORT
        self._ports.add(datagram.source_port)
        if datagram.source_port != port:
            self._count(PORT, str(datagram.source_port), place)
        if datagram.destination_port != port:
            self._count(DESTINATION_PORT, str(datagram.destination_port), place)

    def _check_ip(self, datagram: CapturedDatagram, place: Place) -> None:
        head, is_own = (datagram.link or b"")[-_HEADERS_SIZE:], self.origin is Origin.SENSOR
        if len(head) < _HEADERS_SIZE or head[0] != 0x45:
            if is_own:
                self._count(SHAPE, "IPv4 options", place)
            return
        words, size = unpack(">14H", head), len(datagram.payload)
        pseudo_header = sum(words[6:10]) + 17 + words[12]
        payload = int.from_bytes(datagram.payload + bytes(size % 2), "big")  # modulo 65535 the sum of its words
        is_valid = words[13] != 0 and (pseudo_header + sum(words[10:14]) + payload) % 0xFFFF == 0
        is_partial = words[13] != 0 and words[13] == _folded(pseudo_header) and not is_valid  # one valid checksum in 65535 is the same
        self._offloaded += is_partial
        if not is_own:
            return
        if _folded(sum(words[:10])) != 0xFFFF or words[1] != _HEADERS_SIZE + size or words[12] != 8 + size:
            self._count(SHAPE, head[:20].hex(), place)
        if head[8] != self._style.ttl:
            self._count(TTL, str(head[8]), place)
        if words[3] != (0x4000 if self._style.dont_fragment else 0):
            self._count(FRAGMENT, f"0x{words[3]:04x}", place)
        self._check_identification(words[2], place)
        self._valid_checksums += is_valid
        if not is_valid and not is_partial and (words[13] != 0 or not self.is_data):
            self._count(UDP_CHECKSUM, f"0x{words[13]:04x}", place)

    def _check_identification(self, identification: int, place: Place) -> None:
        if self.is_data:
            if identification:
                self._count(IDENTIFICATION, str(identification), place)
            return
        if self._last_identification is not None:
            self._steps += 1
            self._counting += 1 <= (identification - self._last_identification) % 65536 <= _MAX_STEP
        self._last_identification = identification

    def conclude(self, log: FindingLog, model: Model | None) -> None:
        """Report each broken rule once, with the number of packets."""
        kind = "data" if self.is_data else "position"
        if self.origin in {Origin.LOOPBACK, Origin.EXPORTER}:
            whose = "the loopback interface's" if self.origin is Origin.LOOPBACK else "a viewer's export"
            log.report(OWN, f"{kind} packets carry headers of {whose}: not checked")
        elif self.origin is Origin.FOREIGN:
            macs = ", ".join(sorted(mac.hex(":") for mac in self._macs)[:4])
            log.report(
                OWN,
                f"headers of {kind} packets are not the sensor's own but those of a router, a bridge or another program (from {macs}): not checked",
            )
        if len(self._macs) > 1:
            macs = ", ".join(sorted(mac.hex(":") for mac in self._macs)[:4])
            log.report(MAC, f"{kind} packets of one address must come from one MAC, got {len(self._macs)}: {macs}")
        if self._offloaded:
            log.report(OFFLOAD, f"{self._offloaded} of {self.packets} {kind} packets carry the partial UDP checksum of a capture on the sending host")
        if len(self._ports) > 1:
            log.report(ONE_SENDER, f"{kind} packets of one address must come from one port, got {len(self._ports)}: {sorted(self._ports)[:4]}")
        for rule, count in self._counts.items():
            of_2011 = (model is HDL_32E and rule in {TTL, FRAGMENT, IDENTIFICATION}) or (rule is PORT and count.got == str(_OLD_PORT))
            message = f"{_expectation(rule, is_data=self.is_data)}, got {count.got} ({count.packets} of {self.packets} {kind} packets)"
            is_elsewhere = self._is_local or self.origin is Origin.FOREIGN
            softer = Severity.WARNING if of_2011 else Severity.NOTE if rule is PORT and is_elsewhere else None
            log.report(rule, message, count.place, severity=softer)
        if self.is_data and self._valid_checksums:
            message = f"the UDP checksum must be 0, got a valid one ({self._valid_checksums} of {self.packets} data packets)"
            log.report(UDP_CHECKSUM, message, severity=Severity.WARNING)
        if self.is_data or self.origin is not Origin.SENSOR:
            return
        if log.applies(IDENTIFICATION, self._steps + 1, _MIN_STEPS + 1, "position packets") and self._counting < 0.9 * self._steps:
            log.report(IDENTIFICATION, f"the IPv4 identification of position packets must count, got {self._counting} of {self._steps} steps upwards")


def _folded(total: int) -> int:
    """Ones' complement sum folded to 16 bits."""
    return (total - 1) % 0xFFFF + 1 if total else 0


def _expectation(rule: Rule, *, is_data: bool) -> str:
    """Text of a rule's requirement on one kind of packet."""
    style = VELODYNE_DATA_STYLE if is_data else VELODYNE_POSITION_STYLE
    port = DATA_PORT if is_data else POSITION_PORT
    return {
        SHAPE.id: f"the IPv4 header must have 20 bytes, a valid checksum and the packet's length ({HEADER_SIZE} bytes of headers in all)",
        TTL.id: f"time to live must be {style.ttl}",
        FRAGMENT.id: f"the fragment field must be 0x{0x4000 if style.dont_fragment else 0:04x}",
        IDENTIFICATION.id: "the IPv4 identification must be 0",
        UDP_CHECKSUM.id: "the UDP checksum must be 0" if is_data else "the UDP checksum must be valid",
        PORT.id: f"the source port must be {port}",
        DESTINATION_PORT.id: f"the destination port is {port} by default",
    }[rule.id]
