"""A satellite receiver, in MAVLink's HIL_GPS units: degrees * 1e7, mm above mean sea level, cm, cm/s, centidegrees."""

import math
from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.parts.vehicle.physics.noise import drift, key_interval_ns, white
from hilsim.parts.vehicle.physics.sensor_specs import GpsSpec
from hilsim.rng import Purpose
from hilsim.units import TURN_CDEG
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.geodesy import Home, geodetic_at

_POSITION = constant(Purpose.GPS_POSITION)
_DRIFT = constant(Purpose.GPS_DRIFT)
_VELOCITY = constant(Purpose.GPS_VELOCITY)
NO_FIX, FIX_3D = 1, 3
"""MAVLink's GPS_FIX_TYPE."""
UNKNOWN_COURSE = 65_535
MAX_CM, MAX_CMPS = 65_534, 32_767
"""Largest accuracy and speed, and largest velocity, of a message."""
_SLOW_MPS = 0.1  # a receiver reports no course below this speed


class Gps(NamedTuple):
    """A receiver for kernels; build with ``build_gps``. Further attributes as in ``GpsSpec``.

    Attributes:
        seed: Random seed of the rig.
        stream: Number of the vehicle in the rig.
        home: Home of the world.
        on_ns: Rig time at which it is switched on.
        interval_ns: Time between the keys of the slow error.
    """

    seed: np.uint64
    stream: int
    home: Home
    on_ns: int
    interval_ns: int
    noise_horizontal_m: float
    noise_vertical_m: float
    drift_horizontal_m: float
    drift_vertical_m: float
    noise_velocity_mps: float
    eph_m: float
    epv_m: float
    first_eph_m: float
    settling_s: float
    fix_eph_m: float
    satellites: int


class GpsFix(NamedTuple):
    """Message of a receiver. Without a fix all fields but ``fix_type``, ``eph_cm`` and ``epv_cm`` are 0 and the course is unknown.

    Attributes:
        fix_type: ``NO_FIX`` or ``FIX_3D``.
        latitude_dege7: Latitude, WGS-84.
        longitude_dege7: Longitude, WGS-84.
        altitude_mm: Altitude above mean sea level.
        eph_cm: Horizontal accuracy, at most 65534.
        epv_cm: Vertical accuracy.
        speed_cmps: Speed over ground.
        north_cmps: Velocity north.
        east_cmps: Velocity east.
        down_cmps: Velocity down.
        course_cdeg: Course over ground, 0 to 35999, or ``UNKNOWN_COURSE`` below 0.1 m/s.
        satellites: Number of satellites used.
    """

    fix_type: int
    latitude_dege7: int
    longitude_dege7: int
    altitude_mm: int
    eph_cm: int
    epv_cm: int
    speed_cmps: int
    north_cmps: int
    east_cmps: int
    down_cmps: int
    course_cdeg: int
    satellites: int


def build_gps(spec: GpsSpec, seed: int, stream: int, home: Home, *, on_ns: int = 0) -> Gps:
    """Build the receiver of ``spec`` at a home, switched on at rig time ``on_ns``."""
    return Gps(
        seed=np.uint64(seed),
        stream=int(stream),
        home=home,
        on_ns=int(on_ns),
        interval_ns=key_interval_ns(spec.drift_s),
        noise_horizontal_m=float(spec.noise_horizontal_m),
        noise_vertical_m=float(spec.noise_vertical_m),
        drift_horizontal_m=float(spec.drift_horizontal_m),
        drift_vertical_m=float(spec.drift_vertical_m),
        noise_velocity_mps=float(spec.noise_velocity_mps),
        eph_m=float(spec.eph_m),
        epv_m=float(spec.epv_m),
        first_eph_m=float(spec.first_eph_m),
        settling_s=float(spec.settling_s),
        fix_eph_m=float(spec.fix_eph_m),
        satellites=int(spec.satellites),
    )


@kernel
def _rounded(value: float, most: int) -> int:
    return int(min(max(math.floor(value + 0.5), -most), most))


@kernel
def course_cdeg(east: float, north: float, speed: float) -> int:
    """Course of a velocity, 0 to 35999, or ``UNKNOWN_COURSE`` below 0.1 m/s; all arguments are m/s."""
    if speed < _SLOW_MPS:
        return UNKNOWN_COURSE
    return math.floor(math.degrees(math.atan2(east, north)) * 100.0 + 0.5) % TURN_CDEG


@kernel
def gps_fix(gps: Gps, time_ns: int, position_m: Vector, velocity_mps: Vector) -> GpsFix:
    """Message for a position and a velocity in the world; the sender applies the latency."""
    running_s = (time_ns - gps.on_ns) * 1e-9
    waning = math.exp(-max(running_s, 0.0) / gps.settling_s)
    eph_m = gps.eph_m + (gps.first_eph_m - gps.eph_m) * waning
    epv_m = gps.epv_m + max(gps.first_eph_m - gps.epv_m, 0.0) * waning
    eph_cm, epv_cm = _rounded(100.0 * eph_m, MAX_CM), _rounded(100.0 * epv_m, MAX_CM)
    if running_s < 0.0 or eph_m > gps.fix_eph_m:
        return GpsFix(NO_FIX, 0, 0, 0, eph_cm, epv_cm, 0, 0, 0, 0, UNKNOWN_COURSE, 0)
    nx, ny, nz = white(gps.seed, gps.stream, time_ns, _POSITION)
    wx, wy, wz = drift(gps.seed, gps.stream, time_ns, gps.interval_ns, _DRIFT)
    ex, ey, ez = white(gps.seed, gps.stream, time_ns, _VELOCITY)
    x = position_m[0] + gps.noise_horizontal_m * nx + gps.drift_horizontal_m * wx
    y = position_m[1] + gps.noise_horizontal_m * ny + gps.drift_horizontal_m * wy
    z = position_m[2] + gps.noise_vertical_m * nz + gps.drift_vertical_m * wz
    latitude, longitude, altitude = geodetic_at(gps.home, (x, y, z))
    east = velocity_mps[0] + gps.noise_velocity_mps * ex
    north = velocity_mps[1] + gps.noise_velocity_mps * ey
    down = -velocity_mps[2] + gps.noise_velocity_mps * ez
    speed = math.sqrt(east * east + north * north)
    return GpsFix(
        FIX_3D,
        math.floor(latitude * 1e7 + 0.5),
        math.floor(longitude * 1e7 + 0.5),
        math.floor(altitude * 1000.0 + 0.5),
        eph_cm,
        epv_cm,
        _rounded(100.0 * speed, MAX_CM),
        _rounded(100.0 * north, MAX_CMPS),
        _rounded(100.0 * east, MAX_CMPS),
        _rounded(100.0 * down, MAX_CMPS),
        course_cdeg(east, north, speed),
        gps.satellites,
    )
