"""The matrices of Cepton's AR note: what they say as printed, and the mounting that the note means."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.world.geometry.overlay_frames import ground_only_pose, matrix_from_pose
from hilsim.world.geometry.poses import Pose, extrinsics, mounting
from hilsim.world.geometry.rotations import matrix_from_quaternion
from tests.unit.geometry.ar_note import printed_pitch

RIGHT, FORWARD, UP = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)
"""Directions in the sensor frame."""
GRAPHICS_RIGHT, GRAPHICS_UP, GRAPHICS_FORWARD = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)
ORIGIN = (0, 0, 0, 1)

angles = st.floats(-180.0, 180.0)
heights = st.floats(-100.0, 100.0)


def through(matrix, vector):
    return tuple((matrix @ np.array(vector)).tolist())


def test_the_printed_pitch_rolls_the_picture_and_leaves_the_line_of_sight():
    turned = printed_pitch(math.pi / 2)
    assert through(turned, GRAPHICS_FORWARD) == GRAPHICS_FORWARD
    np.testing.assert_allclose(through(turned, GRAPHICS_RIGHT), GRAPHICS_UP, atol=1e-15)
    np.testing.assert_allclose(through(turned, GRAPHICS_UP), tuple(-part for part in GRAPHICS_RIGHT), atol=1e-15)


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
