"""The control interface of a Livox: what requests answer and make of the sensor's state, without a socket or a clock."""

import pytest

from hilsim.families.livox.interface.keys import HAP_PORTS, KEYS, MID360_PORTS, Work
from hilsim.families.livox.interface.requests import outcome_of, push_message
from hilsim.families.livox.interface.state import Conditions, LidarState, Unit
from hilsim.families.livox.protocol.commands import (
    Command,
    ControlFrame,
    ReturnCode,
    counted,
    encode_frame,
    read_pairs,
)
from tests.livox_units import counted_keys, read_answered_pairs

S = 1_000_000_000
ASKED_BY_THE_SDK = [0, 1, 4, 5, 6, 7, 0x12, *range(0x15, 0x1B), 0x1C, *range(0x8000, 0x800D), 0x800E, 0x8010, 0x8011]
"""Keys of the SDK's query of everything, as it was seen."""
HOST = bytes((10, 0, 0, 7))
WRITABLE = [number for number, key in KEYS.items() if key.accepts is not None and "mid360" in key.models]


class Sensor:
    """A state, a clock that tests set, and requests to it."""

    def __init__(self, model="mid360", ports=MID360_PORTS, boot_s=8, given=(), time_type=0):
        unit = Unit(
            model=model,
            device_type=9,
            serial="47MDK000000001",
            title="Mid-360",
            mac=bytes(range(6)),
            address="10.0.0.2",
            ports=ports,
            boot_ns=boot_s * S,
        )
        self.state, self.now_s, self.time_type = LidarState.of(unit, dict(given)), 0.0, time_type

    @property
    def conditions(self):
        return Conditions(now_ns=round(self.now_s * S), local_ns=round(self.now_s * S) + 7, time_type=self.time_type)

    def ask(self, command, data=b""):
        outcome = outcome_of(self.state, ControlFrame(command=command, sequence=1, data=data), self.conditions)
        self.state = outcome.state
        return outcome.data

    def set(self, *pairs):
        answer = self.ask(Command.SET, counted(pairs))
        return answer[0], int.from_bytes(answer[1:3], "little")

    def get(self, *keys):
        answer = self.ask(Command.QUERY, counted_keys(keys))
        assert answer[0] == 0
        return read_answered_pairs(answer)

    def work(self, now_s):
        self.now_s = now_s
        (_, value), *_ = self.get(0x8006)
        return Work(value[0])


def other_value(number):
    """A value that is not that of the factory, and that the sensor takes."""
    key, factory = KEYS[number], KEYS[number].factory
    match number:
        case 5 | 6 | 7:
            return HOST + (56_001).to_bytes(2, "little") + MID360_PORTS.of(number).to_bytes(2, "little")
        case 0x15 | 0x16:
            return bytes(20)
        case 0x12:
            return bytes(23) + b"\1"
        case _ if key.size == 1:
            return next(bytes([value]) for value in range(256) if bytes([value]) != factory and key.accepts(bytes([value]), MID360_PORTS))
    return bytes(range(1, key.size + 1))


def test_a_search_is_answered_with_model_serial_address_and_port():
    assert Sensor().ask(Command.SEARCH) == b"\x00\x09" + b"47MDK000000001\0\0" + bytes((10, 0, 0, 2)) + (56_100).to_bytes(2, "little")


def test_the_first_query_of_the_sdk_is_answered_with_that_key_first():
    assert Sensor().ask(Command.QUERY, counted_keys([0x8010])).hex() == "000100108001000" + "1"


def test_all_keys_that_the_sdk_asks_for_are_answered_in_its_order_with_their_lengths():
    answered = Sensor().get(*ASKED_BY_THE_SDK)
    assert [key for key, _ in answered] == ASKED_BY_THE_SDK
    assert [len(value) for _, value in answered] == [KEYS[key].size for key in ASKED_BY_THE_SDK]
    values = dict(answered)
    assert (values[0x8000], values[0x8005], values[0x800E]) == (b"47MDK000000001\0\0", bytes(range(6)), b"\0\0")


@pytest.mark.parametrize("number", WRITABLE)
def test_each_key_is_stored_and_read_back_and_the_factory_s_value_comes_back_by_a_reset(number):
    sensor = Sensor()
    factory, value = sensor.get(number), other_value(number)
    assert sensor.set((number, value)) == (0, 0)
    assert sensor.get(number) == [(number, value)] != factory
    assert sensor.set((number, value + b"\0")) == (ReturnCode.BAD_LENGTH, number)
    sensor.ask(Command.REBOOT, b"\x64\x00")
    assert sensor.get(number) == [(number, value)]
    assert sensor.ask(Command.FACTORY_RESET, bytes(16)) == b"\0"
    assert sensor.get(number) == factory


@pytest.mark.parametrize("number", [number for number, key in KEYS.items() if key.accepts is None and "mid360" in key.models])
def test_facts_are_read_only(number):
    assert Sensor().set((number, bytes(KEYS[number].size))) == (ReturnCode.READ_ONLY, number)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (0x0000, "11"),
        (0x0000, "00"),
        (0x0001, "03"),
        (0x001A, "05"),
        (0x001C, "02"),
        (0x0006, "00000000 2dcf ecdb"),
        (0x0006, "0a000007 0000 ecdb"),
        (0x0006, "0a000007 edcf eedb"),
        (0x0012, "0000c07f 00000000 00000000 00000000 00000000 00000000"),
        (0x0015, "00000000 00000000 05000000 04000000 00000000"),
        (0x0015, "69010000 00000000 00000000 00000000 00000000"),
        (0x0015, "00000000 00000000 00000000 3d000000 00000000"),
    ],
)
def test_values_that_a_mid_360_does_not_have_are_out_of_range_and_nothing_is_written(number, value):
    sensor = Sensor()
    before = sensor.state
    assert sensor.set((0x0001, b"\x01"), (number, bytes.fromhex(value))) == (ReturnCode.OUT_OF_RANGE, number)
    assert sensor.state == before


