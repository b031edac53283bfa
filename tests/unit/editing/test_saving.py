"""Saved rigs and scripts: what the file had stays, byte for byte, and a file is whole or as it was."""

import errno
import sys
import tomllib

import pytest

import hilsim
from hilsim.config.places import rig_path, shipped_names
from hilsim.editing.rig_text import edited_text
from hilsim.errors import ConfigError
from tests.support import write_rig
from tests.unit.editing.test_session import RIG

pytest.importorskip("tomlkit", reason="the extra view is not installed")

APART = """# Yard of the north gate
name = "yard"   # as on the door

[[scene.box]]   # the crate
name = "crate"
size_m = [ 1.0, 1.0, 1.0 ]  # measured
position_m = [5.0, 0.0, 0.5]
# [[scene.box]] in a comment is no table
material = "wood"

# The lidar on the roof.
[[sensor]]
name = "roof"
[sensor.network]
data_port = 2368

# The wall, in a text: [[scene.box]]
[["scene".'box']]
name = \"\"\"wall \\
[[scene.box]]\"\"\"
size_m = [
    0.3,  # thin
    10.0,
    3.0,
]
position_m = [10.0, 0.0, 1.5]

[[scene.capsule]]
name = "walker"
radius_m = 0.25
length_m = 1.2
[scene.capsule.motion]
loop = true
[[scene.capsule.motion.waypoints]]
time_s = 0.0
position_m = [6.0, -4.0, 0.85]
[[scene.capsule.motion.waypoints]]
time_s = 4.0
position_m = [6.0, -4.0, 0.85]

# Last of all.
[platform]
position_m = [0.0, 0.0, 1.5]
# the end"""


def edit(path):
    return hilsim.edit(path, hilsim.ScriptTarget(rig_s=0.5))


class Scripted(hilsim.ScriptTarget):
    """A target whose changes before the session were made by the rig's script."""

    def scripted(self):
        return range(4)


def test_what_a_script_did_is_not_saved_and_edits_beside_it_are(path):
    before, target = tomllib.loads(path.read_text())["scene"], Scripted(rig_s=0.5)
    target.change("add", {"box": {"name": "pallet", "size_m": [1.0, 1.0, 0.2], "position_m": [3.0, 0.0, 0.1]}})
    target.change("move", {"name": "wall [[scene.box]]", "position_m": [11.0, 0.0, 1.5]})
    target.change("remove", {"name": "walker"})
    target.change("weather", {"weather": {"rain_mm_per_h": 50.0}})
    session = hilsim.edit(path, target)
    assert session.is_saved
    session.move("pallet", (4.0, 0.0, 0.1))
    session.move("crate", (6.0, 0.0, 0.5))
    session.add("box", "mine", (2.0, 2.0, 0.5), size_m=[1.0, 1.0, 1.0])
    for _ in range(2):
        session.save()
        after = tomllib.loads(path.read_text())["scene"]
        assert [box["name"] for box in after["box"]] == ["crate", before["box"][1]["name"], "mine"]
        assert (after["box"][0]["position_m"], after["box"][1], after["capsule"]) == ([6.0, 0.0, 0.5], before["box"][1], before["capsule"])
        assert session.is_saved


def _names(directory):
    return [entry.name for entry in directory.iterdir()]


@pytest.fixture
def path(tmp_path):
    return write_rig(tmp_path, APART)


def test_a_moved_object_changes_only_the_line_of_its_place(path):
    session = edit(path)
    session.move("crate", (6.0, 1.0, 0.5))
    session.save()
    assert path.read_text() == APART.replace("position_m = [5.0, 0.0, 0.5]", "position_m = [6.0, 1.0, 0.5]")


def test_a_deleted_object_takes_its_lines_with_it_and_no_others(path):
    session = edit(path)
    session.delete("crate")
    session.save()
    start, end = APART.index("[[scene.box]]   # the crate"), APART.index('material = "wood"\n') + len('material = "wood"\n')
    assert path.read_text() in {APART[:start] + APART[end:], APART[: start - 1] + APART[end:]}


