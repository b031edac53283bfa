"""Worlds as libsdformat reads them: Gazebo's own parser (Debian's ``libsdformat12-12`` and ``sdformat-sdf``) accepts ours, fills them in, and says what is relative to what.

It is asked through the functions of its command ``sdf``: ``check``, ``print`` and ``graph``. Of the figures it prints, a world pose is made here with plain matrices along the
edges of its graph.
"""

import ctypes.util
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from hilsim.world.sdf.reading import read_sdf

CALL = "import ctypes, sys; sys.exit(getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])(*(text.encode() for text in sys.argv[3:])) != 0)"
LIBRARY = "libsdformat12.so.12"

CHAIR = """<sdf version="1.6"><model name="chair"><pose>0 0 9 0 0 1</pose>
<link name="seat"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose>
  <collision name="c"><pose frame="leg">0 0 1 1 0 0</pose><geometry><box/></geometry></collision></link>
<link name="leg"><pose frame="seat">1 0 0 0 0.3 0</pose></link></model></sdf>"""
CONFIG = '<model><name>chair</name><sdf version="1.6">model.sdf</sdf></model>'
WORLD = """
<sdf version="1.9"><world name="bench"><!-- two dashes -- are accepted -->
<frame name="post" attached_to="m::arm"><pose relative_to="placed">10 0 0 0 0 0</pose></frame>
<model name="on_post"><pose relative_to="post" degrees="true">0 0 1 15 90 -30</pose><link name="l">
  <visual name="v"><pose relative_to="__model__">1 2 3 0 0 0</pose><geometry><cylinder><length>3</length></cylinder></geometry></visual></link></model>
<include><uri>model://chair</uri></include>
<include><uri>model://chair</uri><name>placed</name><pose degrees="true">3 0 0 0 20 30</pose><placement_frame>leg</placement_frame></include>
<model name="m" placement_frame="n::x"><pose relative_to="chair::leg" rotation_format="quat_xyzw">0.1 0 1 0 0.6 0 0.8</pose>
  <frame name="tip" attached_to="arm"><pose>1 0 0 0 0 0</pose></frame>
  <link name="base"><pose>0 1 0 0 0 0</pose></link>
  <link name="arm"><pose relative_to="elbow">2 0 0 0 0 0</pose>
    <sensor name="s" type="lidar"><pose relative_to="tip">1 2 3 0 0 0.5</pose>
      <lidar><scan><horizontal/><vertical/></scan><range><min>0.1</min><max>10</max></range><noise><mean>0.2</mean></noise></lidar></sensor>
    <sensor name="t" type="gpu_ray"><update_rate>7.5</update_rate>
      <ray><scan><horizontal><samples>9</samples><min_angle>-1.5</min_angle></horizontal></scan><range><max>inf</max></range></ray></sensor></link>
  <joint name="elbow" type="fixed"><parent>world</parent><child>base</child><pose degrees="true">0 0 0 0 0 90</pose></joint>
  <model name="n"><pose relative_to="tip">1 1 1 0.1 0.2 0.3</pose><link name="x"><pose>0 0 1 0 0 2</pose>
    <collision name="c"><geometry><sphere/></geometry></collision><collision name="d"><geometry><capsule/></geometry></collision>
    <collision name="e"><geometry><ellipsoid/></geometry></collision><collision name="f"><geometry><plane/></geometry></collision></link></model>
  <include merge="true"><uri>model://chair</uri><name>part</name><pose relative_to="n">1 0 0 0 0.5 0</pose></include>
</model>
</world></sdf>"""
FROM_RESOLVE = {
    "chair::seat::c": (0.21208721896045579, 1.7611894521371199, 9.4510997624563782, 0.62964441204132104, 0.18893628193910145, 0.66162748582073438),
    "placed::seat::c": (3.2961981327260244, 0.17101007166283422, 0.93969262078590865, 0.85634854282391748, 0.41661254647218632, 0.26939736675218151),
    "m::arm::s": (0.11222657272262548, 2.055019412724743, 7.9268063018319914, 0.44372318503877406, -0.88580560537703223, 0.015791482219968012),
    "m::seat::c": (2.8892627659605727, 0.3892392021577058, 9.4417199578621585, 0.71808377696088466, -0.26362560402956409, 0.22437221281236225),
    "m::n::x::c": (0.19851701981002168, 1.8316123151516286, 9.3814113842297537, 0.26989253243103545, -0.48909219703919071, 0.71205301497480156),
}
"""x, y, z and the quaternion's w, x, y of libsdformat 12.3's ``SemanticPose::Resolve``, once, by a C++ program."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The world's file."""
    if ctypes.util.find_library("sdformat12") is None or not Path("/usr/share/sdformat12").is_dir():
        pytest.skip("libsdformat12-12 and sdformat-sdf are not installed (Debian's packages)")
    folder = tmp_path_factory.mktemp("sdformat")
    (folder / "chair").mkdir()
    (folder / "chair" / "model.sdf").write_text(CHAIR)
    (folder / "chair" / "model.config").write_text(CONFIG)
    (folder / "bench.sdf").write_text(WORLD)
    return folder / "bench.sdf"


