"""The LightWare SF45/B: a beam that swings in its plane, and the settings by which a driver makes it stream.

The commands below are answered; any other, a write to what can only be read, and data of another size are not. A write is answered with the value that then holds: the one
written, or the one before where the written one is none the sensor knows. ArduPilot counts distances only while those answers are what it asked for.

=======  ======================  ==========  =====  ==============================================================================================
command  name                    data        write  meaning
=======  ======================  ==========  =====  ==============================================================================================
0        product name            16 bytes           ``SF45``, zero padded
1        hardware version        uint32
2        firmware version        4 bytes            patch, minor, major, 0
3        serial number           16 bytes           zero padded
9        user data               16 bytes    yes
27       distance output         uint32      yes    which of the fields of command 44 are sent, a bit each
30       stream                  uint32      yes    0 nothing, 5 command 44 at the update rate
44       distance data in cm     int16 each         first return raw, filtered, strength (%); last return the same three; background noise;
                                                    temperature (0.01 degC); yaw (0.01 deg, positive clockwise). Nothing seen: -100
50       laser firing            uint8       yes    0: nothing is seen
57       temperature             int32              0.01 degC
66       update rate             uint8       yes    see ``Sf45Spec.update_rates``
74, 76   noise, lost signals     uint32             0 here
75       zero offset             int32       yes
79       baud rate               uint8       yes    0 to 7; holds after a restart, so nothing follows from it here
85       scan speed              uint16      yes    5 (fastest) to 2000
93       stepper status          uint8              1
94       scan on start-up        uint8       yes
96       scan enable             uint8       yes    0: points at the scan position; then 1: goes on from where it was stopped
97       scan position           float32     yes    degrees
98       scan low angle          float32     yes    -170 to -5
99       scan high angle         float32     yes    5 to 170
=======  ======================  ==========  =====  ==============================================================================================

Sources: PX4 ``lightware_sf45_serial/sf45_commands.h`` and ``lightware_sf45_serial.cpp`` (numbers; the product name must make a frame of 22 bytes, distances frames of 10; bins grow
clockwise with yaw); ArduPilot ``AP_Proximity_LightWareSF45B.cpp`` and ``.h`` (numbers, handshake, sign of yaw) and ``SIM_PS_LightWare_SF45B.cpp`` (answers carry the write bit;
-1 m for nothing); LightWare's ``lightwarelidar`` ROS driver (types, limits, update rates) and SF000 guide rev 5 page 37 (bits of command 27, by which the SF45's drivers ask, too).
Which widths commands 74 to 76 and 93 have was seen nowhere.

Measurements follow one another at the update rate from power-up (rig time 0), streamed or not; a new rate begins where it was set. The swing is a triangle in time: the real
motor's course is "fairly complex" (LightWare, SampleLibrary issue 16).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.protocols.lightware import FrameFinder, Request, encode_frame, encode_frames
from hilsim.rangefinders.base import Sample, TimedBytes, echo_strength, measured_ranges
from hilsim.rangefinders.specs import Sf45Rates, Sf45Spec
from hilsim.units import NS_PER_S

PRODUCT_NAME, HARDWARE_VERSION, FIRMWARE_VERSION, SERIAL_NUMBER, USER_DATA = 0, 1, 2, 3, 9
DISTANCE_OUTPUT, STREAM, DISTANCE_DATA_CM, LASER_FIRING, TEMPERATURE, UPDATE_RATE = 27, 30, 44, 50, 57, 66
NOISE, ZERO_OFFSET, LOST_SIGNALS, BAUD_RATE, SCAN_SPEED = 74, 75, 76, 79, 85
STEPPER_STATUS, SCAN_ON_START, SCAN_ENABLE, SCAN_POSITION, SCAN_LOW_ANGLE, SCAN_HIGH_ANGLE = 93, 94, 96, 97, 98, 99

STREAM_DISTANCES = 5
NOTHING_CM = -100
FIRST_RAW, FIRST_FILTERED, FIRST_STRENGTH, LAST_RAW, LAST_FILTERED, LAST_STRENGTH, BACKGROUND, CHIP_TEMPERATURE, YAW = range(9)

UPDATE_PERIODS_NS: dict[Sf45Rates, tuple[int, ...]] = {
    # Whole 50 us, of which 13 make the 1538 a second that the vendor's table says.
    "twelve": tuple(50_000 * count for count in (400, 200, 100, 50, 40, 32, 20, 16, 13, 10, 8, 4)),
    # 388 a second over 8 to 1: the table's 48, 55, 64, 77, 97, 129, 194, 388.
    "eight": tuple(round(1e9 / 388.0) * count for count in range(8, 0, -1)),
}
_UDEG = 1_000_000
_FASTEST_SETTING = 5
_TEMPERATURE_CDEG = 4000
_SCANNING = frozenset({SCAN_SPEED, SCAN_ENABLE, SCAN_POSITION, SCAN_LOW_ANGLE, SCAN_HIGH_ANGLE})


class Parameter(NamedTuple):
    """A command that holds a number.

    Attributes:
        dtype: Of its data.
        low: Least value that may be written.
        high: Largest value that may be written; below ``low`` where nothing may.
    """

    dtype: str
    low: float
    high: float


_READ_ONLY = (1.0, 0.0)
PARAMETERS = {
    HARDWARE_VERSION: Parameter("<u4", *_READ_ONLY),
    DISTANCE_OUTPUT: Parameter("<u4", 1, 0x1FF),
    STREAM: Parameter("<u4", 0, STREAM_DISTANCES),
    LASER_FIRING: Parameter("<u1", 0, 1),
    TEMPERATURE: Parameter("<i4", *_READ_ONLY),
    UPDATE_RATE: Parameter("<u1", 1, 12),
    NOISE: Parameter("<u4", *_READ_ONLY),
    ZERO_OFFSET: Parameter("<i4", -(2**31), 2**31 - 1),
    LOST_SIGNALS: Parameter("<u4", *_READ_ONLY),
    BAUD_RATE: Parameter("<u1", 0, 7),
    SCAN_SPEED: Parameter("<u2", 5, 2000),
    STEPPER_STATUS: Parameter("<u1", *_READ_ONLY),
    SCAN_ON_START: Parameter("<u1", 0, 1),
    SCAN_ENABLE: Parameter("<u1", 0, 1),
    SCAN_POSITION: Parameter("<f4", -170, 170),
    SCAN_LOW_ANGLE: Parameter("<f4", -170, -5),
    SCAN_HIGH_ANGLE: Parameter("<f4", 5, 170),
}


class Swing(NamedTuple):
    """The beam's course: back and forth between two angles at one speed; all in millionths of a degree.

    Attributes:
        low_udeg: Where it turns on the left.
        high_udeg: Where it turns on the right.
        speed_udps: A second; 0: it stands.
        since_ns: Rig time from which this holds.
        gone_udeg: How far it had come by then, from ``low_udeg`` and counted on past each turn.
    """

    low_udeg: int
    high_udeg: int
    speed_udps: int
    since_ns: int
    gone_udeg: int


def swing_udeg(swing: Swing, time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``int64[n]``: where the beam points at ``int64[n]`` rig times, in millionths of a degree; exact, whatever the time."""
    way = _way_udeg(swing, time_ns)
    span = swing.high_udeg - swing.low_udeg
    return swing.low_udeg + np.where(way <= span, way, 2 * span - way)


