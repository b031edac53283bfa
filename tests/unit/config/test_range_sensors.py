"""A rig's range sensors: each kind by its own keys, and what must be there for them."""

import pytest

from hilsim.config.rig import load_rig
from hilsim.errors import ConfigError
from hilsim.parts.rangefinders.ld06 import Ld06Spec
from hilsim.parts.rangefinders.sf45 import Sf45Spec
from hilsim.parts.rangefinders.tfmini import TfminiSpec
from hilsim.parts.vehicle.link import rates_of
from tests.support import write_rig

RIG = """
name = "eyes"
[platform]
kind = "vehicle"
[[sensor]]
name = "top"
[vehicle]
"""
STEERED = 'controller = { kind = "serial", port = "/dev/ttyACM0" }\n'


def loaded(tmp_path, *tables):
    return load_rig(write_rig(tmp_path, RIG + "\n".join(tables))).spec.part("vehicle")[0]


def rangefinder(**keys):
    return "[[rangefinder]]\n" + "\n".join(f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in keys.items())


def test_each_kind_of_rangefinder_has_its_own_keys(tmp_path):
    tables = [
        rangefinder(kind="tfmini", port="/dev/a", rate_hz=50),
        rangefinder(kind="sf45", port="/dev/b", update_rates="eight"),
        rangefinder(kind="ld06", port="/dev/c"),
    ]
    assert load_rig(write_rig(tmp_path, RIG + "\n".join(tables))).spec.part("rangefinder") == (
        TfminiSpec(port="/dev/a", rate_hz=50),
        Sf45Spec(port="/dev/b", update_rates="eight"),
        Ld06Spec(port="/dev/c"),
    )


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (rangefinder(port="/dev/a"), r"rangefinder\[0\]\.kind must be given$"),
        (rangefinder(kind="tfmin", port="/dev/a"), r"rangefinder\[0\]\.kind must be 'tfmini' or 'sf45' or 'ld06', got \"tfmin\"$"),
        (rangefinder(kind="ld06"), r"rangefinder\[0\]\.port must be given$"),
        (rangefinder(kind="ld06", port="/dev/a", speed_dp=5), r'rangefinder\[0\]\.speed_dp: unknown key \(did you mean "speed_dps"\?\)$'),
        (rangefinder(kind="tfmini", port="tty"), r'rangefinder\[0\]\.port must be absolute, such as ".*", got "tty"$'),
        (
            rangefinder(kind="tfmini", port="/dev/a", rate_hz=7),
            r"rangefinder\[0\]\.rate_hz must be 100 divided by a whole number \(model tfmini\), got 7$",
        ),
    ],
)
def test_a_faulty_rangefinder_is_named_with_its_key(tmp_path, table, fault):
    with pytest.raises(ConfigError, match=fault):
        loaded(tmp_path, table)


def test_a_rig_may_have_rangefinders_alone_on_any_platform(tmp_path):
    rig = load_rig(write_rig(tmp_path, 'name = "post"\n[platform]\nposition_m = [0.0, 0.0, 2.0]\n' + rangefinder(kind="tfmini", port="/dev/a")))
    assert (len(rig.spec.part("rangefinder")), rig.lidars, rig.spec.part("vehicle")) == (1, (), ())


def test_the_key_of_former_rigs_is_refused_with_the_one_that_took_its_place(tmp_path):
    with pytest.raises(ConfigError, match=r"vehicle\.ranger: unknown key \(it is \[\[rangefinder\]\] now\)$"):
        loaded(tmp_path, rangefinder(kind="tfmini", port="/dev/a").replace("[[rangefinder]]", "[[vehicle.ranger]]"))


def test_a_vehicle_carries_the_rangefinders_of_its_rig(tmp_path):
    with pytest.raises(ConfigError, match=r'platform\.kind must be "vehicle" where a vehicle carries the sensors, got "fixed"'):
        load_rig(write_rig(tmp_path, 'name = "eyes"\n[vehicle]\n' + rangefinder(kind="tfmini", port="/dev/a")))


def test_ports_must_differ_from_each_other_and_from_the_controllers(tmp_path):
    with pytest.raises(ConfigError, match=r"port of serial devices and controller must differ, got /dev/a, /dev/ttyACM0 more than once"):
        loaded(tmp_path, STEERED, *(rangefinder(kind="ld06", port=port) for port in ("/dev/a", "/dev/a", "/dev/ttyACM0")))


def test_messages_need_a_controller_that_speaks_mavlink(tmp_path):
    with pytest.raises(ConfigError, match=r'vehicle\.obstacle must be with a controller that speaks MAVLink with hilsim, got kind "hold"'):
        loaded(tmp_path, 'obstacle = { sensor = "top" }')


def test_messages_need_a_lidar_of_the_rig(tmp_path):
    with pytest.raises(ConfigError, match=r'vehicle\.obstacle\.sensor must name a sensor of the rig \(top\), got "roof"') as caught:
        loaded(tmp_path, STEERED, 'obstacle = { sensor = "roof" }', '[[vehicle.distance]]\nsensor = "nose"')
    assert 'vehicle.distance[0].sensor must name a sensor of the rig (top), got "nose"' in str(caught.value)


def test_beams_are_distinguished_by_their_ids(tmp_path):
    beam = '[[vehicle.distance]]\nsensor = "top"\n'
    with pytest.raises(ConfigError, match=r"sensor_id of distance must differ, got \[0, 0\]"):
        loaded(tmp_path, STEERED, beam, beam)


def test_messages_count_in_the_links_budget(tmp_path):
    beam = '[[vehicle.distance]]\nsensor = "top"\nrate_hz = {}\nsensor_id = {}\n'
    rates = rates_of(loaded(tmp_path, STEERED, 'obstacle = { sensor = "top", rate_hz = 12.0 }', beam.format(20.0, 0), beam.format(10.0, 1)))
    assert (rates.obstacle_hz, rates.distance_hz) == (12.0, 30.0)