@pytest.mark.parametrize("number", [0x0008, 0x0013, 0x0020, 0x0024, 0x7FFF, 0x800D, 0xFFFF])
def test_keys_of_other_models_are_unknown(number):
    sensor = Sensor()
    assert sensor.set((number, b"\0")) == (ReturnCode.UNKNOWN_KEY, number)
    assert sensor.ask(Command.QUERY, counted_keys([0x8010, number])) == bytes([ReturnCode.UNKNOWN_KEY, 0, 0])


def test_models_have_keys_of_their_own():
    assert Sensor("hap", HAP_PORTS).set((0x0013, bytes((200, 0, 0, 0))), (0x0020, b"\1"), (0x0006, HOST + bytes.fromhex("a8de a8de"))) == (0, 0)
    assert Sensor("mid360s").set((0x0024, b"\1"), (0x002B, bytes(3))) == (0, 0)


def test_lists_that_are_not_whole_are_refused():
    sensor = Sensor()
    assert sensor.ask(Command.SET, bytes.fromhex("0200 0000 1a00 0100 01"))[0] == ReturnCode.KEY_COUNT
    assert sensor.ask(Command.QUERY, bytes.fromhex("0200 0000 1a00"))[0] == ReturnCode.KEY_COUNT


@pytest.mark.parametrize("command", [0x0102, 0x0300, 0x0301, 0x0303, 0x0400, 0x00FF, 0x1234])
def test_other_commands_fail(command):
    assert Sensor().ask(command, b"\1") == bytes([ReturnCode.FAILED])


def test_a_receiver_s_time_is_taken_where_the_rig_has_a_receiver():
    assert (Sensor().ask(Command.SET_TIME), Sensor(time_type=2).ask(Command.SET_TIME)) == (b"\x02", b"\x00")


def test_work_states_follow_each_other_from_the_start_to_points():
    sensor = Sensor()
    assert [sensor.work(at) for at in (0, 4.9, 5, 100)] == [Work.SELFCHECK, Work.SELFCHECK, Work.IDLE, Work.IDLE]
    assert sensor.set((0x1A, b"\1")) == (0, 0)
    states = [sensor.work(100 + after) for after in (0, 2.4, 2.5, 2.9, 3)]
    assert states == [Work.MOTOR_STARTUP, Work.MOTOR_STARTUP, Work.READY, Work.READY, Work.SAMPLING]
    assert [sensor.state.next_step_ns(round(at * S)) for at in (0, 100, 102.6, 103)] == [5 * S, 102.5 * S, 103 * S, None]
    sensor.set((0x1A, b"\x09"))
    assert sensor.work(200) is Work.READY
    sensor.set((0x1A, b"\1"))
    assert sensor.work(200) is Work.SAMPLING
    sensor.set((0x1A, b"\2"))
    assert sensor.work(200) is Work.IDLE


def test_a_target_set_in_the_self_check_is_reached_after_it_and_once_more_after_a_reboot():
    sensor = Sensor()
    sensor.set((0x1A, b"\1"))
    assert [sensor.work(at) for at in (4, 5, 7.5, 8)] == [Work.SELFCHECK, Work.MOTOR_STARTUP, Work.READY, Work.SAMPLING]
    sensor.now_s = 20
    assert sensor.ask(Command.REBOOT, (1000).to_bytes(2, "little")) == b"\0"
    assert [sensor.work(at) for at in (20, 25.9, 26, 28.9, 29)] == [Work.SELFCHECK] * 2 + [Work.MOTOR_STARTUP, Work.READY, Work.SAMPLING]
    assert dict(sensor.get(0x8008)) == {0x8008: (2).to_bytes(4, "little")}


def test_packets_are_sent_in_sampling_to_destinations_that_are_set():
    sensor = Sensor(boot_s=0)
    sensor.set((0x1A, b"\1"))
    assert (sensor.state.sends_points(0), sensor.state.sends_imu(0)) == (False, False)
    sensor.set((0x0006, other_value(6)))
    assert (sensor.state.sends_points(0), sensor.state.sends_imu(0)) == (True, False)
    sensor.set((0x0007, other_value(7)))
    assert (sensor.state.sends_points(0), sensor.state.sends_imu(0)) == (True, True)
    sensor.set((0x001C, b"\0"))
    assert (sensor.state.sends_points(0), sensor.state.sends_imu(0)) == (True, False)
    assert (sensor.state.point_host.address, sensor.state.point_host.port) == ("10.0.0.7", 56_001)


@pytest.mark.parametrize(("model", "ports"), [("mid360", MID360_PORTS), ("mid360s", MID360_PORTS), ("hap", HAP_PORTS)])
def test_a_push_message_has_all_keys_of_the_model_and_fits_a_frame(model, ports):
    sensor = Sensor(model, ports)
    frame = push_message(sensor.state, 9, sensor.conditions)
    assert (frame.command, frame.is_answer, frame.is_from_sensor) == (Command.PUSH, False, True)
    assert [key for key, _ in read_pairs(frame.data)] == sorted(sensor.state.unit.keys)
    assert len(encode_frame(frame)) < 1400
