"""Shapes are closed, wound outwards and as exact as they say."""

from collections import Counter

import numpy as np
import pytest

from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import (
    box,
    capsule,
    capsule_triangles,
    cone,
    cone_triangles,
    cylinder,
    cylinder_triangles,
    ellipsoid,
    plane,
    segments,
    sphere,
    sphere_triangles,
)

CONCRETE = DEFAULTS["concrete"]


def edges(mesh):
    return Counter((int(face[a]), int(face[b])) for face in mesh.triangles for a, b in ((0, 1), (1, 2), (2, 0)))


def volume_m3(mesh):
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    return float(np.sum(a * np.cross(b, c)) / 6.0)


CLOSED = {
    "box": (box((2.0, 3.0, 4.0), CONCRETE), 24.0),
    "cylinder": (cylinder(0.5, 2.0, CONCRETE, tolerance_m=1e-5), np.pi * 0.25 * 2.0),
    "sphere": (sphere(0.5, CONCRETE, tolerance_m=1e-4), 4.0 / 3.0 * np.pi * 0.125),
    "cone": (cone(0.5, 2.0, CONCRETE, tolerance_m=1e-5), np.pi * 0.25 * 2.0 / 3.0),
    "capsule": (capsule(0.5, 2.0, CONCRETE, tolerance_m=1e-4), np.pi * 0.25 * 2.0 + 4.0 / 3.0 * np.pi * 0.125),
    "ellipsoid": (ellipsoid((0.5, 1.0, 2.0), CONCRETE, tolerance_m=1e-4), 4.0 / 3.0 * np.pi),
}


@pytest.mark.parametrize("name", CLOSED)
def test_each_edge_of_a_solid_is_used_once_in_each_direction(name):
    used = edges(CLOSED[name][0])
    assert all(count == 1 and used[b, a] == 1 for (a, b), count in used.items())


@pytest.mark.parametrize("name", CLOSED)
def test_a_solid_is_wound_outwards_and_has_its_volume(name):
    mesh, expected = CLOSED[name]
    assert volume_m3(mesh) == pytest.approx(expected, rel=1e-3)


def test_a_plane_faces_up_and_has_its_size():
    mesh = plane((4.0, 2.0), CONCRETE)
    assert np.ptp(mesh.vertices_m, axis=0).tolist() == [4.0, 2.0, 0.0]
    a, b, c = mesh.vertices_m[mesh.triangles[0]]
    assert np.cross(b - a, c - a)[2] > 0.0


def test_a_box_is_centred():
    np.testing.assert_array_equal(box((2.0, 3.0, 4.0), CONCRETE).vertices_m.max(axis=0), [1.0, 1.5, 2.0])


@pytest.mark.extended
@pytest.mark.parametrize("radius_m", [0.02, 0.5, 30.0])
@pytest.mark.parametrize("tolerance_m", [0.0005, 0.004])
def test_no_flat_of_a_sphere_lies_deeper_than_the_tolerance(radius_m, tolerance_m):
    mesh = sphere(radius_m, CONCRETE, tolerance_m=tolerance_m)
    normals = np.cross(*(mesh.vertices_m[mesh.triangles[:, i]] - mesh.vertices_m[mesh.triangles[:, 0]] for i in (1, 2)))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    depth_m = radius_m - np.sum(normals * mesh.vertices_m[mesh.triangles[:, 0]], axis=1)
    assert depth_m.max() <= tolerance_m
    np.testing.assert_allclose(np.linalg.norm(mesh.vertices_m, axis=1), radius_m, rtol=1e-12)


@pytest.mark.extended
@pytest.mark.parametrize("radius_m", [0.02, 0.5, 30.0])
def test_no_flat_of_a_cylinder_lies_deeper_than_the_tolerance_and_one_flat_fewer_would(radius_m):
    count = segments(radius_m, 0.001)
    assert radius_m * (1.0 - np.cos(np.pi / count)) <= 0.001
    assert count == 8 or radius_m * (1.0 - np.cos(np.pi / (count - 1))) > 0.001


def test_a_sphere_spends_few_triangles():
    assert len(sphere(0.5, CONCRETE).triangles) < 5000


def test_a_tolerance_wider_than_the_shape_still_gives_a_solid():
    assert volume_m3(cylinder(0.01, 1.0, CONCRETE, tolerance_m=1.0)) > 0.8 * np.pi * 1e-4
    assert volume_m3(sphere(0.01, CONCRETE, tolerance_m=1.0)) > 0.5 * 4.0 / 3.0 * np.pi * 1e-6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: plane((1.0, 0.0), CONCRETE), "size_m must be above 0"),
        (lambda: box((1.0, -1.0, 1.0), CONCRETE), r"size_m must be above 0, got \(1.0, -1.0"),
        (lambda: cylinder(1.0, 0.0, CONCRETE), "height_m must be above 0"),
        (lambda: cylinder(0.0, 1.0, CONCRETE), "radius_m must be above 0, got 0.0"),
        (lambda: sphere(float("nan"), CONCRETE, tolerance_m=0.0), "radius_m must be above 0, got nan; tolerance_m must be above 0"),
    ],
)
def test_a_shape_without_extent_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.extended
@pytest.mark.parametrize("radius_m", [0.02, 0.5, 30.0])
def test_no_flat_of_a_capsule_or_an_ellipsoid_lies_deeper_than_the_tolerance(radius_m):
    weight = np.random.default_rng(1).dirichlet((1.0, 1.0, 1.0), 50)
    for mesh, depth_m in (
        (capsule(radius_m, 2.0, CONCRETE, 0.001), lambda p: radius_m - np.linalg.norm(p - np.clip(p, (0, 0, -1.0), (0, 0, 1.0)), axis=-1)),
        (
            ellipsoid((radius_m, radius_m, 0.5 * radius_m), CONCRETE, 0.001),
            lambda p: radius_m * (1.0 - np.linalg.norm(p / (radius_m, radius_m, 0.5 * radius_m), axis=-1)),
        ),
    ):
        points = np.einsum("wc,fcx->fwx", weight, mesh.vertices_m[mesh.triangles])
        depth = depth_m(points)
        assert depth.min() >= -1e-9
        assert depth.max() <= 0.001


def test_a_cone_is_placed_with_its_tip_up_and_its_middle_at_zero():
    mesh = cone(0.5, 2.0, CONCRETE)
    top = mesh.vertices_m[np.argmax(mesh.vertices_m[:, 2])]
    assert top.tolist() == [0.0, 0.0, 1.0]
    assert mesh.vertices_m[:, 2].min() == -1.0


@pytest.mark.parametrize("radius_m", [0.02, 0.5, 3.0])
def test_expected_triangle_count_matches_mesh(radius_m):
    assert len(cylinder(radius_m, 1.0, CONCRETE).triangles) == cylinder_triangles(radius_m, 0.001)
    assert len(sphere(radius_m, CONCRETE).triangles) == sphere_triangles(radius_m, 0.001)
    assert len(cone(radius_m, 1.0, CONCRETE).triangles) == cone_triangles(radius_m, 0.001)
    assert len(capsule(radius_m, 1.0, CONCRETE).triangles) == capsule_triangles(radius_m, 0.001)
