"""Synthetic recordings: sensors with clocks of their own, noted by a host with another, as arrays and as capture files."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hilsim.capture.pcap import PcapWriter
from hilsim.families.velodyne.protocol.data import Product, ReturnMode, encode_data_packet, factory_bytes
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE
from hilsim.parts.replays.recorded.timeline import Recorded
from hilsim.protocols.ethernet import build_framing, write_headers
from hilsim.protocols.flow_key import FlowKey

HOUR_NS = 3_600_000_000_000
CYCLE_NS = 1_327_104
"""Of a VLP-16: between its packets."""
BASE_NS = 1_700_000_000_000_000_000
LATENCY_NS = CYCLE_NS + 100_000
"""From the first firing that a stamp names until the host sees the packet."""

SENSOR = FlowKey("192.168.1.201", 2368, "192.168.1.77", 2368)
POSITION = FlowKey("192.168.1.201", 8308, "192.168.1.77", 8308)
OTHER_SENSOR = FlowKey("192.168.1.202", 2368, "192.168.1.77", 2369)
CEPTON = FlowKey("192.168.2.32", 8808, "192.168.2.1", 8808)
CAMERA = FlowKey("192.168.1.50", 5000, "192.168.1.77", 5001)


class Stream(NamedTuple):
    """Packets of one sensor.

    Attributes:
        true_ns: ``int64[n]``, when each stamp's instant was, without any clock's error.
        host_ns: ``int64[n]``, what the host noted.
        stamp_ns: ``int64[n]``, what the stamps show.
    """

    true_ns: np.ndarray
    host_ns: np.ndarray
    stamp_ns: np.ndarray

    def only(self, keep):
        """Without the packets that were lost."""
        return Stream(*(column[keep] for column in self))


def stream(count, *, cycle_ns=CYCLE_NS, drift=0.0, jitter_ns=14_000.0, outliers=0.01, shows_ns=123_456_789_000, begin_ns=0, seed=1):
    """A sensor whose clock showed ``shows_ns`` at time 0; its stamps are whole microseconds past the hour, the host's clock runs ``drift`` faster."""
    generator = np.random.default_rng(seed)
    true_ns = begin_ns + np.arange(count, dtype=np.int64) * cycle_ns
    stamp_ns = (true_ns + shows_ns) // 1000 * 1000 % HOUR_NS
    noise_ns = np.abs(generator.normal(0.0, jitter_ns, count)) + np.where(generator.random(count) < outliers, generator.uniform(0, 1e6, count), 0.0)
    host_ns = BASE_NS + np.rint((true_ns + cycle_ns + 100_000) * (1.0 + drift) + noise_ns).astype(np.int64)
    return Stream(true_ns, np.maximum.accumulate(host_ns), stamp_ns)


def with_pause(host_ns, first, duration_ns):
    """The host pauses before it notes packet ``first``, and then notes in a burst, 5 us apart, what had arrived meanwhile."""
    end_ns = host_ns[first] + duration_ns
    waiting = (np.arange(host_ns.size) >= first) & (host_ns < end_ns)
    noted = host_ns.copy()
    noted[waiting] = end_ns + 5000 * np.arange(waiting.sum())
    return np.maximum.accumulate(noted)


def in_file_order(*streams):
    """``Recorded`` with flow number ``k`` for the ``k``-th stream, and each packet's number within its stream."""
    host_ns = np.concatenate([each.host_ns for each in streams])
    order = np.argsort(host_ns, kind="stable")
    flow = np.concatenate([np.full(each.host_ns.size, number) for number, each in enumerate(streams)])
    numbers = np.concatenate([np.arange(each.host_ns.size) for each in streams])
    recorded = Recorded(host_ns[order], flow[order], np.concatenate([each.stamp_ns for each in streams])[order])
    return recorded, numbers[order]


def placed_by(timeline, recorded, *, first=512, run=256):
    """What a time line makes of a recording that is given to it in runs, as the reader does: ``due_ns`` and ``stamp_ns``."""
    due, stamp = [], []
    start = 0
    while start < recorded.flow.size:
        stop = start + (run if start else first)
        placed = timeline.place(Recorded(*(column[start:stop] for column in recorded)))
        due.append(placed.due_ns)
        stamp.append(placed.stamp_ns)
        start = stop
    return np.concatenate(due), np.concatenate(stamp)


