"""Ethernet II, IPv4 and UDP headers as a sensor's hardware writes them: 42 bytes before the payload, big-endian.

======  ====  ===========================================================
offset  size  field
======  ====  ===========================================================
0       12    destination and source MAC
12      2     EtherType 0x0800
14      2     0x45, type of service 0
16      2     IP total length (28 + payload)
18      2     IP identification
20      2     flags and fragment offset (0x4000 = do not fragment)
22      2     time to live, protocol 17
24      2     IP header checksum
26      8     source and destination IPv4 address
34      4     source and destination port
38      2     UDP length (8 + payload)
40      2     UDP checksum (0 = none)
======  ====  ===========================================================

A Velodyne's data packets come from a hardware template (identification 0, do-not-fragment, TTL 255, no UDP checksum), its position packets from
a software stack (counting identification, fragmenting allowed, TTL 64, valid checksum); measured on public captures. Layouts: RFC 791, RFC 768.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require, within
from hilsim.protocols.flow_key import FlowKey

HEADER_SIZE = 42
TAG_SIZE = 4
# Offsets in a frame.
_IP_START, _IP_LENGTH, _IP_IDENTIFICATION, _IP_CHECKSUM, _ADDRESSES, _IP_END = (constant(offset) for offset in (14, 16, 18, 24, 26, 34))
_UDP_LENGTH, _UDP_CHECKSUM = constant(38), constant(40)
_NOTHING = constant(0)
BROADCAST_MAC = "ff:ff:ff:ff:ff:ff"
_PLACEHOLDER_MAC = "02:00:00:00:00:01"


def parse_mac(text: str) -> bytes:
    """Six bytes of ``aa:bb:cc:dd:ee:ff`` (``-`` is accepted between the bytes too).

    Raises:
        ValueError: the text is no MAC address.
    """
    parts = text.replace("-", ":").split(":")
    require((len(parts) == 6 and all(len(part) == 2 for part in parts), f'a MAC address must be six bytes like "60:76:88:10:2f:6f", got "{text}"'))
    try:
        return bytes(int(part, 16) for part in parts)
    except ValueError:
        raise ValueError(f'a MAC address must be six bytes like "60:76:88:10:2f:6f", got "{text}"') from None


def mac_of(destination: str, *, broadcast: bool) -> str:
    """The MAC address of an IPv4 destination where it can be derived: broadcast, or a multicast group's; a placeholder for a unicast host."""
    address = IPv4Address(destination)
    if broadcast:
        return BROADCAST_MAC
    if address.is_multicast:
        low = int(address) & 0x7FFFFF  # RFC 1112 section 6.4: 01:00:5e and the low 23 bits
        return f"01:00:5e:{low >> 16:02x}:{low >> 8 & 0xFF:02x}:{low & 0xFF:02x}"
    return _PLACEHOLDER_MAC


@dataclass(frozen=True, kw_only=True)
class LinkStyle:
    """Values of the header fields that a sensor is free to choose, for one kind of packet.

    Attributes:
        ttl: IP time to live, 1..255.
        dont_fragment: The IP do-not-fragment flag.
        counting_identification: The IP identification counts up from 1 (else it is always 0).
        udp_checksum: A valid UDP checksum (else 0).
    """

    ttl: int
    dont_fragment: bool
    counting_identification: bool
    udp_checksum: bool

    def __post_init__(self) -> None:
        require(*within(self, ttl=(1, 255)))


_PLAIN_SOURCE_MAC = "02:00:00:00:00:02"
PLAIN_STYLE = LinkStyle(ttl=64, dont_fragment=False, counting_identification=True, udp_checksum=True)
"""Style of programs with default sockets."""


