"""Points of pixels: hand-computed places, and ranges that a ray caster would report."""

import math

import numpy as np
import pytest

from hilsim.families.ouster.protocol.geometry import Beams, column_angles_rad, encoder_angles_rad, offset_transform, points_m
from tests.ouster_sensors import beams

AT_THE_AXIS = offset_transform(0.0, 0.0, 0.0)


def one_beam(elevation_deg=0.0, azimuth_deg=0.0, beam_to_lidar=AT_THE_AXIS, lidar_to_sensor=AT_THE_AXIS):
    return Beams(elevation_deg=(elevation_deg,), azimuth_deg=(azimuth_deg,), beam_to_lidar=beam_to_lidar, lidar_to_sensor=lidar_to_sensor)


def point(range_mm, column, sensor, **options):
    return points_m(np.array([[range_mm]]), column_angles_rad([column], 1024), sensor, **options)[0, 0]


@pytest.mark.parametrize(("column", "direction"), [(0, (1, 0, 0)), (256, (0, -1, 0)), (512, (-1, 0, 0)), (768, (0, 1, 0))])
def test_columns_begin_at_lidar_x_and_turn_clockwise(column, direction):
    np.testing.assert_allclose(point(2000, column, one_beam()), 2.0 * np.array(direction), atol=1e-12)


def test_a_beams_azimuth_turns_clockwise_and_its_elevation_up():
    np.testing.assert_allclose(point(1000, 0, one_beam(azimuth_deg=90.0)), [0, -1, 0], atol=1e-12)
    np.testing.assert_allclose(point(1000, 0, one_beam(elevation_deg=90.0)), [0, 0, 1], atol=1e-12)


def test_the_range_includes_the_way_from_the_axis_to_the_beams_origin():
    offset = offset_transform(30.0, 0.0, 40.0)
    assert one_beam(beam_to_lidar=offset).origin_mm == 50.0
    np.testing.assert_allclose(point(1050, 256, one_beam(beam_to_lidar=offset)), [0, -1.03, 0.04], atol=1e-12)


def test_the_sensor_frame_is_turned_by_half_and_raised():
    sensor = one_beam(lidar_to_sensor=offset_transform(0.0, 0.0, 36.0, is_reversed=True))
    np.testing.assert_allclose(point(1000, 0, sensor), [-1, 0, 0.036], atol=1e-12)
    np.testing.assert_allclose(point(1000, 0, sensor, in_sensor_frame=False), [1, 0, 0], atol=1e-12)


def test_a_pixel_without_a_return_has_no_point():
    assert np.isnan(point(0, 0, beams(1))).all()


def test_the_points_of_ranges_that_a_ray_caster_reports_lie_on_the_surface():
    """Rays start at the beam's origin, and what is reported is their length and the origin's distance from the axis."""
    sensor, wall_mm = beams(8, lidar_to_sensor=AT_THE_AXIS), 5000.0
    angle = column_angles_rad(np.arange(-20, 20), 1024)  # about lidar X
    direction = angle[:, None] - np.deg2rad(sensor.azimuth_deg)
    start_x = sensor.beam_to_lidar[3] * np.cos(angle)
    length = (wall_mm - start_x[:, None]) / (np.cos(direction) * np.cos(np.deg2rad(sensor.elevation_deg)))
    points = points_m((length + sensor.origin_mm).astype(np.float64), angle, sensor)
    np.testing.assert_allclose(points[..., 0], 5.0, atol=1e-12)
    assert points.shape == (40, 8, 3)


def test_encoder_counts_and_measurement_ids_give_the_same_angles():
    ids = np.arange(0, 1024, 31)
    np.testing.assert_allclose(encoder_angles_rad(88 * ids), column_angles_rad(ids, 1024), rtol=1e-15)
    assert math.isclose(float(column_angles_rad(0, 1024)), 2 * math.pi)


def test_beams_that_do_not_agree_are_refused_with_every_fault():
    with pytest.raises(ValueError, match="azimuth_deg must name 2 beams, got 1; beam_to_lidar must have 16 numbers, got 4"):
        Beams(elevation_deg=(1.0, 2.0), azimuth_deg=(0.0,), beam_to_lidar=(1.0,) * 4, lidar_to_sensor=AT_THE_AXIS)
