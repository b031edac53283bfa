"""Rotations and poses against hand-computed cases and against SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from hilsim.world.geometry.frames import BODY_FROM_SENSOR, sensor_direction
from hilsim.world.geometry.poses import Pose, extrinsics, mounting
from hilsim.world.geometry.rotations import (
    about_axis,
    conjugate,
    from_roll_pitch_yaw,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    roll_pitch_yaw_rad,
    rotate,
    slerp,
)

angles = st.floats(-180.0, 180.0)


def scipy_rotation(q):
    return Rotation.from_quat([q[1], q[2], q[3], q[0]])


def test_azimuth_zero_looks_along_sensor_y_and_grows_towards_x():
    np.testing.assert_allclose(sensor_direction(0.0, 0.0), (0.0, 1.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(sensor_direction(math.pi / 2, 0.0), (1.0, 0.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(sensor_direction(0.0, math.pi / 6), (0.0, math.sqrt(0.75), 0.5), atol=1e-15)


def test_a_sensor_without_mounting_angles_looks_along_body_x_and_turns_clockwise():
    np.testing.assert_allclose(rotate(BODY_FROM_SENSOR, sensor_direction(0.0, 0.0)), (1.0, 0.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(rotate(BODY_FROM_SENSOR, sensor_direction(math.pi / 2, 0.0)), (0.0, -1.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(rotate(BODY_FROM_SENSOR, (0.0, 0.0, 1.0)), (0.0, 0.0, 1.0), atol=1e-15)


@given(angles, st.floats(-89.0, 89.0), angles)
def test_roll_pitch_and_yaw_come_back_from_their_rotation(roll, pitch, yaw):
    turn = from_roll_pitch_yaw(roll, pitch, yaw)
    again = from_roll_pitch_yaw(*map(math.degrees, roll_pitch_yaw_rad(turn)))
    assert abs(np.dot(turn, again)) == pytest.approx(1.0, abs=1e-12)


def test_positive_yaw_turns_left_pitch_dips_the_nose_and_roll_drops_the_right_side():
    np.testing.assert_allclose(rotate(from_roll_pitch_yaw(0.0, 0.0, 90.0), (1.0, 0.0, 0.0)), (0.0, 1.0, 0.0), atol=1e-15)
    assert rotate(from_roll_pitch_yaw(0.0, 10.0, 0.0), (1.0, 0.0, 0.0))[2] == pytest.approx(-math.sin(math.radians(10.0)))
    assert rotate(from_roll_pitch_yaw(10.0, 0.0, 0.0), (0.0, -1.0, 0.0))[2] == pytest.approx(-math.sin(math.radians(10.0)))


@given(angles, angles, angles)
def test_roll_pitch_yaw_is_the_intrinsic_zyx_rotation(roll, pitch, yaw):
    ours = matrix_from_quaternion(from_roll_pitch_yaw(roll, pitch, yaw))
    np.testing.assert_allclose(ours, Rotation.from_euler("ZYX", [yaw, pitch, roll], degrees=True).as_matrix(), atol=1e-12)


@given(angles, angles, angles, angles)
def test_multiply_applies_the_right_factor_first(a, b, c, d):
    p, q = from_roll_pitch_yaw(a, b, c), from_roll_pitch_yaw(d, a, b)
    expected = (scipy_rotation(p) * scipy_rotation(q)).apply([1.0, -2.0, 3.0])
    np.testing.assert_allclose(rotate(multiply(p, q), (1.0, -2.0, 3.0)), expected, atol=1e-12)


@given(angles, angles, angles)
def test_conjugate_undoes_a_rotation(roll, pitch, yaw):
    q = from_roll_pitch_yaw(roll, pitch, yaw)
    np.testing.assert_allclose(rotate(conjugate(q), rotate(q, (1.0, 2.0, 3.0))), (1.0, 2.0, 3.0), atol=1e-12)


@given(angles, angles, st.floats(0.0, 1.0))
def test_slerp_agrees_with_scipy(a, b, s):
    p, q = from_roll_pitch_yaw(a, 20.0, 0.0), from_roll_pitch_yaw(0.0, b / 3, 40.0)
    expected = Slerp([0.0, 1.0], Rotation.concatenate([scipy_rotation(p), scipy_rotation(q)]))(s)
    assert (expected.inv() * scipy_rotation(slerp(p, q, s))).magnitude() < 1e-7


def test_slerp_takes_the_shorter_way_between_quaternions_of_opposite_sign():
    q = about_axis((0.0, 0.0, 1.0), 0.2)
    half = slerp((1.0, 0.0, 0.0, 0.0), tuple(-part for part in q), 0.5)
    np.testing.assert_allclose(rotate(half, (1.0, 0.0, 0.0)), (math.cos(0.1), math.sin(0.1), 0.0), atol=1e-14)


def test_slerp_of_equal_rotations_is_that_rotation():
    q = about_axis((0.0, 1.0, 0.0), 0.7)
    np.testing.assert_allclose(slerp(q, q, 0.3), q, atol=1e-15)


@given(angles, angles, angles)
def test_a_matrix_becomes_its_quaternion_again(roll, pitch, yaw):
    q = from_roll_pitch_yaw(roll, pitch, yaw)
    found = quaternion_from_matrix(matrix_from_quaternion(q))
    assert abs(np.dot(found, q)) == pytest.approx(1.0, abs=1e-12)


def test_poses_compose_from_right_to_left():
    world_from_body = mounting((10.0, 0.0, 0.0), (0.0, 0.0, 90.0))
    body_from_tip = Pose(position_m=(1.0, 0.0, 0.0))
    np.testing.assert_allclose((world_from_body @ body_from_tip).position_m, (10.0, 1.0, 0.0), atol=1e-15)


def test_the_inverse_of_a_pose_brings_points_back():
    pose = mounting((1.0, 2.0, 3.0), (10.0, 20.0, 30.0))
    np.testing.assert_allclose(pose.inverse().transform(pose.transform((4.0, 5.0, 6.0))), (4.0, 5.0, 6.0), atol=1e-14)


def test_extrinsics_turn_a_yawed_sensor_to_the_left():
    pose = extrinsics((0.5, 0.0, 1.0), (0.0, 0.0, 90.0))
    np.testing.assert_allclose(rotate(pose.orientation, sensor_direction(0.0, 0.0)), (0.0, 1.0, 0.0), atol=1e-15)
    assert pose.position_m == (0.5, 0.0, 1.0)


def test_a_pose_names_each_of_its_faults():
    with pytest.raises(ValueError, match=r"position_m must be finite.*; orientation must be a unit quaternion"):
        Pose(position_m=(math.nan, 0.0, 0.0), orientation=(1.0, 1.0, 0.0, 0.0))
