"""Frames of obstacles and distances, as pymavlink reads them."""

import math

import numpy as np
from pymavlink.dialects.v20 import common

from hilsim.parts.vehicle.obstacle_messages import distance_frame, distance_of_beam, obstacle_frame, obstacles_of_sectors
from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ObstacleSpec
from hilsim.protocols.mavlink.messages import build_origin


def read(*frames):
    return common.MAVLink(None).parse_buffer(b"".join(frame.tobytes() for frame in frames))


def test_obstacles_are_sent_in_the_bodys_frame_with_their_time():
    nearest = np.full(72, np.nan)
    nearest[[0, 18, 71]] = 4.0, math.inf, 2.341
    (message,) = read(obstacle_frame(obstacles_of_sectors(ObstacleSpec(sensor="top"), nearest), 1_234_567_890, build_origin(1, 196)))
    assert (message.get_type(), message.get_srcSystem(), message.get_srcComponent()) == ("OBSTACLE_DISTANCE", 1, 196)
    assert (message.time_usec, message.frame, message.increment, message.increment_f, message.angle_offset) == (1_234_567, 12, 5, 5.0, 0.0)
    assert (message.min_distance, message.max_distance, message.sensor_type) == (50, 10_000, 0)
    assert {sector: distance for sector, distance in enumerate(message.distances) if distance != 65_535} == {0: 400, 18: 10_001, 71: 234}


def test_a_distance_is_reported_with_orientation_and_width_and_frames_are_numbered():
    spec = DistanceSensorSpec(sensor="top", orientation="down", width_deg=10.0, sensor_id=7)
    sender = build_origin(3, 196)
    first, second = read(*(distance_frame(distance_of_beam(spec, reach), 2_500_000_000, sender) for reach in (6.5, math.inf)))
    assert (first.get_type(), first.get_srcSystem(), first.get_seq(), second.get_seq()) == ("DISTANCE_SENSOR", 3, 0, 1)
    assert (first.time_boot_ms, first.orientation, first.id, first.current_distance, second.current_distance) == (2500, 25, 7, 650, 10_001)
    np.testing.assert_allclose([first.horizontal_fov, first.vertical_fov], math.radians(10.0), rtol=1e-6)


def test_a_beam_without_a_ray_is_not_sent():
    assert distance_of_beam(DistanceSensorSpec(sensor="top"), math.nan) is None
