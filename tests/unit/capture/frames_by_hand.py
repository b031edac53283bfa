"""Capture files and frames built byte by byte from the format's own description, not with the code under test."""

import struct

ETHERNET = bytes.fromhex("ffffffffffff 607688102f6f 0800")


def udp_frame(payload, *, link=ETHERNET, source_port=2368, destination_port=2368, ip_size=None, udp_size=None, fragment=0x4000, protocol=17):
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
    udp = struct.pack(">HHHH", source_port, destination_port, 8 + len(payload) if udp_size is None else udp_size, 0)
    return link + ip + udp + payload


def classic(records, *, order="<", magic=0xA1B2C3D4, link_type=1):
    """A classic PCAP file of (seconds, fraction, frame)."""
    head = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link_type)
    return head + b"".join(struct.pack(order + "IIII", s, f, len(frame), len(frame)) + frame for s, f, frame in records)


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


def enhanced(ticks, frame, *, which=0, order="<"):
    """A PCAPNG enhanced packet."""
    head = struct.pack(order + "IIIII", which, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(6, head + frame, order=order)
