"""Whole scenes: what rays find where the rig put it."""

import numpy as np
import pytest
import trimesh
from PIL import Image

from hilsim.errors import AssetError, ConfigError
from hilsim.world.assets.scenes import scene_objects
from hilsim.world.assets.tracks import motion_track
from hilsim.world.geometry.tracks import track_pose
from hilsim.world.render.cpu import cast_rays
from hilsim.world.scene.object_specs import MeshSpec, MotionSpec, TerrainSpec, WaypointSpec
from hilsim.world.scene.shape_specs import BoxSpec, CylinderSpec, PlaneSpec, SphereSpec
from hilsim.world.scene.specs import MaterialSpec, SceneSpec
from tests.unit.assets.worlds import build_scene

S = 1_000_000_000


def cast(world, origin_m, direction, time_ns=0):
    """(range, reflectivity, object) of one ray; None for a miss."""
    d = np.array([direction], dtype=np.float64)
    d /= np.linalg.norm(d)
    range_m, instance, triangle = np.empty(1, np.float32), np.empty(1, np.int32), np.empty(1, np.int32)
    cast_rays(world, np.array([origin_m], dtype=np.float64), d.astype(np.float32), np.array([time_ns]), 500.0, range_m, instance, triangle)
    if instance[0] < 0:
        return None
    owner = world.instance_object[instance[0]] if world.instance_object[instance[0]] >= 0 else world.owner[triangle[0]]
    return float(range_m[0]), int(world.reflectivity[world.material[triangle[0]]]), int(owner)


def way(*points, **rest):
    return MotionSpec(waypoints=tuple(WaypointSpec(time_s=t, position_m=p, rotation_deg=(0.0, 0.0, yaw)) for t, p, yaw in points), **rest)


def test_primitives_are_where_the_rig_says_with_their_materials(tmp_path):
    spec = SceneSpec(
        plane=(PlaneSpec(size_m=(40.0, 40.0), material="asphalt"),),
        box=(BoxSpec(size_m=(2.0, 2.0, 2.0), position_m=(10.0, 0.0, 1.0), material="brick", label=3),),
        cylinder=(CylinderSpec(radius_m=0.5, height_m=4.0, position_m=(0.0, 10.0, 2.0)),),
        sphere=(SphereSpec(radius_m=1.0, position_m=(-10.0, 0.0, 1.0), material="mirror"),),
        materials={"mirror": MaterialSpec(reflectivity=255)},
    )
    world, notes = build_scene(spec, tmp_path)
    eye = (0.0, 0.0, 1.0)
    assert cast(world, eye, (0.0, 0.0, -1.0)) == (pytest.approx(1.0, abs=1e-3), 17, 0)
    assert cast(world, eye, (1.0, 0.0, 0.0)) == (pytest.approx(9.0, abs=1e-3), 45, 1)
    assert cast(world, eye, (0.0, 1.0, 0.0)) == (pytest.approx(9.5, abs=2e-3), 35, 2)
    assert cast(world, eye, (-1.0, 0.0, 0.0)) == (pytest.approx(9.0, abs=2e-3), 255, 3)
    assert cast(world, eye, (0.0, -1.0, 0.0)) is None
    assert world.object_label.tolist() == [0, 3, 0, 0]
    assert notes == ()


def test_a_rotated_box_turns_about_its_own_middle(tmp_path):
    world, _ = build_scene(SceneSpec(box=(BoxSpec(size_m=(4.0, 1.0, 1.0), position_m=(10.0, 0.0, 0.0), rotation_deg=(0.0, 0.0, 90.0)),)), tmp_path)
    assert cast(world, (0.0, 0.1, 0.1), (1.0, 0.0, 0.0))[0] == pytest.approx(9.5, abs=1e-3)
    assert cast(world, (0.0, 1.9, 0.1), (1.0, 0.0, 0.0))[0] == pytest.approx(9.5, abs=1e-3)


def test_the_scene_may_lie_at_utm_coordinates(tmp_path):
    origin = (691000.25, 5334000.5, 520.0)
    world, _ = build_scene(SceneSpec(origin_m=origin, box=(BoxSpec(size_m=(2.0, 2.0, 2.0), position_m=(10.0, 0.0, 0.0)),)), tmp_path)
    assert cast(world, origin, (1.0, 0.0, 0.0))[0] == pytest.approx(9.0, abs=1e-3)


def test_a_moving_box_is_where_its_waypoints_say_and_turns_with_them(tmp_path):
    motion = way((0.0, (0.0, 0.0, 0.0), 0.0), (10.0, (20.0, 0.0, 0.0), 90.0))
    world, _ = build_scene(SceneSpec(box=(BoxSpec(size_m=(1.0, 1.0, 1.0), position_m=(5.0, 0.0, 0.0), motion=motion),)), tmp_path)
    assert cast(world, (0.0, 0.1, 0.1), (1.0, 0.0, 0.0))[0] == pytest.approx(4.5, abs=1e-3)
    assert cast(world, (20.1, -10.0, 0.1), (0.0, 1.0, 0.0), 10 * S)[0] == pytest.approx(14.5, abs=1e-3)
    assert cast(world, (20.1, -10.0, 0.1), (0.0, 1.0, 0.0), 500 * S)[0] == pytest.approx(14.5, abs=1e-3)


def test_moving_objects_move_relative_to_the_scenes_origin(tmp_path):
    motion = way((0.0, (10.0, 0.0, 0.0), 0.0), (10.0, (20.0, 0.0, 0.0), 0.0))
    world, _ = build_scene(SceneSpec(origin_m=(0.0, 1000.0, 0.0), box=(BoxSpec(size_m=(1.0, 1.0, 1.0), motion=motion),)), tmp_path)
    assert cast(world, (0.0, 1000.1, 0.1), (1.0, 0.0, 0.0), 5 * S)[0] == pytest.approx(14.5, abs=1e-3)


