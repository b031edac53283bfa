"""Sensors: the right axes and units, the stated noise, a function of time alone, never a constant."""

import dataclasses
import math

import numpy as np
import pytest

from hilsim.parts.vehicle.physics.aerodynamics import air_velocity
from hilsim.parts.vehicle.physics.gps import FIX_3D, NO_FIX, UNKNOWN_COURSE, build_gps, gps_fix
from hilsim.parts.vehicle.physics.imu import accelerometer, build_imu, gyroscope
from hilsim.parts.vehicle.physics.magnetism import magnetic_field
from hilsim.parts.vehicle.physics.magnetometer import build_magnetometer, magnetometer
from hilsim.parts.vehicle.physics.noise import drift, key_interval_ns, white
from hilsim.parts.vehicle.physics.pressure import (
    barometer,
    build_pressure_sensors,
    density_kgpm3,
    differential_pressure,
    pressure_altitude_m,
    pressure_pa,
    temperature_c,
)
from hilsim.parts.vehicle.physics.sensor_specs import BarometerSpec, GpsSpec, ImuSpec, MagnetometerSpec, PitotSpec
from hilsim.rng import Purpose
from hilsim.world.geometry.geodesy import HomeSpec, build_home
from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from tests.compiled import COMPILED, compiled_only
from tests.unit.vehicle.vehicles import G

ZURICH = HomeSpec(latitude_deg=47.397742, longitude_deg=8.545594, altitude_m=488.0)
FIELD = magnetic_field(47.397742, 8.545594, 488.0, 2026.0)
SEED = np.uint64(5)
PERIOD_NS = 4_000_000
MANY = 4000 if COMPILED else 400
EXACT_IMU = ImuSpec(
    accelerometer_noise_mps2_per_sqrt_hz=0.0, accelerometer_drift_mps2=0.0, gyroscope_noise_radps_per_sqrt_hz=0.0, gyroscope_drift_radps=0.0
)
NO_GPS_NOISE = GpsSpec(noise_horizontal_m=0.0, noise_vertical_m=0.0, drift_horizontal_m=0.0, drift_vertical_m=0.0, noise_velocity_mps=0.0)
NEARLY_EXACT_COMPASS = MagnetometerSpec(noise_gauss=1e-12, drift_gauss=0.0)
NEARLY_EXACT_BAROMETER = BarometerSpec(noise_pa=1e-9, drift_pa=0.0)


def test_level_and_at_rest_the_accelerometer_reads_minus_g_downwards():
    imu = build_imu(EXACT_IMU, 5, 0, PERIOD_NS)
    assert accelerometer(imu, 0, (0.0, 0.0, G)) == (0.0, 0.0, -G)
    assert accelerometer(imu, 0, (1.0, 2.0, 3.0)) == (1.0, -2.0, -3.0)


def test_the_gyroscope_reads_a_turn_to_the_left_as_negative_yaw():
    imu = build_imu(EXACT_IMU, 5, 0, PERIOD_NS)
    assert gyroscope(imu, 0, (0.1, 0.2, 0.3)) == (0.1, -0.2, -0.3)


def test_inertial_readings_stop_at_their_range():
    imu = build_imu(EXACT_IMU, 5, 0, PERIOD_NS)
    assert accelerometer(imu, 0, (1000.0, -1000.0, 0.0)) == (16 * G, 16 * G, 0.0)
    assert gyroscope(imu, 0, (100.0, 0.0, 100.0)) == pytest.approx((math.radians(2000.0), 0.0, -math.radians(2000.0)))


def test_inertial_noise_has_the_density_of_the_specification():
    imu = build_imu(ImuSpec(), 5, 0, PERIOD_NS)
    times = range(0, MANY * PERIOD_NS, PERIOD_NS)
    force = np.array([accelerometer(imu, time_ns, (0.0, 0.0, G)) for time_ns in times])
    rates = np.array([gyroscope(imu, time_ns, (0.0, 0.0, 0.0)) for time_ns in times])
    tolerance = 4.0 / math.sqrt(2 * MANY)
    np.testing.assert_allclose(force.std(axis=0), 400e-6 * G * math.sqrt(250.0), rtol=tolerance)
    np.testing.assert_allclose(rates.std(axis=0), math.radians(0.005) * math.sqrt(250.0), rtol=tolerance)
    np.testing.assert_allclose(force.mean(axis=0), (0.0, 0.0, -G), rtol=0, atol=4 * force.std() / math.sqrt(MANY) + 0.002)
    assert np.abs(np.corrcoef(np.hstack([force, rates]).T) - np.eye(6)).max() < 5.0 / math.sqrt(MANY), "axes must not share numbers"


