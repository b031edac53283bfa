"""ArduPilot's JSON simulation link: SITL sends servo outputs to UDP port 9002, the physics answers to where they came from with one line of JSON.

From SITL, little-endian:

======  =====  =============================================================
offset  size   field
======  =====  =============================================================
0       2      magic: 18458 for 16 outputs, 29569 for 32
2       2      frame rate, Hz: the step that SITL wishes for
4       4      frame count
8       32|64  PWM of each output, us; 0 where there is no output
======  =====  =============================================================

To SITL: a line feed, one JSON object, a line feed. SITL looks for ``"name":`` as text from the object's second character on and reads vectors by ``[%f, %f, %f]``, so the line
has no blanks, and no name may precede one that it contains.

Sources: ArduPilot ``libraries/SITL/examples/JSON/readme.md``, ``libraries/SITL/SIM_JSON.cpp`` and ``SIM_JSON.h``. It resends a frame with the same
count when nothing was answered (after 10 s by the description, after 1 s in the code), and begins at a lower count when it was restarted.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from hilsim.errors import PacketError, require
from hilsim.units import NS_PER_S
from hilsim.world.geometry.frames import Quaternion, Vector

JSON_PORT = 9002
MAGIC_16, MAGIC_32 = 18458, 29569
MAX_RANGEFINDERS = 6
MIN_RATE_HZ, MAX_RATE_HZ = 10, 20_000
"""Steps of the physics are 0.05 to 1 ms long; a frame covers 0.05 to 100 ms. ArduPilot's own lie between 400 and 1200 Hz."""
USUAL_RATE_HZ = 1200
"""ArduPilot's SIM_RATE_HZ by default; also the rate of frames that wish for another than the above: without an answer ArduPilot stands still, and cannot take the correction."""

SERVO_16_DTYPE = np.dtype([("magic", "<u2"), ("frame_rate", "<u2"), ("frame_count", "<u4"), ("pwm", "<u2", (16,))])
SERVO_32_DTYPE = np.dtype([("magic", "<u2"), ("frame_rate", "<u2"), ("frame_count", "<u4"), ("pwm", "<u2", (32,))])
if (SERVO_16_DTYPE.itemsize, SERVO_32_DTYPE.itemsize) != (40, 72):
    raise AssertionError("servo packets must be 40 and 72 bytes")

_LAYOUTS = {MAGIC_16: SERVO_16_DTYPE, MAGIC_32: SERVO_32_DTYPE}
_HEADER_SIZE = 8


@dataclass(frozen=True, kw_only=True)
class ServoFrame:
    """Servo packet of SITL.

    Attributes:
        frame_rate_hz: Steps of the physics that SITL wishes for in a second.
        frame_count: Number of the frame.
        pwm_us: 16 or 32 outputs; 0 where there is none.
    """

    frame_rate_hz: int
    frame_count: int
    pwm_us: tuple[int, ...]

    @property
    def rate_fault(self) -> str:
        """Reason why the step is not the one that SITL wishes for; empty for none."""
        if MIN_RATE_HZ <= self.frame_rate_hz <= MAX_RATE_HZ:
            return ""
        return f"SITL servo packet's frame rate (SIM_RATE_HZ) must be {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz, got {self.frame_rate_hz} at byte 2"

    @property
    def step_ns(self) -> int:
        """The step that SITL wishes for; that of ``USUAL_RATE_HZ`` if it is out of range."""
        return NS_PER_S // (USUAL_RATE_HZ if self.rate_fault else self.frame_rate_hz)


def decode_servos(payload: bytes) -> ServoFrame:
    """Read a servo packet.

    Raises:
        PacketError: the payload is none; the text names the field.
    """
    if len(payload) < _HEADER_SIZE:
        raise PacketError(f"SITL servo packet must be 40 or 72 bytes, got {len(payload)}")
    magic = int.from_bytes(payload[:2], "little")
    layout = _LAYOUTS.get(magic)
    if layout is None:
        raise PacketError(f"SITL servo packet must start with magic {MAGIC_16} or {MAGIC_32}, got {magic} at byte 0")
    if len(payload) != layout.itemsize:
        raise PacketError(f"SITL servo packet with magic {magic} must be {layout.itemsize} bytes, got {len(payload)}")
    packet: Any = np.frombuffer(payload, layout, count=1)[0]
    return ServoFrame(frame_rate_hz=int(packet["frame_rate"]), frame_count=int(packet["frame_count"]), pwm_us=tuple(packet["pwm"].tolist()))