# -- bytes -----------------------------------------------------------------------------------------------------------------------------


def data_packet(azimuth_cdeg, stamp_us, *, number=0, product=Product.VLP_16):
    """A data packet; ``number`` is in its first measurements, so that each is unique."""
    azimuth = (azimuth_cdeg + 20 * np.arange(24, dtype=np.int64)) % 36_000
    distance = np.full((1, 24, 16), 1000, np.uint16)
    distance[0, 0, :2] = number & 0x7FFF, number >> 15
    payload = np.zeros(1206, np.uint8)
    encode_data_packet(
        azimuth, distance, np.zeros((1, 24, 16), np.uint8), int(stamp_us) % 3_600_000_000, factory_bytes(ReturnMode.STRONGEST, product), payload
    )
    return payload.tobytes()


def position_packet(stamp_us, sentence=b"$GPRMC,081802.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,210116,0.0,E,A*2E\r\n"):
    """A position packet."""
    payload = bytearray(512)
    payload[198:202] = int(stamp_us % 3_600_000_000).to_bytes(4, "little")
    payload[206 : 206 + len(sentence)] = sentence
    return bytes(payload)


def stdv_packet(stamp_us, parities=(0, 0, 0, 0), *, sequence=None):
    """A Cepton STDV packet with points of these frame parities, of version 2 where a sequence number is given."""
    version, size = (1, 20) if sequence is None else (2, 24)
    header = (
        b"STDV"
        + bytes((version, size, 0, 0))
        + int(stamp_us).to_bytes(8, "little", signed=True)
        + bytes((1, 10))
        + len(parities).to_bytes(2, "little")
    )
    header += b"" if sequence is None else (sequence % (1 << 32)).to_bytes(4, "little")
    return header + b"".join(bytes(9) + bytes((0x04 if parity else 0,)) for parity in parities)


def stamp_us_of(payload):
    """The stamp of a data packet."""
    return int.from_bytes(payload[1200:1204], "little")


def frame_of(flow, payload, *, style=VELODYNE_DATA_STYLE, source_mac="60:76:88:10:2f:6f", destination_mac="ff:ff:ff:ff:ff:ff", identification=0):
    """An Ethernet frame."""
    shape = build_framing(style, flow, source_mac=source_mac, destination_mac=destination_mac)
    frame = np.zeros(42 + len(payload), np.uint8)
    frame[42:] = np.frombuffer(payload, np.uint8)
    write_headers(shape.template, identification, style.udp_checksum, frame, len(payload))
    return frame.tobytes()


@dataclass
class Recording:
    """Packets on their way into a capture file."""

    packets: list = field(default_factory=list)

    def add(self, host_ns, flow, payload, **link):
        """One packet more, from 0 ns on."""
        self.packets.append((int(host_ns), flow, payload, link))
        return self

    def add_turning(
        self,
        count,
        *,
        flow=SENSOR,
        first=0,
        cycle_ns=CYCLE_NS,
        step_cdeg=477.75744,
        shows_us=59_000_000,
        begin_ns=0,
        azimuth_cdeg=0.0,
        product=Product.VLP_16,
    ):
        """``count`` packets of a Velodyne that turns at 600 rpm."""
        for number in range(first, first + count):
            at_ns = begin_ns + number * cycle_ns
            azimuth = int(azimuth_cdeg + number * step_cdeg) % 36_000
            self.add(at_ns + cycle_ns + 100_000, flow, data_packet(azimuth, shows_us + at_ns // 1000, number=number, product=product))
        return self

    def write(self, path, *, base_ns=BASE_NS, sort=True):
        """A capture file of them; returns its path."""
        packets = sorted(self.packets, key=lambda packet: packet[0]) if sort else self.packets
        with PcapWriter(path) as writer:
            for host_ns, flow, payload, link in packets:
                writer.write(base_ns + host_ns, frame_of(flow, payload, **link))
        return path

    def payloads(self, flow=SENSOR):
        """Of one flow, in file order."""
        return [payload for _, other, payload, _ in sorted(self.packets, key=lambda packet: packet[0]) if other == flow]
