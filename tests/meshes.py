"""Meshes put together, for tests and benchmarks."""

import numpy as np

from hilsim.world.scene.mesh import Mesh


def areas_m2(mesh: Mesh) -> np.ndarray:
    """Area of each triangle, ``float64[m]``."""
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def join_meshes(meshes: tuple[Mesh, ...]) -> Mesh:
    """One mesh with all triangles, in order; equal materials become one.

    Raises:
        ValueError: there is no mesh.
    """
    if not meshes:
        raise ValueError("meshes must be at least one, got none")
    materials = tuple(dict.fromkeys(material for mesh in meshes for material in mesh.materials))
    row = {material: index for index, material in enumerate(materials)}
    starts = np.cumsum([0] + [len(mesh.vertices_m) for mesh in meshes])
    return Mesh(
        np.concatenate([mesh.vertices_m for mesh in meshes]),
        np.concatenate([mesh.triangles + start for mesh, start in zip(meshes, starts, strict=False)]),
        np.concatenate([np.array([row[material] for material in mesh.materials], dtype=np.int32)[mesh.material] for mesh in meshes]),
        materials,
    )