def header_template(style: LinkStyle, flow: FlowKey, *, source_mac: str, destination_mac: str) -> npt.NDArray[np.uint8]:
    """``uint8[42]`` header with everything that does not depend on the payload; ``write_headers`` fills in the rest.

    Raises:
        ValueError: an address cannot be parsed.
    """
    flags = 0x4000 if style.dont_fragment else 0
    template = b"".join(
        (
            parse_mac(destination_mac),
            parse_mac(source_mac),
            b"\x08\x00\x45\x00\x00\x00\x00\x00",
            flags.to_bytes(2, "big"),
            bytes((style.ttl, 17, 0, 0)),
            IPv4Address(flow.source).packed,
            IPv4Address(flow.destination).packed,
            flow.source_port.to_bytes(2, "big"),
            flow.destination_port.to_bytes(2, "big"),
            b"\x00\x00\x00\x00",
        )
    )
    return np.frombuffer(template, dtype=np.uint8).copy()


class Framing(NamedTuple):
    """Kernel-side choice of what a datagram's bytes are: the payload alone, or a whole Ethernet frame.

    Attributes:
        header_size: 0 or 42.
        template: ``uint8[42]``.
        counting_identification: The IP identification counts datagrams from 1.
        udp_checksum: A valid UDP checksum is written.
    """

    header_size: int
    template: npt.NDArray[np.uint8]
    counting_identification: bool
    udp_checksum: bool


PAYLOAD_ONLY = Framing(header_size=0, template=np.zeros(HEADER_SIZE, np.uint8), counting_identification=False, udp_checksum=False)


def build_framing(style: LinkStyle, flow: FlowKey, *, source_mac: str, destination_mac: str) -> Framing:
    """Whole Ethernet frames with a sensor's own headers.

    Raises:
        ValueError: an address cannot be parsed.
    """
    return Framing(
        header_size=HEADER_SIZE,
        template=header_template(style, flow, source_mac=source_mac, destination_mac=destination_mac),
        counting_identification=style.counting_identification,
        udp_checksum=style.udp_checksum,
    )


def plain_framing(flow: FlowKey) -> Framing:
    """Whole Ethernet frames with the headers of programs with default sockets, from a placeholder of this host's MAC address."""
    return build_framing(PLAIN_STYLE, flow, source_mac=_PLAIN_SOURCE_MAC, destination_mac=mac_of(flow.destination, broadcast=False))


@kernel
def _put_16(value: int, frame: npt.NDArray[np.uint8], at: int) -> None:
    frame[at] = (value >> 8) & 0xFF
    frame[at + 1] = value & 0xFF


@kernel
def _folded_sum(frame: npt.NDArray[np.uint8], start: int, stop: int, total: int) -> int:
    """Ones' complement sum of 16-bit words of ``frame[start:stop]`` (an odd last byte padded with zero) added to ``total``."""
    for at in range(start, stop - 1, 2):
        total += (int(frame[at]) << 8) | int(frame[at + 1])
    if (stop - start) % 2:
        total += int(frame[stop - 1]) << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@kernel
def write_headers(
    template: npt.NDArray[np.uint8],
    identification: int,
    udp_checksum: bool,  # noqa: FBT001 - a kernel takes plain positional scalars
    frame: npt.NDArray[np.uint8],
    payload_size: int,
) -> int:
    """Write the headers before a payload that is already at ``frame[42:]``; returns the frame's size in bytes.

    Args:
        template: ``uint8[42]`` of ``header_template``.
        identification: IP identification, taken modulo 65,536.
        udp_checksum: Whether to write a valid UDP checksum.
        frame: ``uint8[>= 42 + payload_size]``, written.
        payload_size: Bytes of payload.
    """
    for place in range(HEADER_SIZE):  # a loop: Numba compiles half a second at each copy of a slice to a slice
        frame[place] = template[place]
    _put_16(28 + payload_size, frame, _IP_LENGTH)
    _put_16(identification & 0xFFFF, frame, _IP_IDENTIFICATION)
    _put_16(0xFFFF ^ _folded_sum(frame, _IP_START, _IP_END, _NOTHING), frame, _IP_CHECKSUM)
    _put_16(8 + payload_size, frame, _UDP_LENGTH)
    if udp_checksum:
        _put_16(_checksum_of(frame, payload_size), frame, _UDP_CHECKSUM)
    return HEADER_SIZE + payload_size