def ask(path, function, *arguments):
    """What libsdformat prints, in a process of its own."""
    command = [sys.executable, "-c", CALL, LIBRARY, function, *arguments, str(path)]
    done = subprocess.run(command, env={**os.environ, "SDF_PATH": str(path.parent)}, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 0, done.stdout, done.stderr


@pytest.fixture(scope="module")
def printed(bench):
    """Its file as libsdformat prints it: includes in place, defaults filled in, the newest version."""
    is_good, text, errors = ask(bench, "cmdPrint")
    assert is_good, errors
    return text


@pytest.fixture(scope="module")
def ours(bench):
    return read_sdf(bench, [bench.parent])


def things(scene):
    return {thing.name: thing for thing in (*scene.collisions, *scene.visuals, *scene.lidars)}


def numbers(pose):
    """Position and quaternion, w not negative."""
    sign = math.copysign(1.0, pose.orientation[0])
    return (*pose.position_m, *(sign * part for part in pose.orientation))


def test_libsdformat_accepts_the_world_with_its_dashes_and_merged_models(bench):
    assert ask(bench, "cmdCheck") == (True, "Valid.\n", "")


def test_output_of_libsdformat_reads_like_the_world(bench, printed, ours):
    path = bench.with_name("printed.sdf")
    path.write_text(printed)
    theirs, mine = things(read_sdf(path)), things(ours)
    assert set(theirs) == set(mine)
    assert len(mine) == 10
    for name, thing in mine.items():
        np.testing.assert_allclose(numbers(theirs[name].pose), numbers(thing.pose), atol=1e-9, err_msg=name)
    same = ("horizontal", "vertical", "range_min_m", "range_max_m", "noise", "update_rate_hz", "scoped_topic", "frame")
    for a, b in zip(read_sdf(path).lidars, ours.lidars, strict=True):
        assert [getattr(a, each) for each in same] == [getattr(b, each) for each in same]
    same = ("kind", "size_m", "radii_m", "length_m", "normal")
    for name in {shape.name for shape in (*ours.collisions, *ours.visuals)}:
        assert [getattr(theirs[name], each) for each in same] == [getattr(mine[name], each) for each in same]


def test_defaults_are_those_that_libsdformat_fills_in(printed, ours):
    root = ET.fromstring(printed)  # noqa: S314 - libsdformat's own
    shapes = things(ours)
    for path, value in (
        ("sphere/radius", shapes["m::n::x::c"].radii_m[:1]),
        ("capsule/radius", shapes["m::n::x::d"].radii_m[:1]),
        ("capsule/length", (shapes["m::n::x::d"].length_m,)),
        ("ellipsoid/radii", shapes["m::n::x::e"].radii_m),
        ("plane/size", shapes["m::n::x::f"].size_m[:2]),
        ("plane/normal", shapes["m::n::x::f"].normal),
        ("box/size", shapes["m::seat::c"].size_m),
        ("horizontal/samples", (ours.lidars[0].horizontal.samples,)),
        ("horizontal/max_angle", (ours.lidars[0].horizontal.max_rad,)),
        ("vertical/samples", (ours.lidars[0].vertical.samples,)),
        ("noise/mean", (ours.lidars[0].noise.mean_m,)),
    ):
        found = root.find(f".//{path}")
        assert found is not None, path
        assert tuple(map(float, found.text.split())) == pytest.approx(value), path


def matrix(pose):
    """A printed ``<pose>`` as a 4 x 4 matrix."""
    if pose is None or not pose.text:
        return np.eye(4)
    x, y, z, *turn = map(float, pose.text.split())
    made = np.eye(4)
    made[:3, 3] = x, y, z
    if len(turn) == 4:
        a, b, c, w = turn
        made[:3, :3] = [
            [1 - 2 * (b * b + c * c), 2 * (a * b - c * w), 2 * (a * c + b * w)],
            [2 * (a * b + c * w), 1 - 2 * (a * a + c * c), 2 * (b * c - a * w)],
            [2 * (a * c - b * w), 2 * (b * c + a * w), 1 - 2 * (a * a + b * b)],
        ]
        return made
    roll, pitch, yaw = np.radians(turn) if pose.get("degrees") == "true" else turn
    cr, sr, cp, sp, cy, sy = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch), math.cos(yaw), math.sin(yaw)
    about_x, about_y, about_z = [[1, 0, 0], [0, cr, -sr], [0, sr, cr]], [[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]], [[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]]
    made[:3, :3] = np.array(about_z) @ np.array(about_y) @ np.array(about_x)
    return made


