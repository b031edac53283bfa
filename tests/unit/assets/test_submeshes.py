"""Sub-meshes of mesh files by the names that Gazebo knows them by: groups and objects of OBJ, nodes of COLLADA."""

import numpy as np
import pytest
import trimesh

from hilsim.errors import AssetError
from hilsim.limits import DAE_NODES
from hilsim.world.assets.meshes import load_mesh
from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.scene.object_specs import MeshSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS
from hilsim.world.sdf.reading import read_sdf

TRIANGLE = "v {0} 0 0\nv {1} 0 0\nv {0} 2 4\nf -3 -2 -1\n"
OBJ = (
    TRIANGLE.format(0, 1)
    + "o left\n"
    + TRIANGLE.format(10, 12)
    + "usemtl red\n"
    + TRIANGLE.format(20, 22)
    + "g  back   door\n"
    + TRIANGLE.format(30, 32)
    + "o left\n"
    + TRIANGLE.format(40, 44)
    + "o\n"
    + TRIANGLE.format(50, 52)
)


def seen(folder, mesh, sees="visuals"):
    """The corners of what is seen, and notes."""
    tag = sees.removesuffix("s")
    path = folder / "world.sdf"
    path.write_text(f'<sdf version="1.9"><model name="m"><link name="l">\n<{tag} name="v"><geometry>{mesh}</geometry></{tag}></link></model></sdf>')
    (thing,), notes = sdf_objects(read_sdf(path), BUILT_IN_MATERIALS, sees)
    return thing.mesh.vertices_m[thing.mesh.triangles], notes


def part(file, name, rest=""):
    return f"<mesh><uri>{file}</uri><submesh><name>{name}</name>{rest}</submesh></mesh>"


@pytest.mark.parametrize(("name", "at"), [("left", (10, 20, 40)), ("back door", (30,))])
def test_of_an_obj_file_objects_and_groups_of_the_name_are_taken(tmp_path, name, at):
    (tmp_path / "a.obj").write_text(OBJ)
    corners, notes = seen(tmp_path, part("a.obj", name))
    assert notes == ()
    assert tuple(corners[:, 0, 0]) == at
    np.testing.assert_allclose(corners[:, 2, 1:], [(2, 4)] * len(at))


def test_each_piece_is_centred_by_itself_about_the_box_around_it_and_then_scaled(tmp_path):
    (tmp_path / "a.obj").write_text(OBJ)
    mesh = part("a.obj", "left", "<center>true</center>").replace("</mesh>", "<scale>1 1 10</scale></mesh>")
    corners, _ = seen(tmp_path, mesh)
    np.testing.assert_allclose(corners[0], [(-1, -1, -20), (1, -1, -20), (-1, 1, 20)])
    np.testing.assert_allclose(corners[1], corners[0])  # of another material
    np.testing.assert_allclose(corners[2], corners[0] * (2, 1, 1))


def test_pieces_of_one_object_and_one_material_are_centred_together(tmp_path):
    painted = "".join(f"usemtl {name}\n{TRIANGLE.format(*at)}" for name, at in (("a", (5, 6)), ("b", (100, 104)), ("a", (8, 10))))
    (tmp_path / "a.obj").write_text(f"o one\n{TRIANGLE.format(0, 2)}{painted}")
    corners, _ = seen(tmp_path, part("a.obj", "one", "<center>1</center>"))
    assert sorted(corners[:, 0, 0].tolist()) == [-2.5, -2.0, -1.0, 0.5]


@pytest.mark.parametrize("name", ["right", "LEFT", "back"])
def test_a_name_that_the_file_does_not_have_is_a_fault_that_names_those_it_has(tmp_path, name):
    (tmp_path / "a.obj").write_text(OBJ)
    with pytest.raises(
        AssetError, match=rf'world\.sdf:2: m::l::v: .*a\.obj: <submesh> must be one of the file\'s \("left", "back door"\), got "{name}"'
    ):
        seen(tmp_path, part("a.obj", name))


def test_of_very_many_names_the_first_are_reported(tmp_path):
    (tmp_path / "a.obj").write_text("".join(f"o {number}{'x' * 300}\n" + TRIANGLE.format(0, 1) for number in range(500)))
    with pytest.raises(AssetError, match=r'x" and 400 more\), got "q"') as caught:
        seen(tmp_path, part("a.obj", "q"))
    assert len(str(caught.value)) < 25_000


def test_a_file_without_names_says_so(tmp_path):
    (tmp_path / "a.obj").write_text(TRIANGLE.format(0, 1))
    with pytest.raises(AssetError, match=r"must be one of the file's \(none with a name\)"):
        seen(tmp_path, part("a.obj", "q"))


def test_ten_thousand_pieces_of_one_name_are_centred_each(tmp_path):
    (tmp_path / "a.obj").write_text("".join("o one\n" + TRIANGLE.format(number, number + 2) for number in range(10_000)))
    corners, _ = seen(tmp_path, part("a.obj", "one", "<center>true</center>"))
    np.testing.assert_allclose(corners, np.broadcast_to([(-1, -1, -2), (1, -1, -2), (-1, 1, 2)], (10_000, 3, 3)))


def test_a_collision_is_the_whole_mesh_as_in_gazebo_and_is_reported(tmp_path):
    (tmp_path / "a.obj").write_text(OBJ)
    corners, (note,) = seen(tmp_path, part("a.obj", "left"), "collisions")
    assert len(corners) == 6
    assert note.endswith('world.sdf:2: <submesh> "left" is ignored for collisions, as in Gazebo: m::l::v is the whole of a.obj')


