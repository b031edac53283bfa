"""Meshes of plane, box, cylinder, cone, capsule, sphere and ellipsoid, centred on their origins, wound counter-clockwise seen from outside.

Round shapes have their vertices on the true surface; the facets are inside it by at most ``tolerance_m`` (the sagitta of a facet).
"""

import math

import numpy as np
import numpy.typing as npt

from hilsim.errors import require
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh

TOLERANCE_M = 0.001
_MIN_SEGMENTS = 8

# Corner 4a + 2b + c of a box is at x = a, y = b, z = c; two triangles a side.
_BOX_TRIANGLES = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]


def plane(size_m: tuple[float, float], material: Material) -> Mesh:
    """Mesh of a rectangle in the xy plane, facing +z."""
    require((min(size_m) > 0.0, f"size_m must be above 0, got {size_m}"))
    x, y = 0.5 * size_m[0], 0.5 * size_m[1]
    return Mesh.uniform([[-x, -y, 0.0], [x, -y, 0.0], [x, y, 0.0], [-x, y, 0.0]], [[0, 1, 2], [0, 2, 3]], material)


def box(size_m: tuple[float, float, float], material: Material) -> Mesh:
    """Mesh of a box, twelve triangles."""
    require((min(size_m) > 0.0, f"size_m must be above 0, got {size_m}"))
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    return Mesh.uniform(signs * np.array(size_m), _BOX_TRIANGLES, material)


def cylinder(radius_m: float, height_m: float, material: Material, tolerance_m: float = TOLERANCE_M) -> Mesh:
    """Mesh of a cylinder about z with both caps."""
    require((height_m > 0.0, f"height_m must be above 0, got {height_m}"))
    count = segments(radius_m, tolerance_m)
    angle = np.arange(count) * (2.0 * math.pi / count)
    ring = np.stack([radius_m * np.cos(angle), radius_m * np.sin(angle)], axis=1)
    z = 0.5 * height_m
    vertices = np.concatenate([_at_height(ring, -z), _at_height(ring, z), [[0.0, 0.0, -z], [0.0, 0.0, z]]])
    here = np.arange(count)
    there = (here + 1) % count
    below, above = np.full(count, 2 * count), np.full(count, 2 * count + 1)
    rows = [(here, there, there + count), (here, there + count, here + count), (there, here, below), (here + count, there + count, above)]
    return Mesh.uniform(vertices, np.concatenate([np.stack(row, axis=1) for row in rows]), material)


def sphere(radius_m: float, material: Material, tolerance_m: float = TOLERANCE_M) -> Mesh:
    """Mesh of a sphere: an icosahedron whose faces are divided into ``n^2`` triangles and projected onto the sphere."""
    require((radius_m > 0.0, f"radius_m must be above 0, got {radius_m}"), (tolerance_m > 0.0, f"tolerance_m must be above 0, got {tolerance_m}"))
    corners, faces = _icosahedron()
    vertices, triangles = _cut(corners, faces, _sphere_cuts(radius_m, tolerance_m))
    return Mesh.uniform(vertices / np.linalg.norm(vertices, axis=1, keepdims=True) * radius_m, triangles, material)


def ellipsoid(radii_m: tuple[float, float, float], material: Material, tolerance_m: float = TOLERANCE_M) -> Mesh:
    """Mesh of an ellipsoid with axes x, y and z: a scaled sphere."""
    require((min(radii_m) > 0.0, f"radii_m must be above 0, got {radii_m}"))
    unit = sphere(1.0, material, tolerance_m / max(radii_m))
    return Mesh(unit.vertices_m * np.array(radii_m), unit.triangles, unit.material, unit.materials)


def cone(radius_m: float, height_m: float, material: Material, tolerance_m: float = TOLERANCE_M) -> Mesh:
    """Mesh of a cone about z, tip up, with a cap at the base; the origin is at half its height."""
    require((height_m > 0.0, f"height_m must be above 0, got {height_m}"))
    z = 0.5 * height_m
    return _revolved([(radius_m, -z)], (-z, z), segments(radius_m, tolerance_m), material)


