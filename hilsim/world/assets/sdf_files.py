"""Shapes of an SDF file that need files: meshes and heightmaps, each file read once.

Gazebo's physics engines use a mesh as a whole and ignore its ``<submesh>`` (gz-sim, ``Physics.cc``; gz-physics, ``CustomMeshShape.cc``), and ignore
a heightmap's ``<pos>``; rendering applies both (gz-rendering, ``Ogre2MeshFactory.cc``). Collisions and visuals behave the same here.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hilsim.errors import AssetError
from hilsim.world.assets import heightmaps
from hilsim.world.assets.extent import check_extent
from hilsim.world.assets.heightmaps import heightmap_mesh
from hilsim.world.assets.mesh_parts import MeshFile
from hilsim.world.assets.meshes import SUFFIXES, Submesh, mesh_of, read_mesh
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.object_specs import MeshSpec
from hilsim.world.sdf.elements import shown
from hilsim.world.sdf.specs import SdfShape

KINDS = frozenset({"mesh", "heightmap"})
_SUFFIXES = {"mesh": SUFFIXES, "heightmap": heightmaps.SUFFIXES}


@dataclass(kw_only=True, eq=False)
class ShapeFiles:
    """Maker of the meshes of such shapes.

    Attributes:
        materials: All materials of the rig by name.
        material: Name of the shapes' material.
        is_seen: Whether they are visuals, not collisions.
        notes: Notes on ignored shapes, one sentence each; appended here.
    """

    materials: dict[str, Material]
    material: str
    is_seen: bool
    notes: list[str]
    _read: dict[Path, MeshFile] = field(default_factory=dict)
    _meshes: dict[str, Mesh] = field(default_factory=dict)
    _grounds: dict[str, tuple[Mesh | None, str]] = field(default_factory=dict)

    def mesh(self, shape: SdfShape) -> Mesh | None:
        """Mesh of a shape, in its own frame; None, with a note, if it is ignored.

        Raises:
            AssetError: the file cannot be used; the message names it and the reason.
        """
        known, suffix = _SUFFIXES[shape.kind], Path(shape.uri).suffix if shape.file is None else shape.file.suffix
        if suffix.lower() not in known:
            thing = "mesh" if shape.kind == "mesh" else "<heightmap>"
            got = shown(str(shape.file or shape.uri))
            self._tell(shape, f'a {thing} of format "{shown(suffix)}" is not supported ({", ".join(known)}): {shape.name} is left out, {got}')
            return None
        if shape.file is None:
            raise AssetError(shape.missing)
        if shape.kind == "heightmap":
            return self._heightmap(shape)
        return self._mesh(shape, shape.file)

    def stand(self, shape: SdfShape) -> Pose:
        """Pose of the mesh in the shape's frame."""
        return Pose(position_m=shape.position_m) if self.is_seen else Pose()

    def _tell(self, shape: SdfShape, text: str) -> None:
        self.notes.append(f"{shape.where}: {text}")

    def _heightmap(self, shape: SdfShape) -> Mesh | None:
        key = repr((shape.file, shape.size_m, shape.sampling))
        if key not in self._grounds:
            self._grounds[key] = heightmap_mesh(shape, self.materials[self.material], is_seen=self.is_seen)
        mesh, why = self._grounds[key]
        if mesh is None:
            self._tell(shape, f"{why}: {shape.name} is left out")
        elif any(shape.position_m) and not self.is_seen:
            self._tell(shape, f"<pos> of a heightmap moves only the visual, as in Gazebo: {shape.name} is placed by its pose")
        return mesh

    def _mesh(self, shape: SdfShape, file: Path) -> Mesh:
        if file not in self._read:
            self._read[file] = read_mesh(file)
        content = self._read[file]
        submesh = Submesh(shape.submesh, shape.is_centred) if shape.submesh and self.is_seen and content.has_names else None
        if shape.submesh and submesh is None:
            why = "is not supported in a file of this format" if self.is_seen else "is ignored for collisions, as in Gazebo"
            self._tell(shape, f'<submesh> "{shape.submesh}" {why}: {shape.name} is the whole of {file.name}')
        key = repr((file, shape.scale, submesh))
        if key not in self._meshes:
            mesh, _ = mesh_of(file, content, MeshSpec(file=str(file), material=self.material), self.materials, submesh)
            vertices = mesh.vertices_m * np.array(shape.scale)
            check_extent(file, vertices, mesh.triangles, lambda row: f"vertex {row}, scaled by {shape.scale},")
            self._meshes[key] = Mesh(vertices, mesh.triangles, mesh.material, mesh.materials)
        return self._meshes[key]
