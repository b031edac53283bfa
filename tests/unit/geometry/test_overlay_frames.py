"""The matrices of Cepton's AR note: what they say as printed, and the mounting that the note means."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.geometry.overlay_frames import ground_only_pose, matrix_from_pose
from hilsim.geometry.poses import Pose, extrinsics, mounting
from hilsim.geometry.rotations import matrix_from_quaternion
from tests.unit.geometry.ar_note import graphics_from_sensor, ground_only, printed_coordinates, printed_height, printed_pitch

RIGHT, FORWARD, UP = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)
"""Directions in the sensor frame."""
GRAPHICS_RIGHT, GRAPHICS_UP, GRAPHICS_FORWARD = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)
ORIGIN = (0, 0, 0, 1)

angles = st.floats(-180.0, 180.0)
heights = st.floats(-100.0, 100.0)


def through(matrix, vector):
    return tuple((matrix @ np.array(vector)).tolist())


def test_the_named_axes_of_the_sensor_and_of_graphics_change_places():
    matrix = graphics_from_sensor()
    assert through(matrix, RIGHT) == GRAPHICS_RIGHT
    assert through(matrix, FORWARD) == GRAPHICS_FORWARD
    assert through(matrix, UP) == GRAPHICS_UP
    np.testing.assert_array_equal(matrix @ matrix, np.eye(4))


def test_the_named_axes_differ_in_handedness_and_the_printed_matrix_does_not():
    assert np.linalg.det(graphics_from_sensor()) == -1.0
    assert np.linalg.det(printed_coordinates()) == 1.0


def test_the_printed_coordinates_are_a_quarter_turn_about_x():
    np.testing.assert_array_equal(printed_coordinates(), [[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(printed_coordinates(), matrix_from_pose(mounting((0, 0, 0), (90.0, 0.0, 0.0))), atol=1e-15)


def test_the_printed_coordinates_taken_from_sensor_to_graphics_put_up_down():
    assert through(printed_coordinates(), RIGHT) == GRAPHICS_RIGHT
    assert through(printed_coordinates(), FORWARD) == GRAPHICS_FORWARD
    assert through(printed_coordinates(), UP) == tuple(-part for part in GRAPHICS_UP)


def test_the_printed_coordinates_taken_from_graphics_to_z_up_put_forward_backward():
    assert through(printed_coordinates(), GRAPHICS_RIGHT) == RIGHT
    assert through(printed_coordinates(), GRAPHICS_UP) == UP
    assert through(printed_coordinates(), GRAPHICS_FORWARD) == tuple(-part for part in FORWARD)


def test_the_printed_coordinates_are_right_from_a_graphics_frame_whose_z_points_backward():
    opengl_from_sensor = np.diag([1.0, 1.0, -1.0, 1.0]) @ graphics_from_sensor()
    np.testing.assert_array_equal(printed_coordinates() @ opengl_from_sensor, np.eye(4))


def test_the_printed_height_lifts_along_y():
    assert through(printed_height(1.8), ORIGIN) == (0.0, 1.8, 0.0, 1.0)
    assert through(printed_height(1.8), GRAPHICS_FORWARD) == GRAPHICS_FORWARD


def test_the_printed_pitch_rolls_the_picture_and_leaves_the_line_of_sight():
    turned = printed_pitch(math.pi / 2)
    assert through(turned, GRAPHICS_FORWARD) == GRAPHICS_FORWARD
    np.testing.assert_allclose(through(turned, GRAPHICS_RIGHT), GRAPHICS_UP, atol=1e-15)
    np.testing.assert_allclose(through(turned, GRAPHICS_UP), tuple(-part for part in GRAPHICS_RIGHT), atol=1e-15)


def test_the_printed_pitch_would_pitch_where_x_is_forward_y_up_and_z_right():
    vehicle_from_sensor = np.array([FORWARD, UP, RIGHT, (0, 0, 0, 1)], dtype=float)
    pitched = np.linalg.inv(vehicle_from_sensor) @ printed_pitch(math.radians(-20.0)) @ vehicle_from_sensor
    np.testing.assert_allclose(pitched, matrix_from_pose(ground_only_pose(0.0, 20.0)), atol=1e-15)


@given(heights, angles)
def test_ground_only_pitches_then_lifts_then_changes_axes(height_m, pitch_deg):
    pitch_rad = math.radians(pitch_deg)
    cosine, sine = math.cos(pitch_rad), math.sin(pitch_rad)
    expected = [[cosine, -sine, 0, 0], [0, 0, -1, 0], [sine, cosine, 0, height_m], [0, 0, 0, 1]]
    np.testing.assert_allclose(ground_only(height_m, pitch_rad), expected, atol=1e-15)


def test_ground_only_as_printed_and_the_right_one_agree_without_pitch_but_for_forward():
    printed = ground_only(1.5, 0.0) @ graphics_from_sensor()
    np.testing.assert_array_equal(printed, np.diag([1.0, -1.0, 1.0, 1.0]) @ matrix_from_pose(ground_only_pose(1.5, 0.0)))


def test_ground_only_as_printed_leaves_the_horizon_ahead_where_the_right_one_dips_it():
    ahead = through(graphics_from_sensor(), (0, 10, 0, 1))
    assert through(ground_only(1.5, math.radians(30.0)), ahead)[2] == pytest.approx(1.5)
    assert ground_only_pose(1.5, 30.0).transform((0.0, 10.0, 0.0)) == pytest.approx((0.0, 10.0 * math.cos(math.radians(30.0)), 1.5 - 5.0))


def test_ground_only_as_printed_lifts_the_right_side_where_the_right_one_leaves_it():
    assert through(ground_only(1.5, math.radians(30.0)), (10, 0, 0, 1))[2] == pytest.approx(6.5)
    assert ground_only_pose(1.5, 30.0).transform((10.0, 0.0, 0.0)) == pytest.approx((10.0, 0.0, 1.5))


def test_a_level_sensor_looks_along_world_y_from_its_height():
    assert ground_only_pose(1.8, 0.0) == Pose(position_m=(0.0, 0.0, 1.8), orientation=(1.0, 0.0, 0.0, 0.0))


@given(heights, angles)
def test_ground_only_is_an_extrinsic_of_height_and_pitch_that_faces_north(height_m, pitch_deg):
    full = extrinsics((0.0, 0.0, height_m), (0.0, pitch_deg, 90.0))
    short = ground_only_pose(height_m, pitch_deg)
    assert full.position_m == short.position_m
    np.testing.assert_allclose(matrix_from_quaternion(full.orientation), matrix_from_quaternion(short.orientation), atol=1e-14)


@given(heights, angles, angles, angles, heights)
def test_ground_only_under_any_pose_of_the_vehicle_is_the_full_extrinsic(x_m, roll_deg, pitch_deg, yaw_deg, height_m):
    world_from_ground = mounting((x_m, -x_m, 0.0), (roll_deg, 0.0, yaw_deg))
    chained = world_from_ground @ ground_only_pose(height_m, pitch_deg)
    direct = matrix_from_pose(world_from_ground) @ matrix_from_pose(extrinsics((0.0, 0.0, height_m), (0.0, pitch_deg, 90.0)))
    np.testing.assert_allclose(matrix_from_pose(chained), direct, atol=1e-12)


@given(heights, angles, angles, angles)
def test_the_matrix_of_a_pose_takes_points_where_the_pose_does(x_m, roll_deg, pitch_deg, yaw_deg):
    pose = extrinsics((x_m, 2.0, 3.0), (roll_deg, pitch_deg, yaw_deg))
    np.testing.assert_allclose(matrix_from_pose(pose) @ (4.0, 5.0, 6.0, 1.0), (*pose.transform((4.0, 5.0, 6.0)), 1.0), atol=1e-12)


def test_a_height_or_pitch_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="position_m must be finite"):
        ground_only_pose(math.nan, 0.0)
    with pytest.raises(ValueError, match="orientation must be a unit quaternion"):
        ground_only_pose(1.0, math.nan)
