"""What a rig says of the range sensors that an autopilot reads: on serial ports of their own, or made of a lidar's scan.

Where no other source is named, limits are the vendors': Benewake's SJ-PM-TFmini-T-01 A03, LightWare's SF45/B command list, InnoMaker's page of the LD06.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hilsim.errors import require
from hilsim.geometry.frames import Vector

_TFMINI_FRAME_BITS = 90
ZERO: Vector = (0.0, 0.0, 0.0)
BAUDS = (9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600)
FARTHEST_CM = 65_533
"""Largest ``max_distance`` of a message: one more says that nothing is near, and 65535 that nothing is known."""

Orientation = Literal[
    "forward", "forward_right", "right", "backward_right", "backward", "backward_left", "left", "forward_left", "up", "down"
]  # fmt: skip
TfminiModel = Literal["tfmini", "tfmini_plus", "tfmini_s"]
Sf45Rates = Literal["twelve", "eight"]


@dataclass(frozen=True, kw_only=True)
class RangerSpec:
    """What every range sensor on a serial port has.

    Attributes:
        port: The serial device that it is written to.
        baud: Of the port.
        mount_position_m: In the vehicle's body frame (x forward, y left, z up).
        mount_rotation_deg: Roll, pitch, yaw in the body frame; with zeros it looks forward, and a scanner's plane is level.
        range_min_m: Nothing nearer is reported.
        range_max_m: Nothing farther is reported.
        range_noise_m: Standard deviation of the range noise.
    """

    port: str
    baud: int
    mount_position_m: Vector = ZERO
    mount_rotation_deg: Vector = ZERO
    range_min_m: float
    range_max_m: float
    range_noise_m: float = 0.0

    def __post_init__(self) -> None:
        require(*self.rules())

    @property
    def range_code_max_m(self) -> float:
        """Largest range that the sensor's bytes can say."""
        raise NotImplementedError

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield self.port.startswith("/"), f'port must be absolute, such as "/dev/serial/by-id/usb-…", got "{self.port}"'
        yield self.baud in BAUDS, f"baud must be one of {', '.join(map(str, BAUDS))}, got {self.baud}"
        yield all(map(math.isfinite, self.mount_position_m)), f"mount_position_m must be finite, got {self.mount_position_m}"
        yield all(map(math.isfinite, self.mount_rotation_deg)), f"mount_rotation_deg must be finite, got {self.mount_rotation_deg}"
        yield (
            0.0 <= self.range_min_m < self.range_max_m <= self.range_code_max_m,
            f"range_min_m and range_max_m must be 0 <= min < max <= {self.range_code_max_m:g}, got {self.range_min_m} and {self.range_max_m}",
        )
        yield 0.0 <= self.range_noise_m <= 1.0, f"range_noise_m must be 0 to 1, got {self.range_noise_m}"


