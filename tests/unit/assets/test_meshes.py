"""Mesh files that trimesh and hand wrote: geometry, axes, materials; and files that are broken."""

import json
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
import trimesh

from hilsim.errors import AssetError
from hilsim.world.assets.meshes import load_mesh
from hilsim.world.assets.nesting import nesting
from hilsim.world.scene.materials import Material
from hilsim.world.scene.object_specs import MeshSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from tests.meshes import areas_m2

MATERIALS = BUILT_IN_MATERIALS | {"hoarding": Material(name="hoarding", reflectivity=180)}


def painted(size, name):
    mesh = trimesh.creation.box(size)
    mesh.visual = trimesh.visual.TextureVisuals(material=trimesh.visual.material.PBRMaterial(name=name))
    return mesh


@pytest.fixture
def scene():
    """Two boxes: one named Paint, 10 units along x and turned a quarter about the file's y; one without a material."""
    scene = trimesh.Scene()
    matrix = trimesh.transformations.rotation_matrix(np.pi / 2.0, (0.0, 1.0, 0.0))
    matrix[:3, 3] = (10.0, 0.0, 0.0)
    scene.add_geometry(painted((1.0, 2.0, 3.0), "Paint"), transform=matrix, node_name="turned")
    scene.add_geometry(trimesh.creation.box((1.0, 1.0, 1.0)), node_name="plain")
    return scene


def load(folder, name, **rest):
    return load_mesh(MeshSpec(file=name, **rest), folder, MATERIALS)


def refuse(folder, name, message, **rest):
    with pytest.raises(AssetError, match=message) as caught:
        load(folder, name, **rest)
    assert str(folder / name) in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["ply", "stl", "obj", "dae", "glb"])
def test_a_box_comes_back_from_every_format(tmp_path, suffix):
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / f"box.{suffix}")
    mesh, notes = load(tmp_path, f"box.{suffix}", up="z")
    np.testing.assert_allclose(np.ptp(mesh.vertices_m, axis=0), [1.0, 2.0, 3.0])
    assert len(mesh.triangles) == 12
    assert areas_m2(mesh).sum() == pytest.approx(22.0)
    assert [material.name for material in mesh.materials] == ["concrete"]
    assert notes == ()


def write_collada(folder, change):
    """A box of 1 x 2 x 3 units as COLLADA, its text changed."""
    trimesh.creation.box((1.0, 2.0, 3.0)).export(folder / "box.dae")
    path = folder / "box.dae"
    path.write_text(change(path.read_text()))


def test_a_collada_file_is_in_its_own_unit_and_its_up_axis_is_not_read(tmp_path):
    write_collada(
        tmp_path,
        lambda text: re.sub(r"<asset>.*?</asset>", '<asset><unit name="cm" meter="0.01"/><up_axis>Y_UP</up_axis></asset>', text, flags=re.DOTALL),
    )
    np.testing.assert_allclose(np.ptp(load(tmp_path, "box.dae")[0].vertices_m, axis=0), [0.01, 0.02, 0.03])
    np.testing.assert_allclose(np.ptp(load(tmp_path, "box.dae", up="y", scale=10.0)[0].vertices_m, axis=0), [0.1, 0.3, 0.2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("<COLLADA", '<!DOCTYPE a [<!ENTITY b "c">]>\n<COLLADA', 1), "without a document type"),
        (lambda text: text[: len(text) // 2], r"must be a whole COLLADA file.*\(cut short\?\)"),
        (
            lambda text: re.sub(r"<asset>.*?</asset>", '<asset><unit meter="0"/></asset>', text, flags=re.DOTALL),
            "<unit meter> must be 1e-6 to 1e6, got 0",
        ),
        (lambda text: re.sub(r"<geometry.*</geometry>", "", text, flags=re.DOTALL), "must have at least one triangle|cannot be read as DAE"),
    ],
)
def test_a_collada_file_that_cannot_be_used_is_refused_in_words(tmp_path, change, message):
    write_collada(tmp_path, change)
    refuse(tmp_path, "box.dae", message)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (('<triangles count="12"', '<triangles count="13"'), "1 of 13 polygons are not read, 0 instances .*: it has fewer, or some have holes"),
        (("</node>", '<instance_geometry url="#gone"/></node>'), "0 of 12 polygons are not read, 1 instances .*: .*Geometry #gone not found"),
    ],
)
def test_polygons_that_collada_declares_and_are_not_read_are_noted(tmp_path, change, note):
    write_collada(tmp_path, lambda text: text.replace(*change, 1))
    mesh, notes = load(tmp_path, "box.dae")
    assert (len(mesh.triangles), len(notes)) == (12, 1)
    assert re.search(note, notes[0])


