"""The scripted flight controller flies with broken sensors and motors, and finds what PX4 finds. All in virtual time."""

import numpy as np
import pytest

from hilsim.faults.specs import FAULT_SPECS
from hilsim.parts.vehicle.autopilot.breaking import vehicle_fault_table
from tests.compiled import compiled_only
from tests.controllers.bench import Bench

pytestmark = [pytest.mark.extended, compiled_only]


def flown(kind, script="hover", **keys):
    """A flight with a fault, and its report."""
    bench = Bench("iris", script=script, faults=vehicle_fault_table([FAULT_SPECS[kind](**keys)], 1))
    return bench, bench.fly(80.0)


def rules(report):
    return {fault.rule for fault in report.faults}


def test_an_estimator_believes_a_smooth_drift_and_the_vehicle_flies_away_from_it():
    bench, report = flown("gps_smooth_drift", at_s=22.0, speed_mps=2.0, bearing_deg=90.0)
    assert report.faults == []
    assert bench.controller.estimate.faults == set()
    assert report.figures["hover_level_m"] < 0.5  # by its own estimate
    assert report.time_of("disarmed") is not None
    away_m = bench.aircraft.track[-1][1]
    assert -18.0 < away_m < -8.0
    assert not bench.aircraft.crashed


def test_a_jump_of_the_gps_is_refused_and_a_failure_of_navigation_is_told():
    bench, report = flown("gps_jump", at_s=18.0, for_s=5.0)
    assert report.time_of("navigation failure") is not None
    assert np.abs([row[1:3] for row in bench.aircraft.track]).max() < 20.0


def test_a_frozen_compass_is_stale_after_a_hundred_readings_and_a_hover_goes_on_without_it():
    bench, report = flown("compass_stuck", at_s=22.0)
    stale = [fault for fault in report.faults if "magnetometer must be different" in str(fault)]
    assert len(stale) == len(report.faults) == 3
    assert report.time_of("done") is not None
    assert bench.top_m < 5.5
    assert not bench.aircraft.crashed


def test_a_frozen_compass_in_a_turn_is_given_up_and_the_flight_ends_by_the_gyroscope():
    bench, report = flown("compass_stuck", script="tour", at_s=18.0)
    assert report.time_of("Stopping compass use! Check calibration on landing") is not None
    assert bench.controller.estimate.faults == {"mag"}
    assert report.time_of("disarmed") is not None
    assert np.hypot(*bench.aircraft.track[-1][1:3]) < 1.0
    assert not bench.aircraft.crashed


def test_a_weak_motor_is_borne():
    bench, report = flown("motor_weak", at_s=20.0, motors=(1,), thrust=0.8)
    assert report.faults == []
    assert report.figures["hover_level_m"] < 0.5
    assert not bench.aircraft.crashed


def test_a_dead_motor_of_a_quadrotor_turns_it_over_and_the_detector_of_failures_says_so():
    bench, report = flown("motor_dead", at_s=20.0, motors=(1,))
    assert report.time_of("Attitude failure detected") - 20.0 < 2.0
    assert bench.aircraft.crashed
