"""The editor on the page, with a browser's events and a session without a daemon: what each control does to the script of changes."""

import threading
import time

import numpy as np
import pytest

import hilsim
from hilsim.show.view.page.editor import SceneEditor
from hilsim.show.view.page.server import private_server
from tests.support import write_rig
from tests.unit.editing.test_session import RIG

LEVEL = (1.0, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def server():
    with private_server("test") as (made, _):
        yield made


@pytest.fixture
def target():
    return hilsim.ScriptTarget(rig_s=0.5)


@pytest.fixture
def editor(tmp_path, target, server):
    made = SceneEditor(server, hilsim.edit(write_rig(tmp_path, RIG), target), np.zeros(3))
    yield made
    made.stop()
    server.gui.reset()
    server.scene.reset()


def idle(editor):
    """Wait until all edits so far are made."""
    done = threading.Event()
    editor._jobs.put(done.set)
    assert done.wait(30.0)


def made(target):
    return [(change["kind"], change.get("name", "")) for change in target.script()]


def test_an_object_follows_its_handle_and_a_drag_is_undone_as_one_edit(editor, target):
    editor.do(lambda: editor.select("crate"))
    for step in range(20):
        editor.drag((5.0 + 0.1 * step, 1.0, 0.5), LEVEL, "start" if step == 0 else "update")
        time.sleep(0.01)
    editor.drag((7.0, 1.5, 0.5), LEVEL, "end")
    idle(editor)
    changes = target.script()
    assert {change["kind"] for change in changes} == {"move"}
    assert len(changes) < 20
    assert changes[-1]["position_m"] == pytest.approx([7.0, 1.5, 0.5], abs=1e-4)  # on the ground: a metre high, as it was
    assert tuple(editor._position.value) == pytest.approx((7.0, 1.5, 0.5), abs=1e-4)
    editor.do(editor.undo)
    assert target.script()[-1]["position_m"] == [5.0, 0.0, 0.5]
    assert editor._session.edits == ()
    editor.do(editor.redo)
    assert target.script()[-1]["position_m"] == pytest.approx([7.0, 1.5, 0.5], abs=1e-4)


def test_objects_of_the_library_and_shapes_are_added_copied_and_deleted(editor, target):
    editor._kind.value = "saloon"
    editor.do(editor.add)
    assert editor.selected == "saloon 1"
    editor._kind.value = "sphere"
    editor.do(editor.add)
    assert editor.selected == "sphere 1"
    editor.do(editor.copy)
    assert editor.selected == "sphere 2"
    editor.do(editor.delete)
    assert editor.selected == ""
    assert made(target) == [("add", ""), ("add", ""), ("add", ""), ("remove", "sphere 2")]
    assert set(editor._nodes) == {"ground", "crate", "box[1]", "bin", "walker", "saloon 1", "sphere 1"}
    editor.do(editor.undo)
    assert "sphere 2" in editor._nodes


def test_clicks_are_waypoints_of_a_travel(editor, target):
    editor.do(lambda: editor.select("crate"))
    editor._clicks.value = True
    assert editor.takes_clicks
    editor.click((0.0, 0.0, 10.0), (0.4, 0.2, -1.0), None)  # meets the height of the crate's middle
    editor.click((0.0, 0.0, 10.0), (0.0, 0.0, -1.0), np.array((6.0, 2.0, 0.0), np.float32))  # meets a point
    editor.click((0.0, 0.0, 10.0), (0.0, 0.0, 1.0), None)  # meets the sky
    idle(editor)
    assert [(round(x, 6), round(y, 6)) for x, y, _ in editor.waypoints] == [(3.8, 1.9), (6.0, 2.0)]
    editor._speed.value = 2.0
    editor.do(editor.travel)
    (change,) = target.script()
    assert (change["kind"], change["name"], editor.waypoints) == ("travel", "crate", [])
    assert [point["position_m"][:2] for point in change["motion"]["waypoints"]][-1] == pytest.approx([6.0, 2.0])


def test_faults_are_shown_and_nothing_is_done(editor, target):
    editor.do(editor.copy)
    assert editor.message.content == "select an object first"
    editor._file.value = "../outside.toml"
    editor.do(editor.save_as)
    assert "outside" in editor.message.content
    editor.do(lambda: editor.select("no such object"))
    assert (editor.selected, editor.message.content, target.script()) == ("", "", ())


def test_what_was_edited_is_saved_as_another_rig(editor, tmp_path):
    editor.do(lambda: editor.select("crate"))
    editor.drag((6.0, -1.0, 0.5), LEVEL, "start")
    editor.drag((6.0, -1.0, 0.5), LEVEL, "end")
    idle(editor)
    editor._file.value = "edited.toml"
    editor.do(editor.save_as)
    assert editor.message.content == ""
    assert "position_m = [6.0, -1.0, 0.5]" in (tmp_path / "edited.toml").read_text()
