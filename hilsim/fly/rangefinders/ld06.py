"""The LDROBOT LD06: a rotating beam, 4500 points a second; its bytes are those of ``protocols.ld06``.

Point n is measured at n / 4500 s; its time and its azimuth are exact quotients of integers. The relation of confidence to range is not published: here it is 20, ArduPilot's
limit, at ``range_max_m``, and increases with the inverse square up to 230.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilsim.fly.rangefinders.base import Sample, echo_strength, measured_ranges
from hilsim.fly.rangefinders.specs import RangefinderSpec
from hilsim.protocols.ld06 import LD06_POINTS, LD06_STAMP_MS, encode_ld06
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.units import TURN_CDEG

LEAST_CONFIDENCE, MOST_CONFIDENCE = 20, 230

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
        yield 1800 <= self.speed_dps <= 4680, f"speed_dps must be 1800 to 4680, got {self.speed_dps}"
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
        confidence = echo_strength(measured_m, at_limit=LEAST_CONFIDENCE, limit_m=spec.range_max_m, ceiling=MOST_CONFIDENCE)
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
