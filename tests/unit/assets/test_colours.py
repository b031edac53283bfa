"""Reflectivity that follows the colours of a mesh file."""

import numpy as np
import pytest
import trimesh
from PIL import Image

from hilsim.world.assets.meshes import load_mesh
from hilsim.world.scene.object_specs import MeshSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS

GREY = 188
"""sRGB value of half the light."""
QUAD = [(0.0, 0.0, 0.0), (4.0, 0.0, 0.0), (4.0, 0.0, 4.0), (0.0, 0.0, 4.0)]
FACES = [[0, 1, 2], [0, 2, 3]]


def load(folder, name, **keys):
    return load_mesh(MeshSpec(file=name, up="z", **{"material": "concrete", "colours": True} | keys), folder, BUILT_IN_MATERIALS)


def reflectivities(mesh):
    return np.array([mesh.materials[row].reflectivity for row in mesh.material])


def test_colours_of_faces_vary_the_reflectivity_about_the_materials(tmp_path):
    mesh = trimesh.Trimesh(QUAD, FACES, face_colors=[(GREY, GREY, GREY, 255), (255, 255, 255, 255)], process=False)
    mesh.export(tmp_path / "quad.ply")
    loaded, notes = load(tmp_path, "quad.ply")
    assert sorted(reflectivities(loaded)) == [23, 47]  # two thirds and four thirds of concrete's 35 %
    assert notes == ()
    mesh.export(tmp_path / "text.ply", encoding="ascii")
    assert sorted(reflectivities(load(tmp_path, "text.ply")[0])) == [23, 47]
    assert {material.texture for material in loaded.materials} == {BUILT_IN_MATERIALS["concrete"].texture}


def test_an_image_is_laid_over_divided_triangles_the_right_way_up(tmp_path):
    """The upper half of the image is white, the lower a grey of half the light: so are those of a wall of two triangles."""
    pixels = np.full((64, 64, 3), 255, np.uint8)
    pixels[32:] = GREY
    visual = trimesh.visual.TextureVisuals(uv=[(0, 0), (1, 0), (1, 1), (0, 1)], image=Image.fromarray(pixels))
    trimesh.Trimesh(QUAD, FACES, visual=visual, process=False).export(tmp_path / "wall.glb")
    loaded, _ = load(tmp_path, "wall.glb")
    corners = loaded.vertices_m[loaded.triangles]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    assert sides.max() <= 0.25
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    assert area.sum() == pytest.approx(16.0)
    height, percent = corners[:, :, 2].mean(axis=1), reflectivities(loaded)
    assert set(percent[height > 2.2]) == {47}
    assert set(percent[height < 1.8]) == {23}


def test_strips_of_a_ply_have_the_colours_of_their_vertices(tmp_path):
    vertices = "".join(f"{x} {y} {z} {shade} {shade} {shade}\n" for (x, y, z), shade in zip(QUAD, (GREY, GREY, 255, GREY), strict=True))
    properties = "".join(f"property {kind}\n" for kind in ("float x", "float y", "float z", "uchar red", "uchar green", "uchar blue"))
    (tmp_path / "strip.ply").write_text(
        f"ply\nformat ascii 1.0\nelement vertex 4\n{properties}element tristrips 1\nproperty list int int vertex_indices\nend_header\n{vertices}4 0 1 3 2\n"
    )
    dark, bright = reflectivities(load(tmp_path, "strip.ply")[0])
    assert dark < bright


@pytest.mark.parametrize("places", ["texcoord of faces", "s and t of vertices"])
def test_an_image_named_in_a_ply_is_laid_over_polygons_too(tmp_path, places):
    pixels = np.full((64, 64, 3), 255, np.uint8)
    pixels[32:] = GREY
    Image.fromarray(pixels).save(tmp_path / "my wall.png")
    uv = [(0, 0), (1, 0), (1, 1), (0, 1)]
    of_vertices = places.startswith("s")
    vertices = "".join(" ".join(map(str, (*at, *(place if of_vertices else ())))) + "\n" for at, place in zip(QUAD, uv, strict=True))
    face = "4 0 1 2 3" + ("" if of_vertices else " 8 " + " ".join(f"{u} {v}" for u, v in uv))
    (tmp_path / "wall.ply").write_text(
        "ply\nformat ascii 1.0\ncomment TextureFile my wall.png\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
        + ("property float s\nproperty float t\n" if of_vertices else "")
        + "element face 1\nproperty list uchar int vertex_indices\n"
        + ("" if of_vertices else "property list uchar float texcoord\n")
        + f"end_header\n{vertices}{face}\n"
    )
    loaded, _ = load(tmp_path, "wall.ply")
    height, percent = loaded.vertices_m[loaded.triangles][:, :, 2].mean(axis=1), reflectivities(loaded)
    assert (set(percent[height > 2.2]), set(percent[height < 1.8])) == ({47}, {23})


def test_without_the_key_and_for_retro_reflectors_colours_are_left_alone(tmp_path):
    mesh = trimesh.Trimesh(QUAD, FACES, face_colors=[(0, 0, 0, 255), (255, 255, 255, 255)], process=False)
    mesh.export(tmp_path / "quad.ply")
    assert set(reflectivities(load(tmp_path, "quad.ply", colours=False)[0])) == {35}
    assert set(reflectivities(load(tmp_path, "quad.ply", material="retro_sign")[0])) == {250}


def test_a_file_without_colours_is_even_with_a_note(tmp_path):
    trimesh.Trimesh(QUAD, FACES, process=False).export(tmp_path / "quad.stl")
    loaded, notes = load(tmp_path, "quad.stl")
    assert set(reflectivities(loaded)) == {35}
    assert notes == (f"{tmp_path / 'quad.stl'}: has no colours that hilsim reads (those of PLY, glTF and GLB files); its materials are even",)
