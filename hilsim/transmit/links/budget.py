"""Data rate of a link: bytes per second in each direction, the highest sensor rate that fits, or an error with the figures.

Sources: a byte of 8N1 is ten bits. PX4 v1.12 (src/modules/mavlink/mavlink_main.cpp) gives a UART a data rate of baud / 20 by default (-r changes it) and a
USB port 800,000 bytes/s, enables hardware-in-the-loop only above 5000 bytes/s, and reduces the rates of all its streams equally when they exceed the rate. Measured on
it: its streams take 19.7 kB/s (on USB 38.9), of which 196 Hz HIL_ACTUATOR_CONTROLS; at 5760 bytes/s it sent 55.5 Hz of them; it flies with 50 Hz of sensors and does not
become ready when 250 Hz are pushed through 115200 baud.
"""

from dataclasses import dataclass

from hilsim.errors import LinkError, require, within
from hilsim.transmit.links.line import BITS_PER_BYTE, Line, LineKind

SLOWEST_SENSOR_HZ = 50.0
"""Lowest sensor rate at which a flight was observed."""

_FRAME_BYTES = {  # largest frames: fields are not always small enough for a truncated frame
    "sensor_hz": 76,  # HIL_SENSOR without an id
    "gps_hz": 51,
    "heartbeat_hz": 21,
    "system_time_hz": 24,
    "timesync_hz": 28,
    "distance_hz": 51,
    "obstacle_hz": 179,
    "state_quaternion_hz": 76,
}
_USABLE = 0.95  # of a UART: clocks differ by some per cent, and a receiver that is full for a moment must be able to catch up
_USB_BYTES_PER_S = 800_000
_HIL_NEEDS_BYTES_PER_S = 5000
_STREAMS_BYTES_PER_S = 19_700
_USB_STREAMS_BYTES_PER_S = 38_900
_ACTUATOR_HZ = 196.0


@dataclass(frozen=True, kw_only=True)
class LinkRates:
    """Rate of each message to the controller, in Hz.

    Attributes:
        sensor_hz: Rate of HIL_SENSOR.
        gps_hz: Rate of HIL_GPS.
        heartbeat_hz: Rate of HEARTBEAT.
        system_time_hz: Rate of SYSTEM_TIME.
        timesync_hz: Rate of answers to TIMESYNC.
        distance_hz: Rate of DISTANCE_SENSOR, of all sensors together.
        obstacle_hz: Rate of OBSTACLE_DISTANCE.
        state_quaternion_hz: Rate of HIL_STATE_QUATERNION; only on a network.
        station_bytes_per_s: Data rate of frames from ground stations.
    """

    sensor_hz: float = 250.0
    gps_hz: float = 10.0
    heartbeat_hz: float = 1.0
    system_time_hz: float = 1.0
    timesync_hz: float = 10.0
    distance_hz: float = 0.0
    obstacle_hz: float = 0.0
    state_quaternion_hz: float = 0.0
    station_bytes_per_s: float = 1000.0

    def __post_init__(self) -> None:
        require(
            (SLOWEST_SENSOR_HZ <= self.sensor_hz <= 1000, f"sensor_hz must be {SLOWEST_SENSOR_HZ:g} to 1000, got {self.sensor_hz:g}"),
            (self.station_bytes_per_s > 0, f"station_bytes_per_s must be positive, got {self.station_bytes_per_s:g}"),
            *within(self, **{name: (0, 1000) for name in _FRAME_BYTES if name != "sensor_hz"}),
        )


@dataclass(frozen=True, kw_only=True)
class LinkBudget:
    """Data rates of a link.

    Attributes:
        sensor_hz: Rate of HIL_SENSOR, as requested or reduced.
        asked_sensor_hz: Requested rate of HIL_SENSOR.
        line_bytes_per_s: Capacity of the line in each direction; None for no limit.
        uplink_bytes_per_s: Data rate to the controller.
        downlink_bytes_per_s: Data rate from the controller.
        actuator_hz: Expected rate of HIL_ACTUATOR_CONTROLS from PX4.
    """

    sensor_hz: float
    asked_sensor_hz: float
    line_bytes_per_s: float | None
    uplink_bytes_per_s: float
    downlink_bytes_per_s: float
    actuator_hz: float

    @property
    def is_lowered(self) -> bool:
        """Whether the sensor rate is lower than requested."""
        return self.sensor_hz < self.asked_sensor_hz


