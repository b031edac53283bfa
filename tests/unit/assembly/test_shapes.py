"""The scene at any rig time, as timed changes have made it."""

from pathlib import Path

import pytest

from hilsim.assembly.build import build_scenery
from hilsim.assembly.shapes import SceneHistory
from hilsim.config.rig import load_rig
from hilsim.config.script import Script, parse_change
from hilsim.errors import ConfigError
from tests.support import write_rig

RIG = """
name = "yard"
[[sensor]]
name = "roof"
[[scene.box]]
size_m = [1.0, 1.0, 1.0]
name = "wall"
position_m = [9.0, 0.0, 0.0]
[[scene.box]]
size_m = [1.0, 1.0, 1.0]
name = "post"
position_m = [5.0, 0.0, 0.0]
[[scene.box]]
size_m = [1.0, 1.0, 1.0]
name = "post"
position_m = [5.0, 3.0, 0.0]
[[scene.box]]
size_m = [1.0, 1.0, 1.0]
name = "cart"
[scene.box.motion]
waypoints = [{ time_s = 0.0, position_m = [0.0, 0.0, 0.0] }, { time_s = 10.0, position_m = [10.0, 0.0, 0.0] }]
"""
CHANGES = (
    {"kind": "weather", "at_s": 0.5, "weather": {"rain_mm_per_h": 5.0}},
    {"kind": "move", "at_s": 1.0, "name": "wall", "position_m": [7.0, 0.0, 0.0]},
    {"kind": "add", "at_s": 2.0, "box": {"name": "crate", "position_m": [3.0, 0.0, 0.0], "size_m": [1.0, 1.0, 1.0]}},
    {"kind": "remove", "at_s": 3.0, "name": "wall"},
)


def history(tmp_path, changes):
    rig = load_rig(write_rig(tmp_path, RIG))
    return SceneHistory(rig, build_scenery(rig), Script(Path("test"), tuple(parse_change(change) for change in changes)) if changes else None)


def places(found, time_s):
    return {shape.name: shape.pose.position_m[0] for shape in found.shapes(round(time_s * 1e9))}


def test_a_scene_without_changes_has_its_objects_where_they_are_then_with_names_that_differ(tmp_path):
    found = history(tmp_path, ())
    assert places(found, 4.0) == {"wall": 9.0, "post [1]": 5.0, "post [2]": 5.0, "cart": pytest.approx(4.0)}
    assert places(found, -1.0)["cart"] == pytest.approx(0.0)


def test_each_change_is_seen_from_its_rig_time_on_in_whatever_order_they_come(tmp_path):
    for changes in (CHANGES, CHANGES[::-1]):
        found = history(tmp_path, changes)
        assert places(found, 0.9)["wall"] == 9.0
        assert places(found, 1.0)["wall"] == 7.0
        assert "crate" not in places(found, 1.9)
        assert (places(found, 2.5)["wall"], places(found, 2.5)["crate"]) == (7.0, 3.0)
        assert places(found, 3.0).keys() == {"post [1]", "post [2]", "cart", "crate"}


def test_a_change_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match='name must be one object\'s, got "post", which 2 objects have'):
        history(tmp_path, [{"kind": "remove", "at_s": 1.0, "name": "post"}])
