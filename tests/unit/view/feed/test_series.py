"""Series of a daemon's figures: quantiles since the last status, growth of counters, ring buffers."""

import numpy as np
import pytest

from hilsim.show.view.feed.platform_poses import PlatformPoses
from hilsim.show.view.feed.series import MAX_SERIES, Series, quantile

BOUNDS = [0.001, 0.002, 0.004]


class Clock:
    """A clock that is set by hand."""

    now_s = 100.0

    def __call__(self):
        return self.now_s


def status(*, cumulative=(0, 0, 0, 0), late=0, dropped=0, **more):
    flow = {"lateness_max_s": 0.003, "late_packets": late, "dropped_packets": dropped, "lateness": {"bounds_s": BOUNDS, "cumulative": cumulative}}
    return {
        "sensors": {"roof": {"flows": {"data": {**flow, "pose_to_wire": None}}, "render": None, "device_clock_offset_s": 1e-6}},
        "replays": [],
        **more,
    }


@pytest.fixture
def clock():
    return Clock()


def last(series, name):
    return series.values(name)[1][-1]


def test_quantiles_are_of_what_came_since_the_last_status(clock):
    series = Series(seconds=10.0, clock_s=clock)
    series.add(status(cumulative=(1000, 1000, 1000, 1000)))
    clock.now_s += 0.2
    series.add(status(cumulative=(1000, 1050, 1100, 1100), late=7, dropped=2))
    assert last(series, "roof/data lateness_p50_s") == pytest.approx(0.002)
    assert last(series, "roof/data lateness_p99_s") == pytest.approx(0.00396)
    assert last(series, "roof/data lateness_max_s") == pytest.approx(0.003)
    assert last(series, "roof/data missed_packets") == 7
    assert last(series, "roof/data lost_packets") == 2
    clock.now_s += 0.2
    series.add(status(cumulative=(1000, 1050, 1100, 1100), late=7, dropped=2))
    assert np.isnan(last(series, "roof/data lateness_p50_s"))
    assert last(series, "roof/data missed_packets") == 0


def test_a_quantile_is_linear_within_its_bucket():
    assert quantile(BOUNDS, [4, 4, 4, 4], 0.5) == pytest.approx(0.0005)
    assert quantile(BOUNDS, [0, 0, 2, 2], 0.5) == pytest.approx(0.003)
    assert quantile(BOUNDS, [0, 0, 0, 2], 0.99) == BOUNDS[-1]


def test_a_daemon_that_began_again_has_no_negative_growth(clock):
    series = Series(seconds=10.0, clock_s=clock)
    series.add(status(cumulative=(5, 5, 5, 5), late=9))
    clock.now_s += 0.2
    series.add(status(cumulative=(1, 1, 1, 1), late=1))
    assert last(series, "roof/data missed_packets") == 0
    assert np.isnan(last(series, "roof/data lateness_p50_s"))


def test_replays_the_vehicle_and_the_clock_have_series(clock):
    series = Series(seconds=10.0, clock_s=clock)
    half = np.sqrt(0.5)
    vehicle = {"height_m": 12.5, "truth": {"position_m": [1, 2, 3], "orientation": [half, 0.0, 0.0, half]}, "rotor_radps": [400.0, 410.0]}
    series.add(status(vehicle=vehicle, utc_offset_s=0.25) | {"replays": [{"replay": "drive", "position_s": 3.5}]})
    assert last(series, "vehicle height_m") == 12.5
    assert last(series, "vehicle yaw_deg") == pytest.approx(90.0)
    assert last(series, "vehicle motor_2_radps") == 410.0
    assert last(series, "clock utc_offset_s") == 0.25
    assert last(series, "roof device_clock_offset_s") == pytest.approx(1e-6)
    assert last(series, "drive position_s") == 3.5
    clock.now_s += 0.2
    series.add(status(vehicle=vehicle | {"height_m": None}))  # no ground below
    assert np.isnan(last(series, "vehicle height_m"))


def test_series_are_bounded_in_time_rate_and_number(clock):
    series = Series(seconds=2.0, clock_s=clock)
    for _ in range(1000):
        series.add(status())
        clock.now_s += 0.05
    time_s, values = series.values("roof/data lateness_max_s")
    assert values.size <= 20
    assert np.all(np.diff(time_s) > 0.09)
    assert series.values("roof/data lateness_max_s", time_s[-3])[0].size == 2
    assert series.values("unknown")[1].size == time_s.size
    clock.now_s += 1.0
    series.add({"replays": [{"replay": f"drive{number}", "position_s": 0.0} for number in range(2 * MAX_SERIES)]})
    assert len(series.names()) == MAX_SERIES


def test_a_pose_of_the_platform_is_between_the_two_around_it():
    poses = PlatformPoses()
    assert poses.at(0) is None
    for rig_s, x in ((1.0, 10.0), (2.0, 20.0)):
        poses.add({"platform": {"rig_s": rig_s, "position_m": [x, 0.0, 0.0], "orientation": [1.0, 0.0, 0.0, 0.0]}})
    assert poses.at(1_250_000_000).position_m[0] == pytest.approx(12.5)
    assert poses.at(0).position_m[0] == 10.0
    assert poses.at(9_000_000_000).position_m[0] == 20.0
    poses.add({"platform": {"rig_s": 0.5, "position_m": [1.0, 0.0, 0.0], "orientation": [-1.0, 0.0, 0.0, 0.0]}})
    assert poses.at(2_000_000_000).position_m[0] == 1.0
    poses.add({})
