"""The keys of a rig's ``[scene]`` table, as frozen values that own their rules.

Frames: the scene's own frame is ENU (x east, y north, z up) with its zero at ``SceneSpec.origin_m`` in the world. An object's shape is put
into the object's frame by ``position_m`` and ``rotation_deg`` (roll, pitch, yaw as in ``geometry.rotations``); without a motion that frame is
the scene's, with one it travels along the waypoints.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from hilsim.errors import require
from hilsim.limits import COORDINATE_M, SHAPE_TRIANGLES, SHAPES_TRIANGLES, SIZE_M
from hilsim.scene.background_specs import BackgroundSpec
from hilsim.scene.materials import DEFAULTS, Material
from hilsim.scene.primitives import capsule_triangles, cone_triangles, cylinder_triangles, sphere_triangles

Vector = tuple[float, float, float]
Rule = tuple[bool, str]

ZERO: Vector = (0.0, 0.0, 0.0)
TOLERANCE_M = 0.001
FARTHEST_M = COORDINATE_M.bound
LARGEST_LABEL = 255
LONGEST_TRACK_S = 1e8
CLOSED_WITHIN_M = CLOSED_WITHIN_DEG = 1e-6
FINEST_RATIO = 100_000
MOST_MOVING_CARS = MOST_PEDESTRIANS = 40


@dataclass(frozen=True, kw_only=True)
class MaterialSpec:
    """How a surface sends the pulse back.

    Attributes:
        reflectivity: Velodyne's calibrated scale: 0 to 100 is a diffuse surface in percent, 101 to 255 a retro-reflector (255 the ideal one).
        porosity: Share of open area, 0 to 1: foliage 0.4 to 0.5 a layer, chain-link fence 0.9.
        transmission: Share of light that passes what is not open, one way, 0 to 1: a window pane 0.85.
        gap_m: Size of the openings of a porous surface that stands still; 0: so fine that every ray is split.
    """

    reflectivity: int
    porosity: float = 0.0
    transmission: float = 0.0
    gap_m: float = 0.0

    def __post_init__(self) -> None:
        require(
            (0 <= self.reflectivity <= 255, f"reflectivity must be 0 to 255, got {self.reflectivity}"),
            (0.0 <= self.porosity <= 1.0, f"porosity must be 0 to 1, got {self.porosity}"),
            (0.0 <= self.transmission <= 1.0, f"transmission must be 0 to 1, got {self.transmission}"),
            (0.0 <= self.gap_m <= 10.0, f"gap_m must be 0 to 10, got {self.gap_m}"),
        )


BUILT_IN_MATERIALS: dict[str, Material] = (
    DEFAULTS
    | {
        name: Material(name=name, reflectivity=reflectivity)
        for name, reflectivity in {
            "clothing": 40,
            "metal": 40,
            "number_plate": 180,
            "paint_blue": 20,
            "paint_red": 55,
            "sandstone": 55,
            "skin": 60,
            "tiles": 30,
            "window": 8,
        }.items()
    }
    | {
        material.name: material
        for material in (
            Material(name="glass", reflectivity=2, transmission=0.85),
            Material(name="hedge", reflectivity=50, porosity=0.4, gap_m=0.1),
            Material(name="chain_link", reflectivity=40, porosity=0.9),
            Material(name="paling", reflectivity=50, porosity=0.6, gap_m=0.1),
        )
    }
)
"""Materials every rig knows; a rig's ``[scene.materials]`` replaces or adds to them.

