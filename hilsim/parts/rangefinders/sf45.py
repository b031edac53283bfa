"""The LightWare SF45/B: a beam that sweeps back and forth in its plane, and the settings by which a driver starts its stream.

Its bytes are those of ``sf45_fields`` in the frames of ``lightware``.

Measurements have a fixed period from power-up (rig time 0), streamed or not; a new rate starts when it is set. The sweep is a triangle in time; the real
motor's motion is "fairly complex" (LightWare, SampleLibrary issue 16).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import within
from hilsim.parts.rangefinders.base import Sample, echo_strength, measured_ranges
from hilsim.parts.rangefinders.lightware import FrameFinder, Request, encode_frame, encode_frames
from hilsim.parts.rangefinders.sf45_fields import (
    BAUD_RATE,
    CHIP_TEMPERATURE,
    DISTANCE_DATA_CM,
    DISTANCE_OUTPUT,
    FIRMWARE_VERSION,
    FIRST_FILTERED,
    FIRST_RAW,
    FIRST_STRENGTH,
    HARDWARE_VERSION,
    LASER_FIRING,
    LAST_FILTERED,
    LAST_RAW,
    LAST_STRENGTH,
    NOTHING_CM,
    PARAMETERS,
    PRODUCT_NAME,
    SCAN_ENABLE,
    SCAN_HIGH_ANGLE,
    SCAN_LOW_ANGLE,
    SCAN_ON_START,
    SCAN_POSITION,
    SCAN_SPEED,
    SERIAL_NUMBER,
    STEPPER_STATUS,
    STREAM,
    STREAM_DISTANCES,
    TEMPERATURE,
    UPDATE_RATE,
    USER_DATA,
    YAW,
)
from hilsim.parts.rangefinders.specs import RangefinderSpec
from hilsim.transmit.links.timed_bytes import TimedBytes
from hilsim.units import NS_PER_S

Sf45Rates = Literal["twelve", "eight"]

UPDATE_PERIODS_NS: dict[Sf45Rates, tuple[int, ...]] = {
    # Whole multiples of 50 us; 13 of them make the 1538 a second of the vendor's table.
    "twelve": tuple(50_000 * count for count in (400, 200, 100, 50, 40, 32, 20, 16, 13, 10, 8, 4)),
    # 388 a second over 8 to 1: the table's 48, 55, 64, 77, 97, 129, 194, 388.
    "eight": tuple(round(1e9 / 388.0) * count for count in range(8, 0, -1)),
}
_UDEG = 1_000_000
_FASTEST_SETTING = 5
_TEMPERATURE_CDEG = 4000
_SCANNING = frozenset({SCAN_SPEED, SCAN_ENABLE, SCAN_POSITION, SCAN_LOW_ANGLE, SCAN_HIGH_ANGLE})


@dataclass(frozen=True, kw_only=True)
class Sf45Spec(RangefinderSpec):
    """A LightWare SF45/B: one beam that sweeps in its plane; its driver sets rates and fields.

    Attributes:
        kind: ``sf45``; required.
        low_angle_deg: Left end of the sweep, until the driver sets another.
        high_angle_deg: Right end of the sweep, until the driver sets another.
        scan_speed_dps: Speed of the sweep at scan speed setting 5. The vendor gives the setting no unit, so the speed is inversely proportional to it here;
            390 is the value in ArduPilot's own simulator of the sensor (``libraries/SITL/SIM_PS_LightWare_SF45B.cpp``).
        scan_speed_setting: Scan speed setting at power-up, 5 (fastest) to 2000.
        update_rate: Update rate setting at power-up, 1 to 12, or to 8.
        update_rates: Meaning of the update rate setting: ``twelve``: 50 to 5000 a second, as in LightWare's own drivers and PX4; ``eight``: 48 to 388, as in ArduPilot.
        serial_number: Serial number, up to 15 ASCII characters.
    """

    kind: Literal["sf45"] = "sf45"
    range_min_m: float = 0.2
    range_max_m: float = 50.0
    low_angle_deg: float = -160.0
    high_angle_deg: float = 160.0
    scan_speed_dps: float = 390.0
    scan_speed_setting: int = 5
    update_rate: int = 5
    update_rates: Sf45Rates = "twelve"
    serial_number: str = "S45-00001"

    @property
    def range_code_max_m(self) -> float:
        """Largest range that the format can represent: centimetres in a signed 16-bit number."""
        return 327.67

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from super().rules()
        most = 12 if self.update_rates == "twelve" else 8
        yield from within(self, low_angle_deg=(-170, -5), high_angle_deg=(5, 170), scan_speed_dps=(1, 5000), scan_speed_setting=(5, 2000))
        yield 1 <= self.update_rate <= most, f"update_rate must be 1 to {most} (update_rates {self.update_rates}), got {self.update_rate}"
        yield (
            0 < len(self.serial_number) <= 15 and self.serial_number.isascii() and self.serial_number.isprintable(),
            f'serial_number must be 1 to 15 printable ASCII characters, got "{self.serial_number}"',
        )


class Swing(NamedTuple):
    """Motion of the beam: back and forth between two angles at one speed; all in millionths of a degree.

    Attributes:
        low_udeg: Left turning point.
        high_udeg: Right turning point.
        speed_udps: Speed per second; 0: at rest.
        since_ns: Rig time from which this motion applies.
        gone_udeg: Path travelled by then, from ``low_udeg`` and continuing past each turning point.
    """

    low_udeg: int
    high_udeg: int
    speed_udps: int
    since_ns: int
    gone_udeg: int


def swing_udeg(swing: Swing, time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Angles of the beam, ``int64[n]`` in millionths of a degree, at ``int64[n]`` rig times; exact at any time."""
    way = _way_udeg(swing, time_ns)
    span = swing.high_udeg - swing.low_udeg
    return swing.low_udeg + np.where(way <= span, way, 2 * span - way)


