"""Worlds and models: poses, lidars, and every fault with its file and line."""

import math
import os

import numpy as np
import pytest

from hilsim.errors import AssetError
from hilsim.world.sdf.reading import read_sdf

LIDAR = """
<sensor name="scanner" type="{kind}">
  <pose>0 0 0.5 0 0 0</pose>
  <update_rate>30</update_rate>
  <lidar>
    <scan>
      <horizontal><samples>180</samples><min_angle>-1.5</min_angle><max_angle>1.5</max_angle></horizontal>
      <vertical><samples>4</samples><min_angle>-0.2</min_angle><max_angle>0.1</max_angle></vertical>
    </scan>
    <range><min>0.1</min><max>30</max><resolution>0.01</resolution></range>
    <noise><mean>0.01</mean><stddev>0.02</stddev></noise>
  </lidar>
</sensor>
"""
BOX = '<collision name="hull"><geometry><box><size>1 2 3</size></box></geometry></collision>'


@pytest.fixture
def sdf(tmp_path):
    def write(body, name="world.sdf", version="1.9", *, whole=False):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body if whole else f'<?xml version="1.0"?>\n<sdf version="{version}">\n{body}\n</sdf>\n')
        return path

    return write


def world(body):
    return f'<world name="bench">\n{body}\n</world>'


def faults_of(path):
    with pytest.raises(AssetError) as caught:
        read_sdf(path)
    return str(caught.value).split("\n")


def assert_at(pose, position, yaw_deg=0.0):
    assert np.allclose(pose.position_m, position, atol=1e-12)
    w, x, y, z = pose.orientation
    assert np.allclose((x, y), 0.0, atol=1e-12)
    assert math.remainder(math.degrees(2 * math.atan2(z, w)) - yaw_deg, 360) == pytest.approx(0.0, abs=1e-9)


# -- frames -----------------------------------------------------------------------------------------------------------------------------


def test_a_shape_is_in_its_link_its_link_in_its_model_and_its_model_in_the_world(sdf):
    model = f'<model name="m"><pose>1 0 0 0 0 1.5707963267948966</pose><link name="l"><pose>1 0 0 0 0 0</pose>{BOX}</link></model>'
    (shape,) = read_sdf(sdf(world(model))).collisions
    assert (shape.name, shape.kind, shape.size_m) == ("m::l::hull", "box", (1.0, 2.0, 3.0))
    assert_at(shape.pose, (1, 1, 0), 90)


def test_poses_are_relative_to_whatever_they_name(sdf):
    model = f"""
    <model name="m"><pose relative_to="post">0 0 1 0 0 0</pose>
      <frame name="tip" attached_to="arm"><pose>1 0 0 0 0 0</pose></frame>
      <link name="base"><pose>0 1 0 0 0 0</pose></link>
      <link name="arm"><pose relative_to="elbow">2 0 0 0 0 0</pose></link>
      <joint name="elbow" type="fixed"><parent>world</parent><child>base</child><pose degrees="true">0 0 0 0 0 90</pose></joint>
      <link name="hand"><pose relative_to="tip"/>{BOX}</link>
    </model>
    <frame name="post"><pose>10 0 0 0 0 0</pose></frame>"""
    (shape,) = read_sdf(sdf(world(model))).collisions
    assert_at(shape.pose, (10, 1 + 2 + 1, 1), 90)


def test_frames_of_nested_models_are_named_by_their_scopes(sdf):
    model = f"""
    <model name="outer">
      <model name="inner"><pose>0 0 5 0 0 0</pose><link name="l"><pose>1 0 0 0 0 0</pose>{BOX}</link></model>
      <link name="o"><pose relative_to="inner::l">0 2 0 0 0 0</pose>{BOX}</link>
    </model>"""
    shapes = {shape.name: shape for shape in read_sdf(sdf(world(model))).collisions}
    assert set(shapes) == {"outer::o::hull", "outer::inner::l::hull"}
    assert_at(shapes["outer::inner::l::hull"].pose, (1, 0, 5))
    assert_at(shapes["outer::o::hull"].pose, (1, 2, 5))


