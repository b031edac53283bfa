"""``hilsim``'s own vehicle, stepped and read through its public functions: what the controller proves that it can fly."""

import numpy as np

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.parts.vehicle.autopilot.breaking import weakened
from hilsim.parts.vehicle.physics.contact import no_planes, plane_through
from hilsim.parts.vehicle.physics.gps import build_gps, gps_fix
from hilsim.parts.vehicle.physics.imu import accelerometer, build_imu, gyroscope
from hilsim.parts.vehicle.physics.magnetism import magnetic_field
from hilsim.parts.vehicle.physics.magnetometer import build_magnetometer, magnetometer
from hilsim.parts.vehicle.physics.multirotor import advance, build_multirotor, orientation_of, position_of, state_at, velocity_of
from hilsim.parts.vehicle.physics.pressure import barometer, build_pressure_sensors, differential_pressure
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.world.geometry.geodesy import HomeSpec, build_home, geodetic_at
from hilsim.world.geometry.rotations import conjugate, rotate
from hilsim.world.platforms.wind import WindSpec, build_wind, wind_at, wind_from
from tests.controllers.puppet import Reading

HOME = HomeSpec(latitude_deg=47.397742, longitude_deg=8.545594, altitude_m=488.0)
_YEAR = 2026.5
_STEP_NS = 1_000_000


def profile(name):
    path = profiles_directory() / "vehicles" / f"{name}.toml"
    return parse_table(VehicleSpec, read_toml(path), str(path))


class Aircraft:
    """A vehicle on level ground at ``HOME``, facing east."""

    def __init__(self, name="iris", *, wind=None, seed=1, period_us=4000, faults=None):
        spec = profile(name)
        self.faults = faults
        sensors = spec.sensors
        self.multirotor = build_multirotor(spec, step_ns=_STEP_NS)
        self.state = state_at(self.multirotor, (0.0, 0.0, -min(leg[2] for leg in spec.legs)))
        self.ground = np.tile(plane_through((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (len(self.multirotor.point), 1))
        self.obstacles = no_planes(0)
        self.wind = build_wind(wind or WindSpec(), seed, 0)
        self.wind_state = wind_from(self.wind, 0)
        self.home = build_home(HOME)
        field = magnetic_field(HOME.latitude_deg, HOME.longitude_deg, HOME.altitude_m, _YEAR)
        self.imu = build_imu(sensors.imu, seed, 0, period_us * 1000)
        self.magnetometer = build_magnetometer(sensors.magnetometer, seed, 0, field)
        self.pressure = build_pressure_sensors(sensors.barometer, sensors.pitot, seed, 0)
        self.gps = build_gps(sensors.gps, seed, 0, self.home)
        self.felt = np.zeros(6)
        self.felt[2] = self.multirotor.airframe.gravity_mps2
        self.air = (0.0, 0.0, 0.0)
        self.track = []

    @property
    def crashed(self):
        return bool(self.state.crashed[0])

    @property
    def height_m(self):
        """Of the legs' tips above the ground, when level."""
        return position_of(self.state)[2] + float(self.multirotor.point[: self.multirotor.legs, 2].min())

    def advance(self, now_us, controls):
        """Fly until a time with the motors at ``controls``."""
        steps = (now_us * 1000 - int(self.state.time_ns[0])) // _STEP_NS
        if steps <= 0:
            return
        wind = wind_at(self.wind, self.wind_state, int(self.state.time_ns[0]))
        self.air = wind
        command = np.asarray(controls[:4], dtype=np.float64)
        if self.faults is not None:
            command = weakened(self.faults, self.multirotor, command, now_us * 1000)
        advance(self.multirotor, self.state, command, wind, self.ground, self.obstacles, int(steps), self.felt)
        self.track.append((now_us, *position_of(self.state)))

    def reading(self):
        now_ns = int(self.state.time_ns[0])
        position, velocity, q = position_of(self.state), velocity_of(self.state), orientation_of(self.state)
        altitude = geodetic_at(self.home, position)[2]
        pressure, _, temperature = barometer(self.pressure, now_ns, altitude)
        through = rotate(conjugate(q), tuple(v - w for v, w in zip(velocity, self.air, strict=True)))
        fix = gps_fix(self.gps, now_ns, position, velocity)
        return Reading(
            force=np.array(accelerometer(self.imu, now_ns, (float(self.felt[0]), float(self.felt[1]), float(self.felt[2])))),
            rates=np.array(gyroscope(self.imu, now_ns, (float(self.felt[3]), float(self.felt[4]), float(self.felt[5])))),
            field=np.array(magnetometer(self.magnetometer, now_ns, q)),
            pressure=pressure,
            dynamic=differential_pressure(self.pressure, now_ns, altitude, through),
            temperature=temperature,
            fix={
                "fix_type": fix.fix_type,
                "lat": fix.latitude_dege7,
                "lon": fix.longitude_dege7,
                "alt": fix.altitude_mm,
                "eph": fix.eph_cm,
                "epv": fix.epv_cm,
                "vel": fix.speed_cmps,
                "vn": fix.north_cmps,
                "ve": fix.east_cmps,
                "vd": fix.down_cmps,
                "cog": fix.course_cdeg,
                "satellites_visible": fix.satellites,
            },
        )