def test_new_objects_follow_the_last_of_the_scene(path):
    session = edit(path)
    session.add("sphere", 'ball "5"', (1.0, 2.0, 3.0), radius_m=0.25)
    session.add_from_library("van", position_m=(1.0, 2.0, 0.0))
    session.save()
    before, _, after = APART.partition("\n# Last of all.")
    text = path.read_text()
    assert text.startswith(before)
    assert text.endswith("\n# Last of all." + after)
    made = tomllib.loads(text)["scene"]
    assert made["sphere"] == [{"name": 'ball "5"', "position_m": [1.0, 2.0, 3.0], "radius_m": 0.25}]
    assert made["mesh"][0]["file"] == "hilsim:van"


def test_a_travel_is_saved_as_a_motion_and_a_stop_as_a_place(path):
    session = edit(path)
    session.travel("crate", [(0.0, 0.0, 0.5)], 1.0)
    session.move("walker", (1.0, 1.0, 0.85))
    session.rename("wall [[scene.box]]", "fence")
    session.save()
    made = tomllib.loads(path.read_text())["scene"]
    assert [way["position_m"] for way in made["box"][0]["motion"]["waypoints"]] == [[5.0, 0.0, 0.5], [0.0, 0.0, 0.5]]
    assert made["box"][0]["position_m"] == [0.0, 0.0, 0.0]
    assert made["box"][1]["name"] == "fence"
    assert made["capsule"] == [{"name": "walker", "radius_m": 0.25, "length_m": 1.2, "position_m": [1.0, 1.0, 0.85]}]
    assert "# measured" in path.read_text()
    assert "0.3,  # thin" in path.read_text()


def test_saving_again_and_again_follows_the_edits(path):
    session = edit(path)
    session.delete("crate")
    session.save()
    session.add("box", "trunk", size_m=[1.0, 1.0, 1.0])
    session.undo(2)
    session.save()
    names = [box["name"] for box in tomllib.loads(path.read_text())["scene"]["box"]]
    assert names == ["wall [[scene.box]]", "crate"]
    assert session.is_saved
    session.redo(2)
    session.undo()
    session.move("walker", (2.0, 2.0, 2.0))
    session.save()
    assert [box["name"] for box in tomllib.loads(path.read_text())["scene"]["box"]] == ["wall [[scene.box]]"]
    assert edit(path).objects()["walker"].position_m == (2.0, 2.0, 2.0)


def test_a_file_without_edits_or_with_undone_ones_is_written_as_it_was(path):
    session = edit(path)
    session.save()
    session.move("crate", (1.0, 1.0, 1.0))
    session.delete("walker")
    session.undo(2)
    session.save()
    assert path.read_text() == APART


