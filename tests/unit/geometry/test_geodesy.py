"""Geodesy and an autopilot's axes, against the ellipsoid itself and against hand-computed cases."""

import math

import numpy as np
import pytest

from hilsim.world.geometry.frames import frd_from_flu, ned_from_enu
from hilsim.world.geometry.geodesy import HomeSpec, build_home, geodetic, geodetic_at
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, ned_from_frd, rotate, turned_by

FLATTENING = 1.0 / 298.257223563
SEMI_MAJOR_M = 6_378_137.0
ZURICH = HomeSpec(latitude_deg=47.397742, longitude_deg=8.545594, altitude_m=488.0, origin_m=(1000.0, 2000.0, 50.0))


def ecef(latitude_deg, longitude_deg):
    """A point of the WGS-84 ellipsoid in geocentric coordinates."""
    latitude, longitude = math.radians(latitude_deg), math.radians(longitude_deg)
    squared = FLATTENING * (2.0 - FLATTENING)
    normal = SEMI_MAJOR_M / math.sqrt(1.0 - squared * math.sin(latitude) ** 2)
    return np.array(
        (
            normal * math.cos(latitude) * math.cos(longitude),
            normal * math.cos(latitude) * math.sin(longitude),
            normal * (1.0 - squared) * math.sin(latitude),
        )
    )


@pytest.mark.parametrize(("latitude_deg", "longitude_deg"), [(47.397742, 8.545594), (0.0, 0.0), (-33.9, 151.2), (69.6, 18.9)])
@pytest.mark.parametrize(("east_m", "north_m"), [(100.0, 0.0), (0.0, 100.0), (-60.0, 80.0)])
def test_a_hundred_metres_are_a_hundred_metres_on_the_ellipsoid(latitude_deg, longitude_deg, east_m, north_m):
    there = ecef(*geodetic(latitude_deg, longitude_deg, east_m, north_m))
    assert np.linalg.norm(there - ecef(latitude_deg, longitude_deg)) == pytest.approx(100.0, abs=0.003)


def test_longitudes_stay_within_half_a_turn():
    assert geodetic(0.0, 179.9999, 100.0, 0.0)[1] == pytest.approx(-179.9992, abs=1e-4)


def test_home_is_where_the_origin_of_the_world_is():
    home = build_home(ZURICH)
    assert geodetic_at(home, (1000.0, 2000.0, 50.0)) == pytest.approx((47.397742, 8.545594, 488.0), abs=1e-12)
    latitude, longitude, altitude = geodetic_at(home, (1000.0, 2100.0, 45.0))
    assert (latitude > 47.397742, longitude, altitude) == (True, pytest.approx(8.545594, abs=1e-12), 483.0)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"latitude_deg": 90.0, "longitude_deg": 181.0}, "latitude_deg must be -89 to 89, got 90.0; longitude_deg must be -180 to 180, got 181.0"),
        ({"latitude_deg": 0.0, "longitude_deg": 0.0, "altitude_m": 1e5}, "altitude_m must be -500 to 9000, got 100000.0"),
        ({"latitude_deg": 0.0, "longitude_deg": 0.0, "origin_m": (math.inf, 0.0, 0.0)}, "origin_m must be finite"),
    ],
)
def test_a_home_names_each_setting_out_of_range(setting, message):
    with pytest.raises(ValueError, match=message):
        HomeSpec(**setting)


def test_an_autopilots_axes_are_north_east_down_and_forward_right_down():
    assert ned_from_enu((1.0, 2.0, 3.0)) == (2.0, 1.0, -3.0)
    assert ned_from_enu(ned_from_enu((1.0, 2.0, 3.0))) == (1.0, 2.0, 3.0)
    assert frd_from_flu((1.0, 2.0, 3.0)) == (1.0, -2.0, -3.0)


def test_an_autopilots_orientation_turns_its_body_axes_into_its_world_axes():
    q = from_roll_pitch_yaw(10.0, -20.0, 30.0)
    for vector in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.3, -0.5, 0.8)):
        np.testing.assert_allclose(rotate(ned_from_frd(q), frd_from_flu(vector)), ned_from_enu(rotate(q, vector)), atol=1e-15)


def test_a_level_vehicle_that_looks_north_has_no_rotation_for_an_autopilot():
    np.testing.assert_allclose(np.abs(ned_from_frd(from_roll_pitch_yaw(0.0, 0.0, 90.0))), (1.0, 0.0, 0.0, 0.0), atol=1e-15)


@pytest.mark.parametrize("angle_rad", [0.0, 1e-9, 1.99e-4, 2.01e-4, 0.5, 3.0])
def test_a_turn_about_the_bodys_own_axis_is_exact_for_small_and_large_angles(angle_rad):
    turned = turned_by((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, angle_rad))
    np.testing.assert_allclose(turned, (math.cos(angle_rad / 2), 0.0, 0.0, math.sin(angle_rad / 2)), rtol=1e-14, atol=1e-16)
