"""Capture files and frames built byte by byte from the format's own description, not with the code under test."""

import struct
from itertools import pairwise

ETHERNET = bytes.fromhex("ffffffffffff 607688102f6f 0800")


def udp_frame(
    payload, *, link=ETHERNET, source_port=2368, destination_port=2368, ip_size=None, udp_size=None, fragment=0x4000, protocol=17, checksum=0
):
    """Bytes of a frame with IPv4 and UDP headers; sizes can be given wrong."""
    ip = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        0,
        28 + len(payload) if ip_size is None else ip_size,
        0,
        fragment,
        255,
        protocol,
        0,
        bytes((192, 168, 1, 201)),
        bytes((255, 255, 255, 255)),
    )
    udp = struct.pack(">HHHH", source_port, destination_port, 8 + len(payload) if udp_size is None else udp_size, checksum)
    return link + ip + udp + payload


def fragments(frame, cuts, *, identification=7, link=ETHERNET, source=201):
    """Frames of the fragments of a frame's datagram, cut at these multiples of 8 bytes of its IPv4 data."""
    ip, data = frame[len(link) : len(link) + 20], frame[len(link) + 20 :]
    borders = [0, *cuts, len(data)]
    return [
        fragment(data[start:stop], start, is_last=stop == len(data), ip=ip, identification=identification, link=link, source=source)
        for start, stop in pairwise(borders)
    ]


def fragment(data, position, *, is_last, ip=None, identification=7, link=ETHERNET, source=201):
    """Frame of one fragment with ``data`` at ``position`` of its datagram."""
    ip = bytearray(udp_frame(b"", link=b"")[:20] if ip is None else ip)
    struct.pack_into(">HHH", ip, 2, 20 + len(data), identification, position // 8 | (0 if is_last else 0x2000))
    ip[15] = source
    return link + bytes(ip) + data


def classic(records, *, order="<", magic=0xA1B2C3D4, link_type=1):
    """A classic PCAP file of (seconds, fraction, frame)."""
    head = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link_type)
    return head + b"".join(record(s, f, frame, order=order) for s, f, frame in records)


def record(seconds, fraction, frame, *, wire_size=None, order="<"):
    """A record of a classic PCAP file."""
    return struct.pack(order + "IIII", seconds, fraction, len(frame), len(frame) if wire_size is None else wire_size) + frame


def block(kind, body, *, order="<"):
    """A PCAPNG block."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


def section(*, order="<"):
    """A PCAPNG section header."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order=order)


def interface(*, link_type=1, resolution=None, order="<"):
    """A PCAPNG interface description."""
    options = b"" if resolution is None else struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    return block(1, struct.pack(order + "HHI", link_type, 0, 65535) + options, order=order)


def enhanced(ticks, frame, *, which=0, wire_size=None, order="<"):
    """A PCAPNG enhanced packet."""
    head = struct.pack(order + "IIIII", which, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame) if wire_size is None else wire_size)
    return block(6, head + frame, order=order)


def obsolete(ticks, frame, *, which=0, order="<"):
    """A PCAPNG packet block as written before enhanced ones, with a count of drops beside the interface."""
    head = struct.pack(order + "HHIIII", which, 3, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(2, head + frame, order=order)
