"""A vehicle's sensors as data. Every default is a published figure, or marked "recommended"."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from hilsim.errors import require, within

_STANDARD_GRAVITY_MPS2 = 9.80665


@dataclass(frozen=True, kw_only=True)
class ImuSpec:
    """Accelerometer and gyroscope: white noise, drifting bias, range.

    Noise and ranges: InvenSense MPU-6000 product specification PS-MPU-6000A-00 rev 3.4, sections 6.1 and 6.2 (0.005 deg/s/sqrt(Hz), 400 ug/sqrt(Hz);
    full scale 2000 deg/s and 16 g). Bias drift: AirSim's ``ImuSimpleParams.hpp`` (36 ug over 800 s, 4.6 deg/h over 500 s, after Greenheck 2009). The
    sensor is assumed to be calibrated: no other bias.

    Attributes:
        accelerometer_noise_mps2_per_sqrt_hz: White noise density.
        accelerometer_drift_mps2: Standard deviation of the bias.
        accelerometer_drift_s: Correlation time of the bias.
        accelerometer_range_mps2: Largest reading on an axis.
        gyroscope_noise_radps_per_sqrt_hz: White noise density.
        gyroscope_drift_radps: Standard deviation of the bias.
        gyroscope_drift_s: Correlation time of the bias.
        gyroscope_range_radps: Largest reading on an axis.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {
        "accelerometer_wander_mps2": "accelerometer_drift_mps2",
        "accelerometer_wander_s": "accelerometer_drift_s",
        "gyroscope_wander_radps": "gyroscope_drift_radps",
        "gyroscope_wander_s": "gyroscope_drift_s",
    }

    accelerometer_noise_mps2_per_sqrt_hz: float = 400e-6 * _STANDARD_GRAVITY_MPS2
    accelerometer_drift_mps2: float = 36e-6 * _STANDARD_GRAVITY_MPS2
    accelerometer_drift_s: float = 800.0
    accelerometer_range_mps2: float = 16.0 * _STANDARD_GRAVITY_MPS2
    gyroscope_noise_radps_per_sqrt_hz: float = math.radians(0.005)
    gyroscope_drift_radps: float = math.radians(4.6 / 3600.0)
    gyroscope_drift_s: float = 500.0
    gyroscope_range_radps: float = math.radians(2000.0)

    def __post_init__(self) -> None:
        require(
            *within(self, accelerometer_noise_mps2_per_sqrt_hz=(0, 10), accelerometer_drift_mps2=(0, 10), accelerometer_drift_s=(1, 100_000)),
            *within(self, gyroscope_noise_radps_per_sqrt_hz=(0, 10), gyroscope_drift_radps=(0, 10), gyroscope_drift_s=(1, 100_000)),
            (self.accelerometer_range_mps2 >= 19.6, f"accelerometer_range_mps2 must be at least 19.6 (2 g), got {self.accelerometer_range_mps2}"),
            (self.gyroscope_range_radps >= 1.0, f"gyroscope_range_radps must be at least 1, got {self.gyroscope_range_radps}"),
        )


@dataclass(frozen=True, kw_only=True)
class MagnetometerSpec:
    """A compass. Noise: PX4's gazebo-classic iris (``models/iris/iris.sdf.jinja``).

    There 4e-4 G/sqrt(Hz) at 100 Hz, and a bias of 6.4e-6 G/s/sqrt(Hz) over 600 s, thus of 6.4e-6 * sqrt(600 / 2) G.

    Attributes:
        noise_gauss: Standard deviation of a reading; above 0, because autopilots treat constant readings as a dead sensor.
        drift_gauss: Standard deviation of the bias.
        drift_s: Correlation time of the bias.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"wander_gauss": "drift_gauss", "wander_s": "drift_s"}

    noise_gauss: float = 4e-4 * math.sqrt(100.0)
    drift_gauss: float = 6.4e-6 * math.sqrt(600.0 / 2.0)
    drift_s: float = 600.0

    def __post_init__(self) -> None:
        require(
            (0.0 < self.noise_gauss <= 1.0, f"noise_gauss must be above 0 and at most 1, got {self.noise_gauss}"),
            *within(self, drift_gauss=(0, 1), drift_s=(1, 100_000)),
        )


@dataclass(frozen=True, kw_only=True)
class BarometerSpec:
    """A barometer. White noise: 1 Pa as PX4's gazebo-classic (``src/gazebo_barometer_plugin.cpp``).

    Weather: AirSim's documentation for PX4 (``PressureFactorSigma`` 0.0001825 over 3600 s).

    Attributes:
        noise_pa: Standard deviation of a reading; above 0, because autopilots treat constant readings as a dead sensor.
        drift_pa: Standard deviation of the slow pressure change of the weather.
        drift_s: Correlation time of that change.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"wander_pa": "drift_pa", "wander_s": "drift_s"}

    noise_pa: float = 1.0
    drift_pa: float = 0.0001825 * 101_325.0
    drift_s: float = 3600.0

    def __post_init__(self) -> None:
        require(
            (0.0 < self.noise_pa <= 1000.0, f"noise_pa must be above 0 and at most 1000, got {self.noise_pa}"),
            *within(self, drift_pa=(0, 5000), drift_s=(1, 100_000)),
        )