def test_a_placement_frame_says_what_of_a_model_is_placed(sdf):
    model = f'<model name="m" placement_frame="l"><pose>5 0 0 0 0 0</pose><link name="l"><pose>0 0 2 0 0 0</pose>{BOX}</link></model>'
    (shape,) = read_sdf(sdf(world(model))).collisions
    assert_at(shape.pose, (5, 0, 0))


def test_quaternions_are_x_y_z_w_and_need_not_be_of_length_one(sdf):
    model = f'<model name="m"><pose rotation_format="quat_xyzw">1 2 3 0 0 2 2</pose><link name="l">{BOX}</link></model>'
    (shape,) = read_sdf(sdf(world(model))).collisions
    assert_at(shape.pose, (1, 2, 3), 90)


def test_before_sdf_1_7_a_poses_frame_has_another_attribute(sdf):
    model = f'<model name="m"><link name="a"><pose>1 0 0 0 0 0</pose></link><link name="b"><pose frame="a">0 1 0 0 0 0</pose>{BOX}</link></model>'
    assert_at(read_sdf(sdf(world(model), version="1.6")).collisions[0].pose, (1, 1, 0))
    assert_at(read_sdf(sdf(world(model), version="1.7")).collisions[0].pose, (0, 1, 0))


def test_a_long_row_of_frames_is_followed(sdf):
    row = "".join(f'<frame name="f{i}" attached_to="f{i - 1}"><pose>1 0 0 0 0 0</pose></frame>' for i in range(1, 5000))
    model = f'<model name="m"><frame name="f0"/>{row}<link name="l"><pose relative_to="f4999"/>{BOX}</link></model>'
    assert_at(read_sdf(sdf(world(model))).collisions[0].pose, (4999, 0, 0))


def test_a_long_circle_of_frames_is_reported_in_short(sdf):
    row = "".join(f'<frame name="f{i}" attached_to="f{(i + 1) % 5000}"/>' for i in range(5000))
    (fault,) = faults_of(sdf(world(f'<model name="m">{row}<link name="l"><pose relative_to="f7"/>{BOX}</link></model>')))
    assert "in a circle, got f7 -> f8 -> " in fault
    assert fault.endswith("(4,991 more)")


# -- lidars -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lidar", "gpu_lidar", "ray", "gpu_ray"])
def test_a_lidar_has_its_figures_its_pose_and_gazebos_names(sdf, kind):
    (lidar,) = read_sdf(sdf(world(f'<model name="m"><pose>1 0 0 0 0 0</pose><link name="l">{LIDAR.format(kind=kind)}</link></model>'))).lidars
    assert (lidar.name, lidar.kind, lidar.rays, lidar.period_ms) == ("m::l::scanner", kind, 720, 33)
    assert (lidar.horizontal.samples, lidar.horizontal.min_rad, lidar.horizontal.max_rad) == (180, -1.5, 1.5)
    assert (lidar.vertical.samples, lidar.range_min_m, lidar.range_max_m) == (4, 0.1, 30.0)
    assert (lidar.noise.mean_m, lidar.noise.stddev_m) == (0.01, 0.02)
    assert lidar.scoped_topic == "/world/bench/model/m/link/l/sensor/scanner/lidar"
    assert_at(lidar.pose, (1, 0, 0.5))


@pytest.mark.parametrize(("kind", "rays"), [("gpu_lidar", (90, 1)), ("gpu_ray", (90, 1)), ("lidar", (180, 4))])
def test_a_resolution_multiplies_the_rays_of_gpu_lidars(sdf, kind, rays):
    text = LIDAR.format(kind=kind).replace("<samples>180</samples>", "<samples>180</samples><resolution>0.501</resolution>")
    text = text.replace("<samples>4</samples>", "<samples>4</samples><resolution>0.1</resolution>")
    (lidar,) = read_sdf(sdf(world(f'<model name="m"><link name="l">{text}</link></model>'))).lidars
    assert (lidar.horizontal.samples, lidar.vertical.samples) == rays


@pytest.mark.parametrize(
    ("topic", "published"),
    [("my robot/scan", "my_robot/scan"), ("~/a//b@c:=d", "/abcd"), ("", "/world/my_world/model/my_bot/link/l/sensor/scanner/lidar")],
)
def test_a_topic_is_made_valid_as_in_gazebo(sdf, topic, published):
    text = LIDAR.format(kind="lidar").replace("<lidar>", f"<topic>{topic}</topic><lidar>", 1)
    scene = read_sdf(sdf(f'<world name="my world"><model name="my bot"><link name="l">{text}</link></model></world>'))
    assert scene.lidars[0].scoped_topic == published


