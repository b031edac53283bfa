"""Objects of a scene from an SDF world or model.

Rays of Gazebo's CPU lidars hit collisions, those of its GPU lidars visuals. A collision plane is infinite in a physics engine: here it extends ``PLANE_M`` to
each side. Round shapes are finely tessellated if there are few, and coarser if there are thousands.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from hilsim.errors import AssetError
from hilsim.limits import SCENE_TRIANGLES
from hilsim.world.assets.sdf_files import KINDS, ShapeFiles
from hilsim.world.geometry.frames import Quaternion, Vector
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import normalise
from hilsim.world.scene import primitives
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.polygons import cut_rings, nested_rings
from hilsim.world.scene.world import SceneObject
from hilsim.world.sdf.carriages import Carriage, Carriages
from hilsim.world.sdf.specs import SdfScene, SdfShape, skin_name

Sees = Literal["collisions", "visuals"]
PLANE_M = 500.0
"""Half extent of a collision plane."""
_MATERIAL = "concrete"
_FINEST_M = 1e-4
_ROUND_RATIO, _BALL_RATIO = 10_000.0, 1_000.0
"""Ratio of a radius to the sagitta of its facets: shapes curved in both directions have the square of the triangles."""
_ROUND_TRIANGLES = 4_000_000
"""Maximum number of triangles of all round shapes; the scene is built in 8 s."""
_COARSENESS = (1.0, 4.0, 16.0, 64.0)
"""Factors of the sagitta: the first that is sufficient is used."""


def sdf_objects(
    scene: SdfScene,
    materials: dict[str, Material],
    sees: Sees = "collisions",
    stand: Pose | None = None,
    carriages: Carriages | None = None,
) -> tuple[list[SceneObject], tuple[str, ...]]:
    """Objects for all shapes, and a sentence for each ignored one.

    Args:
        scene: Contents of the SDF file.
        materials: All materials of the rig by name.
        sees: Kind of shapes that rays hit.
        stand: Pose of the file's origin in the world.
        carriages: Motions of the file; None for none.

    Raises:
        AssetError: meshes cannot be used, named with file and line; or the scene exceeds a limit.
    """
    objects: list[SceneObject] = []
    moving = carriages or Carriages()
    notes = _of_actors(scene, sees)
    faults: list[str] = []
    made: dict[str, Mesh] = {}
    files = ShapeFiles(materials=materials, material=_MATERIAL, is_seen=sees == "visuals", notes=notes)
    shapes = scene.collisions if sees == "collisions" else scene.visuals
    coarseness = _coarseness(scene.path, shapes, notes)
    for shape in shapes:
        try:
            mesh = files.mesh(shape) if shape.kind in KINDS else _solid(shape, materials[_MATERIAL], made, coarseness)
        except AssetError as error:
            faults.append(shape.missing or f"{shape.where}: {shape.name}: {error}")
            continue
        if mesh is None:
            continue
        if shape.kind == "plane" and sees == "collisions":
            mesh = primitives.plane((2.0 * PLANE_M, 2.0 * PLANE_M), materials[_MATERIAL])
        within = _upright_to(shape.normal) if shape.kind == "plane" else files.stand(shape)
        objects.append(_placed(shape.name, mesh, (stand or Pose()) @ shape.pose @ within, moving.of(shape)))
    if faults:
        raise AssetError("\n".join(faults))
    return objects, tuple(notes)


def _placed(name: str, mesh: Mesh, pose: Pose, carriage: Carriage | None) -> SceneObject:
    if carriage is None:
        return SceneObject(mesh=mesh, placement=pose, name=name)
    return SceneObject(mesh=mesh.placed(carriage.offset(pose)), placement=carriage.track, name=name)


def _of_actors(scene: SdfScene, sees: Sees) -> list[str]:
    """Notes on the actors, for the user."""
    if sees == "collisions":
        return [f"{actor.where}: <actor> {actor.name} has no collision: lidars do not detect it, as in Gazebo" for actor in scene.actors]
    seen = {shape.actor: shape for shape in scene.visuals if shape.actor}
    skins = {shape.actor: shape for shape in scene.visuals if shape.actor and shape.name == skin_name(shape.actor)}
    notes = [
        f"{actor.where}: <actor> {actor.name} has neither a skin nor a visual: it is invisible" for actor in scene.actors if actor.name not in seen
    ]
    notes += [f"{skin.where}: <actor> {name} is moved as a whole: its limbs have the pose of {skin.file}" for name, skin in skins.items()]
    return notes


def _solid(shape: SdfShape, material: Material, made: dict[str, Mesh], coarseness: float) -> Mesh:
    """Mesh of a shape; equal shapes share it."""
    key = repr((shape.kind, shape.size_m, shape.radii_m, shape.length_m, shape.rings_m))
    if key not in made:
        made[key] = _SHAPES[shape.kind](shape, material, _tolerance_m(shape) * coarseness)
    return made[key]


def _prism(shape: SdfShape, material: Material) -> Mesh:
    """Prism of a polyline, from z = 0 upwards; a ring within another is a hole."""
    vertices, triangles, start = [], [], 0
    for rings in nested_rings([np.array(ring) for ring in shape.rings_m]):
        points, caps = np.concatenate(rings), cut_rings(rings)
        count, here = len(points), np.arange(len(points))
        after = np.concatenate([np.roll(part, -1) for part in np.split(here, np.cumsum([len(ring) for ring in rings])[:-1])])
        sides = [np.stack([here, after, after + count], axis=-1), np.stack([here, after + count, here + count], axis=-1)]
        vertices += [np.pad(points, ((0, 0), (0, 1)), constant_values=height_m) for height_m in (0.0, shape.length_m)]
        triangles += [start + part for part in (caps, caps + count, *sides)]
        start += 2 * count
    return Mesh.uniform(np.concatenate(vertices), np.concatenate(triangles), material)


def _coarseness(path: Path, shapes: Sequence[SdfShape], notes: list[str]) -> float:
    """Factor of the sagitta of round shapes, such that their triangles stay within the limit; a factor above 1 is reported in a note."""
    round_shapes = [shape for shape in shapes if shape.kind in _TRIANGLES]
    counts = {factor: _triangles(round_shapes, factor) for factor in _COARSENESS}
    chosen = next((factor for factor, count in counts.items() if count <= _ROUND_TRIANGLES), _COARSENESS[-1])
    SCENE_TRIANGLES.enforce(counts[chosen], str(path), AssetError)
    if chosen > 1.0:
        notes.append(
            f"{path}: {len(round_shapes):,} round shapes would be {counts[1.0]:,} triangles: they are {counts[chosen]:,}, "
            f"whose flats lie up to {chosen / _BALL_RATIO:.1g} of a radius inside"
        )
    return chosen


def _triangles(shapes: Sequence[SdfShape], coarseness: float) -> int:
    return sum(_TRIANGLES[shape.kind](max(shape.radii_m), _tolerance_m(shape) * coarseness) for shape in shapes)


def _tolerance_m(shape: SdfShape) -> float:
    """Largest sagitta of the facets of a round shape: at a grazing angle the range error is many times as large."""
    radius_m = max(shape.radii_m)
    return max(_FINEST_M, radius_m / (_ROUND_RATIO if shape.kind in {"cylinder", "cone"} else _BALL_RATIO))


def _upright_to(normal: Vector) -> Pose:
    """Shortest rotation from z to a direction."""
    x, y, z = np.array(normal) / np.linalg.norm(normal)
    if z < -1.0 + 1e-12:
        return Pose(orientation=(0.0, 1.0, 0.0, 0.0))
    half: Quaternion = (1.0 + float(z), -float(y), float(x), 0.0)
    return Pose(orientation=normalise(half))


_TRIANGLES: dict[str, Callable[[float, float], int]] = {
    "cylinder": primitives.cylinder_triangles,
    "sphere": primitives.sphere_triangles,
    "cone": primitives.cone_triangles,
    "capsule": primitives.capsule_triangles,
    "ellipsoid": primitives.sphere_triangles,
}
_SHAPES: dict[str, Callable[[SdfShape, Material, float], Mesh]] = {
    "plane": lambda shape, material, _: primitives.plane(shape.size_m[:2], material),
    "box": lambda shape, material, _: primitives.box(shape.size_m, material),
    "cylinder": lambda shape, material, depth_m: primitives.cylinder(shape.radii_m[0], shape.length_m, material, depth_m),
    "sphere": lambda shape, material, depth_m: primitives.sphere(shape.radii_m[0], material, depth_m),
    "cone": lambda shape, material, depth_m: primitives.cone(shape.radii_m[0], shape.length_m, material, depth_m),
    "capsule": lambda shape, material, depth_m: primitives.capsule(shape.radii_m[0], shape.length_m, material, depth_m),
    "ellipsoid": lambda shape, material, depth_m: primitives.ellipsoid(shape.radii_m, material, depth_m),
    "polyline": lambda shape, material, _: _prism(shape, material),
}
