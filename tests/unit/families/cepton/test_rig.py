"""Rigs with Cepton-style sensors: what is theirs, what is not, and where their packets go by default."""

import json

import pytest
from click.testing import CliRunner

from hilsim.assembly.build import sensor_flows, source_mac
from hilsim.cli import cli
from hilsim.config.profiles import profiles_directory
from hilsim.config.rig import load_rig
from hilsim.config.sensor_profiles import parse_profile
from hilsim.errors import ConfigError
from hilsim.families.cepton.setting import CeptonSetting
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.sensor.specs import LidarSpec
from tests.support import ROOM, write_rig

SCENE = ROOM.split("[[sensor]]")[0]
SWEPT = """
[[sensor]]
name = "ahead"
profile = "hr80w-like"
"""
TURNING = """
[[sensor]]
name = "roof"
profile = "vlp16"
"""


def loaded(tmp_path, *tables):
    return load_rig(write_rig(tmp_path, SCENE + "".join(tables)))


def test_the_keys_of_a_cepton_style_sensor_are_read(tmp_path):
    table = "[sensor.cepton]\nheader_version = 1\ninfo_packets = true\nserial = 4165\nfirmware = [3, 51, 0, 0]\npart_number = 9\n"
    (lidar,) = loaded(tmp_path, SWEPT + table).lidars
    assert isinstance(lidar.spec, CeptonSpec)
    assert lidar.setup.cepton == CeptonSetting(header_version=1, info_packets=True, serial=4165, firmware=(3, 51, 0, 0), part_number=9)
    assert lidar.family.identity.header_version == 1


def test_a_cepton_style_sensor_without_a_table_of_its_own_says_nothing_of_itself(tmp_path):
    (lidar,) = loaded(tmp_path, SWEPT).lidars
    assert (lidar.setup.cepton, lidar.family.identity.header_version) == (None, 2)


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("rotation_rate_rpm = 600", r"sensor\[0\]\.rotation_rate_rpm must not be given for a \S+: its head does not turn"),
        ("gps = { latitude_deg = 1.0, longitude_deg = 2.0 }", r"sensor\[0\]\.gps must not be given for a \S+: it has no input for a receiver"),
        ("decimation = { ray_step = 3 }", r"sensor\[0\]\.decimation must not be given for a \S+: its firings have no channels and columns"),
        ("network = { position_port = 8308 }", r"sensor\[0\]\.network\.position_port must not be given for a \S+:"),
    ],
)
def test_keys_of_turning_sensors_are_refused(tmp_path, key, fault):
    with pytest.raises(ConfigError, match=fault):
        loaded(tmp_path, f"{SWEPT}{key}\n")


def test_keys_of_cepton_style_sensors_are_refused_for_a_turning_one(tmp_path):
    with pytest.raises(ConfigError, match=r"sensor\[0\]\.cepton must not be given for a VLP-16"):
        loaded(tmp_path, TURNING + "[sensor.cepton]\n")


def test_faults_of_every_sensor_come_together(tmp_path):
    wrong = "rotation_rate_rpm = 600\nphase_deg = 400.0\ngps = { latitude_deg = 1.0, longitude_deg = 2.0 }\n"
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, TURNING + "rotation_rate_rpm = 610\n[sensor.cepton]\n", SWEPT + wrong, SWEPT.replace("ahead", "behind"))
    lines = str(caught.value).splitlines()
    assert [line.partition("rig.toml: ")[2].partition(" must ")[0] for line in lines] == [
        "sensor[0].cepton",
        "sensor[0].rotation_rate_rpm",
        "sensor[1].rotation_rate_rpm",
        "sensor[1].gps",
        "sensor[1].phase_deg",
    ]


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("header_version = 3", r"sensor\[0\]\.cepton\.header_version must be 1 or 2, got 3"),
        ("serial = -1", r"sensor\[0\]\.cepton\.serial must be 0 to 4294967295, got -1"),
        ("firmware = [1, 2, 3]", r"sensor\[0\]\.cepton\.firmware"),
        ("firmware = [1, 2, 3, 256]", r"sensor\[0\]\.cepton\.firmware must be four numbers of 0 to 255, got \(1, 2, 3, 256\)"),
        ("info_packet = true", r'sensor\[0\]\.cepton\.info_packet: unknown key \(did you mean "info_packets"\?\)'),
    ],
)
def test_faults_of_its_own_table_name_their_key(tmp_path, table, fault):
    with pytest.raises(ConfigError, match=fault):
        loaded(tmp_path, f"{SWEPT}[sensor.cepton]\n{table}\n")


def network(source):
    return f'[sensor.network]\nsource = "{source}"\n'


