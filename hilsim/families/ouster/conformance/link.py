"""Rules for Ethernet, IPv4 and UDP headers: an Ouster sensor sends through an ordinary network stack, so its lidar packets are fragmented.

They apply only to headers with Ouster's MAC addresses. A capture that was written anew through the loopback interface, and packets behind a router or of a
program, have others, for which a note is reported.
"""

import struct
from collections.abc import Iterable

from hilsim.capture.datagram import CapturedDatagram
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

OWN = Rule(id="ouster.headers", severity=Severity.NOTE)
TTL = Rule(id="ouster.ttl", severity=Severity.ERROR)
FRAGMENT = Rule(id="ouster.fragment", severity=Severity.ERROR)
IDENTIFICATION = Rule(id="ouster.identification", severity=Severity.ERROR, packets=16)
UDP_CHECKSUM = Rule(id="ouster.udp_checksum", severity=Severity.ERROR)
SOURCE_PORT = Rule(id="ouster.source_port", severity=Severity.ERROR)
MAC = Rule(id="ouster.mac", severity=Severity.WARNING, packets=2)

OUI = bytes.fromhex("bc0fa7")
_TTL = 64
_HEADERS = 28
_MTU = 1500
_MAX_STEP = 64
_DONT_FRAGMENT = 0x4000
_MAX_NAMED = 4


class LinkTopic:
    """Headers of one sensor's packets: lidar and IMU packets share the counter of IPv4 identifications."""

    def __init__(self) -> None:
        self._packets = self._own = 0
        self._is_loopback = False
        self._macs: set[bytes] = set()
        self._ports: dict[str, set[int]] = {}
        self._last_id: int | None = None
        self._steps = self._counted = 0

    @property
    def origin(self) -> str:
        """Origin of the headers: ``sensor``, ``loopback``, ``foreign``, or ``none`` without headers."""
        if self._own:
            return "sensor"
        return "loopback" if self._is_loopback else "foreign" if self._macs else "none"

    def look(self, datagram: CapturedDatagram, kind: str, place: Place, log: FindingLog) -> None:
        """Judge one datagram, in the order of arrival.

        Args:
            datagram: The datagram.
            kind: ``lidar`` or ``IMU``.
            place: Its place.
            log: Log of findings.
        """
        self._packets += 1
        self._ports.setdefault(kind, set()).add(datagram.source_port)
        link = datagram.link
        self._is_loopback |= datagram.source.startswith("127.") or (link is not None and datagram.is_ethernet and not any(link[:12]))
        if link is None or not datagram.is_ethernet or not any(link[:12]):
            return
        if len(self._macs) < _MAX_NAMED:
            self._macs.add(link[6:12])
        if link[6:9] != OUI or link[-_HEADERS] != 0x45:
            return
        self._own += 1
        self._look_at_ip(link[-_HEADERS:], datagram, kind, place, log)

    def _look_at_ip(self, head: bytes, datagram: CapturedDatagram, kind: str, place: Place, log: FindingLog) -> None:
        identification, flags, ttl, checksum = struct.unpack(">4xHHB17xH", head)
        if ttl != _TTL:
            log.report(TTL, f"time to live of {kind} packets must be {_TTL}, got {ttl}", place)
        fits = len(datagram.payload) + _HEADERS <= _MTU
        expected = _DONT_FRAGMENT if fits else 0
        if flags & _DONT_FRAGMENT != expected:
            rule = "set in a packet that fits into 1500 bytes" if fits else "0 in a packet that is fragmented"
            log.report(FRAGMENT, f"do-not-fragment must be {rule}, got {int(flags & _DONT_FRAGMENT != 0)}", place)
        if checksum == 0:
            log.report(UDP_CHECKSUM, f"{kind} packets must have a UDP checksum, got 0", place)
        elif not _is_valid(head, datagram.payload):
            log.report(UDP_CHECKSUM, f"the UDP checksum must be that of the datagram, got 0x{checksum:04x}", place)
        if self._last_id is not None:
            step = (identification - self._last_id) % 65536
            self._steps += 1
            self._counted += 1 <= step <= _MAX_STEP
        self._last_id = identification

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if not self._own and self._packets and self.origin != "none":
            names = ", ".join(sorted(mac.hex(":") for mac in self._macs))
            whose = "the loopback interface" if self.origin == "loopback" else f"a router, a bridge or another program (from {names})"
            log.report(OWN, f"packets carry headers of {whose}, not the sensor's own: not checked")
        if len(self._macs) > 1:
            log.report(MAC, f"packets of one sensor must come from one MAC, got {_named(mac.hex(':') for mac in self._macs)}")
        for kind, ports in self._ports.items():
            if len(ports) > 1:
                log.report(SOURCE_PORT, f"{kind} packets of one sensor must come from one port, got {_named(map(str, ports))}")
        if not self._own:
            return
        if log.applies(IDENTIFICATION, self._steps + 1, of="packets with headers") and self._counted < 0.9 * self._steps:
            log.report(
                IDENTIFICATION,
                f"one IPv4 identification must count the datagrams of both streams, got {self._counted} of {self._steps} steps upwards",
            )


def _named(values: Iterable[str]) -> str:
    return ", ".join(sorted(values)[:_MAX_NAMED])


def _is_valid(head: bytes, payload: bytes) -> bool:
    """Whether a UDP checksum is that of the datagram, or the partial one of a capture on the sending host."""
    pseudo = head[12:20] + b"\0\x11" + head[24:26]
    whole = pseudo + head[20:] + payload + bytes(len(payload) % 2)
    if int.from_bytes(whole, "big") % 0xFFFF == 0:
        return True
    return int.from_bytes(pseudo, "big") % 0xFFFF == int.from_bytes(head[26:28], "big") % 0xFFFF
