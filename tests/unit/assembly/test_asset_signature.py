"""Whether a rig's files must be read again: those that its SDF file brings with it count as its own."""

import os

import numpy as np
import pytest
from PIL import Image

from hilsim.assembly.build import asset_signature
from hilsim.config.rig import load_rig
from hilsim.daemon.parts import RigContext
from hilsim.world.assets import scenes

CHAIR = '<sdf version="1.9"><model name="chair"><link name="l">{}</link></model></sdf>'
MESH = '<collision name="c"><geometry><mesh><uri>seat.obj</uri></mesh></geometry></collision>'
GROUND = '<collision name="g"><geometry><heightmap><uri>ground.png</uri></heightmap></geometry></collision>'
WORLD = """<sdf version="1.9"><world name="w"><include><uri>model://chair</uri></include>
<model name="m"><link name="l">{}</link></model></world></sdf>"""


@pytest.fixture
def rig(tmp_path):
    """A rig with a world that includes a model with a mesh, and that has a heightmap."""
    chair = tmp_path / "second" / "chair"
    chair.mkdir(parents=True)
    (tmp_path / "first").mkdir()
    (chair / "model.config").write_text('<model><sdf version="1.9">model.sdf</sdf></model>')
    (chair / "model.sdf").write_text(CHAIR.format(MESH))
    (chair / "seat.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    Image.fromarray(np.eye(3, dtype=np.uint8)).save(tmp_path / "ground.png")
    (tmp_path / "world.sdf").write_text(WORLD.format(GROUND))
    path = tmp_path / "rig.toml"
    path.write_text('name = "r"\n[scene]\nsdf = "world.sdf"\nsdf_path = ["first", "second"]\n[[sensor]]\nname = "s"\nprofile = "vlp16"\n')
    return load_rig(path)


def touch(path):
    """Another time of change, whatever the clock's step."""
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1_000_000_000))


@pytest.mark.parametrize("name", ["world.sdf", "second/chair/model.config", "second/chair/model.sdf", "second/chair/seat.obj", "ground.png"])
def test_a_change_of_any_file_of_a_world_is_seen(rig, name):
    before = asset_signature(rig)
    assert asset_signature(rig) == before
    touch(rig.directory / name)
    assert asset_signature(rig) != before


def test_a_model_that_is_found_sooner_is_seen(rig):
    before = asset_signature(rig)
    (rig.directory / "first" / "chair").mkdir()
    assert asset_signature(rig) != before


def test_a_file_that_is_gone_is_seen(rig):
    before = asset_signature(rig)
    (rig.directory / "second" / "chair" / "seat.obj").unlink()
    assert asset_signature(rig) != before


def test_a_file_newly_named_by_a_changed_file_is_watched(rig):
    chair = rig.directory / "second" / "chair"
    asset_signature(rig)
    (chair / "other.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (chair / "model.sdf").write_text(CHAIR.format(MESH.replace("seat", "other")))
    before = asset_signature(rig)
    touch(chair / "other.obj")
    assert asset_signature(rig) != before


def test_another_file_in_a_models_directory_is_no_change(rig):
    before = asset_signature(rig)
    (rig.directory / "second" / "chair" / "readme.txt").write_text("oak")
    assert asset_signature(rig) == before


def test_a_world_that_cannot_be_read_any_more_is_another_one(rig):
    before = asset_signature(rig)
    (rig.directory / "second" / "chair" / "model.sdf").write_text("<sdf")
    assert asset_signature(rig) != before


def test_a_world_is_read_once_while_its_files_stay_as_they_are(rig, monkeypatch):
    before, reads = asset_signature(rig), []
    monkeypatch.setattr(scenes, "scene_sdf", lambda *_: reads.append(1))
    assert asset_signature(rig) == before
    assert reads == []


def test_a_running_rig_builds_its_scene_anew_when_a_mesh_of_a_model_has_changed(rig):
    context = RigContext(rig=rig)
    scenery = context.scenery(rig)
    assert context.scenery(rig) is scenery
    assert context.shows(rig)
    path = rig.directory / "second" / "chair" / "seat.obj"
    path.write_text(path.read_text() + "v 0 0 5\nf 1 2 4\n")
    touch(path)
    assert not context.shows(rig)
    assert len(context.scenery(rig).world.corners) == len(scenery.world.corners) + 1
