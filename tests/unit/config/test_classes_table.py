"""The table of classes of a rig: what it may have, and each of its faults."""

import pytest

from hilsim.config.rig import load_rig
from hilsim.config.tables.classes import MAX_OWN_NUSCENES, NUSCENES_NAMES, SEMANTIC_KITTI_CLASSES, ClassSpec, class_rules, classes_by_label
from hilsim.errors import ConfigError
from tests.support import ROOM, write_rig


def faults_of(classes):
    return [message for holds, message in class_rules(classes) if not holds]


def test_a_rig_names_its_labels_with_and_without_classes_of_data_sets(tmp_path):
    table = '[classes]\n9 = { name = "robot", nuscenes = "vehicle.construction" }\n0 = { name = "ground", semantic_kitti = "road" }\n'
    classes = classes_by_label(load_rig(write_rig(tmp_path, ROOM + table)).spec.classes)
    assert {label: (spec.name, spec.semantic_kitti_number, spec.nuscenes_index) for label, spec in classes.items()} == {
        0: ("ground", 40, None),
        9: ("robot", None, NUSCENES_NAMES.index("vehicle.construction")),
    }
    assert list(classes) == [0, 9]


def test_a_class_without_a_target_is_the_one_of_its_name():
    assert ClassSpec(name="traffic-sign").semantic_kitti_number == SEMANTIC_KITTI_CLASSES["traffic-sign"] == 81
    assert ClassSpec(name="vehicle.car").nuscenes_index == 17
    assert ClassSpec(name="animal", nuscenes="noise").nuscenes_index == 0


def test_all_faults_of_a_table_are_reported_at_once_with_their_places(tmp_path):
    table = """
[classes]
7 = { name = "car", semantic_kitti = "rode" }
8 = { name = " ", nuscenes = "submarine" }
9 = "robot"
10 = { name = "tree", colour = 3 }
07 = { name = "van" }
256 = { name = "bus" }
11 = { name = "tram" }
12 = { name = "tram" }
"""
    path = write_rig(tmp_path, ROOM + table)
    with pytest.raises(ConfigError) as refused:
        load_rig(path)
    lines = str(refused.value).split("\n")
    expected = [
        'classes.7.semantic_kitti must be a class of SemanticKITTI, got "rode" (did you mean "road"?)',
        "classes.8.name must be printable, not empty and at most 100 characters, got ' '",
        'classes.8.nuscenes must be a category of nuScenes-lidarseg, got "submarine" (they are noise, animal,',
        'classes.9 must be a table, got "robot"',
        "classes.10.colour: unknown key (known here: name, semantic_kitti, nuscenes)",
        'keys of classes must be labels, 0 to 255, got "07"',
        'keys of classes must be labels, 0 to 255, got "256"',
        'names of classes must differ, got "tram" for the labels 11, 12',
    ]
    assert len(lines) == len(expected)
    assert [text for text in expected if not any(line.startswith(f"{path}: {text}") for line in lines)] == []


@pytest.mark.parametrize("key", ["-1", "1.5", "", "car", "00", "²", "99999999999999999999"])
def test_a_key_that_is_no_label_is_refused(key):
    assert faults_of({key: ClassSpec(name="car")}) == [f'keys of classes must be labels, 0 to 255, got "{key}"']


def test_the_number_of_categories_that_nuscenes_does_not_have_is_limited_by_a_byte():
    many = {str(label): ClassSpec(name=f"thing {label}") for label in range(MAX_OWN_NUSCENES)}
    assert faults_of(many) == []
    assert faults_of(many | {"250": ClassSpec(name="one more")}) == [
        "classes must have at most 224 entries that are no category of nuScenes', got 225"
    ]