def test_a_mesh_of_a_material_that_collada_does_not_define_is_read(tmp_path):
    write_collada(tmp_path, lambda text: re.sub(r'(<instance_material symbol="[^"]+" target="#)[^"]+', r"\1gone", text))
    assert 'target="#gone"' in (tmp_path / "box.dae").read_text()
    mesh, notes = load(tmp_path, "box.dae")
    assert (len(mesh.triangles), notes) == (12, ())


def test_a_node_that_is_a_camera_too_keeps_its_mesh(tmp_path, gltf):
    def change(document):
        document["cameras"] = [{"type": "perspective", "perspective": {"yfov": 1.0, "znear": 0.1}}]
        next(node for node in document["nodes"] if "mesh" in node)["camera"] = 0

    gltf(change)
    assert len(load(tmp_path, "model.gltf")[0].triangles) == 24


def test_extensions_that_place_a_mesh_are_noted(tmp_path, gltf):
    gltf(lambda document: document.update(extensionsUsed=["EXT_mesh_gpu_instancing", "KHR_materials_unlit", "KHR_draco_mesh_compression"]))
    assert load(tmp_path, "model.gltf")[1] == (
        f"{tmp_path / 'model.gltf'}: the extension EXT_mesh_gpu_instancing is not read: the mesh is as it is without",
        f'{tmp_path / "model.gltf"}: no material of the rig is assigned to "Paint"; "concrete" is used',
    )


def test_bytes_behind_the_triangles_of_an_stl_are_noted_but_whole_triangles_there_are_refused(tmp_path):
    trimesh.creation.box().export(tmp_path / "box.stl")
    data = (tmp_path / "box.stl").read_bytes()
    (tmp_path / "tail.stl").write_bytes(data + bytes(92))
    mesh, notes = load(tmp_path, "tail.stl")
    assert (len(mesh.triangles), notes) == (12, (f"{tmp_path / 'tail.stl'}: 92 bytes behind its 12 triangles are ignored",))
    (tmp_path / "more.stl").write_bytes(data + bytes(100))
    refuse(tmp_path, "more.stl", "neither ASCII STL nor 12 triangles by its own count")


def test_the_node_transforms_of_a_glb_are_applied_and_y_becomes_z(tmp_path, scene):
    scene.export(tmp_path / "scene.glb")
    mesh, _ = load(tmp_path, "scene.glb", materials={"Paint": "hoarding"})
    names = np.array([material.name for material in mesh.materials])[mesh.material]
    painted_corners = mesh.vertices_m[np.unique(mesh.triangles[names == "hoarding"])]
    # A box of 1 x 2 x 3 turned a quarter about y is 3 x 2 x 1 in the file; the file's y (2) is up here, its z (1) is -y here.
    np.testing.assert_allclose(painted_corners.min(axis=0), [8.5, -0.5, -1.0], atol=1e-6)
    np.testing.assert_allclose(painted_corners.max(axis=0), [11.5, 0.5, 1.0], atol=1e-6)


def test_a_node_turns_the_way_its_matrix_says(tmp_path):
    scene = trimesh.Scene()
    spike = trimesh.Trimesh([[0, 0, 0], [5, 0, 0], [0, 1, 0]], [[0, 1, 2]], process=False)
    scene.add_geometry(spike, transform=trimesh.transformations.rotation_matrix(np.pi / 2.0, (0.0, 0.0, 1.0)))
    scene.export(tmp_path / "spike.glb")
    mesh, _ = load(tmp_path, "spike.glb", up="z")
    np.testing.assert_allclose(mesh.vertices_m[mesh.triangles[0]], [[0, 0, 0], [0, 5, 0], [-1, 0, 0]], atol=1e-6)


