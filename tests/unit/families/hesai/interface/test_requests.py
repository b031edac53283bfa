"""The control interface of a Hesai: what requests answer and make of the sensor's state, without a socket or a clock."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.families.hesai.interface.cgi import page_outcome
from hilsim.families.hesai.interface.requests import Conditions, outcome_of
from hilsim.families.hesai.interface.state import RETURN_CODES, SETTINGS, HesaiState, Unit
from hilsim.families.hesai.protocol.ptc import Command, Request, ReturnCode, encode_frame, read_head

S = 1_000_000_000
OK, WRONG, BAD, NEVER = ReturnCode.OK, ReturnCode.INVALID_PARAMETER, ReturnCode.INVALID_DATA, ReturnCode.UNSUPPORTED
HOST = bytes((10, 0, 0, 7))
NETWORK = bytes((10, 0, 0, 2, 255, 255, 255, 0, 10, 0, 0, 1, 1, 0, 7))


def unit_of(model="XT32"):
    angles = tuple((15.0 - channel, 0.082) for channel in range(32))
    return Unit(model=model, serial="XT32-1000001", mac=bytes.fromhex("ec9f0d000001"), angles_deg=angles)


class Sensor:
    """A state, a clock that tests set, and requests to it."""

    def __init__(self, model="XT32", **conditions):
        self.state, self.conditions = HesaiState.of(unit_of(model), {}), {"now_ns": 0, **conditions}

    def ask(self, command, payload=b""):
        self.state, (code, answer) = outcome_of(self.state, Request(command, payload), Conditions(**self.conditions))
        return code, answer

    def get(self, command, payload=b""):
        code, answer = self.ask(command, payload)
        assert code is OK
        return answer

    def page(self, **query):
        self.state, document = page_outcome(self.state, query)
        return document


def test_a_frame_is_as_clients_send_it():
    assert encode_frame(Command.CALIBRATION, b"").hex() == "4774050000000000"
    assert encode_frame(Command.DESTINATION, HOST + bytes.fromhex("0940277e")).hex() == "47742000000000080a0000070940277e"
    assert encode_frame(0x83, b"\1", ReturnCode.UNSUPPORTED).hex() == "477483050000000101"
    assert read_head(bytes.fromhex("47741e0000000001")) == (Command.RETURN_MODE, 1)
    with pytest.raises(ValueError, match="bytes 0 and 1 must be 4774, got 5775"):
        read_head(bytes.fromhex("5775020500000000"))


@pytest.mark.parametrize(
    ("command", "payload", "size"),
    [
        (Command.INVENTORY, b"", 120),
        (Command.CONFIG, b"", 47),
        (Command.STATUS, b"", 54),
        (Command.MONITOR, b"", 64),
        (Command.PTP_DIAGNOSTICS, b"\1", 16),
        (Command.PTP_DIAGNOSTICS, b"\2", 26),
        (Command.PTP_DIAGNOSTICS, b"\3", 50),
        (Command.PTP_DIAGNOSTICS, b"\4", 8),
        (Command.GET_FIELD_OF_VIEW, b"", 5),
        (Command.GET_PTP, b"", 7),
        (Command.GET_LOCK_OFFSET, b"", 1),
    ],
)
def test_answers_have_the_lengths_that_were_measured(command, payload, size):
    assert len(Sensor(is_locked=True).get(command, payload)) == size


def test_the_calibration_is_a_text_with_a_line_of_names():
    lines = Sensor().get(Command.CALIBRATION).decode().splitlines()
    assert lines[:2] == ["Channel,Elevation,Azimuth", "1,15.000,0.082"]
    assert lines[-1] == "32,-16.000,0.082"


def test_the_inventory_says_who_it_is():
    answer = Sensor().get(Command.INVENTORY)
    assert answer[:18].rstrip(b"\0") == b"XT32-1000001"
    assert answer[34:40].hex() == "ec9f0d000001"
    assert tuple(answer[104:109]) == (0, 0, 25, 0, 32)
    models = ("Pandar40P", "Pandar64", "QT64", "XT16", "XT32M")
    assert [Sensor(model).get(Command.INVENTORY)[106] for model in models] == [0, 2, 15, 26, 38]


def test_the_config_has_what_clients_have_set():
    sensor = Sensor()
    for command, payload in [
        (Command.NETWORK, NETWORK),
        (Command.DESTINATION, HOST + struct.pack(">HH", 2369, 10_111)),
        (Command.SPIN_RATE, struct.pack(">H", 1200)),
        (Command.SYNC_ANGLE, b"\1" + struct.pack(">H", 90)),
        (Command.FIELD_OF_VIEW, b"\0" + struct.pack(">HH", 105, 2700)),
        (Command.CLOCK_SOURCE, b"\1"),
        (Command.TRIGGER, b"\1"),
        (Command.RETURN_MODE, b"\2"),
        (Command.STANDBY, b"\1"),
    ]:
        assert sensor.ask(command, payload) == (OK, b"")
    answer = sensor.get(Command.CONFIG)
    assert answer[:16] == NETWORK[:12] + HOST
    assert struct.unpack(">HHHBHHHBBBBBBBH", answer[16:38]) == (2369, 10_111, 1200, 1, 9000, 1050, 27_000, 1, 1, 1, 2, 1, 0, 1, 7)
    assert sensor.get(Command.GET_FIELD_OF_VIEW) == b"\0" + struct.pack(">HH", 105, 2700)


@pytest.mark.parametrize(("angle", "kept_cdeg"), [(0, 0), (90, 9000), (360, 0), (361, 361), (9000, 9000), (36_000, 36_000)])
def test_a_sync_angle_is_taken_in_degrees_and_in_hundredths(angle, kept_cdeg):
    sensor = Sensor()
    assert sensor.ask(Command.SYNC_ANGLE, b"\1" + struct.pack(">H", angle))[0] is OK
    assert struct.unpack(">H", sensor.state.values[Command.SYNC_ANGLE][1:])[0] == kept_cdeg


@pytest.mark.parametrize(
    ("command", "payload", "code"),
    [
        (Command.SPIN_RATE, struct.pack(">H", 900), WRONG),
        (Command.SPIN_RATE, b"\1", BAD),
        (Command.SYNC_ANGLE, b"\2\0\0", WRONG),
        (Command.SYNC_ANGLE, b"\1" + struct.pack(">H", 36_001), WRONG),
        (Command.RETURN_MODE, b"\6", WRONG),
        (Command.STANDBY, b"\2", WRONG),
        (Command.DESTINATION, bytes(8), WRONG),
        (Command.DESTINATION, HOST + struct.pack(">HH", 0, 1), WRONG),
        (Command.FIELD_OF_VIEW, b"\0" + struct.pack(">HH", 0, 3601), WRONG),
        (Command.FIELD_OF_VIEW, b"\1" + bytes(322), BAD),
        (Command.PTP, b"\4\0\0\0", WRONG),
        (Command.PTP, b"\0\0", BAD),
        (Command.CONFIG, b"\0", BAD),
        (Command.PTP_DIAGNOSTICS, b"", BAD),
        (Command.PTP_DIAGNOSTICS, b"\5", WRONG),
        (0x28, b"", NEVER),
        (0x83, bytes(100), NEVER),
        (0xA9, b"", NEVER),
    ],
)
def test_wrong_requests_have_a_return_code_and_change_nothing(command, payload, code):
    sensor = Sensor()
    before = sensor.state
    assert sensor.ask(command, payload) == (code, b"")
    assert sensor.state is before


@pytest.mark.parametrize("model", RETURN_CODES)
def test_each_model_takes_its_return_modes_alone(model):
    taken = [code for code in range(256) if Sensor(model).ask(Command.RETURN_MODE, bytes([code]))[0] is OK]
    assert taken == list(RETURN_CODES[model].values())


def test_a_reboot_keeps_settings_and_counts():
    sensor = Sensor()
    sensor.ask(Command.RETURN_MODE, b"\2")
    sensor.conditions["now_ns"] = 90 * S
    assert sensor.ask(Command.REBOOT) == (OK, b"")
    assert sensor.state.is_starting
    assert not sensor.state.is_sending
    sensor.state = sensor.state.started()
    sensor.conditions["now_ns"] = 155 * S
    uptime_s, rpm, *_ = struct.unpack(">IH", sensor.get(Command.STATUS)[:6])
    starts, minutes = struct.unpack(">II", sensor.get(Command.STATUS)[40:48])
    assert (uptime_s, rpm, starts, minutes) == (65, 600, 2, 1)
    assert sensor.state.values[Command.RETURN_MODE] == b"\2"
    assert sensor.state.is_sending


@pytest.mark.parametrize(("source", "locks"), [(0, (1, 1, 0, 4)), (1, (0, 0, 2, 9))])
@pytest.mark.parametrize("is_locked", [False, True])
def test_the_status_says_what_the_clock_follows(source, locks, is_locked):
    sensor = Sensor(is_locked=is_locked, utc_ns=1_700_000_000 * S)
    sensor.ask(Command.CLOCK_SOURCE, bytes([source]))
    status, diagnosis = sensor.get(Command.STATUS), sensor.get(Command.PTP_DIAGNOSTICS, b"\1")
    found = (status[38], status[39], status[48], struct.unpack(">qii", diagnosis)[1])
    assert found == (locks if is_locked else (0, 0, 0, 4))
    assert struct.unpack(">qq", sensor.get(Command.PTP_DIAGNOSTICS, b"\3")[:16])[1] == (1_700_000_000 * S if is_locked and source else 0)


def test_standby_stands_still():
    sensor = Sensor()
    sensor.ask(Command.STANDBY, b"\1")
    assert not sensor.state.is_sending
    assert struct.unpack(">H", sensor.get(Command.STATUS)[4:6])[0] == 0


@given(st.sampled_from([*SETTINGS]), st.binary(max_size=16))
def test_what_is_written_is_kept_and_comes_back_from_a_file(command, payload):
    state = HesaiState.of(unit_of(), {})
    then, code = state.written(command, payload)
    again = HesaiState.of(unit_of(), {int(name, 16): bytes.fromhex(text) for name, text in then.kept.items()})
    assert again.values == then.values
    assert (code is OK) or then is state


def test_http_sets_and_shows_as_objects_with_a_head():
    sensor = Sensor("Pandar40P")
    assert sensor.page(action="get", object="lidar_monitor") == {
        "Head": {"ErrorCode": "0", "Message": "Success"},
        "Body": {"lidarInCur": "790.00 mA", "lidarInVol": "12.00 V", "lidarInPower": "9.48 W", "phaseoffset": "0"},
    }
    for speed, rpm in (("1", 300), ("2", 600), ("3", 1200)):
        assert sensor.page(action="set", object="lidar", key="spin_speed", value=speed)["Head"]["ErrorCode"] == "0"
        assert sensor.state.number(Command.SPIN_RATE) == rpm
    assert sensor.page(action="set", object="lidar_data", key="lidar_mode", value="2")["Head"]["ErrorCode"] == "0"
    assert sensor.state.values[Command.RETURN_MODE] == b"\2"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"action": "set", "object": "lidar", "key": "spin_speed", "value": "4"}, "1"),
        ({"action": "set", "object": "lidar", "key": "clock_source", "value": "x"}, "1"),
        ({"action": "set", "object": "lidar", "key": "clock_source", "value": "\u0661"}, "1"),
        ({"action": "get", "object": "device_info"}, "3"),
        ({"action": "set", "object": "reset"}, "3"),
        ({}, "3"),
    ],
)
def test_http_says_what_it_refuses(query, code):
    sensor = Sensor()
    before = sensor.state
    assert sensor.page(**query)["Head"]["ErrorCode"] == code
    assert sensor.state is before
