"""Triangle meshes as callers and files provide them: the input of ``world.scene.world.build_world``."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.scene.materials import Material

_AT_ONCE = 65_536
"""Number of triangles whose areas are computed in one step: all at once would take ten times the mesh's own memory."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles in a frame of their own. Equality is identity: objects with the same ``Mesh`` share its memory in the world.

    Lists are accepted and converted to arrays. Triangles without area are kept (no ray hits them), so row numbers do not change.

    Attributes:
        vertices_m: ``float64[n, 3]``, vertices.
        triangles: ``int32[m, 3]``, rows of ``vertices_m``; either winding, rays hit both sides.
        material: ``int32[m]``, row of ``materials`` for each triangle.
        materials: Materials used, at least one.
        frame: Pose of the frame to which textures and openings belong: that of the shape before it was placed.
    """

    vertices_m: npt.NDArray[np.float64]
    triangles: npt.NDArray[np.int32]
    material: npt.NDArray[np.int32]
    materials: tuple[Material, ...]
    frame: Pose = field(default_factory=Pose)

    def __post_init__(self) -> None:
        vertices = np.ascontiguousarray(self.vertices_m, dtype=np.float64)
        triangles = _indices("triangles", self.triangles)
        material = _indices("material", self.material)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or len(vertices) == 0:
            raise ValueError(f"vertices_m must have shape (n, 3) with n > 0, got {vertices.shape}")
        if triangles.ndim != 2 or triangles.shape[1] != 3 or len(triangles) == 0:
            raise ValueError(f"triangles must have shape (m, 3) with m > 0, got {triangles.shape}")
        if material.shape != (len(triangles),):
            raise ValueError(f"material must have shape ({len(triangles)},), one a triangle, got {material.shape}")
        _refuse_row("vertex", ~np.isfinite(vertices).all(axis=1), "must be finite", vertices)
        outside = ((triangles < 0) | (triangles >= len(vertices))).any(axis=1)
        _refuse_row("triangle", outside, f"must name vertices 0 to {len(vertices) - 1}", triangles)
        unknown = (material < 0) | (material >= len(self.materials))
        _refuse_row("triangle", unknown, f"must name a material 0 to {len(self.materials) - 1}", material)
        object.__setattr__(self, "vertices_m", vertices)
        object.__setattr__(self, "triangles", triangles.astype(np.int32, copy=False))
        object.__setattr__(self, "material", material.astype(np.int32, copy=False))
        object.__setattr__(self, "materials", tuple(self.materials))
        if not any(areas_m2(vertices[triangles[row : row + _AT_ONCE]]).any() for row in range(0, len(triangles), _AT_ONCE)):
            raise ValueError(f"mesh must have a triangle with an area, got {len(triangles)} without")

    @classmethod
    def uniform(cls, vertices_m: npt.ArrayLike, triangles: npt.ArrayLike, material: Material) -> "Mesh":
        """Build a mesh of one material."""
        faces = np.asarray(triangles)
        return cls(np.asarray(vertices_m, dtype=np.float64), faces, np.zeros(len(faces), dtype=np.int32), (material,))

    def placed(self, pose: Pose) -> "Mesh":
        """The same triangles in the parent frame, where this mesh's frame has ``pose``."""
        if pose == Pose():
            return self
        vertices_m = self.vertices_m @ matrix_from_quaternion(pose.orientation).T + np.array(pose.position_m)
        return Mesh(vertices_m, self.triangles, self.material, self.materials, pose @ self.frame)


def areas_m2(corners: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Areas ``float64[m]`` of triangles ``float64[m, 3, 3]``."""
    areas: npt.NDArray[np.float64] = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return areas


def _indices(name: str, values: npt.ArrayLike) -> npt.NDArray[np.integer]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers, got {array.dtype}")
    return np.ascontiguousarray(array) if array.dtype == np.int32 else np.ascontiguousarray(array, dtype=np.int64)


def _refuse_row(thing: str, bad: npt.NDArray[np.bool_] | np.bool_, rule: str, values: npt.NDArray[np.generic]) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ValueError(f"{thing} {rows[0]} {rule}, got {values[rows[0]].tolist()}")