def test_turning_up_does_not_mirror(tmp_path):
    corner = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], process=False)
    corner.export(tmp_path / "corner.glb")
    mesh, _ = load(tmp_path, "corner.glb")
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    assert np.sum(a * np.cross(b, c)) / 6.0 == pytest.approx(1.0)
    assert mesh.vertices_m.max(axis=0).tolist() == [1.0, 0.0, 2.0]
    assert mesh.vertices_m.min(axis=0).tolist() == [0.0, -3.0, 0.0]


def test_the_rig_may_say_which_axis_is_up(tmp_path, scene):
    scene.export(tmp_path / "scene.glb")
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / "box.ply")
    assert np.ptp(load(tmp_path, "scene.glb", up="z")[0].vertices_m, axis=0)[1] == pytest.approx(2.0)
    assert np.ptp(load(tmp_path, "box.ply", up="y")[0].vertices_m, axis=0).tolist() == pytest.approx([1.0, 3.0, 2.0])


def test_a_scale_makes_millimetres_metres(tmp_path):
    trimesh.creation.box((1000.0, 2000.0, 3000.0)).export(tmp_path / "box.stl")
    assert np.ptp(load(tmp_path, "box.stl", scale=0.001)[0].vertices_m, axis=0).tolist() == pytest.approx([1.0, 2.0, 3.0])


def test_a_gltf_with_its_buffers_beside_it_is_read(tmp_path, scene):
    for name, data in trimesh.exchange.gltf.export_gltf(scene).items():
        (tmp_path / name).write_bytes(data)
    assert len(load(tmp_path, "model.gltf")[0].triangles) == 24


def test_an_unknown_material_is_replaced_by_the_default_and_noted(tmp_path, scene):
    scene.export(tmp_path / "scene.glb")
    mesh, notes = load(tmp_path, "scene.glb", material="brick")
    assert {material.name for material in mesh.materials} == {"brick"}
    assert notes == (f'{tmp_path / "scene.glb"}: no material of the rig is assigned to "Paint"; "brick" is used',)