URDF = """<?xml version="1.0"?><robot name="robo"><link name="base"><collision><origin xyz="3 0 0.5"/><geometry><box size="1 2 3"/></geometry></collision></link>
<joint name="j" type="revolute"><origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/><parent link="base"/><child link="arm"/></joint>
<link name="arm"><collision name="c"><origin xyz="1 0 0"/><geometry><cylinder radius="0.1" length="2"/></geometry></collision>
<collision><geometry><mesh filename="package://robo/arm.stl" scale="1 1 2"/></geometry></collision></link>
<gazebo reference="arm">{lidar}</gazebo></robot>"""


def test_a_urdf_is_a_model_with_its_joints_at_zero(sdf, tmp_path):
    sdf("", "robo/arm.stl", whole=True)
    scene = read_sdf(sdf(URDF.format(lidar=LIDAR.format(kind="gpu_lidar")), "robot.urdf", whole=True))
    box, rod, mesh = scene.collisions
    assert [shape.name for shape in scene.collisions] == ["robo::base::base_collision", "robo::arm::c", "robo::arm::arm_collision"]
    assert (box.size_m, rod.length_m, mesh.file, mesh.scale) == ((1, 2, 3), 2.0, tmp_path / "robo/arm.stl", (1, 1, 2))
    assert_at(box.pose, (3, 0, 0.5))
    assert_at(rod.pose, (1, 1, 0), 90)
    assert_at(scene.lidars[0].pose, (1, 0, 0.5), 90)


def test_a_package_of_a_urdf_is_a_directory_above_it(sdf, tmp_path):
    sdf("", "ws/robo/meshes/my arm.stl", whole=True)
    text = URDF.format(lidar="").replace("robo/arm.stl", "robo/meshes/my%20arm.stl")
    scene = read_sdf(sdf(text, "ws/robo/urdf/robot.urdf", whole=True))
    assert scene.collisions[2].file == tmp_path / "ws/robo/meshes/my arm.stl"


def test_a_model_may_be_a_urdf(sdf):
    sdf(URDF.format(lidar=""), "robot/robot.urdf", whole=True)
    sdf('<model><sdf version="1.6">robot.urdf</sdf></model>', "robot/model.config", whole=True)
    scene = read_sdf(sdf(world("<include><uri>model://robot</uri><pose>10 0 0 0 0 0</pose></include>")))
    assert_at(scene.collisions[0].pose, (13, 0, 0.5))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<link name="base">', '<xacro:if/><link name="base">', "must be plain URDF, got macros: expand them first"),
        ('<child link="arm"/>', '<child link="leg"/>', '<joint> must join two links of the robot, each the child of one joint, got "base" and "leg"'),
        ('<parent link="base"/>', '<parent link="arm"/>', "frames must not be relative to each other in a circle"),
    ],
)
def test_a_urdf_that_is_no_tree_of_links_is_a_fault(sdf, old, new, message):
    assert message in faults_of(sdf(URDF.format(lidar="").replace(old, new), "robot.urdf", whole=True))[0]


def test_omitted_elements_of_a_lidar_have_gazebos_defaults(sdf):
    sensor = '<sensor name="s" type="ray"><ray><scan><horizontal/></scan><range><max>10</max></range></ray></sensor>'
    (lidar,) = read_sdf(sdf(world(f'<model name="m"><link name="l">{sensor}</link></model>'))).lidars
    assert (lidar.horizontal.samples, lidar.vertical.samples, lidar.horizontal.min_rad, lidar.horizontal.max_rad) == (640, 1, 0.0, 0.0)
    assert (lidar.range_min_m, lidar.noise, lidar.update_rate_hz, lidar.frame) == (0.0, None, 0.0, "")


