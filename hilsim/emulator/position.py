"""Position packets of a lidar: stamp, PPS state and the receiver's sentence, written without Python objects."""

import math

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, kernel
from hilsim.emulator.plan import Family, Gps, LidarPlan
from hilsim.packets.cepton_info import write_sync_offset
from hilsim.packets.nmea import GPRMC_CAPACITY, write_gprmc
from hilsim.packets.velodyne_position import encode_position_packet
from hilsim.sensor.clock import DeviceClock, rig_from_device, stamp_us, utc_lead_us
from hilsim.vehicle.carrier import Carrier, carrier_state

_CEPTON = constant(Family.CEPTON)
_BILLION = 1_000_000_000
_SPEED_SPAN_NS = 100_000_000
_PPS_ABSENT = 0
_PPS_LOCKED = 2
# WGS-84 (NIMA TR8350.2): semi-major axis and first eccentricity squared.
_SEMI_MAJOR_M = 6_378_137.0
_ECCENTRICITY_SQUARED = 6.69437999014e-3


@kernel
def geodetic(latitude_deg: float, longitude_deg: float, east_m: float, north_m: float) -> tuple[float, float]:
    """Latitude and longitude (deg) of a point east and north of a reference, on the WGS-84 radii at the reference.

    The tangent-plane approximation is off by about d^2 / 12,700 km in the along-track direction: 8 cm at 1 km.
    """
    sine = math.sin(math.radians(latitude_deg))
    root = math.sqrt(1.0 - _ECCENTRICITY_SQUARED * sine * sine)
    prime_vertical_m = _SEMI_MAJOR_M / root
    meridian_m = _SEMI_MAJOR_M * (1.0 - _ECCENTRICITY_SQUARED) / (root * root * root)
    latitude = latitude_deg + math.degrees(north_m / meridian_m)
    longitude = longitude_deg + math.degrees(east_m / (prime_vertical_m * math.cos(math.radians(latitude_deg))))
    return latitude, (longitude + 180.0) % 360.0 - 180.0


@kernel
def write_sentence(clock: DeviceClock, gps: Gps, carrier: Carrier, rig_ns: int, sentence: npt.NDArray[np.uint8]) -> int:
    """Write the sentence the sensor holds at ``rig_ns``; returns its size, 0 without a receiver.

    It names the second in progress once it has arrived (``sentence_delay_ns`` after the pulse), the one before until then, and the position at
    the start of the second it names.
    """
    if not gps.present:
        return 0
    second = (clock.utc_epoch_ns + rig_ns - gps.sentence_delay_ns) // _BILLION
    fix_ns = second * _BILLION - clock.utc_epoch_ns
    before, _ = carrier_state(carrier, fix_ns - _SPEED_SPAN_NS)
    now, _ = carrier_state(carrier, fix_ns)
    east_mps = (now[0] - before[0]) * 1e9 / _SPEED_SPAN_NS
    north_mps = (now[1] - before[1]) * 1e9 / _SPEED_SPAN_NS
    speed_mps = math.hypot(east_mps, north_mps)
    course_deg = math.degrees(math.atan2(east_mps, north_mps)) % 360.0 if speed_mps > 0.0 else 0.0
    latitude, longitude = geodetic(gps.latitude_deg, gps.longitude_deg, now[0] - gps.origin_east_m, now[1] - gps.origin_north_m)
    return write_gprmc(second, gps.valid, latitude, longitude, speed_mps, course_deg, sentence)


@kernel
def encode_position(clock: DeviceClock, gps: Gps, carrier: Carrier, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet assembled at ``device_ns`` to ``payload[:512]``."""
    sentence = np.empty(GPRMC_CAPACITY, np.uint8)
    size = write_sentence(clock, gps, carrier, rig_from_device(clock, device_ns), sentence)
    pps = _PPS_LOCKED if clock.follows_pulse else _PPS_ABSENT
    encode_position_packet(stamp_us(clock, device_ns), pps, sentence, size, payload)


@kernel
def encode_info(plan: LidarPlan, carrier: Carrier, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the position packet assembled at ``device_ns``, or a Cepton-style sensor's information, to ``payload[: plan.info_size]``."""
    if plan.family == _CEPTON:
        payload[: plan.info_size] = plan.info
        if plan.clock.follows_pulse:
            write_sync_offset(utc_lead_us(plan.clock, device_ns), payload)
    else:
        encode_position(plan.clock, plan.gps, carrier, device_ns, payload)


@kernel
def position_deadline_ns(plan: LidarPlan, device_ns: int) -> int:
    """Rig time at which the position or information packet assembled at ``device_ns`` is due."""
    return rig_from_device(plan.clock, device_ns) + plan.position.latency_ns + plan.data_latency_ns