def test_a_material_with_the_name_of_one_in_the_rig_needs_no_table(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl hoarding\nf 1 2 3\n")
    mesh, notes = load(tmp_path, "a.obj")
    assert mesh.materials == (MATERIALS["hoarding"],)
    assert notes == ()


def test_a_table_entry_that_the_file_lacks_is_noted(tmp_path):
    trimesh.creation.box().export(tmp_path / "box.stl")
    _, notes = load(tmp_path, "box.stl", materials={"Pant": "brick"})
    assert notes == (f'{tmp_path / "box.stl"}: the file has no material "Pant"',)


def test_an_obj_with_its_library_keeps_material_and_triangle_order(tmp_path):
    (tmp_path / "a.mtl").write_text("newmtl Red\nKd 1 0 0\nmap_Kd gone.png\nnewmtl Blue\nKd 0 0 1\n")
    (tmp_path / "a.obj").write_text(
        "mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nusemtl Red\nf 1 2 3\nusemtl Blue\nf 1 2 4\nusemtl Red\nf 2 3 4\n"
    )
    mesh, _ = load(tmp_path, "a.obj", materials={"Red": "brick", "Blue": "glass"})
    assert [mesh.materials[row].name for row in mesh.material] == ["brick", "glass", "brick"]


DOUBLE_PLY = """ply
format ascii 1.0
element vertex 4
property double x
property double y
property double z
element face 1
property list uchar int vertex_indices
end_header
691000.123456789 5334000.25 1
691001 5334000 1
691001 5334001 1
691000 5334001 1
4 0 1 2 3
"""


def test_double_vertices_of_a_ply_keep_utm_digits_and_polygons_are_cut(tmp_path):
    (tmp_path / "utm.ply").write_text(DOUBLE_PLY)
    mesh, _ = load(tmp_path, "utm.ply")
    assert mesh.vertices_m[0].tolist() == [691000.123456789, 5334000.25, 1.0]
    assert len(mesh.triangles) == 2


def test_an_ascii_stl_keeps_utm_digits(tmp_path):
    (tmp_path / "utm.stl").write_text(
        "solid a\nfacet normal 0 0 1\nouter loop\nvertex 691000.123456 5334000.25 0\nvertex 691001 5334000 0\nvertex 691001 5334001 0\nendloop\nendfacet\nendsolid a\n"
    )
    assert load(tmp_path, "utm.stl")[0].vertices_m[0].tolist() == [691000.123456, 5334000.25, 0.0]


SKIN = """<library_controllers><controller id="skinned"><skin source="#{geometry}">
<bind_shape_matrix>0 -1 0 5 1 0 0 0 0 0 1 -2 0 0 0 1</bind_shape_matrix>
<source id="j"><Name_array id="ja" count="1">Hips</Name_array><technique_common><accessor source="#ja" count="1" stride="1">
<param name="JOINT" type="Name"/></accessor></technique_common></source>
<source id="b"><float_array id="ba" count="16">1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</float_array><technique_common><accessor source="#ba" count="1" stride="16">
<param name="TRANSFORM" type="float4x4"/></accessor></technique_common></source>
<source id="w"><float_array id="wa" count="1">1</float_array><technique_common><accessor source="#wa" count="1" stride="1">
<param name="WEIGHT" type="float"/></accessor></technique_common></source>
<joints><input semantic="JOINT" source="#j"/><input semantic="INV_BIND_MATRIX" source="#b"/></joints>
<vertex_weights count="1"><input semantic="JOINT" source="#j" offset="0"/><input semantic="WEIGHT" source="#w" offset="1"/>
<vcount>1</vcount><v>0 0</v></vertex_weights></skin></controller></library_controllers><library_visual_scenes>"""


def test_the_skin_of_a_collada_file_is_as_it_was_bound_to_its_skeleton(tmp_path):
    """As gz-common's walking man does: hilsim's extent of him is that which libignition-common tells, to six digits (tried by hand)."""

    def with_a_skin(text):
        geometry = re.search(r'<instance_geometry url="#([^"]+)"', text)[1]
        text = text.replace("<library_visual_scenes>", SKIN.format(geometry=geometry))
        return text.replace(f'<instance_geometry url="#{geometry}"', '<instance_controller url="#skinned"').replace(
            "</instance_geometry>", "</instance_controller>"
        )

    write_collada(tmp_path, with_a_skin)
    vertices = load(tmp_path, "box.dae")[0].vertices_m
    np.testing.assert_allclose(vertices.min(axis=0), (5.0 - 1.0, -0.5, -2.0 - 1.5))
    np.testing.assert_allclose(vertices.max(axis=0), (5.0 + 1.0, 0.5, -2.0 + 1.5))


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl", "dae", "gltf", "glb"])
def test_a_file_that_is_not_there_is_named(tmp_path, suffix):
    refuse(tmp_path, f"none.{suffix}", "no such file")


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl", "dae", "gltf", "glb"])
def test_an_empty_file_is_refused(tmp_path, suffix):
    (tmp_path / f"empty.{suffix}").touch()
    refuse(tmp_path, f"empty.{suffix}", "must not be empty, got 0 bytes")


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl", "dae", "gltf", "glb"])
@pytest.mark.parametrize("content", [bytes(range(256)) * 8, b"\xff\xfe" * 300, b"solid nothing here\n" * 3, b"[1, 2]", b'{"asset": 3}'])
def test_garbage_is_refused_in_words(tmp_path, suffix, content):
    (tmp_path / f"garbage.{suffix}").write_bytes(content)
    refuse(tmp_path, f"garbage.{suffix}", "must")


@pytest.mark.parametrize("suffix", ["ply", "stl", "glb"])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9, 0.99])
def test_a_binary_file_cut_short_is_refused(tmp_path, suffix, kept):
    whole = tmp_path / f"whole.{suffix}"
    trimesh.creation.icosphere(subdivisions=2).export(whole)
    data = whole.read_bytes()
    (tmp_path / f"cut.{suffix}").write_bytes(data[: int(kept * len(data))])
    refuse(tmp_path, f"cut.{suffix}", r"\(cut short\?\)")