@pytest.mark.parametrize(
    ("noise", "has_noise"),
    [
        ("<noise/>", False),
        ("<noise><stddev>0.1</stddev></noise>", True),
        ("<noise><type>gaussian</type><mean>0.1</mean></noise>", True),
        ("<noise><bias_stddev>0.1</bias_stddev></noise>", False),
        ("<noise><bias_mean>0.1</bias_mean></noise>", True),
        ("<noise><type>none</type><stddev>0.1</stddev></noise>", False),
        ("<noise><type>gaussian_quantized</type><stddev>0.1</stddev></noise>", False),
    ],
)
def test_there_is_noise_where_gazebo_makes_some(sdf, noise, has_noise):
    text = LIDAR.format(kind="lidar").replace("<noise><mean>0.01</mean><stddev>0.02</stddev></noise>", noise)
    scene = read_sdf(sdf(world(f'<model name="m"><link name="l">{text}</link></model>')))
    assert (scene.lidars[0].noise is not None) == has_noise
    assert any("gaussian_quantized" in note for note in scene.unsupported) == ("quantized" in noise)


# -- files ------------------------------------------------------------------------------------------------------------------------------

CHAIR = f'<model name="chair"><pose>0 0 9 0 0 0</pose><link name="seat"><pose>0 0 1 0 0 0</pose>{BOX}</link></model>'
CONFIG = '<model><name>chair</name><sdf version="1.4">old.sdf</sdf><sdf version="1.7">model.sdf</sdf><sdf version="9.9">new.sdf</sdf></model>'


def test_a_model_is_included_from_the_search_path_with_the_newest_version_that_is_read(sdf, tmp_path):
    sdf(CHAIR, "models/chair/model.sdf")
    sdf(CONFIG, "models/chair/model.config", whole=True)
    includes = "<include><uri>model://chair</uri></include><include><uri>model://chair</uri><name>second</name><pose>3 0 0 0 0 0</pose></include>"
    shapes = {shape.name: shape for shape in read_sdf(sdf(world(includes)), [tmp_path / "models"]).collisions}
    assert_at(shapes["chair::seat::hull"].pose, (0, 0, 10))
    assert_at(shapes["second::seat::hull"].pose, (3, 0, 1))


def test_models_are_found_by_the_variables_that_gazebo_reads(sdf, tmp_path, monkeypatch):
    sdf(CHAIR, "models/chair/model.sdf")
    sdf(CONFIG, "models/chair/model.config", whole=True)
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", f"/nowhere:{tmp_path / 'models'}")
    assert len(read_sdf(sdf(world("<include><uri>model://chair</uri></include>"))).collisions) == 1


def test_a_file_can_be_included_by_its_path(sdf):
    sdf(CHAIR, "things/chair.sdf")
    assert len(read_sdf(sdf(world("<include><uri>things/chair.sdf</uri></include>"))).collisions) == 1


def test_a_relative_file_uri_is_looked_for_on_the_search_path_too(sdf, tmp_path):
    sdf(CHAIR, "models/chair/model.sdf")
    sdf(CONFIG, "models/chair/model.config", whole=True)
    assert len(read_sdf(sdf(world("<include><uri>file://chair</uri></include>")), [tmp_path / "models"]).collisions) == 1


def test_a_model_that_is_merged_gives_its_parent_what_it_holds(sdf):
    sdf(
        f'<model name="part"><link name="a"><pose>0 0 1 0 0 0</pose>{BOX}</link><model name="n"><link name="b">{BOX}</link></model></model>',
        "part.sdf",
    )
    own = f'<link name="own"><pose relative_to="a">0 1 0 0 0 0</pose>{BOX}</link>'
    body = f'<model name="m"><include merge="true"><uri>part.sdf</uri><pose>2 0 0 0 0 0</pose></include>{own}</model>'
    shapes = {shape.name: shape for shape in read_sdf(sdf(world(body))).collisions}
    assert set(shapes) == {"m::own::hull", "m::a::hull", "m::n::b::hull"}
    assert_at(shapes["m::own::hull"].pose, (2, 1, 1))
    assert_at(shapes["m::a::hull"].pose, (2, 0, 1))
    assert_at(shapes["m::n::b::hull"].pose, (2, 0, 0))


def test_a_model_that_is_merged_must_bring_no_name_that_is_there(sdf):
    sdf('<model name="part"><link name="a"/></model>', "part.sdf")
    body = '<model name="m"><include merge="true"><uri>part.sdf</uri></include><include merge="1"><uri>part.sdf</uri><name>q</name></include></model>'
    (fault,) = faults_of(sdf(world(body)))
    assert 'names of a model that is merged must not be there already, got "a"' in fault


