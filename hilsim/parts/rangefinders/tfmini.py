"""The Benewake TFmini: one beam, one distance per frame.

==============  ============  ==========  ======================================================================================================
model           weak echo     is sent as  interpretation by the autopilots
==============  ============  ==========  ======================================================================================================
``tfmini``      strength <20  65535       ArduPilot: out of range (from 32768 up), reported as 12 m or its own maximum + 1 m;
                                          PX4: ignored, so there is no new reading
``tfmini_s``    strength<100  65535       the same
``tfmini_plus`` strength<100  0           both: a distance of 0, nearer than their minimum
==============  ============  ==========  ======================================================================================================

Targets nearer than ``range_min_m`` or farther than ``range_max_m`` return a weak echo; the original model's manual also mentions strong ones beyond 12 m, sent as 1200.

Sources: as for the frame. The manual gives modes 2 and 7 overlapping ranges (to 5 m, from 1 m) and not where the sensor switches: 2 m is chosen here.
A TFmini also accepts settings; neither autopilot sends any, so received bytes are ignored.

Its frame, 9 bytes at 115200 8N1, is sent unasked:

======  ====  ==================================================================================================================
offset  size  field
======  ====  ==================================================================================================================
0       2     header, bytes 59 59
2       2     distance, cm, little-endian
4       2     strength, little-endian
6       2     ``tfmini``: distance mode (2 short, 7 long) and a spare byte 0; ``tfmini_plus``, ``tfmini_s``: (chip temperature + 256) * 8
8       1     low 8 bits of the sum of bytes 0 to 7
======  ====  ==================================================================================================================

Sources: SJ-PM-TFmini-T-01 A03 pages 12 and 16, SJ-PM-TFmini-S A00 page 12, SJ-PM-TFmini Plus-T-01 A04 pages 12 and 13; ArduPilot
``AP_RangeFinder_Benewake.cpp``; PX4 ``tfmini_parser.cpp``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilsim.errors import within
from hilsim.parts.rangefinders.base import Sample, echo_strength, measured_ranges
from hilsim.parts.rangefinders.specs import RangefinderSpec
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.units import NS_PER_S

TFMINI_FRAME_SIZE = 9
TFMINI_HEADER = 0x5959
TFMINI_FRAME_DTYPE = np.dtype([("header", "<u2"), ("distance", "<u2"), ("strength", "<u2"), ("mode_or_temperature", "<u2"), ("checksum", "u1")])
if TFMINI_FRAME_DTYPE.itemsize != TFMINI_FRAME_SIZE:
    raise AssertionError(f"a TFmini frame must be {TFMINI_FRAME_SIZE} bytes, got {TFMINI_FRAME_DTYPE.itemsize}")

TfminiModel = Literal["tfmini", "tfmini_plus", "tfmini_s"]

_FRAME_BITS = 10 * TFMINI_FRAME_SIZE
_SHORT_MODE, _LONG_MODE, _MODE_SWITCH_M = 2, 7, 2.0
_WEAK_DISTANCE: dict[TfminiModel, int] = {"tfmini": 65535, "tfmini_plus": 0, "tfmini_s": 65535}
_MIN_STRENGTH: dict[TfminiModel, int] = {"tfmini": 20, "tfmini_plus": 100, "tfmini_s": 100}
_MAX_STRENGTH: dict[TfminiModel, int] = {"tfmini": 3000, "tfmini_plus": 65534, "tfmini_s": 65534}


@dataclass(frozen=True, kw_only=True)
class TfminiSpec(RangefinderSpec):
    """A Benewake TFmini: one beam, one distance per frame.

    Attributes:
        kind: ``tfmini``; required.
        model: ``tfmini``: bytes 6 and 7 are the distance mode, a weak echo is 65535; ``tfmini_plus``: they are the temperature, a weak echo is 0;
            ``tfmini_s``: temperature and 65535.
        rate_hz: Frames per second; the sensor supports 1000 / n, the oldest model only 100 / n.
        temperature_deg_c: Temperature of the chip, for models that report it.
    """

    kind: Literal["tfmini"] = "tfmini"
    model: TfminiModel = "tfmini"
    baud: int = 115200
    range_min_m: float = 0.3
    range_max_m: float = 12.0
    rate_hz: int = 100
    temperature_deg_c: float = 40.0

    @property
    def range_code_max_m(self) -> float:
        """Largest range that ArduPilot does not treat as out of range (327.68 m and more)."""
        return 327.67

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        base_hz = 100 if self.model == "tfmini" else 1000
        yield (
            1 <= self.rate_hz <= base_hz and base_hz % self.rate_hz == 0,
            f"rate_hz must be {base_hz} divided by a whole number (model {self.model}), got {self.rate_hz}",
        )
        yield (
            _FRAME_BITS * self.rate_hz <= self.baud,
            f"baud must be at least {_FRAME_BITS * self.rate_hz} for rate_hz {self.rate_hz} (frames of 9 bytes), got {self.baud}",
        )
        yield from within(self, temperature_deg_c=(-40, 125))


class Tfmini:
    """A TFmini: frame k is measured and due at k / rate."""

    def __init__(self, spec: TfminiSpec, *, seed: int, stream: int) -> None:
        self._spec = spec
        self._seed = seed
        self._stream = stream
        self._period_ns = NS_PER_S // spec.rate_hz

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Ignore received bytes."""
        del data, time_ns
        return []

    def next_ns(self, from_ns: int) -> int:
        """Due time of the first frame at or after a rig time."""
        return -(-max(from_ns, 0) // self._period_ns) * self._period_ns

    def frames(self, from_ns: int, until_ns: int, sample: Sample) -> list[TimedBytes]:
        """All frames due from ``from_ns`` up to but not including ``until_ns``; the beam's azimuth is 0."""
        first_ns = self.next_ns(from_ns)
        time_ns = np.arange(first_ns, until_ns, self._period_ns, dtype=np.int64)
        if time_ns.size == 0:
            return []
        range_m = sample(time_ns, np.zeros(time_ns.size))
        measured_m = measured_ranges(self._spec, range_m, first_ns // self._period_ns, seed=self._seed, stream=self._stream)
        payload = self._encode(measured_m)
        return [TimedBytes(due_ns, frame.tobytes()) for due_ns, frame in zip(time_ns.tolist(), payload, strict=True)]

    def _encode(self, measured_m: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
        spec = self._spec
        least = _MIN_STRENGTH[spec.model]
        strength = echo_strength(measured_m, at_limit=least, limit_m=spec.range_max_m, ceiling=_MAX_STRENGTH[spec.model])
        weak = strength < least
        distance = np.where(weak, _WEAK_DISTANCE[spec.model], np.rint(np.where(weak, 0.0, measured_m) * 100.0)).astype(np.int64)
        if spec.model == "tfmini":
            last = np.where(measured_m < _MODE_SWITCH_M, _SHORT_MODE, _LONG_MODE)
        else:
            last = np.full(measured_m.size, round((spec.temperature_deg_c + 256.0) * 8.0))
        return encode_tfmini(distance, strength, last)


def encode_tfmini(
    distance_cm: npt.NDArray[np.int64], strength: npt.NDArray[np.int64], mode_or_temperature: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """``uint8[n, 9]``: frames of ``int64[n]`` fields, each 0 to 65535."""
    frames = np.zeros(distance_cm.size, TFMINI_FRAME_DTYPE)
    frames["header"] = TFMINI_HEADER
    frames["distance"] = distance_cm
    frames["strength"] = strength
    frames["mode_or_temperature"] = mode_or_temperature
    payload = frames.view(np.uint8).reshape(-1, TFMINI_FRAME_SIZE)
    payload[:, 8] = payload[:, :8].sum(axis=1, dtype=np.uint64) & 0xFF
    return payload
