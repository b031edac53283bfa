"""From a captured frame to the UDP datagram inside.

Written out instead of going through a general dissector, because the lengths of real captures cannot be believed: files exported by VeloView
carry IPv4 total length 0x04d2 in 512-byte position packets too, and offloading network cards leave 0. The UDP length decides, and the frame
decides where that does not fit either; whatever disagreed is noted.

Link types: https://www.tcpdump.org/linktypes.html. IPv4: RFC 791, UDP: RFC 768, VLAN tags: IEEE 802.1Q and 802.1ad.
"""

from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address
from typing import NamedTuple

LINK_NULL = 0
LINK_ETHERNET = 1
LINK_LOOP = 108
LINK_COOKED = 113
LINK_COOKED_2 = 276
_RAW_LINKS = frozenset((12, 14, 101, 228))  # raw IP: the values of Linux, OpenBSD and the file format, and IPv4 only
_VLAN_TYPES = frozenset((0x8100, 0x88A8, 0x9100))
_IPV4_TYPE = 0x0800
_IPV6_TYPE = 0x86DD
_UDP = 17
SUPPORTED_LINKS = frozenset((LINK_NULL, LINK_ETHERNET, LINK_LOOP, LINK_COOKED, LINK_COOKED_2)) | _RAW_LINKS


class Skipped(StrEnum):
    """Why a frame holds no datagram for us; the text completes "… frames skipped: "."""

    NOT_IPV4 = "not IPv4"
    IPV6 = "IPv6"
    NOT_UDP = "not UDP"
    FRAGMENT = "fragments of larger IPv4 datagrams (not put together)"
    SHORT = "shorter than their headers"


class Parts(NamedTuple):
    """Where the datagram lies in its frame.

    Attributes:
        source: IPv4 address.
        source_port: UDP port.
        destination: IPv4 address.
        destination_port: UDP port.
        start: Byte at which the payload starts.
        stop: Byte after its last one.
        doubt: What did not agree about the lengths, or None.
    """

    source: str
    source_port: int
    destination: str
    destination_port: int
    start: int
    stop: int
    doubt: str | None


@lru_cache(maxsize=4096)
def _address(packed: bytes) -> str:
    return str(IPv4Address(packed))


def _ethernet_payload(frame: bytes) -> tuple[int, int]:
    """EtherType and offset behind up to four VLAN tags."""
    at = 12
    for _ in range(5):
        ether_type = int.from_bytes(frame[at : at + 2], "big")
        if ether_type not in _VLAN_TYPES:
            break
        at += 4
    return ether_type, at + 2


def _network_layer(link_type: int, frame: bytes) -> tuple[int, int]:
    """EtherType of what the frame carries, and its offset."""
    if link_type == LINK_ETHERNET:
        return _ethernet_payload(frame)
    if link_type == LINK_COOKED:
        return int.from_bytes(frame[14:16], "big"), 16
    if link_type == LINK_COOKED_2:
        return int.from_bytes(frame[0:2], "big"), 20
    start = 4 if link_type in {LINK_NULL, LINK_LOOP} else 0
    version = frame[start] >> 4 if len(frame) > start else 0  # the family number before it differs from system to system
    return {4: _IPV4_TYPE, 6: _IPV6_TYPE}.get(version, 0), start


def _payload_size(ip_size: int, header_size: int, udp_size: int, at_hand: int) -> tuple[int, str | None]:
    """Bytes of payload, and what disagreed; ``at_hand`` counts the frame's bytes behind the UDP header."""
    if udp_size < 8 or udp_size - 8 > at_hand:
        return at_hand, "UDP length is not the frame's; the frame's was taken"
    if ip_size not in {header_size + udp_size, 0}:  # 0: left to the network card
        return udp_size - 8, "IPv4 length is not the frame's; the UDP length was taken"
    return udp_size - 8, None


def find_datagram(link_type: int, frame: bytes) -> Parts | Skipped:
    """The UDP datagram in a frame, or why there is none.

    Args:
        link_type: One of ``SUPPORTED_LINKS``.
        frame: The frame's bytes.
    """
    ether_type, at = _network_layer(link_type, frame)
    if ether_type != _IPV4_TYPE:
        return Skipped.IPV6 if ether_type == _IPV6_TYPE else Skipped.NOT_IPV4
    if len(frame) < at + 20:
        return Skipped.SHORT
    header_size = 4 * (frame[at] & 0x0F)
    udp = at + header_size
    if frame[at + 9] != _UDP:
        return Skipped.NOT_UDP
    if int.from_bytes(frame[at + 6 : at + 8], "big") & 0x3FFF:  # more fragments, or not the first
        return Skipped.FRAGMENT
    if frame[at] >> 4 != 4 or header_size < 20 or len(frame) < udp + 8:
        return Skipped.SHORT
    ip_size = int.from_bytes(frame[at + 2 : at + 4], "big")
    udp_size = int.from_bytes(frame[udp + 4 : udp + 6], "big")
    size, doubt = _payload_size(ip_size, header_size, udp_size, len(frame) - udp - 8)
    return Parts(
        source=_address(frame[at + 12 : at + 16]),
        source_port=int.from_bytes(frame[udp : udp + 2], "big"),
        destination=_address(frame[at + 16 : at + 20]),
        destination_port=int.from_bytes(frame[udp + 2 : udp + 4], "big"),
        start=udp + 8,
        stop=udp + 8 + size,
        doubt=doubt,
    )