@pytest.mark.parametrize("yaw_deg", [90.0, 0.0, -90.0, 180.0, 33.0])
def test_the_compass_reads_the_field_in_body_axes(yaw_deg):
    sensor = build_magnetometer(NEARLY_EXACT_COMPASS, 5, 0, FIELD)
    north, east, down = FIELD.ned_gauss
    heading = math.radians(90.0 - yaw_deg)
    expected = (north * math.cos(heading) + east * math.sin(heading), east * math.cos(heading) - north * math.sin(heading), down)
    np.testing.assert_allclose(magnetometer(sensor, 0, from_roll_pitch_yaw(0.0, 0.0, yaw_deg)), expected, rtol=0, atol=1e-10)


def test_nose_down_the_compass_sees_the_steep_field_ahead():
    sensor = build_magnetometer(NEARLY_EXACT_COMPASS, 5, 0, FIELD)
    ahead, _, _ = magnetometer(sensor, 0, from_roll_pitch_yaw(0.0, 90.0, 90.0))
    assert ahead == pytest.approx(FIELD.ned_gauss[2], abs=1e-10)


def test_each_axis_of_the_compass_has_noise_and_drift_of_its_own():
    level, time_ns = (1.0, 0.0, 0.0, 0.0), 7_000_000
    east, north, up = FIELD.enu_gauss
    for noise_gauss, drift_gauss in ((0.25, 0.0), (1e-12, 0.5)):
        spec = MagnetometerSpec(noise_gauss=noise_gauss, drift_gauss=drift_gauss)
        sensor = build_magnetometer(spec, 5, 3, FIELD)
        noise = noise_gauss * np.array(white(sensor.seed, 3, time_ns, Purpose.MAGNETOMETER))
        wander = drift_gauss * np.array(drift(sensor.seed, 3, time_ns, key_interval_ns(spec.drift_s), Purpose.MAGNETOMETER_DRIFT))
        np.testing.assert_allclose(magnetometer(sensor, time_ns, level), np.array([east, -north, -up]) + noise + wander, rtol=0, atol=1e-9)


def test_the_field_at_zurich_is_that_of_the_model_and_near_what_other_simulators_use():
    np.testing.assert_allclose(FIELD.ned_gauss, (0.21523, 0.01334, 0.43290), rtol=0, atol=5e-6)
    np.testing.assert_allclose(FIELD.ned_gauss, (0.21506, 0.01021, 0.42974), rtol=0, atol=0.004)
    assert FIELD.enu_gauss == (FIELD.ned_gauss[1], FIELD.ned_gauss[0], -FIELD.ned_gauss[2])


def test_a_date_that_the_field_model_does_not_know_is_refused():
    with pytest.raises(ValueError, match=r"year must be 2025 to 2030 \(WMM2025\), got 2031.0"):
        magnetic_field(47.0, 8.0, 0.0, 2031.0)


@pytest.mark.parametrize(
    ("altitude_m", "celsius", "hpa", "density"), [(0.0, 15.0, 1013.25, 1.2250), (1000.0, 8.5, 898.746, 1.11164), (5000.0, -17.5, 540.199, 0.736116)]
)
def test_the_atmosphere_is_that_of_the_tables(altitude_m, celsius, hpa, density):
    assert temperature_c(altitude_m) == pytest.approx(celsius, abs=0.02)
    assert pressure_pa(altitude_m) / 100.0 == pytest.approx(hpa, rel=3e-4)
    assert density_kgpm3(altitude_m) == pytest.approx(density, rel=3e-4)
    assert pressure_altitude_m(pressure_pa(altitude_m)) == pytest.approx(altitude_m, abs=1e-8)


def test_the_barometer_reports_hectopascals_and_their_height():
    sensors = build_pressure_sensors(NEARLY_EXACT_BAROMETER, PitotSpec(), 5, 0)
    pressure_hpa, altitude_m, celsius = barometer(sensors, 0, 488.0)
    assert pressure_hpa == pytest.approx(1013.25 * (1.0 - 0.0065 * 488.0 / 288.15) ** 5.25588, rel=1e-10)
    assert altitude_m == pytest.approx(488.0, abs=1e-6)
    assert celsius == pytest.approx(15.0 - 0.0065 * 488.0, abs=1e-9)