def motor_commands(pwm_us: Sequence[int], *, low_us: int = 1000, high_us: int = 2000) -> tuple[float, ...]:
    """Motor commands 0 to 1 of outputs; what is outside the two ends is cut off, and an absent output (0) stands still."""
    return tuple(min(max((pwm - low_us) / (high_us - low_us), 0.0), 1.0) for pwm in pwm_us)


class FrameOrder(Enum):
    """Order of a servo frame relative to the previous one."""

    FIRST = "first"
    """The first ever, or the first since SITL was restarted: put the vehicle back, then step."""
    NEXT = "next"
    """Step once and answer. Frames may be missing before it: SITL waits for no answer that was lost."""
    RESENT = "resent"
    """The same again, because our answer was lost: answer as before and do not step, or the physics would run ahead of the autopilot."""


def frame_order(before: int | None, count: int) -> tuple[FrameOrder, int]:
    """Order of frame ``count`` relative to frame ``before`` (None: none yet), and number of lost frames between them."""
    if before is None or count < before:
        return FrameOrder.FIRST, 0
    if count == before:
        return FrameOrder.RESENT, 0
    return FrameOrder.NEXT, count - before - 1


@dataclass(frozen=True, kw_only=True)
class VehicleReport:
    """The state that SITL is sent; axes north, east, down and forward, right, down.

    Attributes:
        time_ns: Since the physics began; never goes back but for a restart.
        gyro_rps: Angular rate, body.
        accel_mps2: Specific force, body: (0, 0, -9.81) at rest.
        position_m: Position relative to the home point.
        velocity_mps: Velocity in the world.
        attitude: ``(w, x, y, z)``, unit: world from body.
        ranges_m: Distances of rangefinders 1, 2, …, up to 6; ``inf``: nothing.
    """

    time_ns: int
    gyro_rps: Vector
    accel_mps2: Vector
    position_m: Vector
    velocity_mps: Vector
    attitude: Quaternion
    ranges_m: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        vectors = (self.gyro_rps, self.accel_mps2, self.position_m, self.velocity_mps, self.attitude)
        require(
            (self.time_ns >= 0, f"time_ns must be 0 or more, got {self.time_ns}"),
            (
                all(math.isfinite(part) for vector in vectors for part in vector),
                f"gyro, accel, position, velocity and attitude must be finite, got {vectors}",
            ),
            (abs(math.hypot(*self.attitude) - 1.0) < 1e-6, f"attitude must be a unit quaternion, got {self.attitude}"),
            (len(self.ranges_m) <= MAX_RANGEFINDERS, f"ranges_m must be at most {MAX_RANGEFINDERS}, got {len(self.ranges_m)}"),
            (all(distance >= 0.0 for distance in self.ranges_m), f"ranges_m must be 0 or more, got {self.ranges_m}"),
        )


def encode_report(report: VehicleReport, *, farthest_m: float = 1000.0) -> bytes:
    """The datagram of a report.

    Args:
        report: The report.
        farthest_m: Sent for a rangefinder without an echo, because an omitted name would keep the old value; more than the autopilot's own
            ``RNGFNDx_MAX`` reads as out of range.
    """
    fields: dict[str, Any] = {
        "timestamp": None,
        "imu": {"gyro": report.gyro_rps, "accel_body": report.accel_mps2},
        "position": report.position_m,
        "velocity": report.velocity_mps,
        "quaternion": report.attitude,
    }
    for number, distance in enumerate(report.ranges_m, start=1):
        fields[f"rng_{number}"] = distance if math.isfinite(distance) else farthest_m
    line = json.dumps(fields, separators=(",", ":"), allow_nan=False)
    seconds, rest_ns = divmod(report.time_ns, NS_PER_S)
    return f"\n{line.replace('null', f'{seconds}.{rest_ns:09d}', 1)}\n".encode("ascii")