@pytest.mark.parametrize("suffix", ["stl", "ply", "glb"])
def test_where_names_are_not_known_the_whole_is_taken_and_reported(tmp_path, suffix):
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / f"a.{suffix}")
    corners, (note,) = seen(tmp_path, part(f"a.{suffix}", "left", "<center>true</center>"))
    assert len(corners) == 12
    assert f'<submesh> "left" is not supported in a file of this format: m::l::v is the whole of a.{suffix}' in note


@pytest.mark.parametrize("text", ["<submesh/>", "<submesh><name/></submesh>", "<submesh><center>true</center></submesh>"])
def test_a_submesh_without_a_name_is_a_fault(tmp_path, text):
    (tmp_path / "a.obj").write_text(OBJ)
    with pytest.raises(AssetError, match=r"world\.sdf:2: <submesh> must have a <name>"):
        seen(tmp_path, f"<mesh><uri>a.obj</uri>{text}</mesh>")


# -- COLLADA ----------------------------------------------------------------------------------------------------------------------------

GEOMETRY = """<geometry id="{0}"><mesh><source id="{0}p"><float_array id="{0}f" count="9">0 0 0 2 0 0 0 2 4</float_array>
<technique_common><accessor source="#{0}f" count="3" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source><vertices id="{0}v"><input semantic="POSITION" source="#{0}p"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#{0}v" offset="0"/><p>0 1 2</p></triangles></mesh></geometry>"""
HEAD = '<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset><unit meter="0.5"/></asset>'
USE = '<instance_geometry url="#g"/>'


def collada(folder, scene, library=""):
    geometries = f"<library_geometries>{GEOMETRY.format('g')}</library_geometries>"
    visual = f'<library_visual_scenes><visual_scene id="s">{scene}</visual_scene></library_visual_scenes>'
    nodes = f"<library_nodes>{library}</library_nodes>" if library else ""
    (folder / "a.dae").write_text(f'{HEAD}{geometries}{nodes}{visual}<scene><instance_visual_scene url="#s"/></scene></COLLADA>')


def moved(x):
    return f"<translate>{x} 0 0</translate>"


SCENE = (
    f'<node id="n1" name="wheel">{moved(10)}{USE}<node id="n2">{moved(5)}{USE}</node><node id="n3" name="hub">{moved(7)}{USE}</node></node>'
    f'<node id="wheel" name="seat">{moved(100)}{USE}</node><node id="n4">{USE}</node>'
)


@pytest.mark.parametrize(("name", "at"), [("wheel", (5.0, 7.5)), ("hub", (8.5,)), ("seat", (50.0,))])
def test_of_a_collada_file_nodes_of_the_name_are_taken_with_those_inside_that_have_none(tmp_path, name, at):
    collada(tmp_path, SCENE)
    corners, notes = seen(tmp_path, part("a.dae", name))
    assert notes == ()
    np.testing.assert_allclose(sorted(corners[:, 0, 0]), at)
    np.testing.assert_allclose(corners[:, 2, 1:], [(1.0, 2.0)] * len(at))


def test_a_centred_node_loses_where_it_is(tmp_path):
    collada(tmp_path, SCENE)
    corners, _ = seen(tmp_path, part("a.dae", "seat", "<center>true</center>"))
    np.testing.assert_allclose(corners[0], [(-0.5, -0.5, -1), (0.5, -0.5, -1), (-0.5, 0.5, 1)])


def test_names_of_geometries_and_ids_are_none(tmp_path):
    collada(tmp_path, SCENE)
    with pytest.raises(AssetError, match=r'must be one of the file\'s \("wheel", "hub", "seat"\), got "n1"'):
        seen(tmp_path, part("a.dae", "n1"))


def test_a_node_that_stands_in_for_another_has_that_ones_name_and_place(tmp_path):
    collada(tmp_path, f'<node name="outer">{moved(10)}<instance_node url="#l"/></node>', f'<node id="l" name="inner">{moved(2)}{USE}</node>')
    corners, _ = seen(tmp_path, part("a.dae", "inner"))
    np.testing.assert_allclose(corners[:, 0, 0], [6.0])


def test_a_collada_file_is_read_as_trimesh_reads_it(tmp_path):
    collada(tmp_path, SCENE)
    mesh, _ = load_mesh(MeshSpec(file="a.dae"), tmp_path, BUILT_IN_MATERIALS)
    theirs = trimesh.load_scene(str(tmp_path / "a.dae"), process=False).to_mesh().triangles * 0.5
    key = np.lexsort(theirs[:, 0].T)
    mine = mesh.vertices_m[mesh.triangles]
    np.testing.assert_allclose(mine[np.lexsort(mine[:, 0].T)], theirs[key])


def test_nodes_that_double_at_each_level_are_refused(tmp_path):
    library = "".join(
        f'<node id="n{level}"><instance_node url="#n{level - 1}"/><instance_node url="#n{level - 1}"/></node>' for level in range(1, 40)
    )
    collada(tmp_path, '<node><instance_node url="#n39"/></node>', f'<node id="n0"/>{library}')
    with pytest.raises(AssetError, match=f"nodes of the scene must be at most {DAE_NODES.text}"):
        load_mesh(MeshSpec(file="a.dae"), tmp_path, BUILT_IN_MATERIALS)
