"""Rigs: shipped ones are sound, profiles are found, faults of both are named together."""

import pytest

from hilsim.config.places import did_you_mean
from hilsim.config.profiles import find_profile, profiles_directory
from hilsim.config.rig import load_rig, with_recording
from hilsim.errors import ConfigError
from tests.support import ROOM, write_rig


@pytest.mark.parametrize("path", sorted((profiles_directory() / "rigs").glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_rig_is_sound(path):
    rig = load_rig(path)
    assert len(rig.lidars) == len(rig.spec.sensor)


def test_a_sensors_table_reaches_its_lidar_as_it_is(tmp_path):
    rig = load_rig(write_rig(tmp_path))
    assert [lidar.setup for lidar in rig.lidars] == list(rig.spec.sensor)


def test_a_sensor_may_override_its_profile(tmp_path):
    rig = load_rig(write_rig(tmp_path, ROOM.replace('name = "lidar"', 'name = "lidar"\noverride = { range_noise_m = 0.0, rate_max_rpm = 900 }')))
    assert (rig.lidars[0].spec.range_noise_m, rig.lidars[0].spec.rate_max_rpm) == (0.0, 900)


def test_a_faulty_override_names_profile_and_rig(tmp_path):
    path = write_rig(tmp_path, ROOM.replace('name = "lidar"', 'name = "lidar"\noverride = { range_noise_m = 5.0, colour = "red" }'))
    with pytest.raises(ConfigError, match=r"vlp16\.toml with .*rig\.toml: sensor\[0\]\.override: colour: unknown key") as caught:
        load_rig(path)
    assert "range_noise_m must be 0 to 1, got 5.0" in str(caught.value)


def test_a_profile_of_ones_own_is_found_beside_the_rig(tmp_path):
    own = tmp_path / "mine.toml"
    own.write_text((profiles_directory() / "sensors" / "vlp16.toml").read_text().replace("range_noise_m = 0.0031", "range_noise_m = 0.0123"))
    rig = load_rig(write_rig(tmp_path, ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "mine.toml"')))
    assert rig.lidars[0].spec.range_noise_m == 0.0123


def test_an_unknown_profile_lists_the_shipped_ones(tmp_path):
    with pytest.raises(ConfigError, match=r'profile must be a path ending in \.toml or one of the shipped ones \(.*vlp16.*\), got "vlp17"'):
        find_profile("sensors", "vlp17", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('name = "lidar"', 'name = "li dar"', r'sensor\[0\]\.name must be letters, digits, "-" and "_", got "li dar"'),
        ("seed = 5", "seed = -1", r"seed must be 0 to 2\^63 - 1, got -1"),
        ("seed = 5", "lead_ms = 0.5", r"lead_ms must be 1 to 1000, or 0 to follow the rig, got 0.5"),
        ("[[sensor]]", '[platform]\nkind = "trajectory"\n[[sensor]]', r'platform\.file must be given for kind "trajectory"'),
        ("[[sensor]]", '[platform]\nkind = "street"\n[[sensor]]', r'platform\.kind "street" needs scene\.generator "street"'),
        ("[[sensor]]", "[metrics]\nport = 99999\n[[sensor]]", r"metrics\.port must be 0 to 65535, got 99999"),
        ("[[sensor]]", "[record]\nkeep = 3\n[[sensor]]", r"record\.keep must be 0 where neither rotate_mb nor rotate_s is given, got 3"),
        ("[[sensor]]", "[record]\nrotate_mb = 0.001\n[[sensor]]", r"record\.rotate_mb must be 0 \(never\) or 0\.01 to 1000000, got 0\.001"),
        ("[[sensor]]", '[record]\nfile = "here/"\n[[sensor]]', r'record\.file must name a file, got "here/"'),
    ],
)
def test_each_rule_names_its_key(tmp_path, old, new, fault):
    with pytest.raises(ConfigError, match=fault):
        load_rig(write_rig(tmp_path, ROOM.replace(old, new)))


@pytest.mark.parametrize(
    ("network", "fault"),
    [
        ('destination = "255.255.255.255"', "broadcast must be true for destination 255.255.255.255"),
        ('mode = "ethernet"', 'interface must be given for mode "ethernet"'),
        ('mode = "ethernet"\ninterface = "eth0"', "destination_mac must be given for a unicast destination"),
        ('destination = "192.168.1.300"', 'destination must be an IPv4 address or the name of a host, got "192.168.1.300"'),
        ("data_port = 8308", "data_port and position_port must differ, got 8308 for both"),
        ('source_mac = "60:76"', 'source_mac must be like "60:76:88:10:2f:6f", got "60:76"'),
    ],
)
def test_network_rules_name_their_key(tmp_path, network, fault):
    with pytest.raises(ConfigError, match=fault):
        load_rig(write_rig(tmp_path, ROOM + f"[sensor.network]\n{network}\n"))


def test_two_sensors_of_one_name_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="names of sensors and replays must differ, got lidar more than once"):
        load_rig(write_rig(tmp_path, ROOM + '[[sensor]]\nname = "lidar"\n'))


OTHER = '[[sensor]]\nname = "other"\n[sensor.network]\n'
ONE = 'name = "two"\n' + OTHER.replace("other", "one")


@pytest.mark.parametrize(
    ("one", "other", "port"),
    [
        ("", "", 2368),
        ("data_port = 2369", "", 8308),
        ("data_port = 2369\nposition_port = 9000", "position_port = 2369", 2369),
    ],
)
def test_two_sensors_that_a_receiver_would_take_for_one_are_refused(tmp_path, one, other, port):
    fault = rf"network\.source \(or the port\) must differ for one and other: .*, got 127\.0\.1\.201 to 127\.0\.0\.1:{port} for each"
    with pytest.raises(ConfigError, match=fault):
        load_rig(write_rig(tmp_path, f"{ONE}{one}\n{OTHER}{other}\n"))


@pytest.mark.parametrize(
    "apart", ['source = "127.0.1.202"', 'destination = "127.0.0.2"', "data_port = 2369\nposition_port = 8309"], ids=["source", "destination", "ports"]
)
def test_sensors_that_differ_in_source_destination_or_ports_are_sound(tmp_path, apart):
    assert len(load_rig(write_rig(tmp_path, f"{ONE}\n{OTHER}{apart}\n")).lidars) == 2


def test_a_replay_set_to_send_as_a_sensor_does_is_refused(tmp_path):
    replay = '[[replay]]\nname = "drive"\nfile = "a.pcap"\nsource = "127.0.1.201"\ndestination_port = '
    with pytest.raises(ConfigError, match=r"network\.source \(or the port\) must differ for one and drive: "):
        load_rig(write_rig(tmp_path, f"{ONE}\n{replay}2368\n"))
    assert load_rig(write_rig(tmp_path, f"{ONE}\n{replay}2369\n")).spec.part("replay")


def test_a_rig_of_turning_sensors_is_recorded_in_nanoseconds(tmp_path):
    assert load_rig(write_rig(tmp_path)).spec.record.stamps == "ns"


def test_options_of_the_command_line_replace_keys_of_the_recording_and_leave_the_others(tmp_path):
    path = write_rig(tmp_path, ROOM.replace("[[sensor]]", '[record]\nfile = "drive.pcap"\nrotate_s = 60.0\nkeep = 5\n[[sensor]]'))
    record = with_recording(load_rig(path), {"file": "/elsewhere/a.pcap", "keep": 2}).spec.record
    assert (record.file, record.rotate_s, record.keep) == ("/elsewhere/a.pcap", 60.0, 2)
    assert with_recording(load_rig(path), {}) == load_rig(path)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"rotate_s": 5.0}, "rig.toml with the command line's options: record.file must be given where rotation is"),
        ({"file": "a.pcap", "keep": 2}, "record.keep must be 0 where neither rotate_mb nor rotate_s is given, got 2"),
    ],
)
def test_options_that_make_no_sound_recording_are_refused(tmp_path, given, fault):
    with pytest.raises(ConfigError, match=fault):
        with_recording(load_rig(write_rig(tmp_path)), given)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("VLP-16", "vlp16"),
        ("vlp_16", "vlp16"),
        ("Puck", "vlp16"),
        ("Puck LITE", "vlp16"),
        ("Puck Hi-Res", "puck-hi-res"),
        ("VLP-32", "vlp32c"),
        ("Ultra Puck", "vlp32c"),
        ("Alpha Prime", "vls128"),
        ("HR80W", "hr80w-like"),
        ("hr80t-lik", "hr80t-like"),
    ],
)
def test_a_profile_by_another_spelling_is_guessed(tmp_path, given, wanted):
    path = write_rig(tmp_path, ROOM.replace('name = "lidar"', f'name = "lidar"\nprofile = "{given}"'))
    with pytest.raises(ConfigError, match=f'got "{given}"; did you mean "{wanted}"'):
        load_rig(path)


