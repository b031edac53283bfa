"""Edits as timed changes, with undo and redo, all faults at once."""

import pytest

import hilsim
from hilsim.config.script import parse_change
from hilsim.errors import ConfigError, TransmitError
from tests.support import write_rig

RIG = """
name = "yard"
seed = 4

[[scene.plane]]
name = "ground"
size_m = [40.0, 40.0]
material = "asphalt"
[[scene.box]]
name = "crate"
size_m = [1.0, 1.0, 1.0]
position_m = [5.0, 0.0, 0.5]
material = "wood"
[[scene.box]]
size_m = [0.3, 10.0, 3.0]
position_m = [10.0, 0.0, 1.5]
[[scene.cylinder]]
name = "bin"
radius_m = 0.3
height_m = 1.0
position_m = [4.0, 3.0, 0.0]
stand_on_ground = true
[[scene.capsule]]
name = "walker"
radius_m = 0.25
length_m = 1.2
position_m = [0.0, 0.0, 0.85]
[scene.capsule.motion]
waypoints = [{ time_s = 0.0, position_m = [6.0, -4.0, 0.0] }, { time_s = 4.0, position_m = [6.0, 4.0, 0.0] }]

[platform]
position_m = [0.0, 0.0, 1.5]
[[sensor]]
name = "roof"
[control]
socket = "control"
"""
FREE, GROUND = hilsim.Snap(), hilsim.Snap(on_ground=True)


@pytest.fixture
def target():
    return hilsim.ScriptTarget(rig_s=0.5)


@pytest.fixture
def session(tmp_path, target):
    return hilsim.edit(write_rig(tmp_path, RIG), target)


def kinds(target):
    return [change["kind"] for change in target.script()]


def test_every_kind_of_edit_is_a_timed_change(session, target):
    session.add("box", "chest", (2.0, 2.0, 0.5), size_m=[1.0, 1.0, 1.0])
    session.move("chest", (3.0, 2.0, 0.5))
    session.turn("chest", (0.0, 0.0, 30.0))
    session.copy("chest", (3.0, -2.0, 0.5), "trunk")
    session.travel("trunk", [(0.0, -2.0, 0.5)], 1.5)
    session.delete("crate")
    target.advance(0.75)
    session.add_from_library("hatchback", position_m=(7.0, 4.0, 0.0), heading_deg=90.0, material="paint_red", label=3)
    assert kinds(target) == ["add", "move", "move", "add", "travel", "remove", "add"]
    assert [change["at_s"] for change in target.script()] == [0.5] * 6 + [0.75]
    assert target.script()[2]["rotation_deg"] == [0.0, 0.0, 30.0]
    assert target.script()[-1]["mesh"] == {
        "name": "hatchback 1",
        "file": "hilsim:hatchback",
        "materials": {"body": "paint_red"},
        "label": 3,
        "position_m": [7.0, 4.0, 0.0],
        "rotation_deg": [0.0, 0.0, 90.0],
    }
    assert [parse_change(change) for change in target.script()]


def test_undo_and_redo_are_timed_changes_too_in_any_number(session, target):
    before = session.objects()
    session.move("crate", (6.0, 1.0, 0.5), (0.0, 0.0, 45.0))
    session.rename("crate", "chest")
    session.delete("chest")
    session.travel("bin", [(0.0, 3.0, 0.0)], 1.0)
    after = session.objects()
    assert [edit.title for edit in session.undo(10)] == ["undo travel bin", "undo delete chest", "undo rename crate to chest", "undo move crate"]
    assert session.objects() == before
    assert session.is_saved
    assert kinds(target) == ["move", "remove", "travel", "move", "add", "move"]
    assert target.script()[4]["box"] == {
        "name": "crate",
        "size_m": [1.0, 1.0, 1.0],
        "position_m": [6.0, 1.0, 0.5],
        "rotation_deg": [0.0, 0.0, 45.0],
        "material": "wood",
    }
    assert len(session.redo(10)) == 4
    assert session.objects() == after
    assert session.undone == ()
    session.undo(2)
    session.move("bin", (1.0, 1.0, 0.0))
    assert session.undone == ()
    assert session.redo() == ()


def test_a_rename_changes_no_packet_and_the_old_name_is_free_again(session, target):
    session.rename("crate", "chest")
    assert target.script() == ()
    session.add("box", "crate", (1.0, 1.0, 0.5), size_m=[1.0, 1.0, 1.0])
    session.move("chest", (2.0, 2.0, 0.5))
    assert target.script()[0]["box"]["name"] == "crate 1"
    assert target.script()[1]["name"] == "crate"
    assert {"chest", "crate"} <= session.objects().keys()


def test_an_object_snaps_to_the_ground_and_to_the_grid(session):
    snap = hilsim.Snap(on_ground=True, grid_m=0.5)
    session.move("crate", (5.0, 0.0, 1.0))
    assert session.move("crate", (5.0, 0.0, 0.0), snap=GROUND).later.position_m == (5.0, 0.0, pytest.approx(0.5, abs=1e-6))
    edit = session.add("box", "chest", (2.2, 1.9, 0.0), size_m=[1.0, 1.0, 0.8], snap=snap)
    assert edit.later.position_m == (2.0, 2.0, pytest.approx(0.4, abs=1e-6))
    on_it = session.move("crate", (2.0, 2.0, 0.25), snap=GROUND)
    assert on_it.later.position_m == (2.0, 2.0, pytest.approx(0.75, abs=1e-6))  # an object that was put on the ground is no ground for others
    assert session.move("crate", (2.0, 2.0, 0.25), snap=GROUND).later == on_it.later  # neither is it its own
    with pytest.raises(ConfigError, match="crate: stand_on_ground requires a still surface"):
        session.move("crate", (90.0, 0.0, 0.0), snap=GROUND)


