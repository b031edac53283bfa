"""Every block of TOML on a page is sound: ``hilsim check`` has no fault to find in it, once it has what the rest of a rig would bring."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

import hilsim
from hilsim.assembly.build import build_scenery
from hilsim.assembly.changed import check_script
from hilsim.cli.background.command import background
from hilsim.cli.check import check
from hilsim.config.changes import Changes
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.places import profiles_directory
from hilsim.config.rig import load_rig
from hilsim.config.script import load_script
from hilsim.parts.external.recording import key_records
from hilsim.parts.rangefinders.registry import RANGEFINDERS
from hilsim.show.outputs.dataset import DatasetSpec, recordings_of
from tests.edited import edited_copy
from tests.pages import ROOT, blocks, by_page
from tests.plugins import EXAMPLE, distribution, install_example
from tests.support import write_rig
from tests.walls import wall_rig

_HEADS = {"beacon", "sensor", "rangefinder", "gps_receiver", "replay", "rover", "heartbeat"}
"""Tables that a rig needs one of."""
_SEEN = {"generator", "background", "mesh", "terrain", "plane", "box", "cylinder", "sphere", "cone", "capsule", "ellipsoid", "sdf"}
"""Keys of a scene that it needs one of."""


def whole(text):
    """A rig's text: what a page shows of it, and the least that it lacks."""
    shown = tomllib.loads(text)
    lacking = ["" if "name" in shown else 'name = "page"', text]
    if not _HEADS & set(shown):
        lacking.append('[[sensor]]\nname = "lidar"')
    if "vehicle" in shown and "platform" not in shown:
        lacking.append('[platform]\nkind = "vehicle"')
    if not _SEEN & set(shown.get("scene", {})):
        lacking.append('[scene]\ngenerator = "street"')
    return "\n".join(lacking) + "\n"


def assert_sound(path):
    """As ``hilsim check`` says it."""
    said = CliRunner().invoke(check, [str(path), "--no-cost"])
    assert said.exit_code == 0, f"{said.exception or said.output}\n{path.read_text()}"
    assert f"{path}: sound" in said.stderr


def a_rig(block, directory, _request):
    """A rig, or a part of one."""
    assert_sound(write_rig(directory, whole(block.text)))


def with_a_mesh(block, directory, request):
    """The scene's mesh is beside it."""
    trimesh.creation.box((10.0, 10.0, 4.0)).export(directory / "hall.glb")
    a_rig(block, directory, request)


def with_a_map(block, directory, request):
    """The map of the place is made as its page says."""
    hilsim.record(write_rig(directory, wall_rig(), "wall.toml"), directory / "hall.pcap", duration_s=0.3)
    made = CliRunner().invoke(background, [str(directory / "hall.pcap"), "-o", str(directory / "hall"), "--height-m", "1.2", "--columns", "900"])
    assert made.exit_code == 0, made.output
    a_rig(block, directory, request)


def with_a_capture(block, directory, request):
    """The capture holds what its flow names."""
    text = wall_rig().replace("127.0.1.201", "192.168.1.201")
    hilsim.record(write_rig(directory, text, "wall.toml"), directory / "front.pcap", duration_s=0.3)
    a_rig(block, directory, request)


def with_a_drive(block, directory, request):
    """The recording is beside the rig."""
    hilsim.record(write_rig(directory, wall_rig(), "wall.toml"), directory / "drive.pcap", duration_s=0.3)
    a_rig(block, directory, request)


def with_poses(block, directory, request):
    """The recording of poses is beside the rig: the platform does not move."""
    state = np.zeros((1, 13))
    state[0, 6] = 1.0
    (directory / "drive.poses").write_bytes(key_records([0], [0], [True], state).tobytes())
    a_rig(block, directory, request)


def with_scans(block, directory, request):
    """The archives of rovers' scans are beside it."""
    scans = directory / "rover.dat"
    scans.write_text("0,0,0,0,0,0; 1,2,3\n")
    for number in (1, 2):
        with tarfile.open(directory / f"rover{number}.dat.tar.xz", "w:xz") as archive:
            archive.add(scans, "rover.dat")
    a_rig(block, directory, request)


def with_the_plugin(block, directory, request):
    """The package of the page is installed."""
    install_example(request.getfixturevalue("plugin_site"))
    a_rig(block, directory, request)


def beside_a_controller(block, directory, _request):
    """The rest of the page's rig has a flight controller."""
    assert_sound(write_rig(directory, whole(block.text + '[vehicle.controller]\nkind = "serial"\nport = "/dev/ttyACM0"\n')))