@kernel
def _checksum_of(frame: npt.NDArray[np.uint8], payload_size: int) -> int:
    """UDP checksum of a frame whose own is 0."""
    pseudo_header = 17 + 8 + payload_size
    checksum = 0xFFFF ^ _folded_sum(frame, _ADDRESSES, HEADER_SIZE + payload_size, pseudo_header)
    return checksum if checksum != 0 else 0xFFFF


@kernel
def fit_headers(frame: npt.NDArray[np.uint8], payload_size: int) -> None:
    """Write the lengths and checksums of a frame whose payload has been changed; one without a UDP checksum stays without."""
    has_checksum = frame[_UDP_CHECKSUM] | frame[_UDP_CHECKSUM + 1]
    _put_16(28 + payload_size, frame, _IP_LENGTH)
    write_ip_checksum(frame, _IP_START)
    _put_16(8 + payload_size, frame, _UDP_LENGTH)
    _put_16(_NOTHING, frame, _UDP_CHECKSUM)
    if has_checksum != 0:
        _put_16(_checksum_of(frame, payload_size), frame, _UDP_CHECKSUM)


@kernel
def write_ip_checksum(frame: npt.NDArray[np.uint8], start: int) -> None:
    """Write the checksum of the IP header that begins at ``start``."""
    _put_16(_NOTHING, frame, start + 10)
    _put_16(0xFFFF ^ _folded_sum(frame, start, start + 20, _NOTHING), frame, start + 10)


@kernel
def spoil_checksums(frame: npt.NDArray[np.uint8], payload_size: int, of_udp: bool, of_ip: bool) -> None:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Write wrong checksums."""
    if of_udp:
        _put_16(_NOTHING, frame, _UDP_CHECKSUM)
        _put_16(_checksum_of(frame, payload_size) ^ 0x5A5A or 1, frame, _UDP_CHECKSUM)
    if of_ip:
        frame[_IP_CHECKSUM] ^= 0x5A


@kernel
def write_fragment(frame: npt.NDArray[np.uint8], size: int, part_size: int, number: int, identification: int, fragment: npt.NDArray[np.uint8]) -> int:
    """Write a fragment of a frame; returns its size.

    Args:
        frame: ``uint8[>= size]``, a frame, with or without a tag.
        size: Size of the frame.
        part_size: Bytes of IP payload in each fragment but the last, a multiple of 8.
        number: Number of the fragment, from 0.
        identification: IP identification of all of them.
        fragment: ``uint8[...]``, written.
    """
    start = ip_start(frame)
    first = start + 20 + number * part_size
    length = min(part_size, size - first)
    for at in range(start + 20):
        fragment[at] = frame[at]
    for at in range(length):
        fragment[start + 20 + at] = frame[first + at]
    _put_16(20 + length, fragment, start + 2)
    _put_16(identification, fragment, start + 4)
    is_last = first + length >= size
    _put_16(number * part_size // 8 | (0 if is_last else 0x2000), fragment, start + 6)
    write_ip_checksum(fragment, start)
    return start + 20 + length


@kernel
def ip_start(frame: npt.NDArray[np.uint8]) -> int:
    """Offset of the IP header, behind a tag if there is one."""
    return 18 if frame[12] == 0x81 else 14


@kernel
def add_tag(frame: npt.NDArray[np.uint8], size: int, tag: int) -> int:
    """Put a tag of IEEE 802.1Q behind the addresses of a frame, which has room for it; returns the frame's size."""
    for at in range(size - 1, 11, -1):
        frame[at + TAG_SIZE] = frame[at]
    _put_16(0x8100, frame, 12)
    _put_16(tag, frame, 14)
    return size + TAG_SIZE