def test_barometer_noise_is_in_pressure_and_height_alike():
    sensors = build_pressure_sensors(BarometerSpec(drift_pa=0.0), PitotSpec(), 5, 0)
    readings = np.array([barometer(sensors, number * 20_000_000, 488.0) for number in range(MANY)])
    assert readings[:, 0].std() == pytest.approx(0.01, rel=4.0 / math.sqrt(2 * MANY))
    np.testing.assert_allclose(readings[:, 1], [pressure_altitude_m(100.0 * hpa) for hpa in readings[:, 0]], rtol=0, atol=1e-9)


def test_the_tube_reads_dynamic_pressure_of_air_from_ahead():
    sensors = build_pressure_sensors(BarometerSpec(), PitotSpec(noise_pa=1e-9), 5, 0)
    yaw_north = from_roll_pitch_yaw(0.0, 0.0, 90.0)
    air = air_velocity(yaw_north, (0.0, 6.0, 0.0), (0.0, -4.0, 0.0))
    assert differential_pressure(sensors, 0, 0.0, air) == pytest.approx(0.5 * 1.225 * 100.0 / 100.0, rel=1e-6)
    assert differential_pressure(sensors, 0, 0.0, (-10.0, 3.0, 0.0)) == pytest.approx(-0.5 * 1.225 * 100.0 / 100.0, rel=1e-6)


def test_no_reading_of_barometer_or_compass_is_that_before():
    pressure = build_pressure_sensors(BarometerSpec(), PitotSpec(), 5, 0)
    compass = build_magnetometer(MagnetometerSpec(), 5, 0, FIELD)
    times = [number * 10_000_000 for number in range(200)]
    assert len({barometer(pressure, time_ns, 488.0)[0] for time_ns in times}) == 200
    sent = np.array([barometer(pressure, time_ns, 488.0)[0] for time_ns in times], dtype=np.float32)
    assert np.count_nonzero(np.diff(sent) == 0.0) <= 4, "nor in the 32 bits of a message"
    assert len({magnetometer(compass, time_ns, (1.0, 0.0, 0.0, 0.0))[0] for time_ns in times}) == 200


def test_a_reading_is_a_function_of_its_instant():
    imu = build_imu(ImuSpec(), 5, 0, PERIOD_NS)
    forwards = [accelerometer(imu, time_ns, (0.0, 0.0, G)) for time_ns in range(0, 40_000_000, PERIOD_NS)]
    backwards = [accelerometer(imu, time_ns, (0.0, 0.0, G)) for time_ns in reversed(range(0, 40_000_000, PERIOD_NS))]
    assert forwards == backwards[::-1]
    assert accelerometer(build_imu(ImuSpec(), 5, 1, PERIOD_NS), 0, (0.0, 0.0, G)) != forwards[0]


@compiled_only
def test_what_wanders_has_unit_variance_and_the_correlation_time_asked_for():
    interval_ns = key_interval_ns(60.0)
    step_s = 6
    seen = np.array([drift(SEED, 0, number * step_s * 10**9, interval_ns, 3)[0] for number in range(100_000)])
    spectrum = np.abs(np.fft.rfft(seen - seen.mean(), 2 * len(seen))) ** 2
    correlation = np.fft.irfft(spectrum)[:40] / len(seen)
    assert correlation[0] == pytest.approx(1.0, abs=0.03)
    assert step_s * (2 * correlation.sum() - correlation[0]) == pytest.approx(2 * 60.0, rel=0.1)


def test_what_wanders_passes_its_keys_without_a_jump():
    interval_ns = key_interval_ns(60.0)
    for key in (-3, 0, 5):
        np.testing.assert_allclose(
            drift(SEED, 0, key * interval_ns - 1, interval_ns, 3), drift(SEED, 0, key * interval_ns, interval_ns, 3), atol=1e-9
        )


def test_white_noise_before_rig_time_zero_is_drawn_too():
    assert len({white(SEED, 0, time_ns, 3)[0] for time_ns in range(-5, 5)}) == 10