def test_a_model_that_is_only_read_is_reported_to_be_so(tmp_path):
    path = write_rig(tmp_path, ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "hdl64e"'))
    with pytest.raises(ConfigError, match="captures of a HDL-64E are read, but there is no profile to emulate one"):
        load_rig(path)


@pytest.mark.parametrize("given", ["HDL-64E", "hdl64"])
def test_a_model_that_has_a_profile_by_now_is_guessed_like_any_other(given):
    known = ["vlp16", "hdl64e"]
    assert did_you_mean("hdl64e", known, of_models=True) == '; did you mean "hdl64e"?'
    assert "there is no profile to emulate one" in did_you_mean(given, ["vlp16"], of_models=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[scene.box]]\nsize_m = [1, 1]\n[[sensor]]\nname = "a"', "scene.box[0].size_m must have 3 entries, got [1, 1]"),
        ('[[scene.box]]\nsize_m = [1, 1, 1, 1]\n[[sensor]]\nname = "a"', "scene.box[0].size_m must have 3 entries, got [1, 1, 1, 1]"),
        ('[[sensor]]\nname = "front left"', 'sensor[0].name must be letters, digits, "-" and "_", got "front left"'),
        ('[sensor]\nname = "a"', "sensor must be a list of tables, got one table: write [[sensor]]"),
        (
            '[[sensor]]\nname = "a"\n[sensor.window.sectors]\nx = 1',
            "sensor[0].window.sectors must be a list of tables, got one table: write [[sensor.window.sectors]]",
        ),
    ],
    ids=["short", "long", "name", "table", "inner table"],
)
def test_one_mistake_is_one_sentence_that_says_what_to_write(tmp_path, text, told):
    path = write_rig(tmp_path, f'name = "r"\n{text}\n')
    with pytest.raises(ConfigError) as caught:
        load_rig(path)
    assert str(caught.value) == f"{path}: {told}"


def test_faults_of_other_keys_are_still_reported_beside_a_sensor_that_was_left_out(tmp_path):
    path = write_rig(tmp_path, 'name = "r"\nseed = -1\n[[sensor]]\nname = "front left"\n')
    with pytest.raises(ConfigError, match=r"seed must be 0 to 2.63 - 1, got -1") as caught:
        load_rig(path)
    assert "at least one entry" not in str(caught.value)


def test_interference_in_a_rig_of_one_sensor_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"sensor\[0\]\.interference must be false in a rig of one sensor, got true"):
        load_rig(write_rig(tmp_path, ROOM.replace('name = "lidar"', 'name = "lidar"\ninterference = true')))
