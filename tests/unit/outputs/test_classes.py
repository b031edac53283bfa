"""Classes of a rig's labels in exported folders: its own table, the demo street's, and neither."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from hilsim.cli import cli
from hilsim.config.rig import load_rig
from hilsim.errors import ConfigError
from hilsim.show.outputs.classes import STREET, classes_of_rig, nuscenes_indices, semantic_kitti_numbers
from hilsim.world.assets.street.street import StreetLabel
from hilsim.world.scene.background_specs import BackgroundSpec
from tests.compiled import compiled_only
from tests.support import write_rig

RIG = """
name = "yard"
[[sensor]]
name = "roof"
unit = "ideal"
sub_rays = 1
override = { range_noise_m = 0.0, detector = {}, signal = {} }
[[scene.box]]
name = "wall"
label = 7
position_m = [10.5, 0.0, 2.0]
size_m = [1.0, 60.0, 12.0]
[[scene.box]]
name = "robot"
label = 8
position_m = [-5.0, 0.0, 0.0]
size_m = [1.0, 20.0, 2.0]
[[scene.box]]
name = "unlabelled"
position_m = [0.0, 9.0, 0.0]
size_m = [9.0, 1.0, 5.0]
"""
CLASSES = """
[classes]
7 = { name = "building", nuscenes = "static.manmade" }
8 = { name = "robot" }
"""
SECONDS = "0.15"


def exported(directory, text, kind):
    target = directory / kind
    arguments = ["export", str(write_rig(directory, text)), "-o", str(target), "--format", kind, "--duration-s", SECONDS]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return target


def kitti_classes(folder):
    return set(np.unique(np.fromfile(folder / "sequences" / "00" / "labels" / "000000.label", "<u4") & 0xFFFF).tolist())


@compiled_only
def test_a_semantic_kitti_folder_has_the_classes_of_the_table_and_their_names(tmp_path):
    folder = exported(tmp_path, RIG + CLASSES, "kitti")
    assert kitti_classes(folder) == {0, 50, 308}
    assert (folder / "classes.yaml").read_text() == 'labels:\n  50: "building"\n  308: "robot"\n'


@compiled_only
def test_a_nuscenes_folder_has_the_categories_of_the_table(tmp_path):
    folder = exported(tmp_path, RIG + CLASSES, "nuscenes")
    categories = {row["index"]: row["name"] for row in json.loads((folder / "v1.0-mini" / "category.json").read_text())}
    assert len(categories) == 33
    (file, *_) = (folder / "lidarseg" / "v1.0-mini").iterdir()
    assert {categories[index] for index in np.unique(np.fromfile(file, np.uint8)).tolist()} == {"noise", "static.manmade", "robot"}


@compiled_only
def test_without_a_table_labels_are_the_data_sets_own_numbers(tmp_path):
    folder = exported(tmp_path, RIG, "kitti")
    assert kitti_classes(folder) == {0, 7, 8}
    assert not (folder / "classes.yaml").exists()


@pytest.mark.extended
@compiled_only
def test_the_table_of_a_specification_of_recordings_replaces_that_of_their_rigs(tmp_path):
    write_rig(tmp_path, RIG + CLASSES)
    spec = tmp_path / "spec.toml"
    spec.write_text(f'rig = ["rig.toml"]\nduration_s = {SECONDS}\n[classes]\n8 = {{ name = "person" }}\n')
    done = CliRunner().invoke(cli, ["dataset", str(spec), "-o", str(tmp_path / "out"), "--workers", "1"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert kitti_classes(tmp_path / "out" / "rig-seed1") == {0, 50, 30}


def test_a_faulty_table_of_a_specification_is_refused_with_all_reasons(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text('rig = ["demo"]\n[classes]\nx = { name = "a" }\n7 = { name = "b", nuscenes = "c" }\n')
    done = CliRunner().invoke(cli, ["dataset", str(spec), "-o", str(tmp_path / "out")])
    assert 'keys of classes must be labels, 0 to 255, got "x"' in str(done.exception)
    assert 'classes.7.nuscenes must be a category of nuScenes-lidarseg, got "c"' in str(done.exception)


def test_each_label_of_the_scene_that_a_table_leaves_out_is_reported_with_its_objects(tmp_path):
    path = write_rig(tmp_path, RIG + '[classes]\n9 = { name = "tree" }\n')
    names, labels = ("wall", "a", "b", "c", "d", "plain"), (7, 8, 8, 8, 8, 0)
    with pytest.raises(ConfigError) as refused:
        classes_of_rig(load_rig(path), {}, names, labels)
    assert str(refused.value) == (
        f"{path}: classes must have each label of the scene, got none for 7 (wall)\n"
        f"{path}: classes must have each label of the scene, got none for 8 (a, b, c and 1 more)"
    )


def test_the_street_has_a_table_that_a_rig_replaces_label_by_label(tmp_path):
    text = 'name = "town"\n[scene]\ngenerator = "street"\n[[sensor]]\nname = "roof"\n{}'
    plain = load_rig(write_rig(tmp_path, text.format("")))
    assert classes_of_rig(plain, {}, (), ()) == STREET
    own = load_rig(write_rig(tmp_path, text.format('[classes]\n7 = {{ name = "bus" }}\n9 = {{ name = "kiosk" }}\n'.format()), "own.toml"))
    classes = classes_of_rig(own, {}, ("car 1", "kiosk"), (7, 9))
    numbers, indices = semantic_kitti_numbers(classes), nuscenes_indices(classes)
    assert (numbers[StreetLabel.CAR], numbers[9], numbers[StreetLabel.TREE]) == (13, 309, 70)
    assert (indices[StreetLabel.CAR], indices[9], indices[StreetLabel.TREE]) == (32, 33, 30)


def test_labels_of_a_captured_background_need_classes_as_well(tmp_path):
    rig = load_rig(write_rig(tmp_path, RIG + CLASSES))
    scene = replace(rig.spec.scene, background=(BackgroundSpec(file="walls.npz"),))
    with pytest.raises(ConfigError, match=r"none for 99 \(the captured background\)\n.* none for 100 \(the captured background\)$"):
        classes_of_rig(replace(rig, spec=replace(rig.spec, scene=scene)), {}, (), ())
