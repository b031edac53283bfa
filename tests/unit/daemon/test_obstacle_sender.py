"""Messages made of scans: their rates, and that a lidar which stands still lets them stop."""

import time

import numpy as np
import pytest
from pymavlink.dialects.v20 import common

from hilsim.compilation.atomics import publish, shared_words
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.setting import LidarSetting
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.parts.vehicle.autopilot.loop_context import FlightCount
from hilsim.parts.vehicle.obstacle_sender import ScanMessages
from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ObstacleSpec
from hilsim.parts.vehicle.specs import ControllerSpec, VehicleRigSpec
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.transmit.packet_queue import allocate_packet_queue, take


@pytest.fixture
def setting():
    path = profiles_directory() / "sensors" / "vlp16.toml"
    return LidarSetting(name="top", stream=0, spec=parse_table(VelodyneSpec, read_toml(path), str(path)))


@pytest.fixture
def messages():
    made = []

    def make(**wanted):
        spec = VehicleRigSpec(controller=ControllerSpec(kind="tcp"), **wanted)
        made.append(ScanMessages(spec=spec, observations=allocate_packet_queue(64, LARGEST_FRAME), counts=shared_words(FlightCount)))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def show(obstacle_map, number, nearest_m=4.0):
    """As a rendering thread publishes it."""
    obstacle_map.shown[number % 2] = nearest_m
    obstacle_map.shown_ns[number % 2] = number * 1_000_000
    publish(obstacle_map.published, 0, number)


def told(messages):
    taken = take(messages.observations, 64)
    data = b"".join(row[:size].tobytes() for row, size in zip(taken.payload, taken.size, strict=True))
    return common.MAVLink(None).parse_buffer(data) or []


def test_each_message_is_reported_once_for_what_is_new_and_not_again(messages, setting):
    beams = (
        DistanceSensorSpec(sensor="top", rate_hz=50.0, sensor_id=1),
        DistanceSensorSpec(sensor="top", rate_hz=50.0, orientation="right", sensor_id=2),
    )
    running = messages(obstacle=ObstacleSpec(sensor="top", rate_hz=50.0), distance=beams)
    obstacle_map = running.obstacle_map(setting)
    running.warm()
    show(obstacle_map, 1)
    running.start()
    heard = []
    for number in (2, 3):
        deadline = time.monotonic() + 10
        while len(heard) < 3 * (number - 1) and time.monotonic() < deadline:
            time.sleep(0.01)
            heard += told(running)
        assert len(heard) == 3 * (number - 1)
        time.sleep(0.1)
        assert told(running) == []
        show(obstacle_map, number)
    assert sorted((message.get_type(), getattr(message, "id", 0), getattr(message, "orientation", 0)) for message in heard[:3]) == [
        ("DISTANCE_SENSOR", 1, 0),
        ("DISTANCE_SENSOR", 2, 2),
        ("OBSTACLE_DISTANCE", 330, 0),
    ]
    assert {message.get_srcComponent() for message in heard} == {196}
    assert [message.get_seq() for message in heard] == list(range(6))


def test_messages_without_a_consumer_are_counted_and_those_taken_before_stay_whole(messages, setting):
    running = messages(distance=(DistanceSensorSpec(sensor="top", rate_hz=50.0),))
    obstacle_map = running.obstacle_map(setting)
    running.warm()
    running.start()
    number, deadline = 0, time.monotonic() + 60
    while running.counts[FlightCount.UNTAKEN_OBSTACLES] < 3 and time.monotonic() < deadline:
        number += 1
        show(obstacle_map, number)
        time.sleep(0.01)
    running.stop()
    left_out = int(running.counts[FlightCount.UNTAKEN_OBSTACLES])
    assert left_out >= 3
    assert [message.get_seq() for message in told(running)] == list(range(64))
    assert running.counts.sum() == left_out  # no other column


def test_a_beam_into_which_no_ray_looked_is_not_reported(messages, setting):
    running = messages(distance=(DistanceSensorSpec(sensor="top", rate_hz=50.0),))
    obstacle_map = running.obstacle_map(setting)
    running.warm()
    show(obstacle_map, 1, np.nan)
    running.start()
    time.sleep(0.1)
    assert told(running) == []
    assert not running.has_ended


def test_a_lidar_without_consumers_is_not_read(messages, setting):
    running = messages(obstacle=ObstacleSpec(sensor="other"))
    assert running.obstacle_map(setting) is None