def test_a_directory_is_refused(tmp_path):
    (tmp_path / "folder.stl").mkdir()
    refuse(tmp_path, "folder.stl", "must be a file, got a directory")


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path):
    refuse(tmp_path, "thing.fbx", r"must be one of \.obj, \.ply, \.stl, \.dae, \.gltf, \.glb, got \"\.fbx\"")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("4 0 1 2 3\n", "")], r"must have 1 rows of face, got 0 whole ones \(cut short\?\)"),
        ([("4 0 1 2 3\n", "3 0 1 7\n")], "face 0 must name vertices 0 to 3, got 7"),
        ([("4 0 1 2 3\n", "3 0 1 -1\n")], "face 0 must name vertices 0 to 3, got -1"),
        ([("691000.123456789", "nan")], "vertex 0 must be finite"),
        ([("element face 1\nproperty list uchar int vertex_indices\n", "")], "must have at least one triangle, got a PLY of 4 points without faces"),
        ([("element face 1\n", "element face\n")], "each element of a PLY header must have a name and a count"),
        ([("face 1\n", "face 2\n"), ("4 0 1 2 3\n", "3 0 1 2\n2 0 1\n")], "must have 2 faces by its own count, got 1 of three corners or more"),
    ],
    ids=["cut", "index", "negative", "nan", "points", "header", "line"],
)
def test_a_broken_ply_is_refused_with_what_is_wrong(tmp_path, changes, message):
    text = DOUBLE_PLY
    for change in changes:
        text = text.replace(*change)
    (tmp_path / "broken.ply").write_text(text)
    refuse(tmp_path, "broken.ply", message)


def test_the_name_of_an_ascii_stl_may_be_any_words(tmp_path):
    (tmp_path / "named.stl").write_text(
        "solid my facet and vertex\n  FACET NORMAL 0 0 1\n OUTER LOOP\nVERTEX 0 0 0\nVERTEX 1 0 0\nVERTEX 0 1 0\nENDLOOP\nENDFACET\nENDSOLID\n"
    )
    assert len(load(tmp_path, "named.stl")[0].triangles) == 1


def test_an_ascii_stl_cut_short_is_refused(tmp_path):
    (tmp_path / "cut.stl").write_text(
        "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nfacet normal 0 0 1\n"
    )
    refuse(tmp_path, "cut.stl", r"must be whole, got an ASCII STL with 2 facet, 3 vertex and 1 endfacet \(cut short\?\)")


def test_a_mesh_of_flattened_triangles_is_refused(tmp_path):
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n")
    refuse(tmp_path, "flat.obj", "mesh must have a triangle with an area")


@pytest.fixture
def gltf(tmp_path, scene):
    """Writes the scene as glTF with a change to its document."""

    def write(change):
        for name, data in trimesh.exchange.gltf.export_gltf(scene).items():
            (tmp_path / name).write_bytes(data)
        document = json.loads((tmp_path / "model.gltf").read_text())
        change(document)
        (tmp_path / "model.gltf").write_text(json.dumps(document))

    return write


def lines_only(document):
    for mesh in document["meshes"]:
        mesh["primitives"][0]["mode"] = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document["buffers"][0].update(uri="gone.bin"), "buffer 'gone.bin' must be beside it, got no such file"),
        (
            lambda document: document.update(extensionsRequired=["KHR_draco_mesh_compression"]),
            "must not need the glTF extension KHR_draco_mesh_compression",
        ),
        (lambda document: document["accessors"][0].update(sparse={}), "must not have sparse accessors"),
        (lambda document: document["accessors"][0].update(count=900), "cannot be read as GLTF"),
        (lambda document: document["accessors"][0].update(count=np.nan), "must hold a glTF document, got one of another shape: cannot convert"),
        (lambda document: document["asset"].update(version="1.0"), "glTF version must be 2, got 1.0"),
        (lambda document: document.update(buffers=[3]), "must hold a glTF document"),
        (lines_only, "must have at least one triangle, got 0"),
    ],
    ids=["buffer", "extension", "sparse", "count", "nan", "version", "shape", "lines"],
)
def test_a_gltf_that_cannot_be_read_whole_is_refused(tmp_path, gltf, change, message):
    gltf(change)
    refuse(tmp_path, "model.gltf", message)