@dataclass(frozen=True, kw_only=True)
class PitotSpec:
    """A forward-facing pitot tube. Noise: 0.01 hPa as PX4's gazebo-classic (``src/gazebo_airspeed_plugin.cpp``).

    Attributes:
        noise_pa: Standard deviation of a reading; above 0.
    """

    noise_pa: float = 1.0

    def __post_init__(self) -> None:
        require((0.0 < self.noise_pa <= 1000.0, f"noise_pa must be above 0 and at most 1000, got {self.noise_pa}"))


@dataclass(frozen=True, kw_only=True)
class GpsSpec:
    """A satellite receiver with an open view of the sky.

    Start and accuracy: AirSim and jMAVSim; drift time: gazebo-classic; noise: as flown with PX4 1.12; drift amplitudes: recommended.

    Attributes:
        noise_horizontal_m: Standard deviation of a fix on each horizontal axis, independent from fix to fix.
        noise_vertical_m: Standard deviation of a fix's height.
        drift_horizontal_m: Standard deviation of the slow error on each horizontal axis.
        drift_vertical_m: Standard deviation of the slow error of the height.
        drift_s: Correlation time of the slow error.
        noise_velocity_mps: Standard deviation of each component of the velocity.
        eph_m: Steady-state horizontal accuracy that it reports.
        epv_m: Steady-state vertical accuracy that it reports.
        first_eph_m: Horizontal accuracy that it reports at power-up.
        settling_s: Time constant from the first accuracy to the steady state.
        fix_eph_m: Reported accuracy at which it has a three-dimensional fix.
        satellites: Number of satellites used with a fix.
        latency_ns: Time from a fix to its arrival at the autopilot (PX4's EKF2_GPS_DELAY is 110 ms); the sender applies it.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {
        "wander_horizontal_m": "drift_horizontal_m",
        "wander_vertical_m": "drift_vertical_m",
        "wander_s": "drift_s",
    }

    noise_horizontal_m: float = 0.03
    noise_vertical_m: float = 0.05
    drift_horizontal_m: float = 0.3
    drift_vertical_m: float = 0.5
    drift_s: float = 60.0
    noise_velocity_mps: float = 0.05
    eph_m: float = 0.9
    epv_m: float = 1.2
    first_eph_m: float = 100.0
    settling_s: float = 0.9
    fix_eph_m: float = 3.0
    satellites: int = 12
    latency_ns: int = 110_000_000

    def __post_init__(self) -> None:
        require(
            *within(self, drift_s=(1, 100_000), epv_m=(0.01, 600), satellites=(4, 60), latency_ns=(0, 1_000_000_000)),
            *within(self, noise_horizontal_m=(0, 100), noise_vertical_m=(0, 100), noise_velocity_mps=(0, 100)),
            *within(self, drift_horizontal_m=(0, 100), drift_vertical_m=(0, 100)),
            (0.01 <= self.eph_m < self.fix_eph_m, f"eph_m must be 0.01 to less than fix_eph_m of {self.fix_eph_m}, got {self.eph_m}"),
            (self.eph_m <= self.first_eph_m <= 600.0, f"first_eph_m must be eph_m of {self.eph_m} to 600, got {self.first_eph_m}"),
            (0.0 < self.settling_s <= 600.0, f"settling_s must be above 0 and at most 600, got {self.settling_s}"),
        )


@dataclass(frozen=True, kw_only=True)
class SensorsSpec:
    """Sensors of a vehicle.

    Attributes:
        imu: Accelerometer and gyroscope.
        magnetometer: Compass.
        barometer: Static pressure sensor.
        pitot: Dynamic pressure sensor.
        gps: Satellite receiver.
    """

    imu: ImuSpec = field(default_factory=ImuSpec)
    magnetometer: MagnetometerSpec = field(default_factory=MagnetometerSpec)
    barometer: BarometerSpec = field(default_factory=BarometerSpec)
    pitot: PitotSpec = field(default_factory=PitotSpec)
    gps: GpsSpec = field(default_factory=GpsSpec)
