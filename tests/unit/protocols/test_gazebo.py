"""Gazebo's lidar messages, read back by a decoder of the tests' own; the interoperability tests read them by the real definitions."""

import math
import struct

import numpy as np
import pytest

from hilsim.protocols.gazebo import POINT_DTYPE, RayFan, laser_scan, point_cloud
from hilsim.world.geometry.poses import Pose

FAN = RayFan(
    horizontal_samples=5,
    horizontal_min_rad=-1.0,
    horizontal_max_rad=1.0,
    vertical_samples=3,
    vertical_min_rad=-0.2,
    vertical_max_rad=0.1,
    range_min_m=0.1,
    range_max_m=30.0,
)
RANGES = np.array([1.0, 2.0, np.inf, 4.0, -np.inf, 6.0, 7.0, np.nan, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0])
POSE = Pose(position_m=(1.0, 2.0, 3.0), orientation=(0.5, 0.5, -0.5, 0.5))
TOLD = {"time_ns": 12_000_000_345, "sequence": 7, "frame": "robot::link::lidar"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """``{number: [value …]}`` of a message: whole numbers, doubles and bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            (value,) = struct.unpack_from("<d", data, at)
            at += 8
        else:
            assert kind == 2
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    assert at == len(data)
    return found


def header_of(message):
    header = fields(message[1][0])
    stamp = fields(header[1][0])
    pairs = [fields(pair) for pair in header[2]]
    return stamp[1][0] * 10**9 + stamp[2][0], {pair[1][0].decode(): pair[2][0].decode() for pair in pairs}


def test_a_scan_has_every_figure_where_the_definition_has_it():
    message = fields(laser_scan(FAN, RANGES, pose=POSE, **TOLD))
    assert header_of(message) == (12_000_000_345, {"frame_id": "robot::link::lidar", "seq": "7"})
    assert message[2] == [b"robot::link::lidar"]
    pose = fields(message[3][0])
    assert fields(pose[4][0]) == {2: [1.0], 3: [2.0], 4: [3.0]}
    assert fields(pose[5][0]) == {2: [0.5], 3: [-0.5], 4: [0.5], 5: [0.5]}
    figures = [message[number][0] for number in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13)]
    assert figures == [-1.0, 1.0, 0.5, 0.1, 30.0, 5, -0.2, 0.1, pytest.approx(0.15), 3]
    assert np.array_equal(np.frombuffer(message[14][0], "<f8"), RANGES, equal_nan=True)
    assert message[15][0] == bytes(8 * 15)


def test_a_cloud_has_a_point_for_each_ray_on_that_ray():
    message = fields(point_cloud(FAN, RANGES, **TOLD))
    assert header_of(message)[1]["seq"] == "7"
    assert [fields(field).get(1)[0] for field in message[2]] == [b"x", b"y", b"z", b"intensity", b"ring"]
    assert [tuple(fields(field).get(number, [0])[0] for number in (2, 3, 4)) for field in message[2]] == [
        (0, 6, 1), (4, 6, 1), (8, 6, 1), (12, 6, 1), (16, 3, 1),
    ]  # fmt: skip
    assert (message[3], message[4], message[6], message[7]) == ([3], [5], [18], [90])
    assert 5 not in message  # little-endian
    assert 9 not in message  # not dense
    points = np.frombuffer(message[8][0], POINT_DTYPE)
    assert points["ring"].tolist() == [0] * 5 + [1] * 5 + [2] * 5
    finite = np.isfinite(RANGES)
    for index in np.flatnonzero(finite):
        row, column = divmod(int(index), 5)
        up, around = -0.2 + 0.15 * row, -1.0 + 0.5 * column
        wanted = RANGES[index] * np.array([math.cos(up) * math.cos(around), math.cos(up) * math.sin(around), math.sin(up)])
        assert np.allclose([points[name][index] for name in "xyz"], wanted, rtol=1e-6, atol=1e-6)
    assert np.isnan([points[name][7] for name in "xyz"]).all()


def test_a_miss_is_a_point_at_infinity_and_nan_where_its_ray_has_no_extent():
    fan = RayFan(
        horizontal_samples=1, horizontal_min_rad=0.0, horizontal_max_rad=0.0, vertical_samples=1, vertical_min_rad=0.0, vertical_max_rad=0.0,
        range_min_m=0.0, range_max_m=1.0,
    )  # fmt: skip
    (point,) = np.frombuffer(fields(point_cloud(fan, np.array([np.inf]), **TOLD))[8][0], POINT_DTYPE)
    assert point["x"] == np.inf
    assert np.isnan([point["y"], point["z"]]).all()


def test_a_scan_without_a_miss_is_dense():
    assert fields(point_cloud(FAN, np.ones(15), **TOLD))[9] == [1]


def test_one_ray_has_no_step_and_is_at_the_first_angle():
    fan = RayFan(
        horizontal_samples=1, horizontal_min_rad=0.5, horizontal_max_rad=1.0, vertical_samples=1, vertical_min_rad=0.0, vertical_max_rad=0.0,
        range_min_m=0.0, range_max_m=1.0,
    )  # fmt: skip
    assert fan.directions().tolist() == [[math.cos(0.5), math.sin(0.5), 0.0]]
    assert 6 not in fields(laser_scan(fan, np.ones(1), pose=Pose(), **TOLD))  # a step of 0 is left out
