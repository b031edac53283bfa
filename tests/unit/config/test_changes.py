"""``--to`` and ``--set`` are made in a rig before it is checked, and every fault names the option that made it."""

import pytest

from hilsim.config.changes import Changes
from hilsim.config.part_tables import own_kinds
from hilsim.config.rig import load_rig
from hilsim.errors import ConfigError
from hilsim.sensor.head import mean_rate_rpm
from tests.support import ROOM, write_rig

TWO = (
    ROOM
    + """
[[sensor]]
name = "mast"
[sensor.network]
source = "127.0.1.202"
"""
)


def changed(tmp_path, *settings, to="", text=ROOM):
    return load_rig(write_rig(tmp_path, text), Changes(to=to, settings=settings))


def faults(tmp_path, *settings, to="", text=ROOM):
    with pytest.raises(ConfigError) as caught:
        changed(tmp_path, *settings, to=to, text=text)
    return str(caught.value).replace(f"{tmp_path}/", "").split("\n")


def test_a_key_is_set_by_number_or_by_name(tmp_path):
    rig = changed(tmp_path, "sensor[0].rotation_rate_rpm=1200", "sensor.mast.sub_rays=7", text=TWO)
    assert [mean_rate_rpm(lidar.setup) for lidar in rig.lidars] == [1200, 600]
    assert [lidar.setup.sub_rays for lidar in rig.lidars] == [1, 7]


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("lead_ms=12.5", lambda spec: spec.lead_ms == 12.5),
        ("name=street 7", lambda spec: spec.name == "street 7"),
        ('name="12"', lambda spec: spec.name == "12"),
        ("metrics.enabled=false", lambda spec: spec.metrics.enabled is False),
        ("sensor[0].network.destination=10.0.0.9", lambda spec: spec.sensor[0].network.destination == "10.0.0.9"),
        ("sensor[0].mount_position_m=[1.0, 2, 3]", lambda spec: spec.sensor[0].mount_position_m == (1.0, 2.0, 3.0)),
        ("platform.disturbance={amplitude_m = 0.5}", lambda spec: spec.platform.disturbance.amplitude_m == 0.5),
        ("scene.box[1].material=metal", lambda spec: spec.scene.box[1].material == "metal"),
    ],
    ids=lambda value: value if isinstance(value, str) else "found",
)
def test_values_are_those_of_toml_and_bare_words_are_text(tmp_path, setting, found):
    assert found(changed(tmp_path, setting).spec)


def test_a_key_of_the_model_overrides_the_profile_and_leaves_the_rest_of_its_table(tmp_path):
    plain = changed(tmp_path).lidars[0].spec
    spec = changed(tmp_path, "sensor[0].model.range_noise_m=0.0", "sensor.lidar.model.detector.pulse_ns=4.0").lidars[0].spec
    assert (spec.range_noise_m, spec.detector.pulse_ns) == (0.0, 4.0)
    assert spec.detector.noise_ratio == plain.detector.noise_ratio
    assert spec.beam == plain.beam


def test_the_last_of_several_settings_counts(tmp_path):
    assert changed(tmp_path, "seed=1", "seed=2").spec.seed == 2


def test_to_directs_every_sensor_and_a_setting_can_still_say_otherwise(tmp_path):
    rig = changed(tmp_path, "sensor.mast.network.data_port=2370", to="192.168.1.77:2369", text=TWO)
    assert [(sensor.network.destination, sensor.network.data_port) for sensor in rig.spec.sensor] == [("192.168.1.77", 2369), ("192.168.1.77", 2370)]


def test_to_directs_replays_as_well(tmp_path):
    text = 'name = "r"\n[[replay]]\nname = "a"\nfile = "a.pcap"\n'
    replay = changed(tmp_path, to="192.168.1.77:2369", text=text).spec.part("replay")[0]
    assert (replay.destination, replay.destination_port) == ("192.168.1.77", 2369)


