"""Construction of a world from a rig's ``[scene]`` table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilsim.errors import AssetError, ConfigError
from hilsim.world.assets.meshes import load_mesh
from hilsim.world.assets.standing import with_standing
from hilsim.world.assets.street.street import street_objects
from hilsim.world.assets.terrain import load_terrain
from hilsim.world.assets.tracks import motion_track
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.scene import primitives
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.object_specs import MeshSpec, ObjectSpec, TerrainSpec
from hilsim.world.scene.shape_specs import BoxSpec, CapsuleSpec, ConeSpec, CylinderSpec, EllipsoidSpec, PlaneSpec, SphereSpec
from hilsim.world.scene.specs import SceneSpec
from hilsim.world.scene.world import SceneObject

if TYPE_CHECKING:
    from hilsim.world.sdf.specs import FileStamp, SdfScene


@dataclass(frozen=True, kw_only=True, eq=False)
class Assets:
    """Files already read: a repeated file is read once and shares its memory in the world.

    Attributes:
        directory: Directory that the files' paths are relative to.
        materials: All materials of the rig by name.
        meshes: Meshes read so far, by the relevant keys of the specification.
        notes: Notes on the files, for the user.
    """

    directory: Path
    materials: dict[str, Material]
    meshes: dict[str, Mesh] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def shape(self, spec: ObjectSpec) -> Mesh:
        """Mesh of an object in the shape's own frame.

        Raises:
            AssetError: its file cannot be used.
        """
        match spec:
            case MeshSpec():
                key = repr((spec.file, spec.scale, spec.up, spec.material, sorted(spec.materials.items())))
                return self._read_once(key, lambda: load_mesh(spec, self.directory, self.materials))
            case TerrainSpec():
                return self._read_once(repr(spec), lambda: load_terrain(spec, self.directory, self.materials))
            case _:
                return primitive(spec, self.materials[spec.material])

    def _read_once(self, key: str, read: Callable[[], tuple[Mesh, tuple[str, ...]]]) -> Mesh:
        if key not in self.meshes:
            self.meshes[key], notes = read()
            self.notes.extend(notes)
        return self.meshes[key]


def scene_sdf(spec: SceneSpec, directory: Path) -> "SdfScene | None":
    """SDF file of a scene; None without one.

    Raises:
        AssetError: the file or one that it includes has faults; the message names all.
    """
    if not spec.sdf:
        return None
    from hilsim.world.sdf.reading import read_sdf  # noqa: PLC0415 - most scenes do not need it

    place, search = directory / spec.sdf, [directory / place for place in spec.sdf_path]
    scene = read_sdf(place, search)
    _newest.clear()
    _newest[place, *search] = scene
    return scene


_newest: "dict[tuple[Path, ...], SdfScene]" = {}
"""Latest SDF file read, by its path and the directories for models."""


def sdf_stamps(spec: SceneSpec, directory: Path) -> "tuple[FileStamp, ...]":
    """Stamps of all files that a scene's SDF file references, found or not: models, meshes and heightmaps. The SDF file is read again only when one of them has changed.

    None if the file cannot be read or does not exist: building the scene reports the error.
    """
    if not spec.sdf:
        return ()
    from hilsim.world.sdf.files import stamp_of  # noqa: PLC0415 - as above

    known = _newest.get((directory / spec.sdf, *(directory / place for place in spec.sdf_path)))
    if known is not None and all(stamp_of(Path(stamp[0])) == stamp for stamp in known.stamps):
        return known.stamps
    try:
        read = scene_sdf(spec, directory)
    except AssetError:
        return ()
    return read.stamps if read is not None else ()


def scene_objects(spec: SceneSpec, directory: Path, sdf: "SdfScene | None" = None) -> tuple[list[SceneObject], tuple[str, ...]]:
    """All objects of a scene, the generator's first, then in the order of ``SceneSpec.objects``, then those of its SDF file; and notes on its files.

    Args:
        spec: Table ``[scene]`` of the rig.
        directory: Directory that the files' paths are relative to.
        sdf: SDF file of the scene, if already read.

    Raises:
        AssetError: files cannot be used; the message names all, one fault per line.
        ConfigError: the scene is empty, or an object with ``stand_on_ground`` has no ground.
    """
    assets = Assets(directory=directory, materials=spec.material_table())
    objects = street_objects(spec) if spec.generator == "street" else []
    faults: dict[str, str] = {}
    for place, thing in spec.objects():
        try:
            objects.append(placed_object(thing, assets.shape(thing), spec.origin_m, thing.name or place))
        except AssetError as error:
            faults.setdefault(str(error), f" (scene.{place})")
    notes: tuple[str, ...] = ()
    try:
        sdf = sdf or scene_sdf(spec, directory)
        if sdf is not None:
            from hilsim.world.assets.sdf_carriages import sdf_carriages  # noqa: PLC0415 - as above
            from hilsim.world.assets.sdf_objects import sdf_objects  # noqa: PLC0415 - as above

            carriages = sdf_carriages(sdf, spec, directory)
            found, notes = sdf_objects(sdf, assets.materials, spec.sdf_sees, Pose(position_m=spec.origin_m), carriages)
            objects += found
            notes = (*sdf.unsupported, *notes)
    except AssetError as error:
        faults.setdefault(str(error), "")
    if faults:
        raise AssetError("\n".join(fault + place for fault, place in faults.items()))
    objects = with_standing(objects, spec)
    if not objects and not spec.background and sdf is not None:
        got = f"{len(sdf.collisions)} collisions and {len(sdf.visuals)} visuals"
        raise ConfigError("\n".join((f'{sdf.path}: must contain a shape that rays hit (sdf_sees = "{spec.sdf_sees}"), got {got}', *notes)))
    if not objects and not spec.background:
        raise ConfigError('scene must have a generator, an object or a background, got none; try generator = "street"')
    return objects, (*assets.notes, *notes)


_PRIMITIVES: dict[type[ObjectSpec], Callable[[Any, Material], Mesh]] = {
    PlaneSpec: lambda spec, material: primitives.plane(spec.size_m, material),
    BoxSpec: lambda spec, material: primitives.box(spec.size_m, material),
    CylinderSpec: lambda spec, material: primitives.cylinder(spec.radius_m, spec.height_m, material, spec.tolerance_m),
    SphereSpec: lambda spec, material: primitives.sphere(spec.radius_m, material, spec.tolerance_m),
    ConeSpec: lambda spec, material: primitives.cone(spec.radius_m, spec.height_m, material, spec.tolerance_m),
    CapsuleSpec: lambda spec, material: primitives.capsule(spec.radius_m, spec.length_m, material, spec.tolerance_m),
    EllipsoidSpec: lambda spec, material: primitives.ellipsoid(spec.radii_m, material, spec.tolerance_m),
}


def primitive(spec: ObjectSpec, material: Material) -> Mesh:
    """Mesh of a shape that needs no file."""
    make = _PRIMITIVES.get(type(spec))
    if make is None:
        raise TypeError(f"spec must be a primitive, got {type(spec).__name__}")
    return make(spec, material)


def placed_object(spec: ObjectSpec, mesh: Mesh, origin_m: Vector, name: str) -> SceneObject:
    """An object of a scene whose zero is at ``origin_m``; its mesh is ``Assets.shape`` of the specification."""
    stand = mounting(spec.position_m, spec.rotation_deg)
    if spec.motion is None:
        return SceneObject(mesh=mesh, placement=Pose(position_m=origin_m) @ stand, label=spec.label, name=name, stands_on_ground=spec.stand_on_ground)
    return SceneObject(mesh=mesh.placed(stand), placement=motion_track(spec.motion, origin_m), label=spec.label, name=name)