def the_project_of_the_plugin(block, directory, request):
    """``pyproject.toml`` of a package: what its entry points name is there for a rig."""
    site = request.getfixturevalue("plugin_site")
    shutil.copytree(EXAMPLE / "hilsim_plugin_example", site / "hilsim_plugin_example")
    project = tomllib.loads(block.text)["project"]
    distribution(site, project["name"], project["version"], project["entry-points"])
    assert_sound(write_rig(directory, whole('[[sensor]]\nname = "roof"\nprofile = "spinner16"\n[[sink]]\nkind = "departures"\nfile = "sent.csv"\n')))


def the_entry_of_the_plugin(block, _directory, _request):
    """A group of entry points of the example's ``pyproject.toml``."""
    of_example = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    assert of_example.items() >= tomllib.loads(block.text)["project"]["entry-points"].items()


def a_project_with_a_profile(block, directory, request):
    """Of ``pyproject.toml``: a rig finds the profile that it names."""
    site = request.getfixturevalue("plugin_site")
    points = tomllib.loads(block.text)["project"]["entry-points"]
    ((name, value),) = points["hilsim.profiles"].items()
    module, _, attribute = value.partition(":")
    shutil.copy(profiles_directory() / "sensors" / "vlp16.toml", site / "unit.toml")
    (site / f"{module}.py").write_text(f'from pathlib import Path\n\n{attribute} = Path(__file__).with_name("unit.toml")\n')
    request.addfinalizer(lambda: sys.modules.pop(module, None))
    distribution(site, "company-lidars", entry_points=points)
    assert_sound(write_rig(directory, whole(f'[[sensor]]\nname = "roof"\nprofile = "{name}"\n')))


def of_every_kind(block, directory, _request):
    """``<name>`` is any kind of range sensor."""
    for name in RANGEFINDERS:
        assert_sound(write_rig(directory, whole(block.text.replace("<name>", name)), f"{name}.toml"))


def where_the_page_was_followed(block, directory, _request):
    """The table is one that the page adds to hilsim."""
    (directory / "checkout").mkdir()
    environment = os.environ | edited_copy(block.page.name, directory / "checkout")
    rig = write_rig(directory, whole(block.text))
    words = [sys.executable, "-m", "hilsim", "check", rig, "--no-cost"]
    said = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stderr
    assert f"{rig}: sound" in said.stderr


def with_a_world(block, directory, _request):
    """The example's world is beside it."""
    shutil.copy(ROOT / "examples" / "warehouse.sdf", directory)
    assert_sound(write_rig(directory, block.text))


def a_script(block, directory, request):
    """Changes that can be made of the demo, whose sensor it names."""
    del request
    path = directory / "script.toml"
    path.write_text(block.text)
    rig = replace(load_rig(ROOT / "profiles" / "rigs" / "demo.toml"), script=load_script(path))
    check_script(rig, build_scenery(rig))


def a_data_set(block, directory, request):
    """A data set's specification, whose recordings all have a rig that is sound."""
    del request
    path = directory / "spec.toml"
    path.write_text(block.text)
    recordings = recordings_of(parse_table(DatasetSpec, read_toml(path), "spec"), directory)
    assert len(recordings) > 1
    for recording in recordings:
        load_rig(recording.rig, Changes(settings=recording.settings))


SPECIAL = {
    ("other-tools.md", 1): a_data_set,
    ("script.md", 0): a_script,
    ("gps-time.md", 1): a_script,
    ("README.md", 0): with_a_mesh,
    ("insert-into-recordings.md", 0): with_a_drive,
    ("overlay.md", 0): with_a_map,
    ("overlay.md", 1): with_a_map,
    ("replay-captures.md", 0): with_a_capture,
    ("external-poses.md", 1): with_poses,
    ("be-the-lidar-of-a-simulator.md", 0): with_poses,
    ("fly-with-an-autopilot.md", 3): beside_a_controller,
    ("rovers.md", 0): with_scans,
    ("gazebo.md", 0): with_a_world,
    ("gazebo.md", 1): with_a_world,
    ("write-a-plugin.md", 0): the_project_of_the_plugin,
    ("write-a-plugin.md", 1): with_the_plugin,
    ("write-a-plugin.md", 2): a_project_with_a_profile,
    ("write-a-part.md", 0): the_entry_of_the_plugin,
    ("write-a-part.md", 1): with_the_plugin,
    ("add-a-serial-device.md", 0): of_every_kind,
    ("add-a-serial-device.md", 1): where_the_page_was_followed,
    ("add-an-output.md", 0): where_the_page_was_followed,
}
"""What a block needs, or is, where it is not simply a rig or a part of one; blocks are counted from 0 on their pages."""


@pytest.mark.parametrize("block", by_page(blocks("toml"), lambda block: block.page, lambda block: block.place))
def test_a_block_is_sound(block, tmp_path, request):
    place = tmp_path / "page"
    place.mkdir()
    SPECIAL.get(block.key, a_rig)(block, place, request)