def test_all_faults_are_reported_at_once_each_with_its_option(tmp_path):
    found = faults(tmp_path, "foo", "sensor.lidra.sub_rays=1", "sensor[3].sub_rays=1", "seed=-1", "sensor[0].sub_ray=7", to="a..b")
    assert found == [
        "--set foo: must be KEY=VALUE with a key as `hilsim check` prints it, like sensor[0].rotation_rate_rpm=1200",
        '--set sensor.lidra.sub_rays=1: sensor must have one entry named "lidra", got 0; did you mean "lidar"?',
        "--set sensor[3].sub_rays=1: sensor must have more than 3 entries for sensor[3], got 1",
        'rig.toml: sensor[0].network.destination must be an IPv4 address or the name of a host, got "a..b" (--to a..b)',
        'rig.toml: sensor[0].sub_ray: unknown key (did you mean "sub_rays"?) (--set sensor[0].sub_ray=7)',
        "rig.toml: seed must be 0 to 2^63 - 1, got -1 (--set seed=-1)",
    ]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (
            "sensor[0].rotation_rate_rpm=5",
            "rig.toml: sensor[0].rotation_rate_rpm must be 300 to 1200 in steps of 60 for a VLP-16, got 5 (--set sensor[0].rotation_rate_rpm=5)",
        ),
        ("sensor[0].sub_rays=yes", 'rig.toml: sensor[0].sub_rays must be integer, got "yes" (--set sensor[0].sub_rays=yes)'),
        ("name=12", "rig.toml: name must be string, got 12 (--set name=12)"),
        ("name.first=a", "--set name.first=a: name must be a table to have first, got 'room'"),
        ("seed[0]=1", "--set seed[0]=1: seed must be a list for [0], got none"),
        (
            "scene.box.wall.material=metal",
            '--set scene.box.wall.material=metal: scene.box must have one entry named "wall", got 0 (they have no names: write scene.box[0])',
        ),
    ],
    ids=str,
)
def test_a_wrong_value_is_reported_with_the_option_that_gave_it(tmp_path, setting, told):
    assert faults(tmp_path, setting) == [told]


def test_a_fault_of_the_rig_itself_names_no_option(tmp_path):
    assert faults(tmp_path, "sensor[0].sub_rays=7", text=ROOM.replace("seed = 5", "seed = -5")) == ["rig.toml: seed must be 0 to 2^63 - 1, got -5"]


def test_to_needs_something_that_sends(tmp_path):
    text = 'name = "v"\n[platform]\nkind = "vehicle"\n[vehicle]\ncontroller = { kind = "hold" }\n'
    assert faults(tmp_path, to="10.0.0.1", text=text) == ["--to 10.0.0.1: the rig must have a sensor, a replay or a rover to send, got none"]


def test_to_directs_rovers_whose_ports_are_their_numbers(tmp_path):
    table = Changes(to="10.0.0.1:2368").made_in({"rover": [{"number": 1}, {"number": 2}]}, tmp_path, own_kinds()).table
    assert table["rover"] == [{"number": number, "network": {"destination": "10.0.0.1"}} for number in (1, 2)]


def test_no_noise_takes_it_from_every_rover_and_is_refused_where_there_is_none(tmp_path):
    silent = {"position_m": 0.0, "rotation_deg": 0.0, "point_m": 0.0}
    changed = Changes(no_noise=True).made_in({"rover": [{"number": 1, "noise": {"point_m": 2.0}}, {"number": 2}]}, tmp_path, own_kinds())
    assert [rover["noise"] for rover in changed.table["rover"]] == [silent, silent]
    assert Changes(no_noise=True).made_in({}, tmp_path).faults == ["--no-noise: the rig must have a rover, got none"]


@pytest.mark.parametrize("to", [":2368", "host:", "host:0", "host:70000", "host:x"])
def test_to_is_a_host_and_a_port(tmp_path, to):
    assert faults(tmp_path, to=to) == [f'--to must be HOST or HOST:PORT with a port of 1 to 65535, got "{to}"']


def test_a_value_beyond_the_limits_of_toml_is_refused(tmp_path):
    assert "must be at most" in faults(tmp_path, "scene.origin_m=" + "[" * 200)[0]
