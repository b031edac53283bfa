"""A vertex far from all others is named before anything is built of it."""

import numpy as np
import pytest
import trimesh

from hilsim.errors import AssetError, ConfigError
from hilsim.world.assets.meshes import load_mesh
from hilsim.world.scene.object_specs import MeshSpec, MotionSpec, WaypointSpec
from hilsim.world.scene.shape_specs import BoxSpec, PlaneSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS, SceneSpec
from tests.unit.assets.worlds import build_scene

STRAY = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [6.6e6, 6.6e6, 5.0], [0.0, 1.0, 0.0]]


def load(folder, name, **rest):
    return load_mesh(MeshSpec(file=name, **rest), folder, BUILT_IN_MATERIALS)


def test_a_stray_vertex_of_an_obj_is_named_with_its_line(tmp_path):
    (tmp_path / "a.obj").write_text("# a street\nv 0 0 0\nv 1 0 0\nv 6.6e6 6.6e6 5\nf 1 2 3\n")
    with pytest.raises(AssetError, match=r"a\.obj: vertex 3 \(line 4\) must be at most 200 km from the rest, got 9,334 km: a stray vertex\?"):
        load(tmp_path, "a.obj")


@pytest.mark.parametrize("suffix", ["ply", "stl", "glb", "gltf"])
def test_a_stray_vertex_is_named_in_every_format(tmp_path, suffix):
    mesh = trimesh.Trimesh(STRAY, [[0, 1, 3], [0, 1, 2]], process=False)
    if suffix == "gltf":
        for name, data in trimesh.Scene(mesh).export(file_type="gltf").items():
            (tmp_path / (f"a.{suffix}" if name.endswith(".gltf") else name)).write_bytes(data)
    else:
        mesh.export(tmp_path / f"a.{suffix}")
    with pytest.raises(AssetError, match=r"vertex \d+ must be at most 200 km from the rest, got 9,33\d km: a stray vertex"):
        load(tmp_path, f"a.{suffix}")


def test_a_stray_vertex_that_no_triangle_uses_does_no_harm(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 6.6e6 6.6e6 5\nf 1 2 3\n")
    assert len(load(tmp_path, "a.obj")[0].triangles) == 1


def test_a_mesh_in_utm_coordinates_is_near_itself(tmp_path):
    (tmp_path / "a.obj").write_text("v 691000 5334000 520\nv 691001 5334000 520\nv 691000 5334001 520\nf 1 2 3\n")
    assert len(load(tmp_path, "a.obj")[0].triangles) == 1


def test_coordinates_beyond_what_float64_resolves_are_refused(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 1e308 0 5\nf 1 2 3\n")
    with pytest.raises(AssetError, match=r"vertex 3 \(line 3\) must have coordinates of at most 100,000,000 m, got \(1e\+308, 0\.0, 5\.0\)"):
        load(tmp_path, "a.obj")


def test_a_scale_that_makes_coordinates_infinite_is_refused_without_a_warning(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 1e305 0 5\nf 1 2 3\n")
    with pytest.raises(AssetError, match=r"vertex 3 \(line 3\) must be finite"):
        load(tmp_path, "a.obj", scale=1e5)


def test_a_plane_that_would_be_cut_into_pieces_without_end_is_refused(tmp_path):
    scene = SceneSpec(plane=(PlaneSpec(size_m=(1e8, 1e8)),))
    with pytest.raises(
        ConfigError, match=r"scene: triangles longer than 256 m must be cut into at most 65,536 pieces, got more: the longest is 141,421"
    ):
        build_scene(scene, tmp_path)


def test_a_plane_of_twenty_kilometres_is_built(tmp_path):
    world, _ = build_scene(SceneSpec(plane=(PlaneSpec(size_m=(20_000.0, 20_000.0)),)), tmp_path)
    assert len(world.corners) > 2


def test_a_box_too_small_to_have_an_area_is_refused_by_its_size():
    with pytest.raises(ValueError, match=r"size_m must be at least 1e-06 m and at most 1e\+08, got \(1e-300, 1\.0, 1\.0\)"):
        BoxSpec(size_m=(1e-300, 1.0, 1.0))


def test_a_box_of_the_smallest_size_is_built_where_it_is_and_where_it_moves(tmp_path):
    way = MotionSpec(waypoints=(WaypointSpec(time_s=0.0, position_m=(0.0, 0.0, 0.0)), WaypointSpec(time_s=1.0, position_m=(1.0, 0.0, 0.0))))
    small = (1e-6, 1e-6, 1e-6)
    world, _ = build_scene(SceneSpec(box=(BoxSpec(size_m=small), BoxSpec(size_m=small, motion=way))), tmp_path)
    assert np.isfinite(world.corners).all()