def test_line_ends_of_windows_stay(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_bytes(APART.replace('"""wall \\\n[[scene.box]]"""', '"wall"').replace("\n", "\r\n").encode())
    session = edit(path)
    session.move("crate", (6.0, 1.0, 0.5))
    session.add("sphere", "ball", radius_m=0.25)
    session.save()
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")
    assert edit(path).objects()["crate"].position_m == (6.0, 1.0, 0.5)


@pytest.mark.parametrize(
    "scene",
    [
        '[scene]\nbox = [\n    { name = "a", size_m = [1.0, 1.0, 1.0] },  # first\n    { name = "b", size_m = [1.0, 1.0, 1.0] },\n]\n',
        'scene.box = [{ name = "a", size_m = [1.0, 1.0, 1.0] }, { name = "b", size_m = [1.0, 1.0, 1.0] }]\n',
        'scene = { box = [{ name = "a", size_m = [1.0, 1.0, 1.0] }, { name = "b", size_m = [1.0, 1.0, 1.0] }] }\n',
    ],
)
def test_lists_of_objects_within_a_line_are_edited_too(tmp_path, scene):
    path = write_rig(tmp_path, f'name = "rig"\n{scene}[[sensor]]\nname = "roof"\n')
    session = edit(path)
    session.move("a", (1.0, 2.0, 3.0))
    session.delete("b")
    session.copy("a", (3.0, 3.0, 3.0), "c")
    session.save()
    assert tomllib.loads(path.read_text())["scene"]["box"] == [
        {"name": "a", "size_m": [1.0, 1.0, 1.0], "position_m": [1.0, 2.0, 3.0]},
        {"name": "c", "position_m": [3.0, 3.0, 3.0], "size_m": [1.0, 1.0, 1.0]},
    ]


def test_a_text_that_cannot_have_new_tables_is_refused_and_not_written():
    text = 'name = "rig"\nscene = { origin_m = [0.0, 0.0, 0.0] }\n'
    with pytest.raises(ConfigError, match=r"must be written as \[\[scene.box\]\]"):
        edited_text(text, {}, [("box", {"name": "a", "size_m": [1.0, 1.0, 1.0]})])


def test_a_file_that_another_program_changed_is_not_overwritten(path):
    session = edit(path)
    session.move("crate", (6.0, 1.0, 0.5))
    path.write_text(APART + "\n# by hand")
    with pytest.raises(ConfigError, match="got a file that another program has changed: save under another name, or save the script"):
        session.save()
    assert path.read_text() == APART + "\n# by hand"
    assert session.save_as("mine.toml") == path.parent / "mine.toml"
    session.move("crate", (7.0, 1.0, 0.5))
    session.save()
    assert edit(path.parent / "mine.toml").objects()["crate"].position_m == (7.0, 1.0, 0.5)
    path.unlink()
    assert session.path.name == "mine.toml"


def test_a_read_only_rig_is_not_overwritten(path):
    session = edit(path)
    session.delete("crate")
    path.chmod(0o444)
    with pytest.raises(ConfigError, match="got a read-only file: save it under another name"):
        session.save()
    assert path.read_text() == APART


def test_a_shipped_rig_is_saved_under_another_name_only(tmp_path):
    session = hilsim.edit("demo", hilsim.ScriptTarget(), directory=tmp_path)
    session.add("box", "crate", size_m=[1.0, 1.0, 1.0])
    with pytest.raises(ConfigError, match="got a shipped one: save it under another name"):
        session.save()
    assert hilsim.load_rig(session.save_as("mine.toml")).name
    assert _names(tmp_path) == ["mine.toml"]


@pytest.mark.parametrize(
    "name", ["../mine.toml", "/mine.toml", "a/b.toml", ".toml", ".hidden.toml", "..", "", "mine.txt", "mine", "a\0.toml", "rig.toml"]
)
def test_no_name_leaves_the_directory_or_replaces_a_file(path, name):
    session = edit(path)
    session.delete("crate")
    for save in (session.save_as, session.save_script):
        with pytest.raises(ConfigError, match="must"):
            save(name)
    assert _names(path.parent) == ["rig.toml"]
    assert path.read_text() == APART


def test_a_link_is_not_written_through(path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "other.toml"
    elsewhere.write_text("")
    (path.parent / "link.toml").symlink_to(elsewhere)
    (path.parent / "meshes").symlink_to(elsewhere.parent)
    session = edit(path)
    with pytest.raises(ConfigError, match="must be a file, got a link"):
        session.save_as("link.toml", replace_file=True)
    with pytest.raises(ConfigError, match="file must be in the rig's directory"):
        session.add("mesh", "hut", file="meshes/hut.obj")
    assert elsewhere.read_text() == ""


def test_a_rig_that_would_not_load_is_not_saved(path):
    hut = path.parent / "hut.obj"
    hut.write_text("v 0 0 0\nv 1 0 0\nv 0 1 1\nf 1 2 3\n")
    session = edit(path)
    session.add("mesh", "hut", file="hut.obj")
    hut.unlink()
    with pytest.raises(hilsim.AssetError, match=r"hut.obj: no such file"):
        session.save()
    assert path.read_text() == APART
    assert _names(path.parent) == ["rig.toml"]


def test_what_stands_on_moved_ground_is_saved_where_it_is(tmp_path):
    text = RIG + '[[scene.box]]\nname = "ramp"\nsize_m = [2.0, 2.0, 0.4]\nposition_m = [4.0, 3.0, 0.2]\n'
    path = write_rig(tmp_path, text)
    session = edit(path)
    height_m = session.objects()["bin"].position_m[2]
    assert height_m == pytest.approx(0.9, abs=1e-4)
    session.delete("ramp")
    session.save()
    (cylinder,) = tomllib.loads(path.read_text())["scene"]["cylinder"]
    assert cylinder == {"name": "bin", "radius_m": 0.3, "height_m": 1.0, "position_m": [4.0, 3.0, height_m]}
    assert edit(path).objects()["bin"].position_m == (4.0, 3.0, height_m)


@pytest.mark.parametrize("name", ["done.toml", "done.jsonl"])
def test_a_saved_script_is_the_changes_that_were_made(path, name):
    session = edit(path)
    session.move("crate", (6.0, 1.0, 0.5))
    session.add_from_library("saloon", 'my "car"', (1.0, 2.0, 0.0), material="paint_red")
    session.travel("walker", [(0.0, 0.0, 0.85)], 1.0, loop=True)
    written = session.save_script(name)
    kinds = [change.kind for change in hilsim.Emulator(path, script=written)._script.changes]
    assert kinds == ["move", "add", "travel"]
    with pytest.raises(ConfigError, match="must be a new file, got one that exists"):
        session.save_script(name)
    session.save_script(name, replace_file=True)


def test_the_mode_of_a_file_stays(path):
    path.chmod(0o640)
    session = edit(path)
    session.delete("crate")
    session.save()
    assert path.stat().st_mode & 0o777 == 0o640
    assert _names(path.parent) == ["rig.toml"]


def test_saving_without_tomlkit_says_what_to_install(path, monkeypatch):
    session = edit(path)
    session.move("crate", (6.0, 1.0, 0.5))
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    with pytest.raises(ConfigError, match=r"requires the package tomlkit \(pip install 'hilsim-lidar\[view\]'\)"):
        session.save()
    assert path.read_text() == APART


def test_a_write_that_fails_leaves_the_file_and_nothing_beside_it(path, monkeypatch):
    session = edit(path)
    session.move("crate", (6.0, 1.0, 0.5))
    monkeypatch.setattr("os.fsync", _no_space)
    with pytest.raises(ConfigError, match="No space left on device"):
        session.save()
    assert path.read_text() == APART
    assert _names(path.parent) == ["rig.toml"]
    assert not session.is_saved
    monkeypatch.undo()
    session.save()
    assert session.is_saved


def test_a_file_that_changes_while_it_is_saved_is_not_overwritten(path, monkeypatch):
    session = edit(path)
    session.move("crate", (6.0, 1.0, 0.5))
    monkeypatch.setattr("os.fsync", lambda _: path.write_text(APART + "# by hand"))
    with pytest.raises(ConfigError, match="got a file that another program has changed"):
        session.save()
    assert path.read_text() == APART + "# by hand"
    assert _names(path.parent) == ["rig.toml"]


def _no_space(_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_rig_is_saved_where_it_was_read_whatever_the_working_directory(path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(path.parent)
    session = hilsim.edit("rig.toml", hilsim.ScriptTarget())
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    session.move("crate", (6.0, 1.0, 0.5))
    session.save()
    assert "[6.0, 1.0, 0.5]" in path.read_text()


@pytest.mark.parametrize("name", shipped_names("rigs"))
def test_an_object_added_to_a_shipped_rig_adds_lines_and_changes_none(name):
    text = rig_path(name).read_text()
    new = {"name": "crate", "size_m": [1.0, 1.0, 1.0]}
    edited = edited_text(text, {}, [("box", new)])
    assert tomllib.loads(edited)["scene"]["box"][-1] == new
    lines = iter(edited.splitlines())
    assert all(line in lines for line in text.splitlines())
    first = tomllib.loads(edited)["scene"]["box"][0]
    assert edited_text(edited, {("box", len(tomllib.loads(edited)["scene"]["box"]) - 1): None}, []).split() == text.split()
    assert tomllib.loads(edited_text(edited, {("box", 0): {**first, "label": 7}}, []))["scene"]["box"][0]["label"] == 7
