"""Rigs by path, by name and made in Python."""

import numpy as np
import pytest

import hilsim
from tests.support import ROOM, write_rig

BENCH = {"name": "bench", "scene": {"box": [{"size_m": [9.0, 9.0, 9.0]}]}, "sensor": [{"name": "front", "profile": "vlp16"}]}


def test_a_rig_is_loaded_by_its_path(tmp_path):
    rig = hilsim.load_rig(write_rig(tmp_path, ROOM))
    assert (rig.name, rig.sensors, rig.directory) == ("room", ("lidar",), tmp_path)


def test_a_shipped_rig_is_loaded_by_its_name_with_other_values_and_another_destination():
    rig = hilsim.load_rig(
        "demo", to="127.0.0.9:5000", settings={"sensor.roof.sub_rays": 1, "name": "other", "sensor.roof.mount_position_m": [0, 0, 2.5]}
    )
    (sensor,) = rig.spec.sensor
    assert (rig.name, sensor.sub_rays, sensor.mount_position_m) == ("other", 1, (0, 0, 2.5))
    assert (sensor.network.destination, sensor.network.data_port) == ("127.0.0.9", 5000)


def test_a_mapping_is_a_rig_whose_files_are_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rig = hilsim.load_rig(BENCH, settings={"seed": 7})
    assert (rig.name, rig.sensors, rig.spec.seed, rig.directory) == ("bench", ("front",), 7, tmp_path)
    assert rig.table == BENCH | {"seed": 7}
    assert "seed" not in BENCH


def test_numbers_and_places_of_a_mapping_may_be_numpys():
    box = {"position_m": np.array([5.0, 0.0, 0.0]), "size_m": (np.float32(1.0), 2, 3.0), "label": np.int64(3)}
    rig = hilsim.load_rig(BENCH | {"scene": {"box": [box]}}, settings={"sensor.front.mount_position_m": np.zeros(3)})
    (found,) = rig.spec.scene.box
    assert (found.position_m, found.size_m, found.label) == ((5.0, 0.0, 0.0), (1.0, 2.0, 3.0), 3)


def test_a_value_that_no_file_could_hold_is_named():
    with pytest.raises(hilsim.ConfigError, match=r"sensor\[0\]\.name must be a text, .*, got None"):
        hilsim.load_rig({"name": "bench", "sensor": [{"name": None}]})


def test_every_fault_of_a_mapping_is_named():
    with pytest.raises(
        hilsim.ConfigError, match=r'(?s)sensor\[0\].sub_rays must be integer, got "many".*sensr: unknown key \(did you mean "sensor"\?\)'
    ):
        hilsim.load_rig({"name": "bench", "sensr": [], "sensor": [{"name": "front", "sub_rays": "many"}]})


def test_a_mapping_has_the_limits_of_a_file():
    with pytest.raises(hilsim.ConfigError, match=r"seed: a whole number must be -2\^63 to 2\^63 - 1, got one beyond"):
        hilsim.load_rig(BENCH | {"seed": 2**70})


def test_a_rig_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(hilsim.ConfigError, match=r'one of the shipped ones \(cepton, demo, .*got "dmo"; did you mean "demo"\?'):
        hilsim.load_rig("dmo")
