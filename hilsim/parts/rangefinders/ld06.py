"""The LDROBOT LD06: a rotating beam, 4500 points a second.

Point n is measured at n / 4500 s; its time and its azimuth are exact quotients of integers. The relation of confidence to range is not published: here it is 20, ArduPilot's
limit, at ``range_max_m``, and increases with the inverse square up to 230.

Its packet, 47 bytes with 12 points at 230400 8N1, is sent unasked:

======  ====  ===============================================================================================================
offset  size  field
======  ====  ===============================================================================================================
0       1     header 54
1       1     2C: 12 points in the lower 5 bits, 1 in the reserved upper 3
2       2     speed of the head, deg/s
4       2     azimuth of the first point, 0.01 deg, clockwise, 0 to 35999
6+3k    3     point k: distance in mm (uint16, 0 = nothing), confidence (uint8)
42      2     azimuth of the last point
44      2     time stamp, ms, beginning again at 30000
46      1     CRC-8 of bytes 0 to 45: polynomial 4D, not reflected, initially 0
======  ====  ===============================================================================================================

Little-endian. Sources: InnoMaker's page of the LD06 (layout, 4500 points a second, 5 to 13 turns a second, 0.02 to 12 m), LDROBOT's development manual (example packet, byte 1 in it);
ArduPilot ``AP_Proximity_LD06.cpp``: confidences below 20 do not count, and byte 1 may hold 2C in all but a few of its versions (one compared the whole byte with 12).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import within
from hilsim.parts.rangefinders.base import Sample, echo_strength, measured_ranges
from hilsim.parts.rangefinders.specs import RangefinderSpec
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.units import TURN_CDEG

LD06_PACKET_SIZE = 47
LD06_HEADER = 0x54
LD06_POINTS = 12
LD06_VERSION_AND_POINTS = 1 << 5 | LD06_POINTS
LD06_STAMP_MS = 30_000

POINT_DTYPE = np.dtype([("distance", "<u2"), ("confidence", "u1")])
LD06_PACKET_DTYPE = np.dtype(
    [
        ("header", "u1"),
        ("version_and_points", "u1"),
        ("speed", "<u2"),
        ("first_azimuth", "<u2"),
        ("points", POINT_DTYPE, (LD06_POINTS,)),
        ("last_azimuth", "<u2"),
        ("stamp", "<u2"),
        ("crc", "u1"),
    ]
)
if LD06_PACKET_DTYPE.itemsize != LD06_PACKET_SIZE:
    raise AssertionError(f"an LD06 packet must be {LD06_PACKET_SIZE} bytes, got {LD06_PACKET_DTYPE.itemsize}")

_POLYNOMIAL = 0x4D

MIN_CONFIDENCE, MAX_CONFIDENCE = 20, 230

_NS_PER_9_POINTS = 2_000_000  # 4500 points a second are 9 in 2 ms
_POINTS_PER_CDEG_OF_1_DPS = 45  # point n is at n * speed / 45 hundredths of a degree


@dataclass(frozen=True, kw_only=True)
class Ld06Spec(RangefinderSpec):
    """An LDROBOT LD06: a beam that rotates clockwise, 4500 points a second.

    Attributes:
        kind: ``ld06``; required.
        speed_dps: Speed of the head; 5 to 13 turns a second.
    """

    kind: Literal["ld06"] = "ld06"
    baud: int = 230400
    range_min_m: float = 0.02
    range_max_m: float = 12.0
    speed_dps: int = 3600

    @property
    def range_code_max_m(self) -> float:
        """Largest range that the format can represent: millimetres in an unsigned 16-bit number."""
        return 65.535

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        yield from within(self, speed_dps=(1800, 4680))
        yield self.baud >= 230400, f"baud must be at least 230400 (375 packets of 47 bytes a second), got {self.baud}"


def point_time_ns(point: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rig times of points by number, ``int64[n]``, rounded up to whole nanoseconds."""
    return -(-point * _NS_PER_9_POINTS // 9)


def point_azimuth_cdeg(point: npt.NDArray[np.int64], speed_dps: int) -> npt.NDArray[np.int64]:
    """Reported azimuths of points by number, ``int64[n]``, 0 to 35999."""
    return point * speed_dps // _POINTS_PER_CDEG_OF_1_DPS % TURN_CDEG


class Ld06:
    """An LD06: packet k contains points 12 k to 12 k + 11 and is due when the last of them is measured."""

    def __init__(self, spec: Ld06Spec, *, seed: int, stream: int) -> None:
        self._spec = spec
        self._seed = seed
        self._stream = stream

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Ignore received bytes: the sensor has no receiving line."""
        del data, time_ns
        return []

    def next_ns(self, from_ns: int) -> int:
        """Due time of the first packet at or after a rig time."""
        return _due_ns(_first_packet(from_ns))

    def frames(self, from_ns: int, until_ns: int, sample: Sample) -> list[TimedBytes]:
        """All packets due from ``from_ns`` up to but not including ``until_ns``; rays are requested at each point's own time and azimuth."""
        first, after = _first_packet(from_ns), _first_packet(until_ns)
        if after <= first:
            return []
        spec = self._spec
        point = np.arange(first * LD06_POINTS, after * LD06_POINTS, dtype=np.int64)
        time_ns = point_time_ns(point)
        turned = point * spec.speed_dps % (_POINTS_PER_CDEG_OF_1_DPS * TURN_CDEG)
        range_m = sample(time_ns, turned / (_POINTS_PER_CDEG_OF_1_DPS * 100.0))
        measured_m = measured_ranges(spec, range_m, first * LD06_POINTS, seed=self._seed, stream=self._stream)
        seen = np.isfinite(measured_m)
        distance = np.rint(np.where(seen, measured_m, 0.0) * 1000.0).astype(np.int64)
        confidence = echo_strength(measured_m, at_limit=MIN_CONFIDENCE, limit_m=spec.range_max_m, ceiling=MAX_CONFIDENCE)
        due_ns = time_ns[LD06_POINTS - 1 :: LD06_POINTS]
        payload = encode_ld06(
            spec.speed_dps,
            point_azimuth_cdeg(point, spec.speed_dps).reshape(-1, LD06_POINTS),
            distance.reshape(-1, LD06_POINTS),
            confidence.reshape(-1, LD06_POINTS),
            due_ns // 1_000_000 % LD06_STAMP_MS,
        )
        return [TimedBytes(due, packet.tobytes()) for due, packet in zip(due_ns.tolist(), payload, strict=True)]


def _due_ns(packet: int) -> int:
    return -(-(packet * LD06_POINTS + LD06_POINTS - 1) * _NS_PER_9_POINTS // 9)


def _first_packet(from_ns: int) -> int:
    """Number of the first packet due at or after a rig time."""
    packet = max(from_ns * 9 // (_NS_PER_9_POINTS * LD06_POINTS) - 1, 0)
    while _due_ns(packet) < from_ns:
        packet += 1
    return packet


@kernel
def crc8(payload: npt.NDArray[np.uint8]) -> int:
    """CRC-8 of the LD06 over ``uint8[n]``."""
    crc = 0
    for byte in payload:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ _POLYNOMIAL) & 0xFF if crc & 0x80 else crc << 1
    return crc


def encode_ld06(
    speed_dps: int,
    azimuth_cdeg: npt.NDArray[np.int64],
    distance_mm: npt.NDArray[np.int64],
    confidence: npt.NDArray[np.int64],
    stamp_ms: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint8]:
    """Packets of 12 points each.

    Args:
        speed_dps: Speed of the head.
        azimuth_cdeg: ``int64[n, 12]``; the first and the last of each row are sent.
        distance_mm: ``int64[n, 12]``, 0 for nothing.
        confidence: ``int64[n, 12]``, 0 to 255.
        stamp_ms: ``int64[n]``, 0 to 29999.

    Returns:
        ``uint8[n, 47]``.
    """
    packets = np.zeros(stamp_ms.size, LD06_PACKET_DTYPE)
    packets["header"] = LD06_HEADER
    packets["version_and_points"] = LD06_VERSION_AND_POINTS
    packets["speed"] = speed_dps
    packets["first_azimuth"] = azimuth_cdeg[:, 0]
    packets["points"]["distance"] = distance_mm
    packets["points"]["confidence"] = confidence
    packets["last_azimuth"] = azimuth_cdeg[:, -1]
    packets["stamp"] = stamp_ms
    payload = packets.view(np.uint8).reshape(-1, LD06_PACKET_SIZE)
    for row in payload:
        row[46] = crc8(row[:46])
    return payload
