"""A rig of one sensor, from what a test says of it."""

import subprocess
import sys

import pytest

from hilsim.config.rig import rig_of_table
from hilsim.errors import ConfigError
from hilsim.testing.sensor_rig import has_position_port, sensor_rig


def rig(model="vlp16", scene="room", **keys):
    return sensor_rig(model, scene, name="lidar", keys=keys, tables={"seed": 3})


@pytest.mark.parametrize("scene", ["room", "street", "demo", {"box": [{"position_m": [5.0, 0.0, 0.0], "size_m": [1.0, 1.0, 1.0]}]}])
@pytest.mark.parametrize("model", ["vlp16", "hr80w-like"])
def test_every_kind_of_scene_makes_a_sound_rig(model, scene):
    made = rig(model, scene)
    assert rig_of_table(made.table, made.path).spec.seed == 3


def test_keys_are_the_sensors_own():
    assert rig(rotation_rate_rpm=1200).table["sensor"][0]["rotation_rate_rpm"] == 1200


def test_a_rig_files_world_is_taken_with_its_mount_and_directory(tmp_path):
    (tmp_path / "yard.toml").write_text(
        'name = "yard"\n[[scene.mesh]]\nfile = "yard.obj"\n[weather]\nrain_mm_per_h = 5.0\n[[sensor]]\nname = "x"\nmount_position_m = [0.0, 0.0, 2.5]\n[metrics]\nport = 9464\n'
    )
    made = rig(scene=tmp_path / "yard.toml")
    assert made.directory == tmp_path
    assert (made.table["scene"], made.table["weather"]) == ({"mesh": [{"file": "yard.obj"}]}, {"rain_mm_per_h": 5.0})
    assert made.table["sensor"] == [{"name": "lidar", "profile": "vlp16", "mount_position_m": [0.0, 0.0, 2.5]}]
    assert "metrics" not in made.table


def test_a_model_of_a_file_is_found_from_any_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('like = "hr80w-like"\n')
    assert rig("mine.toml").table["sensor"][0]["profile"] == str(tmp_path / "mine.toml")
    assert not has_position_port("mine.toml")


def test_a_velodyne_alone_has_a_position_port():
    assert [has_position_port(model) for model in ("vlp16", "hdl32e", "hr80w-like")] == [True, True, False]


def test_a_missing_name_is_reported_with_the_existing_ones():
    with pytest.raises(ConfigError, match=r'model must be a shipped one \(.*vlp16.*\) or the path of a profile, got "VLP-16"; did you mean "vlp16"'):
        rig("VLP-16")
    with pytest.raises(ConfigError, match=r'scene must be room, street, .*demo.*, got "steet"; did you mean "street"'):
        rig(scene="steet")


def test_nothing_slow_is_imported_for_it():
    program = "import sys; import hilsim.testing.factory; sys.exit('numba' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