def _way_udeg(swing: Swing, time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How far into a swing back and forth."""
    seconds, rest_ns = np.divmod(time_ns - swing.since_ns, NS_PER_S)
    gone = swing.gone_udeg + swing.speed_udps * seconds + swing.speed_udps * rest_ns // NS_PER_S
    way: npt.NDArray[np.int64] = gone % (2 * (swing.high_udeg - swing.low_udeg))
    return way


def changed_swing(swing: Swing, time_ns: int, *, low_udeg: int, high_udeg: int, speed_udps: int) -> Swing:
    """The swing that goes on from where the beam is, in the direction that it has, within other ends or at another speed; from outside the ends it jumps to the nearer one."""
    at = np.array([time_ns], np.int64)
    rising = int(_way_udeg(swing, at)[0]) < swing.high_udeg - swing.low_udeg
    angle = min(max(int(swing_udeg(swing, at)[0]), low_udeg), high_udeg)
    gone = angle - low_udeg if rising else 2 * high_udeg - low_udeg - angle
    return Swing(low_udeg, high_udeg, speed_udps, time_ns, gone)


class Sf45:
    """An SF45/B behind its serial port."""

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
        self._swing = Swing(low, high, self._speed_udps(), 0, -low)  # it begins straight ahead
        self._rate_since_ns = 0
        self._rate_first = 0
        self._asked = False

    @property
    def streams(self) -> bool:
        """Whether the driver has asked for distances."""
        return self._values[STREAM] == STREAM_DISTANCES

    def receive(self, data: bytes, time_ns: int) -> list[bytes]:
        """Take bytes that arrived at a rig time; returns an answer to each request in them, one whole frame each."""
        answers = [self._answer(request, time_ns) for request in self._finder.feed(data, time_ns)]
        return [answer for answer in answers if answer]

    def next_ns(self, from_ns: int) -> int:
        """When the first measurement at or after a rig time is."""
        return self._rate_since_ns + max(self._steps_to(from_ns), 1) * self._period_ns()

    def frames(self, from_ns: int, until_ns: int, sample: Sample) -> list[TimedBytes]:
        """Every frame due from ``from_ns`` up to but not including ``until_ns``: nothing before the driver has asked for it.

        A request to read command 44 is answered by the first measurement behind it, whether or not distances are streamed.
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
        """Measurements at this rate from its beginning up to the first at or after a rig time."""
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
        """``uint8[n, 2 m]``: the fields that the driver chose."""
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
        """Take a written value; one that the sensor does not know changes nothing."""
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
