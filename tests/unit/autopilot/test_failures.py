"""Failures that ground stations inject: pymavlink asks, and hilsim answers and breaks."""

import asyncio
import math
import socket

import numpy as np
import pytest
from pymavlink.dialects.v20 import common

from hilsim.config.script import ClearChange, FaultChange
from hilsim.errors import ConfigError
from hilsim.parts.vehicle.autopilot.passing_state import read_message
from hilsim.parts.vehicle.ground_stations.endpoints import Protocol, StationSpec
from hilsim.parts.vehicle.ground_stations.failures import FAILURES, FailureInjector, changes_of
from hilsim.protocols.mavlink.messages import COMMAND_LONG_DTYPE
from tests.mavlink import packer
from tests.unit.autopilot.test_forwarding import Controller, received, until

STATION = 255, 190


def command(unit, failure, instance=0.0, *, system=1, component=1, mask=0.0, identity=420, **more):
    message = common.MAVLink_command_long_message(system, component, identity, 0, unit, failure, instance, mask, 0, 0, 0)
    return message.pack(packer(*STATION), **more)


RANGES = ("tfmini", "sf45-2")


def changes(*arguments, motors=4, ranges=RANGES, **keys):
    made = changes_of(read_message(command(*arguments, **keys), COMMAND_LONG_DTYPE), motors, ranges)
    return made and [(each.name,) if isinstance(each, ClearChange) else (each.fault.name, each.fault.kind) for each in made]


def test_a_failure_of_a_sensor_replaces_the_one_that_it_had():
    assert changes(common.FAILURE_UNIT_SENSOR_GPS, common.FAILURE_TYPE_OFF) == [("injected-gps-1",), ("injected-gps-1", "gps_off")]
    assert changes(common.FAILURE_UNIT_SENSOR_MAG, common.FAILURE_TYPE_STUCK, 1.0)[1] == ("injected-compass-1", "compass_stuck")
    assert changes(common.FAILURE_UNIT_SENSOR_GPS, common.FAILURE_TYPE_OK) == [("injected-gps-*",)]


def test_motors_are_chosen_by_number_all_or_by_a_mask():
    def broken(*arguments, **keys):
        return [
            each.fault.motors
            for each in changes_of(read_message(command(*arguments, **keys), COMMAND_LONG_DTYPE), 4)
            if isinstance(each, FaultChange)
        ]

    motor, off = common.FAILURE_UNIT_SYSTEM_MOTOR, common.FAILURE_TYPE_OFF
    assert broken(motor, off, 3.0) == [(3,)]
    assert broken(motor, off) == [(1,), (2,), (3,), (4,)]
    assert broken(motor, off, math.nan, mask=0b1010) == [(2,), (4,)]
    assert changes(motor, common.FAILURE_TYPE_OK, 2.0) == [("injected-motor-*",)]


def test_range_sensors_are_chosen_by_their_order_in_the_rig():
    unit, off = common.FAILURE_UNIT_SENSOR_DISTANCE_SENSOR, common.FAILURE_TYPE_OFF
    record = read_message(command(unit, off), COMMAND_LONG_DTYPE)
    assert [each.fault.on for each in changes_of(record, 4, RANGES) if isinstance(each, FaultChange)] == [*RANGES]
    assert changes(unit, common.FAILURE_TYPE_STUCK, 2.0)[1] == ("injected-range-2", "range_stuck")
    assert changes(unit, off, ranges=()) is None


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ((common.FAILURE_UNIT_SYSTEM_BATTERY, common.FAILURE_TYPE_OFF), {}),
        ((common.FAILURE_UNIT_SENSOR_AIRSPEED, common.FAILURE_TYPE_OK), {}),
        ((common.FAILURE_UNIT_SENSOR_GPS, common.FAILURE_TYPE_SLOW), {}),
        ((common.FAILURE_UNIT_SENSOR_GPS, common.FAILURE_TYPE_OFF, 2.0), {}),
        ((common.FAILURE_UNIT_SYSTEM_MOTOR, common.FAILURE_TYPE_OFF, 5.0), {}),
        ((common.FAILURE_UNIT_SENSOR_GPS, common.FAILURE_TYPE_OFF, math.nan), {"mask": math.nan}),
        ((math.nan, common.FAILURE_TYPE_OFF), {}),
        ((4.0, math.inf), {}),
        ((-3.0, 1e30), {}),
    ],
)
def test_what_the_vehicle_does_not_have_is_not_supported(arguments, keys):
    assert changes(*arguments, **keys) is None


