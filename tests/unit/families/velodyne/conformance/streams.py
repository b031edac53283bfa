"""A small synthetic VLP-16 with the statistics of real units, made without hilsim's encoders, and ways to corrupt it."""

from dataclasses import dataclass, field, replace

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.units import HOUR_US

BASELINE = np.array([9, 23, 24, 23, 20, 12, 11, 13, 17, 14, 11, 8, 23, 7, 23, 11], dtype=np.uint8)
ELEVATION_DEG = np.array([-15, 1, -13, 3, -11, 5, -9, 7, -7, 9, -5, 11, -3, 13, -1, 15])
RECORD = np.dtype([("distance", "<u2"), ("reflectivity", "u1")])
PACKET = np.dtype(
    [("blocks", [("flag", "<u2"), ("azimuth", "<u2"), ("records", RECORD, (32,))], (12,)), ("stamp", "<u4"), ("mode", "u1"), ("product", "u1")]
)
SENTENCE = b"$GPRMC,081802.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,210116,0.0,E,A*2E\r\n"


@dataclass
class Stream:
    """Packets as arrays; every array can be spoiled before they become datagrams."""

    data: np.ndarray
    data_host_ns: np.ndarray
    position: np.ndarray  # uint8[n, 512]
    position_host_ns: np.ndarray
    cycle_us: float
    tail: bytes = b""
    source_port: int = 2368
    head: dict = field(default_factory=dict)  # header fields that differ from the sensor's
    position_head: dict = field(default_factory=dict)
    live: bool = False
    keep: np.ndarray | None = None

    def change(self, **fields):
        return replace(self, **fields)

    def datagrams(self):
        """Both kinds merged by host time."""
        data = [(t, 0, k) for k, t in enumerate(self.data_host_ns.tolist()) if self.keep is None or self.keep[k]]
        position = [(t, 1, k) for k, t in enumerate(self.position_host_ns.tolist())]
        out = []
        for number, (stamp, kind, k) in enumerate(sorted(data + position), start=1):
            payload = self.position[k].tobytes() if kind else self.data[k].tobytes() + self.tail
            port = 8308 if kind else 2368
            source_port = port if kind else self.source_port
            head = {"ttl": 64, "flags": 0, "identification": k + 1, "checksum": True} | self.position_head if kind else self.data_head(k)
            link = None if self.live else link_bytes(payload, source_port=source_port, destination_port=port, **head)
            out.append(
                CapturedDatagram(
                    host_stamp_ns=stamp,
                    source="192.168.1.201",
                    source_port=source_port,
                    destination="255.255.255.255",
                    destination_port=port,
                    payload=payload,
                    link=link,
                    is_ethernet=not self.live,
                    frame=number,
                )
            )
        return out

    def data_head(self, k):
        head = {"ttl": 255, "flags": 0x4000, "identification": 0, "checksum": False} | self.head
        return head | {"identification": head["identification"](k)} if callable(head["identification"]) else head


def folded(data):
    total = int(np.frombuffer(data + bytes(len(data) % 2), dtype=">u2").sum(dtype=np.int64))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def link_bytes(payload, *, source_port, destination_port, ttl, flags, identification, checksum, mac="607688102f6f", ip_checksum=None):
    addresses = bytes((192, 168, 1, 201, 255, 255, 255, 255))
    size = 8 + len(payload)
    ip = bytearray(b"\x45\x00" + (20 + size).to_bytes(2, "big") + identification.to_bytes(2, "big") + flags.to_bytes(2, "big"))
    ip += bytes((ttl, 17, 0, 0)) + addresses
    ip[10:12] = (0xFFFF ^ folded(bytes(ip)) if ip_checksum is None else ip_checksum).to_bytes(2, "big")
    udp = source_port.to_bytes(2, "big") + destination_port.to_bytes(2, "big") + size.to_bytes(2, "big")
    value = 0
    if checksum:
        pseudo = addresses + b"\x00\x11" + size.to_bytes(2, "big")
        value = 0xFFFF ^ folded(pseudo + udp + b"\x00\x00" + payload)
        value = {"partial": folded(pseudo), "wrong": value ^ 0x1010}.get(checksum, value)
    return bytes.fromhex("ffffffffffff" + mac + "0800") + bytes(ip) + udp + value.to_bytes(2, "big")


def stamps_us(count, cycle_ns, start_us):
    """Floor of an exact clock."""
    return (start_us * 1000 + 417 + np.arange(count, dtype=np.int64) * cycle_ns) // 1000


