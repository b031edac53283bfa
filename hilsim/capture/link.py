"""Location of the UDP datagram or fragment in a captured frame.

A general dissector is not used, because the lengths in real captures are unreliable: files exported by VeloView
have IPv4 total length 0x04d2 in 512-byte position packets too, and network cards with offloading leave 0. The UDP length decides, and the frame's
length where that does not fit either; disagreements are recorded.

Link types: https://www.tcpdump.org/linktypes.html. IPv4: RFC 791, IPv6: RFC 8200, UDP: RFC 768, VLAN tags: IEEE 802.1Q and 802.1ad.
"""

import struct
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from hilsim.protocols.flow_key import FlowKey

LINK_NULL = 0
LINK_ETHERNET = 1
LINK_LOOP = 108
LINK_COOKED = 113
LINK_COOKED_2 = 276
_RAW_LINKS = frozenset((12, 14, 101, 228))  # raw IP: the numbers of Linux, OpenBSD and the file format, and IPv4 only
_VLAN_TYPES = frozenset((0x8100, 0x88A8, 0x9100))
_IPV4_TYPE = 0x0800
_IPV6_TYPE = 0x86DD
_IPV6_SIZE = 40
_IPV6_EXTENSIONS = frozenset((0, 43, 60))  # options of hops, routing, options of the destination
_IPV6_FRAGMENT = 44
_IPV6_LINK_MULTICAST = b"\xff\x02"
_UDP = 17
_IP_SIZE = 20
_IP_UDP_SIZE = _IP_SIZE + 8
_MORE_FRAGMENTS = 0x2000
_OFFSET_BITS = 0x1FFF
_FRAGMENT_BITS = _MORE_FRAGMENTS | _OFFSET_BITS
# version and header size, total length, fragment field, protocol; addresses and ports in one; UDP length
_IP_AND_UDP = struct.Struct(">BxHxxHxBxx12sH")
_IP = struct.Struct(">BxHxxHxB")
_IP_OF_FRAGMENT = struct.Struct(">xxH2sHxcxx8s")
SUPPORTED_LINKS = frozenset((LINK_NULL, LINK_ETHERNET, LINK_LOOP, LINK_COOKED, LINK_COOKED_2)) | _RAW_LINKS


class Skipped(StrEnum):
    """Reason that a frame contains no supported datagram; the text completes "… frames: passed over: "."""

    NOT_IPV4 = "not IPv4"
    IPV6 = "IPv6 (fragments, or to all hosts of a link)"
    NOT_UDP = "not UDP"
    SHORT = "shorter than their headers"
    CUT = "cut by the capture's snap length"


class Parts(NamedTuple):
    """Location of the datagram in its frame.

    Attributes:
        flow: Source and destination.
        start: Offset of the payload's first byte.
        stop: Offset after its last byte.
        doubt: Disagreement about the lengths, or None.
    """

    flow: FlowKey
    start: int
    stop: int
    doubt: str | None


class Fragment(NamedTuple):
    """Location of a fragment of a larger datagram in its frame.

    Attributes:
        key: Bytes that are equal in all fragments of a datagram: protocol, source, destination and identification.
        position: Offset of its data in the datagram, in bytes.
        is_last: Whether it is the last fragment.
        ip: Offset of the IPv4 header.
        start: Offset of its data.
        stop: Offset after its data.
    """

    key: bytes
    position: int
    is_last: bool
    ip: int
    start: int
    stop: int


@lru_cache(maxsize=4096)
def _flow(packed: bytes) -> FlowKey:
    """Flow of a datagram from its header's addresses and ports."""
    source, destination, source_port, destination_port = struct.unpack(">4s4sHH", packed)
    return FlowKey(str(IPv4Address(source)), source_port, str(IPv4Address(destination)), destination_port)


@lru_cache(maxsize=4096)
def _flow_ipv6(packed: bytes) -> FlowKey:
    """The same of IPv6."""
    source, destination, source_port, destination_port = struct.unpack(">16s16sHH", packed)
    return FlowKey(str(IPv6Address(source)), source_port, str(IPv6Address(destination)), destination_port)


def _behind_tags(frame: bytes, at: int) -> tuple[int, int]:
    """EtherType and offset after up to four VLAN tags; ``at`` is the offset of the first type."""
    for _ in range(5):
        ether_type = int.from_bytes(frame[at : at + 2], "big")
        if ether_type not in _VLAN_TYPES:
            break
        at += 4
    return ether_type, at + 2


def cooked_interface(frame: bytes) -> int:
    """Capturing system's index of the interface, from a Linux cooked header version 2."""
    return int.from_bytes(frame[4:8], "big")


def _network_layer(link_type: int, frame: bytes) -> tuple[int, int]:
    """EtherType and offset of the frame's network layer."""
    if link_type == LINK_ETHERNET:
        return _behind_tags(frame, 12)
    if link_type == LINK_COOKED:
        return _behind_tags(frame, 14)
    if link_type == LINK_COOKED_2:
        return int.from_bytes(frame[0:2], "big"), 20
    start = 4 if link_type in {LINK_NULL, LINK_LOOP} else 0
    version = frame[start] >> 4 if len(frame) > start else 0  # the family number before it differs between systems
    return {4: _IPV4_TYPE, 6: _IPV6_TYPE}.get(version, 0), start


