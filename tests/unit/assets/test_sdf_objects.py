"""Shapes of an SDF file as objects of a scene, and what is left out."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hilsim.errors import AssetError
from hilsim.world.assets.sdf_carriages import sdf_carriages
from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import track_state
from hilsim.world.scene.object_specs import MotionSpec, SdfMotionSpec, WaypointSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS, SceneSpec
from hilsim.world.sdf.reading import read_sdf
from tests.meshes import areas_m2


@pytest.fixture
def scene(tmp_path):
    def read(*geometries):
        shapes = "\n".join(f'<collision name="c{i}"><geometry>{geometry}</geometry></collision>' for i, geometry in enumerate(geometries))
        path = tmp_path / "world.sdf"
        path.write_text(f'<sdf version="1.9"><world name="w"><model name="m"><link name="l">\n{shapes}\n</link></model></world></sdf>')
        return read_sdf(path)

    return read


def polyline(points, height):
    return f"<polyline>{''.join(f'<point>{x} {y}</point>' for x, y in points)}<height>{height}</height></polyline>"


SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4)]


@pytest.mark.parametrize(
    ("geometry", "area_m2"),
    [
        (polyline(SQUARE, 2), 2 * 16 + 16 * 2),
        (polyline([*SQUARE, SQUARE[0]], 2), 2 * 16 + 16 * 2),
        (polyline([(0, 0), (4, 0), (4, 1), (1, 1), (1, 4), (0, 4)], 3), 2 * 7 + 16 * 3),
        (
            polyline(SQUARE, 2) + polyline([(1, 1), (1, 2), (2, 2), (2, 1)], 9) + polyline([(6, 0), (7, 0), (7, 1)], 9),
            2 * 15.5 + (16 + 4 + 2 + 2**0.5) * 2,
        ),
    ],
    ids=["square", "closed", "concave", "hole and island"],
)
def test_polylines_are_prisms_on_the_ground_with_holes_where_they_are_nested(scene, geometry, area_m2):
    ((thing,), _) = sdf_objects(scene(geometry), BUILT_IN_MATERIALS)
    assert areas_m2(thing.mesh).sum() == pytest.approx(area_m2)
    assert (thing.mesh.vertices_m[:, 2].min(), thing.mesh.vertices_m[:, 2].max()) == (0.0, 3.0 if "3</height>" in geometry else 2.0)


def test_a_polyline_of_two_points_is_a_fault(scene):
    with pytest.raises(AssetError, match=r"world\.sdf:2: <polyline> must have 3 to 10,000 points within 100,000,000 m, got 2"):
        scene(polyline(SQUARE[:2], 2))


def test_a_mesh_of_a_format_that_is_not_supported_is_left_out_by_name_and_line(scene, tmp_path):
    (tmp_path / "chair.FBX").write_text("Kaydara")
    objects, notes = sdf_objects(scene("<box><size>1 1 1</size></box>", "<mesh><uri>chair.FBX</uri></mesh>"), BUILT_IN_MATERIALS)
    assert [thing.name for thing in objects] == ["m::l::c0"]
    (note,) = notes
    assert note.startswith(f'{tmp_path}/world.sdf:3: a mesh of format ".FBX" is not supported (.obj, .ply, .stl, .dae, .gltf, .glb): ')
    assert note.endswith(f": m::l::c1 is left out, {tmp_path}/chair.FBX")


def test_a_missing_mesh_of_a_format_that_is_left_out_anyway_is_no_fault(scene):
    objects, (note,) = sdf_objects(scene("<box><size>1 1 1</size></box>", "<mesh><uri>model://nowhere/chair.fbx</uri></mesh>"), BUILT_IN_MATERIALS)
    assert [thing.name for thing in objects] == ["m::l::c0"]
    assert 'world.sdf:3: a mesh of format ".fbx" is not supported' in note
    assert note.endswith(": m::l::c1 is left out, model://nowhere/chair.fbx")


def test_a_missing_mesh_is_a_fault_with_its_line_only_where_it_is_asked_for(tmp_path):
    shape = '<visual name="v"><geometry><mesh><uri>x.dae</uri></mesh></geometry></visual>'
    remote = '<visual name="r"><geometry><mesh><uri>https://fuel.gazebosim.org/x.obj</uri></mesh></geometry></visual>'
    ground = '<visual name="g"><geometry><heightmap><uri>x.png</uri></heightmap></geometry></visual>'
    box = '<collision name="c"><geometry><box/></geometry></collision>'
    path = tmp_path / "world.sdf"
    path.write_text(f'<sdf version="1.9"><model name="m"><link name="l">\n{box}\n{shape}\n{remote}\n{ground}</link></model></sdf>')
    objects, notes = sdf_objects(read_sdf(path), BUILT_IN_MATERIALS)
    assert ([thing.name for thing in objects], notes) == (["m::l::c"], ())
    with pytest.raises(AssetError) as caught:
        sdf_objects(read_sdf(path), BUILT_IN_MATERIALS, "visuals")
    first, second, third = str(caught.value).split("\n")
    assert first.startswith(f"{path}:3: <uri> must be an existing file, got x.dae, searched at ")
    assert second.startswith(f"{path}:4: <uri> must be on this host (download the model")
    assert third.startswith(f"{path}:5: <uri> must be an existing file, got x.png, searched at ")


def test_a_mesh_without_a_uri_is_a_fault_whether_it_is_asked_for_or_not(tmp_path):
    path = tmp_path / "world.sdf"
    path.write_text('<sdf version="1.9"><model name="m"><link name="l">\n<visual name="v"><geometry><mesh/></geometry></visual></link></model></sdf>')
    with pytest.raises(AssetError, match=r"world\.sdf:2: <mesh> must have a <uri>"):
        read_sdf(path)


def test_an_optimised_mesh_is_reported(scene, tmp_path):
    (tmp_path / "chair.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    read = scene('<mesh optimization="convex_hull"><uri>chair.obj</uri></mesh>', '<mesh optimization="none"><uri>chair.obj</uri></mesh>')
    assert [note.split("world.sdf:")[1] for note in read.unsupported] == [
        '2: optimization "convex_hull" of a <mesh> is not supported: it is as its file has it'
    ]


def test_a_mesh_that_is_broken_is_a_fault_with_the_files_line(scene, tmp_path):
    (tmp_path / "chair.obj").write_text("v 0 0\n")
    with pytest.raises(AssetError, match=r"world\.sdf:2: m::l::c0: .*chair\.obj"):
        sdf_objects(scene("<mesh><uri>chair.obj</uri></mesh>"), BUILT_IN_MATERIALS)


def test_a_mesh_that_is_scaled_beyond_all_bounds_is_a_fault(scene, tmp_path):
    (tmp_path / "chair.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(AssetError, match=r"world\.sdf:2: m::l::c0: .*vertex 1, scaled by \(1e\+300, 1\.0, 1\.0\), must have coordinates of at most"):
        sdf_objects(scene("<mesh><uri>chair.obj</uri><scale>1e300 1 1</scale></mesh>"), BUILT_IN_MATERIALS)


ACTOR = """<sdf version="1.9"><world name="w">
<actor name="walker"><pose>1 2 3 0 0 0</pose>{inner}</actor></world></sdf>"""
BODY = '<link name="body"><pose>0 0 1 0 0 0</pose><visual name="v"><geometry><box><size>1 1 1</size></box></geometry></visual></link>'
SCRIPT = """<script><loop>false</loop><trajectory id="0" type="walk"><waypoint><time>0</time><pose>0 0 0 0 0 0</pose></waypoint>
<waypoint><time>2</time><pose>4 0 0 0 0 1.5707963267948966</pose></waypoint></trajectory></script>"""


def actor_objects(tmp_path, inner, sees="visuals", **motion):
    (tmp_path / "world.sdf").write_text(ACTOR.format(inner=inner))
    scene = read_sdf(tmp_path / "world.sdf")
    carriages = sdf_carriages(scene, SceneSpec(sdf="world.sdf", **motion), tmp_path)
    return sdf_objects(scene, BUILT_IN_MATERIALS, sees, carriages=carriages)


@pytest.mark.parametrize(
    ("sees", "why"),
    [("collisions", "has no collision: lidars do not detect it"), ("visuals", "has neither a skin nor a visual: it is invisible")],
)
def test_an_actor_that_is_not_met_is_reported_by_name_and_line(tmp_path, sees, why):
    _, (note,) = actor_objects(tmp_path, "", sees)
    assert note.startswith(f"{tmp_path}/world.sdf:2: <actor> walker ")
    assert why in note


def corners(thing, time_s):
    position, turn = track_state(thing.placement, round(time_s * 1e9))
    return thing.mesh.vertices_m @ Rotation.from_quat(np.roll(turn, -1)).as_matrix().T + np.array(position)


def test_an_actors_visuals_go_where_it_goes(tmp_path):
    (thing,), notes = actor_objects(tmp_path, BODY + SCRIPT)
    assert (thing.name, notes) == ("walker::body::v", ())
    np.testing.assert_allclose(corners(thing, 0.0).min(axis=0), (0.5, 1.5, 3.5))
    np.testing.assert_allclose(corners(thing, 1.0).mean(axis=0), (3.0, 2.0, 4.0), atol=1e-9)
    np.testing.assert_allclose(corners(thing, 9.0).max(axis=0), (5.5, 2.5, 4.5), atol=1e-9)


def test_an_actor_without_a_script_is_where_it_is(tmp_path):
    (thing,), _ = actor_objects(tmp_path, BODY)
    assert thing.placement == Pose(position_m=(1.0, 2.0, 4.0))


def test_an_actors_skin_moves_as_a_whole_and_a_note_says_so(tmp_path):
    (tmp_path / "man.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 0 2\nf 1 2 3\n")
    (thing,), (note,) = actor_objects(tmp_path, f"<skin><filename>man.obj</filename><scale>0.5</scale></skin>{SCRIPT}")
    np.testing.assert_allclose(corners(thing, 2.0), [(5, 2, 3), (5, 2.5, 3), (5, 2, 4)], atol=1e-9)
    assert note == f"{tmp_path}/world.sdf:2: <actor> walker is moved as a whole: its limbs have the pose of {tmp_path}/man.obj"


CARTS = """<sdf version="1.9"><world name="w"><model name="cart"><pose>1 0 0 0 0 0</pose><link name="l"><pose>0 0 2 0 0 0</pose>
<collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision></link>
<model name="arm"><pose>0 1 0 0 0 0</pose><link name="l"><collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision></link></model>
</model><model name="cartridge"><link name="l"><collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision></link></model></world></sdf>"""


def carts(tmp_path, *motions, **scene_spec):
    (tmp_path / "world.sdf").write_text(CARTS)
    scene, spec = read_sdf(tmp_path / "world.sdf"), SceneSpec(sdf="world.sdf", sdf_motion=motions, **scene_spec)
    carriages = sdf_carriages(scene, spec, tmp_path)
    objects, _ = sdf_objects(scene, BUILT_IN_MATERIALS, "collisions", Pose(position_m=spec.origin_m), carriages)
    return {thing.name: thing for thing in objects}


def way(*places):
    return MotionSpec(waypoints=tuple(WaypointSpec(time_s=float(time_s), position_m=place) for time_s, place in enumerate(places)))


def test_a_model_that_the_rig_moves_takes_its_nested_models_along_and_no_other(tmp_path):
    found = carts(tmp_path, SdfMotionSpec(model="cart", motion=way((10.0, 0.0, 0.0), (20.0, 0.0, 0.0))), origin_m=(100.0, 0.0, 0.0))
    np.testing.assert_allclose(corners(found["cart::l::c"], 0.5).mean(axis=0), (115.0, 0.0, 2.0))
    np.testing.assert_allclose(corners(found["cart::arm::l::c"], 0.5).mean(axis=0), (115.0, 1.0, 0.0))
    assert found["cartridge::l::c"].placement == Pose(position_m=(100.0, 0.0, 0.0))


def test_a_model_within_one_that_moves_may_have_a_motion_of_its_own(tmp_path):
    there = way((0.0, 0.0, 0.0), (0.0, 0.0, 8.0))
    found = carts(
        tmp_path, SdfMotionSpec(model="cart", motion=way((10.0, 0.0, 0.0), (20.0, 0.0, 0.0))), SdfMotionSpec(model="cart::arm", motion=there)
    )
    np.testing.assert_allclose(corners(found["cart::arm::l::c"], 0.5).mean(axis=0), (0.0, 0.0, 4.0))


def test_a_model_follows_a_trajectory_file(tmp_path):
    (tmp_path / "way.csv").write_text("time_s,x_m,y_m,z_m,qw,qx,qy,qz\n5,0,0,0,1,0,0,0\n6,0,2,0,1,0,0,0\n7,0,4,0,1,0,0,0\n")
    found = carts(tmp_path, SdfMotionSpec(model="cart", file="way.csv"))
    np.testing.assert_allclose(corners(found["cart::l::c"], 1.5).mean(axis=0), (0.0, 3.0, 2.0))


def test_a_motion_of_a_model_that_is_not_there_or_a_file_that_is_not_is_refused(tmp_path):
    lost = SdfMotionSpec(model="wagon", motion=way((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))), SdfMotionSpec(model="cart", file="none.csv")
    with pytest.raises(
        AssetError, match=r'sdf_motion\[0\].model must be a model of .*world.sdf \(cart, cart::arm, cartridge\), got "wagon"\n.*none.csv'
    ):
        carts(tmp_path, *lost)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"model": " ", "file": "way.csv"}, "model must name a model"),
        ({"model": "cart"}, "motion or file must be given, and not both"),
        ({"model": "cart", "file": "way.csv", "motion": way((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))}, "motion or file must be given, and not both"),
        ({"model": "cart", "loop": True, "motion": way((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))}, "loop requires file"),
    ],
)
def test_a_motion_that_says_too_little_or_too_much_is_refused(values, fault):
    with pytest.raises(ValueError, match=fault):
        SdfMotionSpec(**values)


def test_motions_must_come_with_an_sdf_file_and_one_a_model():
    item = SdfMotionSpec(model="cart", file="way.csv")
    with pytest.raises(ValueError, match="sdf_motion must come with sdf"):
        SceneSpec(sdf_motion=(item,))
    with pytest.raises(ValueError, match='sdf_motion: model "cart" must be named once'):
        SceneSpec(sdf="world.sdf", sdf_motion=(item, item))


def test_equal_shapes_share_their_mesh(scene):
    (first, second), notes = sdf_objects(scene(*["<sphere><radius>2</radius></sphere>"] * 2), BUILT_IN_MATERIALS)
    assert first.mesh is second.mesh
    assert notes == ()


def test_thousands_of_round_shapes_are_cut_more_coarsely_and_a_note_says_so(scene):
    objects, notes = sdf_objects(scene(*["<sphere><radius>2</radius></sphere>"] * 1000), BUILT_IN_MATERIALS)
    assert sum(len(thing.mesh.triangles) for thing in objects) <= 4_000_000
    (note,) = notes
    assert "world.sdf: 1,000 round shapes would be " in note
    assert note.endswith(" of a radius inside")


def test_more_round_shapes_than_a_scene_may_hold_are_refused_before_they_are_made(scene, monkeypatch):
    monkeypatch.setattr("hilsim.world.assets.sdf_objects._COARSENESS", (1.0,))
    with pytest.raises(AssetError, match=r"world\.sdf: triangles must be at most 16,000,000, got "):
        sdf_objects(scene(*[f"<sphere><radius>{radius}</radius></sphere>" for radius in range(1, 4_000)]), BUILT_IN_MATERIALS)