def azimuths(generator, count, groups, cycle_us, rpm, noise=0.6):
    """Encoder readings with white noise."""
    index = np.arange(count * groups)
    true = 1234.5 + index * rpm * 36000 / 60 * cycle_us * 1e-6 / groups
    return (np.rint(true + noise * generator.standard_normal(len(index))).astype(np.int64) % 36000).reshape(count, groups)


def scene(generator, count, sequences):
    """Distances ``[n, sequences, 16]`` in millimetres of a ground plane and a wall, some sky, with noise."""
    angle = np.linspace(0, 40 * np.pi, count * sequences)[:, None]
    down = np.radians(-ELEVATION_DEG)[None, :]
    wall = (9000 + 3000 * np.sin(angle)) / np.cos(down)
    ground = np.where(down > 0, 1800 / np.maximum(np.sin(down), 1e-3), 1e9)
    distance = np.minimum(wall, ground) + 15 * generator.standard_normal((count * sequences, 16))
    sky = (np.sin(angle) > 0.3) & (ELEVATION_DEG[None, :] > 4)
    distance[sky] = 0
    return distance.reshape(count, sequences, 16)


def records(distance_mm, reflectivity):
    out = np.zeros(distance_mm.shape, dtype=RECORD)
    out["distance"] = np.rint(distance_mm / 2).astype(np.uint16)
    out["reflectivity"] = np.where(out["distance"] == 0, BASELINE, reflectivity)
    return out


def position_packets(stamps, pps=2, sentence=SENTENCE):
    out = np.zeros((len(stamps), 512), dtype=np.uint8)
    out[:, 198:202] = (np.asarray(stamps) % HOUR_US).astype("<u4").view(np.uint8).reshape(-1, 4)
    out[:, 202] = pps
    out[:, 206 : 206 + len(sentence)] = np.frombuffer(sentence, dtype=np.uint8)
    return out


def position_times(generator, start_us, span_us):
    """Two interleaved schedules of about ten milliseconds, as measured: 146 a second in all."""
    first = np.cumsum(generator.normal(13_700, 300, int(span_us / 13_700)))
    second = 4_000 + np.cumsum(generator.normal(13_700, 300, int(span_us / 13_700)))
    merged = np.sort(np.concatenate((first, second)))
    return (start_us + merged[merged < span_us - 3000]).astype(np.int64)


def vlp16(count=700, *, dual=False, rpm=600.0, start_us=1_082_000_000, noise=0.6, seed=1):
    """A stream no rule objects to."""
    generator = np.random.default_rng(seed)
    cycle_ns = 663_552 if dual else 1_327_104
    cycle_us, groups, sequences = cycle_ns / 1000, 6 if dual else 12, 12 if dual else 24
    data = np.zeros(count, dtype=PACKET)
    data["blocks"]["flag"] = 0xEEFF
    azimuth = azimuths(generator, count, groups, cycle_us, rpm, noise)
    strongest = scene(generator, count, sequences)
    reflectivity = generator.integers(2, 70, strongest.shape).astype(np.uint8)
    if dual:
        add_dual(generator, data, azimuth, strongest, reflectivity)
    else:
        data["blocks"]["azimuth"] = azimuth
        data["blocks"]["records"] = records(strongest, reflectivity).reshape(count, 12, 32)
    data["stamp"] = stamps_us(count, cycle_ns, start_us) % HOUR_US
    data["mode"], data["product"] = 0x39 if dual else 0x37, 0x22
    host0 = 1_700_000_000_000_000_000
    host = host0 + ((np.arange(count) + 1) * cycle_us * 1000 + generator.normal(0, 5000, count)).astype(np.int64)
    times = position_times(generator, start_us, count * cycle_us)
    position_host = host0 + (times - start_us) * 1000 + 350_000
    return Stream(data, host, position_packets(times), position_host, cycle_us)


def add_dual(generator, data, azimuth, strongest, reflectivity):
    """Fill pairs of blocks: last return even, strongest or second strongest odd."""
    count = len(data)
    other = np.where(generator.random(strongest.shape) < 0.02, strongest + 1500 + 4000 * generator.random(strongest.shape), strongest)
    other[strongest == 0] = 0
    other_reflectivity = np.where(other == strongest, reflectivity, generator.integers(2, 70, strongest.shape)).astype(np.uint8)
    data["blocks"]["azimuth"] = np.repeat(azimuth, 2, axis=1)
    data["blocks"]["records"][:, ::2] = records(other, other_reflectivity).reshape(count, 6, 32)
    data["blocks"]["records"][:, 1::2] = records(strongest, reflectivity).reshape(count, 6, 32)
