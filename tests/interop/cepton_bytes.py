"""Cepton-style packets and captures made with plain ``struct``, from the published table: nothing of hilsim's own encoders is in them."""

import struct
from ipaddress import IPv4Address

PARITY = 0x04


def stdv(points, *, stamp_us=0, sequence=0, version=2, header_size=None, point_size=10, count=None):
    """An STDV payload of points ``(x, y, z, reflectivity, step_us, channel, flags)``."""
    size = header_size or (20 if version == 1 else 24)
    header = struct.pack("<4sBBHqBBH", b"STDV", version, size, 0, stamp_us, 0, point_size, len(points) if count is None else count)
    header += struct.pack("<I", sequence) if size >= 24 else b""
    return header.ljust(size, b"\0") + b"".join(struct.pack("<hHhBBBB", *point) for point in points)


def stream(points, *, in_packet=144, stamp_us=0, version=2):
    """Payloads of many points, each packet stamped with the time of the last point before it."""
    payloads = []
    for number, first in enumerate(range(0, len(points), in_packet)):
        piece = points[first : first + in_packet]
        payloads.append(stdv(piece, stamp_us=stamp_us, sequence=number, version=version))
        stamp_us += sum(point[4] for point in piece)
    return payloads


def frames(count, in_frame, *, step_us=4):
    """Points of frames that differ by their parity; x counts the frame's points, y is the frame's number."""
    return [(n % 30_000, 100 + number, 0, 50, step_us, n % 64, PARITY * (number % 2)) for number in range(count) for n in range(in_frame)]


def info(
    *,
    model=24,
    serial=4711,
    firmware=(3, 2, 1, 0),
    model_name="X90",
    part_number=900_123,
    power_up_us=1_700_000_000_000_000,
    sync_offset_us=-37_000_000,
    returns=1,
):
    """An INFZ payload by the table that was measured on the SDKs."""
    payload = bytearray(88)
    struct.pack_into("<4sBBBBHHI4B28sI4B", payload, 0, b"INFZ", 88, 8, 0, 0, model, 0, serial, *firmware, model_name.encode(), part_number, *firmware)
    struct.pack_into("<qqq", payload, 64, power_up_us, sync_offset_us, 0)
    payload[85] = returns
    return bytes(payload)


def ethernet_frame(payload, *, source="192.168.32.87"):
    """Ethernet, IPv4 and UDP to port 8808 of everyone around a payload."""
    ethernet = b"\xff" * 6 + bytes.fromhex("181212000037") + b"\x08\x00"
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(payload), 0, 0x4000, 128, 17, 0, int(IPv4Address(source)), 0xFFFFFFFF)
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + ip[12:]
    return ethernet + ip + struct.pack(">HHHH", 443, 8808, 8 + len(payload), 0) + payload


def capture(payloads, *, source="192.168.32.87", period_us=144, begin_s=1_700_000_000):
    """A classic little-endian capture with microseconds."""
    written = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)]
    for number, payload in enumerate(payloads):
        frame, stamp_us = ethernet_frame(payload, source=source), number * period_us
        written.append(struct.pack("<IIII", begin_s + stamp_us // 1_000_000, stamp_us % 1_000_000, len(frame), len(frame)) + frame)
    return b"".join(written)