def test_the_receiver_says_where_it_is_in_integers():
    gps = build_gps(NO_GPS_NOISE, 5, 0, build_home(dataclasses.replace(ZURICH, origin_m=(100.0, 200.0, 10.0))))
    fix = gps_fix(gps, 60 * 10**9, (100.0, 200.0, 13.5), (3.0, 4.0, -1.0))
    assert (fix.latitude_dege7, fix.longitude_dege7, fix.altitude_mm) == (473_977_420, 85_455_940, 491_500)
    assert (fix.speed_cmps, fix.east_cmps, fix.north_cmps, fix.down_cmps) == (500, 300, 400, 100)
    assert fix.course_cdeg == round(math.degrees(math.atan2(3.0, 4.0)) * 100)
    assert (fix.fix_type, fix.eph_cm, fix.epv_cm, fix.satellites) == (FIX_3D, 90, 120, 12)


def test_a_receiver_at_rest_has_no_course():
    gps = build_gps(NO_GPS_NOISE, 5, 0, build_home(ZURICH))
    assert gps_fix(gps, 60 * 10**9, (0.0, 0.0, 0.0), (0.05, 0.0, 0.0)).course_cdeg == UNKNOWN_COURSE
    assert gps_fix(gps, 60 * 10**9, (0.0, 0.0, 0.0), (-1e-9, 5.0, 0.0)).course_cdeg == 0, "never 36000"
    assert gps_fix(gps, 60 * 10**9, (0.0, 0.0, 0.0), (-5.0, 0.0, 0.0)).course_cdeg == 27_000


def test_a_receiver_needs_a_while_to_find_itself():
    gps = build_gps(GpsSpec(), 5, 0, build_home(ZURICH), on_ns=10**9)
    first_ns = 10**9 + round(0.9 * math.log(99.1 / 2.1) * 1e9)
    before, after = (gps_fix(gps, first_ns + late_ns, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)) for late_ns in (-1000, 1000))
    assert before == (NO_FIX, 0, 0, 0, 300, before.epv_cm, 0, 0, 0, 0, UNKNOWN_COURSE, 0)
    assert (after.fix_type, after.eph_cm, after.satellites) == (FIX_3D, 300, 12)
    assert gps_fix(gps, 0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)).eph_cm == 10_000


def test_receiver_noise_is_as_specified():
    gps = build_gps(GpsSpec(drift_horizontal_m=0.0, drift_vertical_m=0.0), 5, 0, build_home(ZURICH))
    fixes = np.array([gps_fix(gps, 60 * 10**9 + number * 10**8, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)) for number in range(MANY)], dtype=float)
    tolerance = 4.0 / math.sqrt(2 * MANY) + 0.05
    assert fixes[:, 1].std() * 1e-7 * 111_180.0 == pytest.approx(0.03, rel=tolerance)
    assert fixes[:, 2].std() * 1e-7 * 111_320.0 * math.cos(math.radians(47.4)) == pytest.approx(0.03, rel=tolerance)
    assert fixes[:, 3].std() * 1e-3 == pytest.approx(0.05, rel=tolerance)
    np.testing.assert_allclose(fixes[:, 7:10].std(axis=0), 5.0, rtol=tolerance)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BarometerSpec(noise_pa=0.0), "noise_pa must be above 0 and at most 1000, got 0.0"),
        (lambda: BarometerSpec(drift_pa=-1.0, drift_s=0.0), "drift_pa must be 0 to 5000, got -1.0; drift_s must be 1 to 100000, got 0.0"),
        (lambda: MagnetometerSpec(noise_gauss=0.0), "noise_gauss must be above 0 and at most 1, got 0.0"),
        (lambda: PitotSpec(noise_pa=-2.0), "noise_pa must be above 0 and at most 1000, got -2.0"),
        (lambda: GpsSpec(eph_m=4.0), "eph_m must be 0.01 to less than fix_eph_m of 3.0, got 4.0"),
        (lambda: GpsSpec(settling_s=0.0), "settling_s must be above 0 and at most 600, got 0.0"),
        (lambda: GpsSpec(satellites=3, latency_ns=-1), "satellites must be 4 to 60, got 3; latency_ns must be 0 to 1000000000, got -1"),
        (lambda: ImuSpec(accelerometer_range_mps2=9.0), r"accelerometer_range_mps2 must be at least 19.6 \(2 g\), got 9.0"),
        (lambda: ImuSpec(gyroscope_drift_s=0.0), "gyroscope_drift_s must be 1 to 100000, got 0.0"),
        (lambda: build_imu(ImuSpec(), 0, 0, 1), "period_ns must be 100000 to 1000000000, got 1"),
    ],
)
def test_a_sensor_names_each_setting_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()