def capsule(radius_m: float, length_m: float, material: Material, tolerance_m: float = TOLERANCE_M) -> Mesh:
    """Mesh of a cylinder of a given length about z, with a hemisphere at each end."""
    require((length_m > 0.0, f"length_m must be above 0, got {length_m}"))
    count = _capsule_segments(radius_m, tolerance_m)
    rise = [0.5 * math.pi * step / (count // 4) for step in range(count // 4)]
    upper = [(radius_m * math.cos(angle), 0.5 * length_m + radius_m * math.sin(angle)) for angle in rise]
    rings = [(radius, -z) for radius, z in reversed(upper)] + upper
    end = 0.5 * length_m + radius_m
    return _revolved(rings, (-end, end), count, material)


def cone_triangles(radius_m: float, tolerance_m: float) -> int:
    """Number of triangles of ``cone``."""
    return 2 * segments(radius_m, tolerance_m)


def capsule_triangles(radius_m: float, tolerance_m: float) -> int:
    """Number of triangles of ``capsule``."""
    count = _capsule_segments(radius_m, tolerance_m)
    return count * count


def _capsule_segments(radius_m: float, tolerance_m: float) -> int:
    """Number of facets around: facets of the ends are curved in both directions, so their sagitta is twice as large."""
    return 4 * math.ceil(segments(radius_m, 0.5 * tolerance_m) / 4)


def _revolved(rings: list[tuple[float, float]], ends_m: tuple[float, float], count: int, material: Material) -> Mesh:
    """Mesh of a polyline revolved about z.

    Args:
        rings: Radius and z of each corner of the polyline, from below.
        ends_m: z of the polyline's two ends on the axis.
        count: Number of facets around.
        material: Material of the whole mesh.
    """
    angle = np.arange(count) * (2.0 * math.pi / count)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.concatenate([*(_at_height(radius * circle, z) for radius, z in rings), [[0.0, 0.0, ends_m[0]], [0.0, 0.0, ends_m[1]]]])
    here = np.arange(count)
    there = (here + 1) % count
    top = (len(rings) - 1) * count
    below, above = np.full(count, len(rings) * count), np.full(count, len(rings) * count + 1)
    faces = [(there, here, below), (here + top, there + top, above)]
    for ring in range(len(rings) - 1):
        low, high = ring * count, (ring + 1) * count
        faces += [(here + low, there + low, there + high), (here + low, there + high, here + high)]
    return Mesh.uniform(vertices, np.concatenate([np.stack(face, axis=1) for face in faces]), material)


def sphere_triangles(radius_m: float, tolerance_m: float) -> int:
    """Number of triangles of ``sphere``."""
    return 20 * _sphere_cuts(radius_m, tolerance_m) ** 2


def cylinder_triangles(radius_m: float, tolerance_m: float) -> int:
    """Number of triangles of ``cylinder``."""
    return 4 * segments(radius_m, tolerance_m)


def _sphere_cuts(radius_m: float, tolerance_m: float) -> int:
    """Number of parts into which each edge of the icosahedron is divided."""
    # The widest small face has a circumradius of at most that of an icosahedron's face (0.6071 radii) / n, scaled by at most
    # 1 / 0.7947 (the distance of a face from the centre); its sagitta is then 1 - sqrt(1 - c^2). test_primitives.py measures the result.
    reach = math.sqrt(1.0 - (1.0 - min(tolerance_m / radius_m, 0.9)) ** 2)
    return max(2, math.ceil(0.6071 / 0.7947 / reach))


def segments(radius_m: float, tolerance_m: float) -> int:
    """Number of facets of a circle whose sagitta is at most ``tolerance_m``."""
    require((radius_m > 0.0, f"radius_m must be above 0, got {radius_m}"), (tolerance_m > 0.0, f"tolerance_m must be above 0, got {tolerance_m}"))
    if tolerance_m >= radius_m:
        return _MIN_SEGMENTS
    # 2 asin(sqrt(t / 2r)) is acos(1 - t/r) without loss of precision at a small tolerance.
    half_angle = 2.0 * math.asin(math.sqrt(0.5 * tolerance_m / radius_m))
    return max(_MIN_SEGMENTS, math.ceil(math.pi / half_angle))


def _at_height(ring: npt.NDArray[np.float64], z: float) -> npt.NDArray[np.float64]:
    return np.column_stack([ring, np.full(len(ring), z)])


def _icosahedron() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Twelve unit vertices and twenty faces wound outwards."""
    golden = (1.0 + math.sqrt(5.0)) / 2.0
    corners = np.array([turned for a in (-1.0, 1.0) for b in (-golden, golden) for turned in ((0.0, a, b), (a, b, 0.0), (b, 0.0, a))])
    rows = range(len(corners))
    triples = [(i, j, k) for i in rows for j in rows for k in rows if i < j < k]
    faces = [
        t for t in triples if all(np.isclose(np.linalg.norm(corners[a] - corners[b]), 2.0) for a, b in ((t[0], t[1]), (t[1], t[2]), (t[0], t[2])))
    ]
    outward = [(i, j, k) if np.linalg.det(corners[[i, j, k]]) > 0.0 else (i, k, j) for i, j, k in faces]
    return corners / np.linalg.norm(corners, axis=1, keepdims=True), np.array(outward)


def _cut(corners: npt.NDArray[np.float64], faces: npt.NDArray[np.int64], cuts: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Divide each face into ``cuts^2`` flat triangles; vertices on a shared edge are computed identically from both sides, so that no crack opens."""
    index = {(i, j): row for row, (i, j) in enumerate((i, j) for i in range(cuts + 1) for j in range(cuts + 1 - i))}
    weight = np.array([(cuts - i - j, i, j) for i, j in index]) / cuts
    up = [(index[i, j], index[i + 1, j], index[i, j + 1]) for i in range(cuts) for j in range(cuts - i)]
    down = [(index[i + 1, j], index[i + 1, j + 1], index[i, j + 1]) for i in range(cuts - 1) for j in range(cuts - 1 - i)]
    points = np.einsum("wc,fcx->fwx", weight, corners[faces]).reshape(-1, 3)
    triangles = (np.array(up + down)[np.newaxis] + (np.arange(len(faces)) * len(weight))[:, np.newaxis, np.newaxis]).reshape(-1, 3)
    _, first, inverse = np.unique(np.round(points, 9), axis=0, return_index=True, return_inverse=True)
    return points[first], inverse.reshape(-1)[triangles]
