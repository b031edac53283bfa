"""What goes into HIL_SENSOR and HIL_GPS, from instruments without noise."""

import math

import numpy as np
import pytest

from hilsim.parts.vehicle.autopilot.vehicle_sensors import (
    BAROMETER_FIELDS,
    IMU_FIELDS,
    MAGNETOMETER_FIELDS,
    PITOT_FIELDS,
    build_instruments,
    fill_gps,
    fill_sensor,
)
from hilsim.parts.vehicle.physics.magnetism import magnetic_field
from hilsim.parts.vehicle.physics.multirotor import build_multirotor, state_at
from hilsim.parts.vehicle.physics.sensor_specs import BarometerSpec, GpsSpec, ImuSpec, MagnetometerSpec, PitotSpec, SensorsSpec
from hilsim.protocols.mavlink.messages import HIL_GPS, HIL_SENSOR, build_draft
from hilsim.world.geometry.geodesy import HomeSpec
from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from hilsim.world.platforms.live import build_live_pose, write_state
from tests.compiled import compiled_only
from tests.unit.vehicle.vehicles import BARE

pytestmark = compiled_only  # records have their fields as attributes in compiled kernels only
MS, S = 1_000_000, 1_000_000_000
HOME = HomeSpec(latitude_deg=47.397742, longitude_deg=8.545594, altitude_m=488.0)
YEAR = 2026.5
UTC_EPOCH_NS = 1_780_000_000_000_000_000
TINY = 1e-9
"""Noise must be above 0."""
QUIET = SensorsSpec(
    imu=ImuSpec(
        accelerometer_noise_mps2_per_sqrt_hz=TINY, accelerometer_drift_mps2=TINY, gyroscope_noise_radps_per_sqrt_hz=TINY, gyroscope_drift_radps=TINY
    ),
    magnetometer=MagnetometerSpec(noise_gauss=TINY, drift_gauss=TINY),
    barometer=BarometerSpec(noise_pa=TINY, drift_pa=TINY),
    pitot=PitotSpec(noise_pa=TINY),
    gps=GpsSpec(noise_horizontal_m=TINY, noise_vertical_m=TINY, drift_horizontal_m=TINY, drift_vertical_m=TINY, noise_velocity_mps=TINY),
)
_MULTIROTOR = build_multirotor(BARE)


def instruments(**changes):
    values = {"seed": 1, "year": YEAR, "frame_ns": 4 * MS, "magnetometer_every": 3, "barometer_every": 5, "gps_ns": 100 * MS}
    return build_instruments(QUIET, HOME, **(values | changes))


def standing(position_m=(0.0, 0.0, 0.0), orientation=(1.0, 0.0, 0.0, 0.0), velocity_mps=(0.0, 0.0, 0.0)):
    state = state_at(_MULTIROTOR, position_m, orientation)
    state.motion[3:6] = velocity_mps
    return state


def sensed(state, *, imu_sums=(0.0,) * 6, frame=0, wind_mps=(0.0, 0.0, 0.0), into=None):
    said = into or build_draft(HIL_SENSOR)
    fill_sensor(instruments(), state, wind_mps, np.array(imu_sums, dtype=np.float64), frame, 77, said.record)
    return said


@pytest.mark.parametrize(
    ("frame", "fields"),
    [
        (0, IMU_FIELDS | MAGNETOMETER_FIELDS | BAROMETER_FIELDS | PITOT_FIELDS),
        (1, IMU_FIELDS),
        (3, IMU_FIELDS | MAGNETOMETER_FIELDS),
        (5, IMU_FIELDS | BAROMETER_FIELDS | PITOT_FIELDS),
        (15, IMU_FIELDS | MAGNETOMETER_FIELDS | BAROMETER_FIELDS | PITOT_FIELDS),
    ],
)
def test_a_frame_says_which_groups_are_new(frame, fields):
    assert sensed(standing(), frame=frame).record[0]["fields_updated"] == fields


def test_the_groups_are_those_of_the_message_set():
    assert sum(1 << bit for bit in range(6)) == IMU_FIELDS
    assert sum(1 << bit for bit in (6, 7, 8)) == MAGNETOMETER_FIELDS
    assert sum(1 << bit for bit in (9, 11, 12)) == BAROMETER_FIELDS
    assert PITOT_FIELDS == 1 << 10


def test_inertial_readings_have_axes_forward_right_down():
    said = sensed(standing(), imu_sums=(1.0, 2.0, 9.8, 0.1, 0.2, 0.3)).record[0]
    assert [said[name] for name in ("xacc", "yacc", "zacc")] == pytest.approx([1.0, -2.0, -9.8], rel=1e-6)
    assert [said[name] for name in ("xgyro", "ygyro", "zgyro")] == pytest.approx([0.1, -0.2, -0.3], rel=1e-6)
    assert said["time_usec"] == 77


