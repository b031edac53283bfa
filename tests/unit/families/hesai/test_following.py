"""Settings that PTC writes and keys of ``[[sensor]]`` say the same."""

from dataclasses import replace

import pytest

from hilsim.families.hesai.daemon.packets import keys_of, values_of
from hilsim.families.hesai.family import HesaiFamily
from hilsim.families.hesai.interface.state import RETURN_CODES, SETTINGS
from hilsim.families.hesai.protocol.ptc import Command
from hilsim.sensor.setup import SensorSetup
from tests.hesai_sensors import hesai

XT32 = HesaiFamily(hesai("xt32"), SensorSetup())


def written(command, payload, family=XT32):
    return replace(family, setup=replace(family.setup, **keys_of(command, payload, family)))


def test_a_sensor_has_the_settings_of_its_profile():
    values = values_of(XT32)
    assert {command: payload.hex() for command, payload in values.items()} == {
        0x17: "0258",
        0x18: "000000",
        0x1E: "01",
        0x1F: "00",
        0x22: "0000000e10",
    }
    assert all(SETTINGS[command].accepts(payload, "XT32") for command, payload in values.items())


@pytest.mark.parametrize("code", RETURN_CODES["XT32"].values())
@pytest.mark.parametrize("before", [0, 2, 3])
def test_return_modes_come_back(code, before):
    family = written(Command.RETURN_MODE, bytes([code]), written(Command.RETURN_MODE, bytes([before])))
    assert values_of(family)[Command.RETURN_MODE] == bytes([code])


@pytest.mark.parametrize(
    ("command", "payload"),
    [
        (Command.SPIN_RATE, b"\4\xb0"),
        (Command.SYNC_ANGLE, b"\1\x23\x28"),
        (Command.CLOCK_SOURCE, b"\1"),
        (Command.FIELD_OF_VIEW, b"\0\0\x64\x0a\x8c"),
        (Command.FIELD_OF_VIEW, b"\0\x0d\xac\0\x64"),
    ],
)
def test_settings_come_back(command, payload):
    assert values_of(written(command, payload))[command] == payload


@pytest.mark.parametrize("payload", ["0000000000", "0000000e10", "0007080708", "000e100000"])
def test_a_whole_turn_has_many_names(payload):
    assert written(Command.FIELD_OF_VIEW, bytes.fromhex(payload)).setup.field_of_view_deg == (0, 359)


def test_a_receiver_counts_where_the_sensor_listens_to_it():
    with_gps = replace(XT32, setup=replace(XT32.setup, gps=object()))
    assert with_gps.has_utc_source
    assert not written(Command.CLOCK_SOURCE, b"\1", with_gps).has_utc_source