def test_a_model_that_is_merged_into_a_world_has_no_links(sdf):
    sdf('<model name="part">\n<link name="a"/></model>', "part.sdf")
    (fault,) = faults_of(sdf(world('<include merge="true"><uri>part.sdf</uri></include>')))
    assert "part.sdf:3: a model that is merged into a world must have no <link>" in fault


def test_a_model_that_includes_two_of_its_kind_at_each_level_is_refused(sdf):
    for level in range(20):
        two = "".join(f"<include><uri>l{level + 1}.sdf</uri><name>{name}</name></include>" for name in "ab")
        sdf(f'<model name="m">{two}</model>', f"l{level}.sdf")
    sdf('<model name="m"/>', "l20.sdf")
    (fault,) = faults_of(sdf(world("<include><uri>l0.sdf</uri></include>")))
    assert "files included must be at most 10,000, got 10,001" in fault


def test_a_large_file_must_not_be_included_again_and_again(sdf):
    sdf(f'<model name="m">{"<a/>" * 9_997}</model>', "large.sdf")
    includes = "".join(f"<include><uri>large.sdf</uri><name>n{i}</name></include>" for i in range(101))
    (fault,) = faults_of(sdf(world(includes)))
    assert "elements of all files that are included must be at most 1,000,000, got 1,009,899" in fault


def test_files_that_include_one_another_without_end_are_refused(sdf):
    for level in range(250):
        sdf(f'<model name="m"><include><uri>l{level + 1}.sdf</uri></include></model>', f"l{level}.sdf")
    (fault,) = faults_of(sdf(world("<include><uri>l0.sdf</uri></include>")))
    assert "l199.sdf:3: nesting of files must be at most 200, got 201" in fault


def test_files_that_include_each_other_are_a_fault_with_the_circle(sdf):
    sdf('<model name="a"><include><uri>b.sdf</uri></include></model>', "a.sdf")
    sdf('<model name="b">\n<include><uri>a.sdf</uri></include></model>', "b.sdf")
    (fault,) = faults_of(sdf(world("<include><uri>a.sdf</uri></include>")))
    assert "b.sdf:4: files must not include each other in a circle, got " in fault
    assert fault.count("a.sdf") == 2