def _payload_size(ip_size: int, header_size: int, udp_size: int, at_hand: int) -> tuple[int, str | None]:
    """Size of the payload, and the disagreement if any; ``at_hand`` is the number of the frame's bytes after the UDP header."""
    if udp_size < 8 or udp_size - 8 > at_hand:
        return at_hand, "UDP length is not the frame's; the frame's was taken"
    if ip_size not in {header_size + udp_size, 0}:  # 0: left to the network card
        return udp_size - 8, "IPv4 length is not the frame's; the UDP length was taken"
    return udp_size - 8, None


def find_datagram(link_type: int, frame: bytes, *, is_cut: bool = False) -> Parts | Fragment | Skipped:
    """Find the UDP datagram in a frame, or the fragment of one; otherwise the reason that there is none.

    Args:
        link_type: One of ``SUPPORTED_LINKS``.
        frame: Bytes of the frame.
        is_cut: Whether the frame was longer on the wire. A datagram that is not completely in the frame is then skipped.
    """
    if link_type == LINK_ETHERNET and frame[12:14] == b"\x08\x00":
        at = 14
    else:
        ether_type, at = _network_layer(link_type, frame)
        if ether_type != _IPV4_TYPE:
            if is_cut and len(frame) < at:
                return Skipped.CUT
            return _find_ipv6(frame, at, is_cut=is_cut) if ether_type == _IPV6_TYPE else Skipped.NOT_IPV4
    if len(frame) >= at + _IP_UDP_SIZE:
        version, ip_size, flags, protocol, ends, udp_size = _IP_AND_UDP.unpack_from(frame, at)
        stop = at + _IP_SIZE + udp_size
        if (
            version == 0x45
            and protocol == _UDP
            and not flags & _FRAGMENT_BITS
            and ip_size == _IP_SIZE + udp_size >= _IP_UDP_SIZE
            and stop <= len(frame)
        ):
            return Parts(_flow(ends), at + _IP_UDP_SIZE, stop, None)
    return _find_unusual(frame, at, is_cut=is_cut)


def _find_ipv6(frame: bytes, at: int, *, is_cut: bool) -> Parts | Skipped:
    """Find a datagram with an IPv6 header at ``at``.

    Datagrams to all hosts of a link (ff02::) are passed over: they are a network's own talk, for which the quick reader of batches would give up.
    """
    too_short = Skipped.CUT if is_cut else Skipped.SHORT
    if len(frame) < at + _IPV6_SIZE or frame[at] >> 4 != 6:
        return too_short if frame[at : at + 1] and frame[at] >> 4 == 6 else Skipped.IPV6
    kind, start = frame[at + 6], at + _IPV6_SIZE
    while kind in _IPV6_EXTENSIONS and start + 2 <= len(frame):
        kind, start = frame[start], start + 8 * (frame[start + 1] + 1)
    if kind != _UDP:
        return Skipped.IPV6 if kind == _IPV6_FRAGMENT else Skipped.NOT_UDP
    if frame[at + 24 : at + 26] == _IPV6_LINK_MULTICAST:
        return Skipped.IPV6
    if len(frame) < start + 8:
        return too_short
    udp_size = int.from_bytes(frame[start + 4 : start + 6], "big")
    size, doubt = _payload_size(0, 0, udp_size, len(frame) - start - 8)
    flow = _flow_ipv6(frame[at + 8 : at + 40] + frame[start : start + 4])
    return Skipped.CUT if is_cut and size != udp_size - 8 else Parts(flow, start + 8, start + 8 + size, doubt)


def _fragment(frame: bytes, at: int, start: int) -> Fragment | None:
    """Fragment with its IPv4 header at ``at`` and its data at ``start``, if both are in the frame."""
    ip_size, identification, flags, protocol, ends = _IP_OF_FRAGMENT.unpack_from(frame, at)
    stop = at + ip_size if ip_size else len(frame)  # 0: left to the network card
    if not start < stop <= len(frame):
        return None
    key = protocol + ends + identification
    return Fragment(key, (flags & _OFFSET_BITS) * 8, not flags & _MORE_FRAGMENTS, at, start, stop)


def _find_unusual(frame: bytes, at: int, *, is_cut: bool) -> Parts | Fragment | Skipped:
    """Find a datagram with an unusual IPv4 header at ``at``."""
    too_short = Skipped.CUT if is_cut else Skipped.SHORT
    if len(frame) < at + _IP_SIZE:
        return too_short
    version, ip_size, flags, protocol = _IP.unpack_from(frame, at)
    if protocol != _UDP:
        return Skipped.NOT_UDP
    start = at + 4 * (version & 0x0F)
    if version >> 4 != 4 or start < at + _IP_SIZE:
        return Skipped.SHORT
    if flags & _FRAGMENT_BITS:
        return _fragment(frame, at, start) or too_short
    if len(frame) < start + 8:
        return too_short
    udp_size = int.from_bytes(frame[start + 4 : start + 6], "big")
    size, doubt = _payload_size(ip_size, start - at, udp_size, len(frame) - start - 8)
    flow = _flow(frame[at + 12 : at + 20] + frame[start : start + 4])
    return Skipped.CUT if is_cut and size != udp_size - 8 else Parts(flow, start + 8, start + 8 + size, doubt)