@pytest.mark.parametrize("interpolation", ["linear", "smooth"])
def test_a_loop_comes_round_without_a_jump(interpolation):
    motion = way((0.0, (0.0, 0.0, 0.0), 0.0), (2.0, (5.0, 0.0, 0.0), 180.0), (4.0, (0.0, 0.0, 0.0), 360.0), loop=True, interpolation=interpolation)
    track = motion_track(motion, (100.0, 0.0, 0.0))
    position_m, orientation = np.empty(3), np.empty(4)
    seen = []
    for time_ns in (4 * S - 1000, 4 * S, 4 * S + 1000, 400 * S):
        track_pose(track, time_ns, position_m, orientation)
        seen.append(position_m.copy())
    np.testing.assert_allclose(seen, [[100.0, 0.0, 0.0]] * 4, atol=1e-5)


@pytest.fixture
def cube(tmp_path):
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / "cube.ply")


@pytest.mark.usefixtures("cube")
def test_a_mesh_named_twice_is_read_once_and_shared_by_movers(tmp_path):
    motions = [way((0.0, (x, 0.0, 0.0), 0.0), (1.0, (x, 1.0, 0.0), 0.0)) for x in (5.0, 10.0)]
    objects, _ = scene_objects(SceneSpec(mesh=tuple(MeshSpec(file="cube.ply", motion=motion) for motion in motions)), tmp_path)
    assert objects[0].mesh is objects[1].mesh


@pytest.mark.usefixtures("cube")
def test_a_mesh_is_scaled_placed_and_named(tmp_path):
    spec = SceneSpec(
        mesh=(MeshSpec(file="cube.ply", scale=2.0, position_m=(10.0, 0.0, 0.0), material="metal", name="crate"), MeshSpec(file="cube.ply"))
    )
    objects, _ = scene_objects(spec, tmp_path)
    assert [thing.name for thing in objects] == ["crate", "mesh[1]"]
    world, _ = build_scene(spec, tmp_path)
    assert cast(world, (2.0, 0.1, 0.1), (1.0, 0.0, 0.0)) == (pytest.approx(7.0, abs=1e-3), 40, 0)


def test_terrain_is_ground_under_the_rays(tmp_path):
    slope = np.broadcast_to(np.arange(0, 1100, 100, dtype=np.uint16), (11, 11))
    Image.fromarray(slope.copy()).save(tmp_path / "slope.png")
    spec = SceneSpec(terrain=(TerrainSpec(file="slope.png", size_m=(100.0, 100.0), scale_m=0.01, offset_m=0.0, position_m=(-50.0, -50.0, 2.0)),))
    world, _ = build_scene(spec, tmp_path)
    assert cast(world, (0.0, 13.0, 50.0), (0.0, 0.0, -1.0)) == (pytest.approx(50.0 - 2.0 - 5.0, abs=1e-3), 50, 0)
    assert cast(world, (25.0, 13.0, 50.0), (0.0, 0.0, -1.0))[0] == pytest.approx(50.0 - 2.0 - 7.5, abs=1e-3)
    assert cast(world, (51.0, 13.0, 50.0), (0.0, 0.0, -1.0)) is None


def test_objects_join_the_street(tmp_path):
    alone, _ = scene_objects(SceneSpec(generator="street"), tmp_path)
    joined, _ = scene_objects(SceneSpec(generator="street", box=(BoxSpec(size_m=(1.0, 1.0, 1.0)),)), tmp_path)
    assert len(joined) == len(alone) + 1
    assert joined[-1].name == "box[0]"


def test_every_broken_file_is_named_at_once(tmp_path):
    (tmp_path / "bad.obj").write_text("f 1 2 3\n")
    spec = SceneSpec(
        mesh=(MeshSpec(file="gone.glb"), MeshSpec(file="bad.obj"), MeshSpec(file="gone.glb", scale=2.0)), terrain=(TerrainSpec(file="gone.tif"),)
    )
    with pytest.raises(AssetError) as caught:
        build_scene(spec, tmp_path)
    assert str(caught.value).splitlines() == [
        f"{tmp_path / 'gone.glb'}: no such file (scene.mesh[0])",
        f"{tmp_path / 'bad.obj'}: line 1: a face must name vertices 1 to 0 (those before it), got 1 (scene.mesh[1])",
        f"{tmp_path / 'gone.tif'}: no such file (scene.terrain[0])",
    ]


def test_an_sdf_world_that_shows_nothing_is_refused_with_what_is_left_out(tmp_path):
    shapes = '<link name="l"><visual name="v"><geometry><box/></geometry></visual><collision name="c"/></link>'
    (tmp_path / "w.sdf").write_text(f'<sdf version="1.9"><world name="w"><model name="m">{shapes}</model></world></sdf>')
    with pytest.raises(ConfigError) as caught:
        scene_objects(SceneSpec(sdf="w.sdf"), tmp_path)
    assert str(caught.value).split("\n") == [
        f'{tmp_path / "w.sdf"}: must contain a shape that rays hit (sdf_sees = "collisions"), got 0 collisions and 1 visuals',
        f"{tmp_path / 'w.sdf'}:1: <collision> has no <geometry>: m::l::c is left out",
    ]


def test_an_empty_scene_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="scene must have a generator, an object or a background, got none"):
        build_scene(SceneSpec(), tmp_path)


def test_notes_of_files_come_back(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl Odd\nf 1 2 3\n")
    _, notes = build_scene(SceneSpec(mesh=(MeshSpec(file="a.obj"),)), tmp_path)
    assert notes == (f'{tmp_path / "a.obj"}: no material of the rig is assigned to "Odd"; "concrete" is used',)