def _way_udeg(swing: Swing, time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Path travelled in the current period of the sweep."""
    seconds, rest_ns = np.divmod(time_ns - swing.since_ns, NS_PER_S)
    gone = swing.gone_udeg + swing.speed_udps * seconds + swing.speed_udps * rest_ns // NS_PER_S
    way: npt.NDArray[np.int64] = gone % (2 * (swing.high_udeg - swing.low_udeg))
    return way


def changed_swing(swing: Swing, time_ns: int, *, low_udeg: int, high_udeg: int, speed_udps: int) -> Swing:
    """Sweep that continues from the beam's angle and direction, with other ends or another speed; from outside the ends it jumps to the nearer one."""
    at = np.array([time_ns], np.int64)
    rising = int(_way_udeg(swing, at)[0]) < swing.high_udeg - swing.low_udeg
    angle = min(max(int(swing_udeg(swing, at)[0]), low_udeg), high_udeg)
    gone = angle - low_udeg if rising else 2 * high_udeg - low_udeg - angle
    return Swing(low_udeg, high_udeg, speed_udps, time_ns, gone)


class Sf45:
    """An SF45/B on its serial port."""

    def __init__(self, spec: Sf45Spec, *, seed: int, stream: int) -> None:
        self._spec = spec
        self._seed = seed
        self._stream = stream
        self._finder = FrameFinder()
        self._texts = {
            PRODUCT_NAME: b"SF45".ljust(16, b"\0"),
            FIRMWARE_VERSION: bytes((0, 0, 2, 0)),
            SERIAL_NUMBER: spec.serial_number.encode("ascii").ljust(16, b"\0"),
            USER_DATA: bytes(16),
        }
        self._values: dict[int, float] = dict.fromkeys(PARAMETERS, 0)
        self._values |= {
            HARDWARE_VERSION: 1,
            DISTANCE_OUTPUT: 1 << FIRST_RAW | 1 << YAW,
            LASER_FIRING: 1,
            TEMPERATURE: _TEMPERATURE_CDEG,
            UPDATE_RATE: spec.update_rate,
            BAUD_RATE: 7,
            SCAN_SPEED: spec.scan_speed_setting,
            STEPPER_STATUS: 1,
            SCAN_ON_START: 1,
            SCAN_ENABLE: 1,
            SCAN_LOW_ANGLE: spec.low_angle_deg,
            SCAN_HIGH_ANGLE: spec.high_angle_deg,
        }
        low, high = round(spec.low_angle_deg * _UDEG), round(spec.high_angle_deg * _UDEG)
        self._swing = Swing(low, high, self._speed_udps(), 0, -low)  # it starts straight ahead
        self._rate_since_ns = 0
        self._rate_first = 0
        self._asked = False

    @property
    def streams(self) -> bool:
        """Whether the driver has enabled the stream of distances."""
        return self._values[STREAM] == STREAM_DISTANCES

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Process bytes that arrived at a rig time; returns an answer to each request, one whole frame each."""
        answers = [self._answer(request, time_ns) for request in self._finder.feed(data, time_ns)]
        return [answer for answer in answers if answer]

    def next_ns(self, from_ns: int) -> int:
        """Time of the first measurement at or after a rig time."""
        return self._rate_since_ns + max(self._steps_to(from_ns), 1) * self._period_ns()

    def frames(self, from_ns: int, until_ns: int, sample: Sample) -> list[TimedBytes]:
        """All frames due from ``from_ns`` up to but not including ``until_ns``: none before the driver has requested them.

        A request to read command 44 is answered by the next measurement, whether or not distances are streamed.
        """
        time_ns = np.arange(self.next_ns(from_ns), until_ns, self._period_ns(), dtype=np.int64)
        if not self.streams:
            time_ns = time_ns[: int(self._asked)]
        if time_ns.size == 0:
            return []
        self._asked = False
        first = self._rate_first + self._steps_to(int(time_ns[0]))
        angle_udeg = self._angle_udeg(time_ns)
        range_m = sample(time_ns, angle_udeg / _UDEG) if self._values[LASER_FIRING] else np.full(time_ns.size, np.inf)
        measured_m = measured_ranges(self._spec, range_m, first, seed=self._seed, stream=self._stream)
        frames = encode_frames(DISTANCE_DATA_CM, self._distance_data(measured_m, angle_udeg), write=False)
        return [TimedBytes(due_ns, frame.tobytes()) for due_ns, frame in zip(time_ns.tolist(), frames, strict=True)]

    def _period_ns(self) -> int:
        return UPDATE_PERIODS_NS[self._spec.update_rates][int(self._values[UPDATE_RATE]) - 1]

    def _steps_to(self, time_ns: int) -> int:
        """Number of measurements at this rate from its start up to the first at or after a rig time."""
        return -(-(time_ns - self._rate_since_ns) // self._period_ns())

    def _speed_udps(self) -> int:
        if not self._values[SCAN_ENABLE]:
            return 0
        return round(self._spec.scan_speed_dps * _UDEG * _FASTEST_SETTING / self._values[SCAN_SPEED])

    def _angle_udeg(self, time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self._values[SCAN_ENABLE]:
            return swing_udeg(self._swing, time_ns)
        return np.full(time_ns.size, round(self._values[SCAN_POSITION] * _UDEG), np.int64)

    def _distance_data(self, measured_m: npt.NDArray[np.float64], angle_udeg: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Distance data ``uint8[n, 2 m]`` with the fields that the driver selected."""
        seen = np.isfinite(measured_m)
        distance = np.where(seen, np.rint(np.where(seen, measured_m, 0.0) * 100.0), NOTHING_CM)
        fields = np.zeros((measured_m.size, YAW + 1), "<i2")
        fields[:, [FIRST_RAW, FIRST_FILTERED, LAST_RAW, LAST_FILTERED]] = distance[:, np.newaxis]
        strength = echo_strength(measured_m, at_limit=1, limit_m=self._spec.range_max_m, ceiling=100)
        fields[:, [FIRST_STRENGTH, LAST_STRENGTH]] = strength[:, np.newaxis]
        fields[:, CHIP_TEMPERATURE] = _TEMPERATURE_CDEG
        fields[:, YAW] = np.rint(angle_udeg / (_UDEG // 100))
        chosen = [bit for bit in range(YAW + 1) if int(self._values[DISTANCE_OUTPUT]) >> bit & 1]
        return np.ascontiguousarray(fields[:, chosen]).view(np.uint8)

    def _answer(self, request: Request, time_ns: int) -> bytes:
        command, write, data = request
        if command == DISTANCE_DATA_CM and not write and not data:
            self._asked = True
        elif command in self._texts:
            return self._answer_text(request)
        elif command in PARAMETERS:
            parameter = PARAMETERS[command]
            if write and (len(data) != np.dtype(parameter.dtype).itemsize or parameter.high < parameter.low):
                return b""
            if write:
                self._set(command, float(np.frombuffer(data, parameter.dtype)[0]), time_ns)
            return encode_frame(command, np.array(self._values[command], parameter.dtype).tobytes(), write=write)
        return b""

    def _answer_text(self, request: Request) -> bytes:
        command, write, data = request
        if write and (command != USER_DATA or len(data) != len(self._texts[command])):
            return b""
        if write:
            self._texts[command] = data
        return encode_frame(command, self._texts[command], write=write)

    def _set(self, command: int, value: float, time_ns: int) -> None:
        """Apply a written value; unsupported ones have no effect."""
        parameter = PARAMETERS[command]
        known = parameter.low <= value <= parameter.high
        if command == STREAM:
            known = value in {0, STREAM_DISTANCES}
        elif command == UPDATE_RATE:
            known = known and value <= len(UPDATE_PERIODS_NS[self._spec.update_rates])
        if not known or value == self._values[command]:
            return
        if command == UPDATE_RATE:
            self._rate_first += max(self._steps_to(time_ns), 1) - 1
            self._rate_since_ns = time_ns
        self._values[command] = value
        if command in _SCANNING:
            self._swing = changed_swing(
                self._swing,
                time_ns,
                low_udeg=round(self._values[SCAN_LOW_ANGLE] * _UDEG),
                high_udeg=round(self._values[SCAN_HIGH_ANGLE] * _UDEG),
                speed_udps=self._speed_udps(),
            )
