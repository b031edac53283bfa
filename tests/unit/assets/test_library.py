"""Objects that hilsim makes itself."""

import numpy as np
import pytest

from hilsim.editing.catalogue import CATALOGUE, catalogue_entry
from hilsim.errors import AssetError, ConfigError
from hilsim.world.assets.library import library_mesh, library_names
from hilsim.world.assets.meshes import load_mesh
from hilsim.world.scene.object_specs import MeshSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS

SIZES_M = {
    "saloon": (4.7, 1.82, 1.45),
    "hatchback": (4.0, 1.75, 1.48),
    "van": (5.3, 2.0, 2.1),
    "person": (0.4, 0.6, 1.75),
    "person-walking": (0.85, 0.6, 1.7),
    "child-walking": (0.6, 0.42, 1.15),
    "traffic-cone": (0.4, 0.4, 0.75),
    "round-sign": (0.1, 0.6, 2.5),
    "square-sign": (0.1, 0.6, 2.5),
    "diamond-sign": (0.1, 0.71, 2.55),
}


def mesh(name, tmp_path, material=""):
    spec = MeshSpec(**CATALOGUE[name].keys(material))
    return load_mesh(spec, tmp_path, dict(BUILT_IN_MATERIALS))


@pytest.mark.parametrize("name", library_names())
def test_an_object_stands_on_zero_with_the_size_of_such_a_thing(name, tmp_path):
    made, notes = mesh(name, tmp_path)
    low, high = made.vertices_m.min(axis=0), made.vertices_m.max(axis=0)
    assert notes == ()
    assert low[2] == pytest.approx(0.0, abs=0.01)
    np.testing.assert_allclose(high - low, SIZES_M[name], rtol=0.1, atol=0.05)
    np.testing.assert_allclose((high + low)[:2], 0.0, atol=0.2)


@pytest.mark.parametrize("name", library_names())
def test_the_parts_of_an_object_are_closed_and_wound_outwards(name):
    for part in library_mesh(f"hilsim:{name}").parts:
        corners = part.vertices[part.triangles] - part.vertices.mean(axis=0)
        volumes = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
        assert volumes.sum() > 0.0
        edges = np.sort(part.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()


def test_a_car_has_the_chosen_paint_and_parts_of_other_materials(tmp_path):
    made, _ = mesh("saloon", tmp_path, "paint_blue")
    assert {material.name for material in made.materials} == {"paint_blue", "window", "number_plate", "rubber"}


def test_a_user_can_choose_from_materials_that_are_built_in():
    assert {material for entry in CATALOGUE.values() for material in entry.materials} <= set(BUILT_IN_MATERIALS)
    assert {entry.group for entry in CATALOGUE.values()} == {"car", "person", "road"}


def test_an_unknown_object_is_an_error_that_lists_the_library(tmp_path):
    with pytest.raises(AssetError, match=r'must be one of the library \(hilsim:saloon, .*\), got "hilsim:tank"'):
        load_mesh(MeshSpec(file="hilsim:tank"), tmp_path, dict(BUILT_IN_MATERIALS))
    with pytest.raises(ConfigError, match='did you mean "hatchback"'):
        catalogue_entry("hachback")
