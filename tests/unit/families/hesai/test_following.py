"""Settings that PTC writes and keys of ``[[sensor]]`` say the same, and packets follow them by timed changes."""

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hilsim.config.tables.sensor import NetworkSpec, SensorSpec, SensorWebSpec
from hilsim.daemon.parts import RigClock
from hilsim.emulator.planning import build_lidar_plan
from hilsim.errors import ConfigError
from hilsim.families.hesai.daemon.packets import RigPackets, keys_of, values_of
from hilsim.families.hesai.daemon.sensor import HesaiSensor
from hilsim.families.hesai.family import HesaiFamily
from hilsim.families.hesai.interface.state import RETURN_CODES, SETTINGS
from hilsim.families.hesai.protocol.ptc import Command, Request, ReturnCode
from hilsim.sensor.setup import SensorSetup
from tests.hesai_sensors import hesai
from tests.lidars import lidar_setting

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


class Rig:
    """A sensor of a rig that makes changes at once, or refuses them."""

    def __init__(self, **setup):
        self.setting = lidar_setting(hesai("xt32"), **setup)
        self.plan = build_lidar_plan(self.setting, seed=0, utc_epoch_ns=0)
        self.made, self.sent_to, self.silent, self.is_refusing = [], [], None, False
        self.spec = SensorSpec(name="top", profile="xt32", network=NetworkSpec(source="127.0.90.2"))
        self.web, self.changes, self.saved_file, self.answers = SensorWebSpec(serial="XT-7"), self, None, True
        self.clock = RigClock(epoch_ns=time.monotonic_ns(), utc_epoch_ns=10**18)

    @property
    def lidar(self):
        return SimpleNamespace(setting=self.setting, plan=self.plan)

    def follows_time(self, _rig_ns):
        return True

    async def make(self, change):
        if self.is_refusing:
            raise ConfigError("its clock must not be changed")
        self.made.append(change)
        names = ("rotation_rate_rpm", "return_mode", "hesai", "field_of_view_deg", "phase_lock_deg")
        given = {name: value for name in names if (value := getattr(change, name)) is not None}
        self.setting = replace(self.setting, setup=replace(self.setting.setup, **given))
        return SimpleNamespace(begun_ns={}, at_ns=0)

    def redirect(self, address, ports, *, key):
        del key
        self.sent_to.append((address, *ports))

    def silence(self, *, data, others):
        self.silent = data, others


def asked(rig, *requests):
    """Results of requests to a sensor of the rig, and its state then."""
    packets = RigPackets(rig)
    sensor = HesaiSensor("top", packets.at_start(), packets)

    async def ask():
        return [(await sensor.request(Request(command, payload)))[3] for command, payload in requests]

    return asyncio.run(ask()), sensor


def test_a_request_is_one_change_of_what_it_changes():
    rig = Rig()
    codes, sensor = asked(rig, (Command.RETURN_MODE, b"\2"), (Command.RETURN_MODE, b"\2"), (Command.SPIN_RATE, b"\4\xb0"), (Command.TRIGGER, b"\1"))
    assert codes == [0, 0, 0, 0]
    assert [(change.return_mode, change.rotation_rate_rpm) for change in rig.made] == [("dual", None), (None, 1200)]
    assert sensor.state.unit.serial == "XT-7"
    assert rig.silent == (False, False)


def test_a_view_and_a_lock_are_changes_too_and_standby_is_silence():
    rig = Rig()
    codes, sensor = asked(rig, (Command.SYNC_ANGLE, b"\1\0\x5a"), (Command.FIELD_OF_VIEW, b"\0\0\x69\x0a\x8c"), (Command.STANDBY, b"\1"))
    assert codes == [0, 0, 0]
    assert [(change.phase_lock, change.phase_lock_deg, change.field_of_view_deg) for change in rig.made] == [
        (True, 90.0, None),
        (None, None, (10, 269)),
    ]
    assert sensor.state.values[Command.SYNC_ANGLE] == b"\1\x23\x28"
    assert sensor.state.values[Command.FIELD_OF_VIEW] == b"\0\0\x69\x0a\x8c"
    assert rig.silent == (True, True)


def test_what_the_rig_refuses_leaves_all_as_it_was():
    rig = Rig()
    rig.is_refusing = True
    codes, sensor = asked(rig, (Command.SPIN_RATE, b"\4\xb0"))
    assert codes == [ReturnCode.OTHER]
    assert sensor.state.values[Command.SPIN_RATE] == b"\2\x58"
    assert rig.sent_to[0] == rig.sent_to[-1] == ("127.0.0.1", 2368, 10_110)


def test_what_a_script_changes_is_read_and_what_a_client_has_set_stays():
    rig = Rig()
    packets = RigPackets(rig)
    state, _ = packets.at_start().written(Command.TRIGGER, b"\1")
    rig.setting = replace(rig.setting, setup=replace(rig.setting.setup, return_mode="last"))
    present = packets.present(state)
    assert (present.values[Command.RETURN_MODE], present.values[Command.TRIGGER]) == (b"\0", b"\1")
    assert packets.present(present) is present
    assert packets.restore().values[Command.TRIGGER] == b"\0"


@pytest.mark.parametrize("document", [{"0x1e": "07"}, {"0x99": "00"}, {"0x17": "0"}, [], {"0x20": 5}])
def test_a_saved_document_that_is_none_is_refused(document):
    packets = RigPackets(Rig())
    with pytest.raises((ValueError, TypeError, AttributeError)):
        packets.restarted(packets.at_start(), document)


@pytest.mark.parametrize("model", ["qt64", "pandar40p", "pandar64"])
def test_models_have_the_return_modes_that_they_take(model):
    family = HesaiFamily(hesai(model), SensorSetup())
    for code in RETURN_CODES[family.spec.model].values():
        assert values_of(written(Command.RETURN_MODE, bytes([code]), family))[Command.RETURN_MODE] == bytes([code])