def test_every_pair_is_of_the_message_set_and_makes_a_fault():
    for unit, failure in FAILURES:
        assert unit in common.enums["FAILURE_UNIT"]
        assert failure in common.enums["FAILURE_TYPE"] or failure == 8  # drift is younger than this pymavlink
        assert any(FAILURES[unit, failure] in each for each in changes(float(unit), float(failure)))


@pytest.fixture
def bench(free_port):
    """A station on UDP, a controller of the ids (1, 1), and the changes that were made."""
    made, refused = [], []

    async def make_change(change):
        await asyncio.sleep(0)
        if refused:
            raise ConfigError("at most 64 faults may be injected, got one more")
        made.append(change)

    async def ask(*frames, answers=0, controller_ids=(1, 1)):
        """Acknowledgements that a station got, and frames that the controller got."""
        port, controller = free_port(), Controller()
        station = StationSpec(name="ground", protocol=Protocol.UDP, port=port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ground:
            ground.bind(("127.0.0.1", 0))
            async with controller.forward(station) as forwarder:
                injector = FailureInjector(controller=lambda: controller_ids, motors=4, make_change=make_change, answer=forwarder.answer)
                forwarder.taker = injector.take
                for frame in frames:
                    ground.sendto(frame, ("127.0.0.1", port))
                came, heard = [], []
                await until(
                    lambda: (
                        came.extend(received(ground))
                        or heard.extend(controller.hears())
                        or (len(came) + len(heard) >= len(frames) and len(came) >= answers)
                    )
                )
                injector.close()
        return [common.MAVLink(None).parse_char(each) for each in came], heard

    return ask, made, refused


@pytest.fixture
def free_port():
    def find():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    return find


@pytest.mark.parametrize("keys", [{}, {"force_mavlink1": True}, {"system": 0, "component": 0}])
@pytest.mark.asyncio
async def test_hilsim_answers_as_the_controller_and_the_controller_gets_nothing(bench, keys):
    ask, made, _ = bench
    [answer], heard = await ask(command(4.0, 1.0, **keys), answers=1)
    assert (answer.get_type(), answer.command, answer.result) == ("COMMAND_ACK", 420, common.MAV_RESULT_ACCEPTED)
    assert (answer.get_srcSystem(), answer.get_srcComponent(), answer.target_system, answer.target_component) == (1, 1, *STATION)
    assert heard == []
    assert [each.kind for each in made] == ["clear", "fault"]


@pytest.mark.asyncio
async def test_what_cannot_be_done_is_answered_honestly(bench):
    ask, made, refused = bench
    [answer], heard = await ask(command(100.0, 1.0), answers=1)
    assert (answer.result, heard, made) == (common.MAV_RESULT_UNSUPPORTED, [], [])
    refused.append(True)
    [answer], _ = await ask(command(4.0, 1.0), answers=1)
    assert answer.result == common.MAV_RESULT_TEMPORARILY_REJECTED


@pytest.mark.asyncio
async def test_commands_to_others_and_other_commands_pass_unchanged(bench):
    ask, made, _ = bench
    frames = [command(4.0, 1.0, system=2), command(4.0, 1.0, component=154), command(4.0, 1.0, identity=400)]
    answers, heard = await ask(*frames)
    assert (answers, sorted(heard), made) == ([], sorted(frames), [])
    answers, heard = await ask(command(4.0, 1.0), controller_ids=(0, 0))
    assert (answers, len(heard), made) == ([], 1, [])


def test_random_bytes_of_a_command_break_nothing():
    draw = np.random.default_rng(5)
    for _ in range(2000):
        record = np.frombuffer(draw.bytes(COMMAND_LONG_DTYPE.itemsize), COMMAND_LONG_DTYPE)[0]
        with np.errstate(all="ignore"):
            made = changes_of(record, 4)
        assert made is None or made
