"""Obstacle sectors and distance beams against hand-made scans and a slow reference."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.parts.vehicle.obstacle_messages import ORIENTATION_CODES, orientation_axis
from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ObstacleSpec
from hilsim.streaming.obstacle_sectors import sector_near, sector_of
from tests.unit.autopilot.scans import distance_values, obstacle_values

SPEC = ObstacleSpec(sensor="top", range_min_m=0.5, range_max_m=100.0, low_m=-0.5, high_m=0.5)
NOTHING, UNKNOWN = 10_001, 65_535


def ray(clockwise_deg, elevation_deg=0.0):
    azimuth, elevation = math.radians(clockwise_deg), math.radians(elevation_deg)
    return [math.cos(elevation) * math.cos(azimuth), -math.cos(elevation) * math.sin(azimuth), math.sin(elevation)]


def said(*workspace, spec=SPEC, origin=(0.0, 0.0, 0.0)):
    """Distances by sector of rays ``(clockwise_deg, elevation_deg, range_m)``; sectors of which nothing is known are left out."""
    directions = np.array([ray(azimuth, elevation) for azimuth, elevation, _ in workspace], np.float32).reshape(-1, 3)
    values = obstacle_values(spec, np.array([reach for *_, reach in workspace], np.float32), directions, origin)
    assert (values.distances.dtype, values.distances.shape) == (np.uint16, (72,))
    return {sector: int(distance) for sector, distance in enumerate(values.distances) if distance != UNKNOWN}


@pytest.mark.parametrize(
    ("clockwise_deg", "sector"), [(0, 0), (2.4, 0), (2.6, 1), (-2.4, 0), (-2.6, 71), (90, 18), (180, 36), (-90, 54), (357.6, 0), (357.4, 71)]
)
def test_sectors_are_centred_on_multiples_of_five_degrees_clockwise_from_forward(clockwise_deg, sector):
    assert said((clockwise_deg, 0, 12.34)) == {sector: 1234}


def test_an_obstacle_on_the_left_of_the_body_is_in_sector_54_and_on_the_right_in_sector_18():
    left, right = np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, -1.0, 0.0]])
    assert obstacle_values(SPEC, np.array([4.0]), left).distances[54] == 400
    assert obstacle_values(SPEC, np.array([4.0]), right).distances[18] == 400


def test_the_nearest_return_of_a_sector_counts():
    assert said((10, 0, 30.0), (11, 0, 7.0), (9, 0, 12.0), (12, 0, math.inf)) == {2: 700}


def test_a_sector_that_was_looked_into_and_is_empty_differs_from_one_that_was_not():
    assert said((0, 0, math.inf), (5, 0, 100.5)) == {0: NOTHING, 1: NOTHING}
    assert said() == {}


def test_returns_outside_the_height_band_are_no_obstacles_but_were_looked_at():
    assert said((0, -10, 2.8), (5, -10, 2.9), (10, 10, 2.8), (15, 10, 2.9)) == {0: 276, 1: NOTHING, 2: 276, 3: NOTHING}


def test_the_distance_is_level_and_the_height_band_follows_the_sensors_place():
    assert said((0, 30, 10.0), spec=ObstacleSpec(sensor="top", low_m=4.9, high_m=5.1)) == {0: 866}
    assert said((0, 30, 10.0), spec=ObstacleSpec(sensor="top", low_m=5.9, high_m=6.1), origin=(1.0, 0.0, 1.0)) == {0: 966}


def test_an_obstacle_is_placed_as_seen_from_the_vehicle_not_from_the_sensor():
    assert said((0, 0, 1.0), origin=(0.0, -1.0, 0.0)) == {9: 141}


def test_returns_nearer_than_the_minimum_do_not_count_for_their_sector():
    assert said((0, 0, 0.49)) == {}
    assert said((0, 0, 0.49), (1, 0, 20.0)) == {0: 2000}
    assert said((0, 0, 0.49), (1, 0, math.inf)) == {0: NOTHING}


def test_a_ray_straight_up_looks_into_no_sector():
    values = obstacle_values(SPEC, np.array([np.inf, 3.0]), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]))
    assert set(values.distances.tolist()) == {UNKNOWN}


def test_a_range_that_is_no_number_says_nothing():
    assert said((0, 0, math.nan)) == {}


def test_the_message_says_frame_increment_and_limits():
    values = obstacle_values(SPEC, np.array([1.0]), np.array([[1.0, 0.0, 0.0]]))
    assert values._asdict() | {"distances": None} == {
        "distances": None,
        "min_distance": 50,
        "max_distance": 10_000,
        "increment": 5,
        "increment_f": 5.0,
        "angle_offset": 0.0,
        "frame": 12,
        "sensor_type": 0,
    }


def slow_reference(workspace):
    found = {}
    for azimuth, elevation, reach in workspace:
        if reach < 0.5:
            continue
        level, height = reach * math.cos(math.radians(elevation)), reach * math.sin(math.radians(elevation))
        is_obstacle = -0.5 <= height <= 0.5 and level <= 100.0
        found.setdefault(round(azimuth / 5) % 72, []).append(max(round(level * 100), 50) if is_obstacle else NOTHING)
    return {sector: min(distances) for sector, distances in found.items()}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 359).map(float),
            st.sampled_from([-15.0, -3.0, -1.0, 0.0, 1.0, 5.0]),
            st.one_of(st.just(math.inf), st.floats(0.1, 150.0)),
        ),
        max_size=60,
    )
)
def test_any_scan_agrees_with_a_slow_reference(workspace):
    directions = np.array([ray(azimuth, elevation) for azimuth, elevation, _ in workspace]).reshape(-1, 3)
    values = obstacle_values(SPEC, np.array([reach for *_, reach in workspace]), directions)
    ours = {sector: int(distance) for sector, distance in enumerate(values.distances) if distance != UNKNOWN}
    theirs = slow_reference(workspace)
    assert ours.keys() == theirs.keys()
    assert all(abs(ours[sector] - theirs[sector]) <= 1 for sector in ours)


@pytest.mark.parametrize(
    ("orientation", "code", "clockwise_deg"),
    [("forward", 0, 0), ("forward_right", 1, 45), ("right", 2, 90), ("backward", 4, 180), ("left", 6, 270), ("forward_left", 7, 315)],
)
def test_orientations_go_clockwise_as_the_autopilots_read_them(orientation, code, clockwise_deg):
    assert ORIENTATION_CODES[orientation] == code
    np.testing.assert_allclose(orientation_axis(orientation), ray(clockwise_deg), atol=1e-12)


@pytest.mark.parametrize(("orientation", "code", "axis"), [("up", 24, (0.0, 0.0, 1.0)), ("down", 25, (0.0, 0.0, -1.0))])
def test_up_is_24_and_down_is_25(orientation, code, axis):
    assert (ORIENTATION_CODES[orientation], orientation_axis(orientation)) == (code, axis)


def beam(*workspace, **changed):
    spec = DistanceSensorSpec(**({"sensor": "top", "orientation": "right", "width_deg": 10.0, "sensor_id": 3} | changed))
    directions = np.array([ray(azimuth, elevation) for azimuth, elevation, _ in workspace]).reshape(-1, 3)
    return distance_values(spec, np.array([reach for *_, reach in workspace]), directions)


def test_a_distance_sensor_says_the_nearest_return_in_its_cone():
    values = beam((90, 0, 20.0), (94, 0, 8.0), (96, 0, 2.0), (90, -4, 8.5), (270, 0, 1.0))
    assert values._asdict() == {
        "min_distance": 50,
        "max_distance": 10_000,
        "current_distance": 800,
        "orientation": 2,
        "horizontal_fov": pytest.approx(math.radians(10.0)),
        "vertical_fov": pytest.approx(math.radians(10.0)),
        "id": 3,
        "type": 0,
        "covariance": 255,
        "signal_quality": 0,
    }


def test_a_distance_sensor_that_sees_nothing_says_one_more_than_its_maximum():
    assert beam((90, 0, math.inf), (91, 0, 101.0)).current_distance == NOTHING


def test_a_distance_sensor_that_no_ray_serves_says_nothing_at_all():
    assert beam((80, 0, 5.0)) is None
    assert beam((90, 0, 0.4)) is None


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"sensor": ""}, "sensor must not be empty"),
        ({"rate_hz": 3.0}, "rate_hz must be 4 to 50, got 3.0"),
        ({"range_max_m": 656.0}, r"range_min_m and range_max_m must be 0 <= min < max <= 655.33, got 0.5 and 656.0"),
        ({"low_m": 1.0}, "low_m and high_m must be -1000 <= low < high <= 1000, got 1.0 and 0.5"),
    ],
)
def test_an_obstacle_setting_that_cannot_be_is_refused_by_name(changed, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        ObstacleSpec(**({"sensor": "top"} | changed))


def test_a_distance_sensor_setting_that_cannot_be_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^width_deg must be 0.1 to 90, got 0.0; sensor_id must be 0 to 255, got 256$"):
        DistanceSensorSpec(sensor="top", width_deg=0.0, sensor_id=256)


@given(st.floats(-10.0, 10.0), st.floats(-10.0, 10.0), st.integers(0, 71))
def test_the_quick_way_to_a_sector_finds_the_same_from_any_guess(forward, left, guess):
    expected = sector_of(forward, left)
    turn = math.degrees(math.atan2(-left, forward)) + 2.5
    if abs(turn / 5.0 - round(turn / 5.0)) > 1e-9:  # on an edge rounding decides
        assert sector_near(forward, left, guess) == expected