def test_gltf_contents_other_than_triangles_are_noted(tmp_path, gltf):
    def change(document):
        document["meshes"][0]["primitives"][0]["mode"] = 1
        document["animations"] = [{"channels": [], "samplers": []}]
        document["images"] = [{"uri": "gone.png"}]

    gltf(change)
    mesh, notes = load(tmp_path, "model.gltf")
    assert len(mesh.triangles) == 12
    assert [note.split(": ", 1)[1] for note in notes] == [
        "1 of 2 parts are lines or points and are left out",
        "animations are left out; give the object a motion in the rig",
        "textures are missing: no colours are read from them: gone.png",
    ]


def test_trimesh_is_not_imported_for_an_obj(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    program = (
        "import sys; from pathlib import Path\n"
        "from hilsim.world.assets.meshes import load_mesh\nfrom hilsim.world.scene.specs import BUILT_IN_MATERIALS\nfrom hilsim.world.scene.object_specs import MeshSpec\n"
        f"load_mesh(MeshSpec(file='a.obj'), Path({str(tmp_path)!r}), BUILT_IN_MATERIALS)\n"
        "print('trimesh' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "False"


@pytest.mark.parametrize("suffix", ["gltf", "glb"])
def test_json_nested_without_end_is_refused_before_it_is_read(tmp_path, suffix):
    text = b'{"asset": {"version": "2.0", "extras": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    head = b"glTF" + struct.pack("<II", 2, 20 + len(text)) + struct.pack("<I4s", len(text), b"JSON") if suffix == "glb" else b""
    (tmp_path / f"a.{suffix}").write_bytes(head + text)
    refuse(tmp_path, f"a.{suffix}", "nesting must be at most 64 levels, got 100,002 levels")


def test_json_of_millions_of_values_is_refused_before_it_is_read(tmp_path):
    document = b'{"asset": {"version": "2.0"}, "extras": [' + b"0," * 2_000_000 + b"0]}"
    (tmp_path / "a.gltf").write_bytes(document)
    refuse(tmp_path, "a.gltf", r"values \(commas and colons\) must be at most 2,000,000, got 2,000,004")


def test_brackets_in_texts_are_no_nesting():
    assert nesting(b'{"a": "[[[[\\"[[", "b": [1, {"c": "]"}]}') == 3
    assert nesting(b'["' + b'\\"' * 100_000) == 1


def test_nodes_that_go_round_are_refused(tmp_path, gltf):
    def change(document):
        document["scenes"][0]["nodes"].append(len(document["nodes"]))
        document["nodes"] += [{"children": [len(document["nodes"]) + 1]}, {"children": [len(document["nodes"])]}]

    gltf(change)
    refuse(tmp_path, "model.gltf", "nodes below each other must be at most 256 levels, got 257 levels")


def test_an_accessor_of_zeros_without_data_is_refused(tmp_path, gltf):
    def change(document):
        document["accessors"].append({"componentType": 5126, "type": "VEC3", "count": 10**12})

    gltf(change)
    refuse(tmp_path, "model.gltf", r"accessors must have data \(bufferView\), got none for number \d+")


def test_one_mesh_that_is_everywhere_is_counted_as_often(tmp_path, gltf):
    def change(document):
        document["meshes"][0]["primitives"] *= 6
        document["scenes"][0]["nodes"] += range(len(document["nodes"]), len(document["nodes"]) + 350_000)
        document["nodes"] += [{"mesh": 0}] * 350_000

    gltf(change)
    refuse(tmp_path, "model.gltf", r"triangles must be at most 16,000,000, got 25,200,084")
