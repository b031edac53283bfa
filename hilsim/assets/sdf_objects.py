"""What stands in an SDF world or model, as objects of a scene.

Rays of Gazebo's lidars without a GPU meet collisions, those of its cameras' kin visuals. A collision that is a plane has no end in a physics engine: here it reaches ``PLANE_M`` to
each side.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from hilsim.assets.meshes import load_mesh
from hilsim.errors import AssetError
from hilsim.geometry.frames import Quaternion, Vector
from hilsim.geometry.poses import Pose
from hilsim.geometry.rotations import normalise
from hilsim.scene import primitives
from hilsim.scene.materials import Material
from hilsim.scene.mesh import Mesh
from hilsim.scene.object_specs import MeshSpec
from hilsim.scene.world import SceneObject
from hilsim.sdf.specs import SdfScene, SdfShape

Sees = Literal["collisions", "visuals"]
PLANE_M = 500.0
"""How far a collision's plane reaches from where it stands."""
SOLID_KINDS = frozenset({"box", "sphere", "cylinder", "capsule", "ellipsoid", "cone"})
"""Shapes with an inside."""
_MATERIAL = "concrete"
_FINEST_M = 1e-4
_ROUND_RATIO, _BALL_RATIO = 10_000.0, 1_000.0
"""A radius to the depth of a flat: what is bent both ways has its triangles squared."""


def sdf_objects(
    scene: SdfScene, materials: dict[str, Material], sees: Sees = "collisions", stand: Pose | None = None
) -> tuple[list[SceneObject], tuple[str, ...]]:
    """Every shape, and a sentence for each that is left out.

    Args:
        scene: What was read.
        materials: Every material of the rig by name.
        sees: Which shapes.
        stand: Where the file's own zero stands in the world.

    Raises:
        AssetError: naming every mesh that cannot be used, with file and line.
    """
    objects: list[SceneObject] = []
    notes: list[str] = []
    faults: list[str] = []
    read: dict[str, Mesh] = {}
    for shape in scene.collisions if sees == "collisions" else scene.visuals:
        if shape.kind == "heightmap":
            notes.append(
                f"{shape.where}: a <heightmap> is not supported: {shape.name} is left out; a rig's [[scene.terrain]] takes 16-bit PNG and GeoTIFF"
            )
            continue
        try:
            mesh = _mesh_of(shape, materials, read, notes) if shape.kind == "mesh" else _SHAPES[shape.kind](shape, materials[_MATERIAL])
        except AssetError as error:
            faults.append(f"{shape.where}: {shape.name}: {error}")
            continue
        if shape.kind == "plane" and sees == "collisions":
            mesh = primitives.plane((2.0 * PLANE_M, 2.0 * PLANE_M), materials[_MATERIAL])
        turn = _upright_to(shape.normal) if shape.kind == "plane" else Pose()
        objects.append(SceneObject(mesh=mesh, placement=(stand or Pose()) @ shape.pose @ turn, name=shape.name))
    if faults:
        raise AssetError("\n".join(faults))
    return objects, tuple(notes)


def _mesh_of(shape: SdfShape, materials: dict[str, Material], read: dict[str, Mesh], notes: list[str]) -> Mesh:
    """The mesh of a file, stretched; a file is read once."""
    file = shape.file
    if file is None:
        raise AssertionError("the reader gives every mesh its file")
    key = repr((file, shape.scale))
    if key not in read:
        spec = MeshSpec(file=str(file), material=_MATERIAL)
        mesh, _ = load_mesh(spec, Path("/"), materials)
        read[key] = Mesh(mesh.vertices_m * np.array(shape.scale), mesh.triangles, mesh.material, mesh.materials)
    if shape.submesh:
        notes.append(f'{shape.where}: <submesh> "{shape.submesh}" is not supported: {shape.name} is the whole of {file.name}')
    return read[key]


def _tolerance_m(shape: SdfShape) -> float:
    """How far the flats of a round shape may lie inside its surface: at a grazing angle a ray's range is off by many times as much."""
    radius_m = max(shape.radii_m)
    return max(_FINEST_M, radius_m / (_ROUND_RATIO if shape.kind in {"cylinder", "cone"} else _BALL_RATIO))


def _upright_to(normal: Vector) -> Pose:
    """The shortest turn from z to a direction."""
    x, y, z = np.array(normal) / np.linalg.norm(normal)
    if z < -1.0 + 1e-12:
        return Pose(orientation=(0.0, 1.0, 0.0, 0.0))
    half: Quaternion = (1.0 + float(z), -float(y), float(x), 0.0)
    return Pose(orientation=normalise(half))


_SHAPES: dict[str, Callable[[SdfShape, Material], Mesh]] = {
    "plane": lambda shape, material: primitives.plane(shape.size_m[:2], material),
    "box": lambda shape, material: primitives.box(shape.size_m, material),
    "cylinder": lambda shape, material: primitives.cylinder(shape.radii_m[0], shape.length_m, material, _tolerance_m(shape)),
    "sphere": lambda shape, material: primitives.sphere(shape.radii_m[0], material, _tolerance_m(shape)),
    "cone": lambda shape, material: primitives.cone(shape.radii_m[0], shape.length_m, material, _tolerance_m(shape)),
    "capsule": lambda shape, material: primitives.capsule(shape.radii_m[0], shape.length_m, material, _tolerance_m(shape)),
    "ellipsoid": lambda shape, material: primitives.ellipsoid(shape.radii_m, material, _tolerance_m(shape)),
}
