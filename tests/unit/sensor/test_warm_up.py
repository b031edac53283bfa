"""Range errors of a cold sensor."""

import math

import pytest

from hilsim.sensor.unit.warm_up import WarmUpSpec, build_warm_up, warm_up_m

SECOND_NS = 10**9


def test_the_error_of_a_cold_sensor_falls_to_1_over_e_in_its_time():
    warm_up = build_warm_up(WarmUpSpec(range_m=0.02, time_s=60.0), -1.5)
    assert warm_up_m(warm_up, 0) == -0.03
    assert warm_up_m(warm_up, 60 * SECOND_NS) == pytest.approx(-0.03 / math.e)
    assert warm_up_m(warm_up, 600 * SECOND_NS) == pytest.approx(-0.03 * math.exp(-10.0))
    assert warm_up_m(warm_up, -SECOND_NS) == -0.03


def test_a_sensor_without_warm_up_has_no_such_error():
    assert warm_up_m(build_warm_up(WarmUpSpec(), 2.0), 0) == 0.0


def test_all_faults_of_a_warm_up_are_reported_at_once():
    with pytest.raises(ValueError, match=r"range_m must be 0 to 1, got -1\.0; time_s must be 1 to 86400, got 0\.0"):
        WarmUpSpec(range_m=-1.0, time_s=0.0)
