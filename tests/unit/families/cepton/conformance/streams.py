"""A faultless synthetic Cepton stream, written out in NumPy: nothing of the emulator is in it."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.cepton.protocol.info import encode_info_packet
from hilsim.families.cepton.protocol.stdv import POINT_DTYPE, encode_stdv_packet

EPOCH_US = 1_767_225_600_000_000
LASERS, FIRING_US, FRAME_US = 8, 8, 100_000
INFO = {"model": 24, "serial": 77, "firmware": (1, 2, 3, 4), "model_name": "synthetic", "part_number": 5, "power_up_us": EPOCH_US, "returns": 1}


@dataclass(frozen=True)
class Sent:
    """A payload and when it was captured."""

    host_us: float
    payload: bytes

    @cached_property
    def is_points(self):
        return self.payload.startswith(b"STDV")

    def points(self):
        """A copy to be changed."""
        return np.frombuffer(self.payload, POINT_DTYPE, offset=self.payload[5]).copy()

    def with_points(self, points):
        return replace(self, payload=self.payload[: self.payload[5]] + points.tobytes())

    def with_bytes(self, at, data):
        return replace(self, payload=self.payload[:at] + data + self.payload[at + len(data) :])


@cache
def stream(duration_s=2.4, *, dual=False, utc=False, version=2, seed=1):
    """``Sent`` packets of one sensor in the order of their arrival."""
    rng = np.random.default_rng(seed)
    per_packet = (72 if dual else 144) if version == 2 else (68 if dual else 136)
    counter_us = EPOCH_US if utc else 0
    sent, next_info_us, before_us = [], 0, counter_us
    for number in range(int(duration_s * 1e6 / (per_packet * FIRING_US))):
        time_us = (number * per_packet + np.arange(per_packet)) * FIRING_US
        if time_us[0] >= next_info_us:
            said = INFO | {"returns": 2 if dual else 1, "sync_offset_us": 0 if utc else EPOCH_US}
            sent.append(Sent(EPOCH_US + next_info_us + 50.0, encode_info_packet(**said).tobytes()))
            next_info_us += 500_000
        points = np.zeros(per_packet, POINT_DTYPE)
        points["channel"] = time_us // FIRING_US % LASERS
        points["step_us"] = np.diff(counter_us + time_us, prepend=before_us)
        before_us = counter_us + int(time_us[-1])
        parity = (time_us // FRAME_US % 2 * 4).astype(np.uint8)
        image = np.stack([0.5 * np.sin(2 * np.pi * 9.7 * time_us / 1e6) + 0.05 * points["channel"], 0.2 * np.sin(2 * np.pi * 214 * time_us / 1e6)])
        range_m = 20.0 + rng.normal(0.0, 0.03, per_packet)
        missed = rng.random(per_packet) < 0.2
        fill(points, image, range_m, rng.integers(5, 90, per_packet), missed)
        points["flags"] |= parity
        if dual:
            second = points.copy()
            second["step_us"], second["flags"] = 0, parity | 0x10
            fill(second, image, range_m + 3.0, rng.integers(5, 90, per_packet), missed | (rng.random(per_packet) < 0.7))
            points = np.stack([points, second], axis=1).ravel()
        stamp_us = int(before_us - time_us[-1] + time_us[0] - points["step_us"][0])
        sent.append(Sent(EPOCH_US + time_us[-1] + 100.0, encode_stdv_packet(points, stamp_us=stamp_us, sequence=number + 7, version=version)))
    return tuple(sent)


def fill(points, image, range_m, reflectivity, missed):
    """Write returns at a range along ``(x/y, 1, z/y)``; nothing where they are missed."""
    ahead = range_m / np.sqrt(1.0 + (image**2).sum(axis=0)) / 0.005
    for name, counts in (("x", ahead * image[0]), ("y", ahead), ("z", ahead * image[1]), ("reflectivity", reflectivity)):
        points[name] = np.where(missed, 0, np.round(counts))
    points["flags"] |= np.where(missed, 0x20, 0).astype(np.uint8)


def datagrams(sent, source="192.168.32.87"):
    return [
        CapturedDatagram(round(one.host_us * 1000), source, 8808, "255.255.255.255", 8808, one.payload, None, is_ethernet=False, frame=number)
        for number, one in enumerate(sent, 1)
    ]
