"""Shapes of an SDF file as objects of a scene, and what is left out."""

import pytest

from hilsim.assets.sdf_objects import sdf_objects
from hilsim.errors import AssetError
from hilsim.scene.specs import BUILT_IN_MATERIALS
from hilsim.sdf.reading import read_sdf


@pytest.fixture
def scene(tmp_path):
    def read(*geometries):
        shapes = "\n".join(f'<collision name="c{i}"><geometry>{geometry}</geometry></collision>' for i, geometry in enumerate(geometries))
        path = tmp_path / "world.sdf"
        path.write_text(f'<sdf version="1.9"><world name="w"><model name="m"><link name="l">\n{shapes}\n</link></model></world></sdf>')
        return read_sdf(path)

    return read


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
    assert first.startswith(f"{path}:3: <uri> must be a file that is there, got x.dae, looked for at ")
    assert second.startswith(f"{path}:4: <uri> must be on this host (download the model")
    assert third.startswith(f"{path}:5: <uri> must be a file that is there, got x.png, looked for at ")


def test_a_mesh_without_a_uri_is_a_fault_whether_it_is_asked_for_or_not(tmp_path):
    path = tmp_path / "world.sdf"
    path.write_text('<sdf version="1.9"><model name="m"><link name="l">\n<visual name="v"><geometry><mesh/></geometry></visual></link></model></sdf>')
    with pytest.raises(AssetError, match=r"world\.sdf:2: <mesh> must have a <uri>"):
        read_sdf(path)


def test_an_optimised_mesh_is_told_of(scene, tmp_path):
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


@pytest.mark.parametrize(
    ("sees", "why"), [("collisions", "has no collision: lidars do not meet it"), ("visuals", "motion by a script is not supported")]
)
def test_an_actor_is_told_of_by_name_and_line(tmp_path, sees, why):
    (tmp_path / "world.sdf").write_text('<sdf version="1.9"><world name="w">\n<actor name="walker"><pose>1 2 3 0 0 0</pose></actor></world></sdf>')
    _, (note,) = sdf_objects(read_sdf(tmp_path / "world.sdf"), BUILT_IN_MATERIALS, sees)
    assert note.startswith(f"{tmp_path}/world.sdf:2: <actor> walker ")
    assert why in note


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
    monkeypatch.setattr("hilsim.assets.sdf_objects._COARSENESS", (1.0,))
    with pytest.raises(AssetError, match=r"world\.sdf: triangles must be at most 16,000,000, got "):
        sdf_objects(scene(*[f"<sphere><radius>{radius}</radius></sphere>" for radius in range(1, 4_000)]), BUILT_IN_MATERIALS)
