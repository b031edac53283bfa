"""Readings of a vehicle's sensors as messages to a controller: groups of fields, each at its own rate."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, kernel
from hilsim.parts.vehicle.physics.gps import Gps, build_gps, gps_fix
from hilsim.parts.vehicle.physics.imu import Imu, accelerometer, build_imu, gyroscope
from hilsim.parts.vehicle.physics.magnetism import magnetic_field
from hilsim.parts.vehicle.physics.magnetometer import Magnetometer, build_magnetometer, magnetometer
from hilsim.parts.vehicle.physics.multirotor import MultirotorState, orientation_of, position_of, velocity_of
from hilsim.parts.vehicle.physics.pressure import PressureSensors, barometer, build_pressure_sensors, differential_pressure
from hilsim.parts.vehicle.physics.sensor_specs import SensorsSpec
from hilsim.world.geometry.geodesy import Home, HomeSpec, build_home, geodetic_at
from hilsim.world.geometry.rotations import conjugate, rotate
from hilsim.world.platforms.live import LivePose, live_motion

IMU_FIELDS, MAGNETOMETER_FIELDS, BAROMETER_FIELDS, PITOT_FIELDS = 0x03F, 0x1C0, 0x1A00, 0x400
"""Bits of ``HIL_SENSOR.fields_updated``: PX4 reads a sensor when all its bits are set."""
RESET_FIELD = 0x8000_0000
"""Bit that reports a restart of the simulation."""


@by_reference
class Instruments(NamedTuple):
    """Sensors of a vehicle for kernels.

    Attributes:
        imu: IMU, read in every frame.
        magnetometer: Magnetometer, read in one of ``magnetometer_every`` frames.
        pressure: Pressure sensors, read in one of ``barometer_every`` frames.
        gps: Satellite receiver, with messages of its own.
        home: Home of the world on the Earth.
        frame_ns: Interval between sensor frames.
        magnetometer_every: Number of frames per magnetometer reading.
        barometer_every: Number of frames per barometer reading.
        gps_ns: Interval between GPS positions.
        gps_latency_ns: Age of a position when it is sent.
    """

    imu: Imu
    magnetometer: Magnetometer
    pressure: PressureSensors
    gps: Gps
    home: Home
    frame_ns: int
    magnetometer_every: int
    barometer_every: int
    gps_ns: int
    gps_latency_ns: int


def build_instruments(
    spec: SensorsSpec, home: HomeSpec, *, seed: int, year: float, frame_ns: int, magnetometer_every: int, barometer_every: int, gps_ns: int
) -> Instruments:
    """Build the sensors of a vehicle at a home, in a decimal year (of the magnetic field)."""
    at_home = build_home(home)
    field = magnetic_field(home.latitude_deg, home.longitude_deg, home.altitude_m, year)
    return Instruments(
        imu=build_imu(spec.imu, seed, 0, frame_ns),
        magnetometer=build_magnetometer(spec.magnetometer, seed, 0, field),
        pressure=build_pressure_sensors(spec.barometer, spec.pitot, seed, 0),
        gps=build_gps(spec.gps, seed, 0, at_home),
        home=at_home,
        frame_ns=frame_ns,
        magnetometer_every=magnetometer_every,
        barometer_every=barometer_every,
        gps_ns=gps_ns,
        gps_latency_ns=spec.gps.latency_ns,
    )


@kernel
def fill_sensor(
    instruments: Instruments,
    state: MultirotorState,
    wind_mps: tuple[float, float, float],
    imu_means: npt.NDArray[np.float64],
    frame: int,
    time_us: int,
    record: npt.NDArray[Any],
) -> None:
    """Write a HIL_SENSOR record; fields that are not updated keep their last value.

    Args:
        instruments: Sensors of the vehicle.
        state: State of the vehicle; its own time selects the noise.
        wind_mps: Velocity of the air in the world.
        imu_means: ``float64[6]``, mean specific force and rates since the previous frame, body FLU.
        frame: Number of the frame.
        time_us: Time in the message.
        record: ``HIL_SENSOR_DTYPE[1]``, output.
    """
    message = record[0]
    now_ns = state.time_ns[0]
    message.time_usec = time_us
    message.xacc, message.yacc, message.zacc = accelerometer(instruments.imu, now_ns, (imu_means[0], imu_means[1], imu_means[2]))
    message.xgyro, message.ygyro, message.zgyro = gyroscope(instruments.imu, now_ns, (imu_means[3], imu_means[4], imu_means[5]))
    updated = IMU_FIELDS
    if frame % instruments.magnetometer_every == 0:
        message.xmag, message.ymag, message.zmag = magnetometer(instruments.magnetometer, now_ns, orientation_of(state))
        updated |= MAGNETOMETER_FIELDS
    if frame % instruments.barometer_every == 0:
        _, _, altitude_m = geodetic_at(instruments.home, position_of(state))
        message.abs_pressure, message.pressure_alt, message.temperature = barometer(instruments.pressure, now_ns, altitude_m)
        vx, vy, vz = velocity_of(state)
        air = rotate(conjugate(orientation_of(state)), (vx - wind_mps[0], vy - wind_mps[1], vz - wind_mps[2]))
        message.diff_pressure = differential_pressure(instruments.pressure, now_ns, altitude_m, air)
        updated |= BAROMETER_FIELDS | PITOT_FIELDS
    message.fields_updated = updated


@kernel
def fill_gps(instruments: Instruments, live: LivePose, rig_ns: int, physics_ns: int, utc_epoch_ns: int, record: npt.NDArray[Any]) -> None:
    """Write a HIL_GPS record: the vehicle's position ``gps_latency_ns`` ago, with the UTC of that time.

    Args:
        instruments: Sensors of the vehicle.
        live: Latest states of the vehicle.
        rig_ns: Current rig time.
        physics_ns: The vehicle's own time, which selects the noise.
        utc_epoch_ns: UTC of rig time 0.
        record: ``HIL_GPS_DTYPE[1]``, output.
    """
    then_ns = rig_ns - instruments.gps_latency_ns
    position, velocity = live_motion(live, then_ns)
    fix = gps_fix(instruments.gps, physics_ns, position, velocity)
    message = record[0]
    message.time_usec = (utc_epoch_ns + then_ns) // 1000
    message.lat, message.lon, message.alt = fix.latitude_dege7, fix.longitude_dege7, fix.altitude_mm
    message.eph, message.epv, message.vel = fix.eph_cm, fix.epv_cm, fix.speed_cmps
    message.vn, message.ve, message.vd = fix.north_cmps, fix.east_cmps, fix.down_cmps
    message.cog, message.fix_type, message.satellites_visible = fix.course_cdeg, fix.fix_type, fix.satellites
