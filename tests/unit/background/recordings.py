"""Batches and captures of a sensor in a room, made byte by byte."""

import struct

import numpy as np

from hilsim.capture.batches import DatagramArrays
from hilsim.capture.pcap import PcapWriter
from hilsim.families.velodyne.protocol.geometry import VLP_16_GEOMETRY
from tests.unit.capture.frames_by_hand import udp_frame

VLP16 = VLP_16_GEOMETRY
ADDRESS = 0xC0A801C9  # 192.168.1.201
BEGIN_NS = 1_700_000_000_000_000_000
PACKET_NS = 1_327_104


def vlp16_payloads(count, *, distance=lambda *_: 5000, reflectivity=40, mode=0x37, product=0x22, step_cdeg=40):
    """Data packets that turn by ``step_cdeg`` a block; ``distance`` gives the raw distance by azimuth, laser and packet."""
    payloads = []
    azimuth = 0
    for packet in range(count):
        blocks = b""
        for block in range(12):
            if not (mode == 0x39 and block % 2):
                azimuth = (azimuth + step_cdeg) % 36_000
            records = b"".join(struct.pack("<HB", distance(azimuth, record % 16, packet), reflectivity) for record in range(32))
            blocks += struct.pack("<HH", 0xEEFF, azimuth) + records
        payloads.append(blocks + struct.pack("<IBB", (packet * PACKET_NS // 1000) % 3_600_000_000, mode, product))
    return payloads


def stdv_payload(points, *, stamp_us=0):
    """An STDV packet of ``(x, y, z, reflectivity, dt, flags)``."""
    body = b"".join(struct.pack("<hHhBBBB", x, y, z, reflectivity, dt, 0, flags) for x, y, z, reflectivity, dt, flags in points)
    return struct.pack("<4sBBHqBBHI", b"STDV", 2, 24, 0, stamp_us, 0, 10, len(points), 1) + body


def batch(payloads, *, source=ADDRESS, begin_ns=BEGIN_NS, step_ns=PACKET_NS):
    """Payloads as a batch."""
    size = np.array([len(payload) for payload in payloads], dtype=np.int64)
    stamps = begin_ns + np.arange(len(payloads), dtype=np.int64) * step_ns
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    return DatagramArrays(data, np.cumsum(size) - size, size, stamps, np.full(len(payloads), source << 16 | 2368, dtype=np.int64))


def write_capture(path, payloads, *, address="192.168.1.201", begin_ns=BEGIN_NS, step_ns=PACKET_NS):
    """Payloads as a capture."""
    number = bytes(int(part) for part in address.split("."))
    with PcapWriter(path) as writer:
        for index, payload in enumerate(payloads):
            frame = udp_frame(payload)
            writer.write(begin_ns + index * step_ns, frame[:26] + number + frame[30:])
    return path
