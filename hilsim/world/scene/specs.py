"""The keys of a rig's ``[scene]`` table, as frozen values with their rules.

Frames: the scene's own frame is ENU (x east, y north, z up) with its origin at ``SceneSpec.origin_m`` in the world. ``position_m`` and
``rotation_deg`` (roll, pitch, yaw as in ``world.geometry.rotations``) are an object's pose in the object's frame; without a motion that frame is
the scene's, with one it follows the waypoints.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from hilsim.errors import require, within
from hilsim.limits import SHAPES_TRIANGLES
from hilsim.world.scene.background_specs import BackgroundSpec
from hilsim.world.scene.materials import DEFAULTS, Material, MaterialSpec, wet
from hilsim.world.scene.object_specs import ZERO, MeshSpec, ObjectSpec, SdfMotionSpec, TerrainSpec, Vector, finite
from hilsim.world.scene.primitives import capsule_triangles, cone_triangles, cylinder_triangles, sphere_triangles
from hilsim.world.scene.shape_specs import BoxSpec, CapsuleSpec, ConeSpec, CylinderSpec, EllipsoidSpec, PlaneSpec, SphereSpec

MAX_MOVING_CARS = MAX_PEDESTRIANS = 40


BUILT_IN_MATERIALS: dict[str, Material] = DEFAULTS | {
    material.name: material
    for material in (
        Material(name="clothing", reflectivity=40, texture=0.2, texture_m=0.3, relief_m=0.005),
        Material(name="fabric", reflectivity=25, texture=0.25, texture_m=0.1, flaw_ratio=0.25, flaw_m=0.1, relief_m=0.004),
        Material(name="metal", reflectivity=40, gloss=0.5),
        Material(name="mirror", reflectivity=1, mirror=0.9),
        Material(name="number_plate", reflectivity=180),
        Material(name="paint_blue", reflectivity=20, texture=0.03, texture_m=1.0, gloss=0.5, relief_m=0.001),
        Material(name="paint_red", reflectivity=55, texture=0.03, texture_m=1.0, gloss=0.5, relief_m=0.001),
        Material(name="sandstone", reflectivity=55, texture=0.08, texture_m=0.5, relief_m=0.004),
        Material(name="screen", reflectivity=4, gloss=0.6, flaw_ratio=0.5, flaw_m=0.1),
        Material(name="skin", reflectivity=60),
        Material(name="tiles", reflectivity=30, texture=0.1, texture_m=0.3, relief_m=0.003),
        Material(name="window", reflectivity=8, texture=0.1, texture_m=0.8, relief_m=0.001),
        Material(name="glass", reflectivity=2, transmission=0.85),
        Material(name="hedge", reflectivity=50, porosity=0.4, gap_m=0.1, texture=0.25, texture_m=0.1, relief_m=0.012),
        Material(name="chain_link", reflectivity=40, porosity=0.9),
        Material(name="paling", reflectivity=50, porosity=0.6, gap_m=0.1, texture=0.1, texture_m=0.2, relief_m=0.004),
    )
}
"""Built-in materials; a rig's ``[scene.materials]`` replaces or extends them.