class Graph:
    """Frames with what each is relative to, as libsdformat draws them."""

    def __init__(self, dot, world):
        self.world = world
        names = dict(re.findall(r'(\d+) \[label="(\S+) \(\d+\)"\]', dot))
        self.before = {names[child]: names[parent] for parent, child in re.findall(r"(\d+) -> (\d+)", dot)}

    def element(self, name):
        found = self.world
        for part in name.split("::"):
            found = next(child for child in found if child.tag in {"model", "link", "joint", "frame"} and child.get("name") == part)
        return found

    def pose(self, name):
        """Pose of a frame in the world."""
        if name == "world":
            return np.eye(4)
        if name.endswith("::__model__"):
            return self.pose(self.before[name])
        stands, placement = self.pose(self.before[name]) @ matrix(self.element(name).find("pose")), self.element(name).get("placement_frame")
        return stands if placement is None else stands @ np.linalg.inv(self.within(f"{name}::{placement}", f"{name}::__model__"))

    def within(self, name, root):
        """Pose of a frame in a model's own."""
        if name == root:
            return np.eye(4)
        own = np.eye(4) if name.endswith("::__model__") else matrix(self.element(name).find("pose"))
        return self.within(self.before[name], root) @ own


def test_every_shape_and_lidar_is_where_libsdformats_graph_puts_it(bench, printed, ours):
    is_good, dot, errors = ask(bench, "cmdGraph", "pose")
    assert is_good, errors
    graph = Graph(dot, ET.fromstring(printed).find("world"))  # noqa: S314 - libsdformat's own
    for name, thing in things(ours).items():
        link, last = name.rsplit("::", 1)
        pose = next(child for child in graph.element(link) if child.get("name") == last).find("pose")
        wanted = pose.get("relative_to") if pose is not None else None
        start = f"{link.rsplit('::', 1)[0]}::{wanted}" if wanted else link
        expected = graph.pose(start) @ matrix(pose)
        np.testing.assert_allclose(thing.pose.position_m, expected[:3, 3], atol=1e-9, err_msg=name)
        turned = np.array([thing.pose.transform(axis) for axis in np.eye(3)]) - thing.pose.position_m
        np.testing.assert_allclose(turned.T, expected[:3, :3], atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", FROM_RESOLVE)
def test_world_poses_are_those_that_libsdformat_resolves(ours, name):
    np.testing.assert_allclose(numbers(things(ours)[name].pose)[:6], FROM_RESOLVE[name], atol=1e-12)


GROUND = """<sdf version="1.9"><world name="w"><model name="m"><link name="l">
<collision name="a"><geometry><heightmap><uri>a.png</uri></heightmap></geometry></collision>
<collision name="b"><geometry><heightmap><uri>a.png</uri><size>1 2 3</size><pos>4 5 6</pos><sampling>2</sampling></heightmap></geometry></collision>
<visual name="c"><geometry><mesh><uri>a.obj</uri><submesh><name>left</name></submesh></mesh></geometry></visual>
<visual name="d"><geometry><mesh><uri>a.obj</uri><submesh><name>left</name><center>true</center></submesh></mesh></geometry></visual>
</link></model></world></sdf>"""


def test_heightmaps_and_submeshes_have_the_values_that_libsdformat_fills_in(bench):
    path = bench.with_name("ground.sdf")
    path.write_text(GROUND)
    is_good, text, errors = ask(path, "cmdPrint")
    assert is_good, errors
    path.with_name("ground_printed.sdf").write_text(text)
    mine, theirs = things(read_sdf(path)), things(read_sdf(path.with_name("ground_printed.sdf")))
    assert list(mine) == list(theirs) == [f"m::l::{name}" for name in "abcd"]
    for name in mine:
        same = ("kind", "uri", "size_m", "position_m", "sampling", "submesh", "is_centred", "scale")
        assert [getattr(mine[name], each) for each in same] == [getattr(theirs[name], each) for each in same]
    shape = mine["m::l::a"]
    heightmap = ET.fromstring(text).find(".//heightmap")  # noqa: S314 - libsdformat's own
    for tag, value in (("size", shape.size_m), ("pos", shape.position_m), ("sampling", (shape.sampling,))):
        found = heightmap.find(tag)
        assert found is None or tuple(map(float, found.text.split())) == value


def test_a_submesh_without_a_name_is_refused_by_libsdformat_too(bench):
    path = bench.with_name("unnamed.sdf")
    path.write_text(GROUND.replace("<name>left</name><center>", "<center>"))
    assert not ask(path, "cmdCheck")[0]
    with pytest.raises(Exception, match=r"unnamed\.sdf:5: <submesh> must have a <name>"):
        read_sdf(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('relative_to="tip">1 1 1', 'relative_to="nothing">1 1 1'),
        ('attached_to="arm"><pose>1', 'attached_to="arm"><pose relative_to="n::x">1'),
        ("model://chair</uri></include>", "model://nothing</uri></include>"),
        ('<link name="base"><pose>0 1 0 0 0 0', '<link name="base"><pose>0 1 0'),
        ('<link name="base">', '<link name="arm">'),
        ('<model name="n">', "<model>"),
        ('<link name="base">', '<link name="seat"/><link name="base">'),
        ("</world>", ""),
    ],
)
def test_files_that_libsdformat_refuses_are_refused(bench, old, new):
    assert old in WORLD
    path = bench.with_name("wrong.sdf")
    path.write_text(WORLD.replace(old, new))
    is_good, _, errors = ask(path, "cmdCheck")
    assert not is_good
    assert "Error" in errors
    with pytest.raises(Exception, match=r"(wrong|model)\.sdf:\d+: "):
        read_sdf(path, [bench.parent])