@dataclass(frozen=True, kw_only=True)
class TfminiSpec(RangerSpec):
    """A Benewake TFmini: one beam, one distance a frame.

    Attributes:
        kind: ``tfmini``; must be given.
        model: ``tfmini``: bytes 6 and 7 say the distance mode, a weak echo is 65535; ``tfmini_plus``: they say the temperature, a weak echo is 0;
            ``tfmini_s``: temperature and 65535.
        rate_hz: Frames a second; the sensor knows 1000 / n, the oldest model only 100 / n.
        temperature_deg_c: Of the chip, where the model tells it.
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
        """ArduPilot takes 327.68 m and more for out of range."""
        return 327.67

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield from super().rules()
        base_hz = 100 if self.model == "tfmini" else 1000
        yield (
            1 <= self.rate_hz <= base_hz and base_hz % self.rate_hz == 0,
            f"rate_hz must be {base_hz} divided by a whole number (model {self.model}), got {self.rate_hz}",
        )
        yield (
            _TFMINI_FRAME_BITS * self.rate_hz <= self.baud,
            f"baud must be at least {_TFMINI_FRAME_BITS * self.rate_hz} for rate_hz {self.rate_hz} (frames of 9 bytes), got {self.baud}",
        )
        yield -40.0 <= self.temperature_deg_c <= 125.0, f"temperature_deg_c must be -40 to 125, got {self.temperature_deg_c}"


@dataclass(frozen=True, kw_only=True)
class Sf45Spec(RangerSpec):
    """A LightWare SF45/B: one beam that swings in its plane; its driver sets rates and fields.

    Attributes:
        kind: ``sf45``; must be given.
        low_angle_deg: Where the swing ends on the left, until the driver says otherwise.
        high_angle_deg: Where it ends on the right.
        scan_speed_dps: Speed of the swing at scan speed setting 5. The vendor gives the setting no unit, so it is inversely proportional to the setting here;
            390 is what ArduPilot's own simulator of the sensor takes (``libraries/SITL/SIM_PS_LightWare_SF45B.cpp``).
        scan_speed_setting: Setting at power-up, 5 (fastest) to 2000.
        update_rate: Setting at power-up, 1 to 12, or to 8.
        update_rates: What the setting means: ``twelve``: 50 to 5000 a second, as LightWare's own drivers and PX4 have it; ``eight``: 48 to 388, as ArduPilot has it.
        serial_number: Up to 15 ASCII characters.
    """

    kind: Literal["sf45"] = "sf45"
    baud: int = 921600
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
        """Centimetres in a signed 16-bit number."""
        return 327.67

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield from super().rules()
        most = 12 if self.update_rates == "twelve" else 8
        yield -170.0 <= self.low_angle_deg <= -5.0, f"low_angle_deg must be -170 to -5, got {self.low_angle_deg}"
        yield 5.0 <= self.high_angle_deg <= 170.0, f"high_angle_deg must be 5 to 170, got {self.high_angle_deg}"
        yield 1.0 <= self.scan_speed_dps <= 5000.0, f"scan_speed_dps must be 1 to 5000, got {self.scan_speed_dps}"
        yield 5 <= self.scan_speed_setting <= 2000, f"scan_speed_setting must be 5 to 2000, got {self.scan_speed_setting}"
        yield 1 <= self.update_rate <= most, f"update_rate must be 1 to {most} (update_rates {self.update_rates}), got {self.update_rate}"
        yield (
            0 < len(self.serial_number) <= 15 and self.serial_number.isascii() and self.serial_number.isprintable(),
            f'serial_number must be 1 to 15 printable ASCII characters, got "{self.serial_number}"',
        )


@dataclass(frozen=True, kw_only=True)
class Ld06Spec(RangerSpec):
    """An LDROBOT LD06: a beam that turns clockwise, 4500 points a second.

    Attributes:
        kind: ``ld06``; must be given.
        speed_dps: Of the head; 5 to 13 turns a second.
    """

    kind: Literal["ld06"] = "ld06"
    baud: int = 230400
    range_min_m: float = 0.02
    range_max_m: float = 12.0
    speed_dps: int = 3600

    @property
    def range_code_max_m(self) -> float:
        """Millimetres in an unsigned 16-bit number."""
        return 65.535

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield from super().rules()
        yield 1800 <= self.speed_dps <= 4680, f"speed_dps must be 1800 to 4680, got {self.speed_dps}"
        yield self.baud >= 230400, f"baud must be at least 230400 (375 packets of 47 bytes a second), got {self.baud}"


@dataclass(frozen=True, kw_only=True)
class ScanMessageSpec:
    """What the two MAVLink messages made of a lidar's scan have in common.

    Attributes:
        sensor: The lidar whose scan it is.
        rate_hz: Messages a second; both autopilots take nothing for known 0.5 s after the last.
        range_min_m: Nothing nearer counts.
        range_max_m: Nothing farther counts.
    """

    sensor: str
    rate_hz: float = 15.0
    range_min_m: float = 0.5
    range_max_m: float = 100.0

    def __post_init__(self) -> None:
        require(*self.rules())

    @property
    def min_cm(self) -> int:
        """As the message says it."""
        return round(self.range_min_m * 100.0)

    @property
    def max_cm(self) -> int:
        """As the message says it."""
        return round(self.range_max_m * 100.0)

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield bool(self.sensor), "sensor must not be empty"
        yield 4.0 <= self.rate_hz <= 50.0, f"rate_hz must be 4 to 50, got {self.rate_hz}"
        farthest_m = FARTHEST_CM / 100.0
        yield (
            0.0 <= self.range_min_m < self.range_max_m <= farthest_m,
            f"range_min_m and range_max_m must be 0 <= min < max <= {farthest_m:g}, got {self.range_min_m} and {self.range_max_m}",
        )


@dataclass(frozen=True, kw_only=True)
class ObstacleSpec(ScanMessageSpec):
    """OBSTACLE_DISTANCE made of a lidar's scan.

    Attributes:
        low_m: Lower end of the height band that counts, relative to the vehicle.
        high_m: Upper end.
    """

    low_m: float = -0.5
    high_m: float = 0.5

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield from super().rules()
        yield (
            -1000.0 <= self.low_m < self.high_m <= 1000.0,
            f"low_m and high_m must be -1000 <= low < high <= 1000, got {self.low_m} and {self.high_m}",
        )


@dataclass(frozen=True, kw_only=True)
class DistanceSensorSpec(ScanMessageSpec):
    """DISTANCE_SENSOR made of a lidar's scan.

    Attributes:
        orientation: Where the message's beam looks in the body; the autopilot's RNGFND or SENS parameter must say the same.
        width_deg: Full angle of the cone whose nearest return counts.
        sensor_id: Of the message.
    """

    orientation: Orientation = "forward"
    width_deg: float = 5.0
    sensor_id: int = 0

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Every rule with its fault."""
        yield from super().rules()
        yield 0.1 <= self.width_deg <= 90.0, f"width_deg must be 0.1 to 90, got {self.width_deg}"
        yield 0 <= self.sensor_id <= 255, f"sensor_id must be 0 to 255, got {self.sensor_id}"