Those added here are hilsim's defaults for typical surfaces at 905 nm, not measurements of one. A window is an opaque pane with curtains or darkness
behind it. Glass has the weak diffuse reflection of a dirty pane.
Transmission 85 %: as quoted from the HDL-64E manual by BLAINDER; porosities are recommended, unproven.
"""


def material_hint(name: str, known: Iterable[str]) -> str:
    """Suggestion for an unknown material, as the end of a sentence: a similar one, and all others."""
    names = sorted(known)
    near = "".join(f'did you mean "{other}"? ' for other in get_close_matches(name, names, 1))
    return f" ({near}known are {', '.join(names)})"


@dataclass(frozen=True, kw_only=True)
class SceneSpec:
    """A rig's ``[scene]`` table.

    Attributes:
        generator: ``street``: hilsim's demo street; ``none``: only the objects of the tables below.
        generator_seed: Random seed of the street.
        generator_moving_cars: Number of moving cars.
        generator_pedestrians: Number of pedestrians.
        origin_m: Position of the scene's origin in the world; UTM coordinates are supported.
        materials: Materials by name, which take precedence over the built-in ones.
        wetness: Share of the ground that a film of water covers, 0 to 1: asphalt, concrete, gravel, soil, tiles and road markings return less of the light, and
            mirror what stands on them.
        mesh: Mesh files.
        terrain: Height maps.
        plane: Rectangles.
        box: Boxes.
        cylinder: Upright cylinders.
        sphere: Spheres.
        cone: Upright cones.
        capsule: Upright capsules.
        ellipsoid: Ellipsoids.
        background: Captured depth maps that sensors see behind the objects.
        sdf: World or model of Gazebo (SDF 1.4 to 1.12) to place in the scene; path relative to the rig.
        sdf_path: Directories to search for its ``model://`` files, relative to the rig, before those of ``GZ_SIM_RESOURCE_PATH``.
        sdf_sees: Shapes that rays hit: ``collisions``, as Gazebo's lidars without a GPU, or ``visuals``.
        sdf_motion: Moving models of the SDF file.
    """

    generator: Literal["none", "street"] = "none"
    generator_seed: int = 1
    generator_moving_cars: int = 12
    generator_pedestrians: int = 10
    origin_m: Vector = ZERO
    materials: dict[str, MaterialSpec] = field(default_factory=dict)
    wetness: float = 0.0
    mesh: tuple[MeshSpec, ...] = ()
    terrain: tuple[TerrainSpec, ...] = ()
    plane: tuple[PlaneSpec, ...] = ()
    box: tuple[BoxSpec, ...] = ()
    cylinder: tuple[CylinderSpec, ...] = ()
    sphere: tuple[SphereSpec, ...] = ()
    cone: tuple[ConeSpec, ...] = ()
    capsule: tuple[CapsuleSpec, ...] = ()
    ellipsoid: tuple[EllipsoidSpec, ...] = ()
    background: tuple[BackgroundSpec, ...] = ()
    sdf: str = ""
    sdf_path: tuple[str, ...] = ()
    sdf_sees: Literal["collisions", "visuals"] = "collisions"
    sdf_motion: tuple[SdfMotionSpec, ...] = ()

    def __post_init__(self) -> None:
        known = BUILT_IN_MATERIALS | self.materials
        require(
            *within(self, wetness=(0, 1)),
            (0 <= self.generator_seed < 2**63, f"generator_seed must be 0 to 2^63 - 1, got {self.generator_seed}"),
            (
                0 <= self.generator_moving_cars <= MAX_MOVING_CARS,
                f"generator_moving_cars must be 0 to {MAX_MOVING_CARS}, got {self.generator_moving_cars}",
            ),
            (
                0 <= self.generator_pedestrians <= MAX_PEDESTRIANS,
                f"generator_pedestrians must be 0 to {MAX_PEDESTRIANS}, got {self.generator_pedestrians}",
            ),
            finite("origin_m", self.origin_m),
            (all(name.strip() for name in self.materials), "a material must have a name"),
            (bool(self.sdf) or not self.sdf_path, "sdf_path must come with sdf"),
            (bool(self.sdf) or not self.sdf_motion, "sdf_motion must come with sdf"),
            *(
                (False, f'sdf_motion: model "{name}" must be named once')
                for name, count in Counter(item.model for item in self.sdf_motion).items()
                if count > 1
            ),
            SHAPES_TRIANGLES.rule(self._shape_triangles()),
            *(
                (name in known, f"{place}: material must be built in or in materials, got {name!r}{material_hint(name, known)}")
                for place, item in self.objects()
                for name in item.material_names()
            ),
        )

    def _shape_triangles(self) -> int:
        round_ones = sum(cylinder_triangles(item.radius_m, item.tolerance_m) for item in self.cylinder)
        round_ones += sum(sphere_triangles(item.radius_m, item.tolerance_m) for item in self.sphere)
        round_ones += sum(cone_triangles(item.radius_m, item.tolerance_m) for item in self.cone)
        round_ones += sum(capsule_triangles(item.radius_m, item.tolerance_m) for item in self.capsule)
        round_ones += sum(sphere_triangles(max(item.radii_m), item.tolerance_m) for item in self.ellipsoid)
        return 2 * len(self.plane) + 12 * len(self.box) + round_ones

    def objects(self) -> list[tuple[str, ObjectSpec]]:
        """All objects with their keys in the table, as ``("box[0]", spec)``."""
        groups: tuple[tuple[str, tuple[ObjectSpec, ...]], ...] = (
            ("mesh", self.mesh),
            ("terrain", self.terrain),
            ("plane", self.plane),
            ("box", self.box),
            ("cylinder", self.cylinder),
            ("sphere", self.sphere),
            ("cone", self.cone),
            ("capsule", self.capsule),
            ("ellipsoid", self.ellipsoid),
        )
        return [(f"{group}[{index}]", item) for group, items in groups for index, item in enumerate(items)]

    def material_table(self) -> dict[str, Material]:
        """Materials by name: the rig's own, which take precedence, and the built-in ones."""
        own = {name: Material(name=name, **vars(spec)) for name, spec in self.materials.items() if name}
        return {name: wet(material, self.wetness) for name, material in (BUILT_IN_MATERIALS | own).items()}