# -- what is wrong ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<include/>", "world.sdf:4: <include> must have a <uri>"),
        ("<include><uri>model://nothing</uri></include>", "world.sdf:4: <uri> must be an existing file, got model://nothing, searched at "),
        ("<include><uri>https://fuel.gazebosim.org/x</uri></include>", "world.sdf:4: <uri> must be on this host (download the model"),
        ('<model name="m"><pose>0 0 nan 0 0 0</pose></model>', 'world.sdf:4: <pose> must be a finite number, got "nan"'),
        ('<model name="m"><pose>0 0 0</pose></model>', 'world.sdf:4: <pose> must be 6 numbers, got "0 0 0"'),
        ('<model name="m"><pose relative_to="x">0 0 0 0 0 0</pose></model>', 'relative_to must name a frame of the same model (m), got "x"'),
        ('<model name="m"/><model name="m"/>', 'name of a model must be given and no other\'s beside it, got "m"'),
        (
            '<model name="m"><link name="a"><pose relative_to="b"/>' + BOX + '</link><link name="b"><pose relative_to="a"/></link></model>',
            "frames must not be relative to each other in a circle, got a -> b -> a",
        ),
        (
            '<model name="m"><link name="l"><collision name="c"><geometry><box><size>1 0 1</size></box></geometry></collision></link></model>',
            "<size> of a <box> must be at least",
        ),
        ('<model name="m"><pose>0 0 1e9 0 0 0</pose></model>', "<pose> must have coordinates of at most 100,000,000 m, got "),
        ('<model name="m"><pose degrees="false">0 0 0 0 0 1e308</pose></model>', "<pose> must have finite angles, got "),
        ('<model name="m"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose></model>', "<pose> must have a quaternion that is not zero, got "),
        (
            '<model name="m"><link name="l"><collision name="c"><geometry><sphere><radius>1e300</radius></sphere></geometry></collision></link></model>',
            "<radius> of a <sphere> must be at most 100,000,000 m, got 1e+300",
        ),
        (
            '<model name="m"><link name="l"><collision name="c"><geometry><plane><normal>1e-200 0 0</normal></plane></geometry></collision></link></model>',
            "<normal> must not be zero, nor without end, got 1e-200 0 0",
        ),
        ('<model name="m"><pose>1_0 0 0 0 0 0</pose></model>', '<pose> must be a number, got "1_0"'),
        ("<include><uri>file://%00</uri></include>", "world.sdf:4: <uri> must be an existing file, got file://%00"),
        (f"<include><uri>{'x' * 5000}</uri></include>", "... (5,000 characters), searched at "),
    ],
)
def test_a_fault_is_reported_with_file_and_line(sdf, body, message):
    assert any(message in fault for fault in faults_of(sdf(world(body))))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<samples>180</samples>", "<samples>-3</samples>", '<samples> must be a whole number of 0 or more, got "-3"'),
        ("<samples>180</samples>", "<samples>640.7</samples>", '<samples> must be a whole number of 0 or more, got "640.7"'),
        ("<samples>180</samples>", f"<samples>{'9' * 5000}</samples>", "<samples> must have at most 15 digits, got "),
        ("<samples>180</samples>", "<samples>10000000</samples>", "rays of a lidar's scan must be at most 4,000,000, got 40,000,000"),
        ("<samples>180</samples>", "<samples>0</samples>", "samples must be at least 1, got 0 and 4"),
        ("<max>30</max>", "<max>0.1</max>", "<min> must be 0 to below <max>, got 0.1 and 0.1"),
        ("<max_angle>1.5</max_angle>", "<max_angle>-2</max_angle>", "<max_angle> must not be below <min_angle>"),
        ("<update_rate>30</update_rate>", "<update_rate>-1</update_rate>", "<update_rate> must be 0 to 1000, got -1"),
        ("<range><min>0.1</min><max>30</max><resolution>0.01</resolution></range>", "", "<lidar> must have a <range>"),
    ],
)
def test_a_lidar_that_gazebo_would_refuse_is_a_fault(sdf, old, new, message):
    text = LIDAR.format(kind="lidar")
    assert old in text
    assert any(message in fault for fault in faults_of(sdf(world(f'<model name="m"><link name="l">{text.replace(old, new)}</link></model>'))))


def test_all_faults_are_reported_at_once(sdf):
    assert len(faults_of(sdf(world('<include/>\n<model name="m"><pose>x</pose></model>\n<model/>')))) == 3


BOMB = '<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY c "&a;&a;&a;&a;">]><sdf version="1.9"><world name="&c;"/></sdf>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be XML: no element found"),
        ("<?xml version='1.0' encoding='x-none'?><sdf/>", "must have a supported encoding, such as UTF-8: unknown encoding: x-none"),
        ("not XML", "must be XML: "),
        ("<sdf version='1.9'><world name='w'>", "must be XML: no element found"),
        (BOMB, "must have no document type"),
        ("<mujoco/>", "must be an SDF file, which begins with <sdf>, or URDF with <robot>, got <mujoco>"),
        ("<sdf version='1.3'/>", 'version must be 1.4 to 1.12, got "1.3"'),
        ("<sdf version='1.9'><light name='l'/></sdf>", "must hold a <world> or a <model>, got light"),
        ("<sdf version='1.9'>" + "<model>" * 300 + "</model>" * 300 + "</sdf>", "nesting of elements must be at most 200, got 201"),
    ],
)
def test_a_file_that_is_not_sdf_is_refused_with_the_reason(sdf, text, message):
    (fault,) = faults_of(sdf(text, whole=True))
    assert message in fault
    assert "world.sdf" in fault


def test_an_argument_that_is_not_a_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("pipe", "must be a file, got a pipe or a device"), (".", "must be a file, got a directory"), ("x", "No such file")):
        with pytest.raises(AssetError, match=message):
            read_sdf(tmp_path / name)