def test_each_cepton_style_sensor_must_have_a_source_address_of_its_own(tmp_path):
    one, other = SWEPT + network("127.0.2.1"), SWEPT.replace("ahead", "behind")
    fault = r"rig\.toml: network\.source of Cepton-style sensors must differ .*, got 127\.0\.2\.1 for ahead and behind"
    with pytest.raises(ConfigError, match=fault):
        loaded(tmp_path, one, other + network("127.0.2.1"))
    assert len(loaded(tmp_path, one, other + network("127.0.2.2"), TURNING + network("127.0.2.1")).lidars) == 3


def test_a_rig_of_cepton_style_sensors_alone_is_recorded_in_microseconds_unless_it_says_otherwise(tmp_path):
    assert loaded(tmp_path, SWEPT).spec.record.stamps == "us"
    assert loaded(tmp_path, SWEPT, TURNING).spec.record.stamps == "ns"
    assert loaded(tmp_path, SWEPT, '[[replay]]\nname = "drive"\nfile = "a.pcap"\n').spec.record.stamps == "ns"
    assert loaded(tmp_path, '[record]\nstamps = "ns"\n', SWEPT).spec.record.stamps == "ns"
    assert loaded(tmp_path, '[record]\nstamps = "us"\n', TURNING).spec.record.stamps == "us"


@pytest.mark.parametrize("family", ['"robosense"', "5"])
def test_an_unknown_family_lists_those_there_are(tmp_path, family):
    with pytest.raises(
        ConfigError, match=r'hr80w-like\.toml with .*override: family must be "velodyne" or "cepton" or "ouster" or "livox" or "hesai", got '
    ):
        loaded(tmp_path, f"{SWEPT}override = {{ family = {family} }}\n")


def test_a_profile_without_a_family_is_a_velodyne():
    with pytest.raises(ConfigError, match="mine: mirror: unknown key"):
        parse_profile({"mirror": {}}, "mine")


def test_a_faulty_profile_names_every_key(tmp_path):
    wrong = "override = { range_unit_mm = 0.0, sequence_ns = 1000, model_code = -1 }\n"
    with pytest.raises(ConfigError, match=r"override: model_code must be 0 to 65535, got -1") as caught:
        loaded(tmp_path, SWEPT + wrong)
    assert "sequence_ns must be at least the" in str(caught.value)
    assert "range_unit_mm must be 0.1 to 100, got 0.0" in str(caught.value)


@pytest.mark.parametrize("path", sorted((profiles_directory() / "sensors").glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_sensor_can_be_put_into_a_rig(tmp_path, path):
    (lidar,) = loaded(tmp_path, SWEPT.replace("hr80w-like", path.stem)).lidars
    assert isinstance(lidar.spec, LidarSpec)


@pytest.mark.parametrize(
    ("table", "names", "ports"),
    [
        (TURNING, ("roof/data", "roof/position"), (2368, 8308)),
        (SWEPT, ("ahead/points", "ahead/info"), (8808, 8808)),
        (TURNING + "network = { data_port = 8808, position_port = 9000 }\n", ("roof/data", "roof/position"), (8808, 9000)),
        (SWEPT + "network = { data_port = 8308 }\n", ("ahead/points", "ahead/info"), (8308, 8308)),
    ],
)
def test_packets_go_to_the_models_own_ports_by_default(tmp_path, table, names, ports):
    rig = loaded(tmp_path, table)
    flows = sensor_flows(rig.spec.sensor[0], rig.lidars[0])
    assert tuple(one.flow.name for one in flows) == names
    assert tuple(one.flow.destination_port for one in flows) == ports
    assert {one.flow.source_port for one in flows} == ({2368, 8308} if table.startswith(TURNING) else {8808})


def test_the_mac_address_is_ceptons(tmp_path):
    rig = loaded(tmp_path, SWEPT)
    assert source_mac(rig.spec.sensor[0], rig.lidars[0]) == "18:12:12:10:00:01"


def test_the_effective_configuration_shows_what_depends_on_the_model(tmp_path):
    path = write_rig(tmp_path, SCENE + TURNING + SWEPT + network("127.0.2.1"))
    result = CliRunner().invoke(cli, ["check", str(path), "--json"])
    assert result.exit_code == 0, result.output
    roof, ahead = json.loads(result.stdout)["sensor"]
    assert (roof["network"]["data_port"], roof["network"]["position_port"], roof["rotation_rate_rpm"], roof["cepton"]) == (2368, 8308, 600, None)
    assert (ahead["network"]["data_port"], ahead["network"]["position_port"], ahead["rotation_rate_rpm"]) == (8808, None, None)
    assert ahead["cepton"] == {"header_version": 2, "info_packets": False, "serial": 1, "firmware": [1, 0, 0, 0], "part_number": 0}
    assert ahead["model"]["family"] == "cepton"
    plain = CliRunner().invoke(cli, ["check", str(path)])
    assert "sensor[1].network.data_port = 8808" in plain.stdout.splitlines()