def plan_link(rates: LinkRates, *, line: Line, controller_bytes_per_s: float | None = None, may_lower: bool = True) -> LinkBudget:
    """Compute the data rates of a link; the rate of HIL_SENSOR is reduced to fit, in whole Hz.

    Args:
        rates: Rates of the messages to send.
        line: Line that carries them.
        controller_bytes_per_s: Controller's own limit (PX4: ``-r``, MAV_n_RATE); None for its default.
        may_lower: Whether the sensor rate may be reduced; otherwise an excess is an error.

    Raises:
        LinkError: no rate from ``SLOWEST_SENSOR_HZ`` fits, or the requested one does not and must not be reduced; the controller would not enable
            hardware-in-the-loop; or HIL_STATE_QUATERNION is requested on a serial line.
    """
    if rates.state_quaternion_hz and line.kind is not LineKind.NETWORK:
        raise LinkError(
            f"state_quaternion_hz must be 0 on a serial line, got {rates.state_quaternion_hz:g}: there PX4 takes it for its own estimate and never gets ready"
        )
    sensor_hz = _fitting_sensor_hz(rates, line, may_lower=may_lower)
    downlink_bytes_per_s = _downlink(line, controller_bytes_per_s)
    return LinkBudget(
        sensor_hz=sensor_hz,
        asked_sensor_hz=rates.sensor_hz,
        line_bytes_per_s=line.bytes_per_s,
        uplink_bytes_per_s=_without_sensors(rates) + sensor_hz * _FRAME_BYTES["sensor_hz"],
        downlink_bytes_per_s=downlink_bytes_per_s,
        actuator_hz=_ACTUATOR_HZ * downlink_bytes_per_s / _streams_bytes_per_s(line),
    )


def _without_sensors(rates: LinkRates) -> float:
    return rates.station_bytes_per_s + sum(float(getattr(rates, name)) * size for name, size in _FRAME_BYTES.items() if name != "sensor_hz")


def _fitting_sensor_hz(rates: LinkRates, line: Line, *, may_lower: bool) -> float:
    if line.bytes_per_s is None:
        return rates.sensor_hz
    others = _without_sensors(rates)
    fits_hz = (_USABLE * line.bytes_per_s - others) / _FRAME_BYTES["sensor_hz"]
    if fits_hz >= rates.sensor_hz:
        return rates.sensor_hz
    fits_hz = float(max(int(fits_hz), 0))
    if may_lower and fits_hz >= SLOWEST_SENSOR_HZ:
        return fits_hz
    needs_hz = SLOWEST_SENSOR_HZ if may_lower else rates.sensor_hz
    needs = needs_hz * _FRAME_BYTES["sensor_hz"] + others
    raise LinkError(
        f"the line must carry {needs:.0f} bytes/s ({needs_hz:g} Hz HIL_SENSOR at {_FRAME_BYTES['sensor_hz']} bytes, {others:.0f} for all else), got "
        f"{_USABLE * line.bytes_per_s:.0f} of {line.baud} baud, which fits {fits_hz:g} Hz: set at least {_baud_for(needs)} baud on both sides"
        + ("" if may_lower or fits_hz < SLOWEST_SENSOR_HZ else f", or a sensor rate of at most {fits_hz:g} Hz")
    )


def _streams_bytes_per_s(line: Line) -> float:
    return _USB_STREAMS_BYTES_PER_S if line.kind is LineKind.USB else _STREAMS_BYTES_PER_S


def _baud_for(bytes_per_s: float) -> int:
    usual = (57_600, 115_200, 230_400, 460_800, 921_600, 1_500_000, 3_000_000)
    return next((baud for baud in usual if _USABLE * baud / BITS_PER_BYTE >= bytes_per_s), usual[-1])


def _downlink(line: Line, controller_bytes_per_s: float | None) -> float:
    default = _USB_BYTES_PER_S if line.bytes_per_s is None else line.bytes_per_s / 2
    limit = default if controller_bytes_per_s is None else controller_bytes_per_s
    if line.kind is not LineKind.NETWORK and limit <= _HIL_NEEDS_BYTES_PER_S:
        raise LinkError(
            f"the controller's data rate must be above {_HIL_NEEDS_BYTES_PER_S} bytes/s, or PX4 does not switch hardware-in-the-loop on, got {limit:.0f} at {line.baud} "
            "baud: use at least 115200 baud, or set the port's rate on the controller (MAV_n_RATE)"
        )
    return min(limit, _streams_bytes_per_s(line), line.bytes_per_s if line.bytes_per_s is not None else limit)