def test_an_object_of_the_rig_on_the_ground_is_turned_at_its_height(session):
    assert session.objects()["bin"].position_m == (4.0, 3.0, pytest.approx(0.5, abs=1e-6))
    edit = session.turn("bin", (0.0, 0.0, 10.0))
    assert edit.later.position_m == session.edits[-1].former.position_m


def test_an_object_that_travels_stops_where_it_is(session, target):
    target.advance(2.0)
    edit = session.turn("walker", (0.0, 0.0, 90.0))
    assert edit.later.position_m == pytest.approx((6.0, 0.0, 0.0))
    assert kinds(target) == ["move"]
    session.undo()
    assert target.script()[-1]["kind"] == "travel"
    assert session.is_saved


def test_a_deleted_object_with_a_motion_and_an_offset_is_added_with_both(session, target):
    session.delete("walker")
    session.undo()
    added = target.script()[-1]["capsule"]
    assert added["position_m"] == [0.0, 0.0, 0.85]
    assert len(added["motion"]["waypoints"]) == 2


def test_all_faults_of_an_edit_are_reported_at_once_and_nothing_is_sent(session, target):
    with pytest.raises(ConfigError) as refused:
        session.add("box", "crate", (0.0, float("inf"), 0.0), sizes_m=[1.0, 1.0, 1.0], motion={}, material="")
    faults = str(refused.value).split("\n")
    assert [fault.partition(" must")[0] for fault in faults][:3] == ["motion", "name", "position_m"]
    assert any("sizes_m: unknown key" in fault for fault in faults)
    assert any("size_m must be given" in fault for fault in faults)
    for edit in (
        lambda: session.add("terrain", "hill", file="hill.tif"),
        lambda: session.add("mesh", "hut", file="../hut.obj"),
        lambda: session.add("mesh", "hut", file="/etc/passwd"),
        lambda: session.add("box", "a\nb", size_m=[1.0, 1.0, 1.0]),
        lambda: session.add("box", "box[7]", size_m=[1.0, 1.0, 1.0]),
        lambda: session.add("box", "chest", size_m=[1.0, 1.0, 1.0], material="cheese"),
        lambda: session.add("box", "chest", size_m=[-1.0, 1.0, 1.0]),
        lambda: session.add_from_library("saloon", material="cheese"),
        lambda: session.move("nothing", (0.0, 0.0, 0.0)),
        lambda: session.move("crate", (0.0, 0.0)),
        lambda: session.copy("crate", (0.0, 0.0, 0.0), "bin"),
        lambda: session.rename("crate", "bin"),
        lambda: session.travel("crate", [(0.0, 0.0, 0.0)], 1000.0),
        lambda: session.travel("crate", [], 1.0),
    ):
        with pytest.raises(ConfigError, match=r"must|requires"):
            edit()
    assert target.script() == ()
    assert session.edits == ()
    assert session.is_saved


def test_an_edit_that_the_daemon_does_not_take_leaves_the_session_as_it_was(tmp_path):
    class Unreachable(hilsim.ScriptTarget):
        def change(self, _kind, _keys):
            raise TransmitError("no daemon")

    session = hilsim.edit(write_rig(tmp_path, RIG), Unreachable())
    before = session.objects()
    with pytest.raises(TransmitError, match="no daemon"):
        session.delete("crate")
    assert session.objects() == before
    assert session.edits == ()


def test_a_new_session_takes_the_changes_that_were_made_before(session, target, tmp_path):
    session.add("box", "chest", (2.0, 2.0, 0.5), size_m=[1.0, 1.0, 1.0])
    session.move("bin", (1.0, 1.0, 0.5))
    session.travel("crate", [(0.0, -2.0, 0.5)], 1.5)
    session.delete("walker")
    later = hilsim.edit(tmp_path / "rig.toml", target)
    assert later.objects() == session.objects()
    assert not later.is_saved


def test_what_has_no_table_in_the_rig_is_not_edited(tmp_path):
    text = RIG.replace("[[scene.plane]]", '[scene]\ngenerator = "street"\ngenerator_moving_cars = 2\n[[scene.plane]]', 1)
    twice = '[[scene.sphere]]\nname = "ball"\nradius_m = 0.2\n' * 2
    session = hilsim.edit(write_rig(tmp_path, text + twice), hilsim.ScriptTarget())
    building = next(name for name in session.fixed() if name.startswith("building"))
    with pytest.raises(ConfigError, match="it comes from the scene's generator or SDF file"):
        session.delete(building)
    with pytest.raises(ConfigError, match='several objects have its name "ball"'):
        session.delete("ball")
    assert "crate" in session.objects()


def test_an_edit_puts_objects_on_the_ground_where_a_rig_does(tmp_path, target):
    hill = '[[scene.box]]\nname = "slope"\nsize_m = [8.0, 8.0, 0.5]\nposition_m = [-6.0, -6.0, 1.0]\nrotation_deg = [12.0, 5.0, 0.0]\n'
    spots = [(-6.0, -6.0), (-4.5, -7.0), (3.0, -9.0), (9.9, 1.0)]
    tables = "".join(
        f'[[scene.cone]]\nname = "cone {n}"\nradius_m = 0.2\nheight_m = 0.5\nposition_m = [{x}, {y}, 0.1]\nstand_on_ground = true\n'
        for n, (x, y) in enumerate(spots)
    )
    session = hilsim.edit(write_rig(tmp_path, RIG + hill + tables), target)
    for number, (x, y) in enumerate(spots):
        of_rig = session.objects()[f"cone {number}"].position_m
        assert session.move(f"cone {number}", (x, y, 0.1), snap=GROUND).later.position_m == pytest.approx(of_rig, abs=1e-4)
