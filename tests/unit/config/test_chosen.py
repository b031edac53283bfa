"""A daemon that runs some sensors of a rig sends the bytes that they have in the whole rig."""

from dataclasses import replace

import pytest

from hilsim.api.emulator import Emulator
from hilsim.assembly.build import source_mac
from hilsim.config.chosen import chosen
from hilsim.config.rig import load_rig
from hilsim.config.script import load_script
from hilsim.errors import ConfigError
from tests.support import ROOM, write_rig

MORE = """
[[sensor]]
name = "mast"
profile = "puck-hi-res"
[sensor.network]
source = "127.0.1.202"
[[sensor]]
name = "rear"
profile = "hdl32e"
[sensor.network]
source = "127.0.1.203"
"""
ROVERS = """
[[rover]]
number = 3
file = "a.scans"
[[rover]]
number = 7
file = "b.scans"
"""
SCRIPT = """
[[change]]
at_s = 0.01
kind = "sensor"
sensor = "lidar"
rotation_rate_rpm = 300
[[change]]
at_s = 0.02
kind = "sensor"
sensor = "rear"
laser = false
[[change]]
at_s = 0.03
kind = "weather"
weather = { fog_visibility_m = 100.0 }
"""


def rig_of(tmp_path, text=ROOM + MORE):
    return load_rig(write_rig(tmp_path, text))


def test_no_names_are_the_whole_rig(tmp_path):
    rig = rig_of(tmp_path)
    assert chosen(rig, ()) is rig


def test_a_chosen_sensor_has_the_bytes_deadlines_and_addresses_of_the_whole_rig(tmp_path):
    rig = rig_of(tmp_path)
    part = chosen(rig, ["rear", "mast"])
    assert part.sensors == ("mast", "rear")
    assert [source_mac(*each) for each in zip(part.spec.sensor, part.lidars, strict=True)] == [
        source_mac(*each) for each in zip(rig.spec.sensor[1:], rig.lidars[1:], strict=True)
    ]
    whole = [packet for packet in Emulator(rig).packets(0.0, 0.02) if packet.sensor != "lidar"]
    assert len(whole) > 40
    assert list(Emulator(part).packets(0.0, 0.02)) == whole


def test_rovers_are_chosen_by_their_names(tmp_path):
    part = chosen(rig_of(tmp_path, ROOM + ROVERS), ["rover-7"])
    assert (part.sensors, [rover.number for rover in part.spec.part("rover")], len(part.settings["rover"])) == ((), [7], 1)


def test_changes_of_a_script_that_concern_another_sensor_are_left_out(tmp_path):
    (tmp_path / "script.toml").write_text(SCRIPT)
    rig = replace(rig_of(tmp_path), script=load_script(tmp_path / "script.toml"))
    part = chosen(rig, ["rear"])
    assert [change.at_s for change in part.script.changes] == [0.02, 0.03]


def test_all_unknown_names_are_reported_with_those_that_exist(tmp_path):
    with pytest.raises(ConfigError) as caught:
        chosen(rig_of(tmp_path, ROOM + MORE + ROVERS), ["reer", "lidar", "rover-9"])
    lines = str(caught.value).split("\n")
    assert len(lines) == 2
    assert lines[0].endswith('(lidar, mast, rear, rover-3, rover-7), got "reer"; did you mean "rear"?')
    assert 'got "rover-9"' in lines[1]


def test_a_flight_is_not_divided(tmp_path):
    text = ROOM + '[platform]\nkind = "vehicle"\n[vehicle]\nprofile = "iris"\n[vehicle.controller]\nkind = "hold"\n'
    with pytest.raises(ConfigError, match=r"--only must not be given for a rig with a \[vehicle\]"):
        chosen(rig_of(tmp_path, text), ["lidar"])


def test_a_background_that_places_the_platform_must_be_chosen_with_its_sensor(tmp_path):
    text = ROOM + MORE + '[platform]\nkind = "background"\n[[scene.background]]\nfile = "place.npz"\nsensor = "mast"\n'
    with pytest.raises(ConfigError, match="--only must name mast too"):
        chosen(rig_of(tmp_path, text), ["lidar"])
    assert len(chosen(rig_of(tmp_path, text), ["mast"]).spec.scene.background) == 1
    fixed = text.replace('kind = "background"', 'kind = "fixed"')
    assert chosen(rig_of(tmp_path, fixed), ["lidar"]).spec.scene.background == ()


def test_a_replay_with_objects_in_its_points_keeps_its_noise_without_those_before_it(tmp_path):
    replays = '[[replay]]\nname = "first"\nfile = "a.pcap"\n[[replay]]\nname = "second"\nfile = "b.pcap"\noverlay = true\n'
    rig = rig_of(tmp_path, ROOM + replays)
    assert (rig.settings["replay"], chosen(rig, ["second"]).settings["replay"]) == ((0, 1), (1,))
    assert [each.name for each in chosen(rig, ["first"]).spec.part("replay")] == ["first"]
