"""Meshes and materials refuse what cannot be, naming the row."""

import numpy as np
import pytest

from hilsim.world.scene.materials import DEFAULTS, Material
from hilsim.world.scene.mesh import Mesh
from tests.meshes import areas_m2, join_meshes

GRASS, WOOD = DEFAULTS["grass"], DEFAULTS["wood"]
CORNERS = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("vertices", "triangles", "message"),
    [
        ([[0, 0, 0], [np.nan, 0, 0], [0, 1, 0]], [[0, 1, 2]], "vertex 1 must be finite"),
        (CORNERS, [[0, 1, 2], [0, 1, 3]], "triangle 1 must name vertices 0 to 2"),
        (CORNERS, [[0, 1, -1]], "triangle 0 must name vertices 0 to 2"),
        (CORNERS, [[0, 1, 1], [2, 2, 2]], "must have a triangle with an area, got 2 without"),
        (CORNERS, np.zeros((0, 3), dtype=int), "triangles must have shape"),
        (np.zeros((0, 3)), [[0, 1, 2]], "vertices_m must have shape"),
        (np.zeros((3, 2)), [[0, 1, 2]], "vertices_m must have shape"),
        (CORNERS, [[0.0, 1.0, 2.0]], "triangles must be whole numbers"),
    ],
)
def test_a_mesh_names_what_is_wrong_with_it(vertices, triangles, message):
    with pytest.raises(ValueError, match=message):
        Mesh.uniform(vertices, triangles, GRASS)


def test_a_mesh_refuses_a_material_it_does_not_have():
    with pytest.raises(ValueError, match=r"triangle 0 must name a material 0 to 0, got 1"):
        Mesh(np.array(CORNERS), np.array([[0, 1, 2]]), np.array([1]), (GRASS,))


def test_a_mesh_refuses_a_wrong_number_of_materials():
    with pytest.raises(ValueError, match=r"material must have shape \(1,\)"):
        Mesh(np.array(CORNERS), np.array([[0, 1, 2]]), np.array([0, 0]), (GRASS,))


def test_a_triangle_without_area_is_accepted_among_others():
    assert areas_m2(Mesh.uniform(CORNERS, [[0, 1, 2], [0, 0, 1]], GRASS)).tolist() == [0.5, 0.0]


def test_joined_meshes_keep_their_triangles_and_share_equal_materials():
    a = Mesh.uniform(CORNERS, [[0, 1, 2]], GRASS)
    b = Mesh(np.array(CORNERS) + 5.0, np.array([[0, 1, 2], [2, 1, 0]]), np.array([0, 1]), (WOOD, GRASS))
    joined = join_meshes((a, b))
    assert joined.materials == (GRASS, WOOD)
    assert joined.material.tolist() == [0, 1, 0]
    assert joined.triangles.tolist() == [[0, 1, 2], [3, 4, 5], [5, 4, 3]]


def test_joining_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one, got none"):
        join_meshes(())


def test_a_material_names_each_of_its_faults():
    with pytest.raises(ValueError, match=r"name must not be empty; reflectivity must be 0 to 255, got 256"):
        Material(name="", reflectivity=256)


def test_codes_above_one_hundred_are_retro_reflectors():
    assert not Material(name="white", reflectivity=100).is_retro
    assert Material(name="sign", reflectivity=101).is_retro
