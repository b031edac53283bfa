"""Messages that declare and remove objects, as timed changes."""

import numpy as np
import pytest

from hilsim.config.script import AddChange, RemoveChange, parse_change
from hilsim.errors import ConfigError
from hilsim.parts.external.declarations import declared_changes
from hilsim.parts.external.messages import OBJECT_DTYPE, MessageKind, Shape, decode, encode
from hilsim.world.scene.materials import DEFAULTS


def message(kind, *rows):
    things = np.zeros(len(rows), OBJECT_DTYPE)
    for thing, fields in zip(things, rows, strict=True):
        for name, value in fields.items():
            thing[name] = value
    return decode(encode(kind, things, time_ns=0))


BOX = {"id": 5, "shape": Shape.BOX, "size_m": (4.0, 2.0, 1.5), "name": b"car", "label": 3, "reflectivity": 9}


def test_shapes_become_changes_with_the_nearest_opaque_material():
    found = declared_changes(
        message(
            MessageKind.OBJECTS,
            BOX,
            {"id": 6, "shape": Shape.CYLINDER, "size_m": (1.0, 1.0, 3.0)},
            {"id": 7, "shape": Shape.SPHERE, "size_m": 0.5, "reflectivity": 255},
            {"id": 8, "shape": Shape.MODEL, "model": b"car", "name": b"other"},
        ),
        {},
        DEFAULTS,
    )
    (_, box), (_, cylinder), (_, sphere), (identity, model) = found
    assert (box.box.size_m, box.box.label, box.external_id, box.object_name) == ((4.0, 2.0, 1.5), 3, 5, "car")
    assert (cylinder.cylinder.radius_m, cylinder.cylinder.height_m, cylinder.object_name) == (0.5, 3.0, "object 6")
    opaque = [material for material in DEFAULTS.values() if not material.lets_light_on]
    for code, change in ((9, box.box), (0, cylinder.cylinder), (255, sphere.sphere)):
        nearest = min(abs(material.reflectivity - code) for material in opaque)
        assert abs(DEFAULTS[change.material].reflectivity - code) == nearest
    assert (identity, model.like, model.object_name, model.shape) == (8, "car", "other", None)


def test_objects_that_exist_are_not_added_again_and_unknown_ones_are_not_removed():
    assert declared_changes(message(MessageKind.OBJECTS, BOX), {5: "car"}, DEFAULTS) == []
    found = declared_changes(message(MessageKind.REMOVE, {"id": 5}, {"id": 6}), {5: "car"}, DEFAULTS)
    assert found == [(5, RemoveChange(name="car"))]


def test_a_declaration_that_cannot_be_a_change_is_refused():
    with pytest.raises(ConfigError, match="size_m must be at least 1e-06 m"):
        declared_changes(message(MessageKind.OBJECTS, BOX | {"size_m": (1e-9, 1.0, 1.0)}), {}, DEFAULTS)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"like": "a"}, "name of the object must be given"),
        ({"like": "a", "name": "b"}, "external_id must be given with like"),
        (
            {"box": {"name": "a", "size_m": [1, 1, 1], "stand_on_ground": True}, "external_id": 3},
            "motion and stand_on_ground must not be given with external_id",
        ),
        ({"box": {"name": "a", "size_m": [1, 1, 1]}, "external_id": -1}, "external_id must be 0 to 4294967295, got -1"),
        ({"box": {"name": "a", "size_m": [1, 1, 1]}, "name": "b"}, "name of the object must be given"),
        ({"box": {"name": "\n\x1b[2J", "size_m": [1, 1, 1]}}, r"name must have printable characters only, got '\\n\\x1b\[2J'"),
        ({"like": "a", "name": "\u202ea", "external_id": 3}, r"name must have printable characters only, got '\\u202ea'"),
    ],
)
def test_faults_of_an_added_object_that_is_moved_are_named(keys, fault):
    with pytest.raises(ConfigError, match=fault):
        parse_change({"kind": "add", **keys})


def test_a_change_with_an_id_is_an_added_object():
    assert isinstance(parse_change({"kind": "add", "like": "a", "name": "b", "external_id": 4}), AddChange)