@pytest.mark.parametrize(
    "head",
    [
        "<!-- run with --verbose --->\n<!---->",
        "\n <?xml version='1.0'?>",
        "<!--<sdf>\n-- <!-- -->",
    ],
)
def test_non_xml_features_of_gazebos_worlds_are_read_with_correct_lines(sdf, head):
    (fault,) = faults_of(sdf(f"{head}\n<sdf version='1.9'>\n<world name='w'><!-- a\n--b --><include/></world></sdf>", whole=True))
    assert f"world.sdf:{head.count(chr(10)) + 4}: <include> must have a <uri>" in fault


def test_a_comment_within_a_literal_is_text(sdf):
    model = '<model name="m"><include><uri><![CDATA[<!--]]></uri></include><!-- --><include><uri>--></uri></include></model>'
    assert [fault.split("got ")[1].split(",")[0] for fault in faults_of(sdf(world(model)))] == ["<!--", "-->"]


def test_comments_that_never_end_are_read_once(sdf):
    (fault,) = faults_of(sdf("<sdf>" + "<!--" * 1_000_000, whole=True))
    assert "world.sdf:1: must be XML: " in fault


def test_unsupported_parts_are_listed_unless_no_lidar_sees_them(sdf):
    body = f"""
    <light name="sun" type="directional"/><physics type="ode"/><plugin name="p" filename="f"/>
    <model name="m"><plugin name="drive" filename="f"/>
      <link name="l"><inertial><mass>1</mass></inertial>{BOX}<sensor name="eye" type="camera"/>
      <collision name="odd"><geometry><image/></geometry></collision><visual name="bare"/></link>
    </model>"""
    scene = read_sdf(sdf(world(body)))
    said = [note.split(": ", 1)[1] for note in scene.unsupported]
    assert len(scene.collisions) == 1
    assert said == [
        "plug-ins do not run: p (line 5), drive (line 6)",
        "<image> of m::l::odd is not supported",
        "<visual> has no <geometry>: m::l::bare is left out",
        'sensor m::l::eye of type "camera" is not supported',
    ]
    assert all(note.split(":")[0].endswith("world.sdf") for note in scene.unsupported)
    assert all(note.split(":")[1].isdigit() for note in scene.unsupported[1:])


def test_the_plug_ins_of_a_file_are_reported_once_however_often_it_is_included(sdf, tmp_path):
    sdf('<model name="a"><plugin filename="lib.so"/><link name="l"/></model>', "a.sdf")
    includes = "".join(f'<include><uri>a.sdf</uri><name>{name}</name><plugin name="own" filename="f"/></include>' for name in "xyz")
    assert read_sdf(sdf(world(includes))).unsupported == (
        f"{tmp_path / 'world.sdf'}: plug-ins do not run: own (line 4)",
        f"{tmp_path / 'a.sdf'}: plug-ins do not run: lib.so (line 3)",
    )


def test_of_very_many_plug_ins_the_first_are_named(sdf):
    (note,) = read_sdf(sdf(world('<plugin name="p"/>' * 3 + '\n<plugin name="p"/>' * 500))).unsupported
    assert note.endswith("p (line 103), ... (401 more)")


def test_a_planes_normal_is_given_length_one(sdf):
    geometry = "<geometry><plane><normal>0 3e200 4e200</normal></plane></geometry>"
    (shape,) = read_sdf(sdf(world(f'<model name="m"><link name="l"><collision name="c">{geometry}</collision></link></model>'))).collisions
    assert shape.normal == pytest.approx((0, 0.6, 0.8))


@pytest.mark.parametrize(
    ("geometry", "kind"),
    [
        ("<sphere><radius>2</radius></sphere>", "sphere"),
        ("<cylinder><radius>2</radius><length>3</length></cylinder>", "cylinder"),
        ("<capsule><radius>2</radius><length>3</length></capsule>", "capsule"),
        ("<cone><radius>2</radius><length>3</length></cone>", "cone"),
        ("<ellipsoid><radii>1 2 3</radii></ellipsoid>", "ellipsoid"),
        ("<plane><normal>0 1 0</normal><size>5 6</size></plane>", "plane"),
    ],
)
def test_every_shape_is_read(sdf, geometry, kind):
    (shape,) = read_sdf(
        sdf(world(f'<model name="m"><link name="l"><visual name="v"><geometry>{geometry}</geometry></visual></link></model>'))
    ).visuals
    assert shape.kind == kind
