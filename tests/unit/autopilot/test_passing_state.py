"""What is read from an autopilot's frames as they go by, packed by pymavlink."""

import math

import pytest
from pymavlink.dialects.v20 import common

from hilsim.parts.vehicle.autopilot.passing_state import AutopilotStatus, Errors, Truth
from hilsim.world.geometry.geodesy import HomeSpec, build_home, geodetic_at
from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from hilsim_flight_controller.wire import Writer

HOME = build_home(HomeSpec(latitude_deg=47.397742, longitude_deg=8.545594, altitude_m=488.0, origin_m=(10.0, 20.0, 1.0)))
PLACE = (40.0, -30.0, 6.0)
TRUTH = Truth(position_m=PLACE, velocity_mps=(1.0, 2.0, 0.5), orientation=from_roll_pitch_yaw(0.0, 0.0, 90.0))
READY = 0x37F


def told(said, *messages, truth=TRUTH):
    writer = Writer(1, 1)
    for message in messages:
        said.note_frame(message.get_msgId(), writer.pack(message), HOME, truth)
    return said


def estimator(flags, time_us=1):
    return common.MAVLink_estimator_status_message(time_us, flags, *[0.1] * 6, 0.3, 0.3)


def home():
    return common.MAVLink_home_position_message(1, 1, 1, 0, 0, 0, [1, 0, 0, 0], 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("flags", "obstacle"),
    [
        (READY, ""),
        (0x347, "the estimator has no position, height"),
        (READY | 0x400, "the estimator reports GPS glitch"),
    ],
)
def test_estimator_and_home_together_say_whether_it_could_be_armed(flags, obstacle):
    said = told(AutopilotStatus(), estimator(flags), home())
    assert said.obstacle == obstacle
    assert said.is_ready == (obstacle == "")


def test_without_estimator_or_home_it_is_reported_which_is_missing_and_a_restart_forgets_both():
    said = AutopilotStatus()
    assert said.obstacle == "no ESTIMATOR_STATUS was received"
    told(said, estimator(READY))
    assert said.obstacle == "no HOME_POSITION was received"
    told(said, home())
    assert said.is_ready
    said.forget()
    assert not said.is_ready


def test_after_a_leap_of_the_vehicle_the_estimator_counts_again_when_it_has_had_time_to_notice():
    said = told(AutopilotStatus(), estimator(READY), home())
    said.leapt = True
    for time_us in (None, 50_000_000, 59_999_999):
        if time_us is not None:
            told(said, estimator(READY, time_us))
        assert said.obstacle == "the vehicle was put elsewhere, which the estimator may notice within 10 s"
    assert told(said, estimator(READY, 60_000_000)).is_ready


def test_a_link_that_carries_no_status_is_reported_as_that():
    assert AutopilotStatus(is_carried=False).obstacle == "not known: this link does not carry the autopilot's status"


def test_the_last_warning_is_kept_and_notices_are_not():
    text = common.MAVLink_statustext_message
    said = told(AutopilotStatus(), text(4, b"Stopping compass use!"), text(6, b"[logger] started"))
    assert said.warning == "Stopping compass use!"
    assert told(said, text(2, b"x" * 50)).warning == "x" * 50


def test_estimated_position_velocity_and_attitude_are_compared_with_the_truth():
    latitude, longitude, altitude_m = geodetic_at(HOME, (PLACE[0] + 0.5, PLACE[1] - 0.25, PLACE[2] + 0.1))
    position = common.MAVLink_global_position_int_message(1, round(latitude * 1e7), round(longitude * 1e7), round(altitude_m * 1e3), 0, 0, 0, 0, 0)
    velocity = common.MAVLink_local_position_ned_message(1, 0, 0, 0, 2.1, 1.2, -0.4)  # north, east, down
    attitude = common.MAVLink_attitude_message(1, math.radians(2.0), math.radians(-1.0), math.radians(-179.0), 0, 0, 0)
    west = Truth(position_m=PLACE, velocity_mps=(1.0, 2.0, 0.5), orientation=from_roll_pitch_yaw(0.0, 0.0, -90.0))  # nose south: yaw 180
    errors = told(AutopilotStatus(), position, velocity, attitude, truth=west).errors
    assert errors.position_m == pytest.approx((0.5, -0.25, 0.1), abs=0.02)
    assert errors.velocity_mps == pytest.approx((0.2, 0.1, -0.1), abs=1e-5)
    assert errors.attitude_deg == pytest.approx((2.0, -1.0, 1.0), abs=1e-3)
    assert AutopilotStatus().errors == Errors()


def test_truth_says_speed_tilt_and_angles_as_an_autopilot_does():
    truth = Truth(position_m=PLACE, velocity_mps=(3.0, 4.0, 0.0), orientation=from_roll_pitch_yaw(30.0, 0.0, 90.0))
    assert truth.speed_mps == pytest.approx(5.0)
    assert truth.tilt_deg == pytest.approx(30.0)
    assert truth.roll_pitch_yaw_deg == pytest.approx((30.0, 0.0, 0.0), abs=1e-9)