def test_the_compass_of_a_vehicle_that_looks_north_reads_the_field_there():
    east, north, up = magnetic_field(HOME.latitude_deg, HOME.longitude_deg, HOME.altitude_m, YEAR).enu_gauss
    said = sensed(standing(orientation=from_roll_pitch_yaw(0.0, 0.0, 90.0))).record[0]
    assert [said[name] for name in ("xmag", "ymag", "zmag")] == pytest.approx([north, east, -up], rel=1e-5)


def test_pressure_is_in_hectopascal_and_falls_by_height():
    low = sensed(standing()).record[0]
    high = sensed(standing((0.0, 0.0, 100.0))).record[0]
    assert low["abs_pressure"] == pytest.approx(
        955.96, abs=0.05
    )  # 488 m of the standard atmosphere: 1013.25 * (1 - 0.0065 * 488 / 288.15) ** 5.25588
    assert low["pressure_alt"] == pytest.approx(488.0, abs=0.01)
    assert high["pressure_alt"] - low["pressure_alt"] == pytest.approx(100.0, abs=0.05)
    assert low["temperature"] == pytest.approx(15.0 - 0.0065 * 488.0, abs=0.01)


def test_the_pitot_tube_feels_the_air_that_comes_at_it():
    flown = sensed(standing(velocity_mps=(10.0, 0.0, 0.0))).record[0]["diff_pressure"]
    blown = sensed(standing(), wind_mps=(-10.0, 0.0, 0.0)).record[0]["diff_pressure"]
    carried = sensed(standing(velocity_mps=(10.0, 0.0, 0.0)), wind_mps=(10.0, 0.0, 0.0)).record[0]["diff_pressure"]
    assert flown == pytest.approx(blown, abs=1e-9)
    assert flown == pytest.approx(0.5 * 1.1685 * 100.0 / 100.0, rel=2e-3)
    assert carried == pytest.approx(0.0, abs=1e-9)


def test_sensors_without_new_data_keep_their_last_value():
    said = sensed(standing(), frame=0)
    before = said.record[0]["abs_pressure"]
    sensed(standing((0.0, 0.0, 50.0)), frame=1, into=said)
    assert said.record[0]["abs_pressure"] == before
    sensed(standing((0.0, 0.0, 50.0)), frame=5, into=said)
    assert said.record[0]["abs_pressure"] < before


def fixed(live, rig_ns, physics_ns=10 * S):
    said = build_draft(HIL_GPS)
    fill_gps(instruments(), live, rig_ns, physics_ns, UTC_EPOCH_NS, said.record)
    return said.record[0]


def test_a_position_is_that_of_its_latency_ago_with_the_time_of_then():
    live = build_live_pose()
    for step in range(400):
        state = np.zeros(13)
        state[1], state[4], state[6] = 10.0 * step * 1e-3, 10.0, 1.0
        write_state(live, step * MS, state)
    said = fixed(live, 399 * MS)
    assert said["time_usec"] == UTC_EPOCH_NS // 1000 + 289_000
    metres_per_degree = 111_180.0
    assert (said["lat"] * 1e-7 - HOME.latitude_deg) * metres_per_degree == pytest.approx(2.89, abs=0.02)
    assert said["lon"] == pytest.approx(HOME.longitude_deg * 1e7, abs=1)
    assert said["alt"] == 488_000
    assert [said[name] for name in ("vn", "ve", "vd", "vel", "cog")] == [1000, 0, 0, 1000, 0]
    assert (said["fix_type"], said["satellites_visible"]) == (3, 12)


def test_a_receiver_that_was_just_switched_on_has_no_fix():
    said = fixed(build_live_pose(), 0, physics_ns=0)
    assert (said["fix_type"], said["lat"], said["cog"], said["satellites_visible"]) == (1, 0, 65535, 0)
    assert said["eph"] > 1000


def test_a_receivers_course_is_clockwise_from_north():
    for velocity, course in (((3.0, 0.0), 9000), ((0.0, -3.0), 18_000), ((-3.0, 3.0), 31_500)):
        live, state = build_live_pose(), np.zeros(13)
        state[3:5], state[6] = velocity, 1.0
        write_state(live, 0, state)
        said = fixed(live, 200 * MS)
        assert said["cog"] == course
        assert said["vel"] == round(100 * math.hypot(*velocity))