Those added here are hilsim's defaults for typical surfaces at 905 nm, not measurements of one. A window is a pane with curtains or darkness
behind it, and opaque. Glass has the weak diffuse share of a dirty pane;
its mirror image is not rendered. Transmission 85 %: as quoted from the HDL-64E manual by BLAINDER; porosities are recommended, unproven.
"""


def _finite(name: str, values: Iterable[float]) -> Rule:
    numbers = tuple(values)
    holds = all(math.isfinite(value) and abs(value) <= FARTHEST_M for value in numbers)
    return holds, f"{name} must be finite and at most {FARTHEST_M:.0e}, got {numbers}"


def _positive(name: str, value: float) -> Rule:
    return 0.0 < value <= FARTHEST_M, f"{name} must be above 0 and at most {FARTHEST_M:.0e}, got {value}"


def _sized(name: str, *values: float) -> Rule:
    numbers = values if len(values) > 1 else values[0]
    holds = all(SIZE_M.holds(value) and value <= FARTHEST_M for value in values)
    return holds, f"{name} must be at least {SIZE_M.text} and at most {FARTHEST_M:.0e}, got {numbers}"


def _tessellation(radius_m: float, tolerance_m: float, count: Callable[[float, float], int]) -> Iterator[Rule]:
    yield _positive("tolerance_m", tolerance_m)
    if tolerance_m > 0.0:
        ratio = radius_m / tolerance_m
        yield (
            ratio <= FINEST_RATIO,
            f"tolerance_m must be at least radius_m / {FINEST_RATIO:.0f} (triangles grow with it), got radius_m / {ratio:.0f}",
        )
        if radius_m > 0.0 and ratio <= FINEST_RATIO:
            yield SHAPE_TRIANGLES.rule(count(radius_m, tolerance_m), "triangles (a larger tolerance_m needs fewer)")


def _named(name: str, value: str) -> Rule:
    return bool(value.strip()), f"{name} must not be empty"


@dataclass(frozen=True, kw_only=True)
class WaypointSpec:
    """Where an object is at a rig time, in the scene's frame.

    Attributes:
        time_s: Rig time.
        position_m: Of the object's frame.
        rotation_deg: Roll, pitch and yaw of the object's frame.
    """

    time_s: float
    position_m: Vector
    rotation_deg: Vector = ZERO

    def __post_init__(self) -> None:
        require(
            (0.0 <= self.time_s <= LONGEST_TRACK_S, f"time_s must be 0 to {LONGEST_TRACK_S:.0e}, got {self.time_s}"),
            _finite("position_m", self.position_m),
            _finite("rotation_deg", self.rotation_deg),
        )


@dataclass(frozen=True, kw_only=True)
class MotionSpec:
    """A way through the scene; between waypoints an object turns the shorter way.

    Attributes:
        waypoints: At least two, times rising.
        loop: Repeat for ever; the last waypoint must be at the first one's pose, so that nothing jumps.
        interpolation: ``linear``: straight lines at constant speed; ``smooth``: a curve without corners.
    """

    waypoints: tuple[WaypointSpec, ...]
    loop: bool = False
    interpolation: Literal["linear", "smooth"] = "linear"

    def __post_init__(self) -> None:
        times = [waypoint.time_s for waypoint in self.waypoints]
        late = [row for row in range(1, len(times)) if round(times[row] * 1e9) <= round(times[row - 1] * 1e9)]
        require(
            (len(times) >= 2, f"waypoints must be at least 2, got {len(times)}"),
            *((False, f"waypoint {row} must be later than the one before at {times[row - 1]} s, got {times[row]} s") for row in late),
            *(self._loop_rules() if self.loop and len(times) >= 2 else ()),
        )

    def _loop_rules(self) -> Iterator[Rule]:
        first, last = self.waypoints[0], self.waypoints[-1]
        gap_m = math.dist(first.position_m, last.position_m)
        turn_deg = max(abs(math.remainder(b - a, 360.0)) for a, b in zip(first.rotation_deg, last.rotation_deg, strict=True))
        yield gap_m <= CLOSED_WITHIN_M, f"a loop's last waypoint must be at the first one's position_m, got {gap_m:.6g} m away"
        yield turn_deg <= CLOSED_WITHIN_DEG, f"a loop's last waypoint must have the first one's rotation_deg, got {turn_deg:.6g} degrees off"


@dataclass(frozen=True, kw_only=True)
class ObjectSpec:
    """What every object says of itself.

    Attributes:
        position_m: Where the shape's zero stands in the object's frame.
        rotation_deg: Roll, pitch and yaw of the shape in the object's frame.
        material: Name of a built-in material or of one in ``[scene.materials]``; of a mesh, the one for parts the file gives no known material.
        label: Its class in ground truth, 0 to 255; the rig says what the numbers mean.
        name: For people; empty: the place in the table.
        motion: How the object's frame travels; without one it stands at the scene's zero.
    """

    position_m: Vector = ZERO
    rotation_deg: Vector = ZERO
    material: str = "concrete"
    label: int = 0
    name: str = ""
    motion: MotionSpec | None = None

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield _finite("position_m", self.position_m)
        yield _finite("rotation_deg", self.rotation_deg)
        yield _named("material", self.material)
        yield 0 <= self.label <= LARGEST_LABEL, f"label must be 0 to {LARGEST_LABEL}, got {self.label}"

    def material_names(self) -> tuple[str, ...]:
        """Every material the object asks for."""
        return (self.material,)


@dataclass(frozen=True, kw_only=True)
class MeshSpec(ObjectSpec):
    """A mesh file.

    Attributes:
        file: OBJ, PLY, STL, glTF or GLB; relative to the rig's directory.
        scale: Metres in one unit of the file.
        up: The file's axis that points up; ``auto``: y for glTF and GLB (their standard says so), z for the others.
        materials: The file's material names and the rig's materials that stand for them.
    """

    file: str
    scale: float = 1.0
    up: Literal["auto", "z", "y"] = "auto"
    materials: dict[str, str] = field(default_factory=dict)

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _named("file", self.file)
        yield _positive("scale", self.scale)

    def material_names(self) -> tuple[str, ...]:
        """Every material the object asks for."""
        return (self.material, *self.materials.values())


@dataclass(frozen=True, kw_only=True)
class TerrainSpec(ObjectSpec):
    """Ground from a height map: a 16-bit PNG or a GeoTIFF, north up.

    The map's south-west corner lies at ``position_m``; with a GeoTIFF that states where it lies, ``georeferenced`` puts it there instead
    (``position_m`` is then added to the map's own coordinates). Terrain does not move.

    Attributes:
        file: Relative to the rig's directory.
        size_m: East-west and north-south extent between the outermost heights. A PNG needs this or ``pixel_m``; a GeoTIFF has its own pixel size where neither is given.
        pixel_m: Distance between heights, in place of ``size_m``.
        height_min_m: Height of the smallest value that the format can hold (16-bit integers only); comes with ``height_max_m``.
        height_max_m: Height of the largest value; comes with ``height_min_m``.
        scale_m: Metres a step, in place of the two heights; comes with ``offset_m``. Without any of these a GeoTIFF's values are metres.
        offset_m: Height of value 0; comes with ``scale_m``.
        georeferenced: Use the GeoTIFF's own origin.
    """

    file: str
    material: str = "grass"
    size_m: tuple[float, float] | None = None
    pixel_m: float | None = None
    height_min_m: float | None = None
    height_max_m: float | None = None
    scale_m: float | None = None
    offset_m: float | None = None
    georeferenced: bool = False

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _named("file", self.file)
        yield self.motion is None, "terrain must not have a motion"
        yield self.size_m is None or self.pixel_m is None, "terrain must have size_m or pixel_m, got both"
        own_size = self.size_m is None and self.pixel_m is None
        yield not self.georeferenced or own_size, "georeferenced terrain must have the file's own size, got size_m or pixel_m as well"
        if self.size_m is not None:
            yield _sized("size_m", *self.size_m)
        if self.pixel_m is not None:
            yield _sized("pixel_m", self.pixel_m)
        yield from self._height_rules()

    def _height_rules(self) -> Iterator[Rule]:
        span = (self.height_min_m, self.height_max_m)
        steps = (self.scale_m, self.offset_m)
        yield span.count(None) != 1, "height_min_m and height_max_m must be given together"
        yield span.count(None) == 2 or steps.count(None) == 2, "terrain must have height_min_m and height_max_m or scale_m and offset_m, got both"
        if self.scale_m is None:
            yield self.offset_m is None, "offset_m must come with scale_m"
        else:
            yield _positive("scale_m", self.scale_m)
        yield _finite("heights", (value for value in (*span, self.offset_m) if value is not None))
        if self.height_min_m is not None and self.height_max_m is not None:
            yield self.height_min_m < self.height_max_m, f"height_max_m must be above height_min_m, got {self.height_max_m} and {self.height_min_m}"


@dataclass(frozen=True, kw_only=True)
class PlaneSpec(ObjectSpec):
    """A rectangle facing up, centred on its position; both sides reflect.

    Attributes:
        size_m: Along x and y.
    """

    size_m: tuple[float, float]

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _sized("size_m", *self.size_m)


@dataclass(frozen=True, kw_only=True)
class BoxSpec(ObjectSpec):
    """A box centred on its position.

    Attributes:
        size_m: Along x, y and z.
    """

    size_m: Vector

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _sized("size_m", *self.size_m)


@dataclass(frozen=True, kw_only=True)
class CylinderSpec(ObjectSpec):
    """An upright cylinder with both caps, centred on its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Of the cylinder.
        height_m: Along z, centred on its own zero.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radius_m: float
    height_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _sized("radius_m", self.radius_m)
        yield _sized("height_m", self.height_m)
        yield from _tessellation(self.radius_m, self.tolerance_m, cylinder_triangles)


@dataclass(frozen=True, kw_only=True)
class SphereSpec(ObjectSpec):
    """A sphere centred on its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Of the sphere.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radius_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _sized("radius_m", self.radius_m)
        yield from _tessellation(self.radius_m, self.tolerance_m, sphere_triangles)


@dataclass(frozen=True, kw_only=True)
class ConeSpec(ObjectSpec):
    """An upright cone with its tip up, half its height on either side of its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Of its base.
        height_m: Along z.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radius_m: float
    height_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _sized("radius_m", self.radius_m)
        yield _sized("height_m", self.height_m)
        yield from _tessellation(self.radius_m, self.tolerance_m, cone_triangles)


@dataclass(frozen=True, kw_only=True)
class CapsuleSpec(ObjectSpec):
    """An upright cylinder with a half sphere at each end, centred on its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radius_m: Of the cylinder and the ends.
        length_m: Along z, without the ends.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radius_m: float
    length_m: float
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _sized("radius_m", self.radius_m)
        yield _sized("length_m", self.length_m)
        yield from _tessellation(self.radius_m, self.tolerance_m, capsule_triangles)


@dataclass(frozen=True, kw_only=True)
class EllipsoidSpec(ObjectSpec):
    """An ellipsoid centred on its position; flats stay within ``tolerance_m`` of the true surface.

    Attributes:
        radii_m: Along x, y and z.
        tolerance_m: How far the flats it is made of may lie inside the true surface.
    """

    radii_m: Vector
    tolerance_m: float = TOLERANCE_M

    def rules(self) -> Iterator[Rule]:
        """Every rule with its fault."""
        yield from super().rules()
        yield _sized("radii_m", *self.radii_m)
        yield from _tessellation(max(self.radii_m), self.tolerance_m, sphere_triangles)


@dataclass(frozen=True, kw_only=True)
class SceneSpec:
    """A rig's ``[scene]`` table.

    Attributes:
        generator: ``street``: hilsim's own demo street; ``none``: only what the tables below hold.
        generator_seed: Which street.
        generator_moving_cars: How many cars drive in it.
        generator_pedestrians: How many people walk in it.
        origin_m: Where the scene's zero lies in the world; may be as far as UTM coordinates are.
        materials: Materials by name, beside and before the built-in ones.
        mesh: Mesh files.
        terrain: Height maps.
        plane: Rectangles.
        box: Boxes.
        cylinder: Upright cylinders.
        sphere: Spheres.
        cone: Upright cones.
        capsule: Upright capsules.
        ellipsoid: Ellipsoids.
        background: Captured depth maps that sensors see behind all of this.
    """

    generator: Literal["none", "street"] = "none"
    generator_seed: int = 1
    generator_moving_cars: int = 12
    generator_pedestrians: int = 10
    origin_m: Vector = ZERO
    materials: dict[str, MaterialSpec] = field(default_factory=dict)
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

    def __post_init__(self) -> None:
        known = self.material_table()
        require(
            (0 <= self.generator_seed < 2**63, f"generator_seed must be 0 to 2^63 - 1, got {self.generator_seed}"),
            (
                0 <= self.generator_moving_cars <= MOST_MOVING_CARS,
                f"generator_moving_cars must be 0 to {MOST_MOVING_CARS}, got {self.generator_moving_cars}",
            ),
            (
                0 <= self.generator_pedestrians <= MOST_PEDESTRIANS,
                f"generator_pedestrians must be 0 to {MOST_PEDESTRIANS}, got {self.generator_pedestrians}",
            ),
            _finite("origin_m", self.origin_m),
            (all(name.strip() for name in self.materials), "a material must have a name"),
            SHAPES_TRIANGLES.rule(self._shape_triangles()),
            *(
                (name in known, f"{place}: material must be built in or in materials, got {name!r}")
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
        """Every object with its place in the table, as ``("box[0]", spec)``."""
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
        """Every material by name: the built-in ones and the rig's own, which go before."""
        own = {name: Material(name=name, **vars(spec)) for name, spec in self.materials.items() if name}
        return BUILT_IN_MATERIALS | own
